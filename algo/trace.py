"""Tracing: running an algorithm's Python once, which makes its stages."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from .dtypes import canonical
from .errors import AlgorithmError, Problem
from .expr import (
    Access,
    Axis,
    Const,
    Expr,
    Op,
    Reduce,
    as_expr,
    axes_of,
    axis,
    cast,
    children,
    refuse,
    rewrite,
    strong,
    substitute,
    with_children,
)
from .extent import Dim, Extent
from .graph import Leaf, Reduction, Stage
from .infer import infer
from .linear import linear, simplify
from .tensor import Direct, Tensor, body, conjuncts, in_body
from .wellformed import LARGEST, axis_parameters, extent_of, name_of, require_elements, require_index, require_own_axes, require_size

_HERE = os.path.dirname(os.path.abspath(__file__))
RESERVED = ("grad", "update", "comm", "cast", "recompute", "scan")


@dataclass
class Builder:
    """The stages and leaves made so far; the only mutable thing of a trace."""

    method: str
    next_id: int = 0
    leaves: dict[int, Leaf] = field(default_factory=dict)
    stages: dict[int, Stage] = field(default_factory=dict)
    scopes: list[str] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    bound: dict[int, Tensor] = field(default_factory=dict)  # id(parameter or array) -> its tensor in this graph
    modules: list[Any] = field(default_factory=list)  # the modules being called, outermost first
    kept: list[Any] = field(default_factory=list)  # keeps those ids alive

    def fresh(self) -> int:
        self.next_id += 1
        return self.next_id

    def unique(self, name: str) -> str:
        base = "/".join([self.method, *self.scopes, name])
        path, n = base, 1
        while path in self.paths:
            n += 1
            path = f"{base}_{n}"
        self.paths.add(path)
        return path

    def leaf(
        self, kind: str, path: str, shape: Sequence[Extent], dtype: str, names: Sequence[str | None], value: Any = None, source: str = ""
    ) -> Direct:
        made = Leaf(self.fresh(), path, kind, tuple(shape), dtype, tuple(names), value, source)
        self.leaves[made.id] = made
        return Direct(made.id, made.shape, dtype, made.axis_names, made.name, self)

    def add(self, stage: Stage) -> Direct:
        self.stages[stage.id] = stage
        return Direct(stage.id, stage.extents, stage.dtype, stage.axis_names, stage.name, self)


R = TypeVar("R")
_builder: ContextVar[Builder | None] = ContextVar("fluorite_builder", default=None)


def current() -> Builder:
    found = _builder.get()
    if found is None:
        raise refuse(
            "A109",
            "a stage outside a trace",
            "stages are made while fluorite runs an algorithm",
            "fl.trace(f), fl.compile(f)",
            "put it into a function or a method",
        )
    return found


@contextmanager
def building(builder: Builder) -> Iterator[Builder]:
    token = _builder.set(builder)
    try:
        yield builder
    finally:
        _builder.reset(token)


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Stages made inside have `name` in their path. A second use inside one parent becomes name_2. A name may be a path of several."""
    builder = current()
    if name_of(name, "a scope") in RESERVED:
        raise refuse("A110", f"a scope called {name!r}", "fluorite uses that name in paths", f"{name}_")
    depth = len(builder.scopes)
    builder.scopes += [*name.split("/")[:-1], builder.unique(name).rsplit("/", 1)[-1]]
    try:
        yield
    finally:
        del builder.scopes[depth:]


def operator(fn: Callable[..., R]) -> Callable[..., R]:
    """A library operator: opens a scope of its name. The stage of its result has the operator's own path."""
    import functools

    op = fn.__name__.rstrip("_")

    @functools.wraps(fn)
    def call(*args: Any, name: str | None = None, **kwargs: Any) -> R:
        builder = current()
        label = name or op
        before = set(builder.stages)
        with scope(label):
            prefix = "/".join([builder.method, *builder.scopes])
            try:
                result = fn(*args, **kwargs)
            except AlgorithmError as error:
                raise placed(error, call_site(), prefix) from None
            inner = f"{prefix}/{builder.scopes[-1]}"
        made = [i for i in builder.stages if i not in before]
        for i in made:
            if builder.stages[i].op == label != op:
                builder.stages[i] = replace(builder.stages[i], op=op)
        last = _stage_of(result)
        if last in made and (old := builder.stages[last]).path.startswith(prefix + "/") and (len(made) == 1 or old.path == inner):
            builder.paths.discard(old.path)
            builder.stages[old.id] = replace(old, path=prefix, op=op)
            _relabel(result, old.id, builder.stages[old.id].name)
        elif not made:
            builder.paths.discard(prefix)
        return result

    return call


