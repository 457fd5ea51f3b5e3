"""Which stages share a kernel: what compute_at ties together, what the plan lists, and the order in which kernels can run."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.ordering import units
from fluorite.algo.stages import Stage

from .alive import Alive
from .directives import ComputeAt, StoreAt
from .notation.places import NOWHERE, Place


@dataclass(frozen=True)
class Keeping:
    """Where a stage's result is kept, if not where it is computed: loop `loop` of stage `owner`."""

    owner: int
    loop: str
    directive: StoreAt


@dataclass(frozen=True)
class Placement:
    """Computed at loop `loop` of stage `owner`: before the rest of the iteration, which reads it, or `after` it, reading what it made."""

    owner: int
    loop: str
    directive: ComputeAt | None = None
    after: bool = False
    kept: Keeping | None = None


@dataclass(frozen=True)
class Apart:
    """Two stages that must not share a kernel: the stages that compute each of them (its readers, if it is written into these)."""

    a: frozenset[int]
    b: frozenset[int]
    names: tuple[str, str]
    place: Place = NOWHERE


@dataclass(frozen=True)
class Group:
    """The stages of one kernel in producer order, those of them that others need, and where members are computed."""

    stages: tuple[int, ...]
    outputs: frozenset[int]
    placements: Mapping[int, Placement]


def group_stages(
    g: Graph,
    placements: Mapping[int, Placement],
    together: Sequence[Sequence[int]],
    apart: Sequence[Apart] = (),
    places: Sequence[Place] = (),
) -> tuple[Group, ...]:
    """Kernels in an order in which each finds its inputs. Raises PlanError for one that encloses a stage outside it, or breaks `never`.

    `places` are those of the groups of `together` in the plan.
    """
    home = {s.id: s.id for s in g.stages}

    def root(i: int) -> int:
        while home[i] != i:
            i = home[i]
        return i

    for i, p in placements.items():
        home[root(i)] = root(p.owner)
    for unit in units(g.stages):
        for s in unit[1:]:
            home[root(s.id)] = root(unit[0].id)
    for group in together:
        members = [i for i in group if i in home]
        for i in members[1:]:
            home[root(i)] = root(members[0])
    members_of: dict[int, list[int]] = {}
    for s in g.stages:
        members_of.setdefault(root(s.id), []).append(s.id)
    problems = _contradictions(g, root, apart)
    if problems:
        raise PlanError(problems)
    asked = {i: place for group, place in zip(together, places, strict=False) for i in group}
    asked |= {i: p.directive.at() for i, p in placements.items() if p.directive is not None and p.directive.at().line}
    order = _ordered(g, root, members_of, asked)
    groups = []
    for r in order:
        inside = set(members_of[r])
        outputs = frozenset(i for i in inside if i in g.outputs or any(c.id not in inside for c in g.consumers[i]))
        groups.append(Group(tuple(members_of[r]), outputs, {i: placements[i] for i in members_of[r] if i in placements}))
    return tuple(groups)


def _contradictions(g: Graph, root: Callable[[int], int], apart: Sequence[Apart]) -> list[Problem]:
    out = []
    for pair in apart:
        a, b = ({root(i) for i in found if i in g.by_id} for found in (pair.a, pair.b))
        if a & b:
            asked = f"{pair.names[0]} and {pair.names[1]} share a kernel although fusion: never forbids it"
            why = "compute_at, compute_inline and the groups of fusion tie stages together"
            out.append(pair.place.problem("P230", asked, why, ("drop one of the two",)))
    return out


def _ordered(g: Graph, root: Callable[[int], int], members_of: Mapping[int, Sequence[int]], asked: Mapping[int, Place]) -> list[int]:
    """Groups in dependence order: as soon as they can run those that free more memory than they take, as updates by a gradient do; the
    others in the order of their stages, so that no value is made long before it is read. Those that make new values of state come after
    the readers of the old ones as far as they may: the new value can then be written over the old one. A cycle means that a group encloses
    something outside it."""
    needs: dict[int, set[int]] = {r: set() for r in members_of}
    readers = _readers_of_old(g, root)
    for s in g.stages:
        for source in s.sources:
            if g.stage(source) is not None and root(source) != root(s.id):
                needs[root(s.id)].add(root(source))
    users: dict[int, list[int]] = {r: [] for r in members_of}
    for r, need in needs.items():
        for n in need:
            users[n].append(r)
    last = {root(s.id): n for n, s in enumerate(g.stages)}  # a group stands where its last stage does
    ready = sorted((last[r], r) for r, need in needs.items() if not need)
    order: list[int] = []
    left = {r: set(need) for r, need in needs.items()}
    alive = Alive(g, root, members_of)
    while ready:
        may = [n for n, (_, r) in enumerate(ready) if not readers.get(r, frozenset()) & left.keys()] or [0]
        able = {ready[n][1] for n in may}
        _, r = ready.pop(next((n for n in may if alive.growth(ready[n][1], able) < 0), may[0]))
        alive.run(r)
        order.append(r)
        del left[r]
        for user in users[r]:
            left[user].discard(r)
            if not left[user]:
                insort(ready, (last[user], user))
    if left:
        raise PlanError([_enclosed(g, left, members_of, asked)])
    return order


def _readers_of_old(g: Graph, root: Callable[[int], int]) -> Mapping[int, frozenset[int]]:
    """By group that makes a new value of state: the other groups of its method that read the old one."""
    found: dict[int, frozenset[int]] = {}
    for new, leaf in g.updates.items():
        mine, maker = root(new), g.by_id[new]
        assert isinstance(maker, Stage)
        others = {root(s.id) for s in g.consumers[leaf.id] if s.method == maker.method} - {mine}
        found[mine] = found.get(mine, frozenset()) | others
    return found


def _enclosed(g: Graph, left: Mapping[int, set[int]], members_of: Mapping[int, Sequence[int]], asked: Mapping[int, Place]) -> Problem:
    several = [r for r in left if len(members_of[r]) > 1]
    r = next((r for r in several if asked.keys() & set(members_of[r])), several[0] if several else next(iter(left)))
    names = ", ".join(g[i].name for i in members_of[r])
    others = [g[i].name for q in left if q != r for i in members_of[q]]
    place = next((place for i, place in asked.items() if i in members_of[r]), NOWHERE)
    return place.problem(
        "P231",
        f"the kernel of {names} would need {', '.join(others)} before it is done and after it has begun",
        "a kernel must be able to run in one piece",
        (f"compute {others[0] if others else 'the stage between'} in it as well", "compute_root"),
    )
