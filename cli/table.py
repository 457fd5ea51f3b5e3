"""Tables as plain text."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns two spaces apart; a column of numbers stands to the right."""
    if not rows:
        return ""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(head))]
    numeric = [all(_is_number(row[c]) for row in rows) for c in range(len(head))]
    return "\n".join(
        "  ".join(cell.rjust(w) if n else cell.ljust(w) for cell, w, n in zip(line, widths, numeric, strict=True)).rstrip()
        for line in lines
    )


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text in ("", "-", "nan", "inf") or (text[:1] in "-+<" and text[1:2].isdigit())


def size(count: int) -> str:
    """Bytes as people read them."""
    value, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 100 else f"{value:.1f} {units[0]}"


def seconds(value: float) -> str:
    """A duration with three digits."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale or unit == "us":
            return f"{value / scale:.3g} {unit}"
    raise AssertionError