def _stage_of(result: Any) -> int | None:
    """The stage that a result is, or is a view of."""
    while (base := getattr(result, "base", None)) is not None:
        result = base
    return result.source if isinstance(result, Direct) else None


def _relabel(result: Any, id: int, name: str) -> None:
    if isinstance(result, Direct) and result.source == id:
        result.label = name


def function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """An algorithm with a scope of its own: the stages of each call are named function/stage."""
    import functools

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _builder.get() is None:
            raise refuse(
                "A109",
                f"{fn.__name__}(...) outside a trace",
                "an algorithm makes stages only while fluorite runs it",
                f"fl.compile({fn.__name__}), then call the result",
            )
        with scope(fn.__name__):
            return fn(*args, **kwargs)

    call.__fluorite_function__ = fn  # type: ignore[attr-defined]
    return call


def call_site() -> str:
    """file:line of the innermost frame outside the language's own files."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(os.path.abspath(frame.f_code.co_filename)).startswith(_HERE):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def raised_at(error: BaseException) -> str:
    """file:line of the innermost frame outside the language's own files that an exception came through."""
    found, step = "", error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if not os.path.dirname(os.path.abspath(code.co_filename)).startswith(_HERE) and code.co_filename != contextlib.__file__:
            found = f"{os.path.basename(code.co_filename)}:{step.tb_lineno}"
        step = step.tb_next
    return found


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
) -> Tensor:
    """`stage` for library code: the axis names are given, so the rank may vary."""
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
        given = _named(extents, "extents")
        unknown = [k for k in given if k not in names]
        if unknown:
            raise refuse("A112", f"extents for {', '.join(map(str, unknown))}", f"the axes are {', '.join(names)}")
        given = {k: extent_of(n, k, "extents") for k, n in given.items()}
        return _emit(axes, value, label, infer(axes, value, given), dtype, source, origin)
    except AlgorithmError as error:
        raise placed(error, source, "/".join([builder.method, *builder.scopes, str(name or "")]).rstrip("/")) from None


def _named(given: Any, argument: str) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise refuse("A116", f"{argument}={given!r}", "it gives axes by their names", f"{argument}={{'i': 3}}")
    return dict(given or {})


def placed(error: AlgorithmError, source: str, path: str) -> AlgorithmError:
    """The error with the user's line and the path of what was being made."""
    return AlgorithmError([p if p.source else replace(p, source=source, path=p.path or path) for p in error.problems])


def _emit(axes: tuple[Axis, ...], value: Expr, label: str, extents: Mapping[Axis, Extent], dtype: Any, source: str, origin: str) -> Direct:
    value = rewrite(value, lambda e: as_expr(extents[e.args[0]]) if isinstance(e, Op) and e.op == "extent" else None)  # type: ignore[index]
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
    return _finish(axes, value, label, extents, dtype, source, origin)


def _finish(
    axes: tuple[Axis, ...], value: Expr, label: str, extents: Mapping[Axis, Extent], dtype: Any, source: str, origin: str
) -> Direct:
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
    if reduction is not None:
        require_elements(reduction.kind, reduction.extents, [mine[a] for a in axes])
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
        builder.fresh(),
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


