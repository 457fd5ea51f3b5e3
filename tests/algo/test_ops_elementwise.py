from __future__ import annotations

import math
from typing import Any

import fluorite as fl
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_running import both, graph_of, near, numbers, refusal, run, same
from scipy import special

REAL = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "atan": np.arctan, "erf": special.erf, "sigmoid": special.expit, "square": np.square, "floor": np.floor,
    "ceil": np.ceil, "round": np.round, "trunc": np.trunc, "abs": np.abs, "sign": np.sign, "negative": np.negative,
    "reciprocal": np.reciprocal,
}  # fmt: skip
POSITIVE = {"log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x)}
UNIT = {"asin": np.arcsin, "acos": np.arccos}
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum, "equal": np.equal,
    "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
PYTHON = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y, "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y, ">": lambda x, y: x > y, ">=": lambda x, y: x >= y, "==": lambda x, y: x == y, "!=": lambda x, y: x != y,
}  # fmt: skip
WHOLE = {
    "//": lambda x, y: x // y, "%": lambda x, y: x % y, "&": lambda x, y: x & y, "|": lambda x, y: x | y, "^": lambda x, y: x ^ y,
    "<<": lambda x, y: x << y, ">>": lambda x, y: x >> y,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", [*REAL, *POSITIVE, *UNIT])
def test_real_functions_on_tensors_and_inside_stages(name: str, dtype: str) -> None:
    x = numbers(3, 5, dtype=dtype)
    if name in POSITIVE:
        x = np.abs(x) + np.float32(0.1)
    elif name in UNIT:
        x = np.tanh(x)
    want = {**REAL, **POSITIVE, **UNIT}[name](x)
    fn = getattr(fl, name)
    on_tensor = run(lambda x: fn(x), x)
    in_stage = run(lambda x: fl.stage(lambda i, j: fn(x[i, j])), x)
    assert on_tensor.dtype == dtype
    near(on_tensor, want, 5e-6 if dtype == "float32" else 1e-12)
    same(in_stage, on_tensor)


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions(name: str) -> None:
    x, y = numbers(2, 1, 5), numbers(3, 5, seed=1)
    y[0] = 0
    same(both(lambda x, y: getattr(fl, name)(x, y), x, y), BINARY[name](x, y))


@pytest.mark.parametrize("symbol", PYTHON)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_python_operators(symbol: str, dtype: str) -> None:
    fn = PYTHON[symbol]
    x, y = numbers(4, 3, dtype=dtype), numbers(3, seed=1, dtype=dtype) + np.array(1, dtype)
    y[y == 0] = 1
    want = fn(x, y)
    if symbol == "/" and "int" in dtype:
        want = x.astype("float32") / y.astype("float32")
    same(run(lambda x, y: fn(x, y), x, y), want)


@pytest.mark.parametrize("symbol", WHOLE)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_integer_operators(symbol: str, dtype: str) -> None:
    x, y = numbers(7, dtype=dtype), np.abs(numbers(7, seed=1, dtype=dtype)) % np.array(5, dtype) + np.array(1, dtype)
    same(run(lambda x, y: WHOLE[symbol](x, y), x, y), WHOLE[symbol](x, y))


def test_reflected_and_unary_operators() -> None:
    x = numbers(5)
    assert np.all(run(lambda x: 1 - x, x) == 1 - x)
    near(run(lambda x: 2 / x, x), 2 / x)
    near(run(lambda x: 2**x, x), 2**x)
    same(run(lambda x: -x + abs(x), x), -x + np.abs(x))
    same(run(lambda x: ~(x > 0), x), ~(x > 0))
    same(run(lambda x: np.float32(3) * x, x), np.float32(3) * x)
    k = np.array([1, 2, 3], np.int32)
    same(run(lambda k: 1 << k, k), 1 << k)
    same(run(lambda k: 7 & k, k), 7 & k)


@given(st.integers(0, 4), st.data())
@settings(max_examples=30, deadline=None)
def test_broadcasting_is_numpys(rank: int, data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3]), min_size=rank, max_size=rank))
    cut = data.draw(st.integers(0, rank))
    a = [n if data.draw(st.booleans()) else 1 for n in shape]
    b = [n if data.draw(st.booleans()) else 1 for n in shape][cut:]
    x, y = numbers(*a), numbers(*b, seed=1)
    same(both(lambda x, y: x - y, x, y), x - y)


