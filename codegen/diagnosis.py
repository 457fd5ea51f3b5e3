"""Every problem of a plan in one go: those of its lines, of its names, of its loops, of its kernels, whichever comes first in a build."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fluorite.algo.errors import BuildError, PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.schedule import ExecutionPlan, fill
from fluorite.schedule.divisors import extent_lookup
from fluorite.schedule.plan import Misread
from fluorite.schedule.remainder import TIES, Remainder, remainder

_ROUNDS = 4
_ENOUGH = 200
"""Problems after which no more are looked for: the plan is for another program."""


@contextmanager
def every_problem(graph: Graph, plan: ExecutionPlan) -> Iterator[None]:
    """Whatever step refuses the (resolved) plan in here, the PlanError tells all that is wrong with it, in the order of the file."""
    try:
        yield
    except PlanError as error:
        raise PlanError(all_problems(graph, plan, error.problems)) from None


def misread_problems(graph: Graph, error: Misread) -> list[Problem]:
    """The problems of a plan that could not be read whole, and those of what could be read."""
    found = list(error.problems)
    try:
        rest = error.rest.resolve() if error.rest is not None else None
    except PlanError:
        rest = None
    if rest is None:
        return found
    emptied = frozenset(n for n, entry in enumerate(rest.entries()) if error.unread & set(entry.selectors))
    nameless = frozenset({"P014"}) if "holes" in error.unread_sections else frozenset()
    read = Remainder(rest, emptied, TIES | nameless, error.unmade)
    return _further(graph, found, remainder(rest, (), graph, read))


def all_problems(graph: Graph, plan: ExecutionPlan, found: Sequence[Problem]) -> list[Problem]:
    """`found`, and the problems of what is left of the plan when the lines that these are about are set aside, sorted by place."""
    left = remainder(_filled(plan, graph), found, graph) if len(found) <= _ENOUGH else None
    return _further(graph, list(found), left) if left is not None else _sorted(found)


def _filled(plan: ExecutionPlan, graph: Graph) -> ExecutionPlan:
    """The plan without holes, which keep their places, if they can be filled."""
    try:
        return fill(plan, {}, extent_lookup(graph, plan))
    except PlanError:
        return plan


def _further(graph: Graph, found: list[Problem], left: Remainder | None) -> list[Problem]:
    for _ in range(_ROUNDS):
        if left is None or len(found) > _ENOUGH:
            break
        problems = left.news(_problems(graph, left.plan))
        if not problems:
            break
        found = list(dict.fromkeys((*found, *problems)))
        left = remainder(left.plan, problems, graph, left)
    return _sorted(found)


def _problems(graph: Graph, plan: ExecutionPlan) -> Sequence[Problem]:
    """What the first step that refuses the plan says of it."""
    from .driver import lower_variants, prepared
    from .target import resolve_target

    try:
        chosen, _ = prepared(plan, graph)
        target = resolve_target(chosen.target, chosen.numerics.contract, chosen.runtime.threads)
        lower_variants(graph, chosen, target)
    except PlanError as error:
        return error.problems
    except BuildError:
        return ()
    return ()


def _sorted(problems: Sequence[Problem]) -> list[Problem]:
    return sorted(dict.fromkeys(problems), key=lambda p: (p.file or "", p.line or 0, p.column or 0))


__all__ = ["all_problems", "every_problem", "misread_problems"]
