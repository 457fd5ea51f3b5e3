"""Complex numbers against NumPy's: arithmetic, infinities, types, control flow; what is refused."""

from __future__ import annotations

import operator
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, graph_of, near, numbers, refusal, run
from operator_running import complex_numbers as z

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
