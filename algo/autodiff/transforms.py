"""``fl.grad`` and its kin: functions of functions. What they return is a function that makes stages when it is traced, so they nest, and
``fl.compile(fl.grad(f))`` is a model like any other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from itertools import zip_longest
from typing import Any

from ..building import Builder, call_site, current, placed
from ..complex import ComplexTensor, from_pair
from ..dtypes import FLOATS
from ..errors import AlgorithmError
from ..expr import Expr, refuse
from ..graph import map_tree
from ..held import ComplexHeld, Parameter, stored_of
from ..modules import Module, Program, members
from ..passing import bound
from ..tensor import Direct, Tensor
from ..trees import leaves, refilled, same_shape
from .algebra import add, one, zero
from .aliases import alias, path_of
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
        _require_float(t)
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


def swept(results: Sequence[Direct], seeds: Sequence[Adjoint], wrt: Sequence[Direct]) -> list[Tensor | None]:
    builder = current()
    label = relative(results[0], builder)
    given: dict[int, Adjoint] = {}
    for r, seed in zip(results, seeds, strict=True):
        given[r.source] = _both(given[r.source], seed) if r.source in given else seed
    sweep = Sweep(builder, given, [t.source for t in wrt], label)
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


def _require_float(t: Tensor) -> None:
    if t.dtype not in FLOATS:
        why = "only floats have derivatives"
        raise refuse("A172", f"the derivative by {t!r}", why, "argnums= with the float arguments", "fl.cast(x, fl.f32)")


# ---------------------------------------------------------------- of functions
def value_and_grad(fn: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns (fn's value, its derivatives by the arguments `argnums`).

    `argnums` is a position or a name, or a sequence of them, for which a tuple of derivatives is returned. A derivative is built like
    its argument: a tensor, or a list, tuple or dict of them; that of a Program or module is a dict of its trainable parameters by path.
    With `has_aux` fn returns (value, more), and so does the first result. Arguments count as independent of one another and of what
    fn reaches by itself. Where fn does not depend on an argument, the derivative is 0.
    """

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        source = call_site()
        try:
            places = _places(fn, argnums, args, kwargs)
            held = {k: _Held(args[k] if isinstance(k, int) else kwargs[k], _argument_name(fn, k)) for k in places}
            returned = _called(fn, held, args, kwargs)
            if has_aux and not (isinstance(returned, tuple) and len(returned) == 2):
                raise refuse("A170", f"has_aux=True of a function that returns {type(returned).__name__}", "it returns (value, more)")
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

    @wraps(fn)
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


def held_arguments(fn: Callable[..., Any], primals: Sequence[Any]) -> tuple[dict[int, _Held], Any]:
    """The primals with aliases in place of their tensors, and what fn makes of them."""
    held = {k: _Held(p, _argument_name(fn, k)) for k, p in enumerate(primals)}
    return held, _called(fn, held, primals, {})


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


# ---------------------------------------------------------------- arguments
class _Held:
    """One argument, with aliases in place of its tensors: `inside` are those, `outer` what the function is called with."""

    def __init__(self, value: Any, name: str) -> None:
        self.rebound: dict[int, Direct] = {}
        value = stored_of(value) if isinstance(value, ComplexHeld) and value.joined is value.stored else value
        self.pairs: list[bool] = []
        if isinstance(value, Module | Program | Parameter):
            found = {"": value} if isinstance(value, Parameter) else _trainable(value)
            if not found:
                raise refuse("A172", f"the derivative by {name}", "it has no trainable parameter")
            self.rebound = {id(p): alias(p) for p in found.values()}
            self.outer: Any = value
            self.tree: Any = 0 if isinstance(value, Parameter) else dict.fromkeys(found, 0)
            self.inside = list(self.rebound.values())
            self.pairs = [p.complex for p in found.values()]
        else:
            self.outer = map_tree(lambda t: _aliased(t, name), value)
            self.tree = self.outer
            self.inside = list(leaves(self.outer))

    def filled(self, parts: Iterator[Tensor]) -> Any:
        found: list[Any] = [next(parts) for _ in self.inside]
        return refilled(self.tree, [from_pair(t) if pair else t for t, pair in zip_longest(found, self.pairs)])


def _aliased(t: Any, name: str) -> Direct:
    from ..ops.shapes import tensor

    found = tensor(t, name)
    _require_float(found)
    return alias(found, name)


def _trainable(value: Module | Program) -> dict[str, Parameter]:
    return {path: p for path, p in members(value) if isinstance(p, Parameter) and p.trainable}


def _called(fn: Callable[..., Any], held: dict[Any, _Held], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    given = [held[k].outer if k in held else a for k, a in enumerate(args)]
    named = {k: held[k].outer if k in held else a for k, a in kwargs.items()}
    with _rebound({k: v for h in held.values() for k, v in h.rebound.items()}):
        return fn(*given, **named)


@contextmanager
def _rebound(to: dict[int, Direct]) -> Iterator[None]:
    """Inside, parameters are other tensors, whatever the method has made of them."""
    builder = current()
    bound_before = {k: builder.bound[k] for k in to}
    made_before = {k: builder.assigned.pop(k) for k in to if k in builder.assigned}
    builder.bound.update(to)
    try:
        yield
    finally:
        builder.bound.update(bound_before)
        builder.assigned = made_before | builder.assigned


def _places(fn: Callable[..., Any], argnums: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int | str]:
    """The arguments by which is differentiated, as positions or, where given by name, names."""
    names = list(inspect.signature(fn).parameters)
    out: list[int | str] = []
    for n in argnums if isinstance(argnums, list | tuple) else [argnums]:
        if isinstance(n, str) and n in names:
            n = n if n in kwargs else names.index(n)
        elif isinstance(n, int) and not isinstance(n, bool) and -len(names) <= n < len(names):
            n = n % len(names) if n < 0 else n
            if n >= len(args) and names[n] in kwargs:
                n = names[n]
        else:
            raise refuse("A173", f"argnums={n!r}", f"{fn.__name__} has {', '.join(names) or 'no arguments'}", "a position or a name of one")
        if isinstance(n, int) and n >= len(args):
            raise refuse("A173", f"argnums={argnums!r}", f"{fn.__name__} was called without {names[n]}")
        out.append(n)
    return out


def _argument_name(fn: Callable[..., Any], place: int | str) -> str:
    if isinstance(place, str):
        return place
    names = list(inspect.signature(fn).parameters)
    return names[place] if place < len(names) else f"argument{place}"


__all__ = ["cotangent", "grad", "gradients", "held_arguments", "relative", "settled", "value_and_grad", "vjp"]
