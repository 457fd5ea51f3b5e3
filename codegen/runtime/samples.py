"""Calls with one sample: inputs without the axis of the batch, and results without it too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .extents import Extent
from .manifest import MethodSpec, leaves
from .prepared import Array, Prepared, arrays_of, nested


class Samples:
    """Where the axis of the batch is in the inputs and results of a method."""

    def __init__(self, spec: MethodSpec) -> None:
        self.spec = spec
        self.inputs = [_places(i.shape, spec.batch) for i in spec.inputs]
        buffers = spec.variants[-1].buffers
        self.results = [_places(buffers[b].shape, spec.batch) for b in leaves(spec.result)]
        # an index with None for the axis of the batch: a tenth of the time of np.expand_dims
        self._inward = [_index(len(i.shape), p) for i, p in zip(spec.inputs, self.inputs, strict=True)]
        self.possible = any(self.inputs) and all(len(places) < 2 for places in self.inputs)

    def lacking(self, arrays: Sequence[Array]) -> bool:
        """Whether each of the arrays would have the right rank with the axis of the batch, and lacks it."""
        return self.possible and all(a.ndim == len(i.shape) - len(p) for a, i, p in zip(arrays, self.spec.inputs, self.inputs, strict=True))

    def count(self, args: Sequence[Any]) -> int:
        """The extent of the axis of the batch in these inputs; 1 where there is none."""
        for a, i, p in zip(args, self.spec.inputs, self.inputs):  # noqa: B905    # a wrong number of inputs is told elsewhere
            if p and i.counts:
                return int(a)
            shape = np.shape(a)
            if p and len(shape) == len(i.shape):
                return int(shape[p[0]])
        return 1

    def whole(self, args: Sequence[Any]) -> tuple[Array, ...]:
        """The inputs as a batch of one: views."""
        return tuple(a[at] if p else a for a, at, p in zip(args, self._inward, self.inputs))  # noqa: B905    # strict= costs 40 ns


class OneSample:
    """A method made ready for a batch of one, to be called without the axis of the batch."""

    bytes = 0  # it is the memory of the other

    def __init__(self, prepared: Prepared, samples: Samples) -> None:
        self._prepared, self._samples = prepared, samples
        self.leaf_specs = [
            (tuple(n for axis, n in enumerate(shape) if axis not in places), dtype)
            for (shape, dtype), places in zip(prepared.leaf_specs, samples.results, strict=True)
        ]

    def __call__(self, args: Sequence[Any]) -> Any:
        result = self._samples.spec.result
        made = arrays_of(result, self._prepared(self._samples.whole(args)))
        return nested(result, iter([a.squeeze(p) for a, p in zip(made, self._samples.results, strict=True)]))

    def write(self, args: Sequence[Array], out: Sequence[Array]) -> None:
        """As of Prepared, to arrays without the axis of the batch."""
        self._prepared.write(self._samples.whole(args), [np.expand_dims(a, p) for a, p in zip(out, self._samples.results, strict=True)])

    def takes(self, out: Array) -> bool:
        return False


def _index(rank: int, places: tuple[int, ...]) -> tuple[slice | None, ...]:
    return tuple(None if axis in places else slice(None) for axis in range(rank))


def _places(shape: Sequence[Extent], batch: str | None) -> tuple[int, ...]:
    return tuple(axis for axis, extent in enumerate(shape) if batch is not None and extent == batch)


__all__ = ["OneSample", "Samples"]
