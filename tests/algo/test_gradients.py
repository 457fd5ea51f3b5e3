"""Gradients of operators, views, scans and rules, beside finite differences in float64."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import operator_cases
import pytest
from gradient_checks import check_gradient, traced
from operator_cases import CASES, Seeded

G = np.random.default_rng(3)
STEPS = np.array([3, 1, 0], np.int32)


def normal(*shape: int) -> np.ndarray:
    return G.standard_normal(shape)


def ids(high: int, *shape: int) -> np.ndarray:
    return G.integers(0, high, shape).astype(np.int32)


def taps(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A stencil that reads past every end of a boundary view."""

    def stencil(x: Any) -> Any:
        e = view(x)
        return fl.stage(lambda i, j: (e[i, j - 2] + 2 * e[i, j] * e[i, j] + e[i + 1, j + 2]) / 3)

    return stencil


def cell(carry: Any, x: Any, w: Any) -> Any:
    h, c = carry
    z = fl.stage(lambda n, j, q: fl.sum(lambda k: h[n, k] * w[k, j, q]) + x[n, j])
    c = fl.sigmoid(z[..., 1]) * c + fl.tanh(z[..., 2])
    return (fl.tanh(c) * fl.sigmoid(z[..., 0]), c), c


OPERATORS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "edge": (taps(fl.edge), (normal(5, 6),)),
    "reflect": (taps(fl.reflect), (normal(5, 6),)),
    "wrap": (taps(fl.wrap), (normal(5, 6),)),
    "conv1d": (lambda x, w: fl.conv1d(x, w, stride=2, padding=1), (normal(2, 3, 9), normal(4, 3, 3))),
    "conv2d": (lambda x, w: fl.conv2d(x, w, padding=1), (normal(2, 3, 6, 5), normal(4, 3, 3, 3))),
    "conv2d of stride 2": (lambda x, w: fl.conv2d(x, w, stride=2, padding=1), (normal(2, 3, 7, 6), normal(4, 3, 3, 3))),
    "conv2d dilated": (lambda x, w: fl.conv2d(x, w, stride=2, padding=2, dilation=2), (normal(1, 2, 9, 8), normal(4, 2, 3, 3))),
    "conv2d of stride 3": (lambda x, w: fl.conv2d(x, w, stride=3, padding=1), (normal(1, 2, 10, 8), normal(2, 2, 2, 4))),
    "conv2d in groups": (lambda x, w: fl.conv2d(x, w, padding=1, groups=2), (normal(1, 4, 5, 5), normal(6, 2, 3, 3))),
    "conv3d": (lambda x, w: fl.conv3d(x, w, padding=1), (normal(1, 2, 3, 4, 4), normal(2, 2, 3, 3, 3))),
    "conv_transpose2d": (lambda x, w: fl.conv_transpose2d(x, w, stride=2, padding=1), (normal(1, 3, 4, 5), normal(3, 2, 3, 3))),
    "max_pool2d": (lambda x: fl.max_pool2d(x, 3, stride=2, padding=1), (normal(1, 2, 7, 7),)),
    "avg_pool2d": (lambda x: fl.avg_pool2d(x, 3, stride=2, padding=1), (normal(1, 2, 7, 7),)),
    "adaptive_avg_pool2d": (lambda x: fl.adaptive_avg_pool2d(x, (3, 2)), (normal(1, 2, 7, 7),)),
    "softmax": (lambda x: fl.softmax(x, -1), (normal(3, 5),)),
    "log_softmax": (lambda x: fl.log_softmax(x, -1), (normal(3, 5),)),
    "logsumexp": (lambda x: fl.logsumexp(x, -1), (normal(3, 5),)),
    "layer_norm": (lambda x, w, b: fl.layer_norm(x, w, b), (normal(3, 5), normal(5), normal(5))),
    "rms_norm": (lambda x, w: fl.rms_norm(x, w), (normal(3, 5), normal(5))),
    "group_norm": (lambda x: fl.group_norm(x, 2), (normal(2, 4, 3, 3),)),
    "instance_norm": (lambda x: fl.instance_norm(x), (normal(2, 4, 3, 3),)),
    "gelu": (fl.gelu, (normal(9),)),
    "silu": (fl.silu, (normal(9),)),
    "softplus": (fl.softplus, (normal(9),)),
    "mish": (fl.mish, (normal(9),)),
    "elu": (fl.elu, (normal(9),)),
    "selu": (fl.selu, (normal(9),)),
    "leaky_relu": (fl.leaky_relu, (normal(9),)),
    "hardswish": (fl.hardswish, (normal(9),)),
    "cross_entropy": (lambda x, y: fl.cross_entropy(x, y), (normal(4, 5), ids(5, 4))),
    "embedding": (lambda i, w: fl.embedding(i, w), (ids(6, 4, 3), normal(6, 2))),
    "take": (lambda x, i: fl.take(x, i, axis=1), (normal(3, 5), ids(5, 4))),
    "take_along_axis": (lambda x, i: fl.take_along_axis(x, i, 1), (normal(3, 5), ids(5, 3, 2))),
    "gather_nd": (lambda x, i: fl.gather_nd(x, i), (normal(3, 5), np.stack([ids(3, 4), ids(5, 4)], -1))),
    "scatter_add": (lambda x, i, v: fl.scatter_add(x, i, v), (normal(6, 2), ids(6, 4), normal(4, 2))),
    "scatter": (lambda x, i, v: fl.scatter(x, i, v), (normal(6, 2), np.array([3, 1, 5], np.int32), normal(3, 2))),
    "segment_sum": (lambda x, i: fl.segment_sum(x, i, 4), (normal(6, 2), ids(4, 6))),
    "segment_max": (lambda x, i: fl.segment_max(x, i, 3), (normal(6, 2), np.array([0, 1, 2, 0, 1, 2], np.int32))),
    "sort": (lambda x: fl.sort(x), (normal(3, 7),)),
    "top_k": (lambda x: fl.top_k(x, 3)[0], (normal(3, 7),)),
    "median": (lambda x: fl.median(x, axis=-1), (normal(3, 7),)),
    "cumulative_sum": (lambda x: fl.cumulative_sum(x, axis=1), (normal(3, 7),)),
    "cumulative_prod": (lambda x: fl.cumulative_prod(x, axis=1), (normal(3, 5),)),
    "cumulative_max": (lambda x: fl.cumulative_max(x, axis=1), (normal(3, 7),)),
    "prod": (lambda x: fl.prod(x, axis=1), (normal(3, 4),)),
    "prod with zeros": (lambda x: fl.prod(x, axis=1), (np.array([[1.0, 0, 2], [0, 0, 3], [2, 3, 4]]),)),
    "attention": (lambda q, k, v: fl.attention(q, k, v), (normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4))),
    "causal attention": (lambda q, k, v: fl.attention(q, k, v, causal=True), (normal(1, 2, 4, 4), normal(1, 2, 4, 4), normal(1, 2, 4, 4))),
    "pixel_shuffle": (lambda x: fl.pixel_shuffle(x, 2), (normal(1, 8, 3, 2),)),
    "reshape": (lambda x: fl.reshape(x, (6, 10)) * 2, (normal(3, 4, 5),)),
    "resize": (lambda x: fl.resize(x, (7, 5)), (normal(4, 3),)),
    "resize bicubic": (lambda x: fl.resize(x, (7, 5), method="bicubic"), (normal(4, 3),)),
    "grid_sample": (lambda x, c: fl.grid_sample(x, c), (normal(1, 2, 5, 6), np.tanh(normal(1, 3, 4, 2)))),
    "rfft": (lambda x: list(fl.rfft(x)), (normal(8),)),
    "std": (lambda x: fl.std(x, axis=1), (normal(3, 5),)),
    "vector_norm": (lambda x: fl.vector_norm(x, axis=1), (normal(3, 5),)),
    "unfold": (lambda x: fl.unfold(x, 3), (normal(1, 2, 5, 5),)),
    "einsum": (lambda a, b: fl.einsum("bij,bjk->bik", a, b), (normal(2, 3, 4), normal(2, 4, 2))),
    "where": (lambda x: fl.where(x > 0, fl.log(fl.abs(x)), x * x), (normal(9),)),
    "diagonal": (lambda x: fl.diagonal(x), (normal(4, 4),)),
    "rotary": (lambda x: fl.rotary(x), (normal(1, 2, 4, 6),)),
    "concat": (lambda a, b: fl.concat([a, b], axis=0) * 3, (normal(3, 2), normal(2, 2))),
    "pad": (lambda a: fl.pad(a, ((1, 2), (0, 1))) * 3, (normal(3, 2),)),
    "roll": (lambda a: fl.roll(a, 2, 0) * 3, (normal(5, 2),)),
    "lfilter": (lambda x: fl.lfilter([0.5, 0.2], [1.0, -0.4], x), (normal(9),)),
    "bilateral": (lambda x: fl.bilateral_filter(x, 2, 1.0, 0.5), (normal(6, 6),)),
    "gaussian": (lambda x: fl.gaussian_filter(x, 1.0), (normal(7, 6),)),
    "scan": (lambda x, w, h: fl.scan(lambda c, e: (fl.tanh(e + c @ w), c * 2), h, x)[0], (normal(5, 2, 3), normal(3, 3), normal(2, 3))),
    "scan, every step": (
        lambda x, w, h: fl.scan(lambda c, e: (fl.tanh(e + c @ w), c * e), h, x)[1],
        (normal(5, 2, 3), normal(3, 3), normal(2, 3)),
    ),
    "scan from the last": (
        lambda x, w, h: fl.scan(lambda c, e: (fl.tanh(e + c @ w), c * e), h, x, reverse=True)[1],
        (normal(5, 2, 3), normal(3, 3), normal(2, 3)),
    ),
    "scan of lengths": (
        lambda x, w, h, n: fl.scan(lambda c, e: (fl.tanh(e + c @ w), c * e), h, x, lengths=n)[1],
        (normal(5, 3, 3), normal(3, 3), normal(3, 3), STEPS),
    ),
    "scan of two carries": (
        lambda x, w, h, c: fl.scan(lambda carry, e: cell(carry, e, w), (h, c), x)[1],
        (normal(4, 2, 3), normal(3, 3, 3), normal(2, 3), normal(2, 3)),
    ),
    "recurrence of two delays": (
        lambda x: fl.recurrence(
            lambda h, t, i: fl.where(t >= 1, 0.9 * h[t - 1, i], 0.0) + fl.where(t >= 2, 0.3 * h[t - 2, i], 0.0) + x[t, i], dtype="float64"
        ),
        (normal(6, 2),),
    ),
}
STATIC = ("conv2d in groups", "gather_nd", "median", "pixel_shuffle", "reshape", "grid_sample", "rfft", "rotary", "prod with zeros")
"""Those that need to know an extent, or of which one shape is the point."""


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
        arrays = [operator_cases.values("float64", s, domain, seed * 10 + k) for k, s in enumerate(shapes)]
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


def test_equal_extrema_share() -> None:
    x = np.array([1.0, 3, 3, 2])
    np.testing.assert_array_equal(only(lambda x: fl.grad(lambda x: fl.max(x))(x), x), [0, 0.5, 0.5, 0])


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
    assert problem.code == code and problem.source and problem.asked
