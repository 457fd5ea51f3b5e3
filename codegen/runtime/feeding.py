"""Methods that are called without inputs: they read them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from .errors import FluoriteError, run_error, run_problem

if TYPE_CHECKING:
    from .method import Method


class Stream(Protocol):
    """Where batches come from, pass after pass; fluorite.algo.data has one."""

    position: Any

    def left(self) -> bool:
        """Whether the pass under way has more."""

    def peek(self) -> Any:
        """What comes next: a dict by input, or a tuple in their order."""

    def advance(self) -> None:
        """Go on behind it."""

    def turn(self) -> None:
        """Go on with the next pass."""

    def copy(self) -> Any:
        """Another one at the same position."""

    def rewind(self) -> None:
        """Go on at the beginning."""

    def seek(self, position: Any) -> None:
        """Go on at a position that it had."""

    @property
    def count(self) -> int | None:
        """How many a pass has, where that is known."""


class Feed:
    """What one method reads. A batch counts as read when the call with it is done: one that failed is met again."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.lock = threading.RLock()
        self.rows = 1
        """How many samples the last batch had."""

    @property
    def position(self) -> tuple[int, int]:
        """The pass and the batch of it that are next."""
        with self.lock, suppress(Exception):  # what is wrong with the next batch is told when it is wanted
            if self.stream.position.index and not self.stream.left():
                self.stream.turn()
        at = self.stream.position
        return at.epoch, at.index

    def seek(self, position: tuple[int, int]) -> None:
        self.stream.seek(type(self.stream.position)(*position))

    def call(self, method: Method, out: Any = None) -> Any:
        """The method with the next batch."""
        with self.lock:
            args = arguments(method, self.stream.peek())
            before, self.rows = method.calls, method.rows(args)
            try:
                result = method(*args) if out is None else method.call(args, out)
            except FluoriteError as error:
                raise _smaller(error) from None
            except KeyboardInterrupt:
                if method.calls != before:
                    self.stream.advance()
                raise
            self.stream.advance()
            return result

    def rest(self, method: Method) -> Iterator[Any]:
        """The results of the rest of the pass under way: of a whole one, where none is begun or all of it is read."""
        with self.lock:
            if not self.stream.left():
                self.stream.peek()
            epoch = self.stream.position.epoch
        while True:
            with self.lock:
                if self.stream.position.epoch != epoch:  # settled
                    return
                if not self.stream.left():
                    self.stream.turn()
                    return
                result = self.call(method)
            yield result


def arguments(method: Method, example: Any) -> tuple[Any, ...]:
    """The inputs in their order, of a dict by name, a tuple in order, or the only one. Raises RunError."""
    if isinstance(example, dict):
        return method.ordered(example)
    found = tuple(example) if isinstance(example, tuple | list) else (example,)
    return found or method.ordered({})


def _smaller(error: FluoriteError) -> FluoriteError:
    """An extent that the method is not built for may be that of the last batch."""
    if all(p.code != "R107" for p in error.problems):
        return error
    hint = "drop_last=True leaves a smaller last batch out"
    return run_error(*(run_problem(p.code, p.asked, *p.try_, *([hint] if p.code == "R107" else [])) for p in error.problems))


__all__ = ["Feed", "Stream", "arguments"]
