"""The orders in which a data set is read."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, isqrt
from typing import Any

import numpy as np
import pytest
from fluorite.algo.data.order import SMALL_ROUNDS, _keys, _network, permuted
from hypothesis import given, settings
from hypothesis import strategies as st


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
    expected, cells = 200, factorial(count)
    found = orders(range(expected * cells), count)
    assert all((permuted(seed % 7, seed, count, np.arange(count)) == found[seed]).all() for seed in range(0, len(found), cells))
    times = np.unique(found, axis=0, return_counts=True)[1]
    chi2 = ((times - expected) ** 2 / expected).sum() + (cells - len(times)) * expected
    assert chi2 < cells - 1 + 5 * (2 * (cells - 1)) ** 0.5  # mean and deviation of a chi-squared of cells - 1 degrees


def orders(epochs: Sequence[int], count: int) -> Any:
    """What `permuted` gives in epochs of seven seeds, a row each: one network with the keys of all."""
    high = isqrt(count - 1) + 1
    low = -(-count // high)
    keys = np.array([_keys(epoch % 7, epoch, SMALL_ROUNDS) for epoch in epochs], np.uint64).T[..., None]
    found = _network(np.tile(np.arange(count, dtype=np.uint64), (len(epochs), 1)), high, low, keys)
    while (outside := found >= count).any():
        found = np.where(outside, _network(found, high, low, keys), found)
    return found


def test_orders_differ_by_seed_and_epoch_and_have_no_drift() -> None:
    orders = [permuted(seed, epoch, 1000, np.arange(1000)) for seed in range(4) for epoch in range(4)]
    assert len({o.tobytes() for o in orders}) == 16
    for a in orders:
        assert abs(np.corrcoef(a, np.arange(1000))[0, 1]) < 0.16  # five deviations
