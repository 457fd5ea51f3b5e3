"""Memory of rows and strips is taken once for a loop, not once for each of its iterations."""

from __future__ import annotations

from .statements import Allocate, For, If, Sequence, Statement, sequence, transform


def hoist_allocations(s: Statement) -> Statement:
    """Workspace that the body of a serial loop takes, moved outside the loop: every iteration fills it before it reads it. Of a loop that
    is written out, what its branches take as well: no memory is taken twice under one name."""
    return transform(s, _rule)


def _rule(s: Statement) -> Statement | None:
    match s:
        case For(kind="serial" | "unrolled" as kind):
            taken, body = _split(s.body, kind == "unrolled")
            if not taken:
                return None
            moved: Statement = For(s.var, s.name, s.low, s.extent, s.kind, s.lane, body)
            for a in reversed({a.buffer.id: a for a in taken}.values()):
                moved = Allocate(a.buffer, moved)
            return moved
    return None


def _split(s: Statement, branches: bool) -> tuple[list[Allocate], Statement]:
    """The workspace allocations that stand directly in a body, or in its `branches` too, and the body without them."""
    match s:
        case Allocate(buffer=b, body=inner) if b.memory == "workspace":
            taken, rest = _split(inner, branches)
            return [s, *taken], rest
        case Allocate(buffer=b, body=inner) if branches:
            taken, rest = _split(inner, branches)
            return taken, Allocate(b, rest)
        case Sequence(body=parts):
            found = [_split(p, branches) for p in parts]
            return [a for taken, _ in found for a in taken], sequence(*(rest for _, rest in found))
        case If(condition=c, then=then, otherwise=otherwise) if branches:
            taken, then = _split(then, branches)
            others, otherwise = ([], None) if otherwise is None else _split(otherwise, branches)
            return [*taken, *others], If(c, then, otherwise)
    return [], s
