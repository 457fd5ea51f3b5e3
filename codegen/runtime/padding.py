"""Ragged inputs: lists of arrays of unequal length made into one array, with 0 behind the end of each, and an array of lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arguments import Refused, as_array
from .errors import Problem, run_error, run_problem
from .extents import Extent, text
from .manifest import MethodSpec, TensorSpec

Array = np.ndarray[Any, Any]


def padded(label: str, spec: MethodSpec, args: Sequence[Any]) -> tuple[Any, ...]:
    """The inputs in the order of the manifest, of a call's arguments; those that are not ragged as they are.

    Of one sample its own array and length, without the axis of the batch. Raises RunError.
    """
    given = dict(zip((i.name for i in spec.arguments), args, strict=True))
    rows: dict[str, list[Array]] = {}
    alone: set[str] = set()
    wrong: list[Problem] = []
    for i in spec.arguments:
        if i.lengths:
            try:
                rows[i.name], one = _rows(label, i, given[i.name])
                if one and i.shape[0] != spec.batch:
                    asked = f"{label}: {i.name} is one array, expected {i.text()}"
                    raise Refused(run_problem("R105", asked, "a list of arrays, one for each example"))
                alone |= {i.name} if one else set()
            except Refused as refused:
                wrong.append(refused.problem)
    wrong = wrong or _disagreements(label, spec, rows)
    if wrong:
        raise run_error(*wrong)
    longest: dict[Extent, int] = {}
    for i in spec.arguments:
        if i.lengths:
            longest[_key(i)] = max([longest.get(_key(i), 0), *map(len, rows[i.name])])
    for i in spec.arguments:
        if i.lengths:
            whole, lengths = _filled(i, rows[i.name], longest[_key(i)]), np.array([len(r) for r in rows[i.name]], np.int32)
            given[i.name], given[i.lengths] = (whole[0], lengths.reshape(())) if i.name in alone else (whole, lengths)
    return tuple(given[i.name] for i in spec.inputs)


def count(spec: MethodSpec, args: Sequence[Any]) -> int:
    """How many examples a batch has, of the arguments of a call."""
    found = next((a for i, a in zip(spec.arguments, args, strict=False) if i.lengths), ())  # a wrong number is told elsewhere
    return len(found) if hasattr(found, "__len__") else 1


def _key(i: TensorSpec) -> Any:
    return text(i.shape[1])


def _rows(label: str, spec: TensorSpec, value: Any) -> tuple[list[Array], bool]:
    """The examples of one input, alike but in length; and whether it is one sample, that lacks the axis of the batch. Raises Refused."""
    if _is_array(value):
        alone = len(value.shape) == len(spec.shape) - 1
        whole = as_array(label, spec, value)
        if not alone and whole.ndim != len(spec.shape):
            raise Refused(run_problem("R105", f"{label}: {spec.name} has shape {whole.shape}, expected {spec.text()}"))
        return ([whole] if alone else list(whole)), alone
    if not isinstance(value, list | tuple | np.ndarray):
        asked = f"{label}: {spec.name} is of type {type(value).__name__}, expected {spec.text()}"
        raise Refused(run_problem("R104", asked, "a list of arrays, one for each example"))
    alone = _rank(value) == len(spec.shape) - 1 and not all(_nothing(v) for v in value)
    one = [TensorSpec(spec.name if alone else f"{spec.name}[{n}]", spec.dtype, spec.shape[1:]) for n in range(1 if alone else len(value))]
    examples = [value] if alone else value
    made = [None if _nothing(v) else as_array(label, i, v) for i, v in zip(one, examples, strict=True)]
    arrays = [m for m in made if m is not None]
    tail = arrays[0].shape[1:] if arrays else _fixed(spec)
    for i, m in zip(one, made, strict=True):
        if m is not None and (m.ndim != len(i.shape) or m.shape[1:] != tail):
            raise Refused(run_problem("R105", f"{label}: {i.name} has shape {m.shape}, expected {i.text()}{_others(i, m, tail)}"))
    return [np.zeros((0, *tail), spec.numpy) if m is None else m for m in made], alone


def _others(spec: TensorSpec, found: Array, tail: tuple[int, ...]) -> str:
    return f" and [{', '.join(map(str, tail))}] behind the first axis, as of the others" if found.ndim == len(spec.shape) else ""


def _rank(value: Any) -> int:
    """The number of axes that a list of arrays or lists would have."""
    if _is_array(value):
        return len(value.shape)
    return 1 + max(map(_rank, value), default=0) if isinstance(value, list | tuple | np.ndarray) else 0


def _is_array(value: Any) -> bool:
    """Whether it is one array of numbers; an array of objects is a list."""
    return hasattr(value, "shape") and getattr(getattr(value, "dtype", None), "kind", "f") != "O"


def _nothing(value: Any) -> bool:
    return isinstance(value, list | tuple) and not value


def _fixed(spec: TensorSpec) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) else 0 for n in spec.shape[2:])


def _disagreements(label: str, spec: MethodSpec, rows: dict[str, list[Array]]) -> list[Problem]:
    """What is wrong between inputs that share their lengths."""
    first: dict[str, TensorSpec] = {}
    found: list[Problem] = []
    for i in spec.arguments:
        if not i.lengths:
            continue
        before = first.setdefault(i.lengths, i)
        mine, others = rows[i.name], rows[before.name]
        n, t = map(text, i.shape[:2])
        if len(mine) != len(others):
            found.append(run_problem("R105", f"{label}: {n} is {len(others)} in {before.name}, but {len(mine)} in {i.name}"))
            continue
        at = next((k for k, (a, b) in enumerate(zip(others, mine, strict=True)) if len(a) != len(b)), None)
        if at is not None:
            asked = f"{label}: {t} of example {at} is {len(others[at])} in {before.name}, but {len(mine[at])} in {i.name}"
            found.append(run_problem("R105", asked))
    return found


def _filled(spec: TensorSpec, rows: Sequence[Array], longest: int) -> Array:
    tail = rows[0].shape[1:] if rows else _fixed(spec)
    whole = np.zeros((len(rows), longest, *tail), spec.numpy)
    for place, row in zip(whole, rows, strict=True):
        place[: len(row)] = row
    return whole


__all__ = ["count", "padded"]
