from __future__ import annotations

from itertools import pairwise
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_running import both, graph_of, numbers, refusal, run, same

X = np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5)


def test_orders_of_axes() -> None:
    same(both(lambda x: fl.transpose(x), X), X.T)
    same(both(lambda x: x.T, X), X.T)
    same(both(lambda x: fl.transpose(x, (1, -1, 0)), X), X.transpose(1, 2, 0))
    same(both(lambda x: x.transpose(2, 0, 1), X), X.transpose(2, 0, 1))
    same(both(lambda x: x.transpose((2, 0, 1)), X), X.transpose(2, 0, 1))
    same(both(lambda x: fl.transpose(x, ("c", "a", "b")), X), X.transpose(2, 0, 1))
    same(both(lambda x: fl.moveaxis(x, -1, 0), X), np.moveaxis(X, -1, 0))
    same(both(lambda x: fl.moveaxis(x, "a", 1), X), np.moveaxis(X, 0, 1))
    same(both(lambda x: fl.swapaxes(x, 0, "c"), X), X.swapaxes(0, 2))
    (stage,) = graph_of(lambda x: fl.exp(fl.transpose(x, (2, 0, 1))), X).stages
    assert stage.axis_names == ("c", "a", "b")


SHAPES: list[Any] = [(30,), (6, 5), (2, 15), (5, 3, 2), (1, 2, 1, 3, 5, 1), (2, 3, 5), (-1,), (2, -1), (3, -1, 2), (10, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reshape(shape: Any) -> None:
    same(run(lambda x: fl.reshape(x, shape), X), X.reshape(shape))
    same(run(lambda x: fl.reshape(fl.transpose(x), shape), X), X.T.reshape(shape))
    same(run(lambda x: x.reshape(*shape), X), X.reshape(shape))


@given(st.permutations([2, 3, 2, 5, 1]), st.lists(st.integers(0, 5), min_size=0, max_size=3))
@settings(max_examples=25, deadline=None)
def test_reshape_between_any_factorings(factors: list[int], cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), 5]
    shape = [int(np.prod(factors[a:b])) for a, b in pairwise(ends)]
    x = np.arange(60).reshape(3, 4, 5)
    same(run(lambda x: fl.reshape(x, shape), x), x.reshape(shape))


def test_reshape_with_symbolic_extents_keeps_whole_axes_whole() -> None:
    graph = fl.trace(lambda x: fl.exp(fl.reshape(x, ("n", -1))), inputs={"x": fl.f32("n", 26, 16)})
    assert graph.stages[0].text(lambda i: "x").startswith("<lambda>/exp(i0:n, i1:416)") or "exp(i0:n, i1:416)" in graph.stages[0].text()
    assert "x[i0, i1 // 16, i1 % 16]" in graph.stages[0].text(lambda i: "x")
    same(graph.run(np.zeros((3, 26, 16), np.float32)), np.ones((3, 416), np.float32))
    back = fl.trace(lambda x: fl.exp(fl.reshape(x, ("n", 4, -1))), inputs={"x": fl.f32("n", 20)})
    assert "x[i0, i1 * 5 + i2]" in back.stages[0].text(lambda i: "x")
    flat = fl.trace(lambda x: fl.reshape(x, -1) * 1, inputs={"x": fl.f32("n", "m")})
    same(flat.run(X[0]), X[0].reshape(-1))


def test_reshape_of_empty_and_scalar() -> None:
    same(run(lambda x: fl.reshape(x, (3, 0)), np.zeros((0, 5), np.float32)), np.zeros((3, 0), np.float32))
    same(run(lambda x: fl.reshape(x, ()), np.full((1, 1), 7, np.float32)), np.float32(7))
    same(run(lambda x: fl.reshape(x, (1, 1)), np.float32(7)), np.full((1, 1), 7, np.float32))
    same(run(lambda x: fl.flatten(x), X), X.reshape(-1))
    for start in range(X.ndim + 1):
        same(run(lambda x, start=start: fl.flatten(x, start), X), X.reshape((*X.shape[:start], -1)))
    same(run(lambda x: fl.flatten(x, -1), X), X)


def test_axes_of_extent_1() -> None:
    same(both(lambda x: fl.expand_dims(x, 1), X), X[:, None])
    same(both(lambda x: fl.expand_dims(x, (0, -1)), X), X[None, ..., None])
    y = X[:, :1, None]
    same(both(lambda y: fl.squeeze(y), y), y.squeeze())
    same(both(lambda y: fl.squeeze(y, 2), y), y.squeeze(2))
    same(both(lambda y: fl.squeeze(y, "b"), y), y.squeeze(1))
    same(run(lambda y: fl.broadcast_to(y, (4, 2, 3, 7, 5)), y), np.broadcast_to(y, (4, 2, 3, 7, 5)))


def test_order_and_repetition_of_elements() -> None:
    same(both(lambda x: fl.flip(x), X), np.flip(X))
    same(both(lambda x: fl.flip(x, (0, -1)), X), np.flip(X, (0, 2)))
    for reps in (2, (2, 1), (3, 1, 1, 2), (1, 2, 3)):
        same(both(lambda x, reps=reps: fl.tile(x, reps), X), np.tile(X, reps))
    same(both(lambda x: fl.repeat(x, 3, 1), X), np.repeat(X, 3, 1))


SLICES: list[Any] = [
    np.s_[0], np.s_[-1], np.s_[1, 2], np.s_[:, -2, 1], np.s_[..., 0], np.s_[0, ..., 1], np.s_[None], np.s_[:, None, ..., None],
    np.s_[1:], np.s_[:, :-1], np.s_[:, ::2], np.s_[:, ::-1], np.s_[..., ::-2], np.s_[..., 4:0:-1], np.s_[..., 3::-2], np.s_[..., -4:-1],
    np.s_[..., 1:100], np.s_[..., -100:2], np.s_[..., 3:1], np.s_[..., 1:4:2], np.s_[:, [0, 2, -1]], np.s_[..., [[0, 1], [2, 3]]],
    np.s_[0, 1, 2], np.s_[1, [0, -1]], np.s_[np.int64(1), ::np.int64(2)],
]  # fmt: skip


@pytest.mark.parametrize("index", SLICES, ids=str)
def test_slices(index: Any) -> None:
    same(run(lambda x: x[index], X), X[index])
    if not any(isinstance(i, list) for i in (index if isinstance(index, tuple) else (index,))):
        same(run(lambda x: x[index], X, symbolic=True), X[index])


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_slice_of_any_extent(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 7))
    end = st.none() | st.integers(-9, 9)
    index = slice(data.draw(end), data.draw(end), data.draw(st.integers(-3, 3).filter(bool)))
    x = np.arange(n, dtype=np.int32)
    same(run(lambda x: x[index], x), x[index])
    same(run(lambda x: x[index], x, symbolic=True), x[index])


