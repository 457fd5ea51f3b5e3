"""Reading ahead on a thread: a bounded buffer between who reads and who uses."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

_WAIT = 1.0
"""Seconds that closing waits for a read that is under way; the thread ends after it in any case."""


class _Buffer:
    """What was read and not yet used; `ended` once no more comes, `error` what reading raised, `left` when nobody wants more."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.items: deque[Any] = deque()
        self.changed = threading.Condition()
        self.error: BaseException | None = None
        self.ended = self.left = False

    def fill(self, start: Callable[[], Iterator[Any]]) -> None:
        """The thread."""
        try:
            inner = start()
            try:
                for item in inner:
                    with self.changed:
                        self.items.append(item)
                        self.changed.notify_all()
                        while len(self.items) >= self.depth and not self.left:
                            self.changed.wait()
                        if self.left:
                            return
            finally:
                if (close := getattr(inner, "close", None)) is not None:
                    close()
        except BaseException as error:
            self.error = error
        finally:
            with self.changed:
                self.ended = True
                self.changed.notify_all()

    def next(self) -> Any:
        """The next item. Raises IndexError when there is none, and then what reading raised."""
        with self.changed:
            while not self.items and not self.ended:
                self.changed.wait()
            if not self.items and self.error is not None:
                raise self.error
            item = self.items.popleft()
            self.changed.notify_all()
            return item

    def leave(self) -> None:
        with self.changed:
            self.left = True
            self.items.clear()
            self.changed.notify_all()


def ahead(start: Callable[[], Iterator[Any]], depth: int) -> Iterator[Any]:
    """What `start()` gives, read up to `depth` items ahead on a thread that begins with the first and ends with the iterator.

    What reading raises comes out here, after the items before it.
    """
    buffer = _Buffer(depth)
    thread = threading.Thread(target=buffer.fill, args=(start,), name="fluorite-prefetch", daemon=True)
    thread.start()
    try:
        while True:
            try:
                item = buffer.next()
            except IndexError:
                if buffer.error is not None:
                    raise
                return
            yield item
    finally:
        buffer.leave()
        if thread is not threading.current_thread():  # which it is where the garbage collector ends the iterator while the thread reads
            thread.join(_WAIT)


__all__ = ["ahead"]
