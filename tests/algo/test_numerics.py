"""The error bounds: right kernels, however they round, stay within; planted faults do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fluorite.algo.expr import REAL, binary, cast, unary, where
from fluorite.algo.graph import Graph
from fluorite.algo.interpreter import elementary, run, stages
from fluorite.algo.numerics import CLASSES, bounds, compare, tolerance, weakest, within
from fluorite.algo.program import trace
from fluorite.algo.reducing import reduce
from fluorite.algo.tensor import Bounded
from fluorite.algo.trace import stage
from fluorite.algo.types import f32, f64, i32
from hypothesis import HealthCheck, given, settings
from random_stages import Call, random_call

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


# ---------------------------------------------------------------- models
def blur(image: Any) -> Any:
    image = Bounded(image, "edge")
    rows = Bounded(stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3, name="rows"), "edge")
    return stage(lambda y, x: (rows[y - 1, x] + rows[y, x] + rows[y + 1, x]) / 3, name="blur")


def matmul(a: Any, b: Any) -> Any:
    return stage(lambda i, j: reduce("sum", lambda k: a[i, k] * b[k, j]))


def softmax(x: Any) -> Any:
    e = stage(lambda i, j: unary("exp", x[i, j] - reduce("max", lambda k: x[i, k])))
    return stage(lambda i, j: e[i, j] / reduce("sum", lambda k: e[i, k]))


def layer_norm(x: Any) -> Any:
    n = x.shape[1]
    mean = stage(lambda i: reduce("sum", lambda k: x[i, k]) / n)
    variance = stage(lambda i: reduce("sum", lambda k: (x[i, k] - mean[i]) * (x[i, k] - mean[i])) / n)
    return stage(lambda i, j: (x[i, j] - mean[i]) / unary("sqrt", variance[i] + 1e-5))


def deviation(x: Any) -> Any:
    n = x.shape[1]
    mean = stage(lambda i: reduce("sum", lambda k: x[i, k]) / n)
    return stage(lambda i: unary("sqrt", reduce("sum", lambda k: (x[i, k] - mean[i]) * (x[i, k] - mean[i])) / n))


def conv(x: Any, w: Any) -> Any:
    x = Bounded(x, "constant", 0.0)
    return stage(lambda o, y, z: reduce("sum", lambda c, ky, kx: x[c, y + ky - 1, z + kx - 1] * w[o, c, ky, kx]))


def perceptron(x: Any, w: Any, v: Any) -> Any:
    h = stage(lambda i, j: reduce("sum", lambda k: x[i, k] * w[k, j]))
    a = stage(lambda i, j: h[i, j] * (unary("erf", h[i, j] * 0.7071067811865476) + 1) * 0.5)
    return stage(lambda i, j: unary("sigmoid", reduce("sum", lambda k: a[i, k] * v[k, j])))


MODELS: dict[str, tuple[Graph, Callable[[], tuple[Array, ...]]]] = {
    "blur": (trace(blur, inputs={"image": f32("h", "w")}), lambda: (normal(23, 31),)),
    "matmul": (trace(matmul, inputs={"a": f32("i", "k"), "b": f32("k", "j")}), lambda: (normal(17, 65), normal(65, 19))),
    "softmax": (trace(softmax, inputs={"x": f32("i", "j")}), lambda: (normal(9, 33) * 2,)),
    "layer_norm": (trace(layer_norm, inputs={"x": f32("i", "j")}), lambda: (normal(9, 64) + 3,)),
    "deviation": (
        trace(deviation, inputs={"x": f32("i", "j")}),
        lambda: (np.concatenate([normal(4, 30), np.full((1, 30), 0.1, np.float32)]),),
    ),
    "conv": (trace(conv, inputs={"x": f32(3, "h", "w"), "w": f32(4, 3, 3, 3)}), lambda: (normal(3, 11, 13), normal(4, 3, 3, 3))),
    "perceptron": (
        trace(perceptron, inputs={"x": f32("n", 16), "w": f32(16, 40), "v": f32(40, 3)}),
        lambda: (normal(5, 16), normal(16, 40), normal(40, 3)),
    ),
}


# ---------------------------------------------------------------- right kernels
def nudged(fn: Callable[..., Array], ulps: float) -> Callable[..., Array]:
    """fn with float32 results up to so many ulps off, as a polynomial has them."""

    def off(*args: Array) -> Array:
        out = fn(*args)
        if out.dtype != np.float32:
            return out
        return (out.astype(np.float64) + np.spacing(np.abs(out)).astype(np.float64) * RNG.uniform(-ulps, ulps, out.shape)).astype(
            np.float32
        )

    return off


def serial(order: Callable[[int], Array]) -> Callable[..., Array]:
    """Sums one after the other in float32, in some order."""

    def combine(kind: str, value: Array, rank: int, dtype: Any) -> Array:
        flat = value.reshape(*value.shape[:rank], -1)
        if kind == "sum" and dtype == np.float32:
            total = np.zeros(flat.shape[:-1], np.float32)
            for k in order(flat.shape[-1]):
                total = total + flat[..., k]
            return total
        return original(kind, value, rank, dtype)

    original = stages.combine
    return combine


ORDERS: dict[str, Callable[[int], Array]] = {
    "forward": np.arange,
    "backward": lambda n: np.arange(n)[::-1],
    "shuffled": lambda n: np.random.default_rng(1).permutation(n),
    "by size": lambda n: np.argsort(-np.arange(n) % 7),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", MODELS)
def test_right_kernels_are_within(name: str, order: str) -> None:
    graph, inputs = MODELS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "combine", serial(ORDERS[order]))
        patch.setattr(stages, "splits", lambda s, working: None)
        for real in REAL:
            patch.setitem(elementary.OPERATORS, real, nudged(elementary.OPERATORS[real], 0.5 if real == "sqrt" else 2))
        for _ in range(3):
            given_ = inputs()
            got = graph.run(*given_)
            patch.undo()
            (found,) = compare(graph, None, given_, got, "exact")
            assert found.ok, found.text()
            assert found.undecided == 0


def test_fused_multiply_adds_are_within() -> None:
    graph, inputs = MODELS["matmul"]
    a, b = inputs()
    total = np.zeros((17, 19), np.float32)
    for k in range(65):  # a product in float64 is exact, so that one rounding is left
        total = (total.astype(np.float64) + a[:, k, None].astype(np.float64) * b[k].astype(np.float64)).astype(np.float32)
    assert compare(graph, None, (a, b), total, "exact")[0].ok


def test_a_long_biased_sum_in_series_is_within() -> None:
    graph = trace(lambda x: stage(lambda: reduce("sum", lambda k: x[k])), inputs={"x": f32("n")})
    x = np.full(100_000, 0.1, np.float32)
    assert abs(np.cumsum(x)[-1] - 10_000) > 1
    assert compare(graph, None, (x,), np.cumsum(x)[-1:].reshape(()))[0].ok


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=120)
@given(random_call())
def test_the_interpreter_itself_is_always_within(call: Call) -> None:
    for found in compare(call.graph, None, call.inputs, call.graph.run(*call.inputs)):
        assert found.ok, found.text()


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=80)
@given(random_call(dtypes=("float32",), product=True))
def test_random_sums_of_products_are_within(call: Call) -> None:
    for found in compare(call.graph, None, call.inputs, call.graph.run(*call.inputs)):
        assert found.ok, found.text()


@pytest.mark.parametrize("name", [r for r in REAL if r not in ("atan2", "pow")])
def test_errors_pass_through_functions(name: str) -> None:
    """The bound covers a perturbed argument, and is not much wider than what the perturbation does."""
    graph = trace(lambda x, y: stage(lambda i: unary(name, x[i] * y[i])), inputs={"x": f32("n"), "y": f32("n")})
    x, y = (RNG.uniform(0.1, 0.9, 2000).astype(np.float32) for _ in range(2))
    (enclosure,) = bounds(graph, (x, y)).values()
    product = x.astype(np.float64) * y
    fn, ulps = elementary.OPERATORS[name], 0.5 if name == "sqrt" else 4
    for sign in (-1, 1):
        worst = fn(product * (1 + sign * 2.0**-24)) * (1 + sign * ulps * 2.0**-23)
        assert enclosure.error is not None and (np.abs(worst - fn(product)) <= enclosure.error * 1.01).all()
    assert (enclosure.error < 30 * 2.0**-24 * np.maximum(np.abs(fn(product)), 1)).all()


# ---------------------------------------------------------------- planted faults
def faulty(name: str, inputs: tuple[Array, ...]) -> list[Array]:
    """Results of plausible wrong kernels."""
    graph = MODELS[name][0]
    right = graph.run(*inputs)
    match name, inputs:
        case "blur", (image,):
            wrapped = np.pad(image, 1, "wrap")
            mean = sum(wrapped[dy : dy + image.shape[0], dx : dx + image.shape[1]] for dy in range(3) for dx in range(3)) / np.float32(9)
            return [np.roll(right, 1, 1), mean.astype(np.float32), right * np.float32(1.00001)]
        case "matmul", (a, b):
            return [
                a[:, :-1] @ b[:-1],
                right - a[:, 3:4] * b[3:4],
                right * np.float32(1 + 2e-4),
                a.astype(np.float16).astype(np.float32) @ b,
            ]
        case "softmax", (x,):
            e = np.exp(x - x.max(1, keepdims=True))
            return [e / e[:, :-1].sum(1, keepdims=True), right * np.float32(1 + 3e-5)]
        case "layer_norm", (x,):
            return [
                ((x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True, ddof=1) + np.float32(1e-5))).astype(np.float32),
                ((x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.float32(1e-3))).astype(np.float32),
            ]
        case "deviation", (x,):
            return [x.std(1, ddof=1).astype(np.float32), np.abs(x - x.mean(1, keepdims=True)).mean(1)]
        case "conv", (x, w):
            return [graph.run(x, w[:, :, ::-1]), graph.run(np.roll(x, 1, 2), w), graph.run(x, w * (np.arange(27).reshape(3, 3, 3) != 26))]
        case "perceptron", (x, w, v):
            tanh = graph.run(x, w * np.float32(1.0005), v)
            return [tanh, graph.run(x, w * (np.arange(40) != 39).astype(np.float32), v)]
    raise AssertionError(name)


@pytest.mark.parametrize("name", MODELS)
def test_planted_faults_are_found(name: str) -> None:
    graph, inputs = MODELS[name]
    given_ = inputs()
    for number, wrong in enumerate(faulty(name, given_)):
        (found,) = compare(graph, None, given_, wrong.astype(np.float32), "reassociates")
        assert not found.ok, f"fault {number}: {found.text()}"
        assert found.used > 1 and f"wrong at {list(found.worst_index)}" in found.text()


@pytest.mark.parametrize("name", MODELS)
def test_one_wrong_element_is_found_where_it_is(name: str) -> None:
    graph, inputs = MODELS[name]
    given_ = inputs()
    got = graph.run(*given_)
    place = tuple(n // 2 for n in got.shape)
    for value in (got[place] + np.float32(0.01) * np.abs(got).max(), np.float32("nan"), np.float32("inf")):
        wrong = got.copy()
        wrong[place] = value
        (found,) = compare(graph, None, given_, wrong)
        assert not found.ok and found.worst_index == place


# ---------------------------------------------------------------- decisions
def test_decisions_within_the_bound_are_undecided_and_counted() -> None:
    graph = trace(
        lambda x: {"floor": stage(lambda i: cast(unary("floor", x[i] * 10), "int32")), "above": stage(lambda i: x[i] * 10 > 3.0)},
        inputs={"x": f32("n")},
    )
    x = np.float32([0.25, 0.3, 0.35])
    right = graph.run(x)
    other = {"floor": right["floor"].copy(), "above": right["above"].copy()}
    other["floor"][1], other["above"][1] = 5 - right["floor"][1], not right["above"][1]  # 2 for 3, 3 for 2
    assert {2, 3} == {int(right["floor"][1]), int(other["floor"][1])}
    for got in (right, other):
        assert [(c.ok, c.undecided, c.elements) for c in compare(graph, None, (x,), got)] == [(True, 1, 3)] * 2
    other["floor"][0], other["above"][2] = 3, not right["above"][2]
    assert [(c.ok, c.worst_index) for c in compare(graph, None, (x,), other)] == [(False, (0,)), (False, (2,))]


def test_a_branch_chosen_by_an_open_decision_may_take_either_value() -> None:
    graph = trace(lambda x: stage(lambda i: where(x[i] * 10 > 3.0, x[i] + 100, x[i])), inputs={"x": f32("n")})
    x = np.float32([0.3, 0.4])
    assert compare(graph, None, (x,), np.float32([100.3, 100.4]))[0].ok and compare(graph, None, (x,), np.float32([0.3, 100.4]))[0].ok
    assert not compare(graph, None, (x,), np.float32([0.3, 0.4]))[0].ok
    assert not compare(graph, None, (x,), np.float32([300, 100.4]))[0].ok


def test_the_place_of_a_maximum_is_open_only_between_rivals() -> None:
    graph = trace(lambda x: stage(lambda: reduce("argmax", lambda k: x[k] * x[k])), inputs={"x": f32("n")})
    x = np.float32([0.5, 1.0000001, -1, 0.1, 1.0000001])
    places = [p for p in range(5) if compare(graph, None, (x,), np.asarray(p, np.int32))[0].ok]
    assert places == [0, 1, 2, 3, 4] or places == [1, 2, 3, 4]  # a place is a number: those between rivals are within its bound
    assert compare(graph, None, (x,), np.asarray(1, np.int32))[0].undecided == 1
    clear = np.float32([0.5, 3, -1, 0.1])
    (found,) = compare(graph, None, (clear,), np.asarray(1, np.int32))
    assert found.ok and found.undecided == 0 and not compare(graph, None, (clear,), np.asarray(0, np.int32))[0].ok


def test_exact_ties_and_copies_leave_nothing_open() -> None:
    graph = trace(
        lambda x: {
            "first": stage(lambda: reduce("argmax", lambda k: x[k])),
            "relu": stage(lambda i: where(x[i] > 0, x[i], 0.0)),
            "copy": stage(lambda i: x[i]),
        },
        inputs={"x": f32("n")},
    )
    x = np.float32([1, 2, 2, 0])
    right = graph.run(x)
    assert [(c.ok, c.undecided, c.tolerance) for c in compare(graph, None, (x,), right)] == [(True, 0, 0)] * 3
    assert not compare(graph, None, (x,), right | {"first": np.asarray(2, np.int32)})[0].ok
    assert not compare(graph, None, (x,), right | {"copy": np.nextafter(x, np.float32(9))})[2].ok


def test_an_open_index_may_read_anywhere() -> None:
    graph = trace(lambda t, x: stage(lambda i: t[cast(unary("round", x[i] * 10), "int32")]), inputs={"t": f32(4), "x": f32("n")})
    t, x = np.float32([5, 6, 7, 8]), np.float32([0.15, 0.2])
    assert compare(graph, None, (t, x), np.float32([6, 7]))[0].ok and compare(graph, None, (t, x), np.float32([7, 7]))[0].ok
    assert not compare(graph, None, (t, x), np.float32([6, 6]))[0].ok


# ---------------------------------------------------------------- infinities, classes, the rest
def test_overflow_and_nan_are_values() -> None:
    graph = trace(lambda x: stage(lambda i: 1 / (unary("exp", x[i]) + 1)), inputs={"x": f32("n")})
    x = np.float32([200, -200, np.nan, np.inf, -np.inf, 0])
    (found,) = compare(graph, None, (x,), graph.run(x))
    assert found.ok and found.undecided == 0
    wrong = graph.run(x)
    wrong[0] = np.float32(1e-3)
    assert not compare(graph, None, (x,), wrong)[0].ok


def test_float64_is_held_to_its_own_precision() -> None:
    graph = trace(matmul, inputs={"a": f64("i", "k"), "b": f64("k", "j")})
    a, b = RNG.standard_normal((9, 20)), RNG.standard_normal((20, 9))
    assert compare(graph, None, (a, b), a @ b)[0].ok
    assert not compare(graph, None, (a, b), (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float64))[0].ok


def test_weaker_classes_allow_more() -> None:
    graph, inputs = MODELS["matmul"]
    a, b = inputs()
    rounded = [(t.view(np.uint32) + 0x8000 & np.uint32(0xFFFF0000)).view(np.float32) for t in (a, b)]
    got = rounded[0] @ rounded[1]
    assert [compare(graph, None, (a, b), got, c)[0].ok for c in CLASSES] == [False, False, True, True]
    sizes = [compare(graph, None, (a, b), got, c)[0].tolerance for c in CLASSES]
    assert sizes == sorted(sizes)
    assert weakest("exact", "precision", "reassociates") == "precision" and weakest() == "exact"
    assert within("exact", "reassociates") and not within("relaxed", "precision")


def test_shape_dtype_and_count_are_checked() -> None:
    graph = trace(lambda x: (stage(lambda i: x[i] + 1), stage(lambda i: x[i] + 2)), inputs={"x": i32("n")})
    x = np.int32([1, 2])
    one, two = graph.run(x)
    assert [c.ok for c in compare(graph, None, (x,), (one, two))] == [True, True]
    assert "its shape is [1], expected [2]" in compare(graph, None, (x,), (one[:1], two))[0].text()
    assert "it is int64, expected int32" in compare(graph, None, (x,), (one, two.astype(np.int64)))[1].text()
    assert not compare(graph, None, (x,), (one,))[0].ok
    assert not compare(graph, None, (x,), (one + np.int32(1), two))[0].ok
    assert compare(graph, None, (x[:0],), (one[:0], two[:0]))[0].ok


def test_the_static_tolerance_counts_roundings() -> None:
    graph, _ = MODELS["matmul"]
    (short,), (long,) = (tolerance(graph, lengths={"i": 2, "j": 2, "k": k}) for k in (4, 4000))
    assert short.relative == 4 * 2.0**-24 and long.relative == 4000 * 2.0**-24 and short.path == graph.stages[-1].path
    copy = trace(lambda x: stage(lambda i: x[i]), inputs={"x": f32("n")})
    assert tolerance(copy)[0].relative == 0


def test_a_wide_run_lies_within_too() -> None:
    graph, inputs = MODELS["perceptron"]
    given_ = inputs()
    assert compare(graph, None, given_, run(graph, given_, float64=True).astype(np.float32))[0].ok


@pytest.mark.parametrize("name", ["pow", "atan2", "mod", "floordiv", "div"])
def test_errors_pass_through_functions_of_two(name: str) -> None:
    """Both operands off by a rounding each, in all four directions, and the result by one more."""
    graph = trace(
        lambda x, y, z: stage(lambda i: binary(name, x[i] * y[i], y[i] * z[i])),
        inputs={"x": f32("n"), "y": f32("n"), "z": f32("n")},
    )
    x, y, z = (RNG.uniform(0.2, 3, 2000).astype(np.float32) for _ in range(3))
    (enclosure,) = bounds(graph, (x, y, z)).values()
    a, b = x.astype(np.float64) * y, y.astype(np.float64) * z
    fn, u = elementary.OPERATORS[name], 2.0**-24
    assert enclosure.error is not None and np.isfinite(enclosure.error).all()
    for da in (-u, u):
        for db in (-u, u):
            off = np.abs(fn(a * (1 + da), b * (1 + db)) * (1 + u) - enclosure.value)
            assert (off <= enclosure.error * (1 + 1e-6)).all()
    assert np.median(enclosure.error / np.maximum(np.abs(enclosure.value), 0.1)) < 200 * u