def test_empty_tensors() -> None:
    x = numbers(0, 3)
    same(run(lambda x: fl.relu(x) + 1, x), x)


def test_weak_scalars_lists_and_arrays() -> None:
    k = np.array([1, 2, 3], np.int64)
    same(run(lambda k: k + 1, k), k + 1)
    same(run(lambda k: k * [1, 2, 3], k), k * k)
    x = numbers(3)
    same(run(lambda x: x * [1, 2, 3], x), x * np.array([1, 2, 3], np.float32))
    same(run(lambda x: x + np.ones((2, 1), np.float32), x), x + np.ones((2, 1), np.float32))
    same(run(lambda x: np.ones((2, 1), np.float32) - x, x), np.ones((2, 1), np.float32) - x)


def test_symbolic_extents_are_numbers() -> None:
    x = numbers(5)
    same(run(lambda x: x * x.shape[0], x, symbolic=True), x * np.float32(5))
    same(run(lambda x: fl.stage(lambda i: x[i] / x.shape[0]), x, symbolic=True), x / np.float32(5))


def test_choices() -> None:
    x = numbers(4, 4)
    same(both(lambda x: fl.where(x > 0, x, 0), x), np.where(x > 0, x, np.float32(0)))
    same(run(lambda x: fl.clamp(x, -0.5, 0.5), x), np.clip(x, np.float32(-0.5), np.float32(0.5)))
    same(run(lambda x: fl.clamp(x, 0.25), x), np.maximum(x, np.float32(0.25)))
    same(run(lambda x: fl.clamp(x, None, 0.25), x), np.minimum(x, np.float32(0.25)))
    y = numbers(4, 4, seed=3)
    near(run(lambda x, y: fl.atan2(x, y), x, y), np.arctan2(x, y))
    near(run(lambda x: fl.pow(fl.abs(x), 0.3), x), np.abs(x) ** np.float32(0.3))
    same(run(lambda x: x**3, x), x * (x * x))


def test_tests_on_values() -> None:
    x = np.array([0.0, np.nan, np.inf, -np.inf, 1.0], np.float32)
    same(run(lambda x: fl.isnan(x), x), np.isnan(x))
    same(run(lambda x: fl.isinf(x), x), np.isinf(x))
    same(run(lambda x: fl.isfinite(x), x), np.isfinite(x))
    same(run(lambda k: fl.isnan(k), np.arange(3)), np.zeros(3, bool))
    same(run(lambda k: fl.isfinite(k), np.arange(3)), np.ones(3, bool))
    same(run(lambda x: fl.logical_not(x), x), np.logical_not(x))


def test_casts() -> None:
    x = np.array([-1.7, 2.5, 300.0, np.nan, -np.inf], np.float32)
    same(run(lambda x: fl.cast(x, fl.u8), x), np.array([0, 2, 255, 0, 0], np.uint8))
    same(run(lambda x: x.astype("int32"), x[:3]), np.array([-1, 2, 300], np.int32))
    k = np.array([-5, 5, 300], np.int32)
    same(run(lambda k: fl.saturate(fl.u8, k), k), np.array([0, 5, 255], np.uint8))
    same(run(lambda k: fl.saturate("int8", k), k), np.array([-5, 5, 127], np.int8))
    same(run(lambda k: fl.cast(k, fl.u8), k), k.astype(np.uint8))
    same(run(lambda k: fl.saturate(fl.i8, k), k.astype(np.uint32)), np.array([127, 5, 127], np.int8))
    same(run(lambda k: fl.stage(lambda i: fl.saturate(fl.u8, k[i])), k), np.array([0, 5, 255], np.uint8))
    same(run(lambda k: fl.cast(k, bool), k), np.array([True] * 3))
    assert refusal(lambda x: fl.cast(x, "i8"), x).try_ == ("fl.i8",)
    assert fl.trace(lambda x: fl.cast(x, fl.i32), inputs={"x": fl.f32(3)}).stages[0].path.endswith("/astype")


