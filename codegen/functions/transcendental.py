"""The real functions that vectorise: each a straight line of arithmetic instead of a call of the C library for every lane.

Error bounds in units in the last place, for every argument:
  float32  below 2
  float64  below 2, by way of the same forms, for exp exp2 expm1 log log1p tanh sigmoid sinh cosh erf; the others are the C library's
Signed zeros, infinities, NaN, subnormal arguments and results, overflow and underflow are as in C99.
"""
from __future__ import annotations

from collections.abc import Iterable

from . import angles, dot_products, exponentials, logarithms, narrow_floats, whole_numbers
from .lanes import FORMATS, Function, Lanes, Text, Value

_BOTH: dict[str, Function] = {
    "exp": exponentials.exp, "exp2": exponentials.exp2, "expm1": exponentials.expm1, "sigmoid": exponentials.sigmoid,
    "tanh": exponentials.tanh, "sinh": exponentials.sinh, "cosh": exponentials.cosh, "erf": exponentials.erf,
    "log": logarithms.log, "log1p": logarithms.log1p,
}
_SINGLE: dict[str, Function] = {
    "log2": logarithms.log2, "log10": logarithms.log10, "pow": logarithms.power, "sin": angles.sin, "cos": angles.cos, "tan": angles.tan,
    "asin": angles.asin, "acos": angles.acos, "atan": angles.atan, "atan2": angles.atan2,
}
FUNCTIONS = frozenset({*_BOTH, *_SINGLE})
ARGUMENTS = {name: 2 if name in ("pow", "atan2") else 1 for name in FUNCTIONS}
EXACT: dict[str, Function] = {"fmod": lambda f, x, y: f.remainder(x, y)}
"""The C library's, lane by lane."""


def symbol(name: str, dtype: str, lanes: int) -> str:
    """What the function of this name, element type and number of lanes is called in the library."""
    return f"fluorite_{name}_{FORMATS[dtype].short if dtype in FORMATS else dtype}x{lanes}"


def definitions(wanted: Iterable[tuple[str, str, int]], cpu: str = "") -> str:
    """LLVM IR of functions, each given by (name, dtype, lanes), for a processor that LLVM calls `cpu`. They take and return vectors by
    value and are meant to be inlined."""
    parts: list[str] = []
    declared: dict[str, None] = {}
    for name, dtype, lanes in sorted(set(wanted)):
        if name in whole_numbers.FUNCTIONS:
            parts.append(whole_numbers.definition(name, symbol(name, dtype, lanes), dtype, lanes))
            continue
        if name in narrow_floats.FUNCTIONS:
            part, needed = narrow_floats.definition(name, symbol(name, dtype, lanes), lanes, cpu)
            parts.append(part)
            declared |= needed
            continue
        if name in dot_products.FUNCTIONS:
            part, needed = dot_products.definition(name, symbol(name, dtype, lanes), lanes)
            parts.append(part)
            declared |= needed
            continue
        text = Text(lanes)
        f = Lanes(text, dtype)
        kind = text.type(f.format.name)
        args = [Value(text, f.format.name, f"%a{i}") for i in range(ARGUMENTS.get(name, 2))]
        own = _BOTH.get(name) or EXACT.get(name) or (_SINGLE[name] if dtype == "float32" else None)
        result = own(f, *args) if own else text.intrinsic(name, *args)
        parameters = ", ".join(f"{kind} {a.name}" for a in args)
        head = f"define {kind} @{symbol(name, dtype, lanes)}({parameters}) {{"
        parts.append("\n".join([head, "start:", *text.lines, f"  ret {kind} {result.name}", "}"]))
        declared |= text.declared
    return "\n\n".join([*declared, *parts]) + "\n"


__all__ = ["ARGUMENTS", "EXACT", "FUNCTIONS", "definitions", "symbol"]
