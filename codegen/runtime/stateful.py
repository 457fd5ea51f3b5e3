"""Methods of a model that changes its own state: what changes it runs alone, what reads it sees whole steps only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .ffi import Function
from .manifest import MethodSpec
from .method import Method
from .parameters import Array, set_up
from .stepwise import SMALL
from .turns import Turns


class StatefulMethod(Method):
    """A method that reads or writes what some method of the model changes. `wrote` is told the names that a call has changed."""

    def __init__(
        self,
        label: str,
        spec: MethodSpec,
        functions: Callable[[str], Function],
        parameters: Callable[[], Mapping[str, Array]],
        thread_count: int,
        turns: Turns,
        wrote: Callable[[frozenset[str]], None],
    ) -> None:
        super().__init__(label, spec, functions, parameters, thread_count)
        self._turns, self._wrote = turns, wrote
        self._changes = frozenset(spec.updates)
        self.packs = frozenset(
            v.buffers[b].name for v in spec.variants for step in v.setup for b in step.arguments if v.buffers[b].kind == "parameter"
        )
        """The parameters from which the method has packed something before a call."""
        self.stale = False

    def call(self, args: tuple[Any, ...], out: Any = None) -> Any:
        if self.feed is not None and not args:
            return self.feed.call(self, out)  # before its turn: others go on while it waits for data
        if self._changes:
            with self._turns.alone:
                self._refresh()
                try:
                    return super().call(args, out)
                finally:
                    self._wrote(self._changes)
        while True:
            if self.stale:
                with self._turns.alone:
                    self._refresh()
            with self._turns.together:
                if not self.stale:  # else a step came between
                    return super().call(args, out)

    def _looked_up(self, args: tuple[Any, ...], out: Any) -> Any:
        return super()._looked_up(tuple(map(self._apart, args)), out)

    def _checked(self, args: Sequence[Any]) -> tuple[Array, ...]:
        return tuple(map(self._apart, super()._checked(args)))

    def _apart(self, value: Any) -> Any:
        """An input; of one that is a view of what the call changes, a copy."""
        if not self._changes or not isinstance(value, np.ndarray) or value.nbytes <= SMALL:
            return value  # small ones are copied anyway
        held = self._parameters()
        return value.copy() if any(np.may_share_memory(value, held[name]) for name in self._changes) else value

    def _refresh(self) -> None:
        """What was packed of parameters that have changed since is packed again, into the same memory. Nobody else is at work."""
        if self.stale:
            for variant, arrays in self._fixed.values():
                set_up(variant, arrays, self._functions)
            self.stale = False


def written(specs: Mapping[str, MethodSpec]) -> frozenset[str]:
    """The parameters and state that some method changes."""
    return frozenset(name for spec in specs.values() for name in spec.updates)


def concerns(spec: MethodSpec, names: frozenset[str]) -> bool:
    """Whether the method reads or changes any of these."""
    return any(b.kind == "parameter" and b.name in names for v in spec.variants for b in v.buffers)
