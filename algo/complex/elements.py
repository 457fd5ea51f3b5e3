"""A complex number inside a stage: a pair of expressions, and its arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from .. import expr as E
from ..dtypes import FLOATS, NARROW, kind, paired
from ..errors import AlgorithmError
from ..expr import Expr, as_expr, refuse
from ..numpy_calls import OwnOperators


class ComplexExpr(OwnOperators):
    """A pair of expressions of one float type, float32 or float64, or both weak."""

    __array_priority__ = 1000

    def __init__(self, real: Any, imag: Any) -> None:
        a, b = _part(as_expr(real)), _part(as_expr(imag))
        dtype, weak = E.common("complex", a, b)
        self.weak = weak
        self.real, self.imag = (a, b) if weak else (E.cast(a, dtype), E.cast(b, dtype))

    @property
    def dtype(self) -> str:
        return paired(self.real.dtype)

    def conj(self) -> ComplexExpr:
        return ComplexExpr(self.real, -self.imag)

    def as_complex(self) -> ComplexExpr:
        return self

    def __add__(self, other: Any) -> Any:
        return arithmetic("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return arithmetic("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return arithmetic("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return arithmetic("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return arithmetic("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return arithmetic("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return arithmetic("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return arithmetic("div", other, self)

    def __pow__(self, other: Any) -> Any:
        return arithmetic("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return arithmetic("pow", other, self)

    def __neg__(self) -> ComplexExpr:
        return ComplexExpr(-self.real, -self.imag)

    def __pos__(self) -> ComplexExpr:
        return self

    def __abs__(self) -> Expr:
        from .functions import magnitude

        return magnitude(self)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return equal(self, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return different(self, other)

    __hash__ = object.__hash__

    def _unordered(self, other: Any) -> Any:
        raise not_for_complex("a comparison by size")

    __lt__ = __le__ = __gt__ = __ge__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unordered

    def _bits(self, other: Any = None) -> Any:
        raise not_for_complex("an operation on bits")

    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __lshift__ = __rshift__ = __invert__ = _bits

    def __bool__(self) -> bool:
        raise refuse(
            "A102", "the truth value of a complex number", "its value is known only when the kernel runs", "fl.where(z != 0, a, b)"
        )


Element: TypeAlias = "Expr | ComplexExpr"


def _part(e: Expr) -> Expr:
    """What an element becomes as a part: integers and booleans float32, narrow floats what they are computed in."""
    if kind(e.dtype) != "float":
        return E.cast(e, "float32") if not e.weak or not isinstance(e, E.Const) else as_expr(float(e.value))
    return E.cast(e, "float32") if e.dtype in NARROW else e


def is_complex(value: Any) -> bool:
    """Whether this is a complex number, an element or a tensor of them, or a NumPy array of them."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind == "c"
    return isinstance(value, complex) or hasattr(value, "as_complex")


def complex_element(value: Any) -> ComplexExpr:
    """The element that a complex number or a tensor without axes is; inside a stage."""
    if isinstance(value, complex):
        return ComplexExpr(value.real, value.imag)
    if isinstance(value, np.ndarray | np.generic):
        if value.shape != ():
            raise refuse(
                "A103", "an array of complex numbers in an expression", "an element is one number", "fl.asarray(x) before the stage"
            )
        part = "float64" if value.dtype.itemsize == 16 else "float32"
        return ComplexExpr(E.cast(float(value.real), part), E.cast(float(value.imag), part))
    found: ComplexExpr = value.as_complex()
    return found


def element(value: Any) -> Element:
    """A complex element, or a real one that stays real."""
    return complex_element(value) if is_complex(value) else as_expr(value)


def parts(e: Element) -> tuple[Expr, Expr]:
    """Real and imaginary part; of a real element with 0."""
    return (
        (e.real, e.imag) if isinstance(e, ComplexExpr) else (e, E.cast(0.0, e.dtype) if e.dtype in FLOATS and not e.weak else as_expr(0.0))
    )


def not_for_complex(what: str) -> AlgorithmError:
    why = "it is defined for real numbers, and complex ones have no order, no bits and no whole part"
    return refuse("A211", f"{what} of complex numbers", why, "fl.abs(z)", "fl.real(z)", "fl.imag(z)")


# ---------------------------------------------------------------- arithmetic
def arithmetic(op: str, left: Any, right: Any) -> Any:
    """The operator with at least one complex operand."""
    found = ARITHMETIC.get(op)
    if found is None:
        raise not_for_complex(E.SYMBOL.get(op, op))
    return found(element(left), element(right))


def add(x: Element, y: Element) -> ComplexExpr:
    match x, y:
        case ComplexExpr(), ComplexExpr():
            return ComplexExpr(x.real + y.real, x.imag + y.imag)
        case ComplexExpr(), Expr():
            return ComplexExpr(x.real + y, x.imag)
        case Expr(), ComplexExpr():
            return ComplexExpr(x + y.real, y.imag)
    raise TypeError


