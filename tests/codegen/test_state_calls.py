"""Calls of models with state at the same time, refused, and interrupted."""

from __future__ import annotations

import signal
import threading
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from stateful import Line, rows

F32 = np.float32


class Pair(fl.Program):
    """Two tensors that are equal between any two steps, and kept apart so long that a reader could see them differ."""

    def __init__(self) -> None:
        self.a, self.b = fl.state(i=20_000), fl.state(i=20_000)

    @fl.method
    def step(self) -> Any:
        self.a = self.a + 1.0
        self.b = self.b + 1.0

    @fl.method
    def differ(self) -> Any:
        return fl.max(fl.abs(self.a - self.b)), fl.min(self.a)


def test_readers_see_whole_steps_and_no_step_is_lost() -> None:
    model, seen, stop = fl.compile(Pair()), [], threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen.append(model.differ())

    def step() -> None:
        for _ in range(200):
            model.step()

    readers, writers = [threading.Thread(target=read) for _ in range(2)], [threading.Thread(target=step) for _ in range(2)]
    for t in (*readers, *writers):
        t.start()
    for t in writers:
        t.join()
    stop.set()
    for t in readers:
        t.join()
    assert (model.parameters["a"] == 400).all() and (model.parameters["b"] == 400).all()
    assert all(float(d) == 0 for d, _ in seen)


def test_a_refused_call_changes_nothing() -> None:
    model = fl.compile(Line())
    x, y = rows(4)
    model.train_step(x, y)
    before = {k: np.array(v) for k, v in model.parameters.items()}
    for wrong in ((x, y[:3]), (x.astype(np.float64), y), (x,)):
        with pytest.raises(fl.RunError):
            model.train_step(*wrong)
    assert all((model.parameters[k] == v).all() for k, v in before.items())
    model.train_step(x, y)
    assert model.parameters["steps"] == 2


def test_an_interrupt_between_kernels_waits_for_the_end_of_the_step() -> None:
    from fluorite.codegen.runtime.stepwise import _whole

    done: list[int] = []

    def interrupted(n: int) -> None:
        done.append(n)
        if n == 1:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have had it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            _whole([(interrupted, [n]) for n in range(4)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == [0, 1, 2, 3]


def test_attributes_of_a_compiled_model_are_not_its_state() -> None:
    model = fl.compile(Line())
    for name in ("w", "steps", "infer"):
        with pytest.raises(fl.RunError, match=r"Line.* cannot be assigned"):
            setattr(model, name, 0)
    model.remark = "mine"
    assert model.remark == "mine"
