"""A method made ready for one set of input shapes: everything but the numbers is decided, so that a call only fills in and runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import threads
from .complexes import complex_of, parts_of
from .extents import evaluate, shape_of
from .ffi import Function, Tensor
from .manifest import MethodSpec, Step, Variant, is_complex, leaves
from .memory import ResultPool, aligned, allocate, plan
from .tensors import borrow

Array = np.ndarray[Any, Any]
SMALL = 16 << 10  # bytes up to which copying an array costs less than handing it over
_KEPT_FRAMES = 8


class NegativeExtent(Exception):
    """The inputs are too small for the algorithm."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        super().__init__(name, shape)
        self.name, self.shape = name, shape


class Frame:
    """The memory of one call in flight, and its kernel calls with their arguments."""

    __slots__ = ("arena", "results", "slots", "staging", "steps")

    def __init__(self) -> None:
        self.steps: list[tuple[Callable[..., Any], list[Any]]] = []
        self.staging: list[Array | None] = []
        self.results: list[Array | None] = []
        self.slots: dict[int, list[tuple[list[Any], int]]] = {}
        self.arena: Array | None = None

    def put(self, buffer: int, tensor: Tensor | None) -> None:
        for arguments, position in self.slots[buffer]:
            arguments[position] = tensor


class Prepared:
    """Callable with arrays of exactly these shapes and dtypes; safe to call from several threads.

    `fixed` holds the arrays of parameters and packed constants by buffer. `threads` is 0 where no kernel is parallel.
    `done` is called at the end of each call that changes state.
    """

    def __init__(
        self,
        method: MethodSpec,
        variant: Variant,
        symbols: Mapping[str, int],
        functions: Callable[[str], Function],
        fixed: Mapping[int, Array],
        thread_count: int,
        done: Callable[[], None] | None = None,
    ) -> None:
        self._done = done
        self.variant, self.symbols, self._functions, self._fixed, self._threads = variant, symbols, functions, fixed, thread_count
        self._shapes = [shape_of(b.shape, symbols) for b in variant.buffers]
        for buffer, shape in zip(variant.buffers, self._shapes, strict=True):
            if any(n < 0 for n in shape):
                raise NegativeExtent(buffer.name, shape)
        self.sizes = [b.numpy.itemsize * int(np.prod(s, dtype=np.int64)) for b, s in zip(variant.buffers, self._shapes, strict=True)]
        self._inputs = [i.buffer for i in method.inputs]
        self._outputs = list(dict.fromkeys(b for b in leaves(method.result) if variant.buffers[b].kind == "output"))
        self._leaves = list(leaves(method.result))
        self._plain = self._leaves == self._outputs
        self.leaf_specs = [(self._shapes[b], variant.buffers[b].numpy) for b in self._leaves]
        """Shape and dtype of every array of the result, in its order."""
        alone = "buffer" in method.result and not is_complex(method.result)
        self._single = self._plain and alone
        self._nest = None if alone else _nest(method.result)
        lifetimes = _lifetimes(variant.steps) | {new: (0, len(variant.steps)) for new, _ in variant.copies}
        self.lifetimes = lifetimes
        self._changes = bool(method.updates)
        self._lodgers = self._lodging(lifetimes)
        homeless = [b for b in lifetimes if b not in self._outputs and b not in self._lodgers]
        held = [b for b in homeless if variant.buffers[b].kind in ("temporary", "output")]
        offsets, self.arena_bytes = plan([self.sizes[b] for b in held], [lifetimes[b] for b in held])
        self._offsets = dict(zip(held, offsets, strict=True))
        self._tiny = all(self._small(b) for b in (*self._inputs, *self._outputs))
        self._pools = {b: ResultPool(self._shapes[b], variant.buffers[b].numpy) for b in self._outputs if not self._small(b)}
        self._free: deque[Frame] = deque(maxlen=_KEPT_FRAMES)
        self.bytes = self.arena_bytes + sum(self.sizes[b] for b in self._outputs)

    def __call__(self, args: Sequence[Any]) -> Any:
        if self._threads and threads.here.count != self._threads:
            threads.use(self._threads)
        try:
            frame = self._free.pop()
        except IndexError:
            frame = self._frame()
        if self._tiny:
            for place, value in zip(frame.staging, args):  # noqa: B905    # strict= costs 40 ns
                place[...] = value  # type: ignore[index]
            for function, arguments in frame.steps:
                function(*arguments)
            if self._single:
                result = frame.results[0].copy()  # type: ignore[union-attr]
                self._free.append(frame)
                return result
            arrays: list[Array] = frame.results  # type: ignore[assignment]
        else:
            arrays = self._run(frame, args, {})
        arrays = [a if b in self._pools else a.copy() for a, b in zip(arrays, self._outputs, strict=True)]
        self._free.append(frame)
        if not self._plain:
            arrays = self._ordered(arrays, args)
        return arrays[0] if self._nest is None else self._nest(arrays)

    def write(self, args: Sequence[Array], out: Sequence[Array]) -> None:
        """Call, and leave the result's arrays in those of `out`, which must have the shapes and dtypes of `leaf_specs`."""
        if self._threads and threads.here.count != self._threads:
            threads.use(self._threads)
        try:
            frame = self._free.pop()
        except IndexError:
            frame = self._frame()
        if self._tiny:
            for place, value in zip(frame.staging, args):  # noqa: B905
                place[...] = value  # type: ignore[index]
            for function, arguments in frame.steps:
                function(*arguments)
            arrays: list[Array] = frame.results  # type: ignore[assignment]
        else:
            arrays = self._run(frame, args, dict(zip(self._leaves, out, strict=True)))
        if not self._plain:
            sources = self._sources(arrays, args)
            arrays = [sources[b] for b in self._leaves]
        for source, target in zip(arrays, out):  # noqa: B905
            if target is not source:
                target[...] = source
        self._free.append(frame)

    def takes(self, out: Array) -> bool:
        """Whether `out` is fit to be the result: the quick way to say yes, for one array, before anything is looked at closely."""
        return self._nest is None and (out.shape, out.dtype) == self.leaf_specs[0] and out.flags.writeable

    def _run(self, frame: Frame, args: Sequence[Array], targets: Mapping[int, Array]) -> list[Array]:
        """The outputs after a run: small ones still the frame's own, the others pooled or of `targets`."""
        for i, buffer in enumerate(self._inputs):
            self._hand_over(frame, i, buffer, args[i])
        arrays: list[Array] = []
        for j, buffer in enumerate(self._outputs):
            target = targets.get(buffer)
            if buffer not in self._pools:
                arrays.append(frame.results[j])  # type: ignore[arg-type]
            elif target is not None and (tensor := self._direct(buffer, target, args)) is not None:
                frame.put(buffer, tensor)
                arrays.append(target)
            else:
                block = self._pools[buffer].take()
                frame.put(buffer, block.tensor)
                arrays.append(block.lend())
        for function, arguments in frame.steps:
            function(*arguments)
        for buffer in frame.slots:
            frame.put(buffer, None)
        return arrays

    def _hand_over(self, frame: Frame, i: int, buffer: int, value: Array) -> None:
        place = frame.staging[i]
        if buffer in frame.slots:
            tensor = borrow(value, self.variant.buffers[buffer].alignment)
            if tensor is not None:
                frame.put(buffer, tensor)
                return
            if place is None:
                place = frame.staging[i] = aligned(self._shapes[buffer], self.variant.buffers[buffer].numpy)
            frame.put(buffer, borrow(place))
        if place is not None:
            place[...] = value

    def _direct(self, buffer: int, target: Array, args: Sequence[Array]) -> Tensor | None:
        """The caller's own array for kernels to write to, unless it overlaps an input."""
        if any(np.may_share_memory(target, a) for a in args):
            return None
        return borrow(target, self.variant.buffers[buffer].alignment)

    def _ordered(self, arrays: list[Array], args: Sequence[Array]) -> list[Array]:
        """The arrays of the result where it repeats some, or returns an input or a parameter: no two share memory."""
        sources = self._sources(arrays, args)
        used: set[int] = set()
        ordered = []
        for b in self._leaves:
            ordered.append(sources[b] if b in self._outputs and b not in used else np.array(sources[b], self.variant.buffers[b].numpy))
            used.add(b)
        return ordered

    def _sources(self, arrays: Sequence[Array], args: Sequence[Array]) -> dict[int, Array]:
        return {**dict(zip(self._inputs, args, strict=True)), **self._fixed, **dict(zip(self._outputs, arrays, strict=True))}

    def _lodging(self, lifetimes: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Temporaries that live in a result of the same form before the result itself is begun: a chain then needs two buffers in all."""
        found: dict[int, int] = {}
        for result in self._outputs:
            until = lifetimes.get(result, (0, 0))[0]
            for b, (first, last) in sorted(lifetimes.items(), key=lambda item: -item[1][1]):
                buffer, same = self.variant.buffers[b], self.variant.buffers[result]
                fits = buffer.kind == "temporary" and buffer.dtype == same.dtype and self._shapes[b] == self._shapes[result]
                if fits and b not in found and last < until:
                    found[b], until = result, first
        return found

    def _small(self, buffer: int) -> bool:
        return self.sizes[buffer] <= SMALL

    def _frame(self) -> Frame:
        frame = Frame()
        frame.arena = allocate(self.arena_bytes + 1)
        arrays: dict[int, Array] = dict(self._fixed)
        for b, buffer in enumerate(self.variant.buffers):
            if b in self._offsets:
                arrays[b] = aligned(self._shapes[b], buffer.numpy, frame.arena, self._offsets[b])
            elif buffer.kind in ("input", "output") and self._small(b):
                arrays[b] = aligned(self._shapes[b], buffer.numpy)
        frame.staging = [arrays.get(b) for b in self._inputs]
        frame.results = [arrays.get(b) for b in self._outputs]
        tensors = {b: borrow(array) for b, array in arrays.items()}
        frame.slots = {b: [] for b in (*self._inputs, *self._outputs) if b not in tensors}
        for step in self.variant.steps:
            used = [self._lodgers.get(b, b) for b in step.arguments]
            arguments: list[Any] = [tensors.get(b) for b in used]
            for position, b in enumerate(used):
                if b in frame.slots:
                    frame.slots[b].append((arguments, position))
            arguments += [evaluate(s, self.symbols) for s in step.symbols]
            frame.steps.append((self._functions(step.kernel), arguments))
        frame.steps += [(np.copyto, [arrays[held], arrays[new]]) for new, held in self.variant.copies]
        if self._changes:
            frame.steps = [(_whole, [[*frame.steps, *([(self._done, [])] if self._done else [])]])]
        return frame


def _whole(steps: Sequence[tuple[Callable[..., Any], list[Any]]]) -> None:
    """All steps, even where Ctrl-C comes between two of them: state is that of a whole call or of none.

    A kernel that fails itself, for want of memory, ends the call where it is.
    """
    left = iter(steps)
    try:
        for function, arguments in left:
            function(*arguments)
    except KeyboardInterrupt:
        for function, arguments in left:
            function(*arguments)
        raise


def _lifetimes(steps: Sequence[Step]) -> dict[int, tuple[int, int]]:
    """First and last step that uses a buffer."""
    found: dict[int, tuple[int, int]] = {}
    for i, step in enumerate(steps):
        for buffer in step.arguments:
            found[buffer] = (found.get(buffer, (i, i))[0], i)
    return found


def _nest(result: Mapping[str, Any]) -> Callable[[Sequence[Array]], Any]:
    """A function from the result's arrays, in order, to the nest of dicts, tuples and lists that the method returns."""
    match result:
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
