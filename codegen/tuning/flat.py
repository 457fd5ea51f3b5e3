"""A plan whose parents are merged in, as one that means the same when it is read back from its own text."""

from __future__ import annotations

from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.schedule import Directive, ExecutionPlan, assign, fill
from fluorite.schedule.divisors import extent_lookup
from fluorite.schedule.notation.holes import Hole
from fluorite.schedule.scheduled import Scheduled

from ..driver import schedule
from ..target import CodeTarget


def flattened(plan: ExecutionPlan, graph: Graph, target: CodeTarget) -> ExecutionPlan:
    """The plan as it is read from its text, with the lines that `decided_by_nearness` says."""
    again = ExecutionPlan.from_yaml(plan.to_yaml(), plan.place.file)
    for path, do in decided_by_nearness(plan, graph, target).items():
        again = again.with_schedule(f"/{path}", do)
    return again


def decided_by_nearness(plan: ExecutionPlan, graph: Graph, target: CodeTarget) -> dict[str, tuple[Directive, ...] | Hole]:
    """Text alone does not say which lines came from nearer files: the stages, by path, for which that decides, and what they take."""
    if all(entry.place.nearness == 0 for entry in plan.entries()):
        return {}
    again = ExecutionPlan.from_yaml(plan.to_yaml(), plan.place.file)
    lookup = extent_lookup(graph, plan)
    meant = schedule(graph, fill(plan, {}, lookup), target)
    try:
        read = schedule(graph, fill(again, {}, lookup), target)
    except PlanError:
        read = None
    differing = [path for path in meant.chosen if read is None or _decision(read, path) != _decision(meant, path)]
    if not differing:
        return {}
    matches = assign(
        plan.entries(),
        (*meant.source.stages, *(s for s in meant.graph.stages if meant.source.by_id.get(s.id) is None)),
        graph.name,
        missing_ok=True,
    )
    return {path: matches[path].entry.do for path in differing if path in matches}


def _decision(scheduled: Scheduled, path: str) -> object:
    return (scheduled.decided_by.get(path), scheduled.chosen.get(path)) if scheduled.decided_by.get(path) == "plan" else None


__all__ = ["decided_by_nearness", "flattened"]
