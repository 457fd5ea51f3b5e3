"""What a method asks of its symbolic extents beyond those of its inputs and results: the interpreter and built models refuse the same
calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .expr import Const, Expr, Op, Read, Size
from .extent import Extent, nonnegative
from .graph import Graph
from .scatter import has_identity
from .stages import Leaf, Stage
from .tensor import conjuncts


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
    counted = _counted(graph, method)
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
            within = (*domain, *counted.get(s.id, ()))
            if open_ := _open(shape, within, least):
                found.append(Requirement("R122", f"{s.path} reads {t.path}, which has no elements", s.source, within, open_))
    return list(dict.fromkeys(found))


def _open(extents: tuple[Extent, ...], within: tuple[Extent, ...], least: Mapping[str, int] | None) -> tuple[Extent, ...]:
    """The extents that may be 0 while none of `within` is."""
    return tuple(e for e in extents if e not in within and not nonnegative(e - 1, least))


def _counted(graph: Graph, method: str) -> dict[int, tuple[Extent, ...]]:
    """By id of what is computed at each turn of a loop: the extents to which such loops count, of which there is no turn where one is 0.
    What a loop needs to know whether there is a turn is computed without one."""
    stages = [s for s in graph.stages_of(method) if s.turn is not None]
    ends: dict[int, list[Extent]] = {}
    asked: set[tuple[int, int]] = set()
    for group, condition in {(s.turn.group, s.turn.condition) for s in stages if s.turn is not None and s.turn.condition is not None}:
        pending = [condition]
        while pending:
            found = graph.stage(pending.pop())
            if found is not None and (group, found.id) not in asked and found.turn is not None and group in found.turn.loops:
                asked.add((group, found.id))
                pending += [] if found.turn.next is not None else found.sources
        ends.setdefault(group, []).extend(n for c in conjuncts(graph[condition].value) if (n := _end(graph, c)) is not None)
    return {s.id: tuple(n for g in s.turn.loops if (g, s.id) not in asked for n in ends.get(g, ())) for s in stages if s.turn is not None}


def _end(graph: Graph, c: Expr) -> Extent | None:
    """The extent up to which a comparison lets a carry count that begins at 0 or above."""
    match c:
        case Op(op="lt", args=(Read(source=i), Op(op="cast", args=(Size(extent=n),)) | Size(extent=n))):
            carry = graph.stage(i)
            if carry is None or carry.turn is None or carry.turn.next is None or (after := graph.stage(carry.turn.next)) is None:
                return None
            match after.value:
                case Op(op="add", args=(Read(source=before), Const(value=by))) if before == i and by >= 0:
                    return n if _least(graph, carry.value) >= 0 else None
    return None


def _least(graph: Graph, e: Expr) -> int:
    """A whole number that e begins with, through stages that only hand it on; -1 of others."""
    match e:
        case Const(value=int(n)):
            return n
        case Read(source=i) if (s := graph.stage(i)) is not None and s.reduction is None and s.turn is None:
            return _least(graph, s.value)
        case Read(source=i) if isinstance(t := graph[i], Leaf) and t.kind == "constant" and not t.shape:
            return int(t.value)
    return -1


__all__ = ["Requirement", "requirements", "unguarded_reads"]
