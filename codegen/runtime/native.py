"""A method made ready for inputs of some shapes, as the library's entry runs it: all kernels in one call, on the caller's arrays."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from ctypes import POINTER, addressof, c_int64, c_void_p, pointer
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np

from . import threads
from .entry import Library
from .extents import evaluate
from .ffi import Function
from .memory import aligned, allocate, own
from .structures import ALIGNED, C_CONTIGUOUS, INTEGER, KEPT, TENSOR, WRITEABLE, Form, Frame, Step, Tensor, Value, Want
from .tensors import bits_of

if TYPE_CHECKING:
    from .prepared import Prepared

Array = np.ndarray[Any, Any]
_FROM_NUMPY = 16 << 10
"""Bytes up to which NumPy's own memory is as good for a result; what is larger starts at a multiple of 64, and is kept in large pages."""
_NUMPY_ALIGNMENT = 16
_LOCKED = 4096
"""Elements, of all that kernels read and write, up to which other threads wait: handing Python's lock over takes longer."""
_ATTEMPTS = 8  # other threads may take a frame that was just added
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_PLAIN = 1  # `dtype.isbuiltin` of NumPy's own


class Native:
    """What `entry.c` needs to run a method that was prepared. There are as many frames as calls have run at a time."""

    def __init__(self, prepared: Prepared, library: Library, calls: c_int64) -> None:
        self.prepared: Prepared = proxy(prepared)  # type: ignore[assignment]    # which holds this
        self._library = library
        self._lock = threading.Lock()
        self._held: list[Any] = [prepared.fixed]  # a thread may be in the middle of a call when the method forgets them
        self.arenas: list[Array] = []
        buffers = prepared.variant.buffers
        self._shapes = [(c_int64 * max(len(s), 1))(*s) for s in prepared.shapes]
        self._strides = [(c_int64 * max(len(s), 1))(*_strides(s)) for s in prepared.shapes]
        self.changed = [a for b, a in prepared.fixed.items() if buffers[b].kind == "parameter" and buffers[b].name in prepared.updates]
        self.form = self._form(calls)
        self._entrance = library.entrance()
        self._entrance.know([self.form], ())

    def __call__(self, args: Sequence[Any]) -> Sequence[Array]:
        """The outputs, each an array of the caller's own."""
        found = self._entrance.call(*args)
        if found is None:
            found = self._entered(self._entrance.call, self._fitted(args))
        assert found is not None, "what was fitted does not fit"
        return (found,) if self.form.single else found

    def write(self, args: Sequence[Array], out: Sequence[Array]) -> bool:
        """Run on the memory of `out` itself, one array for each output; False, and nothing is done, if it cannot be so."""
        return bool(self._entrance.write(*args, *out) or self._entered(self._entrance.write, (*self._fitted(args), *out)))

    def _entered(self, enter: Callable[..., Any], args: Sequence[Array]) -> Any:
        threads.share()
        for _ in range(_ATTEMPTS):
            if not self.form.free and not self.form.added:
                self._add_frame()
            if (found := enter(*args)) is not None:
                return found
        return None

    def _fitted(self, args: Sequence[Any]) -> list[Array]:
        return [self._fit(b, value) for b, value in zip(self.prepared.inputs, args, strict=True)]

    def _fit(self, b: int, value: Any) -> Array:
        """An input as the entry takes it: a copy only where its memory does not do."""
        buffer = self.prepared.variant.buffers[b]
        dtype = buffer.numpy
        array = value if value.__class__ is np.ndarray else np.asarray(value)
        if array.dtype == dtype and array.dtype is not dtype:
            array = array.view(dtype)
        address = array.ctypes.data
        fits = array.dtype is dtype and array.flags.c_contiguous and address and not address % buffer.alignment
        if fits and not any(np.may_share_memory(array, held) for held in self.changed):
            return array
        made = aligned(array.shape, dtype)
        made[...] = array
        return made

    # ------------------------------------------------------------ structures
    def _form(self, calls: c_int64) -> Form:
        p = self.prepared
        buffers, ends = p.variant.buffers, [*p.inputs, *p.outputs]
        wants = (Want * max(len(ends), 1))(*(self._want(b, n >= len(p.inputs)) for n, b in enumerate(ends)))
        kept = np.full((max(len(p.outputs), 1), KEPT), None, object)
        fresh = [
            partial(own, p.shapes[b], buffers[b].numpy) if p.sizes[b] > _FROM_NUMPY or buffers[b].alignment > _NUMPY_ALIGNMENT else None
            for b in p.outputs
        ]
        makers = (c_void_p * max(len(fresh), 1))(*(None if f is None else id(f) for f in fresh))
        ranges = [n for a in self.changed for n in (a.ctypes.data, a.ctypes.data + a.nbytes)]
        changed = (c_int64 * max(len(ranges), 1))(*ranges)
        oldest = (c_int64 * max(len(fresh), 1))()
        self._held += [wants, kept, fresh, makers, changed, oldest, calls]
        elements = sum(p.sizes[b] // buffers[b].numpy.itemsize for b in {b for s in p.variant.steps for b in s.arguments})
        return Form(
            owner=id(self),
            host=pointer(self._library.host),
            inputs=len(p.inputs),
            outputs=len(p.outputs),
            steps=len(p.variant.steps) + len(p.variant.copies),
            single=p.single,
            unlocked=elements > _LOCKED or any(s.unbounded for s in p.variant.steps),
            wants=wants,
            kept=kept.ctypes.data,
            makers=makers,
            oldest=oldest,
            free=None,
            added=None,
            calls=pointer(calls) if p.updates else None,
            changing=len(self.changed),
            changed=changed,
            raises=id(self._library.raises),
            threads=p.threads,
        )

    def _want(self, b: int, is_output: bool) -> Want:
        p = self.prepared
        buffer = p.variant.buffers[b]
        dtype = buffer.numpy
        plain = dtype.isbuiltin == _PLAIN and not p.shapes[b]
        return Want(
            element=id(dtype),
            scalar=id(dtype.type) if plain else None,
            axes=len(p.shapes[b]),
            extents=self._shapes[b],
            flags=C_CONTIGUOUS | ALIGNED | (WRITEABLE if is_output else 0),
            mask=buffer.alignment - 1,
            bytes=p.sizes[b],
            given={"float32": 32, "float64": 64}.get(dtype.name, 0) if plain else 0,
        )

    def _add_frame(self) -> None:
        """Memory for one more call at a time. Raises MemoryError."""
        p = self.prepared
        arena = allocate(p.arena_bytes + 1)
        start = arena.ctypes.data
        ends = [*p.inputs, *p.outputs]
        addresses = {b: start + at for b, at in p.offsets.items()} | {b: a.ctypes.data for b, a in p.fixed.items()} | dict.fromkeys(ends, 0)
        tensors = {b: self._tensor(b, address) for b, address in addresses.items()}
        steps = [self._step(s, tensors) for s in p.variant.steps]
        steps += [self._copy(addresses[held], addresses[new], p.sizes[new]) for new, held in p.variant.copies]
        listed = (Step * max(len(steps), 1))(*steps)
        places = (POINTER(Tensor) * max(len(ends), 1))(*(pointer(tensors[b]) for b in ends))
        frame = Frame(steps=listed, places=places)
        with self._lock:
            if not self.form.added:  # calls of other threads only take it away
                self.arenas.append(arena)
                self._held.append((tensors, steps, listed, places, frame))
                self.form.added = pointer(frame)

    def _tensor(self, b: int, address: int) -> Tensor:
        bits = bits_of(np.empty(0, self.prepared.variant.buffers[b].numpy)).dtype
        shape = self.prepared.shapes[b]
        return Tensor(address, 1, 0, len(shape), _CODES[bits.kind], 8 * bits.itemsize, 1, self._shapes[b], self._strides[b], 0)

    def _step(self, step: Any, tensors: dict[int, Tensor]) -> Step:
        used = [addressof(tensors[self.prepared.lodgers.get(b, b)]) for b in step.arguments]
        values = [Value(TENSOR, 0, address) for address in used]
        values += [Value(INTEGER, 0, evaluate(s, self.prepared.symbols)) for s in step.symbols]
        function = self.prepared.functions(step.kernel)
        self._held.append(function)
        return Step(function.__chandle__(), (Value * max(len(values), 1))(*values), len(values))

    @staticmethod
    def _copy(target: int, source: int, nbytes: int) -> Step:
        return Step(None, (Value * 2)(Value(0, 0, target), Value(0, 0, source)), nbytes)


def can_run(prepared: Prepared) -> bool:
    """Whether the entry can run it: kernels only, no functions of Python's among them, and extents that are known before."""
    return not prepared.counts and all(isinstance(prepared.functions(s.kernel), Function) for s in prepared.variant.steps)


def _strides(shape: Sequence[int]) -> list[int]:
    """Of elements side by side, the last axis first."""
    found, step = [], 1
    for n in reversed(shape):
        found.append(step)
        step *= n
    return found[::-1]


__all__ = ["Native", "can_run"]
