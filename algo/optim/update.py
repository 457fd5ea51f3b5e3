"""The update of one parameter while it is being written: elementwise stages over its axes, and state of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..building import Builder
from ..dtypes import held
from ..expr import Expr, binary, cast, refuse, where
from ..extent import Extent
from ..held import Parameter
from ..reducing import reduce_axes
from ..tensor import Tensor
from ..trace import build_stage

if TYPE_CHECKING:
    from .optimizer import Optimizer


def number(value: Any, what: str, low: float, below: float = math.inf) -> float:
    """A hyperparameter: a number from `low` on, and less than `below`. Raises AlgorithmError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value < below:
        bound = f" and below {below:g}" if below != math.inf else ""
        raise refuse("A191", f"{what}={value!r}", f"it is a number from {low:g} on{bound}")
    return float(value)


def elementwise(
    shape: Sequence[Extent], names: Sequence[str | None], name: str, dtype: str, fn: Callable[..., Any], *operands: Tensor
) -> Tensor:
    """A stage of this shape from the elements of the operands at the same place; scalars count everywhere."""
    axes = [n if n and n not in names[:d] else f"i{d}" for d, n in enumerate(names)]

    def value(*i: Expr) -> Expr:
        return cast(fn(*(t[i] if t.shape else t.as_scalar() for t in operands)), dtype)

    return build_stage(axes, value, name=name, extents=dict(zip(axes, shape, strict=True)), origin="derived")


def squares(t: Tensor, name: str) -> Tensor:
    """The sum of the squares of all elements, in float32 or wider."""
    dtype = held(t.dtype)
    if not t.shape:
        return elementwise((), (), name, dtype, lambda e: cast(e, dtype) * cast(e, dtype), t)
    axes = [n if n and n not in t.axis_names[:d] else f"i{d}" for d, n in enumerate(t.axis_names)]

    def total() -> Expr:
        return reduce_axes("sum", axes, lambda *i: cast(t[i], dtype) * cast(t[i], dtype), dict(zip(axes, t.shape, strict=True)))

    return build_stage([], total, name=name, origin="derived")


@dataclass(frozen=True)
class Again:
    """The loss that a step goes down, and the function that made it, to be asked for other parameters."""

    loss: Tensor
    make: Callable[[], Any]


@dataclass(frozen=True)
class Step:
    """What all updates of one step share: how many there were before (`done`, int32), the learning rate (float64), whether this call makes
    an update (None: it does), what gradients are multiplied by to keep their norm, and the loss where it can be asked for again."""

    optimizer: Optimizer
    builder: Builder
    home: str
    done: Tensor
    rate: Tensor
    ready: Tensor | None
    scale: Tensor | None
    again: Again | None = None
    shared: dict[str, Tensor] = field(default_factory=dict)

    def number(self, name: str, fn: Callable[[Expr], Expr]) -> Tensor:
        """A float64 number from `done`, made once: METHOD/update/OPTIMIZER/NAME."""
        if name not in self.shared:
            self.shared[name] = elementwise((), (), name, "float64", fn, self.done)
        return self.shared[name]


