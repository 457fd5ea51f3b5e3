"""The little language of `tune.where` and of `$tx * 2`: integers, sizes, + - * // %, comparisons, and, or, not.

Parsed, never evaluated as Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
SIZE = re.compile(r"([0-9]+)(KiB|MiB|GiB|TiB)")
_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+)(?P<unit>[A-Za-z]*)|\$(?P<name>[A-Za-z_]\w*)|(?P<word>[A-Za-z_]\w*)|(?P<op>//|<=|>=|==|!=|[-+*%<>()]))"
)
_MAX_LENGTH = 1000
_MAX_DEPTH = 32

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
}
_COMPARISON: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


class ConstraintError(ValueError):
    """The text is not an expression, or it has no value: the sentence says why."""


@dataclass(frozen=True, slots=True)
class Constant:
    """An integer, or a size in bytes."""

    value: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A named hole."""

    name: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator and its operands; a chained comparison is an `and`."""

    operator: str
    operands: tuple[Expression, ...]


Expression: TypeAlias = Constant | Variable | Operation


def parse(text: str) -> Expression:
    """The expression that `text` writes. Raises ConstraintError."""
    if len(text) > _MAX_LENGTH:
        raise ConstraintError(f"it is longer than {_MAX_LENGTH} characters")
    parser = _Parser(list(_tokens(text)))
    result = parser.either()
    if parser.rest:
        raise ConstraintError(f"{parser.rest[0]!r} is not expected here")
    return result


def is_condition(expression: Expression) -> bool:
    """Whether the value is a truth, not a number."""
    return isinstance(expression, Operation) and (expression.operator in _COMPARISON or expression.operator in ("and", "or", "not"))


def variables(expression: Expression) -> tuple[str, ...]:
    """The holes named, in order, each once."""
    match expression:
        case Variable(name):
            return (name,)
        case Operation(_, operands):
            return tuple(dict.fromkeys(name for operand in operands for name in variables(operand)))
        case _:
            return ()


def evaluate(expression: Expression, values: Mapping[str, object]) -> int:
    """The value, truths being 0 or 1. Raises ConstraintError for an unknown hole, one that is not an integer, or a division by zero."""
    match expression:
        case Constant(value):
            return value
        case Variable(name):
            found = values.get(name)
            if isinstance(found, bool) or not isinstance(found, int):
                raise ConstraintError(f"${name} is {'not known' if found is None else f'{found!r}, not an integer'}")
            return found
        case Operation("and", operands):
            return int(all(evaluate(operand, values) for operand in operands))
        case Operation("or", operands):
            return int(any(evaluate(operand, values) for operand in operands))
        case Operation("not", (operand,)):
            return int(not evaluate(operand, values))
        case Operation(operator, operands):
            left, right = (evaluate(operand, values) for operand in operands)
            if operator in _COMPARISON:
                return int(_COMPARISON[operator](left, right))
            if operator in ("//", "%") and right == 0:
                raise ConstraintError("it divides by zero")
            return _ARITHMETIC[operator](left, right)


def size(text: str) -> int:
    """Bytes of `256KiB`, `25MiB` and the like. Raises ConstraintError."""
    found = SIZE.fullmatch(text)
    if not found:
        raise ConstraintError(f"{text!r} is not a size; write an integer with KiB, MiB, GiB or TiB")
    return int(found[1]) * UNITS[found[2]]


def _tokens(text: str) -> Iterator[str]:
    position, end = 0, len(text.rstrip())
    while position < end:
        found = _TOKEN.match(text, position)
        if not found:
            raise ConstraintError(
                f"{text[position:].strip()[:1]!r} is not part of the language: integers, sizes, $names, + - * // % and comparisons"
            )
        position = found.end()
        if found["number"] is not None:
            if found["unit"] not in UNITS:
                raise ConstraintError(f"{found['unit']!r} is not a unit; there are KiB, MiB, GiB and TiB")
            if len(found["number"]) > 18:
                raise ConstraintError("the number has more than 18 digits")
            yield str(int(found["number"]) * UNITS[found["unit"]])
        elif found["word"] is not None and found["word"] not in ("and", "or", "not"):
            raise ConstraintError(f"{found['word']!r} is no number; a named hole is written ${found['word']}")
        else:
            yield found[0].strip()


class _Parser:
    def __init__(self, rest: list[str]) -> None:
        self.rest = rest
        self.depth = 0

    def next_in(self, operators: tuple[str, ...]) -> str | None:
        return self.rest.pop(0) if self.rest and self.rest[0] in operators else None

    def either(self) -> Expression:
        parts = [self.both()]
        while self.next_in(("or",)):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Operation("or", tuple(parts))

    def both(self) -> Expression:
        parts = [self.negation()]
        while self.next_in(("and",)):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else Operation("and", tuple(parts))

    def negation(self) -> Expression:
        negations = 0
        while self.next_in(("not",)):
            negations += 1
        result = self.comparison()
        for _ in range(min(negations, 2 - negations % 2)):
            result = Operation("not", (result,))
        return result

    def comparison(self) -> Expression:
        left = self.sum()
        parts: list[Expression] = []
        while operator := self.next_in(tuple(_COMPARISON)):
            right = self.sum()
            parts.append(Operation(operator, (left, right)))
            left = right
        if not parts:
            return left
        return parts[0] if len(parts) == 1 else Operation("and", tuple(parts))

    def sum(self) -> Expression:
        result = self.product()
        while operator := self.next_in(("+", "-")):
            result = Operation(operator, (result, self.product()))
        return result

    def product(self) -> Expression:
        result = self.atom()
        while operator := self.next_in(("*", "//", "%")):
            result = Operation(operator, (result, self.atom()))
        return result

    def atom(self) -> Expression:
        if not self.rest:
            raise ConstraintError("it ends too early")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise ConstraintError(f"it nests more than {_MAX_DEPTH} deep")
        token = self.rest.pop(0)
        result: Expression
        if token == "(":
            result = self.either()
            if not self.next_in((")",)):
                raise ConstraintError("a closing parenthesis is missing")
        elif token == "-":
            result = Operation("-", (Constant(0), self.atom()))
        elif token.startswith("$"):
            result = Variable(token[1:])
        elif token.isdigit():
            result = Constant(int(token))
        else:
            raise ConstraintError(f"{token!r} is not expected here")
        self.depth -= 1
        return result
