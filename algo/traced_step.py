"""One step of a scan as it was traced, to be put elsewhere: its stages and rules under other numbers, reading other tensors.

The user's function has run once, and what it read besides tensors (Python's variables, random keys, what parameters held) is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .building import Builder, current
from .expr import Axis, Const, Expr, Read, axis, binary
from .graph import map_tree
from .linear import Ranges, simplify
from .rewriting import axes_of, rewrite
from .stages import Stage, Turn
from .tensor import Direct, Tensor

if TYPE_CHECKING:
    from .autodiff.custom import Rule


@dataclass(frozen=True, eq=False)
class TracedStep:
    """What a step makes of `carries` and `slices`: new carries and what is stacked, by number. `captured` is what it reads besides."""

    stages: Sequence[Stage]
    rules: Sequence[Rule]
    carries: Sequence[Direct]
    slices: Sequence[Direct]
    captured: Sequence[Direct]
    new: Sequence[int]
    stacked: Sequence[int]
    like: Sequence[Direct]  # what is stacked
    scope: str
    when: Expr | None
    aliases: frozenset[int]

    def __call__(self, carries: Sequence[Tensor], slices: Sequence[Tensor], captured: Sequence[Tensor]) -> tuple[list[Any], list[Any]]:
        """The step with other tensors in the place of those that it was traced with."""
        old, new = (*self.carries, *self.slices, *self.captured), (*carries, *slices, *captured)
        copy = _Copy(self, {a.source: b for a, b in zip(old, new, strict=True)})
        return [copy.tensor(i) for i in self.new], [copy.tensor(i) for i in self.stacked]


class _Copy:
    """A step in another place of the trace."""

    def __init__(self, step: TracedStep, given: dict[int, Tensor]) -> None:
        self.builder: Builder = current()
        self.step, self.given = step, given
        self.number = {s.id: self.builder.fresh() for s in step.stages}
        here = Const(True, "bool", False) if self.builder.when is None else self.builder.when
        self.conditions: dict[Expr, Expr] = {} if step.when is None else {step.when: here}
        for s in step.stages:
            self.builder.stages[self.number[s.id]] = self._stage(s)
        self.builder.aliases |= {self.number[i] for i in step.aliases}
        for rule in step.rules:
            copied = self._rule(rule)
            for r in copied.results:
                self.builder.rules[r.source] = copied

    def tensor(self, i: int) -> Tensor:
        """What the tensor of this number is here."""
        if i in self.given:
            return self.given[i]
        n = self.number.get(i, i)
        s = self.builder.stages.get(n) or self.builder.leaves[n]
        return Direct(n, s.shape, s.dtype, s.axis_names, s.name, self.builder)

    def _direct(self, i: int) -> Direct:
        found = self.tensor(i)
        assert isinstance(found, Direct)  # what is captured is given as stages
        return found

    # ------------------------------------------------------------ stages
    def _stage(self, s: Stage) -> Stage:
        axes = (*s.axes, *s.reduce_axes, *(a for a, _ in (s.extern.reading if s.extern else ())))
        own: dict[Expr, Axis] = {a: axis(a.name) for a in axes}
        ranges = {own[a]: n for a, n in s.ranges.items()}

        def rule(e: Expr) -> Expr | None:
            return own.get(e) if isinstance(e, Axis) else self._read(e, ranges)

        return replace(
            s,
            id=self.number[s.id],
            path=self._path(s),
            axes=tuple(own[a] for a in s.axes),
            value=simplify(rewrite(s.value, rule), ranges),
            reduction=s.reduction and replace(s.reduction, axes=tuple(own[a] for a in s.reduction.axes)),
            extern=s.extern and replace(s.extern, reading=tuple((own[a], n) for a, n in s.extern.reading)),
            when=self._condition(s.when, rule),
            clock=s.clock and replace(s.clock, axis=own[s.clock.axis], group=self.number[s.clock.group]),
            turn=s.turn and self._turn(s.turn),
        )

    def _read(self, e: Expr, ranges: Ranges) -> Expr | None:
        if not isinstance(e, Read):
            return None
        if (tensor := self.given.get(e.source)) is not None:
            return tensor.resolve(e.index, ranges, ())
        return Read(self.number[e.source], e.index, e.dtype) if e.source in self.number else None

    def _path(self, s: Stage) -> str:
        builder = self.builder
        if s.path.startswith(self.step.scope):
            return builder.unique(s.path.removeprefix(self.step.scope))
        with builder.at_root():
            return builder.unique(s.path.removeprefix(f"{s.method}/"))

    def _condition(self, when: Expr | None, rule: Callable[[Expr], Expr | None]) -> Expr | None:
        """The condition of a stage here, under that of what is being made. One condition stays one."""
        if when is None or when is self.step.when:
            return self.builder.when
        found = rewrite(when, rule, dict(self.conditions)) if axes_of(when) else self.conditions.get(when)
        if found is None:
            found = rewrite(when, rule, dict(self.conditions))
            if self.step.when is None and self.builder.when is not None:
                found = binary("and", self.builder.when, found)
            self.conditions[when] = found
        return found

    def _turn(self, turn: Turn) -> Turn:
        def here(i: int | None) -> int | None:
            return i if i is None else self.number.get(i, i)

        around = tuple(self.number.get(i, i) for i in turn.around)
        return Turn(self.number[turn.group], here(turn.next), here(turn.condition), around)

    # ------------------------------------------------------------ rules
    def _rule(self, rule: Rule) -> Rule:
        def here(t: Any) -> Any:
            return self._direct(t.source) if isinstance(t, Direct) else t

        return replace(
            rule,
            inputs=tuple(self._direct(i).source for i in rule.inputs),
            arguments=map_tree(here, rule.arguments),
            results=tuple(map(here, rule.results)),
            outcome=map_tree(here, rule.outcome),
            residuals=map_tree(here, rule.residuals),
            when=self._condition(rule.when, lambda e: self._read(e, {})),
            lifts=tuple(replace(x, moved=frozenset(self.number.get(i, i) for i in x.moved)) for x in rule.lifts),
        )


__all__ = ["TracedStep"]