def test_saturate_clamps_into_narrower_floats() -> None:
    """A cast makes infinity, or NaN, of what is too large; infinity itself is clamped too. Widening changes nothing."""
    floats = ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64")
    for source in ("int8", "uint64", "int64", *floats):
        own: Any = ml_dtypes.finfo(np.dtype(source)) if source in floats else np.iinfo(source)
        beyond = [460, -57344, 65504, 65520, 1e38, np.inf, -np.inf, np.nan] if source in floats else []
        with np.errstate(over="ignore"):
            x = np.concatenate([np.array(some, np.dtype(source)) for some in ([0, 1, 100], [own.min, own.max], beyond)])
        for to in floats:
            most = float(ml_dtypes.finfo(np.dtype(to)).max)
            wide = x.astype(np.float64)
            wanted = wide if float(own.max) <= most else np.clip(wide, -most, most)
            found = run(lambda x, to=to: fl.saturate(to, x), x)
            assert found.dtype == to
            np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(to).astype(np.float64), f"{source} to {to}")


def test_operands_by_keyword_and_operators_as_models() -> None:
    x, y = numbers(3, 4), numbers(4)
    same(run(lambda x, y: fl.maximum(x=x, y=y), x, y), np.maximum(x, y))
    same(run(lambda x, y: fl.clip(x, max=y), x, y), np.minimum(x, y))
    near(run(lambda x: fl.leaky_relu(x, slope=0.3), x), np.where(x > 0, x, np.float32(0.3) * x))
    near(run(lambda x: fl.stage(lambda i, j: fl.gelu(x=x[i, j], approximate="tanh")), x), run(lambda x: fl.gelu(x, approximate="tanh"), x))
    for operator, wanted in ((fl.relu, np.maximum(x, 0)), (fl.softmax, special.softmax(x, -1)), (fl.cumulative_sum, np.cumsum(x))):
        near(run(operator, x if operator is not fl.cumulative_sum else x.ravel()), wanted)
    same(run(fl.add, x, y), x + y)


def test_activations() -> None:
    x = numbers(50) * np.float32(4)
    near(run(lambda x: fl.relu(x), x), np.maximum(x, 0))
    near(run(lambda x: fl.leaky_relu(x, slope=0.2), x), np.where(x > 0, x, 0.2 * x))
    near(run(lambda x: fl.elu(x, alpha=1.5), x), np.where(x > 0, x, 1.5 * np.expm1(x)))
    near(run(lambda x: fl.gelu(x), x), x * special.ndtr(x))
    near(run(lambda x: fl.gelu(x, approximate="tanh"), x), 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), 1e-5)
    near(run(lambda x: fl.silu(x), x), x * special.expit(x))
    near(run(lambda x: fl.softplus(x), np.append(x, np.float32(200))), np.append(np.log1p(np.exp(x)), 200))
    assert "try: none, tanh" in refusal(lambda x: fl.gelu(x, approximate="erf"), x).text()


def test_names_come_from_the_first_operand_that_is_not_stretched() -> None:
    def mixed(x: object, y: object) -> object:
        return x + y  # type: ignore[operator]

    specs = {"x": fl.f32("rows=1", 3, "z"), "y": fl.f32("y", "n", "columns=3", "m")}
    specs["x"] = fl.Spec("float32", ("rows", None, "z"), (1, 3, specs["y"].shape[3]))
    stage = fl.trace(mixed, inputs=specs).stages[0]
    assert stage.path == "mixed/add"
    assert stage.axis_names == ("y", "n", "columns", "z")


def test_unnamed_axes_are_called_after_their_position_and_names_stay_unique() -> None:
    specs = {"x": fl.Spec("float32", (None, "i0", "i0"), (2, 3, 4))}
    assert fl.trace(lambda x: fl.exp(x), inputs=specs).stages[0].axis_names == ("i0_", "i0", "i2")


