"""The interpreter on known cases: the semantics where languages differ, sizes, refusals, memory and speed."""

from __future__ import annotations

import math
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest
from fluorite.algo.errors import RunError
from fluorite.algo.expr import REAL, binary, cast, unary, where
from fluorite.algo.graph import Graph
from fluorite.algo.interpreter import evaluate_stages, run
from fluorite.algo.interpreter.special import erf
from fluorite.algo.program import trace
from fluorite.algo.reducing import reduce
from fluorite.algo.tensor import Bounded
from fluorite.algo.trace import stage
from fluorite.algo.types import boolean, f32, f64, i8, i32, i64, u8, u16, u32, u64
from scipy import special

DTYPE = {
    "float32": f32,
    "float64": f64,
    "int8": i8,
    "int32": i32,
    "int64": i64,
    "uint8": u8,
    "uint16": u16,
    "uint32": u32,
    "uint64": u64,
    "bool": boolean,
}


def elementwise(fn: Any, *arrays: Any) -> np.ndarray[Any, Any]:
    """fn of elements, over vectors."""
    values = [np.atleast_1d(np.asarray(a)) for a in arrays]
    specs = dict(zip("xyz", [DTYPE[a.dtype.name]("n") for a in values], strict=False))
    build = {
        1: lambda x: stage(lambda i: fn(x[i])),
        2: lambda x, y: stage(lambda i: fn(x[i], y[i])),
        3: lambda x, y, z: stage(lambda i: fn(x[i], y[i], z[i])),
    }[len(values)]
    found: np.ndarray[Any, Any] = trace(build, inputs=specs).run(*values)
    return found


def op(name: str) -> Any:
    return lambda *args: unary(name, args[0]) if len(args) == 1 else binary(name, *args)


I8 = np.arange(-128, 128).astype(np.int8)


# ---------------------------------------------------------------- semantics
def test_integers_wrap() -> None:
    assert elementwise(lambda x: x + 1, I8)[-1] == -128
    assert elementwise(lambda x: -x, I8)[0] == -128
    assert elementwise(lambda x: abs(x), I8)[0] == -128
    assert elementwise(lambda x, y: x * y, np.int64([2**62]), np.int64([6])) == -(2**63)
    assert elementwise(lambda x: x - 1, np.uint8([0])) == 255


def test_every_pair_of_int8_divides_as_python_does() -> None:
    a, b = np.repeat(I8, 256), np.tile(I8, 256)
    quotient, rest = elementwise(op("floordiv"), a, b), elementwise(op("mod"), a, b)
    for x, y, q, r in zip(a.tolist(), b.tolist(), quotient.tolist(), rest.tolist(), strict=True):
        assert (q, r) == ((0, 0) if y == 0 else ((x // y + 128) % 256 - 128, x % y))


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint64"])
def test_shifts_by_the_width_or_more(dtype: str) -> None:
    width = np.dtype(dtype).itemsize * 8
    by = np.array([0, 1, width - 1, width, width + 1, 100], dtype)
    for value in (1, 77, 0) if dtype.startswith("u") else (1, 77, -1, -5):
        x = np.full(by.shape, value, dtype)
        left = [(value << int(b)) % 2**width if b < width else 0 for b in by]
        assert elementwise(op("shl"), x, by).astype(np.uint64).tolist() == [
            v % 2**64 if dtype.startswith("u") else _signed(v, width) % 2**64 for v in left
        ]
        assert elementwise(op("shr"), x, by).tolist() == [value >> int(b) if b < width else (-1 if value < 0 else 0) for b in by]


def _signed(v: int, width: int) -> int:
    return v - 2**width if v >= 2 ** (width - 1) else v


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_float_to_integer_saturates(dtype: str, source: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, -2.9, -0.5, float(info.max), float(info.min), 100.5], source)
    finite = [math.copysign(1e300, v) if math.isinf(v) else v for v in x.tolist()]
    expected = [0 if math.isnan(v) else min(max(math.trunc(v), info.min), info.max) for v in finite]
    assert elementwise(lambda v: cast(v, dtype), x).tolist() == expected


def test_round_is_half_to_even() -> None:
    assert elementwise(op("round"), np.float32([0.5, 1.5, 2.5, -0.5, -1.5])).tolist() == [0, 2, 2, 0, -2]


def test_extrema_propagate_nan_and_argmax_takes_the_first() -> None:
    nan = np.float32("nan")
    assert np.isnan(elementwise(op("max"), np.float32([nan, 1]), np.float32([1, nan]))).all()
    assert np.isnan(elementwise(op("min"), np.float32([nan, 1]), np.float32([1, nan]))).all()

    def where_is(kind: str, values: list[float]) -> int:
        return int(trace(lambda x: stage(lambda: reduce(kind, lambda k: x[k])), inputs={"x": f32("n")}).run(np.float32(values)))

    assert where_is("argmax", [1, 3, 3, 2]) == 1 and where_is("argmin", [1, 0, 0, 2]) == 1
    assert where_is("argmax", [1, 3, nan, nan, 9]) == 2 and where_is("argmin", [1, nan, -3]) == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 10**6])
