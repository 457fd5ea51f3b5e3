"""What optimisers have in common: which parameters, at which rate, with which gradients, and state that lasts from call to call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..building import Builder, current
from ..complex import ComplexTensor, from_pair
from ..dtypes import FLOATS, held
from ..expr import Expr, binary, cast, refuse, unary, where
from ..held import Parameter, State, stored_of, updating
from ..modules import Module
from ..tensor import Tensor
from .rows import RowUpdate, rows_of
from .schedules import rate_of
from .selecting import Selection, matcher, selected
from .update import Again, Step, Update, elementwise, number, squares


class Optimizer(Module):
    """Moves parameters against gradients, by `rule` of the class.

    learning_rate   a number, or a function of the number of updates made so far (fl.optim.cosine, warmup, ...)
    weight_decay    how much of each parameter is added to its gradient, or as the optimiser says; `decay` selects for which (all)
    clip_value      gradients are clamped to [-clip_value, clip_value], element by element
    clip_norm       gradients are scaled so that their norm, taken over all parameters, is at most this (Pascanu et al., 2013)
    accumulate      calls whose gradients are averaged for one update; in between nothing moves
    average         the decay of an exponential moving average of the parameters, which `averaged` reads (Polyak and Juditsky, 1992)
    rows            "lazy" for tables of which a call looks up some rows, such as embeddings: these rows and their state are updated, and
                    all else stays as it is to the bit; also weight decay is of these rows alone. An update takes as long as the rows
                    that are looked up need, whatever the size of the table. Moments are of the updates that a row was in, and their
                    bias is corrected by the number of all updates, as in PyTorch's SparseAdam.

    Clipping is of the averaged gradient, weight decay comes after it. Parameters narrower than float32 are updated in float32, and their
    state is float32. Of a complex parameter both parts are moved as numbers of their own, as PyTorch's optimisers do.
    """

    by_rows = True  # whether the rule of one row depends on nothing of other rows

    def __init__(
        self,
        learning_rate: Any,
        *,
        weight_decay: float = 0.0,
        decay: Selection = None,
        clip_value: float | None = None,
        clip_norm: float | None = None,
        accumulate: int = 1,
        average: float | None = None,
        rows: str | None = None,
    ) -> None:
        if isinstance(accumulate, bool) or not isinstance(accumulate, int) or accumulate < 1:
            raise refuse("A191", f"accumulate={accumulate!r}", "it is the number of calls for one update, from 1 on")
        self.learning_rate = rate_of(learning_rate)
        self.weight_decay = number(weight_decay, "weight_decay", 0.0)
        self._decays: Callable[[], Callable[[Parameter], bool]] = lambda: matcher(decay)  # a module here would be part of the Program
        self.clip_value = None if clip_value is None else number(clip_value, "clip_value", 0.0)
        self.clip_norm = None if clip_norm is None else number(clip_norm, "clip_norm", 0.0)
        self.accumulate = accumulate
        self.average = None if average is None else number(average, "average", 0.0, 1.0)
        if rows not in (None, "lazy"):
            raise refuse("A191", f"rows={rows!r}", "it is 'lazy', or left out", "rows='lazy'")
        for what, other in (("average", average), ("accumulate", None if accumulate == 1 else accumulate)):
            if rows and other is not None:
                raise refuse("A191", f"rows='lazy' with {what}={other!r}", "that moves all rows in a call", f"rows='lazy' without {what}=")
        if rows and not self.by_rows:
            raise refuse("A191", f"{type(self).__name__} with rows='lazy'", "it asks for norms of whole parameters", "fl.optim.Adam")
        self.rows = rows

    def rule(self, u: Update) -> None:
        """Write the new value of one parameter, and of the optimiser's state for it, from its gradient."""
        raise NotImplementedError

    def rules(self, updates: Sequence[Update]) -> None:
        """The same for all parameters of a step; for optimisers whose rule of one depends on the others."""
        for u in updates:
            self.rule(u)

    # ------------------------------------------------------------ what a method calls
    def minimize(self, loss: Tensor | Callable[[], Tensor], params: Selection = None) -> Tensor:
        """One step against the gradient of `loss`, a scalar, by the trainable parameters below the Program, or those of `params`: a
        module, a parameter, a name with wildcards (`layers.*/w`), or a list of these. What the loss does not depend on stays as it is.

        `loss` may be a function that makes it of the parameters as they are, for an optimiser that asks for it elsewhere too: a line
        search. Returns the loss before the step."""
        from ..autodiff import gradients

        builder, chosen = current(), selected(params)
        make = None if isinstance(loss, Tensor) else loss
        loss = loss if isinstance(loss, Tensor) else loss()
        now = gradients(loss, [p.now() for p in chosen])
        again = [n for n, (p, g) in enumerate(zip(chosen, now, strict=True)) if g is None and id(p) in builder.assigned]
        first = gradients(loss, [builder.bound[id(chosen[n])] for n in again]) if again else []
        found = {**dict(enumerate(now)), **dict(zip(again, first, strict=True))}  # a loss from before another optimiser's step
        pairs = [(p, g) for n, p in enumerate(chosen) if (g := found[n]) is not None]
        if not pairs:
            why = f"it depends on none of {', '.join(builder.homes[id(p)] for p in chosen[:4])}"
            raise refuse("A193", f"minimize({loss.label})", why, "params= for others")
        builder.losses.append(loss)
        self._apply(pairs, None if make is None else Again(loss, make))
        return loss

    def apply(self, gradients: Mapping[Any, Tensor] | Iterable[tuple[Any, Tensor]]) -> None:
        """One step with these gradients: pairs of a parameter and a tensor of its shape. For gradients of one's own making."""
        self._apply(gradients, None)

    def _apply(self, gradients: Mapping[Any, Tensor] | Iterable[tuple[Any, Tensor]], again: Again | None) -> None:
        builder, home = current(), self.home()
        given = gradients.items() if isinstance(gradients, Mapping) else gradients
        pairs = [(self._parameter(p), g.pair() if isinstance(g, ComplexTensor) else g) for p, g in given]
        for p, g in pairs:
            if not isinstance(g, Tensor) or tuple(g.shape) != tuple(p.shape) or g.dtype not in FLOATS:
                wanted = f"{p.dtype}[{', '.join(map(str, p.shape))}]"
                raise refuse("A194", f"the gradient {g!r}", f"{builder.homes[id(p)]} is {wanted}")
        twice = next((p for p, _ in pairs if sum(p is q for q, _ in pairs) > 1), None)
        if twice is not None:
            raise refuse("A194", f"two gradients of {builder.homes[id(twice)]}", "one step takes one", "their sum")
        with updating(home):
            self._step(builder, home, pairs, again)

    def averaged(self, parameter: Any) -> Tensor:
        """The moving average of a parameter, for methods that predict. 0 until the first update, which begins it with the new value."""
        p = self._parameter(parameter)
        if self.average is None:
            raise refuse("A191", f"averaged({p.label})", "the optimiser keeps no average", "average=0.999")
        found = self.state(f"average/{current().homes[id(p)]}", p.shape, held(p.dtype), p.axis_names).now()
        return from_pair(found) if p.complex else found  # type: ignore[return-value]

    # ------------------------------------------------------------ state
    def home(self) -> str:
        """The path of the attribute that holds the optimiser."""
        found = current().homes.get(id(self))
        if found is None:
            asked = f"{type(self).__name__} that no attribute holds"
            raise refuse("A120", asked, "its state is kept under the path of its attribute", "self.optimizer = ... in __init__")
        return found

    def state(self, name: str, shape: Any, dtype: str, axis_names: Any, init: float = 0.0) -> Parameter:
        """State of the optimiser under OPTIMIZER/NAME: the same one in every method of the Program."""
        builder, path = current(), f"{self.home()}/{name}"
        if path not in builder.slots:
            builder.slots[path] = made = State(tuple(shape), dtype, tuple(axis_names), init, False)
            made.hold(builder, path)
        found: Parameter = builder.slots[path]
        return found

    def _parameter(self, given: Any) -> Parameter:
        p = stored_of(given)
        if not isinstance(p, Parameter) or p.dtype not in FLOATS:
            raise refuse("A194", f"the gradient of {given!r}", "optimisers move parameters of floats", "fl.param(...) in __init__")
        p.now()
        return p

    # ------------------------------------------------------------ one step
    def _step(self, builder: Builder, home: str, pairs: list[tuple[Parameter, Tensor]], again: Again | None) -> None:
        touched = [rows_of(p, g) for p, g in pairs] if self.rows else []
        ready, pairs = self._accumulated([(p, t.gradient) for (p, _), t in zip(pairs, touched, strict=True)] if touched else pairs)
        steps = self.state("step", (), "int32", ())
        done = steps.now()
        rate = elementwise((), (), "rate", "float64", lambda t: cast(self.learning_rate(cast(t, "float64")), "float64"), done)
        now = Step(self, builder, home, done, rate, ready, self._scale(pairs), again)
        decays = self._decays() if self.weight_decay else None
        updates: list[Update] = []
        for n, (p, g) in enumerate(pairs):
            decay = self.weight_decay if decays and decays(p) else 0.0
            updates.append(RowUpdate(now, p, touched[n], decay) if touched else Update(now, p, g, decay))
        self.rules(updates)
        if self.average is not None:
            for u in updates:
                u.average(self.average)
        gate = [] if ready is None else [ready]
        steps.assign(elementwise((), (), "step", "int32", lambda t, *r: t + (cast(r[0], "int32") if r else 1), done, *gate))

    def _accumulated(self, pairs: list[tuple[Parameter, Tensor]]) -> tuple[Tensor | None, list[tuple[Parameter, Tensor]]]:
        """Whether this call makes an update (always for None), and the mean gradients."""
        if self.accumulate == 1:
            return None, pairs
        k, builder = self.accumulate, current()
        count = self.state("calls", (), "int32", ())
        now = count.now()
        ready = elementwise((), (), "ready", "bool", lambda n: n + 1 >= k, now)
        count.assign(elementwise((), (), "calls", "int32", lambda n: where(n + 1 >= k, 0, n + 1), now))
        means: list[tuple[Parameter, Tensor]] = []
        for p, g in pairs:
            path, dtype = builder.homes[id(p)], held(p.dtype)
            total = self.state(f"accumulated/{path}", p.shape, dtype, p.axis_names)
            before = total.now()
            mean = elementwise(p.shape, p.axis_names, f"mean/{path}", dtype, lambda a, e, d=dtype: (a + cast(e, d)) * (1.0 / k), before, g)
            total.assign(
                elementwise(
                    p.shape, p.axis_names, f"accumulated/{path}", dtype,
                    lambda a, e, r, d=dtype: where(r, cast(0.0, d), a + cast(e, d)), before, g, ready,
                )
            )  # fmt: skip
            means.append((p, mean))
        return ready, means

    def _scale(self, pairs: list[tuple[Parameter, Tensor]]) -> Tensor | None:
        """What all gradients are multiplied by so that their norm is at most `clip_norm`."""
        if self.clip_norm is None:
            return None
        most, homes = self.clip_norm, current().homes
        parts = [squares(g, f"norm/{homes[id(p)]}") for p, g in pairs]

        def scale(*each: Expr) -> Expr:
            total = cast(each[0], "float64")
            for e in each[1:]:
                total = total + cast(e, "float64")
            norm = unary("sqrt", total)
            return most / binary("max", norm, cast(most, "float64"))

        return elementwise((), (), "scale", "float64", scale, *parts)


__all__ = ["Optimizer"]
