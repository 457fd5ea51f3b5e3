"""Ragged inputs as the interpreter takes them: lists made into padded arrays and lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import Problem, RunError
from ..extent import Extent
from ..stages import Leaf
from .weak import Array, as_array, problem


def padded(ragged: Sequence[tuple[Leaf, str]], given: Mapping[str, Any], label: str) -> dict[str, Array]:
    """Padded arrays and lengths by name, for inputs with the names of their lengths. Raises RunError where lists do not fit."""
    rows = {leaf.name: _rows(leaf, given[leaf.name], label) for leaf, _ in ragged}
    longest: dict[Extent, int] = {}
    for leaf, _ in ragged:
        longest[leaf.shape[1]] = max([longest.get(leaf.shape[1], 0), *map(len, rows[leaf.name])])
    made: dict[str, Array] = {}
    first: dict[str, str] = {}
    for leaf, lengths in ragged:
        mine, before = rows[leaf.name], first.setdefault(lengths, leaf.name)
        n, t = leaf.shape[:2]
        if len(mine) != len(rows[before]):
            raise RunError(problem("R105", f"{label}: {n} is {len(rows[before])} in {before}, but {len(mine)} in {leaf.name}"))
        for i, (a, b) in enumerate(zip(rows[before], mine, strict=True)):
            if len(a) != len(b):
                raise RunError(problem("R105", f"{label}: {t} of example {i} is {len(a)} in {before}, but {len(b)} in {leaf.name}"))
        tail = next((r.shape[1:] for r in mine), tuple(n if isinstance(n, int) else 0 for n in leaf.shape[2:]))
        full = made[leaf.name] = np.zeros((len(mine), longest[leaf.shape[1]], *tail), leaf.dtype)
        for i, r in enumerate(mine):
            full[i, : len(r)] = r
        made[lengths] = np.array([len(r) for r in mine], np.int32)
    return made


def _rows(leaf: Leaf, value: Any, label: str) -> list[Array]:
    """The examples, each of the declared type and rank and alike but in length. Raises RunError."""
    if not isinstance(value, list | tuple | np.ndarray):
        raise RunError(problem("R104", f"{label}: {leaf.name} is of type {type(value).__name__}, expected a list of arrays"))
    one = [replace(leaf, path=f"{leaf.path}[{i}]", shape=leaf.shape[1:]) for i in range(len(value))]
    made = [None if _nothing(v) else as_array(o, v, label) for o, v in zip(one, value, strict=True)]
    if wrong := [m for m in made if isinstance(m, Problem)]:
        raise RunError(wrong)
    arrays = [m for m in made if isinstance(m, np.ndarray)]
    tail = arrays[0].shape[1:] if arrays else tuple(n if isinstance(n, int) else 0 for n in leaf.shape[2:])
    for i, m in enumerate(made):
        if isinstance(m, np.ndarray) and m.shape[1:] != tail:
            raise RunError(problem("R105", f"{label}: {leaf.name}[{i}] has shape {m.shape}, others of the list end in {tail}"))
    return [m if isinstance(m, np.ndarray) else np.zeros((0, *tail), leaf.dtype) for m in made]


def _nothing(value: Any) -> bool:
    return isinstance(value, list | tuple) and not value


__all__ = ["padded"]
