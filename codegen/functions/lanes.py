"""LLVM IR text for functions that every lane of a vector evaluates in the same way: a straight line of arithmetic on floats and their bits.

Steps must hold whether or not a product and a sum are contracted into one fused operation, which the code generator does as it likes.
Integers wrap.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Format(NamedTuple):
    """A binary float type: LLVM's names for it and for the integer of its size, widths in bits."""

    name: str
    integer: str
    short: str
    bits: int
    mantissa: int
    bias: int


FORMATS = {"float32": Format("float", "i32", "f32", 32, 23, 127), "float64": Format("double", "i64", "f64", 64, 52, 1023)}
_FORMAT_OF = {f.name: f for f in FORMATS.values()}


class Text:
    """The body of one function on vectors of `lanes` elements, or on scalars: lines in SSA form, and the intrinsics to be declared."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.declared: dict[str, None] = {}
        self.block = "start"

    def type(self, element: str) -> str:
        return element if self.lanes == 1 else f"<{self.lanes} x {element}>"

    def line(self, element: str, code: str) -> Value:
        name = f"%t{len(self.lines)}"
        self.lines.append(f"  {name} = {code}")
        return Value(self, element, name)

    def constant(self, element: str, number: float | int) -> Value:
        literal = _literal(element, number)
        return Value(self, element, literal if self.lanes == 1 else f"splat ({element} {literal})")

    def intrinsic(self, name: str, *args: Value) -> Value:
        element = args[0].element
        form = _FORMAT_OF[element].short
        full = f"@llvm.{name}.{form}" if self.lanes == 1 else f"@llvm.{name}.v{self.lanes}{form}"
        kind = self.type(element)
        self.declared[f"declare {kind} {full}({', '.join(kind for _ in args)})"] = None
        return self.line(element, f"call {kind} {full}({', '.join(f'{kind} {a.name}' for a in args)})")

    def rarely(self, condition: Value, usual: Value, other: Callable[[], Value]) -> Value:
        """`usual`, save in lanes where the condition holds. What the others need is only computed where there is such a lane."""
        anywhere = condition.name
        if self.lanes > 1:
            reduce = f"i1 @llvm.vector.reduce.or.v{self.lanes}i1"
            self.declared[f"declare {reduce}({condition.type})"] = None
            anywhere = self.line("i1", f"call {reduce}({condition.type} {condition.name})").name
        self.declared["declare i1 @llvm.expect.i1(i1, i1)"] = None
        here, number = self.block, len(self.lines)
        expected = self.line("i1", f"call i1 @llvm.expect.i1(i1 {anywhere}, i1 false)")
        self.lines += [f"  br i1 {expected.name}, label %rare{number}, label %done{number}", f"rare{number}:"]
        mixed = condition.where(other(), usual)
        self.block = f"done{number}"
        self.lines += [f"  br label %{self.block}", f"{self.block}:"]
        return self.line(usual.element, f"phi {usual.type} [ {usual.name}, %{here} ], [ {mixed.name}, %rare{number} ]")


def _literal(element: str, number: float | int) -> str:
    if element not in _FORMAT_OF:
        return str(int(number))
    exact = float(number) if element == "double" else struct.unpack("f", struct.pack("f", number))[0]
    return f"0x{struct.unpack('Q', struct.pack('d', exact))[0]:016X}"


class Value:
    """One value per lane. Operators write a line each; comparisons give truth values for `where`."""

    def __init__(self, text: Text, element: str, name: str) -> None:
        self.text, self.element, self.name = text, element, name

    @property
    def type(self) -> str:
        return self.text.type(self.element)

    def _other(self, other: Value | float | int) -> Value:
        return other if isinstance(other, Value) else self.text.constant(self.element, other)

    def _binary(self, code: str, other: Value | float | int, element: str | None = None) -> Value:
        prefix = "f" if self.element in _FORMAT_OF and code in ("add", "sub", "mul", "div") else ""
        return self.text.line(element or self.element, f"{prefix}{code} {self.type} {self.name}, {self._other(other).name}")

    def __add__(self, other: Value | float | int) -> Value:
        return self._binary("add", other)

    def __sub__(self, other: Value | float | int) -> Value:
        return self._binary("sub", other)

    def __rsub__(self, other: float | int) -> Value:
        return self._other(other) - self

    def __mul__(self, other: Value | float | int) -> Value:
        return self._binary("mul", other)

    def __truediv__(self, other: Value | float | int) -> Value:
        return self._binary("div", other)

    def __rtruediv__(self, other: float | int) -> Value:
        return self._other(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def remainder(self, other: Value) -> Value:
        return self._binary("frem", other)

    def __lshift__(self, by: int) -> Value:
        return self._binary("shl", by)

    def __rshift__(self, by: int) -> Value:
        """With the sign."""
        return self._binary("ashr", by)

    def __and__(self, other: Value | int) -> Value:
        return self._binary("and", other)

    def __or__(self, other: Value | int) -> Value:
        return self._binary("or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._binary("xor", other)

    def _compare(self, code: str, other: Value | float | int) -> Value:
        """False where either side is NaN."""
        return self._binary(f"fcmp o{code}" if self.element in _FORMAT_OF else f"icmp s{code}", other, "i1")

    def __lt__(self, other: Value | float | int) -> Value:
        return self._compare("lt", other)

    def __gt__(self, other: Value | float | int) -> Value:
        return self._compare("gt", other)

    def __ge__(self, other: Value | float | int) -> Value:
        return self._compare("ge", other)

    def equals(self, other: Value | float | int) -> Value:
        return self._binary("fcmp oeq" if self.element in _FORMAT_OF else "icmp eq", other, "i1")

    def where(self, yes: Value | float | int, no: Value | float | int) -> Value:
        """yes in lanes where this truth value holds, else no."""
        model = yes if isinstance(yes, Value) else no
        assert isinstance(model, Value)
        a, b = model._other(yes), model._other(no)
        return self.text.line(a.element, f"select {self.type} {self.name}, {a.type} {a.name}, {b.type} {b.name}")

    def _cast(self, code: str, element: str) -> Value:
        return self.text.line(element, f"{code} {self.type} {self.name} to {self.text.type(element)}")

    @property
    def bits(self) -> Value:
        return self._cast("bitcast", _FORMAT_OF[self.element].integer)

    @property
    def float(self) -> Value:
        """The float of these bits."""
        return self._cast("bitcast", next(f.name for f in FORMATS.values() if f.integer == self.element))

    def double(self) -> Value:
        return self._cast("fpext", "double")

    def single(self) -> Value:
        return self._cast("fptrunc", "float")

    def extended(self, element: str) -> Value:
        """A wider integer without sign."""
        return self._cast("zext", element)

    def cut(self, element: str) -> Value:
        """The low bits of an integer."""
        return self._cast("trunc", element)

    @property
    def is_nan(self) -> Value:
        return self._binary("fcmp uno", self, "i1")

    def low_half(self) -> Value:
        """The low 32 of 64 bits."""
        return self._cast("trunc", "i32")


class Lanes:
    """What functions do in one float type."""

    def __init__(self, text: Text, dtype: str) -> None:
        self.text, self.dtype, self.format = text, dtype, FORMATS[dtype]
        self.magic = 1.5 * 2.0**self.format.mantissa
        """Adding it rounds to a whole number, which then stands in the low bits."""

    def wide(self) -> Lanes:
        return Lanes(self.text, "float64")

    def number(self, x: float) -> Value:
        return self.text.constant(self.format.name, x)

    def abs(self, x: Value) -> Value:
        return self.text.intrinsic("fabs", x)

    def floor(self, x: Value) -> Value:
        return self.text.intrinsic("floor", x)

    def remainder(self, x: Value, y: Value) -> Value:
        """C's fmod, exact."""
        return x.remainder(y)

    def sqrt(self, x: Value) -> Value:
        return self.text.intrinsic("sqrt", x)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """By Horner's rule, the constant term first."""
        total: Value = self.number(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            total = total * x + c
        return total

    def at_least(self, x: Value, low: float) -> Value:
        """The larger; NaN stays NaN."""
        return (x < low).where(low, x)

    def at_most(self, x: Value, high: float) -> Value:
        return (x > high).where(high, x)

    def sign(self, x: Value) -> Value:
        return x.bits & -(1 << (self.format.bits - 1))

    def signed_as(self, magnitude: Value, x: Value) -> Value:
        """A number that is not negative, with the sign of x."""
        return (magnitude.bits | self.sign(x)).float

    # ------------------------------------------------------------ powers of 2
    def exponent(self, fixed: Value) -> Value:
        """The whole number n in n + magic, at the place of the exponent: n << mantissa."""
        return fixed.bits << self.format.mantissa

    def power(self, exponent: Value) -> Value:
        """2**n from `exponent`, where it is a normal number."""
        return (exponent + (self.format.bias << self.format.mantissa)).float

    def scales(self, fixed: Value) -> tuple[Value, Value]:
        """Two powers of 2 whose product is 2**n. Together they reach subnormal numbers, rounding once, and infinity."""
        n, m = self.exponent(fixed), self.format.mantissa
        half = (n >> (m + 1)) << m
        return self.power(half), self.power(n - half)


Function = Callable[..., Value]
