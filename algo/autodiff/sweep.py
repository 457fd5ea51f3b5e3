"""Reverse mode: from a result back to what it depends on, one adjoint for every tensor on the way.

Each read of a stage transposes to a sum in gather form (see `solving`), so an adjoint is an ordinary stage. Constants and copies need
none. The stages of a recurrence are one unit: their adjoints read one another, one step later where the stages read one step before.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..building import Builder, placed
from ..dtypes import FLOATS
from ..errors import AlgorithmError
from ..expr import Axis, Const, Expr, Op, Read, Size, as_expr, axis, refuse
from ..extent import Extent
from ..linear import is_index, simplify
from ..ordering import ordered, units
from ..recurrences import with_clocks
from ..rewriting import axes_of, replaced, substitute, walk
from ..stages import Leaf, Reduction, Stage
from ..tensor import Direct, conjuncts
from .algebra import add, converted, is_masked, masked, zero
from .boundaries import zones
from .choices import Choices
from .emitting import Emitter, is_bare
from .indices import tidied
from .local import active_nodes, arrivals, decided
from .masking import under_predicates
from .predicates import Predicate, conjunction, holds_data
from .reach import Adjoint, condition_of, opaque, reader, upstream
from .reductions import under_reduction
from .solving import Gather, Transpose, gather
from .stepwise import coupled, whole

_FEW = 4
"""Points of a sum that is written out beside other contributions rather than made a stage."""


@dataclass(frozen=True)
class _Term:
    """One contribution to an adjoint, over the target's axes; `whence` is the stage that it comes from."""

    whence: Stage
    solved: Gather
    transpose: Transpose


@dataclass
class _Target:
    """A tensor whose adjoint is being collected, at axes of its own."""

    axes: tuple[Axis, ...]
    shape: tuple[Extent, ...]
    terms: list[_Term] = field(default_factory=list)
    direct: list[Expr] = field(default_factory=list)  # contributions that somebody else has worked out


