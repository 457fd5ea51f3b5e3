"""Derivatives that the user gives, and results through which none flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from ..building import call_site, current, placed
from ..errors import AlgorithmError
from ..expr import refuse
from ..graph import map_tree
from ..tensor import Direct, Tensor
from ..trace import copied
from ..trees import leaves, refilled, same_shape
from .algebra import zero
from .aliases import alias
from .reach import Adjoint, condition_of, elements_of

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
    lifted: bool = False  # its residuals were those of one step of a scan

    def pull(self, sweep: Sweep) -> None:
        """Contributes to the inputs, once the adjoints of all results are complete: at the first of them."""
        self.require_whole()
        with sweep.builder.branch(condition_of(sweep.builder.stages.get(self.results[0].source), sweep.builder)):
            self._pull(sweep)

    def _pull(self, sweep: Sweep) -> None:
        adjoints = [sweep.adjoint_of(r.source) if r.source in sweep.live else None for r in self.results]
        if any(r.source in sweep.pending for r in self.results) or all(a is None for a in adjoints):
            return
        given = [sweep.materialised(_zero(r) if a is None else a, r) for a, r in zip(adjoints, self.results, strict=True)]
        try:
            answer = self.backward(self.residuals, refilled(self.outcome, given))
            found = self._answers(answer)
        except AlgorithmError as error:
            raise placed(error, self.source, sweep.builder.method) from None
        for number, value in zip(self.inputs, found, strict=True):
            if value is not None:
                sweep.contribute(number, elements_of(value))

    def require_whole(self) -> None:
        """Raises AlgorithmError where the rule was given for one step of a scan."""
        if self.lifted:
            raise refuse(
                "A175",
                "the derivative of a scan whose step has a derivative of its own",
                "the rule knows one step, the derivative needs all of them",
                "fl.custom_vjp around the whole scan",
            )

    def _answers(self, answer: Any) -> list[Tensor | None]:
        if not isinstance(answer, tuple) or len(answer) != len(self.arguments):
            raise refuse(
                "A174",
                f"a backward function that returns {type(answer).__name__}",
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


def _zero(r: Direct) -> Adjoint:
    return lambda index: zero(r.dtype)


def stop_gradient(x: Any) -> Any:
    """x, of which every derivative is 0. Costs nothing: the copy is gone from the graph. Takes nests of tensors, too."""
    from ..ops.shapes import tensor

    return map_tree(lambda t: _stopped(tensor(t, "stop_gradient")), x)


def _stopped(t: Tensor) -> Tensor:
    made = alias(t)
    builder = current()
    builder.stages[made.source] = replace(builder.stages[made.source], op="stop_gradient")
    return made


def custom_vjp(fn: Callable[..., Any], forward: Callable[..., Any], backward: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """fn with a derivative of its own.

        forward(*args) -> (result, residuals)        what fn gives, and what the derivative needs
        backward(residuals, g) -> (g_0, g_1, ...)    what arrives at each argument when g arrives at the result; None for 0

    Arguments and results may be nests of tensors. Only reverse mode uses the rule, and nothing checks that it is right.
    """

    @wraps(fn)
    def call(*args: Any) -> Any:
        from ..ops.shapes import tensor

        source = call_site()
        arguments = tuple(map_tree(lambda t: alias(tensor(t, fn.__name__)), a) for a in args)
        returned = forward(*arguments)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise placed(
                refuse("A174", f"a forward function that returns {type(returned).__name__}", "it returns (result, residuals)"), source, ""
            )
        outcome = map_tree(lambda t: _result(tensor(t, fn.__name__)), returned[0])
        inputs = tuple(t.source for a in arguments for t in leaves(a))
        results = tuple(leaves(outcome))
        rule = Rule(inputs, arguments, results, outcome, returned[1], backward, source)
        for r in results:
            current().rules[r.source] = rule
        return outcome

    return call


def _result(t: Tensor) -> Direct:
    """A result as a tensor that is nothing else, so that a rule can hang on it."""
    made = copied(t, "result", "derived")
    current().aliases.add(made.source)
    return made


__all__ = ["Rule", "custom_vjp", "stop_gradient"]
