"""The order of stages: producers before consumers, and those of one recurrence or loop together, in the order of a step or turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .clock import delay
from .row_turns import RowTurn, row_turns
from .stages import Stage


def ordered(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Producers before consumers, otherwise as given. The stages of one recurrence stand together, in the order of one step."""
    given = list(stages)
    present = {s.id for s in given}
    unit_of = {s.id: unit for unit in units(sorted(given, key=_group)) for s in unit}
    done: set[int] = set()
    out: list[Stage] = []

    def needs(unit: tuple[Stage, ...]) -> Iterator[int]:
        return iter([i for s in unit for i in s.sources if i in present and unit_of[i] is not unit])

    def visit(start: tuple[Stage, ...]) -> None:
        stack = [(start, needs(start))]
        while stack:
            unit, sources = stack[-1]
            for source in sources:
                if source not in done:
                    stack.append((unit_of[source], needs(unit_of[source])))
                    break
            else:
                if unit[0].id not in done:
                    out.extend(turn_order(unit) if unit[0].turn else step_order(unit))
                    done.update(s.id for s in unit)
                stack.pop()

    for s in given:
        if s.id not in done:
            visit(unit_of[s.id])
    return tuple(out)


def _group(s: Stage) -> int:
    return s.turn.loops[0] if s.turn else s.clock.group if s.clock else s.id


def _together(a: Stage, b: Stage) -> bool:
    """Whether two stages are of one loop or, where neither is in one, of one recurrence."""
    if a.turn or b.turn:
        return a.loops[:1] == b.loops[:1]
    return a.clock is not None and b.clock is not None and a.clock.group == b.clock.group


def units(stages: Iterable[Stage]) -> list[tuple[Stage, ...]]:
    """Stages that are next to one another and of one loop or one recurrence, together; every other stage alone."""
    out: list[tuple[Stage, ...]] = []
    for s in stages:
        if out and _together(out[-1][0], s):
            out[-1] = (*out[-1], s)
        else:
            out.append((s,))
    return out


@dataclass(frozen=True)
class Turns:
    """A loop: what its carries start with, by id what each becomes, the condition, the units that the condition needs, and those that only
    a turn needs. Here stages have the turns of loops inside it only. `rows` are the carries of which a turn writes one row."""

    carries: tuple[Stage, ...]
    becomes: Mapping[int, int]
    condition: int
    asking: tuple[tuple[Stage, ...], ...]
    doing: tuple[tuple[Stage, ...], ...]
    rows: Mapping[int, RowTurn]


def turns(unit: Sequence[Stage]) -> Turns:
    """A unit that is a loop, in its parts."""
    carries = {s.id: s.turn for s in unit if s.is_carry and s.turn is not None and not s.turn.around}
    inside = {s.id: replace(s, turn=s.turn and s.turn.inside) for s in unit if s.id not in carries}
    condition = next(t.condition for t in carries.values() if t.condition is not None)
    asked: set[int] = set()
    pending = [condition]
    while pending:
        i = pending.pop()
        if i in inside and i not in asked:
            asked.add(i)
            pending += inside[i].sources
    asking, doing = ([s for i, s in inside.items() if (i in asked) is first] for first in (True, False))
    becomes = {i: t.next for i, t in carries.items() if t.next is not None}
    start = tuple(replace(s, turn=None) for s in unit if s.id in carries)
    asks, does = (tuple(units(ordered(some))) for some in (asking, doing))
    return Turns(start, becomes, condition, asks, does, row_turns(unit, becomes))


def turn_order(unit: Sequence[Stage]) -> list[Stage]:
    """The stages of a loop: what it carries, what its condition needs, what a turn does."""
    found, by_id = turns(unit), {s.id: s for s in unit}
    return [by_id[s.id] for part in (found.carries, *found.asking, *found.doing) for s in part]


def step_order(members: Iterable[Stage]) -> list[Stage]:
    """The stages of one recurrence so that each comes after those that it reads at its own step. Raises ValueError where there is none."""
    left = {s.id: s for s in members}
    out: list[Stage] = []
    while left:
        ready = next((s for s in left.values() if not any(i in left for i in _at_own_step(s, left))), None)
        if ready is None:
            raise ValueError("a cycle within one step")
        out.append(left.pop(ready.id))
    return out


def _at_own_step(s: Stage, members: Mapping[int, Stage]) -> Iterator[int]:
    for r in s.reads:
        other = members.get(r.source)
        if other and s.clock and other.clock and delay(r.index[other.tick], s.clock.axis, s.clock.reverse) == 0:
            yield r.source
