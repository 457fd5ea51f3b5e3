"""Datasets: descriptions of what is read, in passes, and what can be made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .examples import Example, each, stacked
from .order import Numbers, permuted
from .prefetching import ahead
from .refusals import refused, whole
from .stream import Position, Stream

_CHUNK = 1 << 14
"""How many positions of an order are computed at once."""


class Dataset(ABC):
    """What there is to read: a sequence of examples for each pass (epoch). Iterating over it is its first pass.

    A value: reading changes nothing of it, and it opens no file before the first example is asked for. The examples of a pass are a
    function of the number of the pass, so that reading can go on from any position: see `stream`.
    """

    @property
    def indexed(self) -> bool:
        """Whether its examples can be read in any order; then it has `look` and `rows`."""
        return False

    @property
    def count(self) -> int | None:
        """How many examples a pass has, where that is known."""
        return None

    @abstractmethod
    def elements(self, epoch: int = 0, start: int = 0) -> Iterator[Example]:
        """The examples of one pass from position `start` on."""

    def look(self, epoch: int, positions: Numbers) -> Numbers:
        """Which rows stand at these positions of a pass. Raises TypeError where it is not indexed."""
        raise TypeError(f"the examples of {type(self).__name__} come one after another")

    def rows(self, numbers: Numbers) -> Example:
        """These rows as one example with an axis more in front. Raises TypeError where it is not indexed."""
        raise TypeError(f"the examples of {type(self).__name__} come one after another")

    def __iter__(self) -> Iterator[Example]:
        return self.elements()

    def __len__(self) -> int:
        if self.count is None:
            raise TypeError("nobody knows how many examples there are before they are read")
        return self.count

    # ------------------------------------------------------------ what is made of it
    def map(self, fn: Callable[[Example], Example]) -> Dataset:
        """`fn` of each example; of each batch, where it comes after `batch`."""
        return Mapped(self, fn)

    def shuffle(self, seed: int) -> Dataset:
        """In another order in each pass, a function of the seed and the number of the pass. It comes before `batch`. Raises RunError."""
        if not self.indexed:
            why = "that takes examples that can be read in any order; a batch, or what a Python iterator gives, cannot"
            raise refused("R201", "shuffle(...)", why, "shuffle(seed) before batch(size)", "fl.data.arrays, csv, npy, images")
        return Shuffled(self, whole(seed, "shuffle", -(1 << 63)))

    def batch(self, size: int, drop_last: bool = False) -> Dataset:
        """`size` examples at a time, with an axis more in front, or as a list where they differ in length; the last batch is what is
        left, or is dropped."""
        return Batched(self, whole(size, "batch_size"), bool(drop_last))

    def take(self, count: int) -> Dataset:
        """The first `count` examples of each pass."""
        return Taken(self, whole(count, "take", 0))

    def prefetch(self, depth: int = 2) -> Dataset:
        """Reads up to `depth` examples ahead on a thread of its own, which ends when the pass is over or is not wanted any more."""
        return Prefetched(self, whole(depth, "prefetch"))

    def stream(self, position: Position | None = None) -> Stream:
        """Pass after pass without an end, from a position that can be kept and gone back to."""
        return Stream(self, position or Position())

    # ------------------------------------------------------------ the same with something else inside
    def rebatched(self, size: int) -> Dataset:
        """With batches of this size; in batches at all, where it is not in any yet."""
        size = whole(size, "batch_size")
        found: Dataset | None = self._changed(Batched, lambda b: replace(b, size=size))
        return Batched(self, size) if found is None else found

    def moved(self, path: str | Path) -> Dataset:
        """The same from another file or folder. Raises RunError if it is not from one."""
        found: Dataset | None = self._changed(FromFile, lambda f: replace(f, path=Path(path)))
        if found is None:
            raise refused("R201", f"data={str(path)!r}", "the data that is there does not come from one file", "data=fl.data.csv(...)")
        return found

    def _changed(self, kind: type[Any], change: Callable[[Any], Any]) -> Any:
        if isinstance(self, kind):
            return change(self)
        inner = getattr(self, "source", None)
        made: Any = inner._changed(kind, change) if isinstance(inner, Dataset) else None
        outer: Any = self  # what has a source is a dataclass
        return None if made is None else replace(outer, source=made)


class FromFile(Dataset):
    """A dataset with a `path` that another may stand for."""

    path: Path


class Table(Dataset):
    """Rows by number; what it is made of gives `size` and `rows`."""

    @property
    def indexed(self) -> bool:
        return True

    @property
    @abstractmethod
    def size(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def rows(self, numbers: Numbers) -> Example: ...

    @property
    def count(self) -> int | None:
        return self.size

    def look(self, epoch: int, positions: Numbers) -> Numbers:
        return positions

    def elements(self, epoch: int = 0, start: int = 0) -> Iterator[Example]:
        return _one_by_one(self, epoch, start)


def _one_by_one(source: Dataset, epoch: int, start: int) -> Iterator[Example]:
    for numbers in _looked(source, epoch, start, _CHUNK):
        for n in range(len(numbers)):
            yield each(lambda a: a[0], source.rows(numbers[n : n + 1]))


def _looked(source: Dataset, epoch: int, start: int, chunk: int) -> Iterator[Numbers]:
    count = len(source)
    for low in range(start, count, chunk):
        yield source.look(epoch, np.arange(low, min(low + chunk, count)))


@dataclass(frozen=True, eq=False)
class Shuffled(Dataset):
    """In an order of each pass."""

    source: Dataset
    seed: int

    @property
    def indexed(self) -> bool:
        return True

    @property
    def count(self) -> int | None:
        return self.source.count

    def look(self, epoch: int, positions: Numbers) -> Numbers:
        return self.source.look(epoch, permuted(self.seed, epoch, len(self.source), positions))

    def rows(self, numbers: Numbers) -> Example:
        return self.source.rows(numbers)

    def elements(self, epoch: int = 0, start: int = 0) -> Iterator[Example]:
        return _one_by_one(self, epoch, start)


@dataclass(frozen=True, eq=False)
class Batched(Dataset):
    """Several at a time."""

    source: Dataset
    size: int
    drop_last: bool = False

    @property
    def count(self) -> int | None:
        inner = self.source.count
        return None if inner is None else inner // self.size if self.drop_last else -(-inner // self.size)

    def elements(self, epoch: int = 0, start: int = 0) -> Iterator[Example]:
        return self._gathered(epoch, start) if self.source.indexed else self._collected(epoch, start)

    def _gathered(self, epoch: int, start: int) -> Iterator[Example]:
        for numbers in _looked(self.source, epoch, start * self.size, self.size * max(1, _CHUNK // self.size)):
            for low in range(0, len(numbers), self.size):
                chosen = numbers[low : low + self.size]
                if len(chosen) == self.size or not self.drop_last:
                    yield self.source.rows(chosen)

    def _collected(self, epoch: int, start: int) -> Iterator[Example]:
        inner = self.source.elements(epoch, start * self.size)
        try:
            while chosen := list(islice(inner, self.size)):
                if len(chosen) == self.size or not self.drop_last:
                    yield stacked(chosen)
        finally:
            _close(inner)


@dataclass(frozen=True, eq=False)
class Mapped(Dataset):
    """A function of each."""

    source: Dataset
    fn: Callable[[Example], Example]

    @property
    def indexed(self) -> bool:
        return self.source.indexed

    @property
    def count(self) -> int | None:
        return self.source.count

    def look(self, epoch: int, positions: Numbers) -> Numbers:
        return self.source.look(epoch, positions)

    def rows(self, numbers: Numbers) -> Example:
        return stacked([self.fn(each(lambda a: a[0], self.source.rows(numbers[n : n + 1]))) for n in range(len(numbers))])

    def elements(self, epoch: int = 0, start: int = 0) -> Iterator[Example]:
        inner = self.source.elements(epoch, start)
        try:
            for example in inner:
                yield self.fn(example)
        finally:
            _close(inner)


@dataclass(frozen=True, eq=False)
class Taken(Dataset):
    """The first of each pass."""

    source: Dataset
    most: int

    @property
    def indexed(self) -> bool:
        return self.source.indexed

    @property
    def count(self) -> int | None:
        inner = self.source.count
        return None if inner is None else min(inner, self.most)

    def look(self, epoch: int, positions: Numbers) -> Numbers:
        return self.source.look(epoch, positions)

    def rows(self, numbers: Numbers) -> Example:
        return self.source.rows(numbers)

    def elements(self, epoch: int = 0, start: int = 0) -> Iterator[Example]:
        inner = self.source.elements(epoch, start)
        try:
            yield from islice(inner, max(0, self.most - start))
        finally:
            _close(inner)


@dataclass(frozen=True, eq=False)
class Prefetched(Dataset):
    """Read ahead."""

    source: Dataset
    depth: int

    @property
    def count(self) -> int | None:
        return self.source.count

    def elements(self, epoch: int = 0, start: int = 0) -> Iterator[Example]:
        return ahead(lambda: self.source.elements(epoch, start), self.depth)


def _close(inner: Iterator[Example]) -> None:
    """End what a generator holds, a thread or a file, now and not when it is collected."""
    if (close := getattr(inner, "close", None)) is not None:
        close()


__all__ = ["Batched", "Dataset", "FromFile", "Mapped", "Prefetched", "Shuffled", "Table", "Taken"]
