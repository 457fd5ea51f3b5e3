"""What is left of a plan when the lines that are wrong are set aside: it can be checked further, so that no mistake hides another.

A line of `schedule` that is set aside leaves its stages as they are (compute_root); lines whose legality hangs on it go with it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from .directives import Cache, ComputeAt, ComputeInline, ComputeRoot, ComputeWith, FindBest, Pack, Rfactor, StageIn
from .matching import assign
from .notation.places import Place
from .notation.records import default
from .notation.tables import Table
from .notation.tree import Items, Keys, Leaf, Tree
from .plan import ExecutionPlan
from .pool import Pool
from .sections import ScheduleEntry
from .selectors import bound, select

_MAKES_STAGES = (Pack, Cache, StageIn, FindBest, Rfactor)
_ESSENTIAL = ("version", "program", "extends", "target")
_NAMELESS = frozenset({"P101", "P102", "P103", "P104", "P106"})
"""Of these codes the selector itself is wrong, so that nobody can say which stages the line is about."""
_NAMES_NOTHING = frozenset({"P101", "P105"})
TIES = frozenset({"P230", "P231"})
"""Of these codes a line that was set aside can be the cause: it says no longer which stages share a kernel."""
Part = tuple[str | int, ...]


@dataclass(frozen=True)
class Remainder:
    """The plan without what is wrong. `aside` are lines of its schedule, by index.

    `hushed` are codes that may now be mere consequences, `unmade` names of stages that lines set aside would have made.
    """

    plan: ExecutionPlan
    aside: frozenset[int] = frozenset()
    hushed: frozenset[str] = frozenset()
    unmade: frozenset[str] = frozenset()

    def news(self, problems: Iterable[Problem]) -> list[Problem]:
        """Problems of the rest that are no consequence of what has been set aside: with a place, in lines that still count."""
        parts, entries = _Parts(self.plan), self.plan.entries()

        def counts(p: Problem) -> bool:
            match parts.of(p):
                case None:
                    return False
                case ("schedule", int(n)):
                    names = {part for text in entries[n].selectors for part in text.split("/")}
                    return n not in self.aside and not (p.code in _NAMES_NOTHING and names & self.unmade)
            return not (p.code in _NAMES_NOTHING and self.unmade)

        return [p for p in problems if p.code not in self.hushed and counts(p)]


def remainder(plan: ExecutionPlan, problems: Sequence[Problem], graph: Graph, before: Remainder | None = None) -> Remainder | None:
    """The plan without the parts that have these problems; None if a problem has no place, or lies where nothing can be left out."""
    aside = set(before.aside) if before else set()
    hushed = set(before.hushed) if before else set(TIES)
    parts = _Parts(plan)
    dropped: set[Part] = set()
    nameless: set[int] = set()
    for problem in problems:
        part = parts.of(problem)
        if part is None or part[0] in _ESSENTIAL:
            return None
        if part[0] == "schedule" and len(part) > 1 and isinstance(part[1], int):
            aside.add(part[1])
            nameless |= {part[1]} if problem.code in _NAMELESS else set()
        else:
            dropped.add(part)
            hushed |= _NAMES_NOTHING if problem.code == "P901" else {"P014"} if part[0] == "holes" else set()
    entries = list(plan.entries())
    made = [d.into or "partial" for n in aside for d in _directives(entries[n]) if isinstance(d, _MAKES_STAGES)]
    unmade = {name for name in made if isinstance(name, str)}
    aside |= set(_entangled(entries, aside, graph))
    for n in aside:
        entries[n] = entries[n].replace(do=(ComputeRoot(),), optional=True, marks=entries[n].marks)
    rest = _without(plan, dropped)
    if entries:
        rest = rest.replace(schedule=tuple(_unselecting(e) if n in nameless else e for n, e in enumerate(entries)))
    return Remainder(rest, frozenset(aside), frozenset(hushed), frozenset(unmade) | (before.unmade if before else frozenset()))


def legible(tree: Keys, problems: Sequence[Problem]) -> Keys | None:
    """The tree of a plan without the parts that could not be read: lines of schedule become [compute_root], other sections go."""
    parts = _TreeParts(tree)
    wrong = {parts.of(p) for p in problems}
    if any(part is None or part[0] in _ESSENTIAL for part in wrong):
        return None
    entries: list[tuple[Leaf, Tree]] = []
    for key, value in tree.entries:
        if (key.text,) in wrong:
            continue
        if key.text == "schedule" and isinstance(value, Keys):
            root = Items((Leaf("compute_root"),))
            value = replace(
                value, entries=tuple((k, replace(root, place=v.place) if ("schedule", n) in wrong else v) for n, (k, v) in _counted(value))
            )
        elif key.text == "schedule" and isinstance(value, Items):
            value = replace(value, values=tuple(v for n, v in enumerate(value.values) if ("schedule", n) not in wrong))
        entries.append((key, value))
    return replace(tree, entries=tuple(entries))


def unread(tree: Keys, problems: Sequence[Problem]) -> tuple[frozenset[str], frozenset[str]]:
    """The selectors of the lines of schedule that `legible` has emptied, and the stages that these would have made."""
    schedule, parts = tree.get("schedule"), _TreeParts(tree)
    wrong = {parts.of(p) for p in problems}
    if not isinstance(schedule, Keys | Items):
        return frozenset(), frozenset()
    lines = _counted(schedule) if isinstance(schedule, Keys) else [(n, (Leaf(""), v)) for n, v in enumerate(schedule.values)]
    gone = [line for n, line in lines if ("schedule", n) in wrong]
    return frozenset(key.text for key, _ in gone), frozenset({"partial", *(name for _, value in gone for name in _made(value))})


def _made(tree: Tree) -> Iterator[str]:
    match tree:
        case Items(values):
            for value in values:
                yield from _made(value)
        case Keys(entries):
            for key, value in entries:
                yield from (value.text,) if key.text == "into" and isinstance(value, Leaf) else _made(value)


def _counted(tree: Keys) -> list[tuple[int, tuple[Leaf, Tree]]]:
    return list(enumerate(tree.entries))


class _Located:
    """Parts by where they begin: a problem belongs to the last part that begins before it, in the same file."""

    def __init__(self, found: Iterable[tuple[Place, Part]]) -> None:
        self.starts: dict[str, list[tuple[int, int]]] = {}
        self.parts: dict[str, list[Part]] = {}
        for place, part in sorted(((p, part) for p, part in found if p.line), key=lambda one: (one[0].line, one[0].column)):
            self.starts.setdefault(place.file, []).append((place.line, place.column))
            self.parts.setdefault(place.file, []).append(part)

    def of(self, problem: Problem) -> Part | None:
        if not problem.line or problem.file not in self.starts:
            return None
        n = bisect_right(self.starts[problem.file], (problem.line, problem.column or 0))
        return self.parts[problem.file][n - 1] if n else None


class _Parts(_Located):
    """What can be left out of a plan: lines of the schedule, elements of fusion, variants, fixed extents, whole sections."""

    def __init__(self, plan: ExecutionPlan) -> None:
        super().__init__(self._all(plan))

    @staticmethod
    def _all(plan: ExecutionPlan) -> Iterator[tuple[Place, Part]]:
        for name in plan.given():
            yield plan.marks.key(name), (name,)
        for n, entry in enumerate(plan.entries()):
            yield entry.place, ("schedule", n)
        for n, variant in enumerate(plan.variants if isinstance(plan.variants, tuple) else ()):
            yield variant.place, ("variants", n)
        for name in plan.extents if isinstance(plan.extents, Table) else ():
            yield plan.marks.key("extents", name), ("extents", name)
        for field in ("groups", "never"):
            for n in range(len(getattr(plan.fusion, field, ()))):
                yield plan.fusion.place_of(field, n), ("fusion", field, n)


class _TreeParts(_Located):
    """The same of a plan that could not be read: lines of the schedule and whole sections."""

    def __init__(self, tree: Keys) -> None:
        super().__init__(self._all(tree))

    @staticmethod
    def _all(tree: Keys) -> Iterator[tuple[Place, Part]]:
        for key, value in tree.entries:
            yield key.place, (key.text,)
            if key.text == "schedule" and isinstance(value, Keys):
                yield from ((k.place, ("schedule", n)) for n, (k, _) in _counted(value))
            elif key.text == "schedule" and isinstance(value, Items):
                yield from ((v.place, ("schedule", n)) for n, v in enumerate(value.values))


def _without(plan: ExecutionPlan, dropped: set[Part]) -> ExecutionPlan:
    for section in {part[0] for part in dropped}:
        gone = {part[1:] for part in dropped if part[0] == section}
        match section:
            case "variants" if () not in gone:
                plan = plan.replace(variants=tuple(v for n, v in enumerate(plan.variants) if (n,) not in gone))
            case "extents" if () not in gone:
                plan = plan.replace(extents=Table({k: v for k, v in plan.extents.items() if (k,) not in gone}))
            case "fusion" if () not in gone:
                kept = {f: tuple(g for n, g in enumerate(getattr(plan.fusion, f)) if (f, n) not in gone) for f in ("groups", "never")}
                plan = plan.replace(fusion=plan.fusion.replace(**kept))
            case _:
                plan = plan.replace(**{str(section): default(type(plan), str(section))})
    return plan


def _directives(entry: ScheduleEntry) -> tuple[object, ...]:
    return entry.do if isinstance(entry.do, tuple) else ()


def _unselecting(entry: ScheduleEntry) -> ScheduleEntry:
    """A line that means no stage: what its selector meant is not known."""
    return entry.replace(select=("/nothing/of/this/name",), marks=entry.marks)


def _entangled(entries: Sequence[ScheduleEntry], aside: Iterable[int], graph: Graph) -> Iterator[int]:
    """Lines whose stages share a kernel, by compute_at, with stages of lines set aside, or are read by these from inside a kernel."""
    claims: dict[int, list[Stage]] = {}
    by_id: dict[int, int] = {}
    pool = Pool(graph.stages)
    for n, entry in enumerate(entries):
        try:
            claims[n] = [m.stage for m in assign([entry], pool, missing_ok=True).values()]
        except PlanError:
            claims[n] = []
        by_id.update({s.id: n for s in claims[n]})
    owners = dict(_owners(entries, claims, graph))
    gone = set(aside)
    inside = [n for n, entry in enumerate(entries) if any(isinstance(d, ComputeAt | ComputeInline) for d in _directives(entry))]
    moved = {s.id for n in inside for s in claims[n]}
    pending = [s.id for n in gone for s in claims[n]]
    pending += [i for i, owner in owners.items() if owner is None and by_id[i] in gone]
    seen: set[int] = set()
    while pending:
        i = pending.pop()
        if i in seen:
            continue
        seen.add(i)
        stage = graph.stage(i)
        pending += [j for j, owner in owners.items() if owner == i]
        pending += [owner for owner in (owners.get(i),) if owner is not None]
        pending += [j for j in (stage.sources if stage else ()) if j in moved]
    yield from {by_id[i] for i in seen if i in by_id}


def _owners(entries: Sequence[ScheduleEntry], claims: dict[int, list[Stage]], graph: Graph) -> Iterator[tuple[int, int | None]]:
    peers = {m.name: Pool(t for t in graph.stages if t.method == m.name) for m in graph.methods}
    for n, some in claims.items():
        for s in some:
            for d in _directives(entries[n]):
                if isinstance(d, ComputeAt | ComputeWith) and isinstance(d.stage, str):
                    try:
                        yield s.id, select(bound(d.stage, entries[n].selectors[0], s), peers[s.method], scopes=False, hints=False)[0].id
                    except PlanError:
                        yield s.id, None


__all__ = ["Remainder", "legible", "remainder", "unread"]
