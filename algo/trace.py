"""Tracing: running an algorithm's Python once, which makes its stages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from .building import call_site, current, opened, placed
from .complex import ComplexExpr, ComplexTensor
from .complex.elements import Element, element, not_for_complex
from .complex.elements import parts as values
from .compound import Compound
from .dtypes import NARROW, canonical, kind, part_of
from .errors import AlgorithmError
from .expr import Access, Axis, Const, Expr, Op, Reduce, as_expr, axis, cast, refuse, strong
from .extent import Extent
from .infer import infer
from .linear import linear, simplify
from .reducing import named_axes, unrounded
from .rewriting import axes_of, rewrite, substitute, unwound, walk, with_operands
from .scatter import has_identity
from .stages import Reduction, Stage
from .tensor import Direct, Tensor, body, conjuncts, known_nonnegative
from .wellformed import axis_parameters, extent_of, name_of, require_counts, require_elements, require_index, require_own_axes, require_size

if TYPE_CHECKING:
    from .recurring import Itself


# ---------------------------------------------------------------- stages
def stage(fn: Callable[..., Any], *, name: str | None = None, extents: Mapping[str, Extent] | None = None, dtype: Any = None) -> Tensor:
    """The tensor whose element at (i, j, ...) is ``fn(i, j, ...)``; the lambda's parameters name the axes. It is complex if the value is.

    `extents` fixes the extent of axes by name where reads do not (see fluorite.algo.infer); `dtype` casts the value.
    Raises AlgorithmError with the user's line.
    """
    current()
    try:
        names = axis_parameters(fn, "fl.stage")
    except AlgorithmError as error:
        raise placed(error, call_site(), name if isinstance(name, str) else "") from None
    made = build_stage(names, fn, name=name, extents=extents, dtype=dtype)
    for part in made.parts() if isinstance(made, Compound) else (made,):
        if name and isinstance(part, Direct):
            current().named.add(part.source)
    return made


def build_stage(
    names: Sequence[str],
    fn: Callable[..., Any],
    *,
    name: str | None = None,
    extents: Mapping[str, Extent] | None = None,
    dtype: Any = None,
    origin: str = "user",
    itself: Itself | None = None,
) -> Tensor:
    """`stage` for library code: the axis names are given, so the rank may vary. `itself` is what the body reads of its own stage."""
    builder, source = current(), call_site()
    try:
        if len(set(names)) != len(names):
            raise refuse("A111", f"axes {', '.join(names)}", "axis names must differ")
        if name is not None and name != "":
            name_of(name, "a stage")
        axes = tuple(axis(n) for n in names)
        with body():
            value = element(fn(*axes))
        if isinstance(value, ComplexExpr) or part_of(dtype):
            if itself is not None:
                raise not_for_complex("a recurrence")
            return _complex_stage(axes, value, name, extents, dtype, source, origin)  # type: ignore[return-value]
        require_own_axes(axes, value)
        label = name or (builder.scopes[-1] if builder.scopes else builder.method)
        found = infer(axes, value, _given_extents(axes, extents))
        if itself is not None:
            itself.shape = tuple(found[a] for a in axes)
        if dtype is not None:
            value = _accumulated(value, canonical(dtype))
        return _finish(
            axes, _hoisted(value, label, found, source, {}), label, found, dtype, source, origin, None if itself is None else itself.source
        )
    except AlgorithmError as error:
        raise placed(error, source, "/".join([builder.method, *builder.scopes, str(name or "")]).rstrip("/")) from None


def copied(t: Tensor, name: str, origin: str = "user") -> Direct:
    """A stage with the elements of a tensor, under its axis names."""
    from .ops.shapes import labels

    names = labels(t.axis_names)
    extents = dict(zip(names, t.shape, strict=True))
    made = build_stage(names, lambda *i: t[i] if i else t.as_scalar(), name=name, extents=extents, dtype=t.dtype, origin=origin)
    assert isinstance(made, Direct)
    return made


def _given_extents(axes: Sequence[Axis], extents: Mapping[str, Extent] | None) -> dict[str, Extent]:
    given, names = named_axes(extents, "extents"), [a.name for a in axes]
    unknown = [k for k in given if k not in names]
    if unknown:
        raise refuse("A112", f"extents for {', '.join(map(str, unknown))}", f"the axes are {', '.join(names)}")
    return {k: extent_of(n, k, "extents") for k, n in given.items()}


def _complex_stage(
    axes: tuple[Axis, ...], value: Element, name: str | None, extents: Mapping[str, Extent] | None, dtype: Any, source: str, origin: str
) -> ComplexTensor:
    """Two stages, NAME/real and NAME/imag, of one box; reductions that both read are made once."""
    parts = values(value)
    if dtype is not None:
        to = part_of(dtype)
        if to is None:
            raise not_for_complex(f"a stage of {canonical(dtype)}, which is real,")
        parts = cast(parts[0], to), cast(parts[1], to)
    for part in parts:
        require_own_axes(axes, part)
    found = infer(axes, Op("and", parts, "bool", False), _given_extents(axes, extents))
    shared: dict[Any, Expr] = {}
    made: list[Tensor] = []
    with opened(name) if name else nullcontext():
        for label, part in zip(("real", "imag"), parts, strict=True):
            inner = _hoisted(part, label, found, source, shared)
            mine = {a: axis(a.name) for a in axes}
            renamed = {**found, **{mine[a]: found[a] for a in axes}}
            if isinstance(inner, Reduce):
                inner = Reduce(inner.kind, inner.axes, inner.extents, substitute(inner.body, dict(mine)), inner.dtype)
            else:
                inner = substitute(inner, dict(mine))
            made.append(_finish(tuple(mine.values()), inner, label, renamed, None, source, origin))
    return ComplexTensor(*made)


def _hoisted(value: Expr, label: str, extents: Mapping[Axis, Extent], source: str, hoisted: dict[Any, Expr]) -> Expr:
    """The value with reads of stages in the place of reductions that are not its root; `hoisted` has those that were made before."""
    value = rewrite(value, lambda e: as_expr(extents[e.args[0]]) if isinstance(e, Op) and e.op == "extent" else None)  # type: ignore[index]

    def hoist(e: Expr) -> Expr | None:
        """A reduction that is not the root becomes a stage over the axes that it uses, and over the parts of its elements if they have
        several."""
        match e:
            case Op(op="part", args=(Access() as element, which)):
                return Access(element.tensor, (which, *element.index[1:]), element.dtype)
            case Reduce():
                pass
            case _:
                return None
        used = set(axes_of(e.body)) - set(e.axes)
        free = tuple(a for a in extents if a in used)
        key = _alpha(e, free)
        if key not in hoisted:
            fresh = {a: axis(a.name) for a in (*free, *e.axes)}
            body = substitute(e.body, dict(fresh))
            own = {fresh[a]: extents[a] for a in fresh}
            spatial = tuple(fresh[a] for a in free)
            if e.combiner is not None and len(e.combiner.identity) > 1:
                which = axis(_unused("part", [a.name for a in fresh.values()]))
                own[which], spatial = len(e.combiner.identity), (which, *spatial)
                body = e.combiner.value(e.combiner.parts(body), which)
            inner = Reduce(e.kind, tuple(fresh[a] for a in e.axes), e.extents, body, e.dtype, e.combiner)
            made = _finish(spatial, inner, f"{label}/{e.kind}", own, None, source, "derived")
            hoisted[key] = Access(made, free if len(spatial) == len(free) else (as_expr(0), *free), made.dtype)
        return hoisted[key]

    if isinstance(value, Reduce):
        return with_operands(value, (rewrite(value.body, hoist),))
    return rewrite(value, hoist)


def _unused(name: str, taken: Sequence[str]) -> str:
    return next(n for n in itertools.chain((name,), (f"{name}_{k}" for k in itertools.count(2))) if n not in taken)


def _accumulated(value: Expr, dtype: str) -> Expr:
    """A sum that is rounded to a narrow float at its end, or no longer is, because its stage is given another type; and what is made of
    the result of a user's reduction, which takes place in the type of its identity."""
    if kind(dtype) == "float":
        value = unrounded(value)
    rounds = isinstance(value, Reduce) and (value.kind == "reduce" or (value.kind in ("sum", "prod") and dtype in NARROW))
    return cast(value, dtype) if rounds else value


