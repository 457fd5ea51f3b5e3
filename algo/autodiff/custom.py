"""Derivatives that the user gives, and results through which none flow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..building import Builder, call_site, current, placed
from ..errors import AlgorithmError
from ..expr import Expr, Read, refuse
from ..graph import map_tree
from ..passing import bound, positional
from ..rewriting import reads, rewrite
from ..tensor import Direct, Tensor
from ..trace import copied
from ..trees import form_of, leaves, refilled, same_shape
from .algebra import zero
from .aliases import alias
from .reach import Adjoint, condition_of, elements_of
from .stepwise import Key, Lift, over_steps, readable, whole

if TYPE_CHECKING:
    from .sweep import Sweep


@dataclass(eq=False)
class Rule:
    """How adjoints pass from the results of a function to its inputs. `inputs` and `results` are numbers of tensors."""

    inputs: tuple[int, ...]
    arguments: Any
    results: tuple[Direct, ...]
    outcome: Any
    residuals: Any
    backward: Callable[[Any, Any], Any]
    source: str
    name: str = ""  # of the function
    surrogate: bool = False  # whether it is meant to be no derivative
    when: Expr | None = None  # the condition of the branch that it was called in
    lifts: tuple[Lift, ...] = ()  # the scans in whose step it was called and that are done, outermost first

    def pull(self, sweep: Sweep) -> None:
        """Contributes to the inputs, once the adjoints of all results are complete: at the first of them."""
        with sweep.builder.branch(condition_of(sweep.builder.stages.get(self.results[0].source), sweep.builder)):
            self._pull(sweep)

    def _pull(self, sweep: Sweep) -> None:
        adjoints = [sweep.adjoint_of(r.source) if r.source in sweep.live else None for r in self.results]
        if any(r.source in sweep.pending for r in self.results) or all(a is None for a in adjoints):
            return
        try:
            found = self._of_steps(sweep, adjoints) if self.lifts else self._of_one(sweep, adjoints)
        except AlgorithmError as error:
            raise placed(error, self.source, sweep.builder.method) from None
        with readable(sweep.builder, [value for value in found if value is not None]):
            for number, value in zip(self.inputs, found, strict=True):
                if value is not None:
                    sweep.contribute(number, elements_of(value))

    def _of_one(self, sweep: Sweep, adjoints: Sequence[Adjoint | None]) -> list[Tensor | None]:
        """What arrives at each input."""
        given = [sweep.materialised(_zero(r) if a is None else a, r) for a, r in zip(adjoints, self.results, strict=True)]
        return self._answers(self.backward(self.residuals, refilled(self.outcome, given)))

    def _of_steps(self, sweep: Sweep, adjoints: Sequence[Adjoint | None]) -> list[Tensor | None]:
        """What arrives at each input, of all steps; of an input that is the same at all steps of a scan, the sum."""
        builder = sweep.builder
        wholes: dict[Key, Tensor] = {}
        for r, a in zip(self.results, adjoints, strict=True):
            if a is not None:
                wholes["adjoint", r.source] = sweep.adjoint_tensor(r.source, a)
        asked = [] if self.when is None else [r.source for r in reads(self.when)]
        kept = [*asked, *(t.source for t in leaves(self.residuals) if isinstance(t, Direct))]
        wholes |= {("value", i): whole(builder, i) for i in kept if any(i in lift.moved for lift in self.lifts)}
        arrived: list[bool] = []

        def one(at: Mapping[Key, Tensor]) -> list[Tensor]:
            def slice_of(t: Any) -> Any:
                return at.get(("value", t.source), t) if isinstance(t, Direct) else t

            tests = {i: alias(at["value", i]) for i in asked if ("value", i) in at}  # stages of the step, as conditions are
            with builder.branch(builder.when if self.when is None else rewrite(self.when, lambda e: _sliced(e, tests))):
                given = [at[key] if (key := ("adjoint", r.source)) in at else _zeros(r) for r in self.results]
                answers = self._answers(self.backward(map_tree(slice_of, self.residuals), refilled(self.outcome, given)))
            arrived[:] = [t is not None for t in answers]
            return [t for t in answers if t is not None]

        with readable(builder, wholes.values()):
            made = iter(over_steps(builder, self.lifts, wholes, one))
        found = [next(made) if there else None for there in arrived]
        return [None if t is None else self._summed(builder, i, t) for i, t in zip(self.inputs, found, strict=True)]

    def _summed(self, builder: Builder, input: int, answer: Tensor) -> Tensor:
        """What arrives in all at an input that some of the scans do not change."""
        from ..ops.reductions import sum as sum_

        same = tuple(n for n, lift in enumerate(self.lifts) if input not in lift.moved)
        if not same:
            return answer
        with readable(builder, [answer]):
            total: Tensor = sum_(answer, axis=same)
        return total

    @property
    def behind(self) -> tuple[int, ...]:
        """The tensors that its adjoints depend on, beside those of its results."""
        return (*self.inputs, *(t.source for t in leaves(self.residuals) if isinstance(t, Direct)))

    def lift(self, moved: set[int], name: str, reverse: bool) -> None:
        """From now on the tensors `moved` have a leading axis, along which they are what they were at each step of a scan."""
        self.lifts = (Lift(frozenset(moved), name, reverse), *self.lifts)

    def settle(self) -> None:
        """Keeps its residuals as stages and leaves of the step, which are found again when they hold all steps."""
        builder = current()

        def kept(t: Any) -> Any:
            t = bound(t) if isinstance(t, Tensor) else t
            there = isinstance(t, Direct) and (t.source in builder.stages or t.source in builder.leaves)
            return alias(t) if isinstance(t, Tensor) and not there else t

        self.residuals = map_tree(kept, self.residuals)

    def _answers(self, answer: Any) -> list[Tensor | None]:
        if not isinstance(answer, tuple) or len(answer) != len(self.arguments):
            raise refuse(
                "A174",
                f"a backward function that returns {form_of(answer)}",
                f"it returns a tuple of {len(self.arguments)}: what arrives at each argument, or None",
            )
        out: list[Tensor | None] = []
        for argument, value in zip(self.arguments, answer, strict=True):
            primal = list(leaves(argument))
            if value is None:
                out += [None] * len(primal)
                continue
            same_shape(argument, value, "what the backward function returns")
            for x, v in zip(primal, leaves(value), strict=True):
                if v is not None and (tuple(v.shape) != tuple(x.shape) or v.dtype != x.dtype):
                    raise refuse("A174", f"a backward function that returns {v!r}", f"the argument is {x!r}")
                out.append(v)
        return out


def _sliced(e: Expr, at: Mapping[int, Tensor]) -> Expr | None:
    """What a condition reads, at one step."""
    t = at.get(e.source) if isinstance(e, Read) else None
    return t.resolve(e.index, {}, ()) if t is not None and isinstance(e, Read) else None


def _zeros(r: Direct) -> Tensor:
    """Nothing, where nothing arrives."""
    from ..ops.creation import zeros

    return zeros(r.shape, dtype=r.dtype)


def _zero(r: Direct) -> Adjoint:
    return lambda index: zero(r.dtype)


def stop_gradient(x: Any) -> Any:
    """x, of which every derivative is 0. Costs nothing: the copy is gone from the graph. Takes nests of tensors, too."""
    from ..ops.shapes import tensor

    return map_tree(lambda t: stopped(tensor(t, "stop_gradient")), x)


def stopped(t: Tensor) -> Direct:
    """The tensor, of which every derivative is 0."""
    made = alias(t)
    builder = current()
    builder.stages[made.source] = replace(builder.stages[made.source], op="stop_gradient")
    return made


def custom_vjp(
    fn: Callable[..., Any], forward: Callable[..., Any], backward: Callable[[Any, Any], Any], *, surrogate: bool = False
) -> Callable[..., Any]:
    """fn with a derivative of its own.

        forward(*args) -> (result, residuals)        what fn gives, and what the derivative needs
        backward(residuals, g) -> (g_0, g_1, ...)    what arrives at each argument when g arrives at the result; None for 0

    Arguments and results may be nests of tensors. A result may stand among the residuals: a derivative of the derivative comes back to
    this rule. Only reverse mode uses the rule, and `fluorite check` compares it with slopes of forward, unless it is a `surrogate`: one
    that is meant to be something else than the derivative, as of gradients that are clipped, reversed or passed straight through. In the
    step of fl.scan, and in fl.vmap, it is a rule of one step: backward is traced once more, for all steps, with what it needs of each.
    """

    @wraps(fn, updated=())
    def call(*given: Any, **named: Any) -> Any:
        from ..ops.shapes import tensor
        from ..python import converted

        source = call_site()
        way, back = converted(forward), converted(backward)
        args = positional(fn, given, named)
        arguments = tuple(map_tree(lambda t: alias(tensor(t, fn.__name__)), a) for a in args)
        returned = way(*arguments)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise placed(
                refuse("A174", f"a forward function that returns {form_of(returned)}", "it returns (result, residuals)"), source, ""
            )
        outcome = map_tree(lambda t: result_of(tensor(t, fn.__name__)), returned[0])
        inputs = tuple(t.source for a in arguments for t in leaves(a))
        results = tuple(leaves(outcome))
        same = {id(t): r for t, r in zip(leaves(returned[0]), results, strict=True)}
        residuals = map_tree(lambda t: same.get(id(t), t), returned[1])
        rule = Rule(inputs, arguments, results, outcome, residuals, back, source, fn.__name__, surrogate, current().when)
        for r in results:
            current().rules[r.source] = rule
        return outcome

    return call


def result_of(t: Tensor) -> Direct:
    """A result as a tensor that is nothing else, so that a rule can hang on it."""
    made = copied(t, "result", "derived")
    current().aliases.add(made.source)
    return made


__all__ = ["Rule", "custom_vjp", "result_of", "stop_gradient", "stopped"]
