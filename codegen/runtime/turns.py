"""Who may use a model's state when: calls that only read it together, one that changes it alone."""

from __future__ import annotations

import threading


class Turns:
    """A lock of two kinds, `with turns.together:` and `with turns.alone:`. Who changes goes before readers that come later, so that many
    readers do not keep it waiting."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()
        self.gate = threading.Condition(self.mutex)
        self.readers = self.waiting = 0
        self.changing = False
        self.together, self.alone = _Together(self), _Alone(self)


class _Together:
    """The state stays as it is."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __enter__(self) -> None:
        turns = self._turns
        with turns.mutex:  # the lock of the gate, which itself takes longer
            while turns.changing or turns.waiting:
                turns.gate.wait()
            turns.readers += 1

    def __exit__(self, *_: object) -> None:
        turns = self._turns
        with turns.mutex:
            turns.readers -= 1
            if not turns.readers and turns.waiting:
                turns.gate.notify_all()


class _Alone:
    """Nobody else reads or changes the state."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def __enter__(self) -> None:
        turns = self._turns
        with turns.mutex:
            turns.waiting += 1
            try:
                while turns.changing or turns.readers:
                    turns.gate.wait()
            finally:
                turns.waiting -= 1
            turns.changing = True

    def __exit__(self, *_: object) -> None:
        turns = self._turns
        with turns.mutex:
            turns.changing = False
            turns.gate.notify_all()