def test_slices_compose_and_know_symbolic_ends() -> None:
    same(both(lambda x: x[:, 1:][..., ::-1].T[0], X), X[:, 1:][..., ::-1].T[0])
    graph = fl.trace(lambda x: x[1 : x.shape[0] - 1] + x[x.shape[0] - 1], inputs={"x": fl.f32("n")})
    x = np.arange(6, dtype=np.float32)
    same(graph.run(x), x[1:5] + 5)
    assert str(graph.stages[0].extents[0]) == "max(n-2, 0)"
    assert "edge" not in graph.text()


def test_integer_tensors_take_along_their_axis() -> None:
    ids = np.array([[2, 0], [1, 1]], np.int64)
    same(both(lambda x, ids: x[:, ids], X, ids), X[:, ids])
    same(both(lambda x, ids: x[0, ..., ids], X, ids), X[0, ..., ids])
    same(both(lambda x, ids: fl.take(x, ids, -1), X, ids), np.take(X, ids, -1))
    same(run(lambda x, ids: fl.take(x, ids, 1), X, np.array([-5, 9])), X[:, [0, 2]])
    same(run(lambda x: fl.take(x, 1, 1), X), X[:, 1])
    along = np.array([[[0, 1, 2, 0, 1]], [[2, 2, 2, 1, 0]]], np.int32)
    same(run(lambda x, ids: fl.take_along_axis(x, ids, 1), X, along), np.take_along_axis(X, along, 1))


