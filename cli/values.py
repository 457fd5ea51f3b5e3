"""NAME=VALUE options as values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .refusals import usage


def pairs(option: str, given: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE options by name. Raises UsageError."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise usage(f"{option} {text}", "is not of the form NAME=VALUE")
        if name.strip() in found:
            raise usage(f"{option} {name.strip()}", "is given twice")
        found[name.strip()] = value
    return found


def extents(given: Iterable[str] | None) -> dict[str, int]:
    """`h=640,w=480`, in one option or in several. Raises UsageError."""
    parts = [part for text in given or () for part in text.split(",") if part.strip()]
    found: dict[str, int] = {}
    for name, value in pairs("--extents", parts).items():
        digits = value.strip().replace("_", "")
        if not (digits.isascii() and digits.isdigit()):
            raise usage(f"--extents {name}={value}", "an extent is an integer, 0 or more", f"--extents {name}=64")
        if len(digits) > 18:
            raise usage(f"--extents {name}={value}", "no tensor is that large")
        found[name] = int(digits)
    return found


def known_extents(given: Mapping[str, int], symbols: Iterable[str], program: str) -> None:
    """Refuses extents that the program does not have. `symbols` are names, plain or as METHOD/NAME."""
    from difflib import get_close_matches

    names = sorted(symbols)
    for name in given:
        if name not in names:
            raise usage(
                f"--extents {name}={given[name]}",
                f"{program} has {'no symbolic extents' if not names else 'the extents ' + ', '.join(names)}",
                *get_close_matches(name, names, 1),
            )
