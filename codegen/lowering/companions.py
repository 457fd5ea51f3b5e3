"""Nests that run together (compute_with): the loops that two stages share become one, with what each does in it side by side.

While a kernel is lowered the nests concerned are marked with their stages. Here every mark finds the one that it belongs beside, and what
has to come before or after either is put there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Axis, Expr
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import reads, substitute
from fluorite.schedule.nest import PARALLEL, SERIAL, VECTOR, Loop

from ..statements import Allocate, Buffer, For, If, Marked, Statement, Store, While, sequence, transform, walk
from ..statements import Sequence as Several
from . import logic
from .context import Context
from .moving import changed

Pairs = Sequence[tuple[Loop, Loop]]
"""Loops of a leader and of its companion that become one, outermost first."""


def run_together(work: Context, body: Statement) -> Statement:
    """The kernel with the loops of companions shared, and without marks."""
    if not work.plan.companions:
        return body
    made = _Together(work)
    body = made.within(body)
    for i in work.plan.companions:
        if i not in made.done:
            raise _refused(work, i, "no iteration of the loops around them computes both")
    return transform(body, lambda s: s.body if isinstance(s, Marked) else None)


class _Together:
    def __init__(self, work: Context) -> None:
        self.work = work
        self.done: set[int] = set()

    # ------------------------------------------------------------ which nests, and in which order
    def within(self, s: Statement) -> Statement:
        """The statement with the companions in it together, those of outer loops first."""
        buffers, parts = _opened(s)
        if clusters := self._clusters(parts):
            s = sequence(*self._arranged(parts, clusters))
            for b in reversed(buffers):
                s = Allocate(b, s)
        match s:
            case For() | While() | Allocate() | Marked():
                return replace(s, body=self.within(s.body))
            case If():
                return If(s.condition, self.within(s.then), None if s.otherwise is None else self.within(s.otherwise))
            case Several():
                return sequence(*map(self.within, s.body))
        return s

    def _clusters(self, parts: Sequence[Statement]) -> list[list[int]]:
        """The positions of nests that belong together, leaders first."""
        at = {p.stage: n for n, p in enumerate(parts) if isinstance(p, Marked)}
        found: dict[int, list[int]] = {}
        for i, c in self.work.plan.companions.items():
            if i in at and c.leader in at:
                found.setdefault(c.leader, [at[c.leader]]).append(at[i])
        return list(found.values())

    def _arranged(self, parts: Sequence[Statement], clusters: list[list[int]]) -> list[Statement]:
        """The parts in an order in which each finds what it reads, with one statement for each cluster."""
        together = {n: cluster for cluster in clusters for n in cluster}
        touched = [_touched(p) for p in parts]
        needs = {n: [m for m in range(n) if _conflict(touched[m], touched[n])] for n in range(len(parts))}
        out: list[Statement] = []
        left, placed = list(range(len(parts))), set[int]()
        while left:
            units = (together.get(n, [n]) for n in left)
            ready = next((u for u in units if all(m in placed or m in u for n in u for m in needs[n])), None)
            if ready is None:
                stages = [p.stage for n in sorted(together) if n in left and isinstance(p := parts[n], Marked)]
                some = next(i for i in stages if i in self.work.plan.companions)
                names = " and ".join(self.work.by_id[i].name for i in stages)
                raise _refused(self.work, some, f"of {names} each would have to be done before the other")
            out.append(self._one([parts[n] for n in ready]))
            placed |= set(ready)
            left = [n for n in left if n not in placed]
        return out

    def _one(self, nests: Sequence[Statement]) -> Statement:
        leader, *others = nests
        if not others or not isinstance(leader, Marked):
            return leader
        body = leader.body
        for x in others:
            assert isinstance(x, Marked)
            self.done.add(x.stage)
            body = self._beside(body, x.body, self._shared(x.stage), x.stage)
        return body

    def _shared(self, i: int) -> Pairs:
        """The loops that stage i shares with its leader."""
        c = self.work.plan.companions[i]
        leader, s = self.work.by_id[c.leader], self.work.by_id[i]
        theirs, mine = self.work.nests[leader.id], self.work.nests[i]
        if theirs.loop(c.loop) is None:
            names = ", ".join(x.name for x in theirs.loops if x.kind != VECTOR) or "none"
            raise _refused(self.work, i, f'{leader.name} has no loop "{c.loop}"; outside vectors it has {names}')
        depth = theirs.position(c.loop) + 1
        if len(mine.loops) < depth:
            raise _refused(self.work, i, f"{leader.name} has {depth} loops down to {c.loop}, {s.name} has {len(mine.loops)}")
        pairs = list(zip(theirs.loops[:depth], mine.loops[:depth], strict=True))
        for x, y in pairs:
            if VECTOR in (x.kind, y.kind):
                raise _refused(self.work, i, f"{(x if x.kind == VECTOR else y).name} is vectorised; name a loop outside it")
            if x.kind != y.kind or str(x.extent) != str(y.extent):
                alike = str(x.extent) == str(y.extent) and x.reduction == y.reduction
                how = (f"{s.name}: [{{parallel: {y.name}}}, ...]",) if alike and (x.kind, y.kind) == (PARALLEL, SERIAL) else ()
                raise _refused(self.work, i, f"{_told(x)} of {leader.name} is not {_told(y)} of {s.name}", *how)
        return pairs

    # ------------------------------------------------------------ two nests as one
    def _beside(self, a: Statement, b: Statement, loops: Pairs, i: int) -> Statement:
        """Both statements, with one loop in the place of each pair."""
        (first, second), *rest = loops
        match a, b:
            case Allocate(), _:
                return Allocate(a.buffer, self._beside(a.body, b, loops, i))
            case _, Allocate():
                return Allocate(b.buffer, self._beside(a, b.body, loops, i))
            case Several(), _:
                before, loop, after = _split(a, first.var)
                return sequence(*before, self._beside(loop, b, loops, i), *after)
            case _, Several():
                before, loop, after = _split(b, second.var)
                return sequence(*before, self._beside(a, loop, loops, i), *after)
            case If(), If() if a.condition is b.condition:
                other = self._branch(a.otherwise, b.otherwise, loops, i) if a.otherwise or b.otherwise else None
                return If(a.condition, self._branch(a.then, b.then, loops, i), other)
            case If(), If() if a.otherwise is not None and b.otherwise is not None:
                both = logic.conjunction([a.condition, b.condition])
                return If(both, self._branch(a.then, b.then, loops, i), sequence(a, b))
            case If(), _:
                return If(a.condition, self._branch(a.then, b, loops, i), self._branch(a.otherwise, b, loops, i))
            case _, If():
                return If(b.condition, self._branch(a, b.then, loops, i), self._branch(a, b.otherwise, loops, i))
            case For(), For() if a.var is first.var and b.var is second.var and a.kind == b.kind:
                if a.low is b.low and logic.same(a.extent, b.extent):
                    its = renamed(b.body, {second.var: first.var}, self.work)
                    return replace(a, body=self._beside(a.body, its, rest, i) if rest else _one_after_the_other(a.body, its))
        leader = self.work.by_id[self.work.plan.companions[i].leader]
        raise _refused(self.work, i, f"loop {first.name} of {leader.name} ends, or is written, otherwise than {second.name}")

    def _branch(self, a: Statement | None, b: Statement | None, loops: Pairs, i: int) -> Statement:
        """What two branches do, together as far as both have the loops."""
        if a is not None and b is not None and _has(a, loops[0][0].var) and _has(b, loops[0][1].var):
            return self._beside(a, b, loops, i)
        return sequence(*(x for x in (a, b) if x is not None))


def _one_after_the_other(a: Statement, b: Statement) -> Statement:
    """Two statements, inside one test where both make the same."""
    match a, b:
        case If(), If() if a.condition is b.condition and (a.otherwise is None) == (b.otherwise is None):
            other = _one_after_the_other(a.otherwise, b.otherwise) if a.otherwise is not None and b.otherwise is not None else None
            return If(a.condition, _one_after_the_other(a.then, b.then), other)
    return sequence(a, b)


def renamed(s: Statement, to: Mapping[Axis, Axis], work: Context) -> Statement:
    """The statement with other loop variables."""
    return changed(s, lambda e: simplify(substitute(e, dict(to)), work.ranges))


def _split(s: Several, var: Axis) -> tuple[tuple[Statement, ...], Statement, tuple[Statement, ...]]:
    """What comes before the part with the loop over var, that part, and what comes after it."""
    at = next((n for n, p in enumerate(s.body) if _has(p, var)), len(s.body) - 1)
    return s.body[:at], s.body[at], s.body[at + 1 :]


def _has(s: Statement, var: Axis) -> bool:
    return any(isinstance(n, For) and n.var is var for n in walk(s))


def _opened(s: Statement) -> tuple[list[Buffer], list[Statement]]:
    """The parts of a sequence, out of the allocations around each, and what these allocate."""
    match s:
        case Allocate():
            buffers, parts = _opened(s.body)
            return [s.buffer, *buffers], parts
        case Several():
            found = [_opened(p) for p in s.body]
            return [b for buffers, _ in found for b in buffers], [p for _, parts in found for p in parts]
    return [], [s]


def _touched(s: Statement) -> tuple[set[int], set[int]]:
    """The buffers that a statement reads, and those that it writes; one of another kind may do both."""
    read, written = set[int](), set[int]()

    def asked(*given: Expr) -> None:
        read.update(r.source for e in given for r in reads(e))

    for n in walk(s):
        match n:
            case Store():
                asked(n.value, *n.index)
                written.add(n.buffer)
            case If() | While():
                asked(n.condition)
            case For():
                asked(n.low, n.extent)
            case Allocate() | Several() | Marked():
                pass
            case _:
                any_of = {v for v in vars(n).values() if isinstance(v, int)} | {m.buffer for m in vars(n).values() if hasattr(m, "buffer")}
                read |= any_of
                written |= any_of
    return read, written


def _conflict(a: tuple[set[int], set[int]], b: tuple[set[int], set[int]]) -> bool:
    return bool(a[1] & (b[0] | b[1]) or a[0] & b[1])


def _told(loop: Loop) -> str:
    return f"{'reduction ' * loop.reduction}loop {loop.name} ({loop.kind}, {loop.extent})"


def _refused(work: Context, i: int, why: str, *instead: str) -> PlanError:
    c, s = work.plan.companions[i], work.by_id[i]
    asked = f'{s.name} cannot run together with {work.by_id[c.leader].name} down to "{c.loop}"'
    return PlanError([c.directive.at().problem("P266", asked, why, (*instead, "leave compute_with out"), path=s.path, source=s.source)])


__all__ = ["run_together"]
