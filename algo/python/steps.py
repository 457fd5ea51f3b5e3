"""Loops over tensors: which variables a loop carries, and the fl.scan or fl.while_loop that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..branching import is_nest
from ..building import current
from ..expr import refuse
from ..extent import Extent
from ..graph import map_tree
from ..looping import while_loop
from ..ops.creation import full
from ..ops.shapes import tensor
from ..scanning import scan
from ..tensor import Tensor
from ..trees import described, leaves, refilled
from ..weak_numbers import WeakNumber
from .state import UNSET, Missing, Reader, Unset, Writer


@dataclass(frozen=True)
class Steps:
    """What a for loop walks over: `length` steps, at which `item(slices, position)` is what the loop's target is assigned."""

    xs: list[Tensor]
    length: Extent
    item: Callable[[list[Any], Any], Any]

    @staticmethod
    def range(args: Sequence[Any]) -> Steps:
        """range() of symbolic extents: positions are weak numbers."""
        if any(isinstance(a, Tensor) for a in args):
            shown = next(a for a in args if isinstance(a, Tensor))
            why = "how many steps a scan takes follows from shapes"
            raise refuse("A414", f"range of {shown!r}", why, "while i < n:", "range of an extent, such as x.shape[0]")
        low, high, step = (0, args[0], 1) if len(args) == 1 else (*args, 1) if len(args) == 2 else args
        if step != 1:
            raise refuse(
                "A414", f"range({', '.join(map(str, args))})", "a range of a symbolic extent goes in steps of 1", "i * step inside"
            )
        return Steps([], high - low, lambda _, t: t if isinstance(low, int) and low == 0 else t + low)

    @staticmethod
    def enumerate(args: Sequence[Any]) -> Steps:
        inner, start = steps_of(args[0]), args[1] if len(args) > 1 else 0
        return Steps(inner.xs, inner.length, lambda s, t: (t if start == 0 else t + start, inner.item(s, t)))

    @staticmethod
    def zip(args: Sequence[Any]) -> Steps:
        for a in args:
            if not isinstance(a, Tensor | Steps):
                why = "its steps are known only when the kernel runs"
                raise refuse("A414", f"zip of a tensor and {type(a).__name__}", why, "tensors alone")
        parts = [steps_of(a) for a in args]
        if len({p.length for p in parts}) > 1:
            found = " and ".join(str(p.length) for p in parts)
            raise refuse("A414", f"zip of {found} steps", "a scan walks over tensors that are equally long")
        ends = np.cumsum([0, *(len(p.xs) for p in parts)])

        def item(s: list[Any], t: Any) -> Any:
            return tuple(p.item(s[ends[k] : ends[k + 1]], t) for k, p in enumerate(parts))

        return Steps([x for p in parts for x in p.xs], parts[0].length, item)


def steps_of(over: Any) -> Steps:
    if isinstance(over, Steps):
        return over
    if not over.shape:
        raise refuse("A107", f"iteration over {over!r}", "it has no axes", "range(n)")
    return Steps([over], over.shape[0], lambda s, _: s[0])


def walk_tensor(
    steps: Steps, body: Callable[[Any], None], read: Reader, write: Writer, names: Sequence[str], own: Sequence[str], place: str
) -> None:
    """The loop as a scan: what was assigned before it and is assigned in it is carried."""
    loop = _Carried(read, write, names, own)
    xs = [*steps.xs, _positions(steps.length)]

    def run(init: list[Any]) -> list[Any]:
        def step(carry: list[Any], slices: list[Any]) -> tuple[list[Any], None]:
            return loop.step(carry, lambda: body(steps.item(slices[:-1], WeakNumber.of(slices[-1])))), None

        last: list[Any] = scan(step, init, xs)[0]
        return last

    loop.finish(run, f"the loop at {place} assigns it, and only what has a value before a loop over tensors has one after it")


def while_tensor(test: Callable[[], Any], body: Callable[[], None], read: Reader, write: Writer, names: Sequence[str], place: str) -> None:
    """The loop as an fl.while_loop."""
    loop = _Carried(read, write, names, ())

    def run(init: list[Any]) -> list[Any]:
        last: list[Any] = while_loop(lambda carry: loop.asked(carry, test), lambda carry: loop.step(carry, body), init)
        return last

    loop.finish(run, f"the loop at {place} assigns it, and may not run at all")


def _positions(length: Extent) -> Tensor:
    from ..trace import build_stage

    return build_stage(["t"], lambda t: t, name="position", extents={"t": length}, dtype="int32")


class _Known(Exception):
    """What the numbers that a loop starts with are after one step."""

    def __init__(self, after: dict[int, Any]) -> None:
        super().__init__(after)
        self.after = after


