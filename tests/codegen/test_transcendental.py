"""Our real functions against references of at least twice the precision: every exponent, every special value, contracted or not."""
from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen import driver
from fluorite.codegen.emit import emit
from fluorite.codegen.functions.transcendental import ARGUMENTS, FUNCTIONS, definitions, symbol
from fluorite.codegen.real_functions import CALLS
from fluorite.codegen.target import resolve_target
from fluorite.codegen.tvm_adapter import ForKind, as_tensor, compile_functions, tirx
from fluorite.schedule.sections import Target

Array = np.ndarray[Any, Any]

SIZE = 1 << 16
UNARY = sorted(n for n in FUNCTIONS if ARGUMENTS[n] == 1)
OWN64 = ("cosh", "erf", "exp", "exp2", "expm1", "log", "log1p", "sigmoid", "sinh", "tanh")
BOUND = {
    "log2": 0.501, "log10": 0.501, "pow": 0.501, "log": 0.95, "log1p": 1.5, "exp": 1.1, "exp2": 1.1, "expm1": 1.65, "erf": 1.4, "tanh": 1.4,
    "sigmoid": 1.95, "sinh": 1.75, "cosh": 1.5, "sin": 1.6, "cos": 1.6, "tan": 1.2, "asin": 1.45, "acos": 1.2, "atan": 1.65, "atan2": 1.85,
}  # fmt: skip
"""A little above the largest error seen; all below the 2 that is promised."""
EXTENDED = np.finfo(np.longdouble).nmant >= 63


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), np.where(np.isnan(x), x, small / (1 + small)))


def _erf(x: Array) -> Array:
    """2 / sqrt(pi) exp(-x**2) (x + 2 x**3 / 3 + 4 x**5 / 15 ...): no term cancels another."""
    if x.dtype == np.float64:
        return np.array([math.erf(v) for v in x.tolist()])
    size = np.minimum(np.abs(x), 7)
    term, total = size, size
    for n in range(1, 200):
        term = term * 2 * size * size / (2 * n + 1)
        total = total + term
    root = np.sqrt(np.arccos(x.dtype.type(-1)))
    return np.copysign(np.where(np.abs(x) > 7, 1, 2 / root * np.exp(-size * size) * total), x)


REFERENCE: dict[str, Callable[..., Array]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "tanh": np.tanh, "sigmoid": _sigmoid, "erf": _erf, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "pow": np.power, "atan2": np.arctan2,
}  # fmt: skip