def subtract(x: Element, y: Element) -> ComplexExpr:
    match x, y:
        case ComplexExpr(), ComplexExpr():
            return ComplexExpr(x.real - y.real, x.imag - y.imag)
        case ComplexExpr(), Expr():
            return ComplexExpr(x.real - y, x.imag)
        case Expr(), ComplexExpr():
            return ComplexExpr(x - y.real, -y.imag)
    raise TypeError


def multiply(x: Element, y: Element) -> ComplexExpr:
    match x, y:
        case ComplexExpr(), ComplexExpr():
            return ComplexExpr(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)
        case ComplexExpr(), Expr():
            return ComplexExpr(x.real * y, x.imag * y)
        case Expr(), ComplexExpr():
            return ComplexExpr(x * y.real, x * y.imag)
    raise TypeError


def divide(x: Element, y: Element) -> ComplexExpr:
    """The quotient by Smith's method: both are divided by the larger part of the divisor first."""
    x, y = _joined(x, y)
    a, b = parts(x)
    if not isinstance(y, ComplexExpr):
        return ComplexExpr(a / y, b / y)
    c, d = y.real, y.imag
    flat = abs(d) <= abs(c)
    large, small = E.where(flat, c, d), E.where(flat, d, c)
    nothing = E.binary("eq", large, 0)
    ratio = small / E.where(nothing, 1, large)
    scale = large + small * ratio
    p, q = E.where(flat, a, b), E.where(flat, b, a)
    imag = q - p * ratio
    return ComplexExpr((p + q * ratio) / scale, E.where(flat, imag, -imag) / scale)


def _joined(x: Element, y: Element) -> tuple[Element, Element]:
    """Both in their common type, so that nothing is computed in the narrower one."""
    dtype, weak = E.common("complex", *(p for e in (x, y) for p in ((e.real, e.imag) if isinstance(e, ComplexExpr) else (e,))))
    return (x, y) if weak else (_of_type(x, dtype), _of_type(y, dtype))


def _of_type(e: Element, dtype: str) -> Element:
    if isinstance(e, ComplexExpr):
        return ComplexExpr(E.cast(e.real, dtype), E.cast(e.imag, dtype))
    return e if e.weak else E.cast(e, dtype)


def power(x: Element, y: Element) -> ComplexExpr:
    """Whole powers up to 16 are products or their reciprocals, others exp(y log x); 0 to a power with a positive real part is 0."""
    from .functions import exp, log

    x, y = _joined(x, y)
    if isinstance(y, E.Const) and float(y.value).is_integer() and abs(y.value) <= 16:
        return _whole(x, int(y.value))
    found = exp(multiply(_complex(y), log(_complex(x))))
    a, b = parts(x)
    zero = E.binary("eq", a, 0) & E.binary("eq", b, 0) & (parts(y)[0] > 0)
    return ComplexExpr(E.where(zero, 0, found.real), E.where(zero, 0, found.imag))


def _complex(x: Element) -> ComplexExpr:
    return x if isinstance(x, ComplexExpr) else ComplexExpr(*parts(x))


def _whole(x: Element, n: int) -> ComplexExpr:
    z = _complex(x)
    if n == 0:
        return ComplexExpr(E.cast(1.0, z.real.dtype), E.cast(0.0, z.real.dtype))
    result, square, left = None, z, abs(n)
    while left:
        if left & 1:
            result = square if result is None else multiply(result, square)
        square, left = multiply(square, square) if left > 1 else square, left >> 1
    assert result is not None
    return result if n > 0 else divide(as_expr(1), result)


# ---------------------------------------------------------------- tests and choices
def equal(x: Any, y: Any) -> Expr:
    (a, b), (c, d) = parts(element(x)), parts(element(y))
    return E.binary("eq", a, c) & E.binary("eq", b, d)


def different(x: Any, y: Any) -> Expr:
    return ~equal(x, y)


def where(condition: Any, x: Any, y: Any) -> ComplexExpr:
    (a, b), (c, d) = parts(element(x)), parts(element(y))
    return ComplexExpr(E.where(condition, a, c), E.where(condition, b, d))


ARITHMETIC: dict[str, Callable[[Element, Element], Any]] = {
    "add": add, "sub": subtract, "mul": multiply, "div": divide, "pow": power, "eq": equal, "ne": different,
}  # fmt: skip


__all__ = [
    "ARITHMETIC",
    "ComplexExpr",
    "Element",
    "arithmetic",
    "complex_element",
    "different",
    "element",
    "equal",
    "is_complex",
    "not_for_complex",
    "parts",
    "where",
]