class _Carried:
    """The variables that a loop over tensors carries from step to step: those that have a value before it.

    A variable that starts as a number (total = 0) starts as a tensor of the shape and type that one step makes of that number, which a
    step that is traced for nothing else shows. So does, from 0, what the loop returns, which has no value before.
    """

    def __init__(self, read: Reader, write: Writer, names: Sequence[str], own: Sequence[str]) -> None:
        self.read, self.write, self.names = read, write, names
        self.before = read()
        self.places = [k for k, v in enumerate(self.before) if names[k] not in own and (is_nest(v) or v is UNSET)]
        self.own = own
        self.numbers = {k for k in self.places if isinstance(self.before[k], bool | int | float | Unset)}  # of those not known yet
        self.objects: dict[int, Any] = {}  # what the loop returns, where that is the same at every step

    def finish(self, run: Callable[[list[Any]], list[Any]], why: str) -> None:
        """Run the loop, and leave in the variables what they are after it."""
        builder = current()
        init = {k: 0.0 if self.before[k] is UNSET else self.before[k] for k in self.places}
        saved = builder.snapshot()
        try:
            while True:
                try:
                    last = run([init[k] for k in self.places])
                    break
                except _Known as found:
                    builder.restore(saved)
                    self.numbers -= found.after.keys()
                    for k, new in found.after.items():
                        self._begin(init, k, new)
                    saved = builder.snapshot()
        finally:
            self.write(self.before)
        lost = [Missing(n, why) if isinstance(v, Missing) or n in self.own else v for v, n in zip(self.before, self.names, strict=True)]
        for k, v in self.objects.items():
            lost[k] = v
        self.write(self._with(tuple(lost), last))

    def _begin(self, init: dict[int, Any], k: int, new: Any) -> None:
        """What a variable starts as that is `new` after a step."""
        if self.before[k] is UNSET and not is_nest(new):
            self.places.remove(k)
            self.objects[k] = new
        elif self.before[k] is UNSET:
            like = map_tree(lambda t: tensor(t, "return"), new)
            init[k] = map_tree(lambda t: full(t.shape, 0, dtype=t.dtype), like)
        elif is_nest(new) and not isinstance(new, list | tuple | dict):
            one = tensor(new, self.names[k])
            float_ = isinstance(init[k], float) and "float" not in one.dtype
            init[k] = full(one.shape, init[k], dtype=None if float_ else one.dtype)

    def asked(self, carry: Sequence[Any], test: Callable[[], Any]) -> Any:
        if self.numbers:
            return full((), True)
        self.write(self._with(self.before, carry))
        return test()

    def step(self, carry: Sequence[Any], body: Callable[[], None]) -> list[Any]:
        """The variables after one step that begins with these."""
        here = [self.before[k] if k in self.numbers else c for k, c in zip(self.places, carry, strict=True)]
        self.write(self._with(self.before, here))
        body()
        after = self.read()
        if self.numbers:  # those first that what is returned may be made of
            first = {k for k in self.numbers if self.before[k] is not UNSET} or self.numbers
            raise _Known({k: after[k] for k in first})
        for v, b, n in zip(after, self.before, self.names, strict=True):
            if v is not b and not isinstance(b, Missing | Unset) and self.names.index(n) not in self.places and n not in self.own:
                why = f"it starts as {type(b).__name__}, and a loop over tensors carries only tensors and numbers from step to step"
                raise refuse("A415", f"a loop over tensors assigns {n}", why, "a tensor of one shape and type throughout")
        return [self._kept(k, old, after[k]) for k, old in zip(self.places, carry, strict=True)]

    def _kept(self, k: int, old: Any, new: Any) -> Any:
        """What a variable is after a step, in the shape and type in which it began."""
        name = self.names[k]
        if isinstance(new, Missing):
            new.refuse()
        if not is_nest(new) or described(new) != described(old):
            asked = f"a loop over tensors makes {type(new).__name__} of {name}, which starts as {type(self.before[k]).__name__}"
            raise refuse("A415", asked, _WHY, "a tensor of one shape and type throughout")
        made = [_like(x, o) for x, o in zip(leaves(new), leaves(old), strict=True)]
        for x, o in zip(made, leaves(old), strict=True):
            if tuple(x.shape) != tuple(o.shape) or x.dtype != o.dtype:
                raise refuse("A415", f"a loop over tensors makes {x!r} of {name}, which is {o!r}", _WHY, "fl.cast", "fl.zeros(shape)")
        return refilled(new, made)

    def _with(self, values: tuple[Any, ...], new: Sequence[Any]) -> tuple[Any, ...]:
        out = list(values)
        for k, v in zip(self.places, new, strict=True):
            out[k] = v
        return tuple(out)


_WHY = "a loop over tensors is one step that stands for all, so what it carries keeps its shape and type"


def _like(x: Any, old: Tensor) -> Tensor:
    """A result of a step as a tensor; numbers take the type of what they replace, where they can."""
    if isinstance(x, bool | int | float) and old.shape == () and not (isinstance(x, float) and "float" not in old.dtype):
        return full((), x, dtype=old.dtype)
    return tensor(x, "a loop")


__all__ = ["Steps", "steps_of", "walk_tensor", "while_tensor"]
