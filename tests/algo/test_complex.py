"""Complex numbers against NumPy's: arithmetic, functions, views, reductions, products; what is refused; infinities."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from gradient_checks import check_gradient
from operator_running import both, graph_of, near, numbers, refusal, run

SHAPES = [(), (1,), (7,), (0,), (3, 5), (2, 3, 4)]


def z(*shape: int, seed: int = 0, dtype: str = "complex64") -> Any:
    return numbers(*shape, seed=seed, dtype=dtype)


# ---------------------------------------------------------------- arithmetic
ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]
PAIRS = [((5,), (5,)), ((3, 1), (4,)), ((), (2, 3)), ((2, 3, 4), (3, 1)), ((0, 3), (3,)), ((1,), (1, 1))]


@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_broadcasts_and_joins_types_as_numpy_does(op: Any) -> None:
    kinds = ["complex64", "complex128", "float32", "float64"]
    for a, b in PAIRS:
        for left, right in [(p, q) for p in kinds for q in kinds if "complex" in p + q]:
            x, y = z(*a, dtype=left), z(*b, seed=1, dtype=right)
            want = op(x, y)
            got = both(lambda a, b: op(a, b), x, y)
            assert got.dtype == want.dtype, (left, right)
            near(got, want, 2e-6 if got.dtype == np.complex64 else 1e-13)


@pytest.mark.parametrize("op", ARITHMETIC)
def test_python_numbers_are_weak(op: Any) -> None:
    c, x, d = z(4), numbers(4), numbers(4, dtype="float64")
    for number in (2, 0.5, 1j, 2 - 3j):
        assert run(lambda a, n=number: op(a, n), c).dtype == np.complex64
        near(run(lambda a, n=number: op(a, n), c), op(c, np.complex64(number)))
        near(run(lambda a, n=number: op(n, a), c), op(np.complex64(number), c))
    near(run(lambda a: op(a, 2 - 3j), x), op(x, np.complex64(2 - 3j)))
    assert run(lambda a: op(a, 1j), d).dtype == np.complex128
    assert run(lambda a: op(fl.cast(a, fl.f16), 1j), x).dtype == np.complex64


def test_whole_powers_are_products_and_others_go_by_the_logarithm() -> None:
    c, w = z(9), z(9, seed=1)
    for n in (-16, -3, -1, 0, 1, 2, 5, 16):
        near(run(lambda a, n=n: a**n, c) / np.complex128(c) ** n, np.ones(9), 3e-6)
    near(run(lambda a: a**0.5, c), np.sqrt(c))
    near(run(lambda a, b: a**b, c, w), np.complex128(c) ** w, 3e-5)
    near(run(lambda a: 2**a, c), 2 ** np.complex128(c), 3e-6)
    near(run(lambda a: a**0.5, np.zeros(2, np.complex64)), np.zeros(2))


def test_infinities_and_zeros() -> None:
    """Products are the plain formula, and a real operand stays real; quotients are Smith's, as NumPy's."""
    huge = np.complex64([3e20 + 4e20j, 1e-20 + 1e-20j, 1e38 + 1e38j, 1e-38j])
    near(run(lambda a, b: a / b, huge, huge), np.ones(4), 3e-7)
    near(run(lambda a: abs(a), huge[:3]) / np.abs(np.complex128(huge[:3])), np.ones(3), 3e-7)
    near(run(lambda a: fl.sqrt(a), huge) / np.sqrt(np.complex128(huge)), np.ones(4), 3e-7)
    inf, nan = np.inf, np.nan
    special = np.complex64([complex(inf, 1), complex(1, inf), complex(inf, nan), complex(inf, inf), 1])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(lambda a, b: a * b, special, special), special * special)
        np.testing.assert_array_equal(run(lambda a: 1 / a, special), 1 / special)
        np.testing.assert_array_equal(run(lambda a, b: a / b, special, special * 0), special / (special * 0))
    np.testing.assert_array_equal(
        run(lambda a: 2 * a, special), np.complex64([complex(inf, 2), complex(2, inf), complex(inf, nan), complex(inf, inf), 2])
    )
    zeros = run(lambda a: a / 0, np.complex64([1 + 1j, 0]))
    assert np.isinf(zeros[0]) and np.isnan(zeros[1])
    np.testing.assert_array_equal(run(lambda a: (fl.isnan(a), fl.isinf(a), fl.isfinite(a)), special)[1], np.isinf(special))
    np.testing.assert_array_equal(run(lambda a: fl.isnan(a), special), np.isnan(special))
    np.testing.assert_array_equal(run(lambda a: fl.isfinite(a), special), np.isfinite(special))


# ---------------------------------------------------------------- functions
INVERSE: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (fl.acos, np.arccos),
    (fl.acosh, np.arccosh),
    (fl.asin, np.arcsin),
    (fl.asinh, np.arcsinh),
    (fl.atan, np.arctan),
    (fl.atanh, np.arctanh),
]

FUNCTIONS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (fl.abs, np.abs),
    (fl.angle, np.angle),
    (fl.conj, np.conj),
    (fl.real, np.real),
    (fl.imag, np.imag),
    (fl.exp, np.exp),
    (fl.log, np.log),
    (fl.log2, np.log2),
    (fl.log10, np.log10),
    (fl.sqrt, np.sqrt),
    (fl.sin, np.sin),
    (fl.cos, np.cos),
    (fl.tan, np.tan),
    (fl.sinh, np.sinh),
    (fl.cosh, np.cosh),
    (fl.tanh, np.tanh),
    *INVERSE,
    (fl.exp2, np.exp2),
    (fl.expm1, np.expm1),
    (fl.log1p, np.log1p),
    (fl.rsqrt, lambda c: 1 / np.sqrt(c)),
    (fl.positive, np.positive),
    (fl.square, np.square),
    (fl.reciprocal, np.reciprocal),
    (fl.negative, np.negative),
    (fl.sign, lambda c: c / np.abs(c)),
    (lambda c: +c, np.positive),
    (lambda c: c.conj(), np.conj),
]


@pytest.mark.parametrize(("ours", "theirs"), FUNCTIONS, ids=[t.__name__ for _, t in FUNCTIONS])
def test_functions(ours: Any, theirs: Any) -> None:
    for shape in SHAPES:
        for dtype, tolerance in (("complex64", 4e-6), ("complex128", 1e-13)):
            c = z(*shape, dtype=dtype) * 2
            want = theirs(c.astype(np.complex128))
            got = both(lambda a: ours(a), c)
            assert got.dtype == theirs(c).dtype
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
            inside = run(lambda a: fl.stage(lambda *, a=a: ours(a)) if a.ndim == 0 else fl.stage(lambda i: ours(a[i])), c.reshape(-1)[:1])
            np.testing.assert_allclose(inside, want.reshape(-1)[:1], rtol=tolerance, atol=tolerance)


def test_branches_of_roots_and_logarithms() -> None:
    edge = np.complex64([1, -1, complex(-1, -0.0), 1j, -1j, 4, -4, 0, complex(0, -0.0), -1e-30, 1e30j])
    for ours, theirs in ((fl.sqrt, np.sqrt), (fl.angle, np.angle)):
        near(run(lambda a, f=ours: f(a), edge), theirs(edge), 1e-6)
    near(run(lambda a: fl.log(a), edge[edge != 0]), np.log(edge[edge != 0]), 1e-6)
    close = np.complex64([1 + 1e-4j, -1 + 1e-6j, 1e-5 + 1j, 1 + 1e-7, 1 - 1e-5j])
    np.testing.assert_allclose(run(lambda a: fl.log(a), close).real, np.log(np.complex128(close)).real, rtol=1e-5, atol=1e-16)
    assert np.isneginf(run(lambda a: fl.log(a), np.complex64([0]))[0].real)
    far = np.complex64([100 + 1j, -100 - 2j, 1 + 50j])
    near(run(lambda a: fl.tanh(a), far), np.tanh(np.complex128(far)), 1e-6)


@pytest.mark.parametrize(("ours", "theirs"), INVERSE, ids=[t.__name__ for _, t in INVERSE])
def test_inverse_functions_of_all_sizes(ours: Any, theirs: Any) -> None:
    """On both sides of every branch cut, next to branch points, of tiny and of huge numbers, each part for itself."""
    sizes = [1e-30, 1e-18, 1e-8, 1e-3, 0.3, 1.001, 3, 1e3, 1e10, 1e18, 1e30]
    lines = [0.0, *sizes]
    cells = [(x, y) for x in sizes for y in lines] + [(y, x) for x in sizes for y in lines] + [(1 + 1e-5, y) for y in lines]
    points = np.array([complex(s * x, t * y) for x, y in cells for s in (1, -1) for t in (1, -1)])
    for dtype, tolerance in (("complex64", 1e-6), ("complex128", 2e-15)):
        given = points.astype(dtype)
        want, got = theirs(given.astype(np.complex128)), run(lambda a: ours(a), given)
        for part in (np.real, np.imag):
            least = 1e-37 if dtype == "complex64" else 1e-300  # below, numbers lose digits
            np.testing.assert_allclose(part(got), part(want), rtol=tolerance, atol=least)


def test_what_is_accurate_near_zero() -> None:
    small = np.complex64([1e-6 + 2e-6j, -3e-7j, 1e-12, -1e-3 + 1e-3j])
    wide = small.astype(np.complex128)
    logarithm = sum((-1) ** (n + 1) * wide**n / n for n in range(1, 8))  # NumPy's own loses digits
    for ours, want in ((fl.expm1, np.expm1(wide)), (fl.log1p, logarithm)):
        got = run(lambda a, f=ours: f(a), small)
        for part in (np.real, np.imag):
            np.testing.assert_allclose(part(got), part(want), rtol=1e-6, atol=1e-37)
    near(run(lambda a: fl.expm1(a), np.complex64([50 + 1j])), np.expm1(np.complex128([50 + 1j])), 1e-6)


def slope_of(fn: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda a, b: [p for w in [fn(fl.complex(a, b))] for p in (fl.real(w), fl.imag(w))]


@pytest.mark.parametrize("fn", [f for f, _ in INVERSE] + [fl.expm1, fl.log1p, fl.rsqrt, lambda c: fl.cumulative_prod(c)])
def test_derivatives_of_functions(fn: Any) -> None:
    """In all quadrants, and on the axes where there is no cut."""
    check_gradient(slope_of(fn), np.array([0.3, -0.4, 1.7, -2.1, 0.2]), np.array([0.5, 0.9, -1.1, -0.3, 0.01]))
    cut_along = {fl.acosh: [], fl.asinh: [0.7, -2.5], fl.atan: [0.7, -2.5], fl.rsqrt: [0.7, 2.5], fl.log1p: [0.7, -0.2, 3]}
    real = np.array(cut_along.get(fn, [0.7, -0.6]), np.float64)
    if real.size:
        check_gradient(slope_of(fn), real, np.zeros_like(real))


def test_choices_and_equality() -> None:
    a, b = z(3, 4), z(3, 4, seed=1)
    b[0] = a[0]
    assert np.array_equal(both(lambda x, y: x == y, a, b), a == b) and np.array_equal(both(lambda x, y: fl.not_equal(x, y), a, b), a != b)
    assert np.array_equal(run(lambda x: x == 0, a * 0), a * 0 == 0) and np.array_equal(run(lambda x: x == 1j, a), a == 1j)
    np.testing.assert_array_equal(both(lambda x, y: fl.where(fl.real(x) > 0, x, y), a, b), np.where(a.real > 0, a, b))
    np.testing.assert_array_equal(run(lambda x: fl.where(fl.abs(x) > 1, x, 0.0), a), np.where(np.abs(a) > 1, a, 0))
    np.testing.assert_array_equal(run(lambda x: fl.where(fl.abs(x) > 1, 1.0, x), a), np.where(np.abs(a) > 1, 1, a))


# ---------------------------------------------------------------- views, joins and moves
VIEWS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("T", lambda np, c: c.T),
    ("transpose", lambda np, c: c.transpose((1, 2, 0))),
    ("reshape", lambda np, c: c.reshape(4, -1)),
    ("moveaxis", lambda np, c: np.moveaxis(c, -1, 0)),
    ("expand_dims", lambda np, c: np.expand_dims(c, -1)),
    ("flip", lambda np, c: np.flip(c, -2)),
    ("roll", lambda np, c: np.roll(c, 2, -1)),
    ("tile", lambda np, c: np.tile(c, (2, 1, 2))),
    ("slice", lambda np, c: c[1:, ::-1, None, ..., -1]),
    ("index", lambda np, c: c[0]),
    ("rows", lambda np, c: c[:, [2, 0, 0]]),
    ("broadcast", lambda np, c: np.broadcast_to(c, (5, 2, 3, 4))),
    ("concatenate", lambda np, c: np.concatenate([c, c * 2, c[:1]], axis=0)),
    ("stack", lambda np, c: np.stack([c, c], axis=-1)),
    ("sum", lambda np, c: np.sum(c)),
    ("sum of", lambda np, c: c.sum(axis=(0, -1))),
    ("sum kept", lambda np, c: np.sum(c, axis=1, keepdims=True)),
    ("mean", lambda np, c: np.mean(c, axis=-1)),
    ("prod", lambda np, c: np.prod(c, axis=1)),
    ("prod of all", lambda np, c: np.prod(c)),
    ("prod kept", lambda np, c: np.prod(c, axis=(0, 2), keepdims=True)),
    ("diff", lambda np, c: np.diff(c, axis=1)),
    ("triu", lambda np, c: np.triu(c)),
    ("trace", lambda np, c: np.linalg.trace(c) if hasattr(np, "linalg") else np.matrix_trace(c)),
    ("pad", lambda np, c: np.pad(c, ((1, 0), (0, 2), (0, 0)))),
]


@pytest.mark.parametrize(("name", "fn"), VIEWS, ids=[n for n, _ in VIEWS])
def test_views_joins_and_reductions(name: str, fn: Any) -> None:
    for dtype in ("complex64", "complex128"):
        c = z(2, 3, 4, dtype=dtype)
        want = fn(np, c)
        got = run(lambda x: fn(fl, x), c)
        assert got.dtype == want.dtype
        near(got, want, 3e-6)


def test_cumulative_products_and_tests_of_zero() -> None:
    for shape, axis in [((5,), 0), ((3, 4), 1), ((3, 4), 0), ((2, 0), 1)]:
        for dtype, tolerance in (("complex64", 3e-6), ("complex128", 1e-13)):
            c = z(*shape, dtype=dtype)
            near(run(lambda a, d=axis: fl.cumulative_prod(a, d), c), np.cumulative_prod(c, axis=axis), tolerance)
            want = np.cumulative_prod(c, axis=axis, include_initial=True)
            near(run(lambda a, d=axis: fl.cumulative_prod(a, d, include_initial=True), c), want, tolerance)
            back = np.flip(np.cumulative_prod(np.flip(c, axis), axis=axis), axis)
            near(run(lambda a, d=axis: fl.cumulative_prod(a, d, reverse=True), c), back, tolerance)
    assert run(lambda a: fl.cumulative_prod(a, dtype=fl.c128), z(3)).dtype == np.complex128
    c = np.complex64([[0, 1j, 0], [2, 0, 1 + 1j]])
    for ours, theirs in ((fl.any, np.any), (fl.all, np.all), (fl.count_nonzero, np.count_nonzero)):
        np.testing.assert_array_equal(run(lambda a, f=ours: f(a, axis=1), c), theirs(c, axis=1))
    found = run(lambda a: fl.nonzero(a, 6), c)
    np.testing.assert_array_equal(np.stack(found[0])[:, :3], np.nonzero(c))
    np.testing.assert_array_equal(run(lambda a: fl.isin(a, np.complex64([1j, 2])), c), np.isin(c, [1j, 2]))
    np.testing.assert_array_equal(run(lambda a: fl.linspace(1, 1j, 5) + a[0, 0], c), np.linspace(1, 1j, 5, dtype="c8"))
    assert run(lambda a: fl.linspace(0, 2, 3, dtype=fl.c128), c).dtype == np.complex128
    assert run(lambda a: fl.asarray([1 + 2j], fl.c128), c) == [1 + 2j]


def test_empty_axes() -> None:
    c = z(0, 3)
    np.testing.assert_array_equal(run(lambda x: fl.sum(x, 0), c), np.zeros(3, np.complex64))
    np.testing.assert_array_equal(run(lambda x: fl.prod(x, 0), c), np.ones(3, np.complex64))
    assert run(lambda x: x * 1j, c).shape == (0, 3) and run(lambda x: x.T @ x, c).tolist() == np.zeros((3, 3)).tolist()


def _padded(view: Any) -> Any:
    return fl.stage(lambda i: view[i - 1], extents={"i": 5})


def test_real_ones_beside_complex_ones() -> None:
    c, x = z(3), numbers(3)
    np.testing.assert_array_equal(run(lambda a, b: fl.concatenate([b, a, b]), c, x), np.concatenate([x, c, x]))
    np.testing.assert_array_equal(run(lambda a: fl.pad(a, 1, value=2.0), c), np.pad(c, 1, constant_values=2))
    np.testing.assert_array_equal(run(lambda a: fl.pad(a, 1, value=2j), c), np.pad(c, 1, constant_values=2j))
    np.testing.assert_array_equal(run(lambda a, f=fl.constant: _padded(f(a, 1j)), c), np.pad(c, 1, constant_values=1j))
    np.testing.assert_array_equal(run(lambda a: _padded(fl.wrap(a)), c), np.pad(c, 1, mode="wrap"))
    np.testing.assert_array_equal(run(lambda a: a[[0, 2]] + np.array([1j, 2]), c), c[[0, 2]] + np.array([1j, 2]))
    np.testing.assert_array_equal(run(lambda a, more=[1j, 2, 3]: a + more, c), c + np.complex64([1j, 2, 3]))
    ids = np.int32([1, 1, 0])
    np.testing.assert_allclose(run(lambda a, i: fl.segment_sum(a, i, 2), c, ids), [c[2], c[0] + c[1]])
    np.testing.assert_array_equal(run(lambda a, i: fl.take(a, i), c, ids), c[ids])


def test_made_of_nothing() -> None:
    x = numbers(2, 3)
    for ours, want in [
        (lambda a: fl.zeros((2, 3), dtype=fl.c64), np.zeros((2, 3), "c8")),
        (lambda a: fl.full((2,), 1 + 2j), np.full(2, 1 + 2j, "c8")),
        (lambda a: fl.ones_like(fl.cast(a, fl.c128)), np.ones((2, 3), "c16")),
        (lambda a: fl.eye(3, dtype=fl.c64), np.eye(3, dtype="c8")),
        (lambda a: fl.complex(a, 2.0), x + np.complex64(2j)),
        (lambda a: fl.complex(a, -a), x - 1j * x),
        (lambda a: fl.cast(a, complex), x.astype("c8")),
        (lambda a: fl.asarray([1j, 2]), np.array([1j, 2], "c8")),
        (lambda a: fl.asarray(np.array([[1j]])), np.array([[1j]])),
        (lambda a: fl.complex(a[0, 0], 1.0), np.complex64(x[0, 0] + 1j)),
        (lambda a: fl.imag(a), x * 0),
        (lambda a: fl.real(a), x),
        (lambda a: fl.conj(a), x),
        (lambda a: fl.angle(a), np.angle(x)),
        (lambda a: fl.stage(lambda i, j: a[i, j], dtype=fl.c64), x.astype("c8")),
    ]:
        got = run(ours, x)
        assert got.dtype == want.dtype
        near(got, want, 1e-7)


# ---------------------------------------------------------------- products
PRODUCTS: list[tuple[str, Callable[[Any, Any, Any], Any], tuple[int, ...], tuple[int, ...]]] = [
    ("matmul", lambda np, a, b: a @ b, (3, 5), (5, 2)),
    ("batch", lambda np, a, b: np.matmul(a, b), (2, 1, 3, 5), (4, 5, 2)),
    ("vector", lambda np, a, b: a @ b, (5,), (5, 2)),
    ("dot", lambda np, a, b: np.dot(a, b), (7,), (7,)),
    ("outer", lambda np, a, b: np.outer(a, b), (3,), (1,)),
    ("vecdot", lambda np, a, b: np.vecdot(a, b), (3, 5), (5,)),
    ("tensordot", lambda np, a, b: np.tensordot(a, b, 1), (2, 3), (3, 2, 2)),
    ("einsum", lambda np, a, b: np.einsum("ij,jk->ki", a, b), (3, 5), (5, 2)),
    ("kron", lambda np, a, b: np.kron(a, b), (2, 3), (3, 2)),
    ("einsum of three", lambda np, a, b: np.einsum("ij,jk,kl->il", a, b, a), (3, 5), (5, 3)),
    ("cross", lambda np, a, b: np.cross(a, b), (4, 3), (3,)),
]


@pytest.mark.parametrize(("name", "fn", "left", "right"), PRODUCTS, ids=[p[0] for p in PRODUCTS])
def test_products(name: str, fn: Any, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    for p, q in [("complex64", "complex64"), ("complex64", "float32"), ("float32", "complex64"), ("complex128", "complex64")]:
        a, b = z(*left, dtype=p), z(*right, seed=1, dtype=q)
        want = fn(np, a, b)
        got = run(lambda x, y: fn(fl, x, y), a, b)
        assert got.dtype == want.dtype
        near(got, want, 1e-5)


def test_sums_inside_a_stage_are_made_once_for_both_parts() -> None:
    a, b = z(4, 5), z(5, seed=1)
    graph = graph_of(lambda x, y: fl.stage(lambda i: y[i] * fl.sum(lambda k: x[k, i] * 2j) / fl.mean(lambda k: y[k]), name="s"), a, b)
    near(graph.run(a, b), b * (a * 2j).sum(0) / b.mean(), 1e-5)
    assert [s.path.split("/", 1)[1] for s in graph.stages if "sum" in s.path] == [
        "s/real/sum",
        "s/real/sum_2",
        "s/real/sum_3",
        "s/real/sum_4",
    ]
    near(run(lambda x: fl.stage(lambda i: fl.sum(lambda k: x[i, k])), a), a.sum(1), 1e-5)


def correlated(x: Any, w: Any) -> Any:
    """What conv2d of one image is, without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.einsum("ncyxij,ocij->noyx", windows, w)


