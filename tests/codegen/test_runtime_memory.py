from __future__ import annotations

import gc

import numpy as np
import pytest
from fluorite.codegen.runtime.memory import HUGE_PAGE, ResultPool, aligned, allocate, plan
from hypothesis import given
from hypothesis import strategies as st

BLOCKS = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 30), st.integers(0, 30)).map(lambda b: (b[0], (min(b[1:]), max(b[1:])))), max_size=30
)


@given(BLOCKS)
def test_blocks_that_live_together_do_not_overlap(blocks: list[tuple[int, tuple[int, int]]]) -> None:
    sizes, lifetimes = [b[0] for b in blocks], [b[1] for b in blocks]
    offsets, total = plan(sizes, lifetimes)
    assert all(o % 64 == 0 for o in offsets)
    assert all(o + s <= total for o, s in zip(offsets, sizes, strict=True))
    for i in range(len(blocks)):
        for j in range(i):
            if lifetimes[i][0] <= lifetimes[j][1] and lifetimes[j][0] <= lifetimes[i][1]:
                assert offsets[i] + sizes[i] <= offsets[j] or offsets[j] + sizes[j] <= offsets[i]


@given(BLOCKS)
def test_an_arena_is_no_larger_than_its_parts(blocks: list[tuple[int, tuple[int, int]]]) -> None:
    _, total = plan([b[0] for b in blocks], [b[1] for b in blocks])
    assert total <= sum(-(-b[0] // 64) * 64 for b in blocks)


def test_a_chain_needs_two_buffers() -> None:
    assert plan([4096] * 19, [(i, i + 1) for i in range(19)])[1] == 2 * 4096


@pytest.mark.parametrize(("nbytes", "alignment"), [(0, 64), (1, 64), (100_000, 64), (HUGE_PAGE, HUGE_PAGE), (5 * HUGE_PAGE + 3, HUGE_PAGE)])
def test_blocks_are_aligned_and_writable(nbytes: int, alignment: int) -> None:
    block = allocate(nbytes)
    assert block.nbytes == nbytes
    assert block.ctypes.data % alignment == 0
    block[:] = 7
    assert int(block.sum(dtype=np.int64)) == 7 * nbytes


def test_too_much_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        allocate(1 << 60)


def test_a_dropped_result_is_used_again_and_a_kept_one_is_not() -> None:
    pool = ResultPool((1000,), np.dtype(np.float32))
    first = pool.take().lend()
    where = first.ctypes.data
    view = first[10:20]
    del first
    gc.collect()
    second = pool.take().lend()
    assert second.ctypes.data != where  # the view still needs it
    del view
    assert pool.take().lend().ctypes.data == where


def test_a_pool_keeps_few_blocks() -> None:
    pool = ResultPool((8,), np.dtype(np.float32), keep=2)
    arrays = [pool.take().lend() for _ in range(10)]
    arrays.clear()
    assert len(pool.free) == 2


def test_views_into_an_arena() -> None:
    arena = allocate(256)
    a, b = aligned((4,), np.dtype(np.int32), arena, 0), aligned((4,), np.dtype(np.int32), arena, 64)
    a[:], b[:] = 1, 2
    assert a.tolist() == [1] * 4 and b.ctypes.data - a.ctypes.data == 64