def rename(t: Tensor, name: str) -> Tensor:
    builder = current()
    name_of(name, "a stage")
    if not isinstance(t, Direct) or t.owner is not builder or t.source not in builder.stages:
        raise refuse("A114", f"{t.label}.named({name!r})", "only a stage's result can be renamed, not a view, an input or a parameter")
    old = builder.stages[t.source]
    builder.paths.discard(old.path)
    parent = old.path.rsplit("/", 1)[0]
    saved, builder.scopes = builder.scopes, parent.split("/")[1:]
    try:
        path = builder.unique(name)
    finally:
        builder.scopes = saved
    builder.stages[old.id] = replace(old, path=path)
    return Direct(old.id, t.shape, t.dtype, t.axis_names, name, builder)


def constant(value: Any) -> Tensor:
    """A NumPy array as a constant of the algorithm."""
    builder = current()
    array = np.asarray(value)
    if id(value) not in builder.bound:
        dtype = canonical(array.dtype)
        builder.kept.append(value)
        n = sum(x.kind == "constant" for x in builder.leaves.values())
        builder.bound[id(value)] = builder.leaf(
            "constant", f"constant/{n}", array.shape, dtype, (None,) * array.ndim, np.array(array, dtype, order="C")
        )
    return builder.bound[id(value)]


# ---------------------------------------------------------------- reductions inside expressions
ACCUMULATOR = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
"""sum and prod of narrow integers are taken in the default width, as the array API says."""


def reduce(kind: str, fn: Callable[..., Any], over: Mapping[str, int | tuple[int, int] | Extent] | None = None) -> Expr:
    """kind over the lambda's axes. `over` gives extents, or (low, high) ranges, of axes that no read bounds."""
    if not in_body():
        raise refuse(
            "A115",
            f"fl.{kind}(lambda ...)",
            "a reduction over index lambdas stands inside a stage",
            f"fl.stage(lambda i: fl.{kind}(lambda k: x[i, k]))",
            f"fl.{kind}(x, axis=...)",
        )
    names = axis_parameters(fn, f"fl.{kind}")
    return reduce_axes(kind, names, fn, over)


def _range(given: Any, name: str) -> tuple[Extent, Extent | None]:
    """The first position and the extent that `over` says."""
    if given is None:
        return 0, None
    if not isinstance(given, tuple):
        return 0, extent_of(given, name, "over")
    ends = [int(n) if isinstance(n, np.integer) else n for n in given]
    if len(ends) != 2 or not all(
        isinstance(n, Dim) or (isinstance(n, int) and not isinstance(n, bool) and abs(n) <= LARGEST) for n in ends
    ):
        raise refuse(
            "A116",
            f"over={{{name!r}: a tuple of {len(ends)}}}",
            "a range is (low, high), two integers or symbolic extents",
            f"over={{{name!r}: (-1, 2)}}",
        )
    return ends[0], extent_of(ends[1] - ends[0], name, "over")


def reduce_axes(kind: str, names: Sequence[str], fn: Callable[..., Any], over: Mapping[str, Any] | None = None) -> Expr:
    if not names:
        raise refuse(
            "A119", f"fl.{kind} over nothing", "its lambda has no parameter, so there is no axis to reduce", f"fl.{kind}(lambda k: x[k])"
        )
    given_ranges = _named(over, "over")
    unknown = [k for k in given_ranges if k not in names]
    if unknown:
        raise refuse("A112", f"over {', '.join(map(str, unknown))}", f"the reduction's axes are {', '.join(names)}")
    axes, extents, values = [], [], []
    for n in names:
        a, given = axis(n), given_ranges.get(n)
        low, extent = _range(given, n)
        axes.append(a)
        extents.append(extent)
        values.append(a + low)
    inner = as_expr(fn(*values))
    if kind in ("any", "all"):
        dtype = "bool"
    elif kind.startswith("arg"):
        dtype = "int32"
    elif kind in ("sum", "prod") and inner.dtype in ACCUMULATOR:
        dtype = ACCUMULATOR[inner.dtype]
        inner = cast(inner, dtype)
    else:
        dtype = inner.dtype
    return Reduce(kind, tuple(axes), tuple(extents), inner, dtype)


__all__ = [
    "AlgorithmError",
    "Builder",
    "Problem",
    "build_stage",
    "building",
    "constant",
    "current",
    "function",
    "operator",
    "reduce",
    "reduce_axes",
    "rename",
    "rewrite",
    "scope",
    "stage",
]
