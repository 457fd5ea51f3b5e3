"""Linear algebra beside the matrix product: contractions of chosen axes, diagonals, norms."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from .. import expr as E
from ..building import operator
from ..complex import ComplexTensor
from ..complex.lifting import by_parts, holds_complex, multilinear
from ..dtypes import canonical, part_of
from ..expr import Expr, as_expr, refuse
from ..extent import Extent, maximum, minimum, nonnegative
from ..reducing import reduce_axes
from ..tensor import Index, Tensor
from ..trace import build_stage
from .arithmetic import abs
from .casts import cast
from .complex_numbers import conj
from .derived import real
from .products import contracted, matmul, product
from .reductions import Axes, mapped, reduced
from .shapes import AxisLike, axis_number, broadcast, element, labels, operand, shown, tensor, view
from .views import broadcast_arrays, expanded, made


# ---------------------------------------------------------------- contractions
def vecdot(a: Any, b: Any, axis: AxisLike = -1, *, name: str | None = None) -> Tensor:
    """The sum of products along one axis of two tensors that broadcast, complex numbers of the first conjugated; narrow integers are
    summed in 32 bits."""
    made: Tensor = vecdot_(a, b, axis, name=name)
    return made


@operator
def vecdot_(a: Any, b: Any, axis: AxisLike) -> Any:
    """The sum of products; of complex numbers one sum for each part, each of which goes over the operands once."""
    left, right = (operand(t, "vecdot").parts() if holds_complex(t) else (tensor(t, "vecdot"),) for t in (a, b))
    apart = broadcast_arrays(*left, *right)
    d = axis_number(axis, apart[0].axis_names, "vecdot")
    if len(apart) == 2:
        x, y = apart
        return reduced("sum", x, d, lambda i: product(as_expr(x[i]), as_expr(y[i])))[0]
    p, q = (t[0] if len(t) == 1 else ComplexTensor(*t) for t in (apart[: len(left)], apart[len(left) :]))
    total, _ = reduced("sum", apart[0], d, lambda i: (conj(p[i]) * q[i]).real, name="real")
    return ComplexTensor(total, reduced("sum", apart[0], d, lambda i: (conj(p[i]) * q[i]).imag, name="imag")[0])


@multilinear("a", "b")
@operator
def tensordot(a: Any, b: Any, axes: int | tuple[Sequence[AxisLike], Sequence[AxisLike]] = 2) -> Tensor:
    """The sum of products over pairs of axes: the last `axes` of a with the first of b, or two lists of equal length.

    The other axes of a come first, then those of b. The axes of the reduction are k (k1, k2, ...).
    """
    x, y = tensor(a, "tensordot"), tensor(b, "tensordot")
    if isinstance(axes, int):
        if not 0 <= axes <= builtins.min(x.ndim, y.ndim):
            raise refuse("A302", f"tensordot over {axes} axes", f"the operands have {x.ndim} and {y.ndim}")
        left, right = [*range(x.ndim - axes, x.ndim)], [*range(axes)]
    else:
        first, second = (p if isinstance(p, list | tuple) else (p,) for p in axes)
        left = [axis_number(d, x.axis_names, "tensordot") for d in first]
        right = [axis_number(d, y.axis_names, "tensordot") for d in second]
    if len(left) != len(right) or len(set(left)) != len(left) or len(set(right)) != len(right):
        raise refuse("A302", f"tensordot over {axes!r}", "each axis of the one has one of the other")
    wrong = next(((p, q) for p, q in zip(left, right, strict=True) if x.shape[p] != y.shape[q]), None)
    if wrong is not None:
        raise refuse(
            "A301",
            f"tensordot of {shown(x.shape)} and {shown(y.shape)}",
            f"dimension {wrong[0]} of the first has extent {x.shape[wrong[0]]}, dimension {wrong[1]} of the second {y.shape[wrong[1]]}",
        )
    own = [d for d in range(x.ndim) if d not in left], [d for d in range(y.ndim) if d not in right]
    inner = ["k", *(f"k{n}" for n in range(1, len(left)))][: len(left)]
    names = labels([x.axis_names[d] for d in own[0]] + [y.axis_names[d] for d in own[1]], taken=inner)
    outer = [x.shape[d] for d in own[0]] + [y.shape[d] for d in own[1]]

    def value(*index: Expr) -> Any:
        def term(*ks: Expr) -> Expr:
            at = dict(zip(own[0], index, strict=False)) | dict(zip(left, ks, strict=True))
            there = dict(zip(own[1], index[len(own[0]) :], strict=True)) | dict(zip(right, ks, strict=True))
            return product(x[tuple(at[d] for d in range(x.ndim))], y[tuple(there[d] for d in range(y.ndim))])

        extents = {n: x.shape[d] for n, d in zip(inner, left, strict=True)}
        return reduce_axes("sum", inner, term, extents) if inner else term()

    return build_stage(names, value, extents=dict(zip(names, outer, strict=True)))


@multilinear("a", "b")
@operator
def kron(a: Any, b: Any) -> Tensor:
    """Every element of a times the whole of b, as blocks; the one with fewer axes gets axes of extent 1 in front."""
    x, y = tensor(a, "kron"), tensor(b, "kron")
    rank = builtins.max(x.ndim, y.ndim)
    x, y = expanded(x, range(rank - x.ndim)), expanded(y, range(rank - y.ndim))
    shape = [n * m for n, m in zip(x.shape, y.shape, strict=True)]
    names = labels([p or q for p, q in zip(x.axis_names, y.axis_names, strict=True)])

    def value(*i: Expr) -> Any:
        blocks = tuple(e if m == 1 else e // as_expr(m) for e, m in zip(i, y.shape, strict=True))
        inside = tuple(as_expr(0) if m == 1 else e % as_expr(m) for e, m in zip(i, y.shape, strict=True))
        return _read(x, blocks) * _read(y, inside)

    return build_stage(names, value, extents=dict(zip(names, shape, strict=True)))


def _read(t: Tensor, index: Index) -> Any:
    return t[index] if t.ndim else t.as_scalar()


@multilinear("a", "b")
@operator
def cross(a: Any, b: Any, axis: AxisLike = -1) -> Tensor:
    """The vector product along an axis of extent 3."""
    x, y = tensor(a, "cross"), tensor(b, "cross")
    shape, names = broadcast("cross", [x, y])
    d = axis_number(axis, names, "cross")
    if shape[d] != 3 or 1 in (x.shape[d - len(shape)], y.shape[d - len(shape)]):
        raise refuse("A301", f"cross of {shown(x.shape)} and {shown(y.shape)}", f"dimension {d} must be 3 in both")
    axes = labels(names)

    def value(*i: Expr) -> Any:
        def at(t: Tensor, turn: int) -> Any:
            return element(t, [(e + turn) % 3 if k == d else e for k, e in enumerate(i)], shape)

        return at(x, 1) * at(y, 2) - at(x, 2) * at(y, 1)

    return build_stage(axes, value, extents=dict(zip(axes, shape, strict=True)))


@operator
def matrix_power(x: Any, n: int) -> Tensor:
    """A square matrix (or a batch) multiplied with itself n times, by repeated squaring; n = 0 gives the identity, n below 0 the power of
    the inverse, `fl.linalg.inv`."""
    t = operand(x, "matrix_power")
    if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise refuse("A307", f"matrix_power of {shown(t.shape)}", "a square matrix, or a batch of them, is needed")
    if isinstance(n, bool) or not isinstance(n, int):
        raise refuse("A304", f"matrix_power to {n!r}", "the power is an integer")
    if n < 0:
        from ..linalg import inv

        return _power(inv(t), -n, None)
    if n == 0:
        names = labels(t.axis_names)
        extents = dict(zip(names, t.shape, strict=True))
        return build_stage(names, lambda *i: E.where(E.binary("eq", i[-2], i[-1]), 1, 0), extents=extents, dtype=t.dtype)
    return _power(t, n, None)


def _power(t: Tensor, n: int, name: str | None) -> Tensor:
    if n == 1:
        return t
    before = _power(t, n - 1 if n % 2 else n // 2, "power")
    other = t if n % 2 else before
    return matmul(before, other, name=name or "product") if holds_complex(t) else contracted(before, other, name)


# ---------------------------------------------------------------- diagonals
@view
def diagonal(x: Any, offset: int = 0, axis1: AxisLike = -2, axis2: AxisLike = -1) -> Tensor:
    """The elements at equal positions along two axes (the last two), `offset` to the right of the main diagonal, as a last axis: a view."""
    t = tensor(x, "diagonal")
    if t.ndim < 2:
        raise refuse("A307", f"diagonal of {shown(t.shape)}", "a matrix, or a batch of them, is needed")
    a, b = axis_number(axis1, t.axis_names, "diagonal"), axis_number(axis2, t.axis_names, "diagonal")
    if a == b:
        raise refuse("A302", f"diagonal of axes {axis1!r} and {axis2!r}", "an axis is given twice")
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise refuse("A304", f"diagonal {offset!r}", "an offset is an integer")
    kept = [d for d in range(t.ndim) if d not in (a, b)]
    down, right = builtins.max(-offset, 0), builtins.max(offset, 0)

    def index_map(i: Index) -> Index:
        at: dict[int, Expr] = {d: i[k] for k, d in enumerate(kept)} | {a: i[-1] + down, b: i[-1] + right}
        return tuple(at[d] for d in range(t.ndim))

    length = _no_less_than_0(minimum(t.shape[a] - down, t.shape[b] - right))
    return made(t, [*(t.shape[d] for d in kept), length], [*(t.axis_names[d] for d in kept), None], index_map)


def _no_less_than_0(n: Extent) -> Extent:
    return n if nonnegative(n) else maximum(n, 0)


def matrix_trace(x: Any, offset: int = 0, *, dtype: Any = None, name: str | None = None) -> Tensor:
    """The trace: the sum of a diagonal of the last two axes; narrow integers are summed in 32 bits, with `dtype` all in that type."""
    part = part_of(dtype)
    found: Tensor = matrix_trace_(x if part is None or holds_complex(x) else cast(x, dtype), offset, part or dtype, name=name)
    return found


@by_parts()
@operator
def matrix_trace_(x: Any, offset: int, dtype: Any) -> Tensor:
    """The sum of a diagonal."""
    t, to = diagonal(x, offset), None if dtype is None else canonical(dtype)
    result, _ = reduced("sum", t, -1, lambda i: t[i] if to is None else E.cast(t[i], to), dtype=to)
    return result


@by_parts()
@operator
def diag(x: Any, k: int = 0) -> Tensor:
    """A vector as the k-th diagonal of a matrix that is 0 elsewhere; of a matrix, its k-th diagonal (a view)."""
    t = tensor(x, "diag")
    if t.ndim == 2:
        taken: Tensor = diagonal(t, k)
        return taken
    if t.ndim != 1 or isinstance(k, bool) or not isinstance(k, int):
        raise refuse("A307", f"diag({shown(t.shape)}, {k!r})", "a vector or a matrix, and a whole number, are needed")
    n = t.shape[0] + builtins.abs(k)
    down, right = builtins.max(-k, 0), builtins.max(k, 0)

    def value(i: Expr, j: Expr) -> Any:
        return E.where(E.binary("eq", i - down, j - right) & (i >= down) & (j >= right), t[(i - down,)], E.cast(0, t.dtype))

    return build_stage(["i", "j"], value, extents={"i": n, "j": n})


# ---------------------------------------------------------------- norms
@operator
def vector_norm(x: Any, axis: Axes = None, keepdims: bool = False, *, ord: float = 2) -> Tensor:
    """The norm of order `ord` over axes: 2 Euclidean, 1 the sum of magnitudes, inf (-inf) the largest (smallest), 0 how many are nonzero.

    Other orders p are ``sum(|x|**p) ** (1/p)``. Integers give float32.
    """
    t = tensor(_sizes(x), "vector_norm")
    if isinstance(ord, bool) or not isinstance(ord, int | float) or math.isnan(ord):
        raise refuse("A304", f"vector_norm: ord={ord!r}", "an order is a number, or infinite")
    result, over = _norm(t, axis, float(ord))
    return expanded(result, over) if keepdims else result


def _sizes(x: Any) -> Any:
    return abs(x) if holds_complex(x) else x


def _norm(t: Tensor, axis: Axes, ord: float) -> tuple[Tensor, tuple[int, ...]]:
    def size(i: Index) -> Expr:
        return E.unary("abs", real(t[i]))

    if math.isinf(ord):
        return reduced("max" if ord > 0 else "min", t, axis, size)
    if ord == 0:
        return reduced("sum", t, axis, lambda i: E.cast(E.binary("ne", real(t[i]), 0), real(t[i]).dtype))
    if ord == 1:
        return reduced("sum", t, axis, size)
    if ord == 2:
        total, over = reduced("sum", t, axis, lambda i: E.binary("mul", real(t[i]), real(t[i])), name="sum")
        return mapped(total, lambda e: E.unary("sqrt", e)), over
    total, over = reduced("sum", t, axis, lambda i: E.power(size(i), ord), name="sum")
    return mapped(total, lambda e: E.power(e, 1 / ord)), over


_SINGULAR: dict[float | str, str] = {"nuc": "sum", 2: "max", -2: "min"}


@operator
def matrix_norm(x: Any, keepdims: bool = False, *, ord: float | str = "fro") -> Tensor:
    """A norm of the last two axes: "fro" Frobenius, 1 (-1) the largest (smallest) column sum of magnitudes, inf (-inf) that of the rows;
    2 (-2) the largest (smallest) singular value, "nuc" their sum, as `fl.linalg.svdvals` has them.
    """
    t = tensor(_sizes(x), "matrix_norm")
    if t.ndim < 2:
        raise refuse("A307", f"matrix_norm of {shown(t.shape)}", "a matrix, or a batch of them, is needed")
    if ord == "fro":
        result, over = _norm(t, (-2, -1), 2.0)
        return expanded(result, over) if keepdims else result
    if isinstance(ord, bool) or ord not in (*_SINGULAR, 1, -1, math.inf, -math.inf):
        raise refuse("A304", f"matrix_norm: ord={ord!r}", "there is no such order", '"fro", "nuc", 1, -1, 2, -2, inf or -inf')
    if ord in _SINGULAR:
        from ..linalg import svdvals

        values = svdvals(x if holds_complex(x) else t)  # those of the magnitudes are others
        result, _ = reduced(_SINGULAR[ord], values, -1, lambda i: values[i])
        return expanded(result, (t.ndim - 2, t.ndim - 1)) if keepdims else result
    down = builtins.abs(float(ord)) == 1
    sums, _ = reduced("sum", t, -2 if down else -1, lambda i: E.unary("abs", real(t[i])), name="sum")
    result, _ = reduced("max" if float(ord) > 0 else "min", sums, -1, lambda i: sums[i])
    return expanded(result, (t.ndim - 2, t.ndim - 1)) if keepdims else result
