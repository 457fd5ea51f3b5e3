"""Readers of data: orders that are permutations, positions that can be gone back to, files, threads, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import RunError
from hypothesis import given, settings
from hypothesis import strategies as st

data = fl.data


def values(source: Any) -> list[Any]:
    return [np.asarray(e["x"] if isinstance(e, dict) else e[0] if isinstance(e, tuple) else e).tolist() for e in source]


# ---------------------------------------------------------------- positions
PIPELINES: dict[str, Callable[[int], Any]] = {
    "rows": lambda n: data.arrays(x=np.arange(n)),
    "shuffled": lambda n: data.arrays(x=np.arange(n), shuffle=3),
    "batches": lambda n: data.arrays(x=np.arange(n), batch_size=4, shuffle=5),
    "dropped": lambda n: data.arrays(x=np.arange(n), batch_size=3, shuffle=5, drop_last=True),
    "mapped": lambda n: data.arrays(x=np.arange(n)).map(lambda e: {"x": e["x"] * 2}).shuffle(1).batch(2),
    "ahead": lambda n: data.arrays(x=np.arange(n), batch_size=4, shuffle=5).prefetch(3),
    "taken": lambda n: data.arrays(x=np.arange(n), shuffle=2).take(7).batch(2),
    "taken batches": lambda n: data.arrays(x=np.arange(n), shuffle=2, batch_size=2).take(3).map(lambda e: {"x": -e["x"]}),
    "a list": lambda n: data.dataset([{"x": np.array(i)} for i in range(n)]).batch(3),
    "a function": lambda n: data.dataset(lambda: ({"x": np.array(i)} for i in range(n))).prefetch(1),
}


@given(st.sampled_from(sorted(PIPELINES)), st.integers(6, 23), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_going_on_is_like_never_having_stopped(kind: str, count: int, stop: int) -> None:
    whole = PIPELINES[kind](count).stream()
    first = values(islice(whole, stop))
    again = PIPELINES[kind](count).stream(whole.position)
    rest = values(islice(whole, 12))
    assert values(islice(again, 12)) == rest
    assert values(islice(PIPELINES[kind](count).stream(), stop + 12)) == first + rest
    whole.close()
    again.close()


@given(st.sampled_from(sorted(PIPELINES)), st.integers(6, 23), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_a_pass_has_every_row_once(kind: str, count: int, epoch: int) -> None:
    source = PIPELINES[kind](count)
    found = [abs(x) for e in source.elements(epoch) for x in np.ravel(e["x"]).tolist()]
    assert len(set(found)) == len(found)
    if kind in ("rows", "shuffled", "batches", "ahead", "a list", "a function"):
        assert sorted(found) == list(range(count))
    assert source.count is None or source.count == len(list(source.elements(epoch)))


def test_a_position_counts_passes_and_batches() -> None:
    stream = data.arrays(x=np.arange(5), batch_size=2).stream()
    places = [(stream.position.epoch, stream.position.index) for _ in range(7) if next(stream) is not None]
    assert places == [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 1)]
    assert values(stream.rest()) == [[2, 3], [4]] and stream.position == data.Position(3)
    stream.seek(data.Position(0, 2))
    assert values([stream.peek(), stream.peek()]) == [[4], [4]] and stream.position == data.Position(0, 2)
    assert values(stream.copy().rest()) == [[4]] and stream.position == data.Position(0, 2)


def test_a_pass_after_the_last_batch_is_the_next_one() -> None:
    stream = data.arrays(x=np.arange(4), batch_size=2).stream()
    next(stream), next(stream)
    assert values(stream.rest()) == [[0, 1], [2, 3]]


# ---------------------------------------------------------------- arrays and batches
def test_examples_are_dicts_tuples_or_arrays() -> None:
    x, y = np.arange(6.0).reshape(3, 2), np.array([True, False, True])
    assert [e["y"] for e in data.arrays(x=x, y=y)] == [True, False, True]
    pair = next(iter(data.arrays(x, y, batch_size=2)))
    assert isinstance(pair, tuple) and pair[0].tolist() == [[0, 1], [2, 3]] and pair[1].tolist() == [True, False]
    assert [b.tolist() for b in data.dataset([1, 2, 3]).batch(2)] == [[1, 2], [3]]
    assert len(data.arrays(x=x, batch_size=2)) == 2 and len(data.arrays(x=x, batch_size=2, drop_last=True)) == 1
    with pytest.raises(TypeError, match="before they are read"):
        len(data.dataset(lambda: [1]))


def test_batches_are_copies() -> None:
    x = np.zeros(4)
    batch = next(iter(data.arrays(x=x, batch_size=2)))
    batch["x"][:] = 1
    assert not x.any()


def test_other_batches_and_other_files(tmp_path: Path) -> None:
    made = data.arrays(x=np.arange(6), shuffle=1, batch_size=2).map(lambda e: e).prefetch()
    assert [len(e["x"]) for e in made.rebatched(4)] == [4, 2] and [len(e["x"]) for e in made] == [2, 2, 2]
    assert [len(e) for e in data.dataset([1.0, 2.0, 3.0]).rebatched(2)] == [2, 1]
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text(f"{ord(name)}\n")
    table = data.csv(tmp_path / "a.csv", columns={"x": 0}, batch_size=1)
    assert values(table) == [[97.0]] and values(table.moved(tmp_path / "b.csv")) == [[98.0]]


# ---------------------------------------------------------------- refusals
def test_what_is_no_data_is_refused() -> None:
    refusals: dict[Callable[[], Any], tuple[str, str]] = {
        lambda: data.arrays(x=np.zeros(3), batch_size=0): ("R201", "batch_size=0"),
        lambda: data.arrays(x=np.zeros(3), batch_size=True): ("R201", "batch_size=True"),
        lambda: data.arrays(x=np.zeros(3), batch_size=2).shuffle(1): ("R201", "before batch"),
        lambda: data.dataset([1, 2]).shuffle(1): ("R201", "any order"),
        lambda: data.arrays(x=np.zeros(3), drop_last=True): ("R201", "no last batch"),
        lambda: data.arrays(x=np.zeros(3), shuffle="yes"): ("R201", "shuffle='yes'"),
        lambda: data.arrays(x=np.zeros(3)).take(-1): ("R201", "take=-1"),
        lambda: data.arrays(x=np.zeros(3)).prefetch(0): ("R201", "prefetch=0"),
        lambda: data.arrays(): ("R201", "no arrays"),
        lambda: data.arrays(np.zeros(3), x=np.zeros(3)): ("R201", "positional and named"),
        lambda: data.arrays(x=np.zeros(3), y=np.zeros(2)): ("R204", "x has 3, y has 2"),
        lambda: data.arrays(x=1.0): ("R204", "one number"),
        lambda: data.arrays(x=["a"]): ("R204", "x is <U1"),
        lambda: data.dataset(3): ("R201", "type int"),
        lambda: data.dataset("a.csv"): ("R201", "type str"),
        lambda: data.dataset({"x": [1]}): ("R201", "type dict"),
        lambda: data.arrays(x=np.zeros(3)).moved("b.csv"): ("R201", "from one file"),
        lambda: data.csv("a.csv", columns={}): ("R201", "columns={}"),
        lambda: data.csv("a.csv", columns={"x": 1.5}): ("R201", "numbers from 0, or names"),  # type: ignore[dict-item]
        lambda: data.csv("a.csv", columns={"x": []}): ("R201", "numbers from 0, or names"),
        lambda: data.npy(): ("R201", "a file for each input"),
        lambda: data.images("f", size=4): ("R201", "(height, width)"),
        lambda: data.images("f", size=(4, 4), channels=2): ("R201", "1, 3 or 4"),
        lambda: data.digits(part="half"): ("R201", "part='half'"),
        lambda: list(data.dataset([{"x": 1}, {"y": 1}]).batch(2)): ("R204", "not built alike"),
        lambda: list(data.dataset([np.zeros((1, 2)), np.zeros((1, 3))]).batch(2)): ("R204", "float64[1, 2] in one and float64[1, 3]"),
        lambda: next(data.arrays(x=np.zeros(0)).stream()): ("R205", "it is empty"),
        lambda: list(data.arrays(x=np.zeros(0)).stream().rest()): ("R205", "it is empty"),
    }
    for refuse, (code, words) in refusals.items():
        with pytest.raises(RunError) as error:
            refuse()
        assert error.value.problems[0].code == code and words in str(error.value)


def test_an_iterator_is_read_once() -> None:
    stream = data.dataset(iter([1, 2])).stream()
    assert [next(stream), next(stream)] == [1, 2]
    with pytest.raises(RunError, match="read once"):
        next(stream)


def test_packages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for make, words in ((lambda: data.digits(), "pip install"), (lambda: data.images("f", size=(2, 2)), "pip install pillow")):
        with pytest.raises(RunError, match=words):
            make()


def test_a_reader_loads_nothing_heavy() -> None:
    text = "import sys, fluorite as fl; fl.data.digits(); fl.data.images('f', size=(2, 2)); fl.data.safetensors('f')\n"
    text += "print([m for m in ('sklearn', 'PIL', 'safetensors', 'tvm') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60).stdout == "[]\n"
