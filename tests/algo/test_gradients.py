"""Gradients of operators, views, scans and rules, beside finite differences in float64."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.autodiff import solving
from gradient_cases import OPERATORS, STATIC, normal
from gradient_checks import check_gradient, traced
from operator_case import Seeded, values
from operator_cases import CASES


@pytest.mark.parametrize("name", OPERATORS)
def test_gradient(name: str) -> None:
    fn, arrays = OPERATORS[name]
    check_gradient(fn, *arrays)


@pytest.mark.parametrize("name", [n for n in OPERATORS if n not in STATIC])
def test_gradient_of_symbolic_extents(name: str) -> None:
    fn, arrays = OPERATORS[name]
    check_gradient(fn, *arrays, symbolic=True)


JUMPS = ("floor", "ceil", "trunc", "round", "sign", "mod", "remainder", "floor_divide", "nextafter", "asin", "acos", "atanh", "acosh")
"""Steps, and slopes that finite differences do not follow at the values of the cases."""


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if "float64" in c.dtypes and n not in JUMPS])
def test_gradient_of_operator_cases(name: str) -> None:
    case = CASES[name]
    for seed in range(3):
        c = Seeded(random.Random(seed))
        shapes = case.shapes(c)
        options = case.options(c, shapes)
        domain = "positive" if name in ("sqrt", "rsqrt") else "small" if case.values == "any" else case.values
        arrays = [values("float64", s, domain, seed * 10 + k) for k, s in enumerate(shapes)]
        check_gradient(lambda *a, o=options: case.call(*a, **o), *arrays)  # type: ignore[misc]


@pytest.mark.parametrize("fn,inside", [(fl.asin, 0.9), (fl.acos, 0.9), (fl.atanh, 0.9), (lambda x: fl.acosh(x + 2.5), 0.9)])
def test_gradient_inside_the_domain(fn: Any, inside: float) -> None:
    check_gradient(fn, np.linspace(-inside, inside, 11))


@pytest.mark.parametrize(
    "name",
    [
        "conv2d of stride 2",
        "conv2d",
        "edge",
        "wrap",
        "softmax",
        "layer_norm",
        "gelu",
        "einsum",
        "scan",
        "embedding",
        "where",
        "reshape",
        "std",
    ],
)
def test_second_order(name: str) -> None:
    """The gradient of a function of the gradient."""
    fn, arrays = OPERATORS[name]
    floats = [k for k, a in enumerate(arrays) if a.dtype.kind == "f"]

    def slope(*args: Any) -> Any:
        def loss(*inner: Any) -> Any:
            return fl.sum(fl.square(fn(*inner)))

        loss.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in "abcdefgh"[: len(arrays)]]
        )
        return list(fl.grad(loss, floats)(*args))

    check_gradient(slope, *arrays, tolerance=1e-4)


# ---------------------------------------------------------------- what is returned
def only(fn: Callable[..., Any], *arrays: np.ndarray) -> Any:
    return traced(fn, arrays).run(*arrays)


def test_value_and_gradient_of_nests() -> None:
    def loss(p: Any) -> Any:
        return fl.sum(p["w"] * p["list"][0]) + p["list"][1]

    def model(w: Any, a: Any, b: Any) -> Any:
        return fl.value_and_grad(loss)({"w": w, "list": [a, b]})

    w, a, b = normal(3), normal(3), np.asarray(2.0)
    value, g = only(model, w, a, b)
    np.testing.assert_allclose(value, np.sum(w * a) + b)
    np.testing.assert_array_equal(g["w"], a)
    np.testing.assert_array_equal(g["list"][0], w)
    assert g["list"][1] == 1


def test_an_argument_is_not_what_is_captured() -> None:
    """Differentiating by an argument leaves the same tensor alone where the function reaches it otherwise."""
    x = normal(4)
    np.testing.assert_allclose(only(lambda x: fl.grad(lambda y: fl.sum(x * y))(x), x), x)
    np.testing.assert_allclose(only(lambda x: fl.grad(lambda y: fl.sum(y * y))(x), x), 2 * x)


def test_what_does_not_matter_has_the_derivative_0() -> None:
    x, y = normal(3), normal(2)
    a, b = only(lambda x, y: fl.grad(lambda x, y: fl.sum(x), (0, 1))(x, y), x, y)
    np.testing.assert_array_equal(a, np.ones(3))
    np.testing.assert_array_equal(b, np.zeros(2))


def test_has_aux_and_names() -> None:
    x, y = normal(3), normal(3)

    def loss(x: Any, y: Any) -> Any:
        return fl.sum(x * y), {"x": x}

    g, more = only(lambda x, y: fl.grad(loss, "y", has_aux=True)(x, y), x, y)
    np.testing.assert_array_equal(g, x)
    np.testing.assert_array_equal(more["x"], x)


def test_vjp_takes_what_arrives() -> None:
    x, w, g = normal(3, 2), normal(2, 4), normal(3, 4)

    def model(x: Any, w: Any, g: Any) -> Any:
        out, pull = fl.vjp(lambda x, w: x @ w, x, w)
        return out, pull(g)

    out, (dx, dw) = only(model, x, w, g)
    np.testing.assert_allclose(out, x @ w)
    np.testing.assert_allclose(dx, g @ w.T)
    np.testing.assert_allclose(dw, x.T @ g)


def test_gradient_of_a_gradient() -> None:
    x = normal(5)
    cube = fl.grad(lambda x: fl.sum(x * x * x))
    np.testing.assert_allclose(only(lambda x: fl.grad(lambda y: fl.sum(cube(y)))(x), x), 6 * x)


def test_no_derivative_passes_stop_gradient() -> None:
    x = normal(5)
    found = traced(lambda x: fl.grad(lambda x: fl.sum(x * fl.stop_gradient(x)))(x), (x,))
    np.testing.assert_array_equal(found.run(x), x)
    assert not any("stop" in s.op or s.op == "alias" for s in found.stages)  # the copies are gone


def test_custom_vjp() -> None:
    """A clipped gradient: the forward value as it is, the derivative as the rule says."""

    def forward(x: Any) -> Any:
        return x * x, x

    clipped = fl.custom_vjp(lambda x: x * x, forward, lambda x, g: (fl.clip(2 * x * g, -1, 1),))
    x = normal(6)
    np.testing.assert_allclose(only(lambda x: fl.grad(lambda x: fl.sum(clipped(x) * 3))(x), x), np.clip(6 * x, -1, 1))
    np.testing.assert_allclose(only(lambda x: clipped(x), x), x * x)


def test_custom_vjp_of_several_results() -> None:
    def forward(x: Any, y: Any) -> Any:
        s = x + y
        return {"s": s, "p": s * y}, (x, y)

    def backward(kept: Any, g: Any) -> Any:
        _x, y = kept
        return g["s"] * 10 + g["p"] * y, None

    fn = fl.custom_vjp(lambda x, y: None, forward, backward)

    def loss(x: Any, y: Any) -> Any:
        r = fn(x, y)
        return fl.sum(r["s"]) + fl.sum(r["p"] * 2)

    x, y = normal(3), normal(3)
    dx, dy = only(lambda x, y: fl.grad(loss, (0, 1))(x, y), x, y)
    np.testing.assert_allclose(dx, 10 + 2 * y)
    np.testing.assert_array_equal(dy, 0)


@pytest.mark.parametrize(
    "fn,at,slope",
    [
        (lambda x: fl.maximum(x, 0.0), 0.0, 0.0),
        (lambda x: fl.maximum(x, -x), 0.0, 0.0),
        (lambda x: fl.maximum(x, 2 * x), 0.0, 1.5),
        (lambda x: fl.minimum(x, 3 * x), 0.0, 2.0),
        (fl.abs, 0.0, 0.0),
        (fl.sqrt, 0.0, 0.0),
        (lambda x: fl.where(x > 0, fl.log(x), 0.0), 0.0, 0.0),
        (lambda x: fl.where(x > 0, fl.sqrt(fl.log(x)), x), -1.0, 1.0),
        (lambda x: x**2, 0.0, 0.0),
        (lambda x: x**1, 0.0, 1.0),
    ],
)
def test_slopes_where_there_is_a_choice(fn: Any, at: float, slope: float) -> None:
    x = np.full(1, at)
    np.testing.assert_array_equal(only(lambda x: fl.grad(lambda x: fl.sum(fn(x)))(x), x), [slope])


def scanned(step: Any) -> Any:
    return lambda x: fl.scan(lambda c, t: (step(c, t),) * 2, fl.zeros((), dtype=fl.f64), x)[1]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: fl.where(x > 0, fl.log(x), fl.where(x == 0, 0.0, fl.sqrt(-x))),  # a choice in a choice
        lambda x: fl.where(x > 0, fl.tanh(-(2 * fl.sqrt(x) * 3)), 0.0),  # NaN on the way to the choice
        lambda x: fl.where(x > 0, fl.sin(fl.reshape(fl.reshape(-fl.log(x), (1, 5)) * 2, (5,))), 0.0),
        lambda x: fl.where(x > 0, fl.stage(lambda i: fl.sum(lambda k: fl.log(x[i] + 0 * k), over={"k": 3})), 0.0),  # under a sum
        lambda x: fl.sum(fl.where(fl.any(x > 2), fl.stack([2 * fl.log(x), x]), x)),  # one for many
        lambda x: fl.relu(2 * fl.log(fl.abs(x))),
        lambda x: fl.minimum(fl.maximum(fl.log(fl.abs(x)) * 3, -2.0), 2.0),
        lambda x: fl.max(fl.log(fl.abs(x)) * 2),
        lambda x: fl.vmap(lambda z: fl.where(z > 0, 2 * fl.log(z) + 1, 0.0))(x),
        scanned(lambda c, t: fl.where(t > 0, 2 * fl.log(t) + c, c)),
        scanned(lambda c, t: fl.relu(fl.log(fl.abs(t)) - 1) + c),
    ],
)
def test_what_is_not_chosen_contributes_nothing_however_far_away_and_infinite_its_slope_is(fn: Any) -> None:
    x = np.array([-4.0, 0, 1, 2, -1])
    with np.errstate(all="ignore"):
        once = only(lambda x: fl.grad(lambda x: fl.sum(fn(x)))(x), x)
        twice = only(lambda x: fl.grad(lambda x: fl.sum(fl.grad(lambda z: fl.sum(fn(z)))(x) * x))(x), x)
    assert np.isfinite(once).all() and np.isfinite(twice).all() and once[1] in (0, 1, 2)


def test_equal_extrema_share() -> None:
    x = np.array([1.0, 3, 3, 2])
    np.testing.assert_array_equal(only(lambda x: fl.grad(lambda x: fl.max(x))(x), x), [0, 0.5, 0.5, 0])


def test_the_first_of_equal_extrema_gets_all_where_they_are_computed() -> None:
    """Two computations of one element may differ in the last bit, so values are not compared; nor are they by pooling."""
    x = np.array([[1.0, 3, 3, 2], [4, 4, 4, 4]])
    first = [[0, 1, 0, 0], [1, 0, 0, 0]]
    pooled = only(lambda x: fl.grad(lambda x: fl.sum(fl.max_pool1d(x.reshape(1, 2, 4), 4)))(x), x)
    np.testing.assert_array_equal(pooled, first)
    squares = only(lambda x: fl.grad(lambda x: fl.sum(fl.stage(lambda i: fl.max(lambda k: x[i, k] * x[i, k]))))(x), x)
    np.testing.assert_array_equal(squares, 2 * x * first)
    least = only(lambda x: fl.grad(lambda x: fl.sum(fl.stage(lambda i: fl.min(lambda k: -x[i, k] * x[i, k]))))(x), x)
    np.testing.assert_array_equal(least, -2 * x * first)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_gradient_has_the_type_of_its_tensor(dtype: str) -> None:
    x, w = (np.asarray(normal(*s), dtype=np.float32).astype(dtype) for s in ((5, 3), (3, 2)))
    a, b = only(lambda x, w: fl.grad(lambda x, w: fl.mean(fl.relu(x @ w)), (0, 1))(x, w), x, w)
    assert a.dtype == b.dtype == np.dtype(dtype)
    hot = (x.astype(float) @ w.astype(float) > 0) / 10
    np.testing.assert_allclose(a.astype(float), hot @ w.astype(float).T, rtol=0.02, atol=0.01)


# ---------------------------------------------------------------- names and refusals
class Net(fl.Program):
    def __init__(self) -> None:
        self.layers = [fl.nn.Linear(3, 4), fl.nn.Linear(4, 1)]

    def loss(self, x: Any) -> Any:
        for layer in self.layers:
            x = fl.tanh(layer(x))
        return fl.mean(fl.square(x), name="cost")

    @fl.method
    def slopes(self, x: fl.f32[fl.Tensor, "n", 3]):
        return fl.grad(lambda net: net.loss(x))(self)


def test_stages_of_a_gradient_are_called_after_what_they_are_of() -> None:
    graph = fl.trace(Net())
    (method,) = graph.methods
    assert set(method.result) == {"layers.0/w", "layers.0/b", "layers.1/w", "layers.1/b"}
    assert graph.path_of(method.result["layers.1/w"]) == "slopes/grad/cost/layers.1/w"
    made = [s for s in graph.stages if s.role == "gradient"]
    assert all("/grad/cost/" in s.path and s.origin == "derived" and s.source for s in made)


class Reached(fl.Program):
    """What is differentiated by is reached by the function itself, too."""

    def __init__(self) -> None:
        self.line = fl.nn.Linear(3, 1, init=fl.init.constant(0.5))
        self.v, self.each = fl.param(init=fl.init.constant(2.0), k=3), [fl.param(init=fl.init.constant(3.0), k=3)]

    @fl.method
    def slopes(self, x: fl.f32[fl.Tensor, "n", 3]):
        def loss(a: Any, b: Any) -> Any:
            return fl.sum(a["net"](x)) + fl.sum(self.v * self.each[0] * b[0])

        nested = fl.grad(loss, (0, 1))({"net": self.line, "p": [self.v, self.each[0]]}, (self.v, x))
        closure = fl.grad(lambda w: fl.sum(self.line(x)))(self.line.w)
        before, self.v = self.v, self.v * 10
        return nested, closure, [fl.grad(lambda w: fl.sum(w * self.v))(v) for v in (before, self.v)]


def test_parameters_are_the_same_wherever_a_function_reaches_them() -> None:
    x = normal(5, 3).astype(np.float32)
    (first, (v, by_x)), closure, (before, now) = fl.trace(Reached()).run(x)
    np.testing.assert_allclose(first["net"]["w"], x.sum(0)[:, None], rtol=1e-6)
    np.testing.assert_array_equal(first["net"]["b"], [5])
    np.testing.assert_array_equal(closure, first["net"]["w"])
    assert (first["p"][0] == 12).all() and (first["p"][1] == 4).all() and (v == 12).all()
    assert (by_x == 0).all()  # a tensor is another one
    assert (before == 20).all() and (now == 40).all()


@pytest.mark.parametrize(
    "code,fn",
    [
        ("A170", lambda x: fl.grad(lambda x: x * 2)(x)),
        ("A170", lambda x: fl.grad(lambda x: (fl.sum(x), x))(x)),
        ("A170", lambda x: fl.grad(lambda x: fl.sum(x), has_aux=True)(x)),
        ("A172", lambda x: fl.grad(lambda x: fl.sum(x))(fl.cast(x, fl.i32))),
        ("A172", lambda x: fl.grad(lambda x: fl.argmax(x))(x)),
        ("A173", lambda x: fl.grad(lambda x: fl.sum(x), 1)(x)),
        ("A173", lambda x: fl.grad(lambda x: fl.sum(x), "y")(x)),
        ("A174", lambda x: fl.vjp(lambda x: x * 2, x)[1]([x])),
        ("A174", lambda x: fl.vjp(lambda x: x * 2, x)[1](fl.sum(x))),
        ("A174", lambda x: fl.custom_vjp(lambda x: x, lambda x: x, lambda r, g: (g,))(x)),
        ("A174", lambda x: fl.grad(lambda x: fl.sum(fl.custom_vjp(lambda x: x, lambda x: (x * 1, None), lambda r, g: g)(x)))(x)),
    ],
)
def test_refusals(code: str, fn: Any) -> None:
    with pytest.raises(fl.AlgorithmError) as caught:
        traced(fn, (normal(3),))
    (problem,) = caught.value.problems
    assert problem.code == code and problem.source and problem.asked and "Direct" not in problem.asked


def test_shortening_an_axis_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shrinking filter over symbolic extents: a number of taps must not be exchanged for a symbolic one and back again."""
    rounds = []
    tightened = solving._Solver._tightened
    monkeypatch.setattr(solving._Solver, "_tightened", lambda self, *a: rounds.append(a) or tightened(self, *a))

    def shrunk(a: Any) -> Any:
        (h,) = a.shape
        source, weights = fl.edge(a), fl.stage(lambda y, k: fl.cast(y + k, "float64"), extents={"y": h * 3 // 5, "k": 11})
        return fl.stage(lambda y: fl.sum(lambda k: weights[y, k] * source[(10 * y + 5) // 6 + k - 5]))

    check_gradient(shrunk, np.random.default_rng(0).standard_normal(20), symbolic=True)
    assert len(rounds) < 100


def declared(x: fl.f32[fl.Tensor, "n"]) -> fl.Tensor:
    return fl.sum(x * x)


def test_a_derivative_is_a_model_of_the_inputs_that_its_function_declares() -> None:
    """Annotations are strings here: they mean what they do where the function is."""
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(fl.trace(fl.grad(declared)).run(x), 2 * x)
    value, slope = fl.trace(fl.value_and_grad(declared)).run(x)
    assert value == 5 and (slope == 2 * x).all()
