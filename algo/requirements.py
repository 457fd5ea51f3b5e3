"""What a method asks of its symbolic extents beyond those of its inputs and results: the interpreter and built models refuse the same
calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .expr import Expr, Op, Read
from .extent import Extent, nonnegative
from .graph import Graph
from .scatter import has_identity
from .stages import Stage


@dataclass(frozen=True)
class Requirement:
    """No extent of `within` is negative; and where none of them is 0, none of `filled` is 0 either."""

    code: str
    what: str
    source: str
    within: tuple[Extent, ...]
    filled: tuple[Extent, ...] = ()


def unguarded_reads(e: Expr) -> list[Read]:
    """The reads that are made whatever the values are: not those in a branch of a choice."""
    seen: dict[Expr, None] = {}
    pending = [e]
    while pending:
        n = pending.pop()
        if n not in seen:
            seen[n] = None
            pending += n.args[:1] if isinstance(n, Op) and n.op == "where" else n.operands
    return [n for n in seen if isinstance(n, Read)]


def requirements(graph: Graph, method: str, least: Mapping[str, int] | None = None) -> list[Requirement]:
    """All that is not proved where every symbol is at least `least[name]`, or 1."""
    found: list[Requirement] = []
    for s in graph.stages_of(method):
        reduced = s.reduction.extents if s.reduction else ()
        domain = (*s.extents, *reduced)
        for a, e in zip((*s.axes, *s.reduce_axes), domain, strict=True):
            if not nonnegative(e, least):
                found.append(Requirement("R120", f"axis {a.name} of {s.path}", s.source, (e,)))
        if s.reduction is not None and not has_identity(s) and (open_ := _open(reduced, s.extents, least)):
            found.append(Requirement("R121", f"{s.reduction.kind} over no elements in {s.path}", s.source, s.extents, open_))
        for r in unguarded_reads(s.value) if s.extern is None else ():  # a function may be given nothing
            t = graph[r.source]
            shape = t.extents if isinstance(t, Stage) else t.shape
            if open_ := _open(shape, domain, least):
                found.append(Requirement("R122", f"{s.path} reads {t.path}, which has no elements", s.source, domain, open_))
    return list(dict.fromkeys(found))


def _open(extents: tuple[Extent, ...], within: tuple[Extent, ...], least: Mapping[str, int] | None) -> tuple[Extent, ...]:
    """The extents that may be 0 while none of `within` is."""
    return tuple(e for e in extents if e not in within and not nonnegative(e - 1, least))


__all__ = ["Requirement", "requirements", "unguarded_reads"]