def test_convolutions() -> None:
    x, w, b = z(2, 3, 5, 6), z(4, 3, 2, 3, seed=1), z(4, seed=2)
    want = correlated(x, w)
    near(run(lambda x, w: fl.conv2d(x, w), x, w), want, 1e-5)
    near(run(lambda x, w, b: fl.conv2d(x, w, b), x, w, b), want + b[:, None, None], 1e-5)
    near(run(lambda x, w, b: fl.conv2d(x, w, b), x.real, w, b.real), correlated(x.real, w) + b.real[:, None, None], 1e-5)
    near(run(lambda x, w, b: fl.conv2d(x, w, b, stride=(2, 1)), x, w.real, b), (correlated(x, w.real) + b[:, None, None])[:, :, ::2], 1e-5)
    line, taps = x[:, :, 0], w[:, :, 0]
    near(run(lambda x, w: fl.conv1d(x, w), line, taps), correlated(line[:, :, None], taps[:, :, None])[:, :, 0], 1e-5)
    volume = run(lambda x, w: fl.conv3d(x, w), x[:, :, None], w[:, :, None])
    near(volume[:, :, 0], want, 1e-5)
    spread = run(lambda x, w: fl.conv_transpose1d(x, w), line, z(3, 2, 2))  # with a dual: <conv(y), x> = <y, transposed(x)>
    y = z(2, 2, 7, seed=5)
    near((run(lambda y, w: fl.conv1d(y, w), y, z(3, 2, 2)) * line).sum(), (y * spread).sum(), 1e-4)
    near(run(lambda x: fl.fold(fl.unfold(x, 2, stride=2), (4, 6), stride=2), x[:, :, :4]), x[:, :, :4])
    names = [s.path.split("/", 1)[1] for s in graph_of(lambda x, w, b: fl.conv2d(x, w, b), x, w, b).stages]
    assert {"conv2d/product/real_imag", "conv2d/product/real", "conv2d/bias/imag"} <= set(names)