def _finish(
    axes: tuple[Axis, ...],
    value: Expr,
    label: str,
    extents: Mapping[Axis, Extent],
    dtype: Any,
    source: str,
    origin: str,
    number: int | None = None,
) -> Direct:
    """The finished stage in the trace; `number` is its id where something reads it already."""
    builder = current()
    reduction = None
    if isinstance(value, Reduce):
        reduction = Reduction(value.kind, value.axes, tuple(extents[a] for a in value.axes), value.combiner)
        result, value = value.dtype, value.body
        if dtype is not None and canonical(dtype) != result:
            if reduction.kind in ("any", "all", "argmax", "argmin"):
                result = canonical(dtype) if reduction.kind.startswith("arg") else result
            else:
                result, value = canonical(dtype), cast(value, dtype)
    names = [a.name for a in (*axes, *(reduction.axes if reduction else ()))]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice:
        raise refuse("A113", f"two axes called {twice!r} in one stage", "a plan could not tell them apart", "rename one")
    mine = {a: extents[a] for a in (*axes, *(reduction.axes if reduction else ()))}
    require_counts(mine)
    require_size(mine[a] for a in axes)
    value = resolve(value, mine)
    if reduction is None:
        value = strong(value, canonical(dtype) if dtype is not None else None)
        if isinstance(value, Const) and dtype is None and value.dtype == "int64":
            value = strong(value, "int64")
        result = value.dtype
    elif reduction.kind in ("any", "all"):
        value = value if value.dtype == "bool" else Op("ne", (value, Const(0, value.dtype, False)), "bool", False)
    elif value.weak:
        value = strong(value, result if not reduction.kind.startswith("arg") else None)
    made = Stage(
        number or builder.fresh(),
        builder.unique(label),
        builder.method,
        axes,
        tuple(mine[a] for a in axes),
        result,
        value,
        reduction,
        op=builder.scopes[-1] if builder.scopes else builder.method,
        role=builder.role,
        source=source,
        origin=origin,
        when=builder.when,
    )
    if reduction is not None and not has_identity(made):
        require_elements(reduction.kind, reduction.extents, made.extents)
    return builder.add(made)


