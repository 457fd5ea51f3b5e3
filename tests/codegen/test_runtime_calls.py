"""Calls of models over kernels made by hand: values and memory."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import runtime_kernels as hand
from fluorite.algo.errors import RunError
from fluorite.codegen.runtime import Model
from fluorite.codegen.runtime.forms import form_of
from fluorite.codegen.runtime.tensors import adopt, borrow
from fluorite.codegen.runtime.threads import processors
from runtime_kernels import image, refusal

F32 = np.float32


def offset(array: np.ndarray[Any, Any], by: int) -> np.ndarray[Any, Any]:
    """A copy whose memory starts `by` bytes after a multiple of 64."""
    raw = np.empty(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + by
    placed: np.ndarray[Any, Any] = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    placed[...] = array
    return placed


# values


def test_small_and_large_arrays_of_any_layout(photo: Model) -> None:
    for shape in [(3, 5), (1, 9000), (9000, 1), (100, 200)]:
        x = np.random.default_rng(0).random(shape, F32)
        readonly = x.copy()
        readonly.flags.writeable = False
        wide = np.zeros((shape[0] * 2, shape[1] * 3), F32)
        wide[::2, ::3] = x
        for given_ in [x, offset(x, 0), offset(x, 4), offset(x, 20), readonly, np.asfortranarray(x), wide[::2, ::3], x.astype(">f4")]:
            np.testing.assert_array_equal(photo.run(given_, 2.5), x * F32(2.5))


def test_strides_that_numpy_leaves_open(photo: Model) -> None:
    x = offset(np.arange(9000, dtype=F32), 0)
    for shape, strides in [((1, 9000), (4, 4)), ((9000, 1), (4, 40000))]:
        odd = np.lib.stride_tricks.as_strided(x, shape, strides)
        assert odd.flags.c_contiguous
        np.testing.assert_array_equal(photo.run(odd, 2.0), x.reshape(shape) * 2)


def test_a_refusal_has_no_other_error_behind_it(photo: Model) -> None:
    with pytest.raises(RunError) as caught:
        photo.run(image(), 1.0, 2.0)
    assert caught.value.__context__ is None
    with pytest.raises(RunError) as caught:
        photo.run(None, "loud")
    assert caught.value.__context__ is None and len(caught.value.problems) == 2


def test_positional_named_and_only_method(photo: Model) -> None:
    expected = image() * 2
    for result in (photo.photo(image(), 2.0), photo(image(), amount=2), photo.run(amount=F32(2), image=image())):
        np.testing.assert_array_equal(result, expected)


def test_results_are_the_callers_own(photo: Model) -> None:
    for h in (3, 200):
        first = photo.run(image(h, 100), 1.0)
        kept = first.copy()
        photo.run(image(h, 100), 9.0)
        np.testing.assert_array_equal(first, kept)


def test_memory_of_a_dropped_result_is_used_again(photo: Model) -> None:
    result = photo.run(image(300, 300), 1.0)
    where = result.ctypes.data
    del result
    gc.collect()
    assert photo.run(image(300, 300), 1.0).ctypes.data == where


def test_empty_arrays(photo: Model) -> None:
    for shape in [(0, 0), (0, 7), (7, 0)]:
        assert photo.run(np.zeros(shape, F32), 2.0).shape == shape


def test_a_chain_of_twenty_stages_holds_two_buffers(make: Callable[..., Model]) -> None:
    model = make("chain", chain=hand.chain(20))
    n = 100_000
    np.testing.assert_array_equal(model.chain(np.zeros(n, F32)), np.full(n, 20, F32))
    assert model.memory({"n": n}) == 4 * n * 2  # one temporary and the result, which take turns


def test_dtypes_that_numpy_alone_lacks(make: Callable[..., Model]) -> None:
    for dtype, kernel in [("bfloat16", "copy_bfloat16"), ("bool", "copy_bool"), ("int8", "copy_int8")]:
        kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
        buffers = [hand.buffer("input", "x", "n", dtype=dtype), hand.buffer("output", "y", "n", dtype=dtype)]
        model = make("same", same=hand.method(buffers, [hand.step(kernel, 0, 1, symbols=["n"])]))
        for n in (0, 10, 100_000):
            x = np.random.default_rng(n).integers(0, 2, n).astype(kind)
            y = model.same(x)
            assert y.dtype == kind
            np.testing.assert_array_equal(y, x)


def test_nested_results_repeat_and_return_inputs(make: Callable[..., Model]) -> None:
    result = {"dict": [["y", {"buffer": 1}], ["pair", {"tuple": [{"buffer": 1}, {"list": [{"buffer": 0}]}]}]]}
    spec = hand.method(
        [hand.buffer("input", "x", "n"), hand.buffer("output", "y", "n")], [hand.step("increment", 0, 1, symbols=["n"])], result
    )
    model = make("nest", nest=spec)
    for n in (4, 50_000):
        x = np.zeros(n, F32)
        made = model.nest(x)
        assert list(made) == ["y", "pair"] and isinstance(made["pair"], tuple) and isinstance(made["pair"][1], list)
        y, again, same = made["y"], made["pair"][0], made["pair"][1][0]
        assert y[0] == again[0] == 1 and same[0] == 0
        assert not any(np.shares_memory(a, b) for a, b in [(y, again), (same, x), (y, same)])
        out: dict[str, Any] = {"y": np.empty(n, F32), "pair": (np.empty(n, F32), [np.empty(n, F32)])}
        assert model.nest(x, out=out) is out
        assert out["y"][-1] == 1 and out["pair"][0][-1] == 1 and out["pair"][1][0][-1] == 0


def test_an_output_that_a_later_step_reads(make: Callable[..., Model]) -> None:
    buffers = [hand.buffer("input", "x", "n"), hand.buffer("output", "y", "n"), hand.buffer("output", "z", "n")]
    steps = [hand.step("increment", 0, 1, symbols=["n"]), hand.step("add", 0, 1, 2, symbols=["n"])]
    model = make("two", two=hand.method(buffers, steps, {"tuple": [{"buffer": 2}, {"buffer": 1}]}))
    for n in (3, 20_000):
        z, y = model.two(np.full(n, 5, F32))
        model.two(np.zeros(n, F32))
        assert (z[-1], y[-1]) == (11, 6)


def test_variants_are_chosen_by_extent(make: Callable[..., Model]) -> None:
    spec = hand.chain(1)
    special = spec["variants"][0] | {"when": {"n": 4}, "steps": [hand.step("sevens", 0, 1, symbols=["n"])]}
    spec["variants"].insert(0, special)
    model = make("choice", choice=spec)
    assert model.choice(np.zeros(4, F32))[0] == 7 and model.choice(np.zeros(5, F32))[0] == 1
    del spec["variants"][1]
    only = make("choice", choice=spec)
    assert refusal(lambda: only.choice(np.zeros(5, F32))) == "choice.run: there is no variant for n = 5; built for n = 4"


# without copies


@pytest.mark.parametrize(
    ("dtype", "kept"), [(np.float32, "float32"), (ml_dtypes.bfloat16, "uint16"), (ml_dtypes.float8_e5m2, "uint8"), (np.bool_, "bool")]
)
def test_aligned_arrays_are_borrowed(dtype: Any, kept: str) -> None:
    x = offset(np.zeros((4, 8), dtype), 0)
    tensor = borrow(x)
    assert tensor is not None and str(tensor.dtype) == kept and tuple(tensor.shape) == (4, 8)
    x[...] = 1
    np.testing.assert_array_equal(adopt(tensor), x.view(kept))
    x.flags.writeable = False
    assert borrow(x) is not None
    assert borrow(x[:, ::2]) is None


def test_alignment_decides(kernels: Callable[[str], Any]) -> None:
    x = offset(np.zeros(8, F32), 4)
    assert borrow(x) is None and borrow(x, 4) is not None


def test_kernels_may_declare_less_alignment(make: Callable[..., Model]) -> None:
    buffers = [hand.buffer("input", "x", "n", alignment=4), hand.buffer("output", "y", "n", alignment=4)]
    model = make("loose", loose=hand.method(buffers, [hand.step("increment_anywhere", 0, 1, symbols=["n"])]))
    x, y = offset(np.zeros(50_000, F32), 4), offset(np.zeros(50_000, F32), 12)
    assert model.loose(x, out=y) is y and y[0] == y[-1] == 1


class Producer:
    """Another library's tensor: DLPack and nothing else."""

    def __init__(self, array: np.ndarray[Any, Any], device: int = 1) -> None:
        self.array, self.device = array, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


