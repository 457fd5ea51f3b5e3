"""Algorithms that misuse the language: each is refused in a sentence with its place, none is traced into something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest

V = fl.f32[fl.Tensor, "n"]
Make = Callable[[fl.Tensor], Any]


def refused(make: Make, dtype: Any = V) -> fl.Problem:
    def f(x: fl.Tensor) -> Any:
        return make(x)

    f.__annotations__["x"] = dtype
    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(f)
    (problem,) = caught.value.problems
    assert "test_attack_language.py:" in problem.place()
    return problem


def stage_with_extent(value: Any) -> Make:
    return lambda x: fl.stage(lambda i: x[0] + i, extents={"i": value})


def sum_over(value: Any) -> Make:
    return lambda x: fl.stage(lambda i: x[i] + fl.cast(fl.sum(lambda k: k, over={"k": value}), fl.f32))


@pytest.mark.parametrize("value", [3.5, -3, True, "n", [0, 3], 2**60])
def test_extents_that_are_none(value: Any) -> None:
    assert refused(stage_with_extent(value)).code == "A116"
    assert refused(sum_over(value)).code == "A116"


@pytest.mark.parametrize("value", [(0, 1, 2), (0, 1.5), (5, 2), ("a", "b")])
def test_ranges_that_are_none(value: Any) -> None:
    assert refused(sum_over(value)).code == "A116"


def test_extents_of_numpy_are_integers() -> None:
    def f(x: V) -> Any:
        return fl.stage(lambda i: x[0] + fl.cast(fl.sum(lambda k: k, over={"k": np.int64(3)}), fl.f32), extents={"i": np.int32(2)})

    assert fl.trace(f).run(np.ones(1, np.float32)).tolist() == [4, 4]


def test_extents_by_no_mapping() -> None:
    assert refused(lambda x: fl.stage(lambda i: x[i], extents=[3])).code == "A116"  # type: ignore[arg-type]
    assert refused(lambda x: fl.stage(lambda i: x[i] + fl.cast(fl.sum(lambda k: k, over=3), fl.f32))).code == "A116"  # type: ignore[call-overload]


def test_a_symbol_that_no_input_has() -> None:
    problem = refused(stage_with_extent(fl.extent("zz")))
    assert (problem.code, problem.try_) == ("A134", ("n",))


@pytest.mark.parametrize("fn", [3, max, lambda *i: i, lambda i, **k: i, lambda i, *, j: i])
def test_what_is_no_function_of_axes(fn: Any) -> None:
    assert refused(lambda x: fl.stage(fn)).code == "A119"
    if callable(fn):
        assert refused(lambda x: fl.stage(lambda i: x[i] + fl.sum(fn))).code == "A119"


def test_a_reduction_without_an_axis() -> None:
    assert refused(lambda x: fl.stage(lambda i: fl.sum(lambda: x[i]))).code == "A119"


def test_parameters_with_a_default_keep_it() -> None:
    def f(x: V) -> Any:
        return [fl.stage(lambda i, k=k: x[i] * k) for k in (2, 3)]

    assert [a.tolist() for a in fl.trace(f).run(np.ones(1, np.float32))] == [[2], [3]]


def test_an_axis_of_another_lambda() -> None:
    kept: list[Any] = []

    def keep(value: Any, result: Any) -> Any:
        kept.append(value)
        return result

    def leaking(x: fl.Tensor) -> Any:
        fl.stage(lambda i: keep(i, x[i]))
        return fl.stage(lambda j: x[j] + kept[-1])

    def reading(x: fl.Tensor) -> Any:
        fl.stage(lambda i: keep(x[i], x[i]))
        return fl.stage(lambda j: x[j] + kept[-1])

    def out_of_a_sum(x: fl.Tensor) -> Any:
        return fl.stage(lambda j: x[j] * fl.sum(lambda k: keep(k, x[k])) + kept[-1])

    for make in (leaking, reading, out_of_a_sum, lambda x: fl.stage(lambda i: fl.stage(lambda j: x[i] + x[j])[i])):
        assert refused(make).code == "A118"


def test_a_stage_inside_a_lambda_that_is_closed() -> None:
    def f(x: V) -> Any:
        return fl.stage(lambda i: fl.stage(lambda j: x[j] + 1)[i] * 2)

    assert fl.trace(f).run(np.ones(2, np.float32)).tolist() == [4, 4]


def test_a_tensor_of_another_trace() -> None:
    kept: list[fl.Tensor] = []

    def first(x: V) -> Any:
        kept.extend([x, fl.stage(lambda i: x[i] + 1)])
        return kept[-1]

    for n in (0, 1):
        fl.trace(first)
        uses: list[Make] = [
            lambda x: kept[n],  # noqa: B023
            lambda x: fl.stage(lambda i: kept[n][i] + x[i]),  # noqa: B023
            lambda x: fl.softmax(kept[n] + x),  # noqa: B023
            lambda x: kept[n][1:],  # noqa: B023
        ]
        for use in uses:
            assert refused(use).code == "A133"
    fl.trace(first)
    assert refused(lambda x: kept[-1].named("other")).code == "A114"


def test_a_trace_inside_a_trace() -> None:
    def inner(x: V) -> Any:
        return x + 1

    def outer(x: V) -> Any:
        fl.trace(inner)
        return x * 2

    assert fl.trace(outer).run(np.ones(1, np.float32)).tolist() == [2]


@pytest.mark.parametrize("name", [3, "a b", "a\n", "a\0b", "*", "a//b", "x" * 300])
def test_names_that_no_plan_could_say(name: Any) -> None:
    assert refused(lambda x: fl.stage(lambda i: x[i], name=name)).code == "A117"
    assert refused(lambda x: (x + 1).named(name)).code == "A117"

    def scoped(x: fl.Tensor) -> Any:
        with fl.scope(name):
            return x + 1

    assert refused(scoped).code == "A117"


def test_largest_of_nothing() -> None:
    for make in (fl.max, fl.min, fl.argmax):
        assert refused(lambda x: make(x, axis=1), fl.f32[fl.Tensor, "n", 0]).code == "A206"  # noqa: B023
        fl.trace(annotated(lambda x: make(x, axis=1), fl.f32[fl.Tensor, 0, 3]))  # noqa: B023


def annotated(make: Make, dtype: Any) -> Any:
    def f(x: fl.Tensor) -> Any:
        return make(x)

    f.__annotations__["x"] = dtype
    return f


def test_expressions_without_end() -> None:
    def deep(x: fl.Tensor) -> Any:
        def body(i: Any) -> Any:
            e = x[i]
            for _ in range(3000):
                e = e + 1.5
            return e

        return fl.stage(body)

    def long(x: fl.Tensor) -> Any:
        def body(i: Any) -> Any:
            e = x[i]
            for _ in range(60):
                e = e * 0.5 + e * 0.25
            return e

        return fl.stage(body)

    assert refused(deep).code == refused(long).code == "A132"


def test_shared_parts_are_traced_once() -> None:
    def f(x: V) -> Any:
        def body(i: Any) -> Any:
            e = x[i]
            for _ in range(11):
                e = e * 0.5 + e * 0.5
            return fl.sum(lambda k: x[k]) * e

        return fl.stage(body)

    assert fl.trace(f).run(np.ones(2, np.float32)).tolist() == [2, 2]


def test_numbers_that_do_not_fit() -> None:
    for number, dtype in ((2**31, fl.i32), (256, fl.u8), (-1, fl.u8), (1e300, fl.f32), (2**70, fl.i64)):
        assert refused(lambda x: fl.stage(lambda i: x[i] + number), dtype[fl.Tensor, "n"]).code == "A104"  # noqa: B023
    g = fl.trace(annotated(lambda x: fl.stage(lambda i: x[i] * 10**30 + float("inf")), V))
    assert g.run(np.ones(1, np.float32)).tolist() == [float("inf")]


def test_an_index_with_a_number_beyond_64_bits() -> None:
    def f(x: fl.Tensor) -> Any:
        view = fl.wrap(x)
        return fl.stage(lambda i: view[i * 1000000007 * 1000000007] + x[i])

    assert refused(f).code == "A108"


def test_tensors_larger_than_any_machine() -> None:
    assert refused(lambda x: fl.stage(lambda i, j: x[0] + i + j, extents={"i": 2**33, "j": 2**33})).code == "A116"


def test_results_that_are_none() -> None:
    for make in (lambda x: {1: x, "1": x}, lambda x: [[[[x, None]]]], lambda x: {x}, lambda x: None):
        assert refused(make).code == "A130"  # type: ignore[arg-type]

    def cyclic(x: fl.Tensor) -> Any:
        out: list[Any] = [x + 1]
        out.append(out)
        return out

    assert refused(cyclic).code == "A130"


def test_inputs_that_cannot_be_named() -> None:
    def many(*x: V) -> Any:
        return x[0]

    def words(**x: V) -> Any:
        return x["x"]

    def positional(x: V, /) -> Any:
        return x

    for f in (many, words, positional):
        with pytest.raises(fl.AlgorithmError, match="A125"):
            fl.trace(f)


def test_a_tensor_stays_what_it_is() -> None:
    for name, value in (("shape", (3, 2)), ("dtype", "int32"), ("axis_names", ("z",))):
        assert refused(lambda x, name=name, value=value: setattr(x, name, value)).code == "A106"
    assert refused(lambda x: f"{x:.3f}").code == "A103"
    assert refused(lambda x: fl.add(x, [[1, 2], [3]])).code == "A311"
    assert refused(lambda x: fl.cast(fl.f32, x)).code == "A101"


def test_divmod() -> None:
    def f(x: V) -> Any:
        inside = fl.stage(lambda i, k: fl.where(k == 0, *divmod(x[i], 3)), extents={"k": 2})
        return [*divmod(x, 2), *divmod(7, x), *fl.unstack(inside, axis=1)]

    x = np.float32([1, 5, -3])
    for got, want in zip(fl.trace(f).run(x), (*divmod(x, 2), *divmod(7, x), *divmod(x, 3)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_constants_of_foreign_byte_order() -> None:
    def f(x: V) -> Any:
        return x + np.arange(1, 2, dtype=">f4")

    (constant,) = (leaf for leaf in fl.trace(f).leaves if leaf.kind == "constant")
    assert constant.value.dtype.isnative


def test_parameters_that_cannot_be() -> None:
    for extent in (-3, "n", 2.5, None):
        with pytest.raises(fl.AlgorithmError, match="A140"):
            fl.param(i=extent)  # type: ignore[arg-type]

    class Failing(fl.Program):
        def __init__(self) -> None:
            self.w = fl.param(init=lambda *_: 1 / 0, i=3)

        @fl.method
        def go(self, x: fl.f32[fl.Tensor, 3]) -> Any:
            return x * self.w

    class Holding(fl.Program):
        def __init__(self) -> None:
            self.me = self
            self.all = [self]
            self.w = fl.param(init=2, i=3)

        @fl.method
        def go(self, x: fl.f32[fl.Tensor, 3]) -> Any:
            return x * self.w

    ones = np.ones(3, np.float32)
    with pytest.raises(fl.AlgorithmError, match="the initialiser of w raised ZeroDivisionError"):
        fl.trace(Failing()).run(ones)
    assert fl.trace(Holding()).run(ones).tolist() == [2, 2, 2]


def test_reading_what_has_no_elements() -> None:
    def f(x: V) -> Any:
        rest = fl.edge(fl.stage(lambda i: x[i + 3]))
        return fl.stage(lambda i: x[i] + rest[i - 1])

    with pytest.raises(fl.RunError, match="R122"):
        fl.trace(f).run(np.ones(3, np.float32))
    assert fl.trace(f).run(np.arange(4, dtype=np.float32)).tolist() == [3, 4, 5, 6]
