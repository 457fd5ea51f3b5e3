"""Straight-line functions on floats and their bits as C for devices, from the steps that LLVM gets as its IR for processors."""

from __future__ import annotations

import struct

from .functions.lanes import Text, Value
from .functions.narrow_floats import FUNCTIONS

PREFIX = "fluorite_"
_TYPES = {"i1": "int", "i8": "unsigned char", "i16": "unsigned short", "i32": "int", "float": "float", "double": "double"}
_ELEMENTS = {"float32": "float", "float64": "double", "uint8": "i8", "uint16": "i16"}
_VECTORS = {"float": "float", "i8": "uchar", "i16": "ushort"}
_LANES = (2, 3, 4)
"""Of OpenCL's vectors; CUDA has no arithmetic on vectors, and TVM writes a call for each lane."""
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "fadd": "+", "fsub": "-", "fmul": "*", "fdiv": "/", "shl": "<<", "ashr": ">>",
    "and": "&", "or": "|", "xor": "^", "fcmp olt": "<", "fcmp ogt": ">", "fcmp oge": ">=", "fcmp oeq": "==", "icmp slt": "<",
    "icmp sgt": ">", "icmp sge": ">=", "icmp eq": "==", "fcmp uno": "!=",
}  # fmt: skip
_WRAPPING = ("add", "sub", "mul", "shl")
_CASTS = {("float", "i32"): "as_int", ("i32", "float"): "as_float"}
_SPELT = {
    "cuda": {"as_int": "__float_as_int", "as_float": "__int_as_float", "head": "static __device__ __forceinline__ {}"},
    "opencl": {"as_int": "as_int", "as_float": "as_float", "head": "static inline __attribute__((overloadable)) {}"},
}


class _CText(Text):
    """The body of a function in the C of a kind of device."""

    def __init__(self, kind: str) -> None:
        super().__init__(1)
        self.spelt = _SPELT[kind]

    def line(self, element: str, code: str) -> Value:
        name = f"t{len(self.lines)}"
        self.lines.append(f"  {_TYPES[element]} {name} = {code};")
        return _CValue(self, element, name)

    def constant(self, element: str, number: float | int) -> Value:
        if element == "float":  # by its bits, which every compiler reads alike
            return _CValue(self, element, f"{self.spelt['as_float']}({struct.unpack('<i', struct.pack('<f', number))[0]})")
        return _CValue(self, element, str(int(number)) if int(number) > -(1 << 31) else f"({int(number) + 1} - 1)")

    def intrinsic(self, name: str, *args: Value) -> Value:
        return self.line(args[0].element, f"{name}({', '.join(a.name for a in args)})")


class _CValue(Value):
    text: _CText

    def _binary(self, code: str, other: Value | float | int, element: str | None = None) -> Value:
        a, b = self.name, self._other(other).name
        expression = f"{a} {_OPERATORS[code]} {b}"
        if self.element == "i32" and code in _WRAPPING:
            expression = f"(int)((unsigned int){a} {_OPERATORS[code]} (unsigned int){b})"
        return self.text.line(element or self.element, expression)

    def where(self, yes: Value | float | int, no: Value | float | int) -> Value:
        model = yes if isinstance(yes, Value) else no
        assert isinstance(model, _CValue)
        a, b = model._other(yes), model._other(no)
        return self.text.line(a.element, f"{self.name} ? {a.name} : {b.name}")

    def _cast(self, code: str, element: str) -> Value:
        if code == "bitcast":
            return self.text.line(element, f"{self.text.spelt[_CASTS[self.element, element]]}({self.name})")
        return self.text.line(element, f"({_TYPES[element]}){self.name}")


def definitions(source: str, kind: str) -> str:
    """Of the functions that a source in the C of a kind of device calls."""
    return "".join(_definition(name, kind) for name in FUNCTIONS if f"{PREFIX}{name}(" in source)


def _definition(name: str, kind: str) -> str:
    takes, gives, steps = FUNCTIONS[name]
    text = _CText(kind)
    result = steps(_CValue(text, _ELEMENTS[takes], "x"))
    head, symbol = text.spelt["head"], f"{PREFIX}{name}"
    begin = f"{head.format(_TYPES[result.element])} {symbol}({_TYPES[_ELEMENTS[takes]]} x) {{"
    lines = [begin, *text.lines, f"  return {result.name};", "}"]
    if kind == "opencl" and "float64" in (takes, gives):
        return "\n".join(["#pragma OPENCL EXTENSION cl_khr_fp64 : enable", *lines, ""])
    for n in _LANES if kind == "opencl" else ():
        to, source = (f"{_VECTORS[_ELEMENTS[t]]}{n}" for t in (gives, takes))
        each = ", ".join(f"{symbol}(x.s{k})" for k in range(n))
        lines.append(f"{head.format(to)} {symbol}({source} x) {{ return ({to})({each}); }}")
    return "\n".join([*lines, ""])


__all__ = ["PREFIX", "definitions"]