def test_tensors_of_other_libraries(photo: Model) -> None:
    x = image(100, 100)
    np.testing.assert_array_equal(photo.run(Producer(x), 2.0), x * 2)
    assert np.shares_memory(adopt(Producer(x)), x)
    assert refusal(lambda: photo.run(Producer(x, device=2), 2.0)) == (
        "photo.run: image is on another device than the CPU, expected float32[h, w]; image.cpu()"
    )


class PutOff(Producer):
    """A tensor of PyTorch's whose minus is a mark beside its memory."""

    def is_neg(self) -> bool:
        return True

    def resolve_neg(self) -> Producer:
        return Producer(-self.array)


class Elsewhere(Producer):
    def __dlpack_device__(self) -> tuple[int, int]:
        raise ValueError("a device without a number")


def test_what_a_tensor_of_another_library_has_put_off(photo: Model) -> None:
    x = image(100, 100)
    np.testing.assert_array_equal(photo.run(PutOff(x), 2.0), x * -2)
    assert "image cannot be shared (a device without a number)" in refusal(lambda: photo.run(Elsewhere(x), 2.0))


def test_out_is_written_in_place_or_copied_to(photo: Model) -> None:
    for h, w in [(3, 5), (300, 50)]:
        x = image(h, w)
        wide = np.zeros((h * 2, w), F32)
        for out in (np.empty_like(x), offset(x, 0), offset(x, 4), np.asfortranarray(x), wide[::2]):
            assert photo.run(x, 3.0, out=out) is out
            np.testing.assert_array_equal(out, x * 3)


