"""float16, bfloat16 and the float8 types as LLVM IR text, and as C for devices: to float32, to their bits, and float32 rounded to them.

Kernels hold numbers of these types as float32 and memory holds their bits as integers, so that no target needs to know the types.
All steps are exact but one: adding and taking off again a power of two whose last place is the type's own rounds half to even.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .lanes import Text, Value


class Narrow(NamedTuple):
    """`bits` in all, `mantissa` of them after the point; `largest` number, `beyond` it in bits, `nan` in bits."""

    bits: int
    mantissa: int
    bias: int
    largest: float
    beyond: int
    nan: int

    @property
    def shift(self) -> int:
        """Bits of float32's mantissa that it does not have."""
        return 23 - self.mantissa

    @property
    def scale(self) -> float:
        """What a number with its exponent's bits in float32's place is too small by."""
        return 2.0 ** (127 - self.bias)

    @property
    def storage(self) -> str:
        """The integer type of its bits."""
        return f"uint{self.bits}"


FORMATS = {
    "float16": Narrow(16, 10, 15, 65504.0, 0x7C00, 0x7E00),
    "bfloat16": Narrow(16, 7, 127, 255 / 128 * 2.0**127, 0x7F80, 0x7FC0),
    "float8_e4m3fn": Narrow(8, 3, 7, 448.0, 0x7F, 0x7F),
    "float8_e5m2": Narrow(8, 2, 15, 57344.0, 0x7C, 0x7E),
}
_INFINITY, _NAN, _SIGN = 0x7F800000, 0x7FC00000, -(1 << 31)


def _from(f: Narrow, x: Value) -> Value:
    """float32 from bits."""
    bits = x.extended("i32")
    if f.shift == 16:
        return (bits << 16).float
    magnitude = bits & ((1 << (f.bits - 1)) - 1)
    normal = ((magnitude << f.shift).float * f.scale).bits
    special = (magnitude << f.shift) | _INFINITY if f.beyond != f.nan else x.text.constant("i32", _NAN)
    chosen = (magnitude > f.beyond - 1).where(special, normal)
    return (chosen | ((bits << (32 - f.bits)) & _SIGN)).float


def _half(x: Value) -> Value:
    """float32 from the bits of float16, by the processor. Back again it is not asked for: where LLVM sees both, it multiplies and adds
    numbers of float16, and contracts what has to be rounded between."""
    return x._cast("bitcast", "half")._cast("fpext", "float")


def _to(f: Narrow, x: Value) -> Value:
    """Bits from a float32 that the type holds."""
    element = f"i{f.bits}"
    if f.shift == 16:
        return (x.bits >> 16).cut(element)
    magnitude = x.text.intrinsic("fabs", x)
    normal = (magnitude * (1 / f.scale)).bits >> f.shift
    chosen = x.is_nan.where(f.nan, (magnitude > f.largest).where(f.beyond, normal))
    return (chosen | ((x.bits >> (32 - f.bits)) & (1 << (f.bits - 1)))).cut(element)


def _round(f: Narrow, x: Value) -> Value:
    """The float32 of the type that is nearest, half to even."""
    if f.shift == 16:
        odd = (x.bits >> 16) & 1
        return x.is_nan.where(_NAN, (x.bits + odd + 0x7FFF) & -0x10000).float
    magnitude = x.text.intrinsic("fabs", x)
    place = magnitude.bits & _INFINITY
    least, most = ((e + 127) << 23 for e in (1 - f.bias, f.bias + 2))
    place = (place < least).where(least, place)
    place = (place > most).where(most, place)
    step = (place + (f.shift << 23)).float
    near = (magnitude + step) - step
    beyond = float("inf") if f.beyond != f.nan else float("nan")
    near = (near > f.largest).where(beyond, near)
    return (near.bits | (x.bits & _SIGN)).float


def _sticky(x: Value) -> Value:
    """float64 as float32 with its last bit set wherever something is lost: rounding that again rounds only once."""
    near = x.single()
    back = near.double()
    size, own = (x.text.intrinsic("fabs", v) for v in (back, x))
    odd = (size > own).where(near.bits - 1, near.bits) | 1
    same = back.equals(x)
    return x.is_nan.where(near, same.where(near, odd.float))


FUNCTIONS: dict[str, tuple[str, str, Callable[[Value], Value]]] = {"sticky": ("float64", "float32", _sticky)}
"""Operation -> the type that it takes, the type that it gives, and its steps."""
for _name, _format in FORMATS.items():
    FUNCTIONS |= {
        f"from_{_name}": (_format.storage, "float32", lambda x, f=_format: _from(f, x)),  # type: ignore[misc]
        f"to_{_name}": ("float32", _format.storage, lambda x, f=_format: _to(f, x)),  # type: ignore[misc]
        f"round_{_name}": ("float32", "float32", lambda x, f=_format: _round(f, x)),  # type: ignore[misc]
    }
_HALVES = frozenset({"haswell", "skylake-avx512", "cascadelake", "icelake-server", "cooperlake", "sapphirerapids"})
"""LLVM's names of processors that convert vectors of float16 by one instruction; LLVM takes others through a function of its own."""
_ELEMENTS = {"float32": "float", "float64": "double", "uint8": "i8", "uint16": "i16"}


def definition(name: str, symbol: str, lanes: int, cpu: str = "") -> tuple[str, dict[str, None]]:
    """LLVM IR of one function on vectors of `lanes` elements, or on scalars, and the declarations that it needs. `cpu`: LLVM's name of the
    processor."""
    takes, _, steps = FUNCTIONS[name]
    text = Text(lanes)
    if cpu in _HALVES and name == "from_float16":
        steps = _half
    result = steps(Value(text, _ELEMENTS[takes], "%a0"))
    body = [f"define {result.type} @{symbol}({text.type(_ELEMENTS[takes])} %a0) alwaysinline {{", "start:", *text.lines]
    return "\n".join([*body, f"  ret {result.type} {result.name}", "}"]), text.declared


__all__ = ["FORMATS", "FUNCTIONS", "definition"]
