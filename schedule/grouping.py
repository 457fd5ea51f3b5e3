"""Which stages share a kernel: what compute_at ties together, what the plan lists, and the order in which kernels can run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.ordering import units
from fluorite.algo.stages import Stage

from .directives import ComputeAt, ComputeWith, StoreAt
from .notation.places import NOWHERE, Place
from .running_order import running_order


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
class Companion:
    """The loops of stage `leader` down to `loop` are this stage's too."""

    leader: int
    loop: str
    directive: ComputeWith


@dataclass(frozen=True)
class Apart:
    """Two stages that must not share a kernel: the stages that compute each of them (its readers, if it is written into these)."""

    a: frozenset[int]
    b: frozenset[int]
    names: tuple[str, str]
    place: Place = NOWHERE


@dataclass(frozen=True)
class Group:
    """The stages of one kernel in producer order, those of them that others need, where members are computed, whose loops they share."""

    stages: tuple[int, ...]
    outputs: frozenset[int]
    placements: Mapping[int, Placement]
    companions: Mapping[int, Companion] = field(default_factory=dict)


def group_stages(
    g: Graph,
    placements: Mapping[int, Placement],
    together: Sequence[Sequence[int]],
    apart: Sequence[Apart] = (),
    places: Sequence[Place] = (),
    companions: Mapping[int, Companion] | None = None,
) -> tuple[Group, ...]:
    """Kernels in an order in which each finds its inputs. Raises PlanError for one that encloses a stage outside it, or breaks `never`.

    `places` are those of the groups of `together` in the plan.
    """
    home, beside = {s.id: s.id for s in g.stages}, companions or {}

    def root(i: int) -> int:
        while home[i] != i:
            i = home[i]
        return i

    for i, p in placements.items():
        home[root(i)] = root(p.owner)
    for i, c in beside.items():
        home[root(i)] = root(c.leader)
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
    asked |= {i: c.directive.at() for i, c in beside.items() if c.directive.at().line}
    order = _ordered(g, root, members_of, asked)
    groups = []
    for r in order:
        inside = set(members_of[r])
        outputs = frozenset(i for i in inside if i in g.outputs or any(c.id not in inside for c in g.consumers[i]))
        placed = {i: placements[i] for i in members_of[r] if i in placements}
        groups.append(Group(tuple(members_of[r]), outputs, placed, {i: beside[i] for i in members_of[r] if i in beside}))
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
    """Groups in an order in which each finds its inputs, method by method. Those that make new values of state come after the readers of
    the old ones as far as they may: the new value can then be written over the old one. A cycle means that a group encloses something
    outside it."""
    place = {root(s.id): n for n, s in enumerate(g.stages)}  # a group stands where its last stage does
    needs: dict[int, set[int]] = {r: set() for r in members_of}
    for s in g.stages:
        needs[root(s.id)] |= {root(i) for i in s.sources if g.stage(i) is not None} - {root(s.id)}
    before, left = _acyclic(needs, _readers_of_old(g, root), place)
    if left:
        raise PlanError([_enclosed(g, left, members_of, asked)])
    of_method: dict[str, dict[int, Sequence[int]]] = {}
    for r, members in members_of.items():
        first = g.stage(members[0])
        assert first is not None
        of_method.setdefault(first.method, {})[r] = members
    return [r for mine in of_method.values() for r in running_order(g, root, mine, {r: before[r] for r in mine}, place)]


def _acyclic(
    needs: Mapping[int, set[int]], wishes: Mapping[int, frozenset[int]], place: Mapping[int, int]
) -> tuple[dict[int, set[int]], list[int]]:
    """By group: what it needs and, as far as that makes no circle, what it should come after. And those that need themselves."""
    before = {r: need | wishes.get(r, frozenset()) for r, need in needs.items()}
    users: dict[int, list[int]] = {r: [] for r in needs}
    for r, those in before.items():
        for b in those:
            users[b].append(r)
    needing, waiting = ({r: len(those) for r, those in found.items()} for found in (needs, before))
    ready, able = ([(place[r], r) for r, n in found.items() if not n] for found in (waiting, needing))
    heapify(ready)
    heapify(able)
    done: set[int] = set()
    while ready or able:
        _, r = heappop(ready or able)  # where all wait for one another, the first that could run does
        if r in done:
            continue
        before[r] = {b for b in before[r] if b in done}
        done.add(r)
        for user in users[r]:
            waiting[user] -= 1
            if not waiting[user]:
                heappush(ready, (place[user], user))
            if r in needs[user]:
                needing[user] -= 1
                if not needing[user]:
                    heappush(able, (place[user], user))
    return before, [r for r in needs if r not in done]


def _readers_of_old(g: Graph, root: Callable[[int], int]) -> Mapping[int, frozenset[int]]:
    """By group that makes a new value of state: the other groups of its method that read the old one."""
    found: dict[int, frozenset[int]] = {}
    for new, leaf in g.updates.items():
        mine, maker = root(new), g.by_id[new]
        assert isinstance(maker, Stage)
        others = {root(s.id) for s in g.consumers[leaf.id] if s.method == maker.method} - {mine}
        found[mine] = found.get(mine, frozenset()) | others
    return found


def _enclosed(g: Graph, left: Sequence[int], members_of: Mapping[int, Sequence[int]], asked: Mapping[int, Place]) -> Problem:
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