def test_out_may_be_the_input(make: Callable[..., Model]) -> None:
    model = make("chain", chain=hand.chain(3))
    x = offset(np.zeros(50_000, F32), 0)
    model.chain(x, out=x)
    np.testing.assert_array_equal(x, np.full(50_000, 3, F32))


def test_out_may_be_an_input_that_is_read_again(make: Callable[..., Model]) -> None:
    buffers = [hand.buffer("input", "x", "n"), hand.buffer("output", "y", "n"), hand.buffer("output", "z", "n")]
    steps = [hand.step("increment", 0, 1, symbols=["n"]), hand.step("add", 0, 1, 2, symbols=["n"])]
    model = make("two", two=hand.method(buffers, steps, {"tuple": [{"buffer": 2}, {"buffer": 1}]}))
    x, z = offset(np.full(50_000, 5, F32), 0), np.empty(50_000, F32)
    model.two(x, out=(z, x))
    assert (z[0], x[0]) == (11, 6)
    assert refusal(lambda: model.two(x, out=(z, z))) == "two.run: two arrays of out share memory"
    assert refusal(lambda: model.two(x, out=[z])) == "two.run: out is not built like the result, (float32[n], float32[n])"


def test_inputs_are_let_go(photo: Model) -> None:
    for h in (3, 300):
        x = offset(image(h, 100), 0)
        photo.run(x, 1.0)
        gone = weakref.ref(x)
        del x
        gc.collect()
        assert gone() is None


# threads


def test_many_threads_at_once(make: Callable[..., Model]) -> None:
    model = make("chain", thread_count=2, chain=hand.chain(4, "increment_parallel"))
    wrong: list[Any] = []

    def work(seed: int) -> None:
        for i in range(30):
            n = (10, 5_000, 30_000)[i % 3]
            if not np.array_equal(model.chain(np.full(n, seed, F32)), np.full(n, seed + 4, F32)):
                wrong.append((seed, n))

    workers = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not wrong


def test_thread_count_is_the_declared_one(make: Callable[..., Model]) -> None:
    from fluorite.codegen.runtime.ffi import get_global_func
    from fluorite.codegen.runtime.threads import chosen

    used = []
    assert chosen("all") == processors()

    def work() -> None:
        for count in (processors(), 1):
            make("chain", thread_count=count, chain=hand.chain(1, "increment_parallel")).chain(np.zeros(8, F32))
            used.append(get_global_func("runtime.NumThreads")())

    worker = threading.Thread(target=work)  # a thread has a pool of its own, sized when it starts
    worker.start()
    worker.join()
    assert used == [processors(), 1]


def test_a_model_describes_itself(photo: Model) -> None:
    import inspect

    assert photo.signatures == {"photo": "photo(image: float32[h, w], amount: float32[]) -> float32[h, w]"}
    assert list(inspect.signature(photo.run).parameters) == ["image", "amount", "out"]
    assert photo.plan == "version: 1\n" and photo.manifest["name"] == "photo"
    assert "photo(image" in repr(photo)
    with pytest.raises(AttributeError, match="no method sharpen; it has photo, run"):
        _ = photo.sharpen


def test_shapes_kept_ready_are_few(make: Callable[..., Model]) -> None:
    model = make("chain", chain=hand.chain(1))
    for n in range(200):
        assert model.chain(np.zeros(n, F32)).shape == (n,)
    assert len(model.chain._prepared) <= 64


def test_memory_kept_for_shapes_is_bounded(make: Callable[..., Model], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fluorite.codegen.runtime.method._KEPT_BYTES", 1_000_000)
    model = make("chain", chain=hand.chain(3))
    for n in range(50_000, 60_000, 1000):
        model.chain(np.zeros(n, F32))
    kept = list(model.chain._prepared.values())
    assert len(kept) < 3 and kept[-1].leaf_specs[0][0] == (59_000,)


@pytest.mark.parametrize("count", range(6))
def test_the_key_of_a_call_tells_inputs_apart(count: int) -> None:
    form = form_of(count)
    usual = [np.zeros((2, n), np.float32) for n in range(count)]
    others = [np.zeros((2, 9), np.float32), np.zeros((2, 0), np.float64), np.zeros(2, np.float32), np.ma.masked_array(np.zeros((2, 0)))]
    keys = {form(*usual)} | {form(*usual[:k], other, *usual[k + 1 :]) for k in range(count) for other in others}
    assert len(keys) == 1 + len(others) * count
    assert form(*[a.copy() for a in usual]) == form(*usual)
    if count:
        with pytest.raises(AttributeError):
            form(*usual[1:], 1.0)
