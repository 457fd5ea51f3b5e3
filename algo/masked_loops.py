"""Loops of unknown length for many examples at once: fl.while_loop in the function of fl.vmap, or in a step of fl.scan.

One loop runs for all examples, or steps, as long as any of them goes on; what is carried stays as it is where one is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from .building import Builder
from .expr import Axis, Expr, Read, axis, binary, where
from .extent import Extent
from .rewriting import axes_of, substitute
from .stages import Reduction, Stage, Turn


def masked(builder: Builder, stages: Mapping[int, Stage]) -> dict[int, Stage]:
    """The loops among stages that have got a leading axis, as loops for all of its positions. New stages and changed ones, by id.

    Raises Waiting for one that is part of a recurrence along that axis.
    """
    found: dict[int, list[Stage]] = {}
    for s in sorted(stages.values(), key=lambda s: len(s.loops)):
        if s.is_carry and s.turn is not None:
            found.setdefault(s.turn.group, []).append(s)
    out: dict[int, Stage] = {}
    live: dict[int, Stage] = {}
    for group, carries in found.items():
        turn = carries[0].turn
        assert turn is not None and turn.condition is not None
        if not turn.around and _recurs(group, stages):
            raise Waiting(carries[0].path)
        make = _Making(builder, carries[0], Turn(group, around=turn.around))
        around = live.get(turn.around[-1]) if turn.around else None
        if around is not None and carries[0].id in _behind(around.sources, _within_turn(turn.around[-1], stages)):
            around = None  # it is part of what the other loop's condition asks
        live[group] = make.live(turn.condition, around)
        more = make.any_of(live[group])
        kept = [make.kept(c, stages[c.turn.next], live[group]) for c in carries if c.turn is not None and c.turn.next is not None]
        out |= {s.id: s for s in (live[group], more, *kept)}
        out |= {c.id: replace(c, turn=Turn(group, k.id, more.id, turn.around)) for c, k in zip(carries, kept, strict=True)}
    return out


class Waiting(Exception):
    """A loop in a step needs what the step before made of it."""


class _Making:
    """Stages of one loop, whose carry `like` is."""

    def __init__(self, builder: Builder, like: Stage, turn: Turn) -> None:
        self.builder, self.like, self.turn = builder, like, turn
        self.ticking = like.when is not None and bool(axes_of(like.when))  # whether some positions take a branch that others do not

    def live(self, condition: int, around: Stage | None) -> Stage:
        """Which positions take another turn: the condition holds there, and they take part in the loop at all."""
        t = axis(self.like.axes[0].name)
        going: Expr = Read(condition, (t,), "bool")
        if around is not None:
            going = binary("and", Read(around.id, (t,), "bool"), going)
        if self.ticking and self.like.when is not None:
            going = binary("and", substitute(self.like.when, {self.like.axes[0]: t}), going)
        return self._made("live", (t,), self.like.extents[:1], going)

    def any_of(self, live: Stage) -> Stage:
        """Whether there is another turn."""
        k = axis(live.axes[0].name)
        return self._made("any", (), (), Read(live.id, (k,), "bool"), Reduction("any", (k,), live.extents))

    def kept(self, carry: Stage, new: Stage, live: Stage) -> Stage:
        """What a carry becomes."""
        axes = tuple(axis(a.name) for a in carry.axes)
        value = where(Read(live.id, axes[:1], "bool"), Read(new.id, axes, new.dtype), Read(carry.id, axes, carry.dtype))
        return self._made("kept", axes, carry.extents, value)

    def _made(
        self, name: str, axes: tuple[Axis, ...], extents: tuple[Extent, ...], value: Expr, reduction: Reduction | None = None
    ) -> Stage:
        parent = self.like.path.removeprefix(f"{self.like.method}/").rpartition("/")[0]
        with self.builder.at_root():
            path = self.builder.unique(f"{parent}/{name}" if parent else name)
        when = None if self.ticking else self.like.when
        return replace(
            self.like,
            id=self.builder.fresh(),
            path=path,
            axes=axes,
            extents=extents,
            dtype=value.dtype,
            value=value,
            reduction=reduction,
            origin="derived",
            when=when,
            turn=self.turn,
            clock=None,
        )


def _behind(start: Iterable[int], stages: Mapping[int, Stage]) -> set[int]:
    """These stages and what they depend on."""
    seen: set[int] = set()
    pending = list(start)
    while pending:
        i = pending.pop()
        if i not in seen and i in stages:
            seen.add(i)
            pending += stages[i].sources
    return seen


def _within_turn(group: int, stages: Mapping[int, Stage]) -> dict[int, Stage]:
    """The stages without what a loop carries from one turn to the next."""
    return {i: s for i, s in stages.items() if not (s.is_carry and s.turn is not None and s.turn.group == group)}


def _recurs(group: int, stages: Mapping[int, Stage]) -> bool:
    """Whether what a loop is given depends on what it makes: for other positions, or by way of other stages."""
    mine = {i for i, s in stages.items() if group in s.loops}
    if any(r.source in mine and _elsewhere(r, stages[i]) for i in mine for r in stages[i].reads):
        return True
    return bool(mine & _behind((i for m in mine for i in stages[m].sources if i not in mine), stages))


def _elsewhere(r: Read, s: Stage) -> bool:
    """Whether a stage reads at another position than its own of the leading axis. (Some have none: whether any position goes on.)"""
    return bool(r.index and s.axes) and r.index[0] is not s.axes[0]


__all__ = ["Waiting", "masked"]
