"""Operators that give shapes and places to what is there."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
from operator_case import ALL, FLOATS, Case, Chooser, Shape, axes, axis, filled, matrices, one, shape, spread, vector


def _basic(c: Chooser, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    """An index: integers, slices with steps of either sign, None, an ellipsis, arrays of integers that broadcast, masks."""
    parts: list[Any] = []
    left = list(shapes[0])
    dots, wide = False, c.number(1, 3)
    for n in left:
        if c.number(0, 5) == 0:
            parts.append(None)
        kind = c.number(0, 7)
        if kind == 0 and n:
            parts.append(c.number(-n, n - 1))
        elif kind in (1, 6) and n:
            row = [c.number(-n, n - 1) for _ in range(c.of((1, wide)))]
            parts.append(row if kind == 1 else [row, row[::-1]])
        elif kind == 7 and n >= wide:
            held = c.number(0, n - wide)
            parts.append([held <= k < held + wide for k in range(n)])
        elif kind == 2:
            parts.append(slice(None))
        else:
            ends = [None if c.number(0, 2) == 0 else c.number(-n - 2, n + 2) for _ in range(2)]
            parts.append(slice(*ends, c.of((None, 1, 2, 3, -1, -2, -3))))
    if parts and c.number(0, 2) == 0:
        k = c.number(0, len(parts))
        dots = True
        parts = [*parts[:k], Ellipsis, *[p for p in parts[k:] if p is None]] if c.number(0, 1) else [*parts[:k], Ellipsis, *parts[k:]]
    if dots and c.number(0, 3) == 0:
        parts.append(None)
    return {"index": tuple(parts)}


def _permutation(c: Chooser, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    rest = list(range(len(shapes[0])))
    order = []
    while rest:
        d = rest.pop(c.number(0, len(rest) - 1))
        order.append(d - len(shapes[0]) if c.number(0, 1) else d)
    return {"axes": order}


def _stacked(c: Chooser) -> tuple[Shape, ...]:
    return (shape(c, 1, 4),) * 3


def _pad(c: Chooser, s: tuple[Shape, ...]) -> dict[str, Any]:
    return {"width": [(c.number(0, 3), c.number(0, 3)) for _ in s[0]], "mode": c.of(("constant", "edge", "wrap", "reflect"))}


def moved() -> list[Case]:
    def roll(c: Chooser, s: tuple[Shape, ...]) -> dict[str, Any]:
        rank = len(s[0])
        if c.number(0, 2) == 0:
            return {"shift": c.number(-8, 8), "axis": None}
        axes = [c.number(-rank, rank - 1) for _ in range(c.number(1, rank))]
        return {"shift": [c.number(-8, 8) for _ in axes], "axis": axes}

    def counts(c: Chooser, s: tuple[Shape, ...]) -> dict[str, Any]:
        d = c.number(-len(s[0]), len(s[0]) - 1)
        return {"times": c.of((2, 3, 0, [c.number(0, 3) for _ in range(s[0][d])])) if s[0][d] != 1 else 2, "axis": d}

    def cut(x: Any, axis: int) -> Any:
        return np.concatenate([part * np.asarray(k + 1, x.dtype) for k, part in enumerate(np.split(x, [1, 2], axis))], axis)

    return [
        Case("getitem", lambda x, index: x[index], lambda x, index: x[index], one, _basic, ALL),
        Case("transpose", fl.transpose, lambda x, axes: np.transpose(x, axes), one, _permutation, ALL),
        Case("matrix_transpose", fl.matrix_transpose, lambda x: np.swapaxes(x, -1, -2), matrices),
        Case("flip", lambda x, axis, keepdims: fl.flip(x, axis), lambda x, axis, keepdims: np.flip(x, axis), one, axes),
        Case("roll", fl.roll, lambda x, shift, axis: np.roll(x, shift, None if axis is None else tuple(axis)), lambda c: one(c, 1), roll),
        Case(
            "tile", fl.tile, lambda x, reps: np.tile(x, reps), one, lambda c, s: {"reps": [c.number(0, 3) for _ in range(c.number(1, 3))]}
        ),
        Case("repeat", fl.repeat, lambda x, times, axis: np.repeat(x, times, axis), lambda c: one(c, 1), counts),
        Case(
            "diff",
            fl.diff,
            lambda x, axis, n: np.diff(x, n, axis),
            lambda c: one(c, 1),
            lambda c, s: {**axis(c, s), "n": c.number(0, 3)},
            (*FLOATS, "int32", "uint8", "bool"),
            "small",
        ),
        Case(
            "concatenate",
            lambda x, y, z, axis: fl.concatenate([x, y, z], axis),
            lambda x, y, z, axis: np.concatenate([x, y, z], axis),
            _stacked,
            lambda c, s: {"axis": c.of((None, c.number(-len(s[0]), len(s[0]) - 1)))},
        ),
        Case("stack", lambda x, y, z, axis: fl.stack([x, y, z], axis), lambda x, y, z, axis: np.stack([x, y, z], axis), _stacked, axis),
        Case(
            "split",
            lambda x, axis: fl.concatenate([p * (k + 1) for k, p in enumerate(fl.split(x, [1, 2], axis))], axis),
            cut,
            lambda c: ((*shape(c, 0, 2), 3),),
            lambda c, s: {"axis": -1},
            values="small",
        ),
        Case(
            "unstack",
            lambda x, axis: fl.stack(fl.unstack(x, axis)[::-1]),
            lambda x, axis: np.moveaxis(x, axis, 0)[::-1],
            lambda c: filled(c, 1, 3),
            axis,
        ),
        Case(
            "pad",
            lambda x, width, mode: fl.pad(x, width, mode),
            lambda x, width, mode: np.pad(x, width, mode),
            lambda c: filled(c, 1, 4),
            _pad,
        ),
        Case("moveaxis", fl.moveaxis, np.moveaxis, lambda c: one(c, 2), lambda c, s: {"source": [0, -1], "destination": [-1, 0]}),
        Case(
            "swapaxes",
            fl.swapaxes,
            lambda x, first, second: np.swapaxes(x, first, second),
            lambda c: one(c, 2),
            lambda c, s: {"first": 0, "second": -1},
        ),
        Case(
            "expand_dims",
            fl.expand_dims,
            lambda x, axis: np.expand_dims(x, tuple(axis)),
            one,
            lambda c, s: {"axis": [0, -1] if c.number(0, 1) else [c.number(0, len(s[0]))]},
        ),
        Case("squeeze", fl.squeeze, np.squeeze, one),
        Case("flatten", fl.flatten, np.ravel, one),
        Case("reshape", lambda x: fl.reshape(x, (*x.shape[::-1],)), lambda x: np.reshape(x, x.shape[::-1]), one),
        Case("broadcast_to", lambda x: fl.broadcast_to(x, (3, *x.shape)), lambda x: np.broadcast_to(x, (3, *x.shape)), one),
        Case(
            "broadcast_arrays",
            lambda x, y: fl.stack(fl.broadcast_arrays(x, y)),
            lambda x, y: np.stack(np.broadcast_arrays(x, y)),
            spread(2),
        ),
        Case("tril", fl.tril, lambda x, k: np.tril(x, k), matrices, lambda c, s: {"k": c.number(-4, 4)}),
        Case("triu", fl.triu, lambda x, k: np.triu(x, k), matrices, lambda c, s: {"k": c.number(-4, 4)}),
        Case(
            "diagonal", fl.diagonal, lambda x, offset: np.diagonal(x, offset, -2, -1), matrices, lambda c, s: {"offset": c.number(-6, 6)}
        ),
        Case("diag", fl.diag, lambda x, k: np.diag(x, k), lambda c: one(c, 1, 2), lambda c, s: {"k": c.number(-4, 4)}),
        Case(
            "meshgrid",
            lambda x, y, indexing: fl.stack(fl.meshgrid(x, y, indexing=indexing)),
            lambda x, y, indexing: np.stack(np.meshgrid(x, y, indexing=indexing)),
            lambda c: (*vector(c), *vector(c)),
            lambda c, s: {"indexing": c.of(("xy", "ij"))},
        ),
        Case(
            "take",
            lambda x, axis: fl.take(x, [[0, 0], [0, 0]], axis),
            lambda x, axis: np.take(x, [[0, 0], [0, 0]], axis),
            lambda c: filled(c, 1, 3),
            axis,
        ),
    ]
