"""What derivatives pass on their way: the stages behind a result, how their values are read, and where they have any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..building import Builder, placed
from ..errors import AlgorithmError
from ..expr import Expr, Read, refuse
from ..passing import bound
from ..rewriting import axes_of
from ..stages import Stage
from ..tensor import Tensor

Adjoint = Callable[[Sequence[Expr]], Expr]
"""What is known of every element of a tensor, such as its adjoint, as a function of the index."""


def upstream(builder: Builder, results: Iterable[int], behind: Callable[[Stage], Iterable[int]] = lambda s: s.sources) -> set[int]:
    """The tensors that results depend on, themselves among them; `behind` are those right behind a stage."""
    found: set[int] = set()
    pending = list(results)
    while pending:
        i = pending.pop()
        if i not in found:
            found.add(i)
            pending += behind(builder.stages[i]) if i in builder.stages else ()
    return found


def condition_of(s: Stage | None, builder: Builder) -> Expr | None:
    """Where a tensor, and so its derivative, has a value, as far as that is the same everywhere in it."""
    return builder.when if s is None or s.when is None or axes_of(s.when) else s.when


def reader(id: int, dtype: str) -> Adjoint:
    """The elements of a stage or leaf."""
    return lambda index: Read(id, tuple(index), dtype)


def elements_of(t: Tensor) -> Adjoint:
    """The elements of any tensor."""
    return lambda index: bound(t).resolve(tuple(index), {}, ())


def opaque(s: Stage, forward: bool = False) -> AlgorithmError:
    """The refusal of a function of NumPy's that nobody gave a derivative, or none that forward mode could use."""
    why, instead = "what its function does is not known", "vjp="
    if forward:
        why, instead = f"{why}, and vjp= is for reverse mode only", "fl.vjp"
    return placed(refuse("A171", f"the derivative of fl.extern {s.name}", why, instead, "fl.stop_gradient"), s.source, s.path)


def unknown(what: str) -> AlgorithmError:
    """The refusal of what has no rule."""
    return refuse("A171", f"the derivative of {what}", "nobody said what it is", "fl.custom_vjp around it", "fl.stop_gradient")


__all__ = ["Adjoint", "condition_of", "elements_of", "opaque", "reader", "unknown", "upstream"]
