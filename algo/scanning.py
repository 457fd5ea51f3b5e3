"""``fl.scan``: a step that is written once, and stands for all steps.

The step is traced with tensors that stand for the carries and for one slice of what is walked over. The stages that it made are then
lifted: each that depends on the step gets a leading axis along which it is what it was at each step, reads of a slice become reads of the
whole, and reads of a carry become reads of its new value one step before. What is a recurrence is found afterwards, so a stage that
depends on the slices only is one stage over all steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from .building import Builder, call_site, current, opened, placed
from .errors import AlgorithmError
from .expr import Axis, Expr, Read, as_expr, axis, refuse, where
from .extent import Extent
from .graph import map_tree
from .linear import simplify
from .masked_loops import Waiting, masked
from .passing import bound, labels_of
from .recurrences import with_clocks
from .scan_by_turns import turned
from .stages import Stage, rewritten
from .tensor import Direct, Index, Tensor, View
from .trace import build_stage, copied
from .traced_step import TracedStep
from .trees import described, form_of, leaves, refilled
from .wellformed import counted_apart, extent_of, moved_by

Step = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True, eq=False)
class _Slot:
    """What a number stands for inside the step: a carry that starts as `outside`, or the slice of `outside` along an axis."""

    inside: Direct
    outside: Tensor
    axis: int | None = None  # of a slice


def scan(
    step: Step, init: Any, xs: Any = None, *, axis: int | str = 0, reverse: bool = False, length: Any = None, lengths: Any = None
) -> tuple[Any, Any]:
    """The carry after the last step, and what the steps gave, stacked along `axis`.

        def step(h, x):                                     # once for every position of the axis, from the first or with `reverse` the last
            h = fl.tanh(x @ w + h @ u)
            return h, h                                     # the next carry, and what is stacked (or None)

        last, every = fl.scan(step, fl.zeros((n, 64)), x)   # x [t, n, features]: last [n, 64], every [t, n, 64]

    init, xs and what is stacked may be tensors, or lists, tuples and dicts of tensors; all of xs have the axis, equally long, or there is
    no xs and `length` says how many steps there are. A stacked tensor of too few axes for `axis` gets it last. `lengths` [batch] holds
    how many steps each element of the carries' first axis takes: from there on its carry stays, and 0 is stacked. Where the next step waits
    for an fl.while_loop or a scan of the one before, the scan is a loop itself; its derivative runs the steps once more. Stages are called
    scan/NAME. Raises AlgorithmError: a step that returns another carry than it takes, axes that differ in length.
    """
    from .ops.shapes import tensor
    from .python import converted

    builder, source, step = current(), call_site(), converted(step)
    try:
        with opened("scan"):
            first, over = (map_tree(lambda t: tensor(t, "scan"), given) for given in (init, xs))
            until = None if lengths is None else tensor(lengths, "scan")
            made = Scan(builder, step, first, over, axis, reverse, length, until)
            try:
                return made.result()
            except Waiting:
                return turned(made, source)
    except AlgorithmError as error:
        raise placed(error, source, "/".join([builder.method, *builder.scopes, "scan"])) from None


class Scan:
    """One scan while it is being made. `clock` is what the axis of the steps is to be called, whatever the stages call theirs."""

    def __init__(
        self,
        builder: Builder,
        step: Step,
        init: Any,
        xs: Any,
        axis: int | str,
        reverse: bool,
        length: Any,
        lengths: Any,
        clock: str | None = None,
    ) -> None:
        self.builder, self.reverse, self.clock = builder, reverse, clock
        self.slots: dict[int, _Slot] = {}
        self.which: Direct | None = None
        self.before = set(builder.stages)
        self.init = map_tree(self._tensor, init)
        self.over = None if xs is None else map_tree(self._tensor, xs)
        self.axes = {id(t): self._axis(axis, t) for t in leaves(self.over)}
        self.where = next(iter(self.axes.values()), axis if isinstance(axis, int) else 0)
        self.length = self._steps(length)
        carry = map_tree(lambda t: self._slot(t, t.shape, t.axis_names, None), self.init)
        slices = None if self.over is None else map_tree(self._slice, self.over)
        self.lengths = None if lengths is None else self._tensor(lengths)
        live = None if self.lengths is None else self._live(self.lengths)
        with builder.step(self._which):
            returned = step(carry, slices)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise refuse(
                "A164", f"a step that returns {form_of(returned)}", "it returns (carry, y), y is None where nothing is stacked"
            )
        self.carry, self.stacked = self._next(carry, returned[0]), returned[1]
        if live is not None:
            kept = [self._held(live, t, old) for t, old in zip(leaves(self.carry), leaves(carry), strict=True)]
            self.carry = refilled(self.carry, kept)
            self.stacked = None if self.stacked is None else map_tree(lambda t: self._held(live, self._tensor(t), None), self.stacked)
        self.new = [self._number(t, "carry", old.source) for t, old in zip(leaves(self.carry), leaves(carry), strict=True)]
        self.ys = None if self.stacked is None else map_tree(lambda t: self._number(self._tensor(t), "y"), self.stacked)
        self.unchanged = {old.source for old, new in zip(leaves(carry), self.new, strict=True) if old.source == new}
        self.next = dict(zip((t.source for t in leaves(carry)), self.new, strict=True))

    # ------------------------------------------------------------ before the step
    def _tensor(self, value: Any) -> Tensor:
        from .ops.shapes import tensor

        return tensor(value, "scan")

    def _axis(self, axis: int | str, t: Tensor) -> int:
        from .ops.shapes import axis_number

        return axis_number(axis, t.axis_names, "scan")

    def _steps(self, length: Any) -> Extent:
        found: dict[Extent, Tensor | None] = {t.shape[self.axes[id(t)]]: t for t in leaves(self.over)}
        if length is not None:
            found.setdefault(extent_of(length, "steps", "length"), None)
        if len(found) != 1:
            what = " and ".join(f"{n} in {t.label}" if t is not None else f"length={n}" for n, t in found.items())
            why = f"the number of steps is {what}" if found else "neither xs nor length= says how many steps there are"
            raise refuse("A165", "scan", why, "fl.scan(step, init, xs), or length=")
        return next(iter(found))

    def _slot(self, outside: Tensor, shape: Any, names: Any, along: int | None) -> Direct:
        label = outside.label
        inside = Direct(self.builder.fresh(), shape, outside.dtype, names, label, self.builder)
        self.slots[inside.source] = _Slot(inside, outside, along)
        self.builder.standing[inside.source] = inside
        return inside

    def _slice(self, t: Tensor) -> Direct:
        d = self.axes[id(t)]
        return self._slot(t, (*t.shape[:d], *t.shape[d + 1 :]), (*t.axis_names[:d], *t.axis_names[d + 1 :]), d)

    def _which(self) -> Direct:
        """The number of the step, along the axis that is walked."""
        if self.which is None:
            with self.builder.at_root(), self.builder.branch(None):
                places = build_stage(["t"], lambda t: t, name="step", extents={"t": self.length}, origin="derived")
            assert isinstance(places, Direct)
            self.before.add(places.source)
            self.which = self._slot(places, (), (), 0)
        return self.which

    def _live(self, lengths: Tensor) -> Direct:
        """Which elements of the batch take this step."""
        if lengths.ndim != 1 or lengths.dtype not in ("int32", "int64"):
            raise refuse("A165", f"scan with lengths {lengths!r}", "they are one axis of int32 or int64, one for each element of the batch")
        live = self.live(lengths)
        self.before |= set(self.builder.stages)
        return self._slot(live, live.shape[1:], live.axis_names[1:], 0)

    def live(self, lengths: Tensor) -> Tensor:
        """Which elements of the batch take which steps."""
        name = lengths.axis_names[0] or "n"
        clock = "t" if name != "t" else "step"
        return build_stage([clock, name], lambda t, n: t < lengths[n], name="live", extents={clock: self.length, name: lengths.shape[0]})

    # ------------------------------------------------------------ after the step
    def _next(self, old: Any, new: Any) -> Any:
        """The new carry, which is built like the old one."""
        if described(old) != described(new):
            raise refuse("A164", f"a step whose carry is {described(new)}", f"init is {described(old)}")
        made = map_tree(self._tensor, new)
        for a, b in zip(leaves(old), leaves(made), strict=True):
            if tuple(a.shape) != tuple(b.shape) or a.dtype != b.dtype:
                raise refuse(
                    "A164",
                    f"a step that makes {b!r} of the carry {a!r}",
                    "a carry keeps its shape and type from step to step",
                    "an init of that shape and type",
                    "fl.cast",
                )
        return made

    def _held(self, live: Direct, new: Tensor, old: Tensor | None) -> Tensor:
        """The new value where the batch element takes this step; else the old one, or 0."""
        if new.ndim == 0 or new.shape[0] != live.shape[0]:
            asked = f"lengths of {live.shape[0]} elements with {new!r}"
            raise refuse("A165", asked, "the first axis of carries and of what is stacked is the batch's")
        names = labels_of(new)

        def value(*i: Expr) -> Expr:
            return where(live[i[0]], new[i], 0 if old is None else old[i])

        return build_stage(names, value, name="held", extents=dict(zip(names, new.shape, strict=True)), dtype=new.dtype)

    def _number(self, t: Tensor, name: str, old: int | None = None) -> int:
        """The id of a tensor of the step, or of the carry `old` where it comes back as it was; views and slices become stages."""
        t = bound(t)
        if isinstance(t, Direct) and (t.source in self.builder.stages and t.source not in self.before):
            return t.source
        if isinstance(t, Direct) and t.source == old:
            return old
        return copied(t, name).source

    # ------------------------------------------------------------ lifting
    def result(self) -> tuple[Any, Any]:
        rules = {id(rule): rule for i, rule in self.builder.rules.items() if i not in self.before}
        for rule in rules.values():
            rule.settle()
        stages = [s for i, s in self.builder.stages.items() if i not in self.before]
        moving = self._moving(stages)
        if opaque := next((s for s in stages if s.id in moving and s.extern is not None), None):
            raise placed(moved_by("the step of fl.scan or the function of fl.vmap", opaque.name), opaque.source, opaque.path)
        for s in stages:
            if any(i in moving or i in self.slots for _, i in s.counts):
                raise placed(counted_apart("step of fl.scan, or example of fl.vmap", s.counts[0][0]), s.source, s.path)
        name = self._clock_name([s for s in stages if s.id in moving])
        lifted = {s.id: self._lifted(s, moving, axis(name)) for s in stages if s.id in moving}
        paths = set(self.builder.paths)
        try:
            lifted |= masked(self.builder, lifted)
            lifted |= self._walked(list(lifted.values()), name)
        except Waiting:
            self.builder.paths = paths
            raise
        self.builder.stages |= {s.id: self._outside(s) for s in stages if s.id not in moving} | lifted
        self.builder.closed |= set(self.slots)
        for i in lifted:
            self.builder.transposes.pop(i, None)
        for rule in rules.values():
            if rule.results[0].source in moving:
                rule.lift(moving, name, self.reverse)
        numbers = iter(self.new)
        carry = map_tree(lambda t: self._last(t, next(numbers), moving), self.init)
        return carry, None if self.ys is None else map_tree(lambda i: self._every(i, moving), self.ys)

    def traced(self) -> TracedStep:
        """The step alone. What it made that is the same at every step stays where it is, and so do random keys and what was bound."""
        builder = self.builder
        stages = [s for i, s in builder.stages.items() if i not in self.before]
        moving = self._moving(stages)
        rules = {id(r): r for i in moving if (r := builder.rules.get(i)) is not None}
        mine = [s for s in stages if s.id in moving]
        builder.stages |= {s.id: self._outside(s) for s in stages if s.id not in moving}
        ys = list(leaves(self.ys))
        like = [self._whole(i) for i in ys]
        read = dict.fromkeys(i for s in mine for i in s.sources)
        read |= dict.fromkeys(i for rule in rules.values() for i in rule.behind) | dict.fromkeys((*self.new, *ys))
        captured = [t for i in read if i not in moving and i not in self.slots and (t := self._outer(i)) is not None]
        for s in mine:
            del builder.stages[s.id]
            builder.paths.discard(s.path)
            builder.rules.pop(s.id, None)
        builder.closed |= {*moving, *self.slots}
        of_carry = [slot.inside for slot in self.slots.values() if slot.axis is None]
        slices = [slot.inside for slot in self.slots.values() if slot.axis is not None]
        scope = "/".join([builder.method, *builder.scopes, ""])
        aliases = frozenset(builder.aliases & moving)
        return TracedStep(mine, list(rules.values()), of_carry, slices, captured, self.new, ys, like, scope, builder.when, aliases)

    def _outer(self, i: int) -> Direct | None:
        """A tensor from outside the step, unless it is a constant."""
        if i in self.builder.stages:
            return self._whole(i)
        leaf = self.builder.leaves.get(i)
        if leaf is None:
            return self.builder.standing[i]
        return None if leaf.kind == "constant" else Direct(i, leaf.shape, leaf.dtype, leaf.axis_names, leaf.name, self.builder)

    def _walked(self, lifted: list[Stage], clock: str) -> dict[int, Stage]:
        """The stages of all steps, those in terms of themselves step by step. Raises Waiting where a scan within the step begins with what
        the step before it left: then there is no order along one axis."""
        try:
            return with_clocks(lifted, [(clock, self.reverse)])
        except AlgorithmError as error:
            if error.problems[0].code == "A160" and any(s.clock is not None for s in lifted):
                raise Waiting from None
            raise

    def _moving(self, stages: list[Stage]) -> set[int]:
        """The stages that differ from step to step. A carry that the step returns as it came does not. All results of a rule do where one
        of its inputs, or what its derivative needs, does; and all stages of a loop, or none."""
        moving = {i for i in self.slots if i not in self.unchanged}
        slots, loops = set(moving), set[int]()
        rules = self.builder.rules
        while True:
            behind = ((s, (*s.sources, *(rules[s.id].behind if s.id in rules else ()))) for s in stages if s.id not in moving)
            more = {s.id for s, sources in behind if loops & {*s.loops} or any(i in moving for i in sources)}
            loops |= {group for s in stages if s.id in more for group in s.loops}
            if not more:
                return moving - slots
            moving |= more

    def _clock_name(self, stages: list[Stage]) -> str:
        if self.clock is not None:
            return self.clock
        first = next(iter(leaves(self.over)), None)
        name = (first.axis_names[self.axes[id(first)]] if first is not None else None) or "t"
        taken = {a.name for s in stages for a in (*s.axes, *s.reduce_axes)}
        while name in taken:
            name += "_"
        return name

    def _lifted(self, s: Stage, moving: set[int], t: Axis) -> Stage:
        """The stage at all steps."""
        later = t + 1 < as_expr(self.length) if self.reverse else as_expr(1) <= t
        last = t + 1 if self.reverse else t - 1

        def rule(e: Expr) -> Expr | None:
            if not isinstance(e, Read):
                return None
            if e.source in moving:
                return Read(e.source, (t, *e.index), e.dtype)
            if (slot := self.slots.get(e.source)) is None:
                return None
            if slot.axis is not None:
                return slot.outside.resolve((*e.index[: slot.axis], t, *e.index[slot.axis :]), ranges, ())
            first = slot.outside.resolve(e.index, ranges, ())
            if e.source in self.unchanged:
                return first
            new = self.next[e.source]
            return where(later, Read(new, (last, *e.index) if new in moving else e.index, e.dtype), first)

        s = _without(s, t.name)
        ranges = {t: self.length, **s.ranges}
        made = rewritten(s, rule)
        return replace(made, axes=(t, *s.axes), extents=(self.length, *s.extents), value=simplify(made.value, ranges))

    def _outside(self, s: Stage) -> Stage:
        """A stage that is the same at every step: what it reads of a carry that never changes is the carry's start."""

        def rule(e: Expr) -> Expr | None:
            unchanged = isinstance(e, Read) and e.source in self.unchanged
            return self.slots[e.source].outside.resolve(e.index, s.ranges, ()) if unchanged and isinstance(e, Read) else None

        return rewritten(s, rule) if any(i in self.unchanged for i in s.sources) else s

    # ------------------------------------------------------------ results
    def _last(self, first: Tensor, new: int, moving: set[int]) -> Tensor:
        """The carry after the last step."""
        if new in self.slots or self.length == 0:
            return first
        whole = self._whole(new)
        if new not in moving:
            return whole
        at = as_expr(0) if self.reverse else as_expr(self.length - 1)
        return View(whole, whole.shape[1:], whole.axis_names[1:], lambda i: (at, *i), whole.label)

    def _every(self, i: int, moving: set[int]) -> Tensor:
        """What was stacked, with the steps along the axis that was walked."""
        whole = self._whole(i)
        rank = whole.ndim if i in moving else whole.ndim + 1
        to = min(self.where % rank if self.where < 0 else self.where, rank - 1)
        if i in moving and to == 0:
            return whole
        inner = whole.shape[1:] if i in moving else whole.shape
        names = whole.axis_names[1:] if i in moving else whole.axis_names
        shape = (*inner[:to], self.length, *inner[to:])
        mine: Callable[[Index], Index] = (lambda k: (k[to], *k[:to], *k[to + 1 :])) if i in moving else (lambda k: (*k[:to], *k[to + 1 :]))
        clock = whole.axis_names[0] if i in moving else None
        return View(whole, shape, (*names[:to], clock, *names[to:]), mine, whole.label)

    def _whole(self, i: int) -> Direct:
        s = self.builder.stages[i]
        return Direct(i, s.extents, s.dtype, s.axis_names, s.name, self.builder)


def _without(s: Stage, name: str) -> Stage:
    """The stage with no axis of this name."""
    taken = {a.name for a in (*s.axes, *s.reduce_axes)}
    if name not in taken:
        return s
    other = name
    while other in taken:
        other += "_"
    old = next(a for a in (*s.axes, *s.reduce_axes) if a.name == name)
    new = axis(other)
    made = rewritten(s, lambda e: new if e is old else None)
    reduction = s.reduction and replace(s.reduction, axes=tuple(new if a is old else a for a in s.reduction.axes))
    return replace(made, axes=tuple(new if a is old else a for a in s.axes), reduction=reduction)


__all__ = ["Scan", "scan"]
