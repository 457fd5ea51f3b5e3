"""A graph with a plan applied: rewrites done, stages grouped into kernels, directives and placements decided, problems collected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.numerics import NO_CASTS, Casts
from fluorite.algo.stages import Stage

from .companions import companions_of
from .contradictions import contradictions
from .directives import Cache, ComputeInline, ComputeRoot, Directive, FindBest, Layout, Pack, Pad, Rfactor, StageIn
from .externs import extern_problems
from .grouping import Apart, Group, Placement, group_stages
from .loop_checks import loop_problems
from .machine import Machine
from .matching import Match, assign
from .notation.holes import AUTO
from .notation.places import Place
from .passes import Step
from .placing import placements_of
from .plan import ExecutionPlan
from .pool import Pool
from .recompute import recomputed
from .rewrites import inline, rewrite_stage
from .selectors import bind
from .target_checks import wrong_target

REWRITES = (Cache, FindBest, Rfactor, StageIn, Pack, Layout, Pad)
Default = Callable[[Graph, "Undecided"], Mapping[str, tuple[Directive, ...]]]


@dataclass(frozen=True)
class Undecided:
    """What the plan leaves to the default scheduler: `stages` (ids) without directives, groups that share a kernel, pairs that must not.

    `anchors` are the plan's own placements, (stage, owner, loop of the owner): what lies between the two has to follow.
    `flushes`: whether subnormal numbers may be taken for 0.
    """

    stages: frozenset[int]
    together: tuple[tuple[int, ...], ...]
    apart: tuple[tuple[int, int], ...]
    machine: Machine
    fuse: bool
    reassociate: bool
    anchors: tuple[tuple[int, int, str], ...] = ()
    decided: Mapping[str, tuple[Directive, ...]] = field(default_factory=dict)  # by path, what the plan says of the other stages
    flushes: bool = False


@dataclass(frozen=True, eq=False)
class Scheduled:
    """graph: after rewrites and inlining. `directives` by stage id; `decided_by` says "plan" or "default" per path, inlined ones too.

    `steps` are the changes that made `graph` of `source`, one by one. `casts` are what precision rounds in the algorithm.
    """

    source: Graph
    graph: Graph
    plan: ExecutionPlan
    machine: Machine
    groups: tuple[Group, ...]
    directives: Mapping[int, tuple[Directive, ...]]
    chosen: Mapping[str, tuple[Directive, ...]]
    decided_by: Mapping[str, str]
    problems: tuple[Problem, ...]
    steps: tuple[Step, ...] = ()
    casts: Casts = NO_CASTS
    when: Mapping[str, int] = field(default_factory=dict)  # the extents that this is specialised to
    notes: tuple[str, ...] = ()  # on the holes that took their defaults

    def check(self) -> list[Problem]:
        """Every problem of the plan against this graph, those of its kernels included; none if it can be built."""
        return levels().problems(self)  # type: ignore[no-any-return]

    def lower(self) -> Any:
        """The kernels: a Lowered, which prints (`text`) and runs. Raises PlanError with every problem."""
        return levels().lowered(self)

    def build(self, strict: bool = False) -> Any:
        """The whole plan compiled: a Compiled, which prints and runs. `strict` refuses open holes. Raises PlanError, BuildError."""
        return levels().built(self, strict)

    def run(self, *inputs: Any, method: str | None = None, **named: Any) -> Any:
        """A call of the graph as the plan has rewritten it, on the interpreter."""
        return self.graph.run(*inputs, method=method, **named)

    def complete_plan(self) -> ExecutionPlan:
        """The plan with every decision of the default scheduler written out."""
        schedule = {"/" + path: ds or (ComputeRoot(),) for path, ds in self.chosen.items()}
        groups = tuple(tuple("/" + self.graph.path_of(i) for i in g.stages) for g in self.groups if len(g.stages) > 1)
        return self.plan.replace(schedule=schedule, fusion=replace(self.plan.fusion, groups=groups, rest="none"))

    def text(self) -> str:
        return self.complete_plan().to_yaml()


def levels() -> Any:
    """What is further down than this room, imported by whoever goes there."""
    return import_module("fluorite.codegen.levels")


class _Work:
    """The state of one application: a graph that rewrites replace, and what has been decided about it."""

    def __init__(self, graph: Graph, plan: ExecutionPlan, machine: Machine) -> None:
        self.graph, self.plan, self.machine = graph, plan, machine
        self.problems: list[Problem] = []
        self.chosen: dict[str, tuple[Directive, ...]] = {}
        self.decided_by: dict[str, str] = {}
        self.key_of: dict[str, str] = {}
        self.rewritten: set[tuple[str, int]] = set()
        self.written_into: dict[int, frozenset[int]] = {}
        self.steps = [Step("trace", "the algorithm", graph)]

    def recompute(self) -> None:
        """What the plan has computed again for late readers."""
        if self.plan.memory is not None and self.plan.memory.recompute:
            graph, problems = recomputed(self.plan.memory, self.graph)
            self.problems += problems
            if graph is not self.graph:
                self._become(graph, "memory", "stages computed again")

    # ------------------------------------------------------------ rewrites
    def rewrite_from_plan(self) -> None:
        """Rewrites of the plan, until none is left: they make stages that other entries name."""
        while True:
            done = False
            for match in self._matches(missing_ok=True).values():
                for n, d in in_order(match.entry.do) if match.entry.do != AUTO else ():
                    if (match.stage.path, n) not in self.rewritten:
                        self.rewritten.add((match.stage.path, n))
                        self._rewrite(self._current(match.stage), d, "rewrites")
                        done = True
            if not done:
                return

    def _current(self, s: Stage) -> Stage:
        """The stage as it is now: an earlier rewrite may have replaced it."""
        return next((t for t in (self.graph.stage(s.id),) if t is not None and t.path == s.path), s)

    def _rewrite(self, s: Stage, d: Directive, name: str) -> None:
        try:
            self._become(rewrite_stage(self.graph, s, d, self.machine.lanes)[0], name, f"{d.label()} of {s.path}")
        except PlanError as error:
            self.problems += error.problems

    def _become(self, graph: Graph, name: str, what: str) -> None:
        """The graph is this from now on; `name` is the pass that made it."""
        self.graph = graph
        self.steps.append(Step(name, what, graph))

    def _matches(self, missing_ok: bool) -> dict[str, Match[Stage]]:
        try:
            return assign(self.plan.entries(), self.graph.stages, self.graph.name, missing_ok=missing_ok)
        except PlanError as error:
            if not missing_ok:
                self._note(error)
            return self._valid_matches()

    def _note(self, error: PlanError) -> None:
        self.problems = list(dict.fromkeys((*self.problems, *error.problems)))

    def _valid_matches(self) -> dict[str, Match[Stage]]:
        """Entry by entry, so that one wrong selector does not hide what the others say."""
        found: dict[str, Match[Stage]] = {}
        pool = Pool(self.graph.stages)
        for entry in self.plan.entries():
            try:
                found |= assign([entry], pool, self.graph.name, missing_ok=True)
            except PlanError:
                continue
        return found

    # ------------------------------------------------------------ decisions
    def take_plan(self) -> None:
        for path, match in self._matches(missing_ok=False).items():
            if match.entry.do != AUTO:
                self.chosen[path] = tuple(match.entry.do)
                self.decided_by[path] = "plan"
                self.key_of[path] = match.selector

    def take_default(self, default: Default, machine: Machine, casts: Casts) -> None:
        undecided = Undecided(
            frozenset(s.id for s in self.graph.stages if s.path not in self.chosen),
            tuple(ids for ids, _ in self.together()),
            tuple((a.id, b.id) for a, b, _ in self.apart()),
            machine,
            self.plan.fusion.rest == "auto",
            self.plan.numerics.allows("reassociates"),
            tuple((i, at.owner, at.loop) for i, at in self.placements().items()),
            dict(self.chosen),
            self.plan.numerics.allows("precision") or bool(casts),
        )
        made = default(self.graph, undecided)
        remaining = {path: rewrites for path, ds in made.items() if (rewrites := [d for _, d in in_order(ds)])}
        while True:
            ids = {s.path: s.id for s in self.graph.stages}
            ready = [path for path in remaining if path in ids]  # the others are of stages that these make
            if not ready:
                break
            for path in ready:
                for d in remaining.pop(path):
                    stage = self.graph.stage(ids[path])
                    assert stage is not None
                    self._rewrite(stage, d, "default")
        for path, ds in made.items():
            self.chosen[path], self.decided_by[path] = ds, "default"

    def inline(self) -> None:
        for s in self.graph.stages:
            d = next((d for d in self.chosen.get(s.path, ()) if isinstance(d, ComputeInline)), None)
            if d is not None:
                current = self.graph.stage(s.id)
                assert current is not None
                readers = frozenset(c.id for c in self.graph.stages if s.id in c.sources)
                try:
                    self._become(inline(self.graph, current, d), "inline", f"compute_inline of {s.path}")
                    self.written_into[s.id] = readers
                except PlanError as error:
                    self.problems += error.problems

    def computed_in(self, i: int) -> frozenset[int]:
        """The stage itself, or those that it has been written into."""
        seen: set[int] = set()
        pending = [i]
        while pending:
            if (s := pending.pop()) not in seen:
                seen.add(s)
                pending += self.written_into.get(s, ())
        return frozenset(s for s in seen if s not in self.written_into)

    # ------------------------------------------------------------ grouping
    def together(self) -> tuple[tuple[tuple[int, ...], Place], ...]:
        """The plan's groups: their stages, and where each group is written."""
        out, pool = [], Pool(self.graph.stages)
        for n, group in enumerate(self.plan.fusion.groups):
            place = self.plan.fusion.place_of("groups", n)
            try:
                out += [(tuple(s.id for s in g), place) for g in bind(group, pool, place, self.graph.name)]
            except PlanError as error:
                self._note(error)
        return tuple(out)

    def apart(self) -> tuple[tuple[Stage, Stage, Place], ...]:
        out, pool = [], Pool(self.graph.stages)
        for n, pair in enumerate(self.plan.fusion.never):
            place = self.plan.fusion.place_of("never", n)
            try:
                for g in bind(pair, pool, place, self.graph.name):
                    out += [(a, b, place) for k, a in enumerate(g) for b in g[k + 1 :]]
            except PlanError as error:
                self._note(error)
        return tuple(out)

    def placements(self) -> dict[int, Placement]:
        found, problems = placements_of(self.graph, self.chosen, self.key_of)
        self.problems += [p for p in problems if p not in self.problems]
        return found