class Sweep:
    """One reverse sweep. `seeds` are the adjoints of the results; afterwards `adjoint_of` has that of every tensor in `wrt`. It ends
    at those if they stand `apart`."""

    def __init__(self, builder: Builder, seeds: dict[int, Adjoint], wrt: Iterable[int], label: str, apart: bool = False) -> None:
        self.builder, self.out = builder, Emitter(builder, label)
        self.wrt = set(wrt)
        self.ends = self.wrt if apart else frozenset[int]()
        self.given = seeds
        self.adjoints: dict[int, Adjoint | None] = {}
        self.targets: dict[int, _Target] = {}
        self.conditions: dict[int, Adjoint] = {}  # where an adjoint may be other than 0, if it is not everywhere
        self.numbers: dict[int, int] = {}  # of the adjoints of a recurrence, which are read before they are made
        self.unmade: dict[int, int] = {}  # by such a number, the tensor whose adjoint it is
        needed = upstream(builder, seeds, self._given) - self.ends
        stages = ordered(s for i, s in builder.stages.items() if i in needed)
        self.live = self._live(stages)
        self.pending = {s.id for s in stages if s.id in self.live}
        self.choices = Choices(stages)
        found = units(stages)
        for unit in reversed(coupled(found, builder.rules)):
            members = [s for s in unit if s.id in self.live]
            self.choices.meet(members, (i for s in members for i in self._given(s) if i in self.live))
            if loop := next((s for s in members if s.turn is not None), None):
                raise no_derivative(loop)
            if members and (len(unit) > 1 or members[0].clock is not None):
                self._recurrence(members)
            else:
                for s in reversed(members):
                    self._stage(s)

    # ------------------------------------------------------------ which tensors matter
    def _live(self, stages: Sequence[Stage]) -> set[int]:
        """The tensors whose change changes a result, by way of differentiable operations."""
        live = set(self.wrt)
        more = True
        while more:  # once, but for recurrences
            more = False
            for s in stages:
                if s.id not in live and s.dtype in FLOATS and self._depends(s, live):
                    live.add(s.id)
                    more = True
        return live

    def _given(self, s: Stage) -> Sequence[int]:
        """The tensors to which adjoints may pass."""
        rule = self.builder.rules.get(s.id)
        return () if self._stops(s) else rule.inputs if rule is not None else s.sources

    def _stops(self, s: Stage) -> bool:
        """Whether nothing passes through a stage."""
        return s.op == "stop_gradient" or s.id in self.ends

    def _depends(self, s: Stage, live: set[int]) -> bool:
        if self._stops(s):
            return False
        if (rule := self.builder.rules.get(s.id)) is not None:
            return any(i in live for i in rule.inputs)
        return bool(active_nodes(s.value, live.__contains__))

    # ------------------------------------------------------------ one unit
    def _stage(self, s: Stage) -> None:
        self.pending.discard(s.id)
        adjoint = self.adjoint_of(s.id)
        if (rule := self.builder.rules.get(s.id)) is not None:
            rule.pull(self)
        else:
            self._transpose(s, adjoint)

    def _recurrence(self, members: Sequence[Stage]) -> None:
        self.pending -= {s.id for s in members}
        self.numbers |= {s.id: self.builder.fresh() for s in members}
        self.unmade = {self.numbers[s.id]: s.id for s in members}
        before = set(self.builder.stages)
        for s in members:
            target = self._target(s)
            if (seed := self.given.get(s.id)) is not None:
                target.direct.append(seed(target.axes))
            self.adjoints[s.id] = reader(self.numbers[s.id], s.dtype)
        rules = {id(rule): rule for s in members if (rule := self.builder.rules.get(s.id)) is not None}
        for s in reversed(members):
            if s.id not in self.builder.rules:
                self._transpose(s, self.adjoints[s.id])
        for rule in rules.values():
            rule.pull(self)
        for s in members:
            self._emitted(s, self.targets[s.id], self.numbers[s.id])
        clocks = [(s.clock.axis.name, not s.clock.reverse) for s in members if s.clock]
        clocks += [(lift.name, not lift.reverse) for rule in rules.values() for lift in rule.lifts]
        names = dict.fromkeys(a.name for s in members for a in s.axes)
        tried = [*dict.fromkeys(clocks), *((n, r) for n in names for r in (False, True))]
        made = [s for i, s in self.builder.stages.items() if i not in before]
        self.builder.stages |= with_clocks(made, tried)
        self.unmade = {}

    def _transpose(self, s: Stage, adjoint: Adjoint | None) -> None:
        """What s contributes to the tensors that it reads."""
        if adjoint is not None:
            with self.builder.branch(condition_of(s, self.builder)):
                self._arrive(s, adjoint)

    def _arrive(self, s: Stage, adjoint: Adjoint) -> None:
        if s.extern is not None:
            raise opaque(s)
        origin = self.builder.transposes.get(s.id)
        if origin is not None:  # the transpose of a transpose reads by the map that the first one was solved for
            axes, extents, predicates, value = origin.axes, dict(origin.extents), origin.predicates, origin.body
            g = converted(adjoint(origin.index), value.dtype)
        else:
            axes, extents, predicates, value = (*s.of_elements.axes, *s.reduce_axes), dict(s.ranges), (), s.value
            g = converted(adjoint(s.axes), value.dtype)
            condition = self.conditions.get(s.id)
            g = self.choices.guarded(s, value, g, None if condition is None else condition(s.axes))
            if s.reduction is not None:
                g = under_reduction(s, g, self.out)
        whole = s.value if s.reduction is None and origin is None and not isinstance(s.value, Const | Read) else None
        for arrival in arrivals(value, g, self.live.__contains__):
            body = arrival.value
            if s.when is not None and axes_of(s.when):
                body = masked(_at(s.when, s.axes)(origin.index if origin is not None else s.axes), body)
            if whole is not None:  # computed already
                body = replaced(body, whole, Read(s.id, s.axes, s.dtype))
            for more, index in zones(arrival.read.index, extents):
                there = replaced(body, arrival.read, Read(arrival.read.source, index, arrival.read.dtype))
                t = Transpose(axes, extents, (*predicates, *arrival.predicates, *more), index, there)
                self._contribute(s, arrival.read.source, t)

    def _contribute(self, s: Stage, source: int, t: Transpose) -> None:
        target = self._target(self.builder.stages.get(source) or self.builder.leaves[source])
        solved = gather(t, target.axes, target.shape)
        if solved is not None:
            target.terms.append(_Term(s, solved, t))

    def _target(self, t: Stage | Leaf) -> _Target:
        if t.id not in self.targets:
            names = [n or f"i{d}" for d, n in enumerate(t.axis_names)]
            self.targets[t.id] = _Target(tuple(map(axis, names)), tuple(t.shape))
        return self.targets[t.id]

    def contribute(self, tensor: int, value: Adjoint) -> None:
        """Adds to the adjoint of a tensor what a rule of its consumer has worked out."""
        if tensor in self.live:
            target = self._target(self.builder.stages.get(tensor) or self.builder.leaves[tensor])
            target.direct.append(simplify(value(target.axes), dict(zip(target.axes, target.shape, strict=True))))

    # ------------------------------------------------------------ adjoints
    def adjoint_of(self, id: int) -> Adjoint | None:
        """The finished adjoint of a tensor; None where it is 0. Only after all that reads the tensor is done."""
        if id not in self.adjoints:
            target = self.targets.get(id)
            seed = self.given.get(id)
            if target is None:
                self.adjoints[id] = seed
            else:
                if seed is not None:
                    target.direct.append(seed(target.axes))
                found = self.builder.stages.get(id) or self.builder.leaves[id]
                self.adjoints[id] = self._cheap(target, found.dtype, self._when(found, target)) or self._emitted(found, target, None)
        return self.adjoints[id]

    def adjoint_tensor(self, id: int, adjoint: Adjoint) -> Direct:
        """The adjoint of a stage as a tensor, be it one of a recurrence that is not made yet."""
        t = whole(self.builder, id)
        if self.numbers.get(id) in self.unmade:
            return Direct(self.numbers[id], t.shape, t.dtype, t.axis_names, t.label, self.builder)
        return self.materialised(adjoint, t)

    def materialised(self, adjoint: Adjoint, t: Direct) -> Direct:
        """The adjoint of a tensor as a tensor."""
        return self.out.materialised(adjoint, t, t.dtype)

    def _only_when(self, term: _Term, when: Expr | None) -> Expr | None:
        """The condition of a contribution to an adjoint that is asked for under another one."""
        condition = condition_of(term.whence, self.builder)
        return None if condition is when or condition is self.builder.when else condition

    def _when(self, t: Stage | Leaf, target: _Target) -> Expr | None:
        """Where the adjoint of t is asked for, over the target's axes."""
        return _at(t.when, t.axes)(target.axes) if isinstance(t, Stage) and t.when is not None else self.builder.when

    def _cheap(self, target: _Target, dtype: str, when: Expr | None) -> Adjoint | None:
        """An adjoint that is a constant, or that another tensor holds already at some position."""
        if not target.terms and not target.direct:
            return None
        if len(target.terms) + len(target.direct) != 1:
            return None
        if target.direct:
            value = target.direct[0]
        else:
            g = target.terms[0].solved
            if g.axes or g.predicates or self._only_when(target.terms[0], when) is not None:
                return None
            value = g.body
        value = value if when is None else decided(value, (when,))
        if not _is_constant(value) and not (isinstance(value, Read) and all(is_index(i) for i in value.index)):
            return None
        if value.dtype != dtype:
            return None
        return _at(value, target.axes)

    def _emitted(self, t: Stage | Leaf, target: _Target, number: int | None) -> Adjoint | None:
        """The adjoint as a stage; of several contributions those that sum get one each."""
        if not target.terms and not target.direct and number is None:
            return None
        recurrent, when = number is not None, self._when(t, target)
        name, alone = self.out.name_of(t), len(target.terms) == 1 and not target.direct
        total: Expr | None = None
        for term in target.terms:
            body, over, only = self._summed(term.solved, target.axes), _reduction(term.solved), self._only_when(term, when)
            apart = not alone or only is not None
            if over is not None and apart and _points(term.solved) <= _FEW:
                body = converted(_written_out(body, term.solved), t.dtype)
            elif over is not None and apart:
                there, body = self._pinned(term.solved, target.axes)
                used = set(axes_of(body))
                axes = tuple(a for a in target.axes if recurrent or a in used)
                extents = [term.solved.ranges[a] for a in axes]
                asked = only if only is not None else when if when is None or set(axes_of(when)) <= set(axes) else None
                path = f"{name}/from/{self._last_name(term.whence)}"
                made = self.out.emit(path, axes, extents, body, over, term.whence.source, when=asked)
                if there is None and len(axes) == len(target.axes):
                    self.builder.transposes[made.id] = term.transpose
                body = converted(Read(made.id, axes, made.dtype), t.dtype)
                body = body if there is None else masked(there, body)
            elif over is not None:
                source = t.source or term.whence.source
                made = self.out.emit(name, target.axes, target.shape, body, over, source, number, t.dtype, when)
                self.builder.transposes[made.id] = term.transpose
                return reader(made.id, made.dtype)
            else:
                body = converted(body, t.dtype)
            if only is not None:
                body = masked(only, body)
            total = body if total is None else add(total, body)
        for value in target.direct:
            part = converted(value, t.dtype)
            total = part if total is None else add(total, part)
        if total is None:
            total = zero(t.dtype)
        if when is not None:
            total = decided(total, (when,))
        made = self.out.emit(name, target.axes, target.shape, total, None, self._source(t, target), number, t.dtype, when)
        if is_masked(total) and not recurrent and (rest := conjunction(filter(holds_data, conjuncts(total.operands[0])))) is not None:
            self.conditions[t.id] = _at(rest, target.axes)
        if recurrent and isinstance(total, Read) and is_bare(total, target.axes):
            self.builder.aliases.add(made.id)
        if alone and self._only_when(target.terms[0], when) is None:
            self.builder.transposes[made.id] = target.terms[0].transpose
        return reader(made.id, made.dtype)

    def _summed(self, g: Gather, targets: Sequence[Axis]) -> Expr:
        """The body under its predicates."""
        return under_predicates(g, targets, self._shape_of)

    def _shape_of(self, id: int) -> tuple[Extent, ...]:
        """Of a tensor, or of an adjoint of a recurrence that is not made yet."""
        if id in self.unmade:
            return self.targets[self.unmade[id]].shape
        return tuple((self.builder.stages.get(id) or self.builder.leaves[id]).shape)

    def _pinned(self, g: Gather, targets: Sequence[Axis]) -> tuple[Expr | None, Expr]:
        """What arrives on a border alone, as a sum without the axes that the border pins, and the condition of being there."""
        at: dict[Axis, Expr] = {}
        there: list[Expr] = []
        rest: list[Predicate] = []
        for p in g.predicates:
            a = next((a for a in targets if p.kind == "equal" and a not in at and p.form.coefficient(a) in (1, -1)), None)
            if a is None or len(p.form.terms) > 1:
                rest.append(p)
                continue
            at[a] = as_expr(p.form.constant * (-1 if p.form.coefficient(a) == 1 else 1))
            there.append(p.expr(targets))
        body = self._summed(replace(g, predicates=tuple(rest)), targets)
        if not at:
            return None, body
        return conjunction(there), tidied(substitute(body, at), g.ranges)

    def _source(self, t: Stage | Leaf, target: _Target) -> str:
        return t.source or (target.terms[0].whence.source if target.terms else "")

    def _last_name(self, s: Stage) -> str:
        return self.out.relative(s).rsplit("/", 1)[-1]


