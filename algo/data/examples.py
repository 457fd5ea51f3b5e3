"""What a reader gives: a dict or a tuple of arrays, or one array; alone, or many with an axis more in front."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .refusals import refused

Array = np.ndarray[Any, Any]
Example = Any


def each(fn: Callable[[Any], Any], example: Example) -> Example:
    """The same structure with `fn` of each array."""
    match example:
        case dict():
            return {name: fn(part) for name, part in example.items()}
        case tuple() | list():
            return tuple(fn(part) for part in example)
    return fn(example)


def parts(example: Example) -> dict[str, Any]:
    """Its arrays by name, or by number."""
    match example:
        case dict():
            return {str(name): part for name, part in example.items()}
        case tuple() | list():
            return {str(n): part for n, part in enumerate(example)}
    return {"0": example}


def stacked(examples: Sequence[Example]) -> Example:
    """One example of many, with a new first axis; arrays that only differ in their length stay a list, which a ragged input takes.
    Raises RunError where they are not alike."""
    first = parts(examples[0])
    columns: dict[str, list[Any]] = {name: [] for name in first}
    for example in examples:
        found = parts(example)
        if found.keys() != first.keys() or type(example) is not type(examples[0]):
            why = f"one has {', '.join(first)} and another {', '.join(found)}"
            raise refused("R204", "a batch of examples that are not built alike", why, "map(function) that makes them alike")
        for name, part in found.items():
            columns[name].append(np.asarray(part))
    arrays = {name: _stack(name, column) for name, column in columns.items()}
    match examples[0]:
        case dict() as one:
            return dict(zip(one, arrays.values(), strict=True))
        case tuple() | list():
            return tuple(arrays.values())
    return arrays["0"]


def _stack(name: str, column: Sequence[Array]) -> Array | list[Array]:
    if len({a.shape for a in column}) > 1 and all(a.ndim for a in column) and len({(a.dtype, a.shape[1:]) for a in column}) == 1:
        return list(column)
    forms = list(dict.fromkeys(f"{a.dtype.name}[{', '.join(map(str, a.shape))}]" for a in column))
    if len(forms) > 1:
        why = f"{name} is {forms[0]} in one and {forms[1]} in another"
        raise refused("R204", "a batch of examples that are not alike", why, "map(function) that pads or cuts them")
    return np.stack(column)


__all__ = ["Array", "Example", "each", "parts", "stacked"]
