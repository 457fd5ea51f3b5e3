"""Tracing: running an algorithm's Python once, which makes its stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .building import call_site, current, placed
from .dtypes import NARROW, canonical, kind
from .errors import AlgorithmError
from .expr import Access, Axis, Const, Expr, Op, Reduce, as_expr, axis, cast, refuse, strong
from .extent import Extent
from .graph import Reduction, Stage
from .infer import infer
from .linear import linear, simplify
from .reducing import named_axes, unrounded
from .rewriting import axes_of, children, rewrite, substitute, with_children
from .scatter import has_identity
from .tensor import Direct, Tensor, body, conjuncts
from .wellformed import axis_parameters, extent_of, name_of, require_elements, require_index, require_own_axes, require_size

if TYPE_CHECKING:
    from .recurring import Itself


# ---------------------------------------------------------------- stages
def stage(fn: Callable[..., Any], *, name: str | None = None, extents: Mapping[str, Extent] | None = None, dtype: Any = None) -> Tensor:
    """The tensor whose element at (i, j, ...) is ``fn(i, j, ...)``; the lambda's parameters name the axes.

    `extents` fixes the extent of axes by name where reads do not (see fluorite.algo.infer); `dtype` casts the value.
    Raises AlgorithmError with the user's line.
    """
    current()
    try:
        names = axis_parameters(fn, "fl.stage")
    except AlgorithmError as error:
        raise placed(error, call_site(), name if isinstance(name, str) else "") from None
    return build_stage(names, fn, name=name, extents=extents, dtype=dtype)


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
            value = as_expr(fn(*axes))
        require_own_axes(axes, value)
        label = name or (builder.scopes[-1] if builder.scopes else builder.method)
        given = named_axes(extents, "extents")
        unknown = [k for k in given if k not in names]
        if unknown:
            raise refuse("A112", f"extents for {', '.join(map(str, unknown))}", f"the axes are {', '.join(names)}")
        given = {k: extent_of(n, k, "extents") for k, n in given.items()}
        found = infer(axes, value, given)
        if itself is not None:
            itself.shape = tuple(found[a] for a in axes)
        return _emit(axes, value, label, found, dtype, source, origin, None if itself is None else itself.source)
    except AlgorithmError as error:
        raise placed(error, source, "/".join([builder.method, *builder.scopes, str(name or "")]).rstrip("/")) from None


def _emit(
    axes: tuple[Axis, ...],
    value: Expr,
    label: str,
    extents: Mapping[Axis, Extent],
    dtype: Any,
    source: str,
    origin: str,
    number: int | None = None,
) -> Direct:
    value = rewrite(value, lambda e: as_expr(extents[e.args[0]]) if isinstance(e, Op) and e.op == "extent" else None)  # type: ignore[index]
    if dtype is not None:
        value = _accumulated(value, canonical(dtype))
    hoisted: dict[Any, Expr] = {}
    root = value if isinstance(value, Reduce) else None

    def hoist(e: Expr) -> Expr | None:
        """A reduction that is not the root becomes a stage over the axes that it uses."""
        if not isinstance(e, Reduce):
            return None
        used = set(axes_of(e.body)) - set(e.axes)
        free = tuple(a for a in extents if a in used)
        key = _alpha(e, free)
        if key not in hoisted:
            fresh = {a: axis(a.name) for a in (*free, *e.axes)}
            inner = Reduce(e.kind, tuple(fresh[a] for a in e.axes), e.extents, substitute(e.body, dict(fresh)), e.dtype)
            made = _finish(
                tuple(fresh[a] for a in free), inner, f"{label}/{e.kind}", {fresh[a]: extents[a] for a in fresh}, None, source, "derived"
            )
            hoisted[key] = Access(made, free, made.dtype)
        return hoisted[key]

    value = rewrite(value, hoist) if root is None else Reduce(root.kind, root.axes, root.extents, rewrite(root.body, hoist), root.dtype)
    return _finish(axes, value, label, extents, dtype, source, origin, number)


def _accumulated(value: Expr, dtype: str) -> Expr:
    """A sum that is rounded to a narrow float at its end, or no longer is, because its stage is given another type."""
    if kind(dtype) == "float":
        value = unrounded(value)
    return cast(value, dtype) if isinstance(value, Reduce) and value.kind in ("sum", "prod") and dtype in NARROW else value


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
        reduction = Reduction(value.kind, value.axes, tuple(extents[a] for a in value.axes))
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
        source=source,
        origin=origin,
    )
    if reduction is not None and not has_identity(made):
        require_elements(reduction.kind, reduction.extents, made.extents)
    return builder.add(made)


def resolve(e: Expr, ranges: Mapping[Axis, Extent], facts: Sequence[Expr] = (), memo: dict[Expr, Expr] | None = None) -> Expr:
    """Every access replaced by reads of stages and leaves, index arithmetic simplified. `memo` holds what these facts resolved."""
    memo = {} if memo is None else memo
    if (known := memo.get(e)) is None:
        known = memo[e] = _resolved(e, ranges, facts, memo)
    return known


def _resolved(e: Expr, ranges: Mapping[Axis, Extent], facts: Sequence[Expr], memo: dict[Expr, Expr]) -> Expr:
    match e:
        case Access():
            index = tuple(simplify(resolve(i, ranges, facts, memo), ranges) for i in e.index)
            for i in index:
                require_index(linear(i), e.tensor.label)
            return simplify(e.tensor.resolve(index, ranges, facts), ranges)
        case Op(op="where", args=(condition, a, b)):
            c = simplify(resolve(condition, ranges, facts, memo), ranges)
            if isinstance(c, Const):
                return resolve(a if c.value else b, ranges, facts, memo)
            return Op(
                "where", (c, resolve(a, ranges, [*facts, *conjuncts(c)]), resolve(b, ranges, [*facts, *_negated(c)])), e.dtype, e.weak
            )
    new = with_children(e, tuple(resolve(c, ranges, facts, memo) for c in children(e)))
    return simplify(new, ranges) if new is not e or isinstance(e, Op) else e


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

    def visit(n: Expr) -> int:
        if n not in keys:
            match n:
                case Axis():
                    key: Any = ("bound", number[n]) if n in number else ("free", id(n))
                case Access():
                    key = ("access", id(n.tensor), *map(visit, n.index))
                case Op():
                    key = (n.op, n.dtype, *map(visit, n.args))
                case _:
                    key = id(n)
            keys[n] = parts.setdefault(key, len(parts))
        return keys[n]

    root = visit(e.body)
    return (e.kind, e.dtype, free, tuple(map(str, e.extents)), root, tuple(parts))


__all__ = ["build_stage", "resolve", "stage"]
