"""A plan whose parents are merged in, as one that means the same when it is read back from its own text."""

from __future__ import annotations

from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.schedule import ExecutionPlan, assign, fill
from fluorite.schedule.divisors import extent_lookup
from fluorite.schedule.scheduled import Scheduled

from ..driver import schedule
from ..target import CodeTarget


def flattened(plan: ExecutionPlan, graph: Graph, target: CodeTarget) -> ExecutionPlan:
    """Text alone does not say which lines came from nearer files, so where that decides, the stage gets a line of its full path."""
    again = ExecutionPlan.from_yaml(plan.to_yaml(), plan.place.file)
    if all(entry.place.nearness == 0 for entry in plan.entries()):
        return again
    lookup = extent_lookup(graph, plan)
    meant = schedule(graph, fill(plan, {}, lookup), target)
    try:
        read = schedule(graph, fill(again, {}, lookup), target)
    except PlanError:
        read = None
    differing = [path for path in meant.chosen if read is None or _decision(read, path) != _decision(meant, path)]
    if not differing:
        return again
    matches = assign(
        plan.entries(),
        (*meant.source.stages, *(s for s in meant.graph.stages if meant.source.by_id.get(s.id) is None)),
        graph.name,
        missing_ok=True,
    )
    for path in differing:
        if path in matches:
            again = again.with_schedule(f"/{path}", matches[path].entry.do)
    return again


def _decision(scheduled: Scheduled, path: str) -> object:
    return (scheduled.decided_by.get(path), scheduled.chosen.get(path)) if scheduled.decided_by.get(path) == "plan" else None


__all__ = ["flattened"]
