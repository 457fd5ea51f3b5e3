"""Reading pass after pass, at a position that can be kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .examples import Example
from .refusals import refused

if TYPE_CHECKING:
    from .dataset import Dataset


@dataclass(frozen=True, order=True)
class Position:
    """How far reading is: whole passes, and examples (or batches) of the pass that is under way."""

    epoch: int = 0
    index: int = 0


class Stream:
    """An endless iterator over the passes of a dataset. `position` is where the next example stands; a stream at the same position of the
    same dataset gives the same from there on."""

    def __init__(self, dataset: Dataset, position: Position) -> None:
        self.dataset, self.position = dataset, position
        self._inner: Iterator[Any] | None = None
        self._next: tuple[Any] | None = None

    @property
    def count(self) -> int | None:
        """How many examples a pass has, where that is known."""
        return self.dataset.count

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Example:
        example = self.peek()
        self.advance()
        return example

    def peek(self) -> Example:
        """What comes next, without moving on. Raises RunError where the dataset is empty or used up."""
        if not self.left():
            before = self.position
            self.turn()
            if not self.left():
                self.seek(before)
                why = "it is an iterator, which can be read once" if getattr(self.dataset, "once", False) else "it is empty"
                raise refused("R205", "the data has no more examples", why, "a list", "a function that makes the iterator anew")
        assert self._next is not None
        return self._next[0]

    def left(self) -> bool:
        """Whether the pass that is under way has more examples."""
        if self._next is None:
            if self._inner is None:
                self._inner = self.dataset.elements(self.position.epoch, self.position.index)
            try:
                self._next = (next(self._inner),)
            except StopIteration:
                return False
            except BaseException:
                self.close()  # so that the next try meets the same example, and not the end of a pass
                raise
        return True

    def advance(self) -> None:
        """Go on behind what `peek` gave."""
        self.position = Position(self.position.epoch, self.position.index + 1)
        self._next = None

    def rest(self) -> Iterator[Example]:
        """The rest of the pass under way; at its end, the next pass."""
        if not self.left():
            self.peek()
        while self.left():
            yield next(self)
        self.turn()

    def turn(self) -> None:
        """Go on with the next pass."""
        self.seek(Position(self.position.epoch + 1))

    def rewind(self) -> None:
        """Go on at the very beginning."""
        self.seek(Position())

    def seek(self, position: Position) -> None:
        """Go on from this position."""
        self.close()
        self.position = position

    def close(self) -> None:
        """End what is open, threads among it. Reading again opens it again, at the position."""
        inner, self._inner, self._next = self._inner, None, None
        if (close := getattr(inner, "close", None)) is not None:
            close()

    def copy(self) -> Stream:
        """Another stream at the same position."""
        return Stream(self.dataset, self.position)


__all__ = ["Position", "Stream"]
