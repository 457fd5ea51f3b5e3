"""Memory of rows and strips is taken once for a loop, not once for each of its iterations."""

from __future__ import annotations

from .statements import Allocate, For, Sequence, Statement, sequence, transform


def hoist_allocations(s: Statement) -> Statement:
    """Workspace that a serial loop's body takes, moved outside the loop: every iteration fills it before it reads it."""
    return transform(s, _rule)


def _rule(s: Statement) -> Statement | None:
    match s:
        case For(kind="serial"):
            taken, body = _split(s.body)
            if not taken:
                return None
            moved: Statement = For(s.var, s.name, s.low, s.extent, s.kind, s.lane, body)
            for a in reversed(taken):
                moved = Allocate(a.buffer, moved)
            return moved
    return None


def _split(s: Statement) -> tuple[list[Allocate], Statement]:
    """The workspace allocations that stand directly in a body, and the body without them."""
    match s:
        case Allocate(buffer=b, body=inner) if b.memory == "workspace":
            taken, rest = _split(inner)
            return [s, *taken], rest
        case Sequence(body=parts):
            found = [_split(p) for p in parts]
            return [a for taken, _ in found for a in taken], sequence(*(rest for _, rest in found))
    return [], s
