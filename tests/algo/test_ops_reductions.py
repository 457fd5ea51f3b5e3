from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, graph_of, near, numbers, refusal, run, same

AXES: list[Any] = [None, 0, 1, -1, (0, 2), (-1, 0), (), [0, 1, 2]]


def tuple_of(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


@pytest.mark.parametrize("axis", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"])
def test_over_axes_with_and_without_keepdims(name: str, axis: Any) -> None:
    x = numbers(2, 5, 3)
    for keepdims in (False, True):
        got = both(lambda x, keepdims=keepdims: getattr(fl, name)(x, axis=axis, keepdims=keepdims), x)
        near(got, getattr(np, name)(x, axis=tuple_of(axis), keepdims=keepdims), 1e-5)


def test_the_default_is_all_axes() -> None:
    x = numbers(3, 4)
    near(run(lambda x: fl.sum(x), x), x.sum(), 1e-5)
    near(
        run(lambda x: x.sum() + x.mean(1, True) * x.max(axis=0) - x.min(), x), x.sum() + x.mean(1, keepdims=True) * x.max(0) - x.min(), 1e-5
    )


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions_of_extremes(name: str, axis: int | None, keepdims: bool) -> None:
    x = numbers(4, 6, dtype="int32")
    same(both(lambda x: getattr(fl, name)(x, axis, keepdims), x), getattr(np, name)(x, axis=axis, keepdims=keepdims).astype(np.int32))
    y = np.array([1, np.nan, 5, np.nan], np.float32)
    assert run(lambda y: getattr(fl, name)(y), y) == 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float64"])
def test_types_of_sums(dtype: str) -> None:
    x = numbers(7, 2, dtype=dtype)
    want = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(dtype, dtype)
    for axis in (0, ()):
        same(run(lambda x, axis=axis: fl.sum(x, axis), x), x.sum(axis=axis, dtype=want))
        same(run(lambda x, axis=axis: fl.prod(x, axis), x), x.prod(axis=axis, dtype=want))
    same(run(lambda x: fl.max(x, 0), x), x.max(0))
    same(run(lambda x: fl.any(x, 0), x), x.any(0))
    same(run(lambda x: fl.all(x, ()), x), x.astype(bool))
    assert run(lambda x: fl.mean(x), x).dtype == ("float64" if dtype == "float64" else "float32")


def test_empty_axes_give_the_identity_or_a_sentence() -> None:
    x = np.zeros((0, 3), np.float32)
    same(run(lambda x: fl.sum(x, 0), x), np.zeros(3, np.float32))
    same(run(lambda x: fl.prod(x, 0), x), np.ones(3, np.float32))
    same(run(lambda x: fl.all(x, 0), x), np.ones(3, bool))
    same(run(lambda x: fl.any(x, 0), x), np.zeros(3, bool))
    same(run(lambda x: fl.max(x, 1), x), np.zeros(0, np.float32))
    with pytest.raises(fl.FluoriteError):
        run(lambda x: fl.max(x, 0), x)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin", "mean"])
def test_inside_a_stage(name: str) -> None:
    x = numbers(4, 6, dtype="int32")
    fn = getattr(fl, name)
    on_lambda = both(lambda x: fl.stage(lambda i: fn(lambda k: x[i, k])), x)
    same(on_lambda, both(lambda x: fn(x, 1), x))


def test_the_mean_of_some_elements() -> None:
    x, c = numbers(4, 5, 3), numbers(4, 5, 1, seed=3) > 0
    for axis, keepdims in ((None, False), (1, True), ((0, 2), False), (-1, False)):
        with np.errstate(all="ignore"):
            wanted = np.nanmean(np.where(c, x, np.nan), axis=axis, keepdims=keepdims) if axis is None else None
        if wanted is None:
            total, n = np.where(c, x, 0).sum(axis, keepdims=keepdims), np.broadcast_to(c, x.shape).sum(axis, keepdims=keepdims)
            wanted = np.divide(total, n, out=np.full(total.shape, np.nan, np.float32), where=n > 0)
        near(both(lambda x, c, axis=axis, keepdims=keepdims: fl.mean(x, axis, keepdims, where=c), x, c), wanted, 1e-5)
    x[~np.broadcast_to(c, x.shape)] = np.nan  # what does not count may be anything
    assert np.isfinite(run(lambda x, c: fl.mean(x, where=c), x, c))
    assert np.isnan(run(lambda x, c: fl.mean(x, where=c), x, np.zeros_like(c)))
    with pytest.raises(fl.AlgorithmError, match="it says yes or no"):
        run(lambda x: fl.mean(x, where=x), x)
    with pytest.raises(fl.AlgorithmError, match="it has an extent where"):
        run(lambda x, c: fl.mean(x, where=c), numbers(1, 5, 3), c)
    with pytest.raises(fl.AlgorithmError, match="a lambda says so itself"):
        run(lambda x, c: fl.stage(lambda: fl.mean(lambda i: x[i, 0, 0], where=c)), x, c)


def test_mean_of_a_lambda_knows_its_extents_from_reads_or_over() -> None:
    x = numbers(9)
    near(both(lambda x: fl.stage(lambda: fl.mean(lambda i: fl.square(x[i]))), x), (x * x).mean())
    windows = both(lambda x: fl.stage(lambda i: fl.mean(lambda k: x[i + k], over={"k": (0, 3)})), x)
    near(windows, [x[i : i + 3].mean() for i in range(7)])
    nested = run(lambda x: fl.stage(lambda i: x[i] - fl.mean(lambda j: x[j])), x)
    near(nested, x - x.mean())


def test_var_and_std_take_a_correction() -> None:
    x = numbers(5, 8)
    near(both(lambda x: fl.var(x, 1, correction=1), x), x.var(1, ddof=1))
    near(both(lambda x: fl.std(x, 0, True, correction=1), x), x.std(0, ddof=1, keepdims=True))
    near(run(lambda x: fl.var(x), (x * 10).astype(np.int32)), (x * 10).astype(np.int32).var(), 1e-5)


def test_axes_by_name() -> None:
    x = numbers(2, 3, 4)
    near(run(lambda x: fl.sum(x, ("c", "a")), x), x.sum((0, 2)), 1e-5)
    (stage,) = graph_of(lambda x: fl.sum(x, "b"), x).stages
    assert stage.axis_names == ("a", "c") and [a.name for a in stage.reduce_axes] == ["b"]


def test_boundary_views_and_lists_are_operands() -> None:
    near(run(lambda x: fl.sum(fl.edge(x)) + fl.sum([1.5, 1.5]), numbers(5)), numbers(5).sum() + 3, 1e-5)


def test_refusals() -> None:
    x = numbers(2, 3)
    problem = refusal(lambda x: fl.sum(x, axis=2), x)
    assert problem.code == "A302" and "axis 2 of 2 axes" in problem.asked and "-2 to 1" in problem.why
    assert "test_ops_reductions.py" in (problem.source or "")
    assert "a, b" in refusal(lambda x: fl.max(x, axis="z"), x).why
    assert "twice" in refusal(lambda x: fl.max(x, axis=(0, -2)), x).why
    assert refusal(lambda x: fl.max(x, axis=0.5), x).code == "A302"
    assert refusal(lambda x: fl.sum(lambda i: x[i]), x).code == "A115"
    for name in ("sum", "mean", "std", "argmax"):
        with pytest.raises(fl.AlgorithmError, match=f"{name}|var"):
            run(lambda x, name=name: getattr(fl, name)(x, True), x)
