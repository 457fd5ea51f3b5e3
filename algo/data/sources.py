"""Where examples come from: arrays in memory, and whatever Python can iterate over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from .dataset import Dataset, Table
from .examples import Example, each, parts
from .order import Numbers
from .refusals import refused


@dataclass(frozen=True, eq=False)
class Arrays(Table):
    """The rows of arrays that are equally long: a dict or a tuple of them."""

    columns: Any

    @cached_property
    def checked(self) -> Any:
        """The columns as arrays of one length. Raises RunError."""
        made = each(np.asarray, self.columns)
        return require_rows(made, "arrays(...)")

    @property
    def size(self) -> int:
        return int(next(iter(parts(self.checked).values())).shape[0])

    def rows(self, numbers: Numbers) -> Example:
        return each(lambda a: a[numbers], self.checked)


def require_rows(columns: Any, what: str) -> Any:
    """The columns. Raises RunError where they are none, have no rows, or are not equally long."""
    found = parts(columns)
    if not found:
        raise refused("R201", what, "there are no arrays", "x=array")
    for name, a in found.items():
        if a.dtype.kind not in "biufV" or a.dtype.names:
            raise refused("R204", f"{what}: {name} is {a.dtype}", "examples are numbers", f"{name}.astype(np.float32)")
        if not a.ndim:
            raise refused("R204", f"{what}: {name} is one number", "its first axis is that of the examples")
    if len({len(a) for a in found.values()}) > 1:
        lengths = ", ".join(f"{name} has {len(a)}" for name, a in found.items())
        raise refused("R204", f"{what}: {lengths} rows", "every example needs a row of each")
    return columns


@dataclass(frozen=True, eq=False)
class Iterated(Dataset):
    """Any iterable of examples, or a function that makes one for each pass."""

    items: Any

    @property
    def once(self) -> bool:
        """Whether it is an iterator, of which there is one pass."""
        return not callable(self.items) and iter(self.items) is self.items

    @property
    def count(self) -> int | None:
        return None if callable(self.items) or not hasattr(self.items, "__len__") else len(self.items)

    def elements(self, epoch: int = 0, start: int = 0) -> Iterator[Example]:
        inner = iter(self.items() if callable(self.items) else self.items)
        try:
            yield from islice(inner, start, None)
        finally:
            if not self.once and (close := getattr(inner, "close", None)) is not None:
                close()


def arrays(
    *columns: Any, batch_size: int | None = None, shuffle: int | None = None, drop_last: bool = False, **named: Any
) -> Dataset:
    """The rows of arrays: ``fl.data.arrays(x=images, y=labels, batch_size=32, shuffle=0)``.

    Named arrays give dicts, positional ones tuples in their order. `shuffle` is the seed of a new order in each pass. Raises RunError for
    arrays that are not equally long.
    """
    if columns and named:
        raise refused("R201", "arrays(...) with positional and named arrays", "an example is a tuple or a dict", "names for all of them")
    table = Arrays(named or columns)
    _ = table.checked
    return arranged(table, batch_size, shuffle, drop_last)


def dataset(source: Any) -> Dataset:
    """A dataset of whatever can be read: a Dataset as it is; any iterable of examples; a function that makes an iterable for each pass.

    Elements are what a method is called with: dicts by name, tuples by position, or one array. Raises RunError for anything else.
    """
    if isinstance(source, Dataset):
        return source
    if isinstance(source, str | bytes | dict) or not (callable(source) or hasattr(source, "__iter__")):
        tries = ("fl.data.arrays(x=..., y=...)", "fl.data.csv(path, columns=...)", "any iterable of dicts or tuples")
        raise refused("R201", f"data of type {type(source).__name__}", "it is no dataset and nothing to iterate over", *tries)
    return Iterated(source)


def arranged(table: Dataset, batch_size: int | None, shuffle: int | None, drop_last: bool) -> Dataset:
    """The table in its order, or in one drawn from a seed; as rows, or in batches. Raises RunError."""
    ordered = table if shuffle is None else table.shuffle(shuffle)
    if batch_size is None:
        if drop_last:
            raise refused("R201", "drop_last=True without batch_size=", "there is no last batch", "batch_size=32")
        return ordered
    return ordered.batch(batch_size, drop_last)


__all__ = ["Arrays", "Iterated", "arranged", "arrays", "dataset", "require_rows"]
