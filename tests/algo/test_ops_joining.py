from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, graph_of, near, numbers, refusal, run, same


@pytest.mark.parametrize("axis", [0, 1, -1, "b"])
def test_concatenate(axis: Any) -> None:
    d = 1 if axis == "b" else axis
    x, y, z = numbers(2, 3, 4), numbers(2, 3, 4, seed=1), numbers(2, 3, 4, seed=2)
    y = y.take([0, 1, 0, 1, 1], d)
    same(run(lambda x, y, z: fl.concatenate([x, y, z], axis), x, y, z), np.concatenate([x, y, z], d))
    same(run(lambda x, y, z: fl.concatenate([x, y, z], axis), x, y, z, symbolic=True), np.concatenate([x, y, z], d))


def test_concatenate_of_few_empty_or_mixed_parts() -> None:
    x = numbers(3)
    same(run(lambda x: fl.concatenate([x]), x), x)
    same(run(lambda x, e: fl.concatenate([e, x, e]), x, np.zeros(0, np.float32)), x)
    same(run(lambda e: fl.concatenate([e, e]), np.zeros(0, np.float32)), np.zeros(0, np.float32))
    mixed = run(lambda k, m: fl.concatenate([k, m]), np.array([1], np.int32), np.array([2**40], np.int64))
    same(mixed, np.array([1, 2**40], np.int64))


def test_concatenate_reads_in_bounds_without_clamping() -> None:
    graph = fl.trace(lambda x, y: fl.concatenate([x, y]), inputs={"x": fl.f32("n"), "y": fl.f32("m")})
    assert "edge" not in graph.text()
    same(graph.run(numbers(3), numbers(4)), np.concatenate([numbers(3), numbers(4)]))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_stack_and_split(axis: int) -> None:
    x, y = numbers(2, 3), numbers(2, 3, seed=1)
    same(both(lambda x, y: fl.stack([x, y], axis), x, y), np.stack([x, y], axis))
    z = numbers(4, 6, 8)
    for parts in (2, [1, 3]):
        got = run(lambda z, parts=parts: fl.split(z, parts, axis), z)
        for a, b in zip(got, np.split(z, parts, axis), strict=True):
            same(a, b)


def test_split_of_symbolic_extents() -> None:
    graph = fl.trace(lambda x: tuple(fl.split(fl.tile(x, 2), 2)), inputs={"x": fl.f32("n")})
    for half in graph.run(numbers(6)):
        same(half, numbers(6))
    assert "not a multiple" in refusal(lambda x: tuple(fl.split(x, 2)), numbers(6), symbolic=True).why


WIDTHS: list[Any] = [1, (1, 2), [(0, 1), (2, 0)], [2, (0, 3)], 0]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("width", WIDTHS, ids=str)
def test_pad(mode: str, width: Any) -> None:
    x = numbers(4, 5)
    numpys = [w if isinstance(w, tuple) else (w, w) for w in width] if isinstance(width, list) else width
    options = {"constant_values": 2.5} if mode == "constant" else {}
    want = np.pad(x, numpys, mode, **options)  # type: ignore[call-overload]
    same(both(lambda x: fl.pad(x, width, mode, 2.5 if mode == "constant" else 0), x), want)


def test_pad_by_axis_names_and_far() -> None:
    x = numbers(4, 5)
    same(run(lambda x: fl.pad(x, {"b": (1, 0), 0: 2}), x), np.pad(x, [(2, 2), (1, 0)]))
    same(run(lambda x: fl.pad(x, 9, "reflect"), x), np.pad(x, 9, "reflect"))
    same(run(lambda x: fl.pad(x, 2, "reflect"), x[:1]), np.pad(x[:1], 2, "reflect"))
    (stage,) = graph_of(lambda x: fl.pad(x, 1), x).stages
    assert stage.path.endswith("/pad") and stage.axis_names == ("a", "b")


def test_filled_tensors() -> None:
    def made(fn: Any) -> Any:
        return fl.trace(fn).run()

    same(made(lambda: fl.zeros((2, 3))), np.zeros((2, 3), np.float32))
    same(made(lambda: fl.ones(4, fl.i64)), np.ones(4, np.int64))
    same(made(lambda: fl.full((), True)), np.array(True))
    same(made(lambda: fl.full((2,), 7)), np.full(2, 7, np.int32))
    same(made(lambda: fl.full((2,), 0.5, fl.f64)), np.full(2, 0.5))
    same(made(lambda: fl.eye(3, 4)), np.eye(3, 4, dtype=np.float32))
    same(made(lambda: fl.asarray([[1, 2], [3, 4]]) + 0), np.array([[1, 2], [3, 4]], np.int32))
    same(made(lambda: fl.asarray([1.5], fl.f64) + 0), np.array([1.5]))
    x = numbers(2, 3)
    same(run(lambda x: fl.zeros_like(x) + fl.ones_like(x) + fl.full_like(x, 2), x, symbolic=True), np.full((2, 3), 3, np.float32))
    graph = fl.trace(lambda x: fl.zeros(("n", x.shape[1], 2)) + fl.expand_dims(x, -1), inputs={"x": fl.f32("n", "m")})
    same(graph.run(x), np.stack([x, x], -1))
    assert graph.stages[0].axis_names == ("n", "m", "i2")


