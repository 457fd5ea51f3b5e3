"""Data sets that are read ahead by a thread."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import fluorite as fl
import pytest
from fluorite.algo.data.prefetching import ahead

data = fl.data


def prefetching() -> int:
    return sum(t.name == "fluorite-prefetch" for t in threading.enumerate())


def test_the_thread_that_reads_may_end_what_it_reads_for() -> None:
    """As the garbage collector does, on whatever thread it happens to run."""
    asked, done = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def reading() -> Iterator[int]:
        yield 0
        asked.wait(10)
        try:
            made.close()
        except RuntimeError as error:
            raised.append(error)
        done.set()
        yield 1

    made = ahead(reading, 2)
    assert next(made) == 0
    asked.set()
    assert done.wait(10) and not raised


def test_a_thread_reads_so_far_ahead_and_no_further() -> None:
    read: list[int] = []

    def source() -> Iterator[int]:
        for n in range(50):
            read.append(n)
            yield n

    it = iter(data.dataset(source).prefetch(3))
    assert next(it) == 0
    deadline = time.monotonic() + 5
    while len(read) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(read) == 4  # the one taken, and three
    assert list(it) == list(range(1, 50)) and prefetching() == 0


def test_a_thread_ends_when_nobody_wants_more() -> None:
    closed = threading.Event()

    def source() -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            closed.set()

    for n in data.dataset(source).prefetch(2):
        if n == 3:
            break
    gc.collect()
    assert closed.wait(5) and prefetching() == 0
    stream = data.dataset(source).prefetch(2).stream()
    next(stream)
    assert prefetching() == 1
    stream.close()
    assert prefetching() == 0


@pytest.mark.parametrize("kind", [ValueError, IndexError, StopIteration, KeyboardInterrupt])
def test_what_reading_raises_comes_out_after_what_was_read(kind: type[BaseException]) -> None:
    def broken(n: int) -> int:
        if n == 2:
            raise kind("here")
        return n

    it = iter(data.dataset([0, 1, 2, 3]).map(broken).prefetch(4))
    assert [next(it), next(it)] == [0, 1]
    with pytest.raises(RuntimeError if kind is StopIteration else kind, match="StopIteration" if kind is StopIteration else "here"):
        next(it)
    assert prefetching() == 0


def test_a_program_ends_while_a_thread_reads() -> None:
    text = """
import itertools, fluorite as fl
s = fl.data.dataset(itertools.count).prefetch(2).stream()
print(next(s), next(s))
"""
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "0 1\n", "")