def test_norms_and_layers() -> None:
    c, w, b = z(3, 4), z(4, 2, seed=1), z(2, seed=2)
    near(run(lambda x: fl.vector_norm(x), c), np.linalg.norm(c.reshape(-1)))
    near(run(lambda x: fl.matrix_norm(x, ord=1), c), np.linalg.norm(c, 1))
    near(run(lambda x, y, s: fl.linear(x, y, s), c, w, b), c @ w + b, 1e-5)


def test_parts_that_nobody_reads_are_not_computed() -> None:
    graph = graph_of(lambda x: fl.real(fl.exp(x * x)), z(3))
    assert [s.path.split("/", 1)[1] for s in graph.stages] == ["multiply/real", "multiply/imag", "exp/real"]
    assert len(graph_of(lambda x: fl.real(x * 2), z(3)).stages) == 1


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    "fn",
    [
        lambda a: a < 1,
        lambda a: fl.maximum(a, a),
        lambda a: fl.floor(a),
        lambda a: a // 2,
        lambda a: a % 2,
        lambda a: fl.sort(a),
        lambda a: a.max(),
        lambda a: fl.argmax(a),
        lambda a: fl.relu(a),
        lambda a: a & a,
        lambda a: fl.stage(lambda i: a[i] < 1),
        lambda a: fl.erf(a),
        lambda a: fl.stage(lambda i: fl.max(lambda k: a[k] * i)),
        lambda a: fl.cast(a, fl.f32),
        lambda a: fl.stage(lambda i: a[i], dtype=fl.f32),
        lambda a: fl.clamp(a, 0, 1),
        lambda a: fl.softmax(a),
        lambda a: fl.stage(lambda i: fl.sigmoid(a[i])),
        lambda a: ~a,
        lambda a: fl.saturate(fl.i8, a),
        lambda a: fl.cumulative_max(a),
        lambda a: fl.linspace(0, 1j, 5, dtype=fl.f64) + a[0],
        lambda a: fl.hypot(a, a),
        lambda a: fl.stage(lambda i: fl.floor(a[i])),
        lambda a: fl.atan2(a, a),
        lambda a: fl.stage(lambda: fl.reduce(lambda x, y: x * y, 1, lambda i: a[i])),
    ],
)
def test_what_real_numbers_have_and_complex_ones_have_not(fn: Any) -> None:
    problem = refusal(fn, z(4))
    assert problem.code == "A211" and "complex" in problem.asked and problem.source, problem


