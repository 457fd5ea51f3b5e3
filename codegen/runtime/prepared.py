"""A method made ready for one set of input shapes: everything but the numbers is decided, so that a call only fills in and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int64
from functools import cached_property
from typing import Any

import numpy as np

from . import threads
from .complexes import complex_of, parts_of
from .counting import counted
from .entry import Library
from .extents import shape_of
from .ffi import Function
from .manifest import MethodSpec, Step, Variant, is_complex, leaves
from .memory import plan
from .native import Native, can_run
from .stepwise import Stepwise

Array = np.ndarray[Any, Any]


class NegativeExtent(Exception):
    """The inputs are too small for the algorithm."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        super().__init__(name, shape)
        self.name, self.shape = name, shape


class Prepared:
    """Callable with arrays of exactly these shapes and dtypes; safe to call from several threads.

    `fixed` holds the arrays of parameters and packed constants by buffer. `threads` is 0 where no kernel is parallel. `calls` counts those
    that have changed state. `library` gives the entry of the kernels' library, if it has one.
    """

    def __init__(
        self,
        method: MethodSpec,
        variant: Variant,
        symbols: Mapping[str, int],
        functions: Callable[[str], Function],
        fixed: Mapping[int, Array],
        thread_count: int,
        calls: c_int64 | None = None,
        library: Callable[[], Library | None] = lambda: None,
    ) -> None:
        self._calls, self._library = calls, library
        self.counts = {s.count.symbol: s.count.most for s in variant.steps if s.count is not None}
        """What the extents are at most that are known only while the steps run."""
        symbols = {**symbols, **self.counts}
        self.requires = [r for r in method.requires if r.symbols & self.counts.keys()]
        self.counted = {b for b, buffer in enumerate(variant.buffers) if counted(buffer.shape, self.counts)}
        self.variant, self.symbols, self.functions, self.fixed, self.threads = variant, symbols, functions, fixed, thread_count
        self.updates = method.updates
        self.shapes = [shape_of(b.shape, symbols) for b in variant.buffers]
        for buffer, shape in zip(variant.buffers, self.shapes, strict=True):
            if any(n < 0 for n in shape):
                raise NegativeExtent(buffer.name, shape)
        self.sizes = [b.numpy.itemsize * int(np.prod(s, dtype=np.int64)) for b, s in zip(variant.buffers, self.shapes, strict=True)]
        self.inputs = [i.buffer for i in method.inputs]
        self.outputs = list(dict.fromkeys(b for b in leaves(method.result) if variant.buffers[b].kind == "output"))
        self._leaves = list(leaves(method.result))
        self.plain = self._leaves == self.outputs
        """Whether the result's arrays are the outputs, in their order."""
        self.leaf_specs = [(self.shapes[b], variant.buffers[b].numpy) for b in self._leaves]
        """Shape and dtype of every array of the result, in its order."""
        self.single = self.plain and _is_array(method.result)
        self._nest = nest_of(method.result)
        lifetimes = _lifetimes(variant.steps) | {new: (0, len(variant.steps)) for new, _ in variant.copies}
        self.lifetimes = lifetimes
        self.lodgers = self._lodging(lifetimes)
        homeless = [b for b in lifetimes if b not in self.outputs and b not in self.lodgers]
        held = [b for b in homeless if variant.buffers[b].kind in ("temporary", "output")]
        offsets, self.arena_bytes = plan([self.sizes[b] for b in held], [lifetimes[b] for b in held])
        self.offsets = dict(zip(held, offsets, strict=True))
        self.bytes = self.arena_bytes + sum(self.sizes[b] for b in self.outputs)

    @cached_property
    def run(self) -> Native | Stepwise:
        """What runs the kernels: in one foreign call, where that can be."""
        library = self._library()
        if library is not None and self._calls is not None and can_run(self):
            return Native(self, library, self._calls)
        return Stepwise(self, self._calls)

    def __call__(self, args: Sequence[Any]) -> Any:
        if self.threads and threads.here.count != self.threads:
            threads.use(self.threads)
        arrays = self.run(args)
        if not self.plain:
            arrays = self._ordered(arrays, args)
        return arrays[0] if self._nest is None else self._nest(arrays)

    def write(self, args: Sequence[Array], out: Sequence[Array]) -> None:
        """Call, and leave the result's arrays in those of `out`, which must have the shapes and dtypes of `leaf_specs`."""
        if self.threads and threads.here.count != self.threads:
            threads.use(self.threads)
        if self.plain and self.run.write(args, out):
            return
        sources = self._sources(self.run(args), args)
        for b, target in zip(self._leaves, out, strict=True):
            target[...] = sources[b]

    def takes(self, out: Array) -> bool:
        """Whether `out` is fit to be the result: the quick way to say yes, for one array, before anything is looked at closely."""
        return self._nest is None and not self.counted and (out.shape, out.dtype) == self.leaf_specs[0] and out.flags.writeable

    def _ordered(self, arrays: Sequence[Array], args: Sequence[Array]) -> list[Array]:
        """The arrays of the result where it repeats some, or returns an input or a parameter: no two share memory."""
        sources = self._sources(arrays, args)
        used: set[int] = set()
        ordered = []
        for b in self._leaves:
            ordered.append(sources[b] if b in self.outputs and b not in used else np.array(sources[b], self.variant.buffers[b].numpy))
            used.add(b)
        return ordered

    def _sources(self, arrays: Sequence[Array], args: Sequence[Array]) -> dict[int, Array]:
        return {**dict(zip(self.inputs, args, strict=True)), **self.fixed, **dict(zip(self.outputs, arrays, strict=True))}

    def _lodging(self, lifetimes: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Temporaries that live in a result of the same form before the result itself is begun: a chain then needs two buffers in all."""
        found: dict[int, int] = {}
        for result in self.outputs:
            until = lifetimes.get(result, (0, 0))[0]
            for b, (first, last) in sorted(lifetimes.items(), key=lambda item: -item[1][1]):
                buffer, same = self.variant.buffers[b], self.variant.buffers[result]
                fits = buffer.kind == "temporary" and buffer.dtype == same.dtype and self.shapes[b] == self.shapes[result]
                if fits and b not in found and last < until and not {b, result} & self.counted:
                    found[b], until = result, first
        return found


def _lifetimes(steps: Sequence[Step]) -> dict[int, tuple[int, int]]:
    """First and last step that uses a buffer."""
    found: dict[int, tuple[int, int]] = {}
    for i, step in enumerate(steps):
        for buffer in step.arguments:
            found[buffer] = (found.get(buffer, (i, i))[0], i)
    return found


def nest_of(result: Mapping[str, Any]) -> Callable[[Sequence[Array]], Any] | None:
    """A function from the result's arrays, in order, to the nest of dicts, tuples and lists that the method returns; None of one array."""
    match result:
        case {"buffer": _} if _is_array(result):
            return None
        case {"dict": items} if all(_is_array(part) for _, part in items):
            keys = [key for key, _ in items]
            return lambda arrays: dict(zip(keys, arrays))  # noqa: B905
        case {"tuple": parts} if all(map(_is_array, parts)):
            return tuple
        case {"list": parts} if all(map(_is_array, parts)):
            return list
    return lambda arrays: nested(result, iter(arrays))


def _is_array(part: Mapping[str, Any]) -> bool:
    return "buffer" in part and not is_complex(part)


def nested(result: Mapping[str, Any], arrays: Any) -> Any:
    """The nest that the method returns, of its arrays in order."""
    match result:
        case {"dict": items}:
            return {key: nested(part, arrays) for key, part in items}
        case {"tuple": parts}:
            return tuple(nested(part, arrays) for part in parts)
        case {"list": parts}:
            return [nested(part, arrays) for part in parts]
        case {"none": True}:
            return None
        case {"complex": True}:
            return complex_of(next(arrays))
    return next(arrays)


def arrays_of(result: Mapping[str, Any], value: Any) -> list[Any]:
    """The arrays of a value that is built like `result`, in its order; of complex ones their parts. Raises KeyError, TypeError, ValueError
    or IndexError."""
    match result:
        case {"dict": items}:
            if len(value) != len(items):
                raise ValueError
            return [leaf for key, part in items for leaf in arrays_of(part, value[key])]
        case {"tuple": parts} | {"list": parts}:
            return [leaf for part, v in zip(parts, value, strict=True) for leaf in arrays_of(part, v)]
        case {"none": True}:
            return []
        case {"complex": True} if isinstance(value, np.ndarray):
            return [parts_of(value)]
    return [value]
