"""Who may use a model's state when: calls that only read it together, one that changes it alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock of two kinds. Who changes goes before readers that come later, so that many readers do not keep it waiting."""

    def __init__(self) -> None:
        self._gate = threading.Condition(threading.Lock())
        self._readers = self._waiting = 0
        self._changing = False

    @contextmanager
    def together(self) -> Iterator[None]:
        """The state stays as it is."""
        with self._gate:
            while self._changing or self._waiting:
                self._gate.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self._gate:
                self._readers -= 1
                if not self._readers:
                    self._gate.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else reads or changes the state."""
        with self._gate:
            self._waiting += 1
            try:
                while self._changing or self._readers:
                    self._gate.wait()
            finally:
                self._waiting -= 1
            self._changing = True
        try:
            yield
        finally:
            with self._gate:
                self._changing = False
                self._gate.notify_all()
