"""Which stages a plan's `precision` computes in a narrower type: what the most specific of `keep` and `overrides` says, else `compute`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage

from .graph_sections import NARROWING, TYPES, Precision, PrecisionOverride
from .losses import homes_of
from .narrowing import wider
from .notation.places import Place
from .pool import Pool
from .selectors import parse_selector, select


def types_of(precision: Precision, graph: Graph) -> tuple[dict[int, str], list[Problem]]:
    """The type of arithmetic by stage, for stages that have one by the plan; and selectors that say nothing, or two things (P103).

    Updates of methods that train compute as the algorithm says.
    """
    claims, problems = _claims(precision, graph)
    usual = TYPES.get(precision.compute or "")
    own = updates_of(graph)
    chosen = {s.id: claims[s.id].to if s.id in claims else usual for s in graph.stages if s.id not in own}
    return {i: to for i, to in chosen.items() if to is not None}, list(dict.fromkeys(problems))


def stored_types(precision: Precision, graph: Graph) -> dict[int, str]:
    """The type in which a parameter, or what an optimiser keeps, is stored, where that is narrower than the algorithm's."""
    parameters, optimizer = TYPES.get(precision.parameters or ""), TYPES.get(precision.optimizer)
    kept = {i for i, claim in _claims(precision, graph)[0].items() if claim.to is None}
    homes = {m.name: frozenset[str]().union(*homes_of(graph, m).values()) for m in graph.methods}
    states = {path for m in graph.methods for path in homes[m.name]}
    as_said = {path for m in graph.methods for path, i in m.updates.items() if i in kept}
    found: dict[int, str] = {}
    for t in graph.leaves:
        to = parameters if t.kind == "parameter" else optimizer if t.path in states and t.path not in as_said else None
        if to is not None and t.kind in ("parameter", "state") and wider(t.dtype, to) and t.id not in graph.handed:
            found[t.id] = to
    return found


def gradient_type(precision: Precision) -> str | None:
    """The type in which updates find gradients, if the plan says one."""
    return TYPES[precision.gradients] if precision.gradients in NARROWING else None


def updates_of(graph: Graph) -> frozenset[int]:
    """The stages that make new values of parameters and state in methods that train."""
    trains = {s.method for s in graph.stages if s.loss} | {m.name for m in graph.methods if homes_of(graph, m)}
    return frozenset(s.id for s in graph.stages if s.role == "update" and s.method in trains)


def refusals(precision: Precision, graph: Graph) -> list[Problem]:
    """P403: keys about training, of a program that does not train."""
    if updates_of(graph):
        return []
    keys = [key for key in ("gradients", "optimizer") if getattr(precision, key) != "f32"]
    why = f"no method of {graph.name} moves parameters by gradients"
    return [
        precision.place_of(key).problem("P403", f"{key}: {getattr(precision, key)}", why, (f"leave {key} out",), path=graph.name)
        for key in keys
    ]


@dataclass(frozen=True)
class _Claim:
    """What an entry says of a stage: the type of its arithmetic, None for the algorithm's."""

    specificity: tuple[int, ...]
    text: str
    to: str | None
    place: Place


def _claims(precision: Precision, graph: Graph) -> tuple[dict[int, _Claim], list[Problem]]:
    """By stage, what the most specific entry says."""
    pool, own = Pool(graph.stages), updates_of(graph)
    problems: list[Problem] = []
    claims: dict[int, _Claim] = {}
    for text, to, place in _entries(precision):
        try:
            found = within(text, pool, place, graph.name)
        except PlanError as error:
            problems += error.problems
            continue
        if to is not None and all(s.id in own for s in found):
            why, instead = "updates compute as the algorithm says, so that small steps are not lost", ("optimizer: bf16", "gradients: bf16")
            problems.append(place.problem("P403", f'"{text}" names updates', why, instead, path=found[0].path))
            continue
        parsed = parse_selector(text, place)
        for s in found:
            before = claims.get(s.id)
            if before is None or parsed.specificity > before.specificity:
                claims[s.id] = _Claim(parsed.specificity, text, to, place)
            elif parsed.specificity == before.specificity and to != before.to:
                problems.append(_tied(s, text, place, before.text, before.place))
    return claims, problems


def within(text: str, pool: Pool[Stage], place: Place, program: str) -> list[Stage]:
    """The stages of a list that names what it speaks of: of an operator whose result bears its name, all stages. Raises PlanError."""
    found = select(text, pool, place, program)
    return [*found, *(s for s in pool.below(parse_selector(text, place)) if all(s is not t for t in found))]


def _entries(precision: Precision) -> Iterator[tuple[str, str | None, Place]]:
    """Selectors with the types that they ask for, None for the algorithm's own."""
    for n, text in enumerate(precision.keep):
        yield text, None, precision.place_of("keep", n)
    overrides: Mapping[str, PrecisionOverride] = precision.overrides
    for text, override in overrides.items():
        yield text, TYPES.get(override.compute or precision.compute or ""), precision.place_of("overrides", text)


def _tied(s: Stage, text: str, place: Place, other: str, there: Place) -> Problem:
    asked = f'"{text}" and "{other}" both mean {s.path}, and neither is more specific'
    return place.problem("P103", asked, f"the other one is at {there}", ("make one of them longer",), path=s.path)


__all__ = ["gradient_type", "refusals", "stored_types", "types_of", "within"]
