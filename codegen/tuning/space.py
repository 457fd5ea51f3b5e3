"""What a plan leaves open: its holes, and the stages that are left to the scheduler. Every candidate is a plan without either."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.schedule import (
    AUTO,
    ExecutionPlan,
    OpenHole,
    ScheduleEntry,
    Tune,
    Variant,
    autos_of,
    entries_of,
    fill,
    holes_of,
    plain,
    satisfies,
)
from fluorite.schedule.divisors import extent_lookup
from fluorite.schedule.notation.holes import Choose
from fluorite.schedule.scheduled import Scheduled

from ..buckets import buckets_of
from ..driver import schedule
from ..target import CodeTarget
from .edits import Chosen, Surroundings, neighbours

_TRIES = 200


@dataclass(frozen=True, eq=False)
class Candidate:
    """Values of holes by id, else defaults; directives by specialisation and stage path, none of them if the scheduler decides."""

    choice: Mapping[str, Any] = field(default_factory=dict)
    edits: Mapping[str, Chosen] = field(default_factory=dict)


class Space:
    """All candidates of a resolved plan. `places` are the specialisations (as JSON text; "{}" is the generic code) that are measured.

    Stages left open are those that the plan says `auto` for and those that it does not mention, if it says `auto` anywhere or has nothing
    else open; holes alone leave them to the scheduler. Raises PlanError if the untuned plan is illegal.
    """

    def __init__(self, plan: ExecutionPlan, graph: Graph, target: CodeTarget, places: tuple[str, ...] = ("{}",)) -> None:
        self.plan, self.graph, self.target = plan, graph, target
        self.lookup = extent_lookup(graph, plan)
        self.holes = holes_of(plan, self.lookup)
        self.searches_schedules = bool(autos_of(plan)) or not self.holes
        untuned = self.plan_of(Candidate())
        self.schedules: dict[str, Scheduled] = {}
        if self.searches_schedules:
            found, _ = buckets_of(untuned)
            for when in found:
                scheduled = schedule(graph, untuned, target, when)
                if scheduled.problems:
                    raise PlanError(scheduled.problems)
                self.schedules[_place(when)] = scheduled
        self.base: dict[str, Chosen] = {place: open_stages(s) for place, s in self.schedules.items()}
        self.measured = tuple(p for p in places if self.base.get(p))
        # directives of the generic code would reach into the specialised ones, if those had none of their own
        self.start = self.base if "{}" in self.measured else {place: self.base[place] for place in self.measured}

    # ------------------------------------------------------------ candidates as plans
    def plan_of(self, candidate: Candidate) -> ExecutionPlan:
        """The plan without holes, and without what is said about tuning. Raises PlanError where the values together make none."""
        filled = fill(self.plan, candidate.choice, self.lookup).replace(tune=Tune(), provenance={})
        return with_directives(filled, candidate.edits, self.graph) if candidate.edits else filled

    def written_out(self, candidate: Candidate) -> Candidate:
        """The same candidate with what the scheduler decides said in directives."""
        return candidate if candidate.edits or not self.base else Candidate(candidate.choice, self.start)

    def key(self, candidate: Candidate) -> str:
        """The same for candidates that make the same plan."""
        try:
            text = self.plan_of(candidate).to_yaml()
        except PlanError:
            text = json.dumps({k: plain(v) for k, v in candidate.choice.items()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def active(self, choice: Mapping[str, Any]) -> dict[str, OpenHole]:
        """The holes that matter under a choice."""
        return {name: hole for name, hole in self.holes.items() if hole.counts(choice, self.holes)}

    def allowed(self, choice: Mapping[str, Any]) -> bool:
        return satisfies(self.plan, choice, self.lookup)

    # ------------------------------------------------------------ all of them
    @cached_property
    def is_open(self) -> bool:
        return any(len(h.candidates) > 1 for h in self.holes.values()) or any(self.base[p] for p in self.measured)

    def count(self, most: int) -> int | None:
        """How many choices there are, if that is at most `most` and no schedules are searched."""
        if self.measured:
            return None
        return sum(1 for _ in itertools.islice(self._choices(), most + 1)) if self._product(most * 64) else None

    def _product(self, most: int) -> bool:
        size = 1
        for hole in self.holes.values():
            size *= len(hole.candidates)
        return size <= most

    def all(self) -> Iterator[Candidate]:
        """Every choice that the constraints allow, defaults first; holes that do not matter keep theirs."""
        return map(Candidate, self._choices())

    def _choices(self) -> Iterator[dict[str, Any]]:
        names = list(self.holes)
        for values in itertools.product(*(range(len(self.holes[n].candidates)) for n in names)):
            choice = {n: self.holes[n].candidates[i] for n, i in zip(names, values, strict=True) if i}
            if all(n in self.active(choice) for n in choice) and self.allowed(choice):
                yield choice

    # ------------------------------------------------------------ steps
    def draw(self, rng: random.Random) -> Candidate | None:
        """Any candidate: every hole drawn anew, schedules some steps from the scheduler's."""
        choice = self._random_choice(rng)
        if choice is None:
            return None
        made = Candidate(choice)
        for _ in range(rng.randint(1, 4) if self.measured else 0):
            made = self._step_schedule(rng, made) or made
        return made

    def _random_choice(self, rng: random.Random) -> dict[str, Any] | None:
        for _ in range(_TRIES):
            drawn = {name: hole.candidates[rng.randrange(len(hole.candidates))] for name, hole in self.holes.items()}
            choice = {name: drawn[name] for name in self.active(drawn)}
            if self.allowed(choice):
                return choice
        return None

    def step(self, rng: random.Random, start: Candidate) -> Candidate | None:
        """A candidate next to `start`."""
        movable = [name for name, hole in self.active(start.choice).items() if len(hole.candidates) > 1]
        if self.measured and (not movable or rng.random() < 0.5):
            return self._step_schedule(rng, start)
        for _ in range(_TRIES if movable else 0):
            choice = dict(start.choice)
            for name in rng.sample(movable, min(len(movable), 1 if rng.random() < 0.7 else 2)):
                choice[name] = _moved(rng, self.holes[name], choice.get(name, self.holes[name].default))
            choice = {name: value for name, value in choice.items() if name in self.active(choice)}
            if self.allowed(choice):
                return Candidate(choice, start.edits)
        return None

    def _step_schedule(self, rng: random.Random, start: Candidate) -> Candidate | None:
        edits = dict(start.edits or self.start)
        place = rng.choice(self.measured)
        found = neighbours(edits[place], self._around[place])
        if not found:
            return None
        edits[place] = rng.choice(found)
        return Candidate(start.choice, edits)

    @cached_property
    def _around(self) -> dict[str, Surroundings]:
        return {
            place: Surroundings(
                {s.path: s for s in (*scheduled.source.stages, *scheduled.graph.stages)}, scheduled.graph, self.target.machine.lanes
            )
            for place, scheduled in self.schedules.items()
        }