def test_the_name_keyword_names_the_stage() -> None:
    graph = graph_of(lambda x: fl.relu(fl.exp(x, name="first"), name="second"), numbers(3))
    assert [(s.name, s.op) for s in graph.stages] == [("first", "exp"), ("second", "relu")]
    assert all(s.source.startswith("test_ops_elementwise.py:") for s in graph.stages)


def test_a_rank_0_tensor_is_a_number_inside_a_stage() -> None:
    x, k = numbers(4), np.float32(2)
    same(run(lambda x, k: fl.stage(lambda i: x[i] * k + fl.exp(k) * 0 - (-k)), x, k), x * k + k)
    same(run(lambda k: fl.square(k), k), k * k)


def test_refusals_name_both_shapes_and_the_line() -> None:
    problem = refusal(lambda x, y: x + y, numbers(2, 3), numbers(2, 4))
    assert problem.code == "A301"
    assert "[2, 3]" in problem.asked and "[2, 4]" in problem.asked and "3 and 4" in problem.why
    assert problem.source is not None and problem.source.startswith("test_ops_elementwise.py:")
    assert refusal(lambda x, k: x + k, numbers(3), np.arange(3)).code == "A104"
    assert refusal(lambda k: k + 0.5, np.arange(3)).code == "A104"
    assert refusal(lambda x: x & 1, numbers(3)).code == "A104"
    assert refusal(lambda x: x + "text", numbers(3)).code == "A103"
    assert refusal(lambda x: fl.stage(lambda i: x[i] + x), numbers(3)).code == "A105"
    assert refusal(lambda x: fl.where(x, x, x), numbers(3)).code == "A104"
    assert refusal(lambda k: k * [0.5, 1.0], np.arange(2)).code == "A104"
    assert refusal(lambda x: fl.add(x, ["a"]), numbers(1)).code == "A311"


def test_outside_a_trace_there_are_no_stages() -> None:
    with pytest.raises(fl.AlgorithmError, match="outside a trace"):
        fl.exp(1.0)


def test_a_numpy_array_indexed_by_an_axis_gets_a_sentence() -> None:
    table = numbers(4)
    assert "fl.asarray(table)" in refusal(lambda x: fl.stage(lambda i: x[i] * table[i]), table).text()
    assert refusal(lambda x: fl.stage(lambda i: fl.sum(lambda k: x[i] if range(i) else x[k])), table).code == "A103"
    constant = run(lambda x: (lambda t: fl.stage(lambda i: x[i] * t[i]))(fl.asarray(table)), table)
    same(constant, table * table)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2", "float8_e4m3fn"])
def test_operators_of_several_operations_round_narrow_floats_once(dtype: str) -> None:
    x = np.concatenate([np.linspace(-6, 6, 41), [300, -300, 1000, 0.0, -0.0, 0.01, np.nan, np.inf, -np.inf]]).astype(np.dtype(dtype))
    y = np.roll(x, 7)
    names = "acosh asinh atanh celu elu gelu hardsigmoid hardswish logsigmoid mish quick_gelu selu silu softplus softsign tanhshrink"

    def everything(x: Any, y: Any) -> list[Any]:
        return [*(getattr(fl, n)(x) for n in names.split()), fl.hypot(x, y), fl.logaddexp(x, y), fl.gelu(x, approximate="tanh")]

    wide = run(everything, x.astype(np.float32), y.astype(np.float32))
    for got, want in zip(run(everything, x, y), wide, strict=True):
        assert got.dtype == x.dtype
        same(got.astype(np.float32), want.astype(got.dtype).astype(np.float32))
    inside = run(lambda x: fl.stage(lambda i: fl.gelu(x[i])), x)
    same(inside.astype(np.float32), run(lambda x: fl.gelu(x), x).astype(np.float32))
    assert run(lambda x, y: fl.hypot(x, y), x, y.astype(np.float32)).dtype == np.float32
    assert run(lambda x: fl.hypot(x, 2.5), x).dtype == x.dtype