class Update:
    """One parameter `w` and its gradient, which is clipped and decayed on the way, in the type in which the update is computed."""

    def __init__(self, step: Step, parameter: Parameter, gradient: Tensor, decay: float) -> None:
        self.step, self.optimizer, self.parameter = step, step.optimizer, parameter
        self.path, self.dtype = step.builder.homes[id(parameter)], held(parameter.dtype)
        self.w: Tensor = parameter.now()
        self.raw, self.rate, self.decay = gradient, step.rate, decay
        self.shape, self.axis_names = tuple(parameter.shape), tuple(parameter.axis_names)
        self.new: Tensor = self.w

    # ------------------------------------------------------------ parts
    def gradient(self, *, decayed: bool = True) -> tuple[Callable[..., Expr], list[Tensor]]:
        """How the clipped (and decayed) gradient comes from the elements of these operands."""
        scale = [] if self.step.scale is None else [self.step.scale]
        most, scaled, decay = self.optimizer.clip_value, bool(scale), self.decay if decayed else 0.0
        operands = [self.raw, *scale, *([self.w] if decay else [])]

        def value(*e: Expr) -> Expr:
            found = self.real(e[0])
            if scaled:
                found = found * self.real(e[1])
            if most is not None:
                found = binary("max", binary("min", found, self.real(most)), self.real(-most))
            return found + decay * self.real(e[-1]) if decay else found

        return value, operands

    def g(self, *, decayed: bool = True) -> Tensor:
        """The clipped (and decayed) gradient as a stage."""
        value, operands = self.gradient(decayed=decayed)
        return self.stage("gradient", value, *operands)

    def real(self, e: Any) -> Expr:
        """In the type of the update."""
        return cast(e, self.dtype)

    def stage(self, name: str, fn: Callable[..., Any], *operands: Tensor) -> Tensor:
        """A tensor like the parameter: METHOD/update/OPTIMIZER/NAME/PATH."""
        return elementwise(self.shape, self.axis_names, self.label(name), self.dtype, fn, *operands)

    def label(self, name: str = "") -> str:
        """What a stage like the parameter is called; without a name, its new value."""
        return f"{name}/{self.path}" if name else self.path

    def scalar(self, name: str, fn: Callable[..., Any], *operands: Tensor) -> Tensor:
        """A number for the whole parameter, in float64."""
        return elementwise((), (), f"{name}/{self.path}", "float64", fn, *operands)

    def norm2(self, name: str, t: Tensor) -> Tensor:
        """The squared norm of a tensor."""
        return squares(t, f"{name}/{self.path}")

    def correction(self, name: str, beta: float) -> Tensor:
        """``1 - beta ** t`` at the t-th update, which an average that began at 0 is divided by."""
        return self.step.number(name, lambda done: 1.0 - binary("pow", cast(beta, "float64"), cast(done, "float64") + 1.0))

    # ------------------------------------------------------------ state
    def slot(self, name: str, init: float = 0.0) -> Parameter:
        """State of the shape of the parameter: OPTIMIZER/NAME/PATH."""
        p = self.parameter
        return self.optimizer.state(f"{name}/{self.path}", p.shape, self.dtype, p.axis_names, init)

    def old(self, name: str, init: float = 0.0) -> Tensor:
        """The value of a slot before the update."""
        return self.slot(name, init).now()

    def keep(self, name: str, fn: Callable[..., Any], *operands: Tensor, init: float = 0.0) -> Tensor:
        """The new value of a slot: `fn` of its old element and those of the operands."""
        made = self.stage(name, self._gated(fn), self.old(name, init), *operands, *self._gate)
        self.slot(name, init).assign(self.whole(name, self.slot(name, init), made))
        return made

    def whole(self, name: str, held: Parameter, made: Tensor) -> Tensor:
        """What is held from now on, of the new values that were made."""
        return made

    def finish(self, fn: Callable[..., Any], *operands: Tensor) -> None:
        """The new value of the parameter: `fn` of its old element, the learning rate, and the elements of the operands."""
        p = self.parameter

        def value(old: Expr, rate: Expr, *e: Expr) -> Expr:
            return self._gated(lambda w, *rest: fn(w, self.real(rate), *rest))(self.real(old), *e)

        made = elementwise(self.shape, self.axis_names, self.label(), p.dtype, value, self.w, self.rate, *operands, *self._gate)
        p.assign(self.whole("", p, made), by=self.step.home)
        self.new = made

    def average(self, decay: float) -> None:
        """The moving average of the parameter, begun with its first new value."""

        def value(old: Expr, new: Expr, done: Expr) -> Expr:
            return where(done < 1, self.real(new), decay * old + (1.0 - decay) * self.real(new))

        self.keep("average", value, self.new, self.step.done)

    @property
    def _gate(self) -> list[Tensor]:
        return [] if self.step.ready is None else [self.step.ready]

    def _gated(self, fn: Callable[..., Expr]) -> Callable[..., Expr]:
        """`fn`, and the old value (its first argument) where this call makes no update."""
        if self.step.ready is None:
            return fn
        return lambda old, *e: where(e[-1], fn(old, *e[:-1]), old)


__all__ = ["Again", "Step", "Update", "elementwise", "number", "squares"]
