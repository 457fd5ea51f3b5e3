"""A method made ready for inputs of some shapes, run one foreign call for each kernel: where some steps are functions of Python's, and for
libraries without an entry of their own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int64
from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np

from .counting import Counting
from .extents import evaluate
from .ffi import Tensor
from .memory import ResultPool, aligned, allocate
from .tensors import borrow

if TYPE_CHECKING:
    from .prepared import Prepared

Array = np.ndarray[Any, Any]
SMALL = 16 << 10  # bytes up to which copying an array costs less than handing it over
_KEPT_FRAMES = 8


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


class Stepwise:
    """Callable with arrays of exactly the shapes and dtypes that were prepared. `calls` counts those that have changed state."""

    def __init__(self, prepared: Prepared, calls: c_int64 | None) -> None:
        self._prepared: Prepared = proxy(prepared)  # type: ignore[assignment]    # which holds this
        self._calls = calls
        self._buffers = prepared.variant.buffers
        self._pools = {b: ResultPool(prepared.shapes[b], self._buffers[b].numpy) for b in prepared.outputs if not self._small(b)}
        self._free: deque[Frame] = deque(maxlen=_KEPT_FRAMES)

    def __call__(self, args: Sequence[Any]) -> Sequence[Array]:
        """The outputs, each an array of the caller's own."""
        frame = self._taken()
        arrays = self._run(frame, args, {})
        arrays = [a if b in self._pools else a.copy() for a, b in zip(arrays, self._prepared.outputs, strict=True)]
        self._free.append(frame)
        return arrays

    def write(self, args: Sequence[Array], out: Sequence[Array]) -> bool:
        """Run, and leave the outputs in these arrays."""
        frame = self._taken()
        for source, target in zip(self._run(frame, args, dict(zip(self._prepared.outputs, out, strict=True))), out, strict=True):
            if target is not source:
                target[...] = source
        self._free.append(frame)
        return True

    @property
    def arenas(self) -> list[Array]:
        """The memory between kernels of the calls that may run at a time."""
        return [frame.arena for frame in self._free if frame.arena is not None]

    def _taken(self) -> Frame:
        try:
            return self._free.pop()
        except IndexError:
            return self._frame()

    def _run(self, frame: Frame, args: Sequence[Array], targets: Mapping[int, Array]) -> list[Array]:
        """The outputs after a run: small ones still the frame's own, the others pooled or of `targets`."""
        for i, buffer in enumerate(self._prepared.inputs):
            self._hand_over(frame, i, buffer, args[i])
        arrays: list[Array] = []
        for j, buffer in enumerate(self._prepared.outputs):
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
        if self._prepared.counted:  # which only now are as long as they are
            kept: list[Any] = frame.results
            arrays = [kept[j] if b in self._prepared.counted else arrays[j] for j, b in enumerate(self._prepared.outputs)]
        return arrays

    def _hand_over(self, frame: Frame, i: int, buffer: int, value: Array) -> None:
        place = frame.staging[i]
        if buffer in frame.slots:
            tensor = borrow(value, self._buffers[buffer].alignment)
            if tensor is not None:
                frame.put(buffer, tensor)
                return
            if place is None:
                place = frame.staging[i] = aligned(self._prepared.shapes[buffer], self._buffers[buffer].numpy)
            frame.put(buffer, borrow(place))
        if place is not None:
            place[...] = value

    def _direct(self, buffer: int, target: Array, args: Sequence[Array]) -> Tensor | None:
        """The caller's own array for kernels to write to, unless it overlaps an input."""
        if any(np.may_share_memory(target, a) for a in args):
            return None
        return borrow(target, self._buffers[buffer].alignment)

    def _small(self, buffer: int) -> bool:
        """Whether it is copied: cheaply, or because only a beginning of it is the result."""
        return self._prepared.sizes[buffer] <= SMALL or buffer in self._prepared.counted

    def _frame(self) -> Frame:
        p = self._prepared
        frame = Frame()
        frame.arena = allocate(p.arena_bytes + 1)
        arrays: dict[int, Array] = dict(p.fixed)
        for b, buffer in enumerate(self._buffers):
            if b in p.offsets:
                arrays[b] = aligned(p.shapes[b], buffer.numpy, frame.arena, p.offsets[b])
            elif buffer.kind in ("input", "output") and self._small(b):
                arrays[b] = aligned(p.shapes[b], buffer.numpy)
        frame.staging = [arrays.get(b) for b in p.inputs]
        frame.results = [arrays.get(b) for b in p.outputs]
        tensors = {b: borrow(array) for b, array in arrays.items()}
        frame.slots = {b: [] for b in (*p.inputs, *p.outputs) if b not in tensors}
        symbols, later = dict(p.symbols), list[Counting]()
        places: dict[int, list[tuple[list[Any], int]]] = {b: [] for b in p.counted if b in arrays}
        for step in p.variant.steps:
            used = [p.lodgers.get(b, b) for b in step.arguments]
            if step.count is not None:
                for counting in later:
                    counting.leave(step.count)
                later.append(Counting(step.count, arrays[used[0]], symbols, p.requires))
                frame.steps.append((later[-1], []))
                continue
            arguments: list[Any] = [tensors.get(b) for b in used]
            for position, b in enumerate(used):
                if b in frame.slots:
                    frame.slots[b].append((arguments, position))
                elif b in places:
                    places[b].append((arguments, position))
            for s in step.symbols:
                for counting in later:
                    counting.extent(s, (arguments, len(arguments)))
                arguments.append(evaluate(s, p.symbols))
            frame.steps.append((p.functions(step.kernel), arguments))
        for counting in later:
            for b, those in places.items():
                counting.tensor(arrays[b], self._buffers[b].shape, those, (frame.results, p.outputs.index(b)) if b in p.outputs else None)
        frame.steps += [(np.copyto, [arrays[held], arrays[new]]) for new, held in p.variant.copies]
        if p.updates:
            frame.steps = [(_whole, [[*frame.steps, (self._done, [])]])]
        return frame

    def _done(self) -> None:
        if self._calls is not None:
            self._calls.value += 1


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


__all__ = ["SMALL", "Stepwise"]