Fact = tuple[Expr, ...]


def resolve(e: Expr, ranges: Mapping[Axis, Extent]) -> Expr:
    """Every access replaced by reads of stages and leaves, index arithmetic simplified."""
    resolved: dict[tuple[int, ...], dict[Expr, Expr]] = {}  # by the facts that hold
    simplified: dict[Expr, Expr] = {}

    def step(key: tuple[Expr, Fact]) -> Generator[tuple[Expr, Fact], Expr, Expr]:
        """An expression where facts about positions hold."""
        e, facts = key
        memo = resolved.setdefault(tuple(map(id, facts)), {})
        if (known := memo.get(e)) is not None:
            return known
        below: list[Expr] = []
        match e:
            case Op(op="where", args=(condition, a, b)):
                c = simplify((yield condition, facts), ranges, simplified)
                if isinstance(c, Const):
                    memo[e] = yield (a if c.value else b), facts
                    return memo[e]
                below = [c, (yield a, _with(facts, conjuncts(c))), (yield b, _with(facts, _negated(c)))]
                memo[e] = Op("where", tuple(below), e.dtype, e.weak)
                return memo[e]
        for part in e.operands:
            below.append((yield part, facts))
        if isinstance(e, Access):
            index = tuple(simplify(i, ranges, simplified) for i in below)
            for i in index:
                require_index(linear(i), e.tensor.label)
            new = e.tensor.resolve(index, ranges, facts)
        else:
            new = with_operands(e, tuple(below))
        memo[e] = simplify(new, ranges, simplified) if new is not e or isinstance(e, Op) else e
        return memo[e]

    nothing: Fact = ()
    return unwound(step, (e, nothing))


def _with(facts: Fact, more: Sequence[Expr]) -> Fact:
    """The facts and those of the others that say something about positions."""
    return facts + tuple(f for f in more if (k := known_nonnegative(f)) is not None and k.weak and not any(f is g for g in facts))


def _negated(condition: Expr) -> list[Expr]:
    """Facts that hold where a single comparison does not."""
    match condition:
        case Op(op="lt", args=(a, b)):
            return [b <= a]
        case Op(op="le", args=(a, b)):
            return [b < a]
        case Op(op="eq", args=(Axis() as a, Const(value=0))):
            return [as_expr(1) <= a]
    return []


def _alpha(e: Reduce, free: tuple[Axis, ...]) -> Any:
    """A key that is equal for reductions that differ only in the names of their bound axes."""
    number = {a: n for n, a in enumerate(e.axes)}
    keys: dict[Expr, int] = {}
    parts: dict[Any, int] = {}
    for n in walk(e.body):
        match n:
            case Axis():
                key: Any = ("bound", number[n]) if n in number else ("free", id(n))
            case Access():
                key = ("access", id(n.tensor), *(keys[i] for i in n.index))
            case Op():
                key = (n.op, n.dtype, *(keys[a] for a in n.args))
            case _:
                key = id(n)
        keys[n] = parts.setdefault(key, len(parts))
    return (e.kind, id(e.combiner), e.dtype, free, tuple(map(str, e.extents)), keys[e.body], tuple(parts))


__all__ = ["build_stage", "copied", "resolve", "stage"]
