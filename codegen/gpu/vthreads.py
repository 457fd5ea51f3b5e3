"""Virtual threads: each real thread runs the statements of several, one after the other, with registers for each.

A loop over virtual threads stands outside the threads. What does not change with it is done once, tiles of shared memory and barriers among
it; the rest is written out for each, as far inside as it goes, so that all of them read a tile while it is there.
"""

from __future__ import annotations

from dataclasses import replace

from fluorite.algo.errors import InternalError
from fluorite.algo.expr import Const, Expr, Read
from fluorite.algo.rewriting import axes_of, rewrite
from fluorite.algo.rewriting import walk as parts_of
from fluorite.schedule.nest import UNROLLED, VTHREAD

from ..statements import Allocate, Barrier, Buffer, For, If, Sequence, Statement, Store, While, sequence, transform, walk


def written_out(body: Statement) -> Statement:
    """The statements without loops over virtual threads."""

    def rule(s: Statement) -> Statement | None:
        return _Virtual(s).inside(s.body) if isinstance(s, For) and s.kind == VTHREAD else None

    return transform(body, rule)


class _Virtual:
    """One loop over virtual threads."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.own: dict[int, Buffer] = {}  # the registers of which each virtual thread has its own

    def inside(self, s: Statement) -> Statement:
        """The statement for all of the virtual threads."""
        if not self.differs(s):
            return s
        match s:
            case Sequence(body=parts):
                return sequence(*map(self.inside, parts))
            case Allocate(buffer=b) if b.memory == "local":
                self.own[b.id] = more = replace(b, shape=(_number(self.loop.extent), *b.shape))
                return Allocate(more, self.inside(s.body))
            case Allocate():
                return Allocate(s.buffer, self.inside(s.body))
            case For() if not (self.changes(s.low) or self.changes(s.extent)):
                return replace(s, body=self.inside(s.body))
            case If() if not self.changes(s.condition):
                return If(s.condition, self.inside(s.then), None if s.otherwise is None else self.inside(s.otherwise))
            case While():
                raise InternalError("a loop of turns in virtual threads")
        if any(isinstance(n, Barrier) or (isinstance(n, Allocate) and n.buffer.memory == "shared") for n in walk(s)):
            raise InternalError("virtual threads that differ around a barrier")
        return For(self.loop.var, self.loop.name, self.loop.low, self.loop.extent, UNROLLED, "", self.renamed(s))

    def differs(self, s: Statement) -> bool:
        """Whether anything in a statement changes with the virtual thread."""
        return any(self._differs(n) for n in walk(s))

    def _differs(self, n: Statement) -> bool:
        match n:
            case Store(buffer=b, index=index, value=value):
                return b in self.own or any(map(self.changes, (*index, value)))
            case For(low=low, extent=extent):
                return self.changes(low) or self.changes(extent)
            case If(condition=c) | While(condition=c):
                return self.changes(c)
        return False

    def changes(self, e: Expr) -> bool:
        return any(a is self.loop.var for a in axes_of(e)) or any(isinstance(n, Read) and n.source in self.own for n in parts_of(e))

    def renamed(self, s: Statement) -> Statement:
        """The statement of one virtual thread, with its own registers."""
        var = self.loop.var

        def value(e: Expr) -> Expr:
            return rewrite(e, lambda n: Read(n.source, (var, *n.index), n.dtype) if isinstance(n, Read) and n.source in self.own else None)

        def rule(n: Statement) -> Statement | None:
            match n:
                case Store():
                    index = tuple(map(value, n.index))
                    return Store(n.buffer, (var, *index) if n.buffer in self.own else index, value(n.value))
                case For():
                    return replace(n, low=value(n.low), extent=value(n.extent))
                case If():
                    return replace(n, condition=value(n.condition))
            return None

        return transform(s, rule)


def _number(e: Expr) -> int:
    assert isinstance(e, Const)  # virtual threads are counted when the kernel is made
    return int(e.value)


__all__ = ["written_out"]
