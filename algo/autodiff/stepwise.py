"""What is said of one step of a scan, said of all of them: the rule of a fl.custom_vjp inside a step.

When a scan is done, its step's stages hold all steps, along a leading axis. A rule's backward function knows one step. It is traced once
more as a step of its own, with slices of what the derivative needs in the place of the tensors that it knew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

from ..building import Builder
from ..scanning import Scan
from ..stages import Stage
from ..tensor import Direct, Tensor

if TYPE_CHECKING:
    from .custom import Rule

Key = tuple[str, int]
"""What a tensor is for, and the number of the tensor of the step that it belongs to."""


def over_steps(
    builder: Builder, lifts: Sequence[Any], wholes: Mapping[Key, Tensor], one: Callable[[Mapping[Key, Tensor]], list[Tensor]]
) -> list[Tensor]:
    """What `one` gives at every step of the scans around it, outermost first, stacked along leading axes."""
    if not lifts:
        return one(wholes)
    first, *rest = lifts
    moving = [key for key in wholes if key[1] in first.moved]

    def step(carry: Any, given: list[Tensor]) -> tuple[Any, list[Tensor]]:
        return carry, over_steps(builder, rest, {**wholes, **dict(zip(moving, given, strict=True))}, one)

    scan = Scan(builder, step, (), [wholes[key] for key in moving], 0, first.reverse, None, None, first.name)
    found: list[Tensor] = scan.result()[1]
    return found


def whole(builder: Builder, id: int) -> Direct:
    """A stage or leaf as it is now, at all steps."""
    t = builder.stages.get(id) or builder.leaves[id]
    return Direct(id, t.shape, t.dtype, t.axis_names, t.name, builder)


@contextmanager
def readable(builder: Builder, tensors: Iterable[Tensor]) -> Iterator[None]:
    """Inside, stages of a branch that some steps take may be read; whoever reads them asks whether it was taken."""
    saved = builder.known
    found = [builder.stages[t.source] for t in map(_base, tensors) if isinstance(t, Direct) and t.source in builder.stages]
    builder.known = (*saved, *(s.when for s in found if s.when is not None))
    try:
        yield
    finally:
        builder.known = saved


def _base(t: Tensor) -> Tensor:
    while (base := getattr(t, "base", None)) is not None:
        t = base
    return t


@dataclass(frozen=True)
class Lift:
    """One scan that a rule stood in the step of: the tensors that got its axis, which is called `name`."""

    moved: frozenset[int]
    name: str
    reverse: bool


def coupled(found: Sequence[tuple[Stage, ...]], rules: Mapping[int, Rule]) -> list[tuple[Stage, ...]]:
    """Units in producer order, where all results of a rule count as made of all its inputs.

    That makes one unit of what depends on itself so: its adjoints read one another, although the stages may not.
    """
    lifted = [n for n, unit in enumerate(found) if any(s.id in rules and rules[s.id].lifts for s in unit)]
    if not lifted:
        return list(found)
    unit_of = {s.id: n for n, unit in enumerate(found) for s in unit}
    needs: dict[int, set[int]] = {n: set() for n in range(len(found))}
    users: dict[int, set[int]] = {n: set() for n in range(len(found))}
    for n, unit in enumerate(found):
        behind = (i for s in unit for i in (*s.sources, *(rules[s.id].inputs if s.id in rules else ())))
        for m in {unit_of[i] for i in behind if i in unit_of} - {n}:
            needs[n].add(m)
            users[m].add(n)
    home = list(range(len(found)))
    for n in lifted:
        for m in _reached(n, needs) & _reached(n, users):
            home[m] = home[n]
    members: dict[int, list[int]] = {}
    for n in range(len(found)):
        members.setdefault(home[n], []).append(n)
    order = TopologicalSorter({h: {home[m] for n in mine for m in needs[n]} - {h} for h, mine in members.items()}).static_order()
    return [tuple(s for n in members[h] for s in found[n]) for h in order]


def _reached(start: int, edges: Mapping[int, set[int]]) -> set[int]:
    seen: set[int] = set()
    pending = [start]
    while pending:
        new = edges[pending.pop()] - seen
        seen |= new
        pending += new
    return seen


__all__ = ["Key", "Lift", "coupled", "over_steps", "readable", "whole"]
