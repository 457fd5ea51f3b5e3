"""Expression nodes: sharing, types, folding and refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.dtypes import DTYPES, FLOATS, INTEGERS, canonical, kind, promote
from fluorite.algo.errors import AlgorithmError
from fluorite.algo.expr import Const, Op, Read, as_expr, axis, binary, cast, power, strong, unary, where
from fluorite.algo.extent import symbol
from fluorite.algo.printing import show
from fluorite.algo.rewriting import reads, substitute, walk
from fluorite.algo.types import f32

ROW, COLUMN = axis("i"), axis("j")


def read(dtype: str, source: int = 1) -> Read:
    made: Read = Read(source, (ROW,), dtype)
    return made


# ---------------------------------------------------------------- nodes
def test_equal_expressions_are_one_node() -> None:
    assert read("float32") is read("float32") and (ROW + 1) * 2 is (ROW + 1) * 2
    assert as_expr(1) is not as_expr(1.0) and as_expr(True) is not as_expr(1) and as_expr(0.0) is not as_expr(-0.0)
    assert axis("i") is not ROW and read("float32") is not read("float32", 2)
    assert as_expr(math.nan) is as_expr(float("nan"))


def test_comparison_builds_and_has_no_truth_value() -> None:
    e = read("float32") == 1
    assert isinstance(e, Op) and e.op == "eq" and e.dtype == "bool"
    for wrong in (lambda: bool(e), lambda: list(ROW), lambda: 1 if ROW < 3 else 2, lambda: ROW in [COLUMN, ROW]):
        with pytest.raises(AlgorithmError) as caught:
            wrong()
        assert caught.value.problems[0].code == "A102"


def test_walk_visits_each_node_once_children_first() -> None:
    shared = read("float32") * 2
    nodes = list(walk(shared + shared))
    place = {node: n for n, node in enumerate(nodes)}
    assert len(nodes) == len(place) and nodes[-1] is shared + shared and place[shared] > place[read("float32")] > place[ROW]
    assert len(reads(shared + shared)) == 1 and reads(shared + shared)[0] is read("float32")
    assert substitute(shared, {ROW: COLUMN + 1}) is Read(1, (COLUMN + 1,), "float32") * 2


# ---------------------------------------------------------------- types
JOINED = {
    frozenset({"float16", "bfloat16"}): "float32", frozenset({"float8_e4m3fn", "float8_e5m2"}): "float16",
    **{frozenset({small, wide}): wide for small in ("float8_e4m3fn", "float8_e5m2") for wide in ("float16", "bfloat16")},
}  # fmt: skip


@pytest.mark.parametrize("pair", JOINED)
def test_two_narrow_floats_join_in_the_smallest_type_that_holds_both(pair: frozenset[str]) -> None:
    a, b = pair
    assert promote(a, False, b, False) == promote(b, False, a, False) == (JOINED[pair], False)
    assert binary("max", read(a), read(b, 2)).dtype == JOINED[pair]


@pytest.mark.parametrize(("a", "b"), [p for p in itertools.product(DTYPES, DTYPES) if frozenset(p) not in JOINED])
def test_promotion_is_the_array_apis(a: str, b: str) -> None:
    """Within a kind as NumPy; a mixture of kinds, or of int64 and uint64, has no common type."""
    joined = promote(a, False, b, False)
    numpy = np.promote_types(a, b).name if kind(a) == kind(b) else ""
    if kind(a) == kind(b) and kind(numpy) == kind(a):
        assert joined == (numpy, False)
        assert binary("max", read(a), read(b, 2)).dtype == numpy
    else:
        assert joined is None
        with pytest.raises(AlgorithmError) as caught:
            binary("max", read(a), read(b, 2))
        assert caught.value.problems[0].code == "A104" and "fl.cast" in caught.value.problems[0].try_[0]
    assert promote(b, False, a, False) == joined


@pytest.mark.parametrize("dtype", DTYPES)
def test_python_scalars_are_weak(dtype: str) -> None:
    x = read(dtype)
    order = ("bool", "int", "float")
    for scalar in (True, 3, 2.5):
        scalar_kind = {bool: "bool", int: "int", float: "float"}[type(scalar)]
        if order.index(scalar_kind) <= order.index(kind(dtype)):
            e = binary("max", x, scalar)
            assert (e.dtype, e.weak) == (dtype, False) and binary("max", scalar, x).dtype == dtype
        elif kind(dtype) == "bool":
            assert binary("max", x, scalar).dtype == {"int": "int32", "float": "float32"}[scalar_kind]
        else:
            with pytest.raises(AlgorithmError):
                binary("max", x, scalar)


def test_what_operators_give() -> None:
    a, b, f = read("int8"), read("int8", 2), read("float64")
    assert (a / b).dtype == "float32" and (f / 2).dtype == "float64" and (a + b).dtype == "int8" and (a < b).dtype == "bool"
    assert (read("bool") + read("bool", 2)).dtype == "int32" and (read("bool") & read("bool", 2)).dtype == "bool"
    assert unary("exp", a).dtype == "float32" and unary("exp", f).dtype == "float64" and unary("floor", a).dtype == "int8"
    assert where(a < b, a, 0).dtype == "int8" and strong(ROW + 0.5).dtype == "float32" and strong(as_expr(2)).dtype == "int32"
    assert (ROW + a).dtype == "int8" and not (ROW + a).weak and (ROW * 2 + symbol("n")).weak


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: read("float32") << 1,
        lambda: read("float32") & read("float32"),
        lambda: ~read("float32"),
        lambda: where(read("int32"), 1, 2),
        lambda: as_expr("x"),
        lambda: as_expr(np.zeros(3)),
        lambda: read("int32") + 0.5,
        lambda: cast(ROW, "complex64"),
        lambda: canonical("half"),
    ],
)
def test_refusals_name_a_code(wrong: Any) -> None:
    with pytest.raises(AlgorithmError) as caught:
        wrong()
    assert caught.value.problems[0].code in ("A101", "A103", "A104") and caught.value.problems[0].why


def test_canonical_names() -> None:
    assert [canonical(d) for d in (np.float32, np.dtype("int8"), "uint16", bool, int, float, f32)] == [
        "float32",
        "int8",
        "uint16",
        "bool",
        "int32",
        "float32",
        "float32",
    ]
    assert set(FLOATS) | set(INTEGERS) | {"bool"} == set(DTYPES)


# ---------------------------------------------------------------- folding and printing
def test_index_arithmetic_folds() -> None:
    assert as_expr(7) // 2 is as_expr(3) and as_expr(-7) // 2 is as_expr(-4) and as_expr(7) % 0 is as_expr(0)
    assert ROW + 0 is ROW and ROW * 1 is ROW and 0 + ROW is ROW and ROW // 1 is ROW
    assert isinstance(read("float32") + 0, Op), "adding 0 turns -0.0 into 0.0, so it stays"


def test_powers() -> None:
    x = read("float32")
    squared = power(x, 2)
    assert squared is x * x and power(x, 4) is squared * squared and power(x, 1) is x
    assert show(power(x, 0.5)) == "sqrt(%1[i])" and isinstance(power(x, -1), Op) and power(x, -1).op == "pow"


@pytest.mark.parametrize(
    ("text", "e"),
    [
        ("(i + 1) * 2", (ROW + 1) * 2),
        ("i + j * 2", ROW + COLUMN * 2),
        ("i - (j - 1)", ROW - (COLUMN - 1)),
        ("i < j & j < 3", (ROW < COLUMN) & (COLUMN < 3)),
        ("%1[i] / 3.0", read("float32") / 3),
        ("float64(%1[i])", cast(read("float32"), "float64")),
        ("max(%1[i], 0.0)", binary("max", read("float32"), 0)),
        ("where(i < 3, %1[i], 0.0)", where(ROW < 3, read("float32"), 0.0)),
        ("i + n", ROW + symbol("n")),
        ("-0.5", as_expr(-0.5)),
    ],
)
def test_expressions_print_as_written(text: str, e: Any) -> None:
    assert show(e) == text


def test_constants_keep_their_kind() -> None:
    assert isinstance(cast(2.7, "int32"), Const) and cast(2.7, "int32").value == 2 and cast(2, "float32").value == 2.0
    assert cast(float("nan"), "int32").value == 0 and as_expr(2**40).dtype == "int64" and as_expr(np.float32(2)).weak is False


WEAK = {
    "product": (lambda i: i * 0.1, lambda i: i * 0.1),
    "numbers": (lambda i: i + (5 - 1.3), lambda i: i + (5 - 1.3)),
    "quotient": (lambda i: i / 3, lambda i: i / 3),
    "root": (lambda i: fl.sqrt(i * 0.7), lambda i: np.sqrt(i * 0.7)),
    "choice": (lambda i: fl.where(i * 0.1 > 0.3, i * 0.1, 0.3), lambda i: np.where(i > 3, i * 0.1, 0.3)),
    "shared": (lambda i: power(power(i * 0.001 + 1, 16), 16), lambda i: (i * 0.001 + 1) ** 256),
}


@pytest.mark.parametrize("written", WEAK)
def test_arithmetic_on_numbers_and_positions_alone_is_computed_in_the_type_it_meets(written: str) -> None:
    fn, meaning = WEAK[written]

    def f(x: fl.f64[fl.Tensor, "n"], y: fl.f32[fl.Tensor, "n"]) -> Any:
        stages = (lambda i: x[i] * fn(i), lambda i: y[i] * fn(i), lambda i: fl.cast(fn(i), fl.f64))
        return [fl.stage(body, extents={"i": x.shape[0]}) for body in (*stages, fn)]

    x, i = np.linspace(1, 2, 7), np.arange(7)
    double, single, asked, alone = fl.trace(f).run(x, np.float32(x))
    assert single.dtype == alone.dtype == np.float32
    np.testing.assert_allclose(double, x * meaning(i), rtol=1e-13)
    np.testing.assert_allclose(asked, meaning(i), rtol=1e-13)
    np.testing.assert_allclose(single, x * meaning(i), rtol=2e-5)
