"""The one foreign call of a method: who owns what, what it leaves to the runtime, and that nothing leaks or is shared by mistake."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
import runtime_kernels as hand
import tvm_ffi
from fluorite.algo.errors import RunError
from fluorite.codegen.runtime import Model, entry, parse
from fluorite.codegen.runtime import library as shared_libraries
from fluorite.codegen.runtime.native import Native
from fluorite.codegen.runtime.prepared import Prepared
from fluorite.codegen.runtime.stepwise import Stepwise

F32 = np.float32
SIZES = [4, 300 * 300]  # in memory of NumPy's, in memory of the runtime's


def anywhere(count: int) -> dict[str, Any]:
    """x + count, of arrays that start anywhere."""
    return hand.chain(count, "increment_anywhere", alignment=4)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    path: Path = tmp_path_factory.mktemp("kernels") / "kernels.so"
    path.write_bytes(hand.library())
    module = shared_libraries.load_kernels(path)
    return lambda name: module[name]


@pytest.fixture
def make(kernels: Callable[[str], Any]) -> Callable[..., Model]:
    return lambda **methods: Model(parse(hand.manifest("m", **methods)), kernels, {}, 0)


@pytest.fixture
def one(make: Callable[..., Model]) -> Model:
    """x + 1."""
    return make(one=anywhere(1))


def runner(model: Model, method: str) -> Any:
    (prepared,) = (p for p in getattr(model, method)._prepared.values() if isinstance(p, Prepared))
    return prepared.run


def test_a_known_call_is_one_foreign_call(make: Callable[..., Model]) -> None:
    model = make(chain=anywhere(100))
    x = np.zeros(7, F32)
    np.testing.assert_array_equal(model.chain(x), np.full(7, 100, F32))
    enter = model.chain._enter
    assert type(enter) is type(len) and enter(x) is not None
    for other in (x[:6], x.astype(np.float64), x[::2], [0.0] * 7, np.zeros((7, 1), F32)):
        assert enter(other) is None
    assert enter() is None and enter(x, x) is None


@pytest.mark.parametrize("n", SIZES)
def test_memory_is_used_again_only_when_nobody_has_any_of_it(one: Model, n: int) -> None:
    x = np.zeros(n, F32)
    ways: list[Callable[[Any], Any]] = [lambda r: r[1:], lambda r: r.reshape(2, -1), memoryview, np.from_dlpack]
    if one.one(x).base is not None:
        ways.append(lambda r: r.base)
    for keep in ways:
        kept = np.asarray(keep(one.one(x)))
        before = kept.copy()
        gc.collect()
        later = [one.one(np.full(n, k, F32)) for k in range(1, 9)]
        assert not any(np.may_share_memory(kept, r) for r in later)
        np.testing.assert_array_equal(kept, before)
        del later
        one.one(x + 5)
        np.testing.assert_array_equal(kept, before)
    watched = weakref.ref(one.one(x))
    assert all(one.one(x) is not watched() for _ in range(9))


@pytest.mark.parametrize("n", SIZES)
def test_a_result_that_was_turned_into_something_else_is_not_used_again(one: Model, n: int) -> None:
    x = np.zeros(n, F32)
    for _ in range(3):
        r = one.one(x)
        r.shape = (2, n // 2)
        del r
        r = one.one(x)
        assert r.shape == (n,) and r.flags.writeable
        r.flags.writeable = False
        del r
    assert one.one(x).flags.writeable


def test_nothing_leaks(one: Model, make: Callable[..., Model]) -> None:
    x, out = np.zeros(16, F32), np.empty(16, F32)
    one.one(x)
    watched = (x, out, x.dtype, None, True)
    before = [sys.getrefcount(o) for o in watched]
    for _ in range(500):
        one.one(x)
        one.one(x, out=out)
        one.one(x[::2])
    after = [sys.getrefcount(o) for o in watched]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True)), (before, after)
    model = make(one=anywhere(3))
    model.one(x)
    gone = weakref.ref(runner(model, "one"))
    model.one.forget()
    assert gone() is None  # at once: it may hold much memory


def test_a_kernel_that_fails_is_an_error_and_the_next_call_is_well(make: Callable[..., Model]) -> None:
    spec = hand.method([hand.buffer("input", "x", "n"), hand.buffer("output", "y", "n")], [hand.step("refusing", 0, 1, symbols=["n"])])
    model = make(m=spec)
    for _ in range(3):
        with pytest.raises(ValueError, match="thirteen is too many"):
            model.m(np.zeros(13, F32))
        np.testing.assert_array_equal(model.m(np.arange(5, dtype=F32)), np.arange(5))
    for method in model.m._prepared.values():
        assert len(method.run.arenas) == 1  # no frame is lost


def _scaled(image: fl.f32[fl.Tensor, "h", "w"], amount: fl.f32, count: fl.i64, real: fl.f64) -> Any:
    return image * amount + fl.cast(count, fl.f32) + fl.cast(real, fl.f32)


def test_numbers_of_python_and_numpy_are_inputs_as_they_are() -> None:
    model = fl.compile(_scaled)
    image = np.ones((3, 5), F32)
    model(image, 2.0, 3, 1.0)
    enter = model._scaled._enter
    for amount in (3.0, F32(3), np.array(3, F32)):
        for count, real in ((np.int64(4), 0.5), (np.array(4), np.float64(0.5))):
            assert enter(image, amount, count, real) is not None
            np.testing.assert_array_equal(model(image, amount, count, real), image * 3 + 4.5)
    for amount, whole in ((1e300, np.int64(4)), (np.float64(3), np.int64(4)), (2.0, np.int32(4)), (2, np.int64(4))):
        assert enter(image, amount, whole, 0.5) is None
    with pytest.raises(RunError, match="float64"):
        model(image, np.float64(3), 4, 0.5)


def test_an_element_type_that_is_equal_but_not_the_same(one: Model) -> None:
    x = pickle.loads(pickle.dumps(np.arange(4, dtype=F32)))
    odd = np.ndarray((4,), pickle.loads(pickle.dumps(np.dtype(F32))), x)
    np.testing.assert_array_equal(one.one(odd), x + 1)


def test_a_result_is_no_input(one: Model) -> None:
    x, out = np.zeros(4, F32), np.zeros(4, F32)
    one.one(x)
    with pytest.raises(RunError, match="2 inputs given"):
        one.one(x, out)


def test_threads_have_memory_of_their_own(make: Callable[..., Model]) -> None:
    model = make(chain=anywhere(20))
    n, wrong = 50_000, []

    def work(k: int) -> None:
        x = np.full(n, k, F32)
        for _ in range(50):
            if not (model.chain(x) == k + 20).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert 1 <= len(runner(model, "chain").arenas) <= 6


def test_a_call_that_begins_while_memory_for_another_is_added_has_its_own(kernels: Callable[[str], Any]) -> None:
    """Whichever line of Python's it comes before: a call of another thread takes what is free, stays in its kernel, and two more follow."""
    line = 0
    while interrupted(kernels, line):
        line += 1
    assert line > 8


