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
from ..looping import while_loop
from ..ops.creation import full
from ..ops.shapes import tensor
from ..scanning import scan
from ..tensor import Tensor
from ..trees import described, leaves, refilled
from ..weak_numbers import WeakNumber
from .state import Missing, Reader, Writer


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
    step that is traced for nothing else shows.
    """

    def __init__(self, read: Reader, write: Writer, names: Sequence[str], own: Sequence[str]) -> None:
        self.read, self.write, self.names = read, write, names
        self.before = read()
        self.places = [k for k, v in enumerate(self.before) if names[k] not in own and is_nest(v)]
        self.own = own
        self.numbers = {k for k in self.places if isinstance(self.before[k], bool | int | float)}  # of those not known yet

    def finish(self, run: Callable[[list[Any]], list[Any]], why: str) -> None:
        """Run the loop, and leave in the variables what they are after it."""
        builder = current()
        init = [self.before[k] for k in self.places]
        saved = builder.snapshot()
        try:
            while True:
                try:
                    last = run(init)
                    break
                except _Known as found:
                    builder.restore(saved)
                    self.numbers = set()
                    for at, k in enumerate(self.places):
                        if (new := found.after.get(k)) is not None and not isinstance(new, list | tuple | dict):
                            like = tensor(new, self.names[k])
                            float_ = isinstance(init[at], float) and "float" not in like.dtype
                            init[at] = full(like.shape, init[at], dtype=None if float_ else like.dtype)
        finally:
            self.write(self.before)
        lost = [Missing(n, why) if isinstance(v, Missing) or n in self.own else v for v, n in zip(self.before, self.names, strict=True)]
        self.write(self._with(tuple(lost), last))

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
        if self.numbers:
            raise _Known({k: after[k] for k in self.numbers if is_nest(after[k])})
        for v, b, n in zip(after, self.before, self.names, strict=True):
            if v is not b and not isinstance(b, Missing) and self.names.index(n) not in self.places and n not in self.own:
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
