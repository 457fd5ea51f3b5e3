"""Extents as the manifest writes them: a number, a symbol, or a little arithmetic over both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

Extent: TypeAlias = Any  # int | str | [operator, Extent, ...]; JSON, so not worth a recursive alias


def evaluate(extent: Extent, symbols: Mapping[str, int]) -> int:
    """The number that an extent stands for. KeyError names a symbol without a value."""
    match extent:
        case int():
            return extent
        case str():
            return symbols[extent]
        case ["+", *parts]:
            return sum(evaluate(p, symbols) for p in parts)
        case ["*", *parts]:
            return prod(evaluate(p, symbols) for p in parts)
        case ["-", a, b]:
            return evaluate(a, symbols) - evaluate(b, symbols)
        case ["//", a, b]:
            return evaluate(a, symbols) // evaluate(b, symbols)
        case ["min", a, b]:
            return min(evaluate(a, symbols), evaluate(b, symbols))
        case ["max", a, b]:
            return max(evaluate(a, symbols), evaluate(b, symbols))
    raise ValueError(f"no extent: {extent!r}")


def names(extent: Extent) -> set[str]:
    """The symbols of an extent."""
    match extent:
        case str():
            return {extent}
        case [_, *parts]:
            return {name for p in parts for name in names(p)}
    return set()


def shape_of(extents: Sequence[Extent], symbols: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(e, symbols) for e in extents)


def text(extent: Extent) -> str:
    """As a person writes it: `h`, `2 * n`, `(h - 1) // 2`."""
    match extent:
        case ["min" | "max" as name, *parts]:
            return f"{name}({', '.join(map(text, parts))})"
        case [str(operator), *parts]:
            return f" {operator} ".join(f"({text(p)})" if isinstance(p, list) else text(p) for p in parts)
    return str(extent)


def solve(extent: Extent, value: int, known: Mapping[str, int]) -> tuple[str, int] | None:
    """The symbol, and its value, that makes `extent` equal `value`; None unless exactly one unknown is reached by + - *."""
    match extent:
        case str():
            return None if extent in known else (extent, value)
        case ["+" | "*" as operator, *parts]:
            unknown = [p for p in parts if not _is_known(p, known)]
            if len(unknown) != 1:
                return None
            rest = [evaluate(p, known) for p in parts if p is not unknown[0]]
            if operator == "+":
                return solve(unknown[0], value - sum(rest), known)
            factor = prod(rest)
            return solve(unknown[0], value // factor, known) if factor and value % factor == 0 else None
        case ["-", a, b] if _is_known(b, known):
            return solve(a, value + evaluate(b, known), known)
        case ["-", a, b] if _is_known(a, known):
            return solve(b, evaluate(a, known) - value, known)
    return None


def _is_known(extent: Extent, known: Mapping[str, int]) -> bool:
    try:
        evaluate(extent, known)
    except KeyError:
        return False
    return True
