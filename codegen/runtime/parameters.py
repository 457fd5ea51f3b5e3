"""A model's parameters and state by the algorithm's names, and the constants that kernels want packed from them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, TypeVar

import numpy as np

from .complexes import NAMES, complex_of, parts_of
from .errors import Problem, run_error, run_problem
from .extents import evaluate, shape_of
from .ffi import Function
from .manifest import TensorSpec, Variant
from .memory import aligned
from .tensors import borrow, numpy_dtype
from .turns import Turns

Array = np.ndarray[Any, Any]
T = TypeVar("T")


class Parameters(MutableMapping[str, Array]):
    """Name to array. Reading gives a read-only view; assigning copies the value in, and the next call uses it.

    Calls in flight finish with the values that they began with. Parameters cannot be added or removed. Those that methods of the model
    change (`moving`) stay where they are: a view of one shows what it holds at any time, and assigning waits for calls to finish.
    """

    def __init__(
        self,
        specs: Sequence[TensorSpec],
        arrays: Mapping[str, Array],
        changed: Callable[[frozenset[str]], None],
        moving: frozenset[str] = frozenset(),
        turns: Turns | None = None,
    ) -> None:
        self._specs = {spec.name: spec for spec in specs}
        self._arrays = {name: arrays[name] for name in self._specs}
        self._changed, self._moving, self._turns = changed, moving, turns or Turns()
        self._lock = threading.Lock()

    def __getitem__(self, name: str) -> Array:
        held = self._arrays[self._known(name)]
        view = complex_of(held) if self._specs[name].complex else held.view()
        view.flags.writeable = False
        return view

    def __setitem__(self, name: str, value: Any) -> None:
        self.assign({name: value})

    def __delitem__(self, name: str) -> None:
        raise run_error(run_problem("R110", f"{name} is part of the model and cannot be deleted"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._specs)

    def __len__(self) -> int:
        return len(self._specs)

    def __repr__(self) -> str:
        return "\n".join(f"{spec.name}: {spec.text()}" for spec in self._specs.values()) or "no parameters"

    def assign(self, values: Mapping[str, Any]) -> None:
        """Assign several at once, or none of them. Raises RunError with one sentence for each that does not fit."""
        arrays = {name: self._stored(name, np.asarray(value)) for name, value in values.items()}
        if wrong := [p for name, array in arrays.items() if (p := self.refusal(name, array))]:
            raise run_error(*wrong)
        fresh = {}
        for name, array in arrays.items():
            fresh[name] = aligned(array.shape, self._specs[name].numpy)
            fresh[name][...] = array
        with self._turns.alone if self._moving else self._lock:
            for name in fresh.keys() & self._moving:
                self._arrays[name][...] = fresh.pop(name)
            self._arrays = self._arrays | fresh
            self._changed(frozenset(arrays))

    def widened(self, name: str, array: Array) -> Array:
        """The array, in the parameter's float32 if it is of a narrower float, which that holds exactly."""
        spec = self._specs.get(name)
        wide = spec is not None and spec.dtype == "float32" and array.dtype.name in ("float16", "bfloat16")
        return array.astype(np.float32) if wide else array

    def _stored(self, name: str, array: Array) -> Array:
        """Complex numbers as their parts; the parts themselves are taken too."""
        return parts_of(array) if name in self._specs and self._specs[name].complex else array

    def refusal(self, name: str, array: Array) -> Problem | None:
        """Why `array` cannot be the parameter `name`."""
        array = self._stored(name, array)
        if (spec := self._specs.get(name)) is None:
            return run_problem("R110", f"the model has no parameter {name}", *self._nearest(name))
        if array.shape != spec.shape:
            return run_problem("R111", f"{name} has shape {spec.seen(array.shape)}, expected {spec.text()}")
        if array.dtype.newbyteorder("=") not in (spec.numpy, numpy_dtype(spec.given or spec.dtype)):
            to = NAMES[spec.dtype] if spec.complex else spec.dtype
            return run_problem("R111", f"{name} is {array.dtype.name}, expected {spec.text()}", f"value.astype(np.{to})")
        return None

    def arrays(self) -> Mapping[str, Array]:
        """The values as they are now; those that no method of the model changes are never written to afterwards."""
        return self._arrays

    def copied(self) -> dict[str, Array]:
        """The values as they are now, between two calls; those that methods change in memory of their own."""
        return self.copied_with(lambda: None)[0]

    def copied_with(self, fact: Callable[[], T]) -> tuple[dict[str, Array], T]:
        """The same, and what `fact` says at that moment."""
        with self._turns.together if self._moving else self._lock:
            found = dict(self._arrays)
            for name in self._moving:
                found[name] = aligned(found[name].shape, found[name].dtype)
                found[name][...] = self._arrays[name]
            return found, fact()

    def _known(self, name: str) -> str:
        if name not in self._specs:
            raise KeyError("; ".join((f"the model has no parameter {name}", *self._nearest(name))))
        return name

    def _nearest(self, name: str) -> tuple[str, ...]:
        import difflib

        return tuple(f"did you mean {n}" for n in difflib.get_close_matches(name, self._specs, 1))


def fixed_arrays(variant: Variant, parameters: Mapping[str, Array], functions: Callable[[str], Function]) -> dict[int, Array]:
    """By buffer: the parameters that a variant reads, and the constants that its setup makes of them for its steps."""
    arrays: dict[int, Array] = {}
    lasting = {b for step in variant.steps for b in step.arguments}
    for b, buffer in enumerate(variant.buffers):
        if buffer.kind == "parameter":
            arrays[b] = parameters[buffer.name]
        elif buffer.kind == "constant" and b in lasting:
            arrays[b] = aligned(shape_of(buffer.shape, {}), buffer.numpy)
    set_up(variant, arrays, functions)
    return arrays


def set_up(variant: Variant, arrays: Mapping[int, Array], functions: Callable[[str], Function]) -> None:
    """Fill the constants among the arrays from the parameters among them."""
    scratch: dict[int, Array] = {}
    for step in variant.setup:
        for b in step.arguments:
            if b not in arrays and b not in scratch:
                scratch[b] = aligned(shape_of(variant.buffers[b].shape, {}), variant.buffers[b].numpy)
        tensors = [borrow(arrays[b] if b in arrays else scratch[b]) for b in step.arguments]
        functions(step.kernel)(*tensors, *(evaluate(s, {}) for s in step.symbols))