def interrupted(kernels: Callable[[str], Any], line: int) -> bool:
    """Whether adding memory has so many lines and more."""
    inside, go_on = threading.Event(), threading.Event()
    left, results = line, []

    def increment(x: Any, y: Any, _: int) -> None:
        a, b = (np.ctypeslib.as_array((ctypes.c_float * 4).from_address(t.data_ptr())) for t in (x, y))
        first = float(a[0])
        b[:] = a + 1
        if first == 100:
            inside.set()
            go_on.wait(20)
        if first == 200:
            call(300)

    def call(number: int) -> None:
        results.append(model.one(np.full(4, number, F32)))

    def traced(_frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == -1:
                sys.settrace(None)
                other.start()
                inside.wait(20)
        return traced

    functions = {"increment_anywhere": tvm_ffi.convert(increment)}
    model = Model(parse(hand.manifest("m", one=anywhere(2))), lambda name: functions.get(name) or kernels(name), {}, 0)
    other = threading.Thread(target=call, args=(100,))
    call(0)
    add = runner(model, "one")._add_frame
    before = sys.gettrace()
    sys.settrace(lambda frame, *_: traced if frame.f_code is add.__code__ else None)
    add()
    sys.settrace(before)
    if left >= 0:
        return False
    call(200)
    go_on.set()
    other.join()
    assert sorted(float(r[0]) for r in results) == [2, 102, 202, 302], line
    assert all((r == r[0]).all() for r in results)
    return True


def test_where_python_is_another_kernels_are_called_one_by_one(make: Callable[..., Model], monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(4, F32)
    for seen, kind in ((True, Native), (False, Stepwise)):
        monkeypatch.setattr(entry, "_as_expected", lambda seen=seen: seen)
        entry.process.cache_clear()
        model = make(one=anywhere(3))
        np.testing.assert_array_equal(model.one(x), x + 3)
        assert isinstance(runner(model, "one"), kind)
    entry.process.cache_clear()
