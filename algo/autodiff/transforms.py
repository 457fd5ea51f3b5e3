"""``fl.grad`` and its kin: functions of functions. What they return is a function that makes stages when it is traced, so they nest, and
``fl.compile(fl.grad(f))`` is a model like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

from ..building import Builder, call_site, current, placed
from ..complex import ComplexTensor, from_pair
from ..dtypes import FLOATS
from ..errors import AlgorithmError
from ..expr import Expr, refuse
from ..graph import map_tree
from ..held import Parameter
from ..passing import bound
from ..tensor import Direct, Tensor
from ..trees import form_of, leaves, same_shape
from .algebra import add, one, zero
from .aliases import alias, path_of
from .arguments import Argument, Place, argument_name, arguments_of, called, places_of, require_float
from .emitting import Emitter
from .reach import Adjoint, elements_of
from .sweep import Sweep


# ---------------------------------------------------------------- of tensors
def gradients(loss: Tensor, wrt: Sequence[Tensor]) -> list[Tensor | None]:
    """The derivative of a scalar by each of some tensors of the same trace; None where the scalar does not depend on it.

    Stages are called METHOD/grad/LOSS/TENSOR. Raises AlgorithmError: a loss that is no float scalar, an integer tensor.
    """
    loss = settled(loss)
    _require_scalar(loss)
    given = [[settled(part) for part in _parts(t)] for t in wrt]
    for t in (p for parts in given for p in parts):
        require_float(t)
    found = iter(swept([loss], [_constant(one(loss.dtype))], [p for parts in given for p in parts]))
    return [_together(t, [next(found) for _ in parts]) for t, parts in zip(wrt, given, strict=True)]


def _parts(t: Any) -> Sequence[Any]:
    """The tensors that a complex one is made of: one of pairs, or two."""
    if not isinstance(t, ComplexTensor):
        return [t]
    return [t.joined] if isinstance(t.joined, Direct | Parameter) else t.parts()


def _together(t: Any, found: Sequence[Tensor | None]) -> Any:
    """The derivative by t of those by its parts; None where there is none."""
    from ..ops.creation import zeros_like

    if not isinstance(t, ComplexTensor) or all(g is None for g in found):
        return found[0]
    if len(found) == 1:
        return from_pair(found[0])  # type: ignore[arg-type]
    return ComplexTensor(*(zeros_like(p) if g is None else g for p, g in zip(t.parts(), found, strict=True)))


def swept(results: Sequence[Direct], seeds: Sequence[Adjoint], wrt: Sequence[Direct], apart: bool = False) -> list[Tensor | None]:
    """The adjoints of the tensors `wrt`. Where they count as independent, they stand `apart`: nothing goes on through them."""
    builder = current()
    label = relative(results[0], builder)
    given: dict[int, Adjoint] = {}
    for r, seed in zip(results, seeds, strict=True):
        given[r.source] = _both(given[r.source], seed) if r.source in given else seed
    sweep = Sweep(builder, given, [t.source for t in wrt], label, apart)
    return [None if (a := sweep.adjoint_of(t.source)) is None else sweep.materialised(a, t) for t in wrt]


def _both(a: Adjoint, b: Adjoint) -> Adjoint:
    return lambda index: add(a(index), b(index))


def relative(t: Direct, builder: Builder) -> str:
    return (path_of(t, builder) or t.label).removeprefix(f"{builder.method}/")


def settled(t: Any) -> Direct:
    """A stage or leaf that holds the tensor; a view becomes one."""
    from ..ops.shapes import tensor

    found = bound(tensor(t, "grad"))
    if isinstance(found, Direct):
        found.require_mine()
        return found
    if found.is_bounded:
        raise refuse("A172", f"the derivative by {found.label}", "a boundary view is a way to read, not a tensor", "the tensor itself")
    return alias(found)


def _require_scalar(t: Tensor) -> None:
    if t.shape != ():
        raise refuse(
            "A170",
            f"the gradient of {t!r}",
            "a gradient is that of one number",
            f"fl.mean({t.label}) or fl.sum({t.label})",
            "fl.vjp, which takes what arrives at each element",
        )
    if t.dtype not in FLOATS:
        raise refuse("A172", f"the gradient of {t!r}", "only floats have derivatives", "fl.cast(x, fl.f32)")


# ---------------------------------------------------------------- of functions
def value_and_grad(fn: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns (fn's value, its derivatives by the arguments `argnums`).

    `argnums` is a position or a name, or a sequence of them, for which a tuple of derivatives is returned. A derivative is built like
    its argument: a tensor, or a list, tuple or dict of them; that of a Program or module is a dict of its trainable parameters by path.
    With `has_aux` fn returns (value, more), and so does the first result. Tensors count as independent of one another and of what fn
    reaches by itself; parameters are the same wherever fn reaches them. Where fn does not depend on an argument, the derivative is 0.
    """

    @wraps(fn, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        source = call_site()
        try:
            places = places_of(fn, argnums, args, kwargs)
            held = arguments_of({k: (args[k] if isinstance(k, int) else kwargs[k], argument_name(fn, k)) for k in places})
            returned = called(fn, held, args, kwargs)
            if has_aux and not (isinstance(returned, tuple) and len(returned) == 2):
                raise refuse("A170", f"has_aux=True of a function that returns {form_of(returned)}", "it returns (value, more)")
            value, more = returned if has_aux else (returned, None)
            if not isinstance(value, Tensor | int | float):
                asked = f"the gradient of a function that returns {type(value).__name__}"
                raise refuse("A170", asked, "it returns one number", "has_aux=True for (value, more)")
            loss = settled(value)
            _require_scalar(loss)
            wrt = [t for h in held.values() for t in h.inside]
            found = swept([loss], [_constant(one(loss.dtype))], wrt)
            each = iter(_or_zeros(found, wrt, relative(loss, current())))
            out = tuple(held[k].filled(each) for k in places)
        except AlgorithmError as error:
            raise placed(error, source, current().method) from None
        derivative = out if isinstance(argnums, list | tuple) else out[0]
        return ((loss, more) if has_aux else loss), derivative

    return call


def grad(fn: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the derivatives of fn, which gives one number, by the arguments `argnums`; see value_and_grad.

    With `has_aux` it returns (derivatives, more).
    """
    both = value_and_grad(fn, argnums, has_aux)

    @wraps(fn, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        value, derivative = both(*args, **kwargs)
        return (derivative, value[1]) if has_aux else derivative

    return call


def vjp(fn: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """(fn(*primals), pull): pull(arriving), built like the result, gives what arrives at each primal: sum_o arriving[o] * d result[o]."""
    source = call_site()
    try:
        held, outcome = held_arguments(fn, primals)
        outcome = map_tree(settled, outcome)
    except AlgorithmError as error:
        raise placed(error, source, current().method) from None
    results = list(leaves(outcome))

    def pull(arriving: Any) -> tuple[Any, ...]:
        try:
            same_shape(outcome, arriving, "the cotangent")
            given = [cotangent(c, r) for c, r in zip(leaves(arriving), results, strict=True)]
            wrt = [t for h in held.values() for t in h.inside]
            floats = [(r, s) for r, s in zip(results, given, strict=True) if r.dtype in FLOATS]
            found = swept([r for r, _ in floats], [s for _, s in floats], wrt) if floats else [None] * len(wrt)
            each = iter(_or_zeros(found, wrt, relative(results[0], current())))
            return tuple(held[k].filled(each) for k in held)
        except AlgorithmError as error:
            raise placed(error, call_site(), current().method) from None

    return outcome, pull


def held_arguments(fn: Callable[..., Any], primals: Sequence[Any]) -> tuple[dict[Place, Argument], Any]:
    """The primals with aliases in place of their tensors, and what fn makes of them."""
    held = arguments_of({k: (p, argument_name(fn, k)) for k, p in enumerate(primals)})
    return held, called(fn, held, primals, {})


def cotangent(c: Any, result: Direct) -> Adjoint:
    from ..ops.shapes import tensor

    t = bound(tensor(c, "cotangent"))
    if tuple(t.shape) != tuple(result.shape) or (t.dtype != result.dtype and result.dtype in FLOATS):
        raise refuse("A174", f"the cotangent {t!r}", f"the result is {result!r}")
    return elements_of(t)


def _or_zeros(found: Sequence[Tensor | None], wrt: Sequence[Direct], label: str) -> Iterator[Tensor]:
    out = Emitter(current(), label)
    for t, like in zip(found, wrt, strict=True):
        yield out.materialised(_constant(zero(like.dtype)), like, like.dtype) if t is None else t


def _constant(value: Expr) -> Adjoint:
    return lambda index: value


__all__ = ["cotangent", "grad", "gradients", "held_arguments", "relative", "settled", "value_and_grad", "vjp"]
