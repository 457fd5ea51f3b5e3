"""Help for directives, and for sections that say more than their keys do, from their docstrings, fields and pictures."""

from __future__ import annotations

import inspect

from .directives import DIRECTIVES, Directive
from .graph_sections import Memory, Precision
from .notation.records import MISSING, Record, default, kinds
from .notation.tables import Table

SECTIONS: dict[str, type[Record]] = {"precision": Precision, "memory": Memory}
"""Sections that are explained as directives are."""


def describe_section(name: str) -> str:
    """The help of a section: what it does, gains, costs, its keys. KeyError if it is not among SECTIONS."""
    record = SECTIONS[name]
    lines = [
        f"{name}:   a section of the plan",
        "",
        *(f"  {line}".rstrip() for line in inspect.cleandoc(record.__doc__ or "").splitlines()),
    ]
    return "\n".join([*lines, *_fields(record, "keys")]) + "\n"


def describe(directive: type[Directive] | str) -> str:
    """The help of one directive: what it does, legality, gains, costs, fields, a nest before and after. KeyError if unknown."""
    kind = DIRECTIVES[directive] if isinstance(directive, str) else directive
    lines = [f"{kind.key}   {signature(kind)}", "", *(f"  {line}".rstrip() for line in inspect.cleandoc(kind.__doc__ or "").splitlines())]
    lines += _fields(kind, "fields")
    if kind.before:
        lines += ["", "  before", *(f"    {line}" for line in kind.before.splitlines())]
        lines += ["  after", *(f"    {line}" for line in kind.after.splitlines())]
    return "\n".join(lines) + "\n"


def _fields(record: type[Record], heading: str) -> list[str]:
    """A line for each field: its type and default."""
    fields = [(name, field) for name, field in kinds(record).items() if name != "note"]
    width = max((len(name) for name, _ in fields), default=0)
    lines = ["", f"  {heading}"] if fields else []
    for name, field in fields:
        value = default(record, name)
        said = "" if value is MISSING else " (may be left out)" if value in (None, (), Table()) else f" = {value}"
        lines.append(f"    {name.ljust(width)}  {field.words}{said}")
    return lines


def signature(kind: type[Directive]) -> str:
    """The directive's argument in one line: `{axis, factor?, tail? = auto}`."""
    names = []
    for name in kinds(kind):
        value = default(kind, name)
        if name != "note":
            names.append(name if value is MISSING else f"{name}?" + (f" = {value}" if isinstance(value, str) else ""))
    return f"{{{', '.join(names)}}}" if names else "(a bare word)"


def summary() -> str:
    """All directives, one line each."""
    width = max(len(key) for key in DIRECTIVES)
    lines = [f"{key.ljust(width)}  {(kind.__doc__ or '').strip().splitlines()[0]}" for key, kind in DIRECTIVES.items()]
    return "\n".join(lines) + "\n"
