"""Shapes, views, gathering and scattering, under PyTorch's names and with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl

from .left_out import NotOffered, unless


def several(given: tuple[Any, ...]) -> Any:
    """PyTorch takes (2, 3) and 2, 3."""
    return given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given


def spread_over(x: Any, *shape: Any) -> Any:
    wanted = list(several(shape))
    ahead = len(wanted) - x.ndim
    return fl.broadcast_to(x, [x.shape[k - ahead] if n == -1 else n for k, n in enumerate(wanted)])


def permute(x: Any, *dims: Any) -> Any:
    return fl.transpose(x, several(dims))


def reshape(x: Any, *shape: Any) -> Any:
    return fl.reshape(x, several(shape))


def flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if x.ndim == 0:
        return fl.flatten(x)
    first, last = start_dim % x.ndim, end_dim % x.ndim
    unless(0 not in x.shape, "an extent of 0 to infer from")
    return fl.reshape(x, (*x.shape[:first], -1, *x.shape[last + 1 :]))


def cat(tensors: Any, dim: int = 0) -> Any:
    """PyTorch leaves an empty vector out, whatever the shape of the others."""
    return fl.concatenate([t for t in tensors if t.shape != (0,)] or tensors, dim)


def split(x: Any, size: Any, dim: int = 0) -> Any:
    extent = x.shape[dim]
    sizes = list(size) if isinstance(size, list | tuple) else [size] * (-(-extent // size) if size else 1)
    return fl.split(x, [sum(sizes[: k + 1]) for k in range(len(sizes) - 1)], dim)


def chunk(x: Any, chunks: int, dim: int = 0) -> Any:
    return split(x, -(-x.shape[dim] // chunks), dim)


def roll(x: Any, shifts: Any, dims: Any = None) -> Any:
    unless(x.ndim > 0, "rolling a number")
    return fl.roll(x, shifts, axis=dims if dims is None or isinstance(dims, int) or dims else None)


def tile(x: Any, *reps: Any) -> Any:
    return fl.tile(x, several(reps))


def repeat_interleave(x: Any, repeats: Any, dim: int | None = None, *, output_size: Any = None) -> Any:
    unless(isinstance(repeats, int), "counts that are a tensor, whose sum is the extent")
    return fl.repeat(x, repeats, dim)


def squeeze(x: Any, *dim: Any) -> Any:
    if not dim:
        return fl.squeeze(x)
    chosen = dim[0] if isinstance(dim[0], list | tuple) else (dim[0],)
    return fl.squeeze(x, tuple(d for d in chosen if x.ndim and x.shape[d] == 1))


def diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return fl.diagonal(x, offset, dim1, dim2)


def linalg_diagonal(x: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    return fl.diagonal(x, offset, dim1, dim2)


def meshgrid(tensors: Any, *rest: Any, indexing: str = "ij") -> Any:
    vectors = [tensors, *rest] if not isinstance(tensors, list | tuple) else tensors
    unless(all(v.ndim == 1 for v in vectors), "numbers as vectors")
    return fl.meshgrid(*vectors, indexing=indexing)


def getitem(x: Any, index: Any) -> Any:
    whole = index if isinstance(index, tuple) else (index,)
    unless(not any(isinstance(i, bool) or str(getattr(i, "dtype", "")) == "bool" for i in whole), "a mask, whose count is the extent")
    return x[index]


def pad(x: Any, pad: Any, mode: str = "constant", value: Any = None) -> Any:
    pairs = [(pad[k], pad[k + 1]) for k in range(0, len(pad), 2)][::-1]
    unless(all(n >= 0 for pair in pairs for n in pair), "a negative width, which cuts")
    name = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    return fl.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + pairs, name, **({"value": value} if value is not None else {}))


# ---------------------------------------------------------------- gathering and scattering
def gather(x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    unless(x.ndim > 0 and index.ndim == x.ndim, "places of a number")
    same = all(n == m for k, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)) if k != dim % x.ndim)
    unless(same, "fewer rows of places than there are rows")
    return fl.take_along_axis(x, index, dim)


def take_along_dim(x: Any, index: Any, dim: int | None = None) -> Any:
    if dim is None:
        return take(x, fl.flatten(index))
    return gather(x, dim, fl.where(index < 0, index + x.shape[dim], index))


def index_select(x: Any, dim: int, index: Any) -> Any:
    unless(x.ndim > 0, "places of a number")
    return fl.take(x, index if index.ndim else fl.expand_dims(index, 0), dim)


def take(x: Any, index: Any) -> Any:
    flat = fl.flatten(x)
    return fl.take(flat, fl.where(index < 0, index + x_size(x), index))


def x_size(x: Any) -> int:
    size = 1
    for n in x.shape:
        size *= n
    return size


def index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    unless(x.ndim > 0 and index.ndim > 0, "places of a number")
    return fl.scatter_add(x, index, source * alpha, dim)


def index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    unless(x.ndim > 0 and index.ndim > 0, "places of a number")
    return fl.scatter(x, index, source, dim)


def scattered(name: str) -> Callable[..., Any]:
    """PyTorch has a place for every element; a place for every slice covers those of one axis."""

    def apply(x: Any, dim: int, index: Any, src: Any, *options: Any, **more: Any) -> Any:
        unless(x.ndim == 1 and index.ndim == 1, "a place of its own for every element")
        unless(hasattr(src, "shape") and src.shape == index.shape, "a source of another shape than the places")
        unless(more.get("include_self", True), "include_self=False")
        kind = {"sum": "scatter_add", "amax": "scatter_max", "amin": "scatter_min"}.get(options[0], "") if options else name
        unless(bool(kind) and not more.get("reduce"), "reduce=")
        return getattr(fl, kind)(x, index, src, dim)

    return apply


def embedding(weight: Any, ids: Any, padding_idx: Any = None, max_norm: Any = None, *rest: Any, **more: Any) -> Any:
    if max_norm is not None or padding_idx is not None or more.get("scale_grad_by_freq"):
        raise NotOffered("padding_idx=, max_norm= and scale_grad_by_freq=")
    return fl.embedding(ids, weight)


def one_hot(ids: Any, num_classes: int = -1) -> Any:
    unless(num_classes >= 0, "a count that is computed")
    return fl.one_hot(ids, num_classes, "int64")


PLACES: dict[str, tuple[str, Callable[..., Any]]] = {
    **dict.fromkeys(("broadcast_to", "expand", "expand_copy"), ("broadcast_to", spread_over)),
    "broadcast_tensors": ("broadcast_arrays", lambda x, *rest: fl.broadcast_arrays(*(x if isinstance(x, list | tuple) else (x, *rest)))),
    **dict.fromkeys(("permute", "permute_copy"), ("transpose", permute)),
    **dict.fromkeys(("reshape", "view", "view_copy"), ("reshape", reshape)),
    "flatten": ("flatten", flatten), "ravel": ("flatten", fl.flatten), "cat": ("concatenate", cat),
    "stack": ("stack", lambda t, dim=0: fl.stack(t, dim)),
    **dict.fromkeys(("split", "split_with_sizes", "unsafe_split"), ("split", split)),
    **dict.fromkeys(("chunk", "unsafe_chunk"), ("split", chunk)),
    "unbind": ("unstack", lambda x, dim=0: fl.unstack(x, dim)), "flip": ("flip", lambda x, dims: fl.flip(x, dims)),
    "fliplr": ("flip", lambda x: fl.flip(x, 1)), "flipud": ("flip", lambda x: fl.flip(x, 0)), "roll": ("roll", roll),
    "tile": ("tile", tile), "repeat": ("tile", tile), "repeat_interleave": ("repeat", repeat_interleave),
    "squeeze": ("squeeze", squeeze), "unsqueeze": ("expand_dims", lambda x, dim: fl.expand_dims(x, dim)),
    "movedim": ("moveaxis", lambda x, a, b: fl.moveaxis(x, a, b)), "transpose": ("swapaxes", lambda x, a, b: fl.swapaxes(x, a, b)),
    "mT": ("matrix_transpose", fl.matrix_transpose), "T": ("transpose", fl.transpose), "t": ("transpose", fl.transpose),
    "diag": ("diag", fl.diag), "diagonal": ("diagonal", diagonal), "linalg.diagonal": ("diagonal", linalg_diagonal),
    "tril": ("tril", fl.tril), "triu": ("triu", fl.triu), "meshgrid": ("meshgrid", meshgrid), "__getitem__": ("getitem", getitem),
    "select": ("getitem", lambda x, dim, index: fl.moveaxis(x, dim, 0)[index]),
    "narrow": ("getitem", lambda x, dim, start, length: fl.moveaxis(fl.moveaxis(x, dim, 0)[whole(start) : whole(start) + length], 0, dim)),
    "nn.functional.pad": ("pad", pad), "constant_pad_nd": ("pad", lambda x, pad_, value=0: pad(x, pad_, "constant", value)),
    "gather": ("take_along_axis", gather), "take_along_dim": ("take_along_axis", take_along_dim), "index_select": ("take", index_select),
    "take": ("take", take), "index_add": ("scatter_add", index_add), "index_copy": ("scatter", index_copy),
    "scatter": ("scatter", scattered("scatter")), "scatter_add": ("scatter_add", scattered("scatter_add")),
    "scatter_reduce": ("scatter_max", scattered("")), "nn.functional.embedding": ("embedding", embedding),
    "nn.functional.one_hot": ("one_hot", one_hot),
    "nn.functional.pixel_shuffle": ("pixel_shuffle", lambda x, upscale_factor: planes(fl.pixel_shuffle, x, upscale_factor)),
    "nn.functional.pixel_unshuffle": ("pixel_unshuffle", lambda x, downscale_factor: planes(fl.pixel_unshuffle, x, downscale_factor)),
}  # fmt: skip


def whole(start: Any) -> int:
    unless(isinstance(start, int), "a start that is a tensor")
    return int(start)


def planes(fn: Callable[..., Any], x: Any, factor: int) -> Any:
    unless(x.ndim == 4 and 0 not in x.shape, "other than four axes")
    return fn(x, factor)
