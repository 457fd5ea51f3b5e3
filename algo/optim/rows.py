"""Lazy updates: of a table whose rows are looked up, only the rows that this call looked up are touched.

The gradient of such a table is a scatter: at position ``ids[k]`` arrives ``v[k]``. Instead of the table that it would fill, the positions
are sorted, what arrives at one row is added up in one place, and the optimiser's rule is applied to these rows, read from the table and
its state, and written back to where they were. All tensors have as many rows as there are positions, however large the table is.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..building import current, scope
from ..dtypes import held
from ..expr import Axis, Expr, as_expr, binary, cast, refuse, where
from ..extent import volume
from ..held import Parameter
from ..identities import identity
from ..passing import labels_of
from ..reducing import reduce_axes
from ..rewriting import axes_of, substitute
from ..scatter import Scatter
from ..stages import Stage
from ..tensor import Direct, Tensor
from ..trace import build_stage
from .update import Step, Update


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a parameter that a gradient touches. Of k positions, the first of each row in sorted order stands for the row: there
    `at` [k] has its number, elsewhere -1; and `gradient` [k, ...] what arrives there in all. `last` has, by row, its position in `at`."""

    at: Tensor
    gradient: Tensor
    last: Tensor


def rows_of(p: Parameter, gradient: Tensor) -> Rows:
    """The rows that a gradient touches. Raises AlgorithmError where it is not one scatter of rows by integers."""
    builder = current()
    path, s = builder.homes[id(p)], builder.stages.get(gradient.source) if isinstance(gradient, Direct) else None
    found = None if s is None or s.reduction is None or s.reduction.kind != "sum" else s.scatter
    if s is None or found is None or found.targets != s.axes[:1]:
        why = "its gradient is not one scatter of rows: it is used otherwise than by rows looked up once, at integer positions"
        raise refuse("A198", f"rows='lazy' for {path}", why, "params= for those that are looked up", "an optimiser of its own for others")
    with scope(f"rows/{path}"):
        return _rows(s, found, held(p.dtype))


def _rows(s: Stage, found: Scatter, dtype: str) -> Rows:
    reduction = s.reduction
    assert reduction is not None
    over = dict(zip(reduction.axes, reduction.extents, strict=True))
    position, flat, total = found.index[0], _names(found), volume(over.values())
    here = [c for c in found.predicates if not set(axes_of(c)) & set(found.free)]  # whether the position counts at all
    elsewhere = [c for c in found.predicates if set(axes_of(c)) & set(found.free)]
    target = {found.targets[0]: position}

    def unflattened(i: Expr) -> dict[Axis, Expr]:
        out: dict[Axis, Expr] = {}
        left = i
        for a, n in reversed(list(over.items())):
            out[a] = left if a is next(iter(over)) else binary("mod", left, as_expr(n))
            left = binary("floordiv", left, as_expr(n))
        return out

    def at(i: Expr) -> Expr:
        values = unflattened(i)
        place, n = cast(substitute(position, values), "int64"), s.extents[0]
        inside = (as_expr(0) <= place) & (place < as_expr(n))
        for c in here:
            inside = inside & substitute(substitute(c, target), values)
        return cast(where(inside, place, cast(-1, "int64")), "int32")

    def arriving(i: Expr, *free: Expr) -> Expr:
        values = {**unflattened(i), **dict(zip(found.free, free, strict=True))}
        value = cast(substitute(substitute(found.value, target), values), dtype)
        for c in elsewhere:
            value = where(substitute(substitute(c, target), values), value, cast(0.0, dtype))
        return value

    from ..ops.scans import cumulative_max
    from ..ops.sorting import argsort

    rest = dict(zip(flat[1:], (s.ranges[a] for a in found.free), strict=True))
    k, sizes = flat[0], {flat[0]: total, **rest}
    ids = build_stage([k], at, name="ids", extents={k: total}, origin="derived")
    values = build_stage(flat, arriving, name="values", extents=sizes, origin="derived")
    order = argsort(ids, 0, name="order")

    def begins(i: Expr) -> Expr:
        return (i < 1) | binary("ne", ids[order[i]], ids[order[binary("max", i - 1, as_expr(0))]])

    first = build_stage([k], lambda i: where(begins(i), cast(i, "int32"), 0), name="first", extents={k: total}, origin="derived")
    leader = cumulative_max(first, 0, name="leader")
    rows = build_stage([k], lambda i: where(begins(i), ids[order[i]], -1), name="at", extents={k: total}, origin="derived")

    def together(i: Expr, *free: Expr) -> Expr:
        def one(j: Expr) -> Expr:
            return where(binary("eq", leader[j], i), values[(order[j], *free)], cast(0.0, dtype))

        return reduce_axes("sum", ["each"], one, {"each": total})

    gathered = build_stage(flat, together, name="gradient", extents=sizes, origin="derived")
    r, none = s.axes[0].name, identity("max", "int32")

    def latest(a: Expr) -> Expr:
        return reduce_axes("max", [k], lambda i: where(binary("eq", rows[i], a), cast(i, "int32"), none), {k: total})

    return Rows(rows, gathered, build_stage([r], latest, name="last", extents={r: s.extents[0]}, origin="derived"))


def _names(found: Scatter) -> list[str]:
    rest = [a.name for a in found.free]
    return [next(n for n in ("k", "lookup", "lookup_of_row") if n not in rest), *rest]


class RowUpdate(Update):
    """The update of the touched rows of one parameter: what `Update` has of the parameter, this has of the rows."""

    def __init__(self, step: Step, parameter: Parameter, rows: Rows, decay: float) -> None:
        super().__init__(step, parameter, rows.gradient, decay)
        self.rows = rows
        self.shape = rows.gradient.shape
        self.axis_names = rows.gradient.axis_names
        self.w = self._read(self.w, "old")

    def label(self, name: str = "") -> str:
        return f"rows/{self.path}/{name or 'new'}"

    def old(self, name: str, init: float = 0.0) -> Tensor:
        return self._read(self.slot(name, init).now(), f"{name}/old")

    def whole(self, name: str, held: Parameter, made: Tensor) -> Tensor:
        before, last = held.now(), self.rows.last
        axes = labels_of(held)

        def value(*i: Expr) -> Expr:
            which = last[i[0]]
            return where(as_expr(0) <= which, made[(which, *i[1:])], before[i])

        sizes = dict(zip(axes, held.shape, strict=True))
        return build_stage(axes, value, name=super().label(name), extents=sizes, origin="derived")

    def _read(self, table: Tensor, name: str) -> Tensor:
        axes, at = labels_of(self.rows.gradient), self.rows.at
        sizes = dict(zip(axes, self.shape, strict=True))
        return build_stage(axes, lambda i, *j: table[(at[i], *j)], name=self.label(name), extents=sizes, origin="derived")


__all__ = ["RowUpdate", "Rows", "rows_of"]
