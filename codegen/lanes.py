"""Straight-line arithmetic on floats and on their bits, for functions that every lane of a vector evaluates in the same way.

No branches, no memory, no calls. Every step must hold whether or not the code generator contracts a product and a sum into one fused operation.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .tvm_adapter import tirx


class Format(NamedTuple):
    """A binary float type: widths in bits, the integer types of its size."""

    bits: int
    mantissa: int
    bias: int
    signed: str
    unsigned: str


FORMATS = {"float32": Format(32, 23, 127, "int32", "uint32"), "float64": Format(64, 52, 1023, "int64", "uint64")}


class Lanes:
    """A function's body in the making. What is used more than once is bound by `let`; `around` puts the bindings around the result."""

    def __init__(self, dtype: str) -> None:
        self.dtype, self.format = dtype, FORMATS[dtype]
        self.magic = 1.5 * 2.0**self.format.mantissa
        """Adding it rounds to a whole number, which then stands in the low bits."""
        self.bound: list[tuple[Any, Any]] = []

    def __call__(self, number: float) -> Any:
        return tirx.FloatImm(self.dtype, number)

    def let(self, value: Any) -> Any:
        """A variable for an integer or float. TVM's analysis of sets fails on vectors of truth values: write comparisons out wherever they are used."""
        var = tirx.Var(f"t{len(self.bound)}", value.ty.dtype)
        self.bound.append((var, value))
        return var

    def around(self, result: Any) -> Any:
        for var, value in reversed(self.bound):
            result = tirx.Let(var, value, result)
        return result

    # ------------------------------------------------------------ numbers
    def polynomial(self, x: Any, coefficients: Sequence[float]) -> Any:
        """By Horner's rule, the constant term first."""
        total: Any = self(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = total * x + self(c)
        return total

    def at_least(self, x: Any, low: float) -> Any:
        """The larger; NaN stays NaN."""
        return tirx.Select(tirx.LT(x, self(low)), self(low), x)

    def at_most(self, x: Any, high: float) -> Any:
        return tirx.Select(tirx.GT(x, self(high)), self(high), x)

    def fixed(self, x: Any) -> Any:
        """x rounded to a whole number plus `magic`, for |x| below a quarter of that."""
        return self.let(x + self(self.magic))

    def whole(self, fixed: Any) -> Any:
        return self.let(fixed - self(self.magic))

    # ------------------------------------------------------------ bits
    def unsigned(self, x: Any) -> Any:
        return tirx.reinterpret(self.format.unsigned, x)

    def signed(self, x: Any) -> Any:
        return tirx.reinterpret(self.format.signed, x)

    def float(self, bits: Any) -> Any:
        return tirx.reinterpret(self.dtype, bits)

    def natural(self, number: int) -> Any:
        return tirx.const(number, self.format.unsigned)

    def integer(self, number: int) -> Any:
        return tirx.const(number, self.format.signed)

    def exponent(self, fixed: Any) -> Any:
        """The whole number n in `fixed`, at the place of the exponent: n << mantissa."""
        return self.let(tirx.shift_left(self.unsigned(fixed), self.natural(self.format.mantissa)))

    def power(self, exponent: Any) -> Any:
        """2**n from `exponent`, where it is a normal number."""
        return self.float(exponent + self.natural(self.format.bias << self.format.mantissa))

    def scales(self, fixed: Any) -> tuple[Any, Any]:
        """Two powers of 2 whose product is 2**n. Together they reach subnormal numbers, rounding once, and infinity."""
        n = self.exponent(fixed)
        m = self.format.mantissa
        half = tirx.shift_left(tirx.shift_right(self.signed(n), self.integer(m + 1)), self.integer(m))
        first = self.let(self.unsigned(half))
        return self.power(first), self.power(n - first)

    def sign(self, x: Any) -> Any:
        return tirx.bitwise_and(self.signed(x), self.integer(-(1 << (self.format.bits - 1))))

    def signed_as(self, magnitude: Any, x: Any) -> Any:
        """A number that is not negative, with the sign of x."""
        return self.float(tirx.bitwise_or(self.signed(magnitude), self.sign(x)))