def apply(plan: ExecutionPlan, graph: Graph, machine: Machine, default: Default, casts: Casts = NO_CASTS) -> Scheduled:
    """The plan (resolved, holes filled) applied to the graph, in which its precision has made `casts`. Problems are collected."""
    work = _Work(graph, plan, machine)
    work.recompute()
    work.rewrite_from_plan()
    work.take_plan()
    found = wrong_target(work.graph, work.chosen, machine) or contradictions(work.graph, work.chosen)
    found = found or loop_problems(work.graph, work.chosen, work.placements(), machine)
    told = {(p.code, p.path, p.place()) for p in work.problems}
    work.problems += [p for p in found if (p.code, p.path, p.place()) not in told]  # a refused tail: pad
    if not work.problems:
        work.take_default(default, machine, casts)
    together, apart = work.together(), work.apart()
    work.problems += extern_problems(work.graph, work.chosen, work.placements(), together, machine)
    work.inline()
    placements = work.placements()
    companions, strays = companions_of(work.graph, work.chosen, work.key_of, placements)
    work.problems += strays
    groups: tuple[Group, ...] = ()
    if not work.problems:
        try:
            never = [Apart(work.computed_in(a.id), work.computed_in(b.id), (a.path, b.path), place) for a, b, place in apart]
            places = [place for _, place in together]
            groups = group_stages(work.graph, placements, [ids for ids, _ in together], never, places, companions)
        except PlanError as error:
            work.problems += error.problems
    directives = {s.id: work.chosen.get(s.path, ()) for s in work.graph.stages}
    problems, steps = tuple(dict.fromkeys(work.problems)), tuple(work.steps)
    return Scheduled(graph, work.graph, plan, machine, groups, directives, work.chosen, work.decided_by, problems, steps, casts)


def in_order(ds: Sequence[Directive]) -> list[tuple[int, Directive]]:
    """The rewrites among the directives, in the order in which they compose: reads are redirected before the body moves elsewhere."""
    rank = {StageIn: 0, Pack: 1, Cache: 2, FindBest: 3, Rfactor: 4, Layout: 5}
    found = [(n, d) for n, d in enumerate(ds) if isinstance(d, REWRITES) or getattr(d, "tail", "") == "pad"]
    return sorted(found, key=lambda item: rank.get(type(item[1]), 6))