def test_other_refusals() -> None:
    assert refusal(lambda a, b: a + b, z(3), np.zeros(3, np.int32)).code == "A104"
    assert refusal(lambda a: fl.stage(lambda i: a[i] if a[i] != 0 else 1j), z(3)).code == "A102"
    assert refusal(lambda a: fl.arange(3, dtype=fl.c64) * a, z(3)).code == "A101"
    assert refusal(lambda a: fl.stage(lambda i: a[a[i]]), z(3)).code == "A211"
    with pytest.raises(fl.AlgorithmError, match="A116"):
        fl.c64[fl.Ragged, "n", "t*"]


def test_moments_and_powers_of_matrices() -> None:
    c, square = z(4, 5), z(3, 3)
    near(run(lambda a: fl.var(a, 0, correction=1), c), np.var(c, 0, ddof=1))
    near(run(lambda a: fl.std(a), c), np.std(c))
    for n in (0, 1, 5):
        near(run(lambda a, n=n: fl.matrix_power(a, n), square), np.linalg.matrix_power(square, n), 1e-5)


def test_control_flow_and_names() -> None:
    def turned(a: Any, n: Any) -> Any:
        w = a * 0
        while n > 0:
            w = w * 1j + a
            n = n - 1
        if fl.sum(fl.abs(w)) > 0:
            w = w * 2
        return w

    c = z(3)
    near(run(turned, c, np.int32(3)), 2 * (((c * 1j) + c) * 1j + c), 1e-6)
    graph = graph_of(lambda a: (a * a).named("squared") + 1, c)
    assert [s.path.split("/", 1)[1] for s in graph.stages][:2] == ["multiply/squared/real", "multiply/squared/imag"]
    assert refusal(lambda a: a.assign(a), c).code == "A183"


