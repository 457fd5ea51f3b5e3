"""The names of scalar operations, in kinds, and how they are written."""

from __future__ import annotations

ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "min", "max")
COMPARISON = ("lt", "le", "eq", "ne")
LOGICAL = ("and", "or", "xor")
REAL = (
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sigmoid",
    "erf",
    "log1p",
    "expm1",
    "exp2",
    "log2",
    "log10",
    "sinh",
    "cosh",
    "asin",
    "acos",
    "atan",
    "atan2",
    "pow",
)
SYMBOL = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floordiv": "//",
    "mod": "%",
    "lt": "<",
    "le": "<=",
    "eq": "==",
    "ne": "!=",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
    "pow": "**",
}
