from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, graph_of, near, numbers, refusal, run, same
from scipy import special

PAIRS = [
    ((4, 5), (5, 3)), ((5,), (5,)), ((5,), (5, 3)), ((4, 5), (5,)), ((2, 4, 5), (5, 3)), ((4, 5), (2, 5, 3)), ((2, 4, 5), (2, 5, 3)),
    ((2, 1, 4, 5), (3, 5, 2)), ((1, 1), (1, 1)), ((2, 4, 5), (5,)), ((7, 11), (11, 13)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", PAIRS, ids=str)
def test_matmul(shapes: Any) -> None:
    a, b = numbers(*shapes[0]), numbers(*shapes[1], seed=1)
    near(run(lambda a, b: a @ b, a, b), a @ b, 1e-5)
    near(run(lambda a, b: fl.matmul(a, b), a, b, symbolic=True), a @ b, 1e-5)


def test_matmul_names_its_axes_and_is_one_matmul_stage() -> None:
    (stage,) = graph_of(lambda a, b: a @ b, numbers(2, 3, 4, 5), numbers(5, 6)).stages
    assert stage.path.endswith("/matmul") and stage.facts["kind"] == "matmul"
    assert stage.axis_names == ("n", "n1", "i", "j") and [a.name for a in stage.reduce_axes] == ["k"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "bool", "float64"])
def test_matmul_widens_narrow_integers_before_it_multiplies(dtype: str) -> None:
    a = np.full((2, 3), 1 if dtype == "bool" else 100).astype(dtype)
    want = {"int8": "int32", "int16": "int32", "bool": "int32", "uint8": "uint32"}.get(dtype, dtype)
    same(run(lambda a: a @ a.T, a), a.astype(want) @ a.T.astype(want))


def test_matmul_over_nothing() -> None:
    same(run(lambda a, b: a @ b, np.ones((2, 0), np.float32), np.ones((0, 3), np.float32)), np.zeros((2, 3), np.float32))


def test_vectors_and_layers() -> None:
    a, b = numbers(5), numbers(5, seed=1)
    near(both(lambda a, b: fl.dot(a, b), a, b), a @ b)
    same(both(lambda a, b: fl.outer(a, b), a, b[:3]), np.outer(a, b[:3]))
    x, w = numbers(2, 4, 5), numbers(5, 3, seed=1)
    near(run(lambda x, w, b: fl.linear(x, w, b), x, w, b[:3]), x @ w + b[:3], 1e-5)
    near(run(lambda x, w: fl.linear(x, w), x, w), x @ w, 1e-5)
    near(run(lambda x: np.eye(5, dtype=np.float32) @ x, a), a)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_and_its_logarithm(axis: int, dtype: str) -> None:
    x = numbers(3, 4, 5, dtype=dtype) * np.array(30, dtype)
    near(both(lambda x: fl.softmax(x, axis), x), special.softmax(x, axis), 1e-6)
    near(both(lambda x: fl.log_softmax(x, axis), x), special.log_softmax(x, axis), 1e-5)
    near(both(lambda x: fl.logsumexp(x, axis), x), special.logsumexp(x, axis), 1e-5)
    near(both(lambda x: fl.logsumexp(x, axis, True), x), special.logsumexp(x, axis, keepdims=True), 1e-5)


def test_softmax_of_extreme_rows() -> None:
    big = np.array([[1e4, 1e4, -1e4], [-3e38, -3e38, -3e38]], np.float32)
    near(run(lambda x: fl.softmax(x), big), [[0.5, 0.5, 0], [1 / 3] * 3])
    near(run(lambda x: fl.logsumexp(x), np.full(3, -np.inf, np.float32)), -np.inf)
    near(run(lambda x: fl.logsumexp(x), big), special.logsumexp(big))


def test_softmax_with_a_mask() -> None:
    x, mask = numbers(3, 4), np.array([[1, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]], bool)
    want = special.softmax(np.where(mask, x, -np.inf)[[0, 2]], -1)
    got = run(lambda x, mask: fl.softmax(x, where=mask), x, mask)
    near(got, [want[0], np.zeros(4), want[1]])
    assert refusal(lambda x: fl.softmax(x, where=x), x).code == "A306"
    assert "[3, 4]" in refusal(lambda x: fl.softmax(x, where=np.ones((2, 3, 4), bool)), x).asked


def test_normalisations() -> None:
    x, g, b = numbers(2, 3, 7) * 3 + 1, numbers(7, seed=1), numbers(7, seed=2)
    unit = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    near(both(lambda x: fl.layer_norm(x), x), unit, 1e-5)
    near(both(lambda x, g, b: fl.layer_norm(x, g, b), x, g, b), unit * g + b, 1e-5)
    both_axes = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 0.1)
    near(both(lambda x, b: fl.layer_norm(x, shift=b, axis=(1, 2), eps=0.1), x, b), both_axes + b, 1e-5)
    near(both(lambda x, g: fl.rms_norm(x, g), x, g), x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g, 1e-5)
    assert refusal(lambda x, g: fl.layer_norm(x, g), x, numbers(2, 2, 3, 7)).code == "A301"
    assert refusal(lambda x, g: fl.layer_norm(x, g), x, numbers(3)).code == "A301"


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray) -> np.ndarray:
    scores = np.where(seen, q.astype(float) @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    top = np.where(np.isfinite(scores.max(-1, keepdims=True)), scores.max(-1, keepdims=True), 0)
    raised = np.exp(scores - top)
    total = raised.sum(-1, keepdims=True)
    return np.where(total > 0, raised / np.where(total > 0, total, 1), 0) @ v


def test_attention() -> None:
    q, k, v = numbers(2, 3, 5, 8), numbers(2, 3, 7, 8, seed=1), numbers(2, 3, 7, 4, seed=2)
    everything = np.ones((5, 7), bool)
    near(both(lambda q, k, v: fl.attention(q, k, v), q, k, v), attended(q, k, v, everything), 1e-5)
    near(both(lambda q, k, v: fl.attention(q, k, v, causal=True), q, k, v), attended(q, k, v, np.tri(5, 7, 2, dtype=bool)), 1e-5)
    mask = numbers(2, 1, 5, 7, dtype="bool")
    mask[:, :, 2] = False
    got = run(lambda q, k, v, m: fl.attention(q, k, v, mask=m), q, k, v, mask)
    near(got, attended(q, k, v, mask), 1e-5)
    assert not got[:, :, 2].any()
    near(
        run(lambda q, k, v, m: fl.attention(q, k, v, mask=m, causal=True), q, k, v, mask),
        attended(q, k, v, mask & np.tri(5, 7, 2, dtype=bool)),
        1e-5,
    )
    near(run(lambda q, k, v: fl.attention(q, k, v, scale=0.0), q, k, v), np.broadcast_to(v.mean(-2, keepdims=True), (2, 3, 5, 4)), 1e-5)
    near(run(lambda q: fl.attention(q, q, q), q[0, 0]), attended(q[0, 0], q[0, 0], q[0, 0], np.ones((5, 5), bool)), 1e-5)


def test_refusals_name_both_shapes() -> None:
    problem = refusal(lambda a, b: a @ b, numbers(2, 3), numbers(4, 3))
    assert problem.code == "A301" and "[2, 3]" in problem.asked and "[4, 3]" in problem.asked and "b.T" in problem.try_
    assert refusal(lambda a: a @ 2, numbers(3)).code == "A307"
    assert refusal(lambda a, b: a @ b, numbers(2, 3, 4), numbers(3, 4, 5)).code == "A301"
    assert refusal(lambda a, b: a @ b, numbers(2, 3), np.ones((3, 2), np.int32)).code == "A104"
    assert refusal(lambda a: fl.dot(a, a), numbers(2, 2)).code == "A307"
    assert refusal(lambda a: fl.softmax(a), np.arange(3)).code == "A306"
    q = numbers(4, 8)
    assert "[4, 8]" in refusal(lambda q: fl.attention(q, q[:, 1:], q), q).asked
    assert refusal(lambda q: fl.attention(q, q, q, mask=np.ones((4, 4), np.int32)), q).code == "A306"
    assert refusal(lambda q: fl.attention(q, q, q, mask=np.ones((3, 4), bool)), q).code == "A301"
    assert refusal(lambda q: fl.attention(q[0], q, q), q).code == "A307"
