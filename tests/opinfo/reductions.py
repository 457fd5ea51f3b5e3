"""Reductions, scans along an axis, sorting and products, under PyTorch's names and with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl

from .left_out import NotOffered, axes, unless


def over(fn: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        return fn(in_type(x, dtype), axes(dim), keepdim)

    return reduced


def in_type(x: Any, dtype: Any) -> Any:
    return x if dtype is None else fl.cast(x, str(dtype).removeprefix("torch."))


def arg(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim=None, keepdim=False: fn(x, dim, keepdim)


def spread(fn: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Any:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        return fn(x, axes(dim), keepdim, correction=int(unbiased) if correction is None else correction)

    return reduced


def largest(reduce: Callable[..., Any], place: Callable[..., Any], two: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's max and min are three functions: of a tensor, along an axis with places, of two tensors."""

    def found(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return reduce(x)
        if not isinstance(dim, int):
            return two(x, dim)
        return reduce(x, dim, keepdim), place(x, dim, keepdim)

    return found


def count_nonzero(x: Any, dim: Any = None) -> Any:
    return fl.count_nonzero(x, axes(dim))


def vector_norm(x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    return fl.vector_norm(in_type(x, dtype), axes(dim), keepdim, ord=ord)


def matrix_norm(x: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None) -> Any:
    if tuple(dim) != (-2, -1):
        unless(not keepdim, "keepdim= over other axes than the last two")
        x = fl.moveaxis(x, tuple(dim), (-2, -1))
    return fl.matrix_norm(in_type(x, dtype), keepdim, ord=ord)


def median(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    t = x if dim is not None else fl.flatten(x)
    axis = -1 if dim is None else dim
    unless(t.ndim == 0 or t.shape[axis] % 2 == 1, "the lower of the middle two")
    unless(dim is None, "the place of the median")
    return fl.median(t, axis)


def quantile(x: Any, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Any:
    unless(interpolation == "linear", f"interpolation={interpolation!r}")
    unless(isinstance(q, float) and not keepdim, "q as a tensor, and keepdim=")
    return fl.quantile(fl.flatten(x) if dim is None else x, q, -1 if dim is None else dim)


# ---------------------------------------------------------------- along an axis
def along(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim, *, dtype=None: fn(in_type(x, dtype), dim)


def diff(x: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    return fl.diff(x, dim, n, prepend=prepend, append=append)


def normalized(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, dim=-1, _stacklevel=3, *, dtype=None: fn(in_type(x, dtype), dim)


def logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    return fl.logsumexp(x, axes(dim), keepdim)


def sort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    return fl.sort(x, dim, descending=descending), fl.argsort(x, dim, descending=descending)


def argsort(x: Any, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    return fl.argsort(x, dim, descending=descending)


def topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return fl.top_k(x, k, dim, largest=largest)


def searchsorted(x: Any, values: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None) -> Any:
    unless(x.ndim == 1, "a row of boundaries for each row of values")
    return fl.searchsorted(x, values, side=side or ("right" if right else "left"), sorter=sorter)


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    raise NotOffered("a length that is computed")


# ---------------------------------------------------------------- products
def einsum(operands: Any, equation: str) -> Any:
    unless(equation.count("...") != 2 or "->" not in equation or "..." in equation.split("->")[1], "a sum over the axes of ...")
    return fl.einsum(equation, *operands)


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    if not isinstance(dims, int):
        unless(all(a.shape[i] == b.shape[j] for i, j in zip(*dims, strict=True)), "an extent of 1 that is repeated")
    return fl.tensordot(a, b, dims)


def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    return fl.linear(x, fl.matrix_transpose(weight) if weight.ndim > 1 else weight, bias)


def vecdot(a: Any, b: Any, *, dim: int = -1) -> Any:
    return fl.vecdot(a, b, dim)


def cross(a: Any, b: Any, dim: int | None = None) -> Any:
    return fl.cross(a, b, next(k for k, n in enumerate(a.shape) if n == 3) if dim is None else dim)


def linalg_cross(a: Any, b: Any, *, dim: int = -1) -> Any:
    return fl.cross(a, b, dim)


def multi_dot(tensors: Any) -> Any:
    result = tensors[0]
    for t in tensors[1:]:
        result = fl.matmul(result, t)
    return result


def isin(x: Any, values: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    return fl.isin(x, values, invert=invert)


def matrix_power(x: Any, n: int) -> Any:
    return fl.matrix_power(x, n)


REDUCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    **{n: (own, over(getattr(fl, own))) for n, own in {"sum": "sum", "prod": "prod", "mean": "mean", "amax": "max", "amin": "min",
                                                         "all": "all", "any": "any"}.items()},
    "argmax": ("argmax", arg(fl.argmax)), "argmin": ("argmin", arg(fl.argmin)), "std": ("std", spread(fl.std)),
    "var": ("var", spread(fl.var)),
    "max": ("max", largest(fl.max, fl.argmax, fl.maximum)), "min": ("min", largest(fl.min, fl.argmin, fl.minimum)),
    "count_nonzero": ("count_nonzero", count_nonzero), "linalg.vector_norm": ("vector_norm", vector_norm),
    "linalg.matrix_norm": ("matrix_norm", matrix_norm), "median": ("median", median), "quantile": ("quantile", quantile),
    "trace": ("matrix_trace", fl.matrix_trace), "cumsum": ("cumulative_sum", along(fl.cumulative_sum)),
    "cumprod": ("cumulative_prod", along(fl.cumulative_prod)), "logcumsumexp": ("logcumsumexp", along(fl.logcumsumexp)),
    "cummax": ("cumulative_max", lambda x, dim: fl.cumulative_max(x, dim)),
    "cummin": ("cumulative_min", lambda x, dim: fl.cumulative_min(x, dim)),
    "diff": ("diff", diff), "softmax": ("softmax", normalized(fl.softmax)), "log_softmax": ("log_softmax", normalized(fl.log_softmax)),
    "nn.functional.softmin": ("softmin", normalized(fl.softmin)), "logsumexp": ("logsumexp", logsumexp), "sort": ("sort", sort),
    "msort": ("sort", lambda x: fl.sort(x, 0)), "argsort": ("argsort", argsort), "topk": ("top_k", topk),
    "searchsorted": ("searchsorted", searchsorted), "isin": ("isin", isin), "bincount": ("bincount", bincount),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv"), ("matmul", fl.matmul)), "__rmatmul__": ("matmul", lambda x, y: fl.matmul(y, x)),
    "linalg.multi_dot": ("matmul", multi_dot), "dot": ("dot", fl.dot), "outer": ("outer", fl.outer), "einsum": ("einsum", einsum),
    "kron": ("kron", fl.kron), "tensordot": ("tensordot", tensordot), "linalg.vecdot": ("vecdot", vecdot), "cross": ("cross", cross),
    "linalg.cross": ("cross", linalg_cross), "linalg.matrix_power": ("matrix_power", matrix_power),
    "nn.functional.linear": ("linear", linear),
}  # fmt: skip
