"""fl.finfo, iinfo, result_type, can_cast, isdtype and isin beside NumPy."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.dtypes import DTYPES, FLOATS, INTEGERS, promote
from operator_running import numbers, refusal, run, same


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_float_types_hold(dtype: str) -> None:
    found = fl.finfo(dtype)
    one = np.asarray(1, dtype)
    assert found.bits == 8 * one.dtype.itemsize and found.dtype.dtype_name == dtype and found.min == -found.max
    assert float(one + np.asarray(found.eps, dtype)) == 1 + found.eps
    if dtype in ("float16", "float32", "float64"):
        want = np.finfo(dtype)
        assert (found.eps, found.max, found.smallest_normal) == (want.eps, want.max, want.smallest_normal)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_what_integer_types_hold(dtype: str) -> None:
    found, want = fl.iinfo(np.zeros(3, dtype)), np.iinfo(dtype)
    assert (found.bits, found.max, found.min) == (want.bits, want.max, want.min)


def test_the_type_of_a_result_is_the_operators() -> None:
    for a in DTYPES:
        for b in DTYPES:
            both = promote(a, False, b, False)
            if both is None:
                with pytest.raises(fl.AlgorithmError, match="A104"):
                    fl.result_type(a, b)
            else:
                assert fl.result_type(a, b) == fl.DType(both[0])
            assert fl.can_cast(a, b) == (both is not None and both[0] == b)
    assert fl.result_type(fl.bf16, 1.0) == fl.bf16 and fl.result_type(2, 1.5) == fl.f32 and fl.result_type(True, fl.u8, 3) == fl.u8
    got: list[Any] = []
    run(lambda x: got.append((fl.result_type(x, fl.f64), fl.finfo(x).bits)) or x, numbers(2))
    assert got == [(fl.f64, 32)]


def test_kinds() -> None:
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "numeric"]
    assert [fl.isdtype(fl.u8, k) for k in kinds] == [False, False, True, True, False, True]
    assert [fl.isdtype("bool", k) for k in kinds] == [True, False, False, False, False, False]
    assert fl.isdtype(fl.bf16, ("bool", "real floating")) and not fl.isdtype(fl.bf16, fl.f32) and fl.isdtype(np.float32, fl.f32)


def test_what_is_no_such_type_is_refused() -> None:
    for call, sentence in (
        (lambda: fl.finfo(fl.i8), "fl.iinfo"),
        (lambda: fl.iinfo(fl.f16), "fl.finfo"),
        (lambda: fl.isdtype(fl.i8, "real integer"), "no such kind"),
        (lambda: fl.result_type(), "at least one"),
    ):
        with pytest.raises(fl.AlgorithmError, match=sentence):
            call()


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4)])
@pytest.mark.parametrize("among", [(0,), (1,), (2, 3)])
def test_isin(shape: tuple[int, ...], among: tuple[int, ...]) -> None:
    g = np.random.default_rng(len(shape))
    x, y = g.integers(0, 4, shape).astype(np.int32), g.integers(0, 4, among).astype(np.int32)
    for invert in (False, True):
        same(run(lambda x, y, invert=invert: fl.isin(x, y, invert=invert), x, y), np.isin(x, y, invert=invert))
    nan = np.float32([np.nan, 1])
    same(run(lambda x, y: fl.isin(x, y), nan, nan), np.isin(nan, nan))
    assert refusal(lambda x, y: fl.isin(x, y), x, nan).code == "A104"