def kernel(name: str, dtype: str, lanes: int) -> Any:
    """The function over SIZE elements, `lanes` at once."""
    inputs = [tirx.decl_buffer([SIZE], dtype, f"x{i}", data_alignment=8) for i in range(ARGUMENTS[name])]
    output = tirx.decl_buffer([SIZE], dtype, "y", data_alignment=8)
    outer, inner = tirx.Var("outer", "int64"), tirx.Var("inner", "int64")
    place = outer * lanes + inner
    store = tirx.BufferStore(output, CALLS[name](dtype, *(tirx.BufferLoad(b, [place]) for b in inputs)), [place])
    number = lambda n: tirx.IntImm("int64", n)  # noqa: E731
    if lanes > 1:
        store = tirx.For(inner, number(0), number(lanes), ForKind.VECTORIZED, store)
    else:
        store = tirx.For(inner, number(0), number(1), ForKind.SERIAL, store)
    loop = tirx.For(outer, number(0), number(SIZE // lanes), ForKind.SERIAL, store)
    return tirx.PrimFunc([*inputs, output], loop).with_attr("global_symbol", f"own_{name}").with_attr("tirx.noalias", True)


@cache
def compiled(dtype: str, contract: bool, lanes: int, cpu: str = "native", names: tuple[str, ...] = tuple(sorted(FUNCTIONS))) -> Any:
    return compile_functions({f"own_{n}": kernel(n, dtype, lanes) for n in names}, resolve_target(Target(cpu=cpu), contract).dict())


def aligned(dtype: str) -> Array:
    memory = np.zeros(SIZE * 8 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + SIZE * np.dtype(dtype).itemsize].view(dtype)


def run(module: Any, name: str, *xs: Array) -> Array:
    dtype = str(xs[0].dtype)
    places, out = [aligned(dtype) for _ in xs], aligned(dtype)
    arguments = [as_tensor(p) for p in (*places, out)]
    result = np.empty_like(xs[0])
    for start in range(0, xs[0].size, SIZE):
        for place, x in zip(places, xs, strict=True):
            part = x[start : start + SIZE]
            place[: part.size] = part
        module[f"own_{name}"](*arguments)
        result[start : start + SIZE] = out[: min(SIZE, xs[0].size - start)]
    return result


def ulps(got: Array, true: Array) -> Array:
    """Distance in units in the last place of the type of `got`; infinite where NaN, an infinity or the sign of a zero is wrong."""
    info, wide = np.finfo(got.dtype), true.dtype.type
    with np.errstate(all="ignore"):
        unit = np.ldexp(wide(1), np.maximum(np.frexp(true)[1] - 1, info.minexp) - info.nmant)
        rounded = true.astype(got.dtype)
        distance = np.abs(got.astype(true.dtype) - true) / unit
        at_edge = np.isinf(got) & (got * true > 0) & (np.abs(true) >= wide(info.max))     # past the largest number, one place from infinity
        distance = np.where(np.isinf(got) | np.isinf(rounded), np.where((got == rounded) | at_edge, 0, np.inf), distance)
        distance = np.where(np.isnan(got) | np.isnan(true), np.where(np.isnan(got) == np.isnan(true), 0, np.inf), distance)
        return np.where((true == 0) & ((got != 0) | (np.signbit(got) != np.signbit(true))), np.inf, distance)


def agrees(name: str, got: Array, true: Array, *xs: Array, bound: float | None = None) -> None:
    distance = ulps(got, true)
    worst = int(np.argmax(distance))
    where = f"{name}{tuple(float(x[worst]) for x in xs)}"
    assert distance[worst] <= (bound or BOUND[name]), f"{where} is {got[worst]!r}, not {true[worst]!r}: {distance[worst]:.3f} ulp"


SPECIAL = [
    0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 2.5, -2.5, 1e-45, -1e-45, 1e30, -1e30, 1e-30,
    3.4e38, 16777216.0, 16777215.0, 88.72, 88.73, -87.4, -103.9, -104.1, 128.0, 127.99999, -149.0, -150.0, 89.4, 89.5, -89.5,
]  # fmt: skip


@cache
def points() -> Array:
    """Bit patterns at equal distances (2,300 for each sign and exponent) and the ranges where the functions bend, by equal steps."""
    patterns = np.arange(0, 2**32, 7283, dtype=np.uint64).astype(np.uint32).view(np.float32)
    ranges = [np.linspace(a, b, 60001) for a, b in ((-110, 110), (-10, 10), (-1.1, 1.1), (0.4, 2.5))]
    return np.concatenate([patterns, np.array(SPECIAL, np.float32), *(r.astype(np.float32) for r in ranges)])


@cache
def truth(name: str) -> Array:
    with np.errstate(all="ignore"):
        return REFERENCE[name](points().astype(np.float64))


@pytest.mark.parametrize("contract", [True, False])
@pytest.mark.parametrize("name", UNARY)
def test_float32_everywhere(name: str, contract: bool) -> None:
    agrees(name, run(compiled("float32", contract, 16), name, points()), truth(name), points())


@pytest.mark.parametrize("lanes", [1, 4])
def test_other_numbers_of_lanes(lanes: int) -> None:
    module = compiled("float32", True, lanes)
    for name in UNARY:
        agrees(name, run(module, name, points()[::5]), truth(name)[::5], points()[::5])


@cache
def pairs() -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    some = np.array(SPECIAL, np.float32)
    x, y = (a.ravel() for a in np.meshgrid(some, some))
    n = 200_000
    any_ = [rng.integers(0, 2**32, n, dtype=np.uint64).astype(np.uint32).view(np.float32) for _ in range(2)]
    bases = [np.abs(any_[0]), rng.uniform(0, 10, n), rng.uniform(0.9, 1.1, n), rng.integers(-20, 20, n)]
    exponents = [any_[1], rng.uniform(-40, 40, n), rng.uniform(-1000, 1000, n), rng.integers(-20, 20, n)]
    return (np.concatenate([x, any_[0], *(b.astype(np.float32) for b in bases)]),
            np.concatenate([y, any_[1], *(e.astype(np.float32) for e in exponents)]))  # fmt: skip


@pytest.mark.parametrize("contract", [True, False])
@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_two_arguments(name: str, contract: bool) -> None:
    x, y = pairs()
    with np.errstate(all="ignore"):
        true = REFERENCE[name](x.astype(np.float64), y.astype(np.float64))
    agrees(name, run(compiled("float32", contract, 16), name, x, y), true, x, y)


def test_exact_cases_are_exact() -> None:
    module = compiled("float32", True, 16)
    whole = np.arange(-149, 128).astype(np.float32)
    powers = np.ldexp(np.float32(1), np.arange(-149, 128))
    assert np.array_equal(run(module, "exp2", whole), powers)
    assert np.array_equal(run(module, "log2", powers), whole)
    assert np.array_equal(run(module, "log10", np.float32(10) ** np.arange(11, dtype=np.float32)), np.arange(11, dtype=np.float32))
    base, exponent = (a.ravel().astype(np.float32) for a in np.meshgrid(np.arange(-9, 10), np.arange(7)))
    assert np.array_equal(run(module, "pow", base, exponent), base.astype(np.int64) ** exponent.astype(np.int64))


@pytest.mark.skipif(not EXTENDED, reason="long double is no wider than double here")
@pytest.mark.parametrize("contract", [True, False])
@pytest.mark.parametrize("name", OWN64)
def test_float64(name: str, contract: bool) -> None:
    rng = np.random.default_rng(5)
    n = 20_000
    edges = [709.78, 709.79, 710.4, 710.5, -745.1, -745.2, -746.0, 1024.0, 1023.999, -1074.0, -1075.0, 5e-324, -5e-324]
    patterns = [rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64), rng.choice([-1, 1], n) * 10.0 ** rng.uniform(-12, 3, n)]
    x = np.concatenate([np.array(SPECIAL + edges), *patterns, *(rng.uniform(a, b, n) for a, b in ((-750, 750), (-3, 3), (0.4, 2.5)))])
    with np.errstate(all="ignore"):
        true = REFERENCE[name](x.astype(np.longdouble))
    agrees(name, run(compiled("float64", contract, 8, names=OWN64), name, x), true, x)


def test_the_other_functions_of_float64_are_the_librarys() -> None:
    names = tuple(sorted(FUNCTIONS - set(OWN64)))
    module = compiled("float64", True, 8, names=names)
    rng = np.random.default_rng(6)
    x, y = rng.uniform(0.01, 0.99, 1000), rng.uniform(-3, 3, 1000)
    for name in names:
        args = (x, y)[: ARGUMENTS[name]]
        agrees(name, run(module, name, *args), REFERENCE[name](*args), *args, bound=4)


# ---------------------------------------------------------------- code
@pytest.mark.parametrize(("cpu", "register"), [("skylake-avx512", "zmm"), ("haswell", "ymm")])
def test_the_code_is_vector_code_without_calls(cpu: str, register: str) -> None:
    text = str(compiled("float32", True, 16, cpu).mod.inspect_source("asm"))
    for name in sorted(FUNCTIONS):
        body = re.search(rf"^own_{name}_compute_:$(.*?)^\.Lfunc_end", text, re.M | re.S)
        assert body is not None
        called = set(re.findall(r"\bcallq?\s+(\w+)", body[1]))
        for_huge_angles = {f"{name}f"} if name in ("sin", "cos", "tan") else set()
        assert called <= for_huge_angles, f"{name} calls {called}"
        assert body[1].count(register) > 10, name


def test_definitions_are_the_same_in_any_order() -> None:
    wanted = [("exp", "float32", 16), ("sin", "float64", 8), ("pow", "float32", 1)]
    assert definitions(wanted) == definitions(wanted[::-1] + wanted)
    assert all(f"@{symbol(*w)}(" in definitions(wanted) for w in wanted)


def test_nested_and_shared_functions_through_the_compiler() -> None:
    """As plain TVM expressions, these take minutes to compile."""
    def nested(x):  # type: ignore[no-untyped-def]
        e = fl.exp(x)
        deep = fl.tanh(fl.log1p(fl.exp(-fl.abs(fl.erf(fl.sigmoid(x))))))
        return fl.where(x > 0, fl.log(e) * e + e, fl.expm1(x)) + fl.pow(fl.abs(deep), fl.cos(e)) ** 3

    graph = fl.trace(nested, None, {"x": fl.f32(999)})
    made = driver.compile_graph(graph, None, cache=False)
    model = driver.assemble(made.manifest("nested"), made.library, {})
    x = np.random.default_rng(7).uniform(-3, 3, 999).astype(np.float32)
    np.testing.assert_allclose(np.asarray(model(x)), graph.run(x), rtol=3e-6, atol=1e-6)
    functions = {k.name: emit(k) for k in made.variants[0].kernels}
    assembly = str(compile_functions(functions, made.target.dict()).mod.inspect_source("asm"))
    assert not re.search(r"\bcallq?\s+(exp|log|tanh|erf|pow|log1p|expm1)f?@", assembly)
