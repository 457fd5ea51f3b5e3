"""Small real data sets that come with scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .dataset import Dataset, Table
from .examples import Example, each, parts
from .order import Numbers, permuted
from .refusals import refused
from .sources import arranged

PARTS = ("all", "train", "test")


@dataclass(frozen=True, eq=False)
class Sample(Table):
    """A data set, or its training or test part: four fifths and one fifth, the same ones every time."""

    load: Callable[[], Any]
    part: str

    @cached_property
    def loaded(self) -> Any:
        whole = self.load()
        if self.part == "all":
            return whole
        count = len(next(iter(parts(whole).values())))
        order = permuted(0, 0, count, np.arange(count))
        fifth = count // 5
        chosen = np.sort(order[:fifth] if self.part == "test" else order[fifth:])
        return each(lambda a: a[chosen], whole)

    @property
    def size(self) -> int:
        return len(next(iter(parts(self.loaded).values())))

    def rows(self, numbers: Numbers) -> Example:
        return each(lambda a: a[numbers], self.loaded)


def _sample(load: Callable[[], Any], part: str, batch_size: int | None, shuffle: int | None, drop_last: bool) -> Dataset:
    from importlib.util import find_spec

    if find_spec("sklearn") is None:
        raise refused("R206", "data that comes with scikit-learn", "it is not installed", "pip install 'fluorite[examples]'")
    if part not in PARTS:
        raise refused("R201", f"part={part!r}", "there is no such part", *PARTS)
    return arranged(Sample(load, part), batch_size, shuffle, drop_last)


def digits(
    batch_size: int | None = None, *, shuffle: int | None = None, drop_last: bool = False, part: str = "all", labels: bool = False
) -> Dataset:
    """1,797 handwritten digits of 8 by 8 pixels (Alpaydin and Kaynak, 1998): tuples of float32 [64] from 0 to 1; with `labels`, and int32.

    `part` is all, train (1,438) or test (359). Needs scikit-learn.
    """

    def load() -> Any:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped]

        found = load_digits()
        pixels = (found.data / 16).astype(np.float32)
        return (pixels, found.target.astype(np.int32)) if labels else (pixels,)

    return _sample(load, part, batch_size, shuffle, drop_last)


def diabetes(batch_size: int | None = None, *, shuffle: int | None = None, drop_last: bool = False, part: str = "all") -> Dataset:
    """442 patients (Efron et al., 2004): dicts of x, float32 [10], measurements scaled to mean 0 and variance 1; and y,
    float32 [1], the progression of the disease after a year, from 25 to 346.

    `part` is all, train (354) or test (88). Needs scikit-learn.
    """

    def load() -> Any:
        from sklearn.datasets import load_diabetes

        found = load_diabetes()
        x = found.data * np.sqrt(len(found.data))  # scikit-learn scales each column to a norm of 1
        return {"x": x.astype(np.float32), "y": found.target.astype(np.float32)[:, None]}

    return _sample(load, part, batch_size, shuffle, drop_last)


__all__ = ["Sample", "diabetes", "digits"]