def no_derivative(s: Stage) -> AlgorithmError:
    """The refusal of a loop of unknown length."""
    why = "how many turns it takes is known only when it has run, and a derivative goes through all of them again"
    instead = (
        "fl.scan with length= the most turns there may be, and lengths= or fl.where for those not taken",
        "fl.custom_vjp around it",
        "fl.stop_gradient",
    )
    return placed(refuse("A421", "the derivative of an fl.while_loop", why, *instead), s.source, s.path)


def _at(value: Expr, axes: Sequence[Axis]) -> Adjoint:
    """An expression over axes as a function of the index."""

    def at(index: Sequence[Expr]) -> Expr:
        return substitute(value, dict(zip(axes, index, strict=True)))

    return at


def _points(g: Gather) -> int:
    """How many points are summed over; very many where that is not known."""
    return math.prod(n if isinstance(n := g.ranges[a], int) else _FEW + 1 for a in g.axes)


def _written_out(body: Expr, g: Gather) -> Expr:
    """A short sum as an expression."""
    total: Expr | None = None
    for point in itertools.product(*(range(n) for a in g.axes if isinstance(n := g.ranges[a], int))):
        at = dict(zip(g.axes, map(as_expr, point), strict=True))
        part = tidied(substitute(body, at), g.ranges)
        total = part if total is None else add(total, part)
    assert total is not None
    return total


def _is_constant(e: Expr) -> bool:
    """Whether e is the same everywhere: numbers and extents alone."""
    return all(isinstance(n, Const | Size | Op) for n in walk(e))


def _reduction(g: Gather) -> Reduction | None:
    return Reduction("sum", g.axes, tuple(g.ranges[a] for a in g.axes)) if g.axes else None


__all__ = ["Sweep"]
