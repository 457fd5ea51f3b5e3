"""What the name of a symbol says of the extent."""

from __future__ import annotations

_AT_MOST = "<="


def counted_name(name: str, most: int) -> str:
    """The symbol of an extent that is computed while the program runs: its name says what it is at most."""
    return f"{name}{_AT_MOST}{most}"


def most_of(symbol: str) -> int | None:
    """What a computed extent is at most; None of a symbol that inputs have. A computed one may be 0."""
    _, found, most = symbol.partition(_AT_MOST)
    return int(most) if found else None
