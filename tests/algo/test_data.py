"""Readers of data: orders that are permutations, positions that can be gone back to, files, threads, and what is refused."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import fluorite as fl
import ml_dtypes
import numpy as np
import pytest
from fluorite.algo.data.order import permuted
from fluorite.algo.data.prefetching import ahead
from fluorite.algo.errors import RunError
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.numpy import save_file

data = fl.data


def values(source: Any) -> list[Any]:
    return [np.asarray(e["x"] if isinstance(e, dict) else e[0] if isinstance(e, tuple) else e).tolist() for e in source]


# ---------------------------------------------------------------- orders
@given(st.integers(0, 3000), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 1 << 40))
@settings(max_examples=60, deadline=None)
def test_an_order_is_a_permutation(count: int, seed: int, epoch: int) -> None:
    order = permuted(seed, epoch, count, np.arange(count))
    assert sorted(order.tolist()) == list(range(count))


@given(st.integers(1, 1 << 45), st.integers(0, 5), st.lists(st.integers(0, (1 << 45) - 1), max_size=9))
@settings(max_examples=40, deadline=None)
def test_an_element_of_an_order_does_not_need_the_others(count: int, seed: int, places: list[int]) -> None:
    at = np.array([p % count for p in places], np.int64)
    together = permuted(seed, 1, count, at)
    alone = [int(permuted(seed, 1, count, at[n : n + 1])[0]) for n in range(len(at))]
    assert together.tolist() == alone and all(0 <= r < count for r in alone)
    assert len(set(alone)) == len(set(at.tolist()))


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_all_orders_are_about_as_frequent(count: int) -> None:
    trials = 200 * {2: 2, 3: 6, 4: 24, 5: 120}[count]
    found = Counter(tuple(permuted(seed % 7, seed, count, np.arange(count)).tolist()) for seed in range(trials))
    expected = 200
    cells = {2: 2, 3: 6, 4: 24, 5: 120}[count]
    chi2 = sum((n - expected) ** 2 / expected for n in found.values()) + (cells - len(found)) * expected
    assert chi2 < cells - 1 + 5 * (2 * (cells - 1)) ** 0.5  # mean and deviation of a chi-squared of cells - 1 degrees


def test_orders_differ_by_seed_and_epoch_and_have_no_drift() -> None:
    orders = [permuted(seed, epoch, 1000, np.arange(1000)) for seed in range(4) for epoch in range(4)]
    assert len({o.tobytes() for o in orders}) == 16
    for a in orders:
        assert abs(np.corrcoef(a, np.arange(1000))[0, 1]) < 0.16  # five deviations


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


# ---------------------------------------------------------------- threads
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


# ---------------------------------------------------------------- files
def test_csv(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('\ufeffa, "b", label\n1,2.5, 7\n\n-3,"1e2",0\nnan,inf,-1\n')
    table = data.csv(file, columns={"x": range(2), "y": "label"}, dtype={"y": fl.i32})
    x, y = (np.stack([e[k] for e in table]) for k in "xy")
    assert (x.dtype, y.dtype) == (np.float32, np.int32) and y.tolist() == [7, 0, -1]
    np.testing.assert_array_equal(x, np.array([[1, 2.5], [-3, 100], [np.nan, np.inf]], np.float32))
    assert [e["x"].tolist() for e in data.csv(file, columns={"x": ["label", "a"]}).take(1)] == [[7.0, 1.0]]
    assert [e["x"].tolist() for e in data.csv(file, columns={"x": [-1]}).take(1)] == [[7.0]]
    (tmp_path / "s.csv").write_text("1;2\n3;4\n")
    assert values(data.csv(tmp_path / "s.csv", columns={"x": [1]}, delimiter=";", batch_size=2)) == [[[2.0], [4.0]]]


BAD_CSV = {
    "1,2\n3\n": ("R203", ":2: ", "1 cells", "the first row has 2"),
    "1,2\n3,four\n": ("R203", ":2: ", "column 2 is 'four'", "x is float32"),
    "a,b\n1,2\n\n3,\n": ("R203", ":4: ", "column 2 is empty"),
    "1,1_0\n": ("R203", ":1: ", "column 2 is '1_0'"),
    '1,"2\n': ("R203", "t.csv:", "cannot be split"),
    "": ("R204", "has no rows"),
    "a,b\n": ("R204", "has no rows"),
    "1\n2\n": ("R201", "no column 1"),
}


@pytest.mark.parametrize("text", BAD_CSV)
def test_bad_csv_is_a_sentence_with_the_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    table = data.csv(tmp_path / "t.csv", columns={"x": [0, 1]})
    with pytest.raises(RunError) as refused:
        next(iter(table))
    code, *words = BAD_CSV[text]
    assert refused.value.problems[0].code == code and all(w in str(refused.value) for w in words)


def test_csv_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    absent = data.csv(tmp_path / "absent.csv", columns={"x": 0})  # it may be made before the first step
    with pytest.raises(RunError, match=r"absent.csv cannot be read\n  no such file"):
        next(iter(absent))
    (tmp_path / "b.csv").write_bytes(b"1,\xff\n")
    with pytest.raises(RunError, match="no text in UTF-8"):
        next(iter(data.csv(tmp_path / "b.csv", columns={"x": 0})))
    (tmp_path / "n.csv").write_text("a\n1\n")
    with pytest.raises(RunError, match="it has a"):
        next(iter(data.csv(tmp_path / "n.csv", columns={"x": "c"})))
    (tmp_path / "i.csv").write_text("1\n2.5\n")
    with pytest.raises(RunError, match=r"i.csv:2: .*'2.5'\n  x is int64"):
        next(iter(data.csv(tmp_path / "i.csv", columns={"x": 0}, dtype=fl.i64)))
    (tmp_path / "u.csv").write_text("300\n")
    with pytest.raises(RunError, match="x is uint8"):
        next(iter(data.csv(tmp_path / "u.csv", columns={"x": 0}, dtype=fl.u8)))


def test_npy_files_are_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(20, dtype=np.int16).reshape(10, 2))
    np.save(tmp_path / "y.npy", np.arange(10.0))
    source = data.npy(x=tmp_path / "x.npy", y=tmp_path / "y.npy", batch_size=4, shuffle=0)
    assert isinstance(source.source.source.opened["x"], np.memmap)  # type: ignore[attr-defined]
    for batch in source:
        assert type(batch["x"]) is np.ndarray and (batch["x"][:, 0] == 2 * batch["y"]).all()
    np.save(tmp_path / "o.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    (tmp_path / "t.npy").write_bytes((tmp_path / "y.npy").read_bytes()[:-4])
    for name, words in {"o.npy": "no .npy file", "a.npz": "archive", "t.npy": "no .npy file", "absent.npy": "no such file"}.items():
        with pytest.raises(RunError, match=words):
            next(iter(data.npy(x=tmp_path / name)))
    np.save(tmp_path / "z.npy", np.zeros(3))
    with pytest.raises(RunError, match="y has 10, z has 3 rows"):
        next(iter(data.npy(y=tmp_path / "y.npy", z=tmp_path / "z.npy")))


def test_safetensors_files_are_mapped(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(ml_dtypes.bfloat16)
    save_file({"images": x.view(np.uint16), "labels": np.arange(7, dtype=np.int32)}, tmp_path / "raw.safetensors")
    raw = (tmp_path / "raw.safetensors").read_bytes()
    file = tmp_path / "d.safetensors"
    longer = (int.from_bytes(raw[:8], "little") + 1).to_bytes(8, "little")
    file.write_bytes(longer + raw[8:].replace(b'"U16"', b'"BF16"'))
    found = {k: np.stack([e[k] for e in data.safetensors(file)]) for k in ("images", "labels")}
    assert found["images"].dtype == ml_dtypes.bfloat16 and found["images"].tobytes() == x.tobytes()
    assert found["labels"].tolist() == list(range(7))
    assert [e["y"].tolist() for e in data.safetensors(file, {"y": "labels"}, batch_size=7)] == [list(range(7))]
    assert [e.keys() for e in data.safetensors(tmp_path / "none").moved(file).take(1)] == [{"images", "labels"}]
    with pytest.raises(RunError, match="no tensor 'digits'"):
        next(iter(data.safetensors(file, {"y": "digits"})))
    (tmp_path / "cut.safetensors").write_bytes(raw[:-3])
    with pytest.raises(RunError, match="no whole safetensors file"):
        next(iter(data.safetensors(tmp_path / "cut.safetensors")))
    with pytest.raises(RunError, match=r"absent.*cannot be read"):
        next(iter(data.safetensors(tmp_path / "absent")))


def test_folders_of_images(tmp_path: Path) -> None:
    for label, level in (("cat", 51), ("dog", 204)):
        (tmp_path / label).mkdir()
        for n in range(2):
            Image.new("L", (10 + n, 6), level).save(tmp_path / label / f"{n}.png")
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    pictures, labels = next(iter(data.images(tmp_path, size=(4, 5), channels=3, batch_size=4)))
    assert pictures.shape == (4, 4, 5, 3) and pictures.dtype == np.float32 and labels.tolist() == [0, 0, 1, 1] and labels.dtype == np.int32
    np.testing.assert_allclose(pictures[:, 0, 0, 0], [0.2, 0.2, 0.8, 0.8], atol=1e-6)
    alone = data.images(tmp_path / "dog", size=(6, 10), channels=1)
    assert [e[0].shape for e in alone] == [(6, 10, 1)] * 2 and all(len(e) == 1 for e in alone)
    (tmp_path / "dog" / "2.png").write_bytes((tmp_path / "dog" / "1.png").read_bytes()[:40])
    with pytest.raises(RunError, match=r"2\.png"):
        list(alone.moved(tmp_path / "dog"))
    (tmp_path / "loose.png").write_bytes(b"")
    with pytest.raises(RunError, match="pictures and folders"):
        next(iter(data.images(tmp_path, size=(4, 4))))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="has no pictures"):
        next(iter(data.images(tmp_path / "empty", size=(4, 4))))
    with pytest.raises(RunError, match="cannot be read"):
        next(iter(data.images(tmp_path / "absent", size=(4, 4))))


def test_samples_of_scikit_learn() -> None:
    (pixels,) = next(iter(data.digits(batch_size=64, shuffle=1)))
    assert pixels.shape == (64, 64) and pixels.dtype == np.float32 and pixels.min() >= 0 and pixels.max() == 1
    sizes = {part: len(data.digits(part=part)) for part in ("all", "train", "test")}
    assert sizes == {"all": 1797, "train": 1438, "test": 359}
    rows = {part: {(*x.tolist(), int(y)) for x, y in data.digits(part=part, labels=True)} for part in sizes}
    assert rows["train"] | rows["test"] == rows["all"] and not rows["train"] & rows["test"]
    patients = next(iter(data.diabetes(batch_size=442)))
    assert patients["x"].shape == (442, 10) and patients["y"].shape == (442, 1) and patients["y"].max() == 346
    np.testing.assert_allclose(patients["x"].std(0), 1, atol=1e-5)


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