def test_questions_about_types() -> None:
    for given, want in [
        ((fl.c64, fl.f64), "complex128"), ((fl.c64, fl.f16), "complex64"), ((fl.f32, 1j), "complex64"), ((fl.f64, 1j), "complex128"),
    ]:  # fmt: skip
        assert fl.result_type(*given).dtype_name == want
    assert fl.can_cast(fl.f32, fl.c64) and not fl.can_cast(fl.f64, fl.c64) and not fl.can_cast(fl.c64, fl.f32)
    assert fl.isdtype(fl.c64, "complex floating") and fl.isdtype(np.complex128, "numeric") and not fl.isdtype(fl.c64, "real floating")
    assert fl.isdtype(complex, fl.c64) and fl.finfo(fl.c128).eps == np.finfo(np.complex128).eps
    with pytest.raises(fl.AlgorithmError, match="A104"):
        fl.result_type(fl.c64, fl.i32)


def test_products_load_whole_vectors() -> None:
    """Parts that lie side by side are taken apart once, before they are read many times; those of stages are apart already."""
    paths = [s.path.split("/", 1)[1] for s in graph_of(lambda a: a @ fl.conj(a.T), z(3, 4)).stages]
    assert paths[:3] == ["conj", "matmul/real_part", "matmul/imag_part"] and "matmul/real_part_2" in paths
    assert not any("part" in s.path for s in graph_of(lambda a: (a * 2) @ (a + 1).T, z(3, 3)).stages)