@pytest.mark.parametrize("kind", ["argmax", "argmin", "max", "sum", "any"])
def test_reductions_cut_anywhere(kind: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Uneven pieces of the result and of the reduction axes, with the answer in any of them."""
    from fluorite.algo.interpreter import stages

    graph = trace(lambda x: stage(lambda i, j: reduce(kind, lambda k, m: x[i, j, k, m])), inputs={"x": i32(2, 3, 4, 5)})
    x = np.random.default_rng(limit).integers(-3, 3, (2, 3, 4, 5)).astype(np.int32)
    flat = x.reshape(2, 3, 20)
    expected = flat.any(-1) if kind == "any" else getattr(flat, kind)(-1)
    monkeypatch.setattr(stages, "SLAB", limit)
    assert (graph.run(x) == expected).all()


def test_reductions_over_nothing() -> None:
    expected = {"sum": 0, "prod": 1, "any": False, "all": True}
    for kind, value in expected.items():
        graph = trace(
            lambda x, kind=kind: stage(lambda i: reduce(kind, lambda k: x[i, k])),
            inputs={"x": f32("i", "k") if kind in ("sum", "prod") else boolean("i", "k")},
        )
        empty = np.zeros((2, 0), np.float32 if kind in ("sum", "prod") else bool)
        assert graph.run(empty).tolist() == [value] * 2
        assert graph.run(empty.T).shape == (0,)
    for kind in ("max", "min", "argmax", "argmin"):
        graph = trace(lambda x, kind=kind: stage(lambda i: reduce(kind, lambda k: x[i, k])), inputs={"x": f32("i", "k")})
        with pytest.raises(RunError, match="over no elements"):
            graph.run(np.zeros((2, 0), np.float32))
        assert graph.run(np.zeros((0, 0), np.float32)).shape == (0,)


def test_the_branch_not_taken_has_no_effect() -> None:
    x = np.float32([-1, 4])
    assert elementwise(lambda v: where(v > 0, unary("sqrt", v), 0.0), x).tolist() == [0, 2]
    graph = trace(lambda x: stage(lambda i: where(i < 2, x[i + 100], 7.0), extents={"i": 4}), inputs={"x": f32(200)})
    assert graph.run(np.arange(200, dtype=np.float32)).tolist() == [100, 101, 7, 7]


def test_sums_of_narrow_integers_widen() -> None:
    graph = trace(lambda x: stage(lambda: reduce("sum", lambda k: x[k])), inputs={"x": u8("n")})
    assert graph.run(np.full(1000, 255, np.uint8)) == 255000 and graph.run(np.zeros(1, np.uint8)).dtype == np.uint32


def test_data_as_an_index_is_clamped() -> None:
    graph = trace(lambda table, ids: stage(lambda n, d: table[ids[n], d]), inputs={"table": f32(5, 3), "ids": i32("n")})
    table = np.arange(15, dtype=np.float32).reshape(5, 3)
    assert (graph.run(table, np.int32([-7, 0, 4, 99])) == table[[0, 0, 4, 4]]).all()


@pytest.mark.parametrize("mode", ["edge", "reflect", "wrap"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_boundaries_pad_as_numpy_does(mode: str, n: int) -> None:
    graph = trace(lambda x: stage(lambda i: Bounded(x, mode)[i - 12], extents={"i": 12 + n + 12}), inputs={"x": f32("n")})
    x = np.arange(n, dtype=np.float32)
    assert (graph.run(x) == np.pad(x, 12, mode)).all()


@pytest.mark.parametrize("name", [r for r in REAL if r not in ("atan2", "pow")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_real_functions(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = {"asin": rng.uniform(-1, 1, 400), "acos": rng.uniform(-1, 1, 400), "log1p": rng.uniform(-0.9, 9, 400)}.get(
        name, rng.uniform(0.01, 30, 400) if name.startswith("log") or "sqrt" in name else rng.normal(0, 3, 400)
    ).astype(dtype)
    truth = {
        "rsqrt": lambda v: 1 / np.sqrt(v),
        "sigmoid": special.expit,
        "erf": special.erf,
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
    }
    expected = truth.get(name, getattr(np, name, None))(x.astype(np.longdouble) if name not in ("sigmoid", "erf") else x.astype(np.float64))
    np.testing.assert_allclose(
        elementwise(op(name), x), expected.astype(np.float64), rtol=16 * np.finfo(dtype).eps, atol=0 if name != "tan" else 1e-6
    )


def test_erf_is_accurate_everywhere() -> None:
    x = np.concatenate([np.linspace(-7, 7, 5001), [0.0, -0.0, 1e-300, 1 / 64, -1 / 64, np.inf, -np.inf]])
    np.testing.assert_allclose(erf(x), special.erf(x), rtol=4e-16, atol=0)
    assert np.isnan(erf(np.array([np.nan]))).all()


def test_functions_at_the_ends_do_not_warn() -> None:
    big = np.float32([1e30, -1e30, np.inf, -np.inf, np.nan, 0])
    for name in REAL:
        if name not in ("atan2", "pow"):
            elementwise(op(name), big)
    assert elementwise(op("sigmoid"), big)[:4].tolist() == [1, 0, 1, 0]
    assert elementwise(op("div"), big, np.zeros_like(big)).shape == (6,)


# ---------------------------------------------------------------- running
def blur(image: Any) -> Any:
    image = Bounded(image, "edge")
    rows = Bounded(stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3, name="rows"), "edge")
    return stage(lambda y, x: (rows[y - 1, x] + rows[y, x] + rows[y + 1, x]) / 3, name="blur")


def blur_graph() -> Graph:
    return trace(blur, inputs={"image": f32("h", "w")})


def matmul(a: Any, b: Any) -> Any:
    return stage(lambda i, j: reduce("sum", lambda k: a[i, k] * b[k, j]))


def quickest(fn: Any) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        fn()
        times.append(time.perf_counter() - start)
    return min(times)


def test_blur_is_what_numpy_says_and_quick() -> None:
    image = np.random.default_rng(0).random((512, 512), np.float32)
    wide = np.pad(image, ((0, 0), (1, 1)), "edge")
    rows = np.pad((wide[:, :-2] + wide[:, 1:-1] + wide[:, 2:]) / np.float32(3), ((1, 1), (0, 0)), "edge")
    graph = blur_graph()
    assert (graph.run(image) == (rows[:-2] + rows[1:-1] + rows[2:]) / np.float32(3)).all()
    assert quickest(lambda: graph.run(image)) < 0.2


def test_matmul_runs_at_library_speed() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((768, 768)).astype(np.float32) for _ in range(2))
    graph = trace(matmul, inputs={"a": f32("i", "k"), "b": f32("k", "j")})
    np.testing.assert_allclose(graph.run(a, b), a @ b, rtol=1e-4, atol=1e-3)
    assert quickest(lambda: graph.run(a, b)) < 4 * quickest(lambda: a @ b) + 0.05


def test_large_reductions_use_little_memory() -> None:
    graph = trace(lambda x: stage(lambda i: reduce("max", lambda k: abs(x[i] - x[k]))), inputs={"x": f32("n")})
    x = np.random.default_rng(0).random(6000, np.float32)
    tracemalloc.start()
    try:
        found = graph.run(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(found, np.maximum(x - x.min(), x.max() - x))
    assert peak < 300e6  # 36 million points at 4 bytes in one piece, with intermediate results, would be more


def test_results_are_nested_as_returned_and_never_alias_inputs() -> None:
    graph = trace(lambda x: {"same": x, "more": [stage(lambda i: x[i] + 1), (stage(lambda i: x[i] * 2), 3.0)]}, inputs={"x": f32("n")})
    x = np.float32([1, 2])
    found = run(graph, (x,))
    assert found["more"][0].tolist() == [2, 3] and found["more"][1][0].tolist() == [2, 4] and found["more"][1][1] == 3
    found["same"][0] = 9
    assert x[0] == 1 and isinstance(found["more"][1], tuple)


def test_watch_and_stage_by_stage_values_and_float64() -> None:
    seen: dict[str, str] = {}
    image = np.random.default_rng(1).random((5, 4), np.float32)
    graph = blur_graph()
    wide = run(graph, (image,), float64=True, watch=lambda s, a: seen.setdefault(s.path, a.dtype.name))
    assert seen == {"blur/rows": "float64", "blur/blur": "float64"} and wide.dtype == np.float64
    narrow = evaluate_stages(graph, (image,))
    assert [narrow[s.id].dtype.name for s in graph.stages] == ["float32"] * 2
    assert 0 < np.abs(wide - narrow[graph.stages[-1].id]).max() < 1e-6


def test_constants_keep_their_type_in_float64() -> None:
    graph = trace(lambda x: stage(lambda i: x[i] * 0.1), inputs={"x": f32("n")})
    assert run(graph, (np.float32([1]),), float64=True)[0] == float(np.float32(0.1)) != 0.1


@pytest.mark.parametrize(
    ("args", "named", "sentence"),
    [
        ((), {}, "blur: image is missing, expected float32[h, w]"),
        ((np.zeros((2, 2), np.float32),) * 2, {}, "2 inputs given, expected image: float32[h, w]"),
        ((np.zeros((2, 2), np.float32),), {"image": 1}, "given twice"),
        ((), {"imag": 1.0, "image": np.zeros((2, 2), np.float32)}, "there is no input imag"),
        ((np.zeros((2, 2)),), {}, "image is float64, expected float32[h, w]"),
        ((np.zeros(2, np.float32),), {}, "image has shape (2,), expected float32[h, w]"),
        (("photo.png",), {}, "image is of type str"),
        (([[1, 2], [3]],), {}, "not a rectangular list"),
    ],
)
def test_wrong_inputs_are_sentences(args: tuple[Any, ...], named: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RunError) as caught:
        blur_graph().run(*args, **named)
    assert sentence in caught.value.text()


def test_the_cast_to_write_is_named() -> None:
    with pytest.raises(RunError) as caught:
        blur_graph().run(np.zeros((2, 2)))
    assert caught.value.problems[0].try_ == ("image.astype(np.float32)",)


def test_extents_must_agree_and_be_possible() -> None:
    graph = trace(lambda a, b: stage(lambda i: a[i] + b[i]), inputs={"a": f32("n"), "b": f32("n")})
    with pytest.raises(RunError, match="n is 2 in a, but 3 in b"):
        graph.run(np.zeros(2, np.float32), np.zeros(3, np.float32))
    with pytest.raises(RunError, match="has shape"):
        trace(lambda a: stage(lambda i: a[i] + 1), inputs={"a": f32(3)}).run(np.zeros(4, np.float32))
    shrinking = trace(lambda a: stage(lambda i: a[i] + a[i + 2]), inputs={"a": f32("n")})
    assert shrinking.run(np.zeros(2, np.float32)).shape == (0,)
    with pytest.raises(RunError, match="would have -1 elements"):
        shrinking.run(np.zeros(1, np.float32))


def test_python_numbers_and_lists_are_weak() -> None:
    graph = trace(lambda a, s: stage(lambda i: a[i] * s.as_scalar()), inputs={"a": f32("n"), "s": f32()})
    assert graph.run([1, 2], 3).tolist() == [3, 6] and graph.run([1.5], 2.0).dtype == np.float32
    whole = trace(lambda a: stage(lambda i: a[i] + 1), inputs={"a": u8("n")})
    for wrong in ([1.5], [300], [-1]):
        with pytest.raises(RunError):
            whole.run(wrong)


def test_strided_big_endian_and_reversed_inputs() -> None:
    graph = trace(lambda a: stage(lambda i, j: a[j, i] + a[j, 0]), inputs={"a": f32("n", "m")})
    a = np.arange(24, dtype=np.float32).reshape(4, 6)
    expected = a.T + a[:, 0]
    assert (graph.run(a) == expected).all() and (graph.run(a.astype(">f4")) == expected).all()
    assert (graph.run(np.asfortranarray(a)) == expected).all() and (graph.run(a[::-1, ::-1]) == (a[::-1, ::-1].T + a[::-1, -1])).all()


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0), (1, 1), (2, 5)])
def test_an_empty_part_is_never_read(n: int, m: int) -> None:
    graph = trace(
        lambda a, b: stage(lambda i: where(i < a.shape[0], a[i], b[i - a.shape[0]]), extents={"i": a.shape[0] + b.shape[0]}),
        inputs={"a": f32("n"), "b": f32("m")},
    )
    a, b = np.arange(n, dtype=np.float32), -np.arange(m, dtype=np.float32)
    assert (graph.run(a, b) == np.concatenate([a, b])).all()


def test_float_remainders_have_the_divisors_sign() -> None:
    a, b = np.float32([5.5, -5.5, 5.5, -5.5, 1]), np.float32([2, 2, -2, -2, 0])
    assert elementwise(op("mod"), a, b)[:4].tolist() == [1.5, 0.5, -0.5, -1.5] and np.isnan(elementwise(op("mod"), a, b)[4])
    assert elementwise(op("floordiv"), a, b)[:4].tolist() == [2, -3, -3, 2]


def test_powers_and_angles() -> None:
    x, y = np.float32([2, 0, 4, -1]), np.float32([0.5, 0, -0.5, -0.0])
    np.testing.assert_allclose(elementwise(op("pow"), x, y), np.power(x.astype(np.float64), y), rtol=1e-6)
    np.testing.assert_allclose(elementwise(op("atan2"), x, y), np.arctan2(x.astype(np.float64), y), rtol=1e-6)
