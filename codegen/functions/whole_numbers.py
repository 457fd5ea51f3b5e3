"""Integer arithmetic of the language as LLVM IR text, for scalars and vectors: sums and products wrap, dividing by zero gives 0.

TVM's own operators may not overflow: its simplifier and LLVM take that for granted. Its guards against a divisor of zero do not last
either, since what a branch implies is simplified away inside it and both branches are then computed.
"""

from __future__ import annotations

from collections.abc import Callable

from .lanes import Text, Value

Function = Callable[[bool, Value, Value], Value]
ELEMENTS = {f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
"""The language's integer types, and LLVM's."""


def _divided(signed: bool, a: Value, b: Value, remainder: bool) -> Value:
    text, element = a.text, a.element
    zero, one, minus = (text.constant(element, n) for n in (0, 1, -1))

    def operation(code: str, x: Value, y: Value, kind: str = element) -> Value:
        return text.line(kind, f"{code} {x.type} {x.name}, {y.name}")

    nothing = b.equals(zero)
    if not signed:
        safe = nothing.where(one, b)
        return operation("urem", a, safe) if remainder else nothing.where(zero, operation("udiv", a, safe))
    negated = b.equals(minus)  # the least number divided by -1 does not fit, and processors trap
    safe = operation("or", nothing, negated, "i1").where(one, b)
    rest = operation("srem", a, safe)
    apart = operation("and", operation("icmp ne", rest, zero, "i1"), operation("xor", rest, safe) < zero, "i1")
    if remainder:
        return rest + apart.where(safe, zero)
    quotient = operation("sdiv", a, safe) - apart.where(one, zero)
    return nothing.where(zero, negated.where(operation("sub", zero, a), quotient))


FUNCTIONS: dict[str, Function] = {
    "plus": lambda signed, a, b: a + b,
    "minus": lambda signed, a, b: a - b,
    "times": lambda signed, a, b: a * b,
    "quotient": lambda signed, a, b: _divided(signed, a, b, remainder=False),
    "remainder": lambda signed, a, b: _divided(signed, a, b, remainder=True),
}
"""Each a function of whether the type has a sign, and of two numbers."""


def definition(name: str, symbol: str, dtype: str, lanes: int) -> str:
    """LLVM IR of one function on vectors of `lanes` integers, or on scalars."""
    text = Text(lanes)
    element = ELEMENTS[dtype]
    a, b = Value(text, element, "%a0"), Value(text, element, "%a1")
    result = FUNCTIONS[name](not dtype.startswith("u"), a, b)
    kind = text.type(element)
    head = f"define {kind} @{symbol}({kind} %a0, {kind} %a1) alwaysinline {{"
    return "\n".join([head, "start:", *text.lines, f"  ret {kind} {result.name}", "}"])


__all__ = ["ELEMENTS", "FUNCTIONS", "definition"]
