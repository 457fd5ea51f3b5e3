"""Code for particular extents: which specialisations a plan asks for, and which of its variants each of them takes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from fluorite.algo.errors import Problem
from fluorite.algo.extent import symbol
from fluorite.algo.graph import Graph
from fluorite.algo.specialise import specialise
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import AtMost, Between, Buckets, Variant

from .given_extents import require_whole

Bucket = dict[str, int]


def buckets_of(plan: ExecutionPlan) -> tuple[list[Bucket], bool]:
    """The specialisations that the plan asks for, most specific first, and whether the generic code is built too.

    Each is {extent or METHOD/extent: number}. A variant that none of them meets gets one of its own.
    """
    combined, fallback = _asked(plan)
    for variant in plan.variants:
        if not any(meets(variant, bucket) for bucket in combined):
            combined = [*(b for b in _made(variant, plan, combined) if b not in combined), *combined]
    return sorted(combined, key=lambda c: -len(c)), fallback


def range_of(plan: ExecutionPlan, method: str, name: str) -> dict[str, Any]:
    """The values that calls may have for an extent: `min`, `max` (None: any), `multiple`."""
    match plan.extents.get(f"{method}/{name}", plan.extents.get(name)):
        case Between(between=(low, high), multiple=multiple):
            return {"min": low, "max": high, "multiple": multiple}
        case AtMost(max=most):
            return {"min": 0, "max": most, "multiple": 1}
        case Buckets(buckets=some):
            return {"min": min(1, *some), "max": None, "multiple": 1}
        case int(fixed):
            return {"min": fixed, "max": fixed, "multiple": 1}
    return {"min": 1, "max": None, "multiple": 1}


def bounded(graph: Graph, plan: ExecutionPlan) -> Graph:
    """The graph with what the plan says of its symbols' least values, so that all that is proved of extents holds for every call: that
    there is something to do, above all, is not taken for granted where an extent may be 0."""
    for m in graph.methods:
        said = {n: plan.extents.get(f"{m.name}/{n}", plan.extents.get(n)) for n in graph.symbols(m.name)}
        least = {n: range_of(plan, m.name, n)["min"] for n, e in said.items() if isinstance(e, Between | AtMost)}
        if changed := {n: symbol(n, k) for n, k in least.items() if k != 1}:
            graph = specialise(graph, changed, m.name)
    return graph


def meets(variant: Variant, bucket: Mapping[str, int]) -> bool:
    """Whether the variant is for this bucket."""
    return all(_within(_value(bucket, name), wanted) for name, wanted in variant.when.items())


def with_extents(plan: ExecutionPlan, extents: Mapping[str, int] | None) -> ExecutionPlan:
    """The plan with extents that a caller fixes, and without the variants that are for others."""
    if not extents:
        return plan
    require_whole(extents)
    kept = tuple(v for v in plan.variants if all(_value(extents, n) is None or _within(_value(extents, n), w) for n, w in v.when.items()))
    fixed = plan.replace(extents={**plan.extents, **extents})
    return fixed if len(kept) == len(plan.variants) else fixed.replace(variants=kept)


def variant_problems(plan: ExecutionPlan, graph: Graph) -> list[Problem]:
    """Variants for extents that no code is ever built for: nothing of a plan is silently ignored. P112."""
    combined, _ = _asked(plan)
    out: list[Problem] = []
    for variant in plan.variants:
        if any(meets(variant, bucket) for bucket in combined):
            continue
        known = {*graph.symbols(), *(f"{m.name}/{s}" for m in graph.methods for s in graph.symbols(m.name))}
        wrong = [] if variant.when.keys() - known else [(name, why) for name in variant.when if (why := _unmet(variant, name, plan))]
        if not wrong and not variant.when.keys() - known and not _made(variant, plan, combined):
            wrong = [(next(iter(variant.when)), "no bucket meets all of it at once")]
        for name, why in wrong:
            value = variant.when[name]
            asked = f"when: {name}: {list(value) if isinstance(value, tuple) else value} is met by no code that is built"
            out.append(variant.place_of("when", name).problem("P112", asked, why, _instead(name, value, plan)))
    return out


def _asked(plan: ExecutionPlan) -> tuple[list[Bucket], bool]:
    """What `extents` asks for: every combination of fixed extents and buckets, and whether others take the generic code."""
    choices: list[list[tuple[str, int | None]]] = []
    fallback = True
    for name, value in plan.extents.items():
        if isinstance(value, int):
            choices.append([(name, value)])
            fallback = False
        elif isinstance(value, Buckets):
            choices.append([*((name, n) for n in value.buckets), *([(name, None)] if value.fallback else [])])
            fallback = fallback and value.fallback
    return [{k: v for k, v in combination if v is not None} for combination in itertools.product(*choices)], fallback


def _made(variant: Variant, plan: ExecutionPlan, combined: list[Bucket]) -> list[Bucket]:
    """The buckets to make for a variant that none meets: its numbers, with all the buckets that meet its bounds."""
    exact = {name: value for name, value in variant.when.items() if isinstance(value, int)}
    bounds = {name: value for name, value in variant.when.items() if not isinstance(value, int)}
    if any(_refuses(_said(plan, name), value) for name, value in exact.items()):
        return []
    if not bounds:
        return [{**{name: value for name, value in plan.extents.items() if isinstance(value, int)}, **exact}]
    met = [b for b in combined if all(_within(_value(b, name), value) for name, value in bounds.items())]
    return [dict(b) for b in {tuple(sorted({**b, **exact}.items())): None for b in met}]


def _unmet(variant: Variant, name: str, plan: ExecutionPlan) -> str:
    """Why this part of a variant can never be met; empty if it can."""
    value, said = variant.when[name], _said(plan, name)
    if isinstance(value, int):
        return _refuses(said, value)
    match said:
        case int():
            return "" if _within(said, value) else f"{name} is fixed at {said}"
        case Buckets(buckets=some):
            return "" if any(_within(n, value) for n in some) else f"the buckets of {name} are {', '.join(map(str, some))}"
    return f"{name} has no buckets, and bounds make none"


def _refuses(said: object, value: int) -> str:
    """Why an extent of which the plan says this can never be `value`; empty if it can."""
    match said:
        case int() if said != value:
            return f"it is fixed at {said}"
        case Between(between=(low, high), multiple=k) if not low <= value <= high or value % k:
            return f"it lies between {low} and {high}" + (f" and is a multiple of {k}" if k > 1 else "")
        case AtMost(max=most) if value > most:
            return f"it is at most {most}"
    return ""


def _instead(name: str, value: int | tuple[int, ...], plan: ExecutionPlan) -> tuple[str, ...]:
    if isinstance(value, int) or isinstance(_said(plan, name), int):
        return ("leave the variant out",)
    return (f"extents: {{{name}: {{buckets: [{', '.join(map(str, dict.fromkeys(value)))}]}}}}", f"when: {{{name}: {value[0]}}}")


def _said(plan: ExecutionPlan, name: str) -> object:
    return plan.extents.get(name, plan.extents.get(name.rpartition("/")[2]))


def _value(bucket: Mapping[str, int], name: str) -> int | None:
    """What a bucket says of an extent; of METHOD/extent also what it says of that extent in all methods."""
    return bucket.get(name, bucket.get(name.rpartition("/")[2]))


def _within(value: int | None, wanted: int | tuple[int, ...]) -> bool:
    return value is not None and (value == wanted if isinstance(wanted, int) else wanted[0] <= value <= wanted[1])


__all__ = ["Bucket", "bounded", "buckets_of", "meets", "range_of", "variant_problems", "with_extents"]