def test_several_index_tensors_name_elements_together() -> None:
    rows, columns = np.array([[1], [0]]), np.array([4, 0, 2])
    same(both(lambda x, i, j: x[i, 1, j], X, rows, columns), X[rows, 1, columns])
    same(both(lambda x, i, j: x[i, :, None, j], X, rows, columns), X[rows, :, None, columns])
    same(run(lambda x, i: x[:, i, [[3], [-1]]][..., ::-1], X, columns[1:]), X[:, columns[1:], [[3], [-1]]][..., ::-1])
    mask = X[0] > 0
    same(run(lambda x: x[:, mask], X), X[:, mask])
    same(run(lambda x: x[[False, True], 1:, [3]], X), X[[False, True], 1:, [3]])
    same(run(lambda x: x[[]], X), X[[]])
    assert graph_of(lambda x, i, j: x[i, 1, j], X, rows, columns).text().count("take") == 2
    gradient = run(lambda x, i, j: fl.grad(lambda x: fl.sum(x[i, 1, j] * 2.0))(x), X, np.zeros((2, 1), int), np.array([4, 0, 4]))
    same(gradient[0, 1], np.float32([4, 0, 0, 0, 8]))
    assert np.count_nonzero(gradient) == 2
    # fmt: off
    for wrong, code, why in [
        (lambda x: x[[0, 1], :, [0, 1, 2]], "A301", "broadcasting"), (lambda x: x[:, [True, False]], "A305", "its extent is 3"),
        (lambda x: x[X > 0, 0], "A305", "3 axes"), (lambda x: x[[0.5]], "A305", "holds integers"),
        (lambda x: x[[0], x[0, 0] > 0], "A306", "mask"),
    ]:
        problem = refusal(wrong, X)
        assert problem.code == code and why in (problem.why or "")
    # fmt: on


def test_boundary_views() -> None:
    x = numbers(6)

    def shifted(view: Any, by: int) -> Any:
        return run(lambda x: (lambda v: fl.stage(lambda i: v[i + by]))(view(x)), x)

    for by in (-3, 2):
        for name in ("edge", "reflect", "wrap"):
            same(shifted(getattr(fl, name), by), np.pad(x, 4, mode=name)[4 + by : 10 + by])
        same(shifted(lambda x: fl.constant(x, 7), by), np.pad(x, 4, constant_values=7)[4 + by : 10 + by])


def test_views_make_no_stages() -> None:
    graph = graph_of(lambda x: fl.exp(fl.flip(fl.transpose(x)[1:]).reshape(-1)), X)
    assert [s.path for s in graph.stages] == [graph.methods[0].name + "/exp"]


def test_refusals_say_where_and_both_shapes() -> None:
    problem = refusal(lambda x: fl.reshape(x, (4, 5)), X)
    assert problem.code == "A303" and "[2, 3, 5]" in problem.asked and "[4, 5]" in problem.asked and problem.why == "30 elements are not 20"
    assert (problem.source or "").startswith("test_ops_views.py")
    for wrong, code in [
        (lambda x: fl.reshape(x, (-1, -1)), "A303"), (lambda x: fl.reshape(x, (7, -1)), "A303"), (lambda x: fl.reshape(x, 2.5), "A304"),
        (lambda x: fl.transpose(x, (0, 1)), "A302"), (lambda x: fl.transpose(x, (0, 1, 1)), "A302"),
        (lambda x: fl.transpose(x, ("q",)), "A302"),
        (lambda x: fl.squeeze(x, 0), "A303"), (lambda x: fl.broadcast_to(x, (2, 3, 4)), "A301"),
        (lambda x: fl.broadcast_to(x, (5,)), "A301"),
        (lambda x: x[2], "A305"), (lambda x: x[-3], "A305"), (lambda x: x[0, 0, 0, 0], "A305"), (lambda x: x[..., ...], "A305"),
        (lambda x: x[::0], "A305"), (lambda x: x["a"], "A305"), (lambda x: x[0.5], "A305"), (lambda x: x[[0, 5]], "A305"),
        (lambda x: x[[True] * 3], "A305"), (lambda x: x[x > 0], "A306"), (lambda x: x[1:0.5], "A305"),
        (lambda x: fl.tile(x, -1), "A304"), (lambda x: fl.repeat(x, -1, 0), "A304"), (lambda x: fl.transpose(fl.edge(x)), "A312"),
        (lambda x: fl.constant(x, "a"), "A304"), (lambda x: fl.stage(lambda i: fl.edge(x)[i, 0, 0]), "A310"),
        (lambda x: fl.take(x, x, 0), "A306"), (lambda x: fl.take_along_axis(x, np.zeros((1, 3, 4), int), 0), "A301"),
    ]:  # fmt: skip
        assert refusal(wrong, X).code == code
    assert refusal(lambda x: x[[-1]], X, symbolic=True).code == "A305"
    assert refusal(lambda x: fl.reshape(x, (7, -1)), X, symbolic=True).code == "A303"
