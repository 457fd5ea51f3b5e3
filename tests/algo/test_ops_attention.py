"""Attention and positions, against the formulas."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, near, numbers, refusal, run, same

Array = np.ndarray[Any, Any]


def attended(q: Array, k: Array, v: Array, seen: Array | None = None, added: Any = 0.0, scale: float | None = None) -> Array:
    scores = q.astype(float) @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale) + added
    scores = scores if seen is None else np.where(seen, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    with np.errstate(all="ignore"):
        raised = np.where(np.isfinite(top), np.exp(scores - top), 0)
        return np.where(np.isfinite(top), raised / raised.sum(-1, keepdims=True), 0) @ v  # type: ignore[no-any-return]


Q, K, V = numbers(2, 4, 5, 8), numbers(2, 4, 7, 8, seed=1), numbers(2, 4, 7, 3, seed=2)
DISTANCE = np.arange(7) - (np.arange(5) + 2)[:, None]


def test_masks_that_are_added() -> None:
    bias = numbers(4, 5, 7, seed=3)
    near(both(lambda q, k, v, b: fl.attention(q, k, v, bias=b), Q, K, V, bias), attended(Q, K, V, added=bias), 1e-5)
    hidden = np.where(numbers(5, 7, seed=4) > 0.5, -np.inf, bias[0]).astype(np.float32)
    hidden[3] = -np.inf
    got = both(lambda q, k, v, b: fl.attention(q, k, v, mask=b, scale=0.5), Q, K, V, hidden)
    near(got, attended(Q, K, V, added=hidden, scale=0.5), 1e-5)
    assert not got[:, :, 3].any() and got[:, :, 2].all()
    seen = numbers(2, 1, 1, 7, seed=5) > 0
    near(
        run(lambda q, k, v, m, b: fl.attention(q, k, v, mask=m, bias=b, causal=True), Q, K, V, seen, bias),
        attended(Q, K, V, seen & (DISTANCE <= 0), bias),
        1e-5,
    )


@pytest.mark.parametrize("window", [1, 2, 4, 100])
def test_windows(window: int) -> None:
    near(both(lambda q, k, v: fl.attention(q, k, v, window=window), Q, K, V), attended(Q, K, V, np.abs(DISTANCE) < window), 1e-5)
    last = (DISTANCE <= 0) & (-window < DISTANCE)
    near(both(lambda q, k, v: fl.attention(q, k, v, window=window, causal=True), Q, K, V), attended(Q, K, V, last), 1e-5)


def test_queries_before_all_keys_get_zeros() -> None:
    got = run(lambda q, k, v: fl.attention(q, k, v, causal=True), K, Q, V[:, :, :5])
    assert not got[:, :, :2].any() and got[:, :, 2:].all()


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_grouped_queries(heads: int) -> None:
    k, v = K[:, :heads], V[:, :heads]
    want = attended(Q, np.repeat(k, 4 // heads, 1), np.repeat(v, 4 // heads, 1), DISTANCE <= 0)
    near(run(lambda q, k, v: fl.attention(q, k, v, causal=True), Q, k, v), want, 1e-5)


def test_decoding_by_steps_is_attention_over_all() -> None:
    q, k, v = numbers(2, 4, 6, 8), numbers(2, 2, 6, 8, seed=1), numbers(2, 2, 6, 3, seed=2)

    def step(q: Any, k: Any, v: Any, ks: Any, vs: Any, p: Any) -> Any:
        return fl.cached_attention(q, k, v, ks, vs, p, window=4)

    keys, values = np.full((2, 2, 9, 8), np.float32(7)), np.full((2, 2, 9, 3), np.float32(1e30))
    whole = run(lambda q, k, v: fl.attention(q, k, v, causal=True, window=4), q, k, v)
    parts, at = [], 0
    for n in (2, 1, 3):
        now = slice(at, at + n)
        out, keys, values = run(step, q[:, :, now], k[:, :, now], v[:, :, now], keys, values, np.int32(at))
        parts.append(out)
        at += n
    near(np.concatenate(parts, 2), whole, 1e-5)
    same(keys[:, :, :6], k)
    assert (keys[:, :, 6:] == 7).all()


def test_each_sequence_of_a_batch_has_its_own_position_and_rows_outside_the_cache_are_dropped() -> None:
    q, k, v = numbers(2, 1, 2, 4), numbers(2, 1, 2, 4, seed=1), numbers(2, 1, 2, 4, seed=2)
    cache = numbers(2, 1, 5, 4, seed=3)
    at = np.array([1, 4], np.int64)
    out, keys, values = run(lambda q, k, v, c, p: fl.cached_attention(q, k, v, c, c, p), q, k, v, cache, at)
    want = cache.copy()
    want[0, 0, 1:3], want[1, 0, 4] = k[0, 0], k[1, 0, 0]
    same(keys, want)
    near(out[0, 0, 0], attended(q[0, 0, :1], keys[0, 0, :2], values[0, 0, :2])[0], 1e-5)
    near(out[1, 0, 0], attended(q[1, 0, :1], keys[1, 0], values[1, 0])[0], 1e-5)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(interleaved: bool) -> None:
    x = numbers(2, 3, 5, 8)

    def turned(positions: Array, base: float = 10000.0) -> Array:
        angle = positions[:, None] * base ** (-np.arange(0, 8, 2) / 8)
        pairs = x.reshape(2, 3, 5, 4, 2) if interleaved else x.reshape(2, 3, 5, 2, 4).swapaxes(-1, -2)
        rotated = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angle)
        out = np.stack([rotated.real, rotated.imag], -1)
        return out.reshape(x.shape) if interleaved else out.swapaxes(-1, -2).reshape(x.shape)  # type: ignore[no-any-return]

    near(run(lambda x: fl.rotary(x, interleaved=interleaved), x), turned(np.arange(5)), 1e-5)
    later = run(lambda x, p: fl.rotary(x, offset=p, interleaved=interleaved, base=500.0), x, np.int32(40))
    near(later, turned(40 + np.arange(5), 500.0), 1e-5)
    places = np.array([3, 0, 9, 9, 1])
    near(run(lambda x, p: fl.rotary(x, p, interleaved=interleaved), x, places), turned(places), 1e-5)
    free = fl.trace(lambda x: fl.rotary(x, interleaved=interleaved), inputs={"x": fl.f32("n", "h", "t", 8)})
    near(free.run(x), turned(np.arange(5)), 1e-5)


def test_rotary_scores_depend_on_distances_alone() -> None:
    q, k = numbers(6, 8), numbers(6, 8, seed=1)

    def scores(q: Any, k: Any, p: Any) -> Any:
        return fl.rotary(q, offset=p) @ fl.rotary(k, offset=p).T

    near(run(scores, q, k, np.int32(0)), run(scores, q, k, np.int32(25)), 1e-4)


def test_sinusoidal_positions() -> None:
    angle = np.arange(7)[:, None] / 10000 ** (np.arange(0, 6, 2) / 6)
    want = np.stack([np.sin(angle), np.cos(angle)], -1).reshape(7, 6)
    near(run(lambda: fl.sinusoidal_positions(7, 6)), want, 1e-6)
    near(run(lambda x: x + fl.sinusoidal_positions(x.shape[0], 6), np.zeros((7, 6), np.float32)), want, 1e-6)


def test_alibi() -> None:
    published = {4: [-2, -4, -6, -8], 3: [-4, -8, -2], 6: [-2, -4, -6, -8, -1, -3]}
    for heads, powers in published.items():
        slopes = 2.0 ** np.array(powers)
        same(run(lambda h=heads: fl.alibi(h, 5, 7)), (-slopes[:, None, None] * np.abs(DISTANCE)).astype(np.float32))
    bias = run(lambda: fl.alibi(4, 5, 7))
    near(run(lambda q, k, v: fl.attention(q, k, v, bias=fl.alibi(4, 5, 7)), Q, K, V), attended(Q, K, V, added=bias), 1e-5)


def test_refusals() -> None:
    for wrong, code, said in [
        (lambda q, k, v: fl.attention(q, k, v, window=0), "A304", "at least 1"),
        (lambda q, k, v: fl.attention(q, k[:, :3], v[:, :3]), "A301", "no multiple of the 3"),
        (lambda q, k, v: fl.attention(q, k, v, mask=np.ones((5, 7), np.int32)), "A306", "true where a query sees a key"),
        (lambda q, k, v: fl.attention(q, k, v, bias=np.ones((5, 7), bool)), "A306", "added to the scores"),
        (lambda q, k, v: fl.attention(q, k, v, bias=np.ones((2, 1, 1, 1, 1), np.float32)), "A301", "broadcast to the scores"),
        (lambda q, k, v: fl.cached_attention(q, k, v, k[:, :, :, :3], v, 0), "A301", "number of positions"),
        (lambda q, k, v: fl.cached_attention(q, k, v, k, v, np.zeros(3, np.int32)), "A307", "first axis"),
        (lambda q, k, v: fl.rotary(v), "A303", "in pairs"),
        (lambda q, k, v: fl.rotary(q, np.arange(4)), "A301", "one for each of the 5"),
        (lambda q, k, v: fl.rotary(q, base=0.0), "A304", "above 0"),
        (lambda q, k, v: fl.rotary(q[0, 0, 0]), "A307", "position and feature"),
        (lambda q, k, v: fl.alibi(0, 5, 7), "A304", "positive number of heads"),
    ]:  # fmt: skip
        problem = refusal(wrong, Q, K, V)
        assert problem.code == code and said in problem.why, (problem.asked, problem.why)