@pytest.mark.parametrize("arguments", [(5,), (2, 9), (2, 9, 3), (9, 2, -3), (3, 3), (5, 2), (0.5, 3), (0, 1, 0.25)], ids=str)
def test_arange(arguments: Any) -> None:
    want = np.arange(*arguments)
    near(fl.trace(lambda: fl.arange(*arguments)).run(), want)
    assert fl.trace(lambda: fl.arange(*arguments, dtype=fl.i64)).run().dtype == np.int64


def test_arange_to_a_symbolic_end() -> None:
    same(run(lambda x: x * fl.arange(x.shape[0]).astype(fl.f32), numbers(5), symbolic=True), numbers(5) * np.arange(5, dtype=np.float32))
    assert refusal(lambda x: fl.arange(x.shape[0], step=0.5), numbers(5), symbolic=True).code == "A304"
    assert refusal(lambda x: fl.arange(5, step=0), numbers(5)).code == "A304"


@pytest.mark.parametrize("k", [-2, 0, 1])
def test_triangles(k: int) -> None:
    x = numbers(2, 4, 5)
    same(both(lambda x: fl.tril(x, k), x), np.tril(x, k))
    same(both(lambda x: fl.triu(x, k), x), np.triu(x, k))


def test_one_hot_and_embedding() -> None:
    ids, table = np.array([[0, 2], [3, 1]], np.int32), numbers(4, 5)
    same(both(lambda ids: fl.one_hot(ids, 4), ids), np.eye(4, dtype=np.float32)[ids])
    same(run(lambda ids: fl.one_hot(ids, 4, fl.u8), ids), np.eye(4, dtype=np.uint8)[ids])
    same(run(lambda ids, t: fl.embedding(ids, t), ids, table), table[ids])
    (stage,) = graph_of(lambda ids, t: fl.embedding(ids, t), ids, table).stages
    assert stage.facts["kind"] == "gather" and stage.axis_names == ("a", "b", "i2")


def test_refusals() -> None:
    x, y = numbers(2, 3), numbers(2, 4)
    problem = refusal(lambda x, y: fl.concatenate([x, y]), x, y)
    assert problem.code == "A301" and "[2, 3]" in problem.asked and "[2, 4]" in problem.asked
    for wrong, code in [
        (lambda x: fl.concatenate([]), "A307"), (lambda x: fl.stack([]), "A307"), (lambda x: fl.stack([x, x[0]]), "A301"),
        (lambda x: fl.stack([x], 3), "A302"), (lambda x: fl.concatenate([x, x.astype(fl.i32)]), "A104"),
        (lambda x: fl.split(x, 2, 1), "A303"),
        (lambda x: fl.split(x, 0), "A303"), (lambda x: fl.pad(x, -1), "A304"), (lambda x: fl.pad(x, [1, 2, 3]), "A304"),
        (lambda x: fl.pad(x, 1, "mirror"), "A304"), (lambda x: fl.pad(x, {"q": 1}), "A302"), (lambda x: fl.pad(x, 1, value="a"), "A304"),
        (lambda x: fl.tril(x[0]), "A307"), (lambda x: fl.full(3, x), "A304"), (lambda x: fl.zeros(-1), "A304"),
        (lambda x: fl.zeros(2.5), "A304"),
        (lambda x: fl.one_hot(x, 3), "A306"), (lambda x: fl.embedding(x.astype(fl.i32), x[0]), "A307"),
        (lambda x: fl.ones(3, "float13"), "A101"),
    ]:  # fmt: skip
        assert refusal(wrong, x).code == code


def test_no_difference_is_the_tensor_itself_as_in_numpy() -> None:
    x = np.arange(6.0).reshape(2, 3)
    graph = fl.trace(lambda x: fl.diff(x, 0, 0, prepend=1.0, append=x), inputs={"x": fl.Spec("float64", ("n", "m"), (2, 3))})
    np.testing.assert_array_equal(graph.run(x), np.diff(x, 0, 0, prepend=1.0, append=x))


def test_positions_known_when_traced() -> None:
    """They count from the end where negative, as NumPy's do, and are refused where they lie outside; those of tensors are clamped."""
    x = numbers(4, 5)
    ids = np.array([-1, 0, -4, 3])
    same(run(lambda x: fl.take(x, ids), x), x[ids])
    same(run(lambda x: fl.take(x, -2, axis=1), x), x[:, -2])
    same(run(lambda x: fl.embedding([[-1], [2]], x), x), x[[[-1], [2]]])
    same(run(lambda x: fl.take_along_axis(x, ids[:, None], axis=1), x), np.take_along_axis(x, ids[:, None], 1))
    same(run(lambda x, i: fl.take(x, i), x, np.array([-1, 9])), x[[0, 3]])
    for wrong in (lambda x: fl.take(x, [4]), lambda x: fl.take(x, -5), lambda x: fl.embedding([4], x)):
        assert refusal(wrong, x).code == "A305"
    assert refusal(lambda x: fl.take(x, [-1]), x, symbolic=True).code == "A305"
    assert "fl.nonzero" in str(refusal(lambda x: x[x[:, 0] > 0], x).try_)