def _place(when: Mapping[str, int]) -> str:
    return json.dumps(dict(when))


def open_stages(scheduled: Scheduled) -> Chosen:
    """What the default scheduler decided; stages about which it says nothing have no directives. Externs never have any."""
    decided = {path: ds for path, ds in scheduled.chosen.items() if scheduled.decided_by[path] == "default"}
    silent = {s.path: () for s in scheduled.graph.stages if s.path not in scheduled.chosen}
    externs = scheduled.graph.functions
    return {path: ds for path, ds in {**decided, **silent}.items() if path not in externs}


def _moved(rng: random.Random, hole: OpenHole, value: Any) -> Any:
    """Another value of a hole; usually a neighbour, where the values have an order."""
    at, count = hole.index(value), len(hole.candidates)
    ordered = not isinstance(hole.hole, Choose) or all(type(v) is int for v in hole.candidates)
    if ordered and rng.random() < 0.7:
        near = [k for k in (at - 1, at + 1) if 0 <= k < count]
        return hole.candidates[rng.choice(near)]
    other = rng.randrange(count - 1)
    return hole.candidates[other + (other >= at)]


def with_directives(plan: ExecutionPlan, edits: Mapping[str, Chosen], graph: Graph) -> ExecutionPlan:
    """The plan with these directives in place of `auto`; those of specialised code go into `variants`.

    Stages that rewrites make need not exist in every specialisation, so where there are several their entries may match nothing.
    """
    known = {s.path for s in graph.stages}
    variants = list(plan.variants)
    for place, chosen in edits.items():
        when = json.loads(place)
        if not when:
            plan = plan.replace(schedule=_merged(plan, chosen, known if len(buckets_of(plan)[0]) > 1 else None))
            continue
        at = next((n for n, v in enumerate(variants) if dict(v.when) == when), None)
        if at is None:
            variants.append(Variant(when=when, schedule=_merged(Variant(when=when), chosen, None)))
        else:
            variants[at] = variants[at].replace(schedule=_merged(variants[at], chosen, None))
    return plan.replace(variants=tuple(variants)) if variants else plan


def _merged(owner: ExecutionPlan | Variant, chosen: Chosen, known: set[str] | None) -> Any:
    """The schedule of a plan or a variant with more directives; entries of stages that are not `known` are optional."""
    new = {f"/{path}": ds for path, ds in chosen.items()}
    if isinstance(owner.schedule, Mapping) and known is None:
        return {**{selector: ds for selector, ds in owner.schedule.items() if ds != AUTO}, **new}
    if owner.schedule == AUTO and known is None:
        return new
    kept = [entry for entry in entries_of(owner.schedule, owner) if entry.do != AUTO]
    optional = set() if known is None else {f"/{path}" for path in chosen if path not in known}
    return (*kept, *(ScheduleEntry(select=(selector,), do=ds, optional=selector in optional) for selector, ds in new.items()))


__all__ = ["Candidate", "Space", "open_stages", "with_directives"]
