"""Normalisations of channels, activations and losses, against their formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, graph_of, near, numbers, refusal, run
from scipy import special

Array = np.ndarray[Any, Any]


def sigmoid(x: Array) -> Array:
    return special.expit(x)  # type: ignore[no-any-return]


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- activations
ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[[Array], Array]]] = {
    "relu6": (fl.relu6, lambda x: np.clip(x, 0, 6)),
    "hardtanh": (lambda x: fl.hardtanh(x, low=-2.0, high=0.5), lambda x: np.clip(x, -2, 0.5)),
    "hardsigmoid": (fl.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hardswish": (fl.hardswish, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "hardshrink": (fl.hardshrink, lambda x: np.where(np.abs(x) > 0.5, x, 0)),
    "softshrink": (fl.softshrink, lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0)),
    "threshold": (lambda x: fl.threshold(x, above=0.1, value=20.0), lambda x: np.where(x > 0.1, x, 20)),
    "elu": (lambda x: fl.elu(x, alpha=0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    "celu": (lambda x: fl.celu(x, alpha=1.3), lambda x: np.where(x > 0, x, 1.3 * np.expm1(x / 1.3))),
    "selu": (fl.selu, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "quick_gelu": (fl.quick_gelu, lambda x: x * sigmoid(1.702 * x)),
    "mish": (fl.mish, lambda x: x * np.tanh(softplus(x))),
    "logsigmoid": (fl.logsigmoid, lambda x: -softplus(-x)),
    "softsign": (fl.softsign, lambda x: x / (1 + np.abs(x))),
    "tanhshrink": (fl.tanhshrink, lambda x: x - np.tanh(x)),
    "softmin": (fl.softmin, lambda x: special.softmax(-x, -1)),
    "glu": (fl.glu, lambda x: x[..., :4] * sigmoid(x[..., 4:])),
    "swiglu": (lambda x: fl.swiglu(x, 1), lambda x: x[:, :3] * sigmoid(x[:, :3]) * x[:, 3:]),
    "geglu": (lambda x: fl.geglu(x, axis=-2), lambda x: x[:, :3] * special.ndtr(x[:, :3]) * x[:, 3:]),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    fn, formula = ACTIVATIONS[name]
    x = 4 * numbers(5, 6, 8)
    near(run(lambda x: fn(x), x), formula(x.astype(float)), 1e-5)


def test_activations_far_from_zero_are_finite_and_nan_stays() -> None:
    x = np.array([-1e4, -100, 0, 100, 1e4, np.nan], np.float32)
    for name, (fn, formula) in ACTIVATIONS.items():
        if name not in ("glu", "swiglu", "geglu", "softmin"):
            got = run(lambda x, f=fn: f(x), x)
            with np.errstate(all="ignore"):
                near(got[:5], formula(x[:5].astype(float)), 1e-5)
            assert np.isnan(got[5]) or name in ("threshold",), name


def test_prelu_and_activations_inside_a_stage() -> None:
    x, slope = numbers(2, 3, 4, 5), numbers(3, seed=1)
    near(run(lambda x, s: fl.prelu(x, fl.reshape(s, (3, 1, 1))), x, slope), np.where(x > 0, x, x * slope[:, None, None]))
    near(
        run(lambda x: fl.stage(lambda i: fl.mish(x[i]) + fl.relu6(x[i])), x[0, 0, 0]),
        ACTIVATIONS["mish"][1](x[0, 0, 0]) + np.clip(x[0, 0, 0], 0, 6),
    )


# ---------------------------------------------------------------- normalisations
def standard(x: Array, axes: tuple[int, ...], eps: float = 1e-5) -> Array:
    x = x.astype(float)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)  # type: ignore[no-any-return]


@pytest.mark.parametrize("space", [(), (5,), (5, 3), (2, 5, 3)], ids=str)
def test_normalisations_of_channels(space: tuple[int, ...]) -> None:
    x, scale, shift = 3 + numbers(4, 6, *space), numbers(6, seed=1), numbers(6, seed=2)
    mean, var = numbers(6, seed=3), np.abs(numbers(6, seed=4)) + 0.1
    wide: Callable[[Array], Array] = lambda v: v.reshape(6, *(1,) * len(space))  # noqa: E731
    running = (x - wide(mean)) / np.sqrt(wide(var) + 1e-3) * wide(scale) + wide(shift)
    near(both(lambda x, s, b, m, v: fl.batch_norm(x, s, b, mean=m, var=v, eps=1e-3), x, scale, shift, mean, var), running, 1e-5)
    over = tuple(d for d in range(x.ndim) if d != 1)
    near(both(lambda x, s, b: fl.batch_norm(x, s, b), x, scale, shift), standard(x, over) * wide(scale) + wide(shift), 1e-5)
    grouped = standard(x.reshape(4, 3, 2, *space), tuple(range(2, x.ndim + 1))).reshape(x.shape)
    near(both(lambda x, s, b: fl.group_norm(x, 3, s, b), x, scale, shift), grouped * wide(scale) + wide(shift), 1e-4)
    if space:
        near(both(lambda x, s: fl.instance_norm(x, s), x, scale), standard(x, tuple(range(2, x.ndim))) * wide(scale), 1e-5)
    squares = np.pad(x.astype(float) ** 2, [(0, 0), (2, 1), *[(0, 0)] * len(space)])
    around = sum(squares[:, k : k + 6] for k in range(4))
    near(both(lambda x: fl.local_response_norm(x, 4, alpha=0.5, beta=0.6, k=2.0), x), x / (2 + 0.5 / 4 * around) ** 0.6, 1e-5)


def test_standard_kernels() -> None:
    w = numbers(6, 4, 3, 3) + 1
    near(run(lambda w: fl.weight_standardization(w, eps=1e-3), w), standard(w, (1, 2, 3), 1e-3), 1e-5)


def test_batch_norm_with_running_statistics_is_one_stage() -> None:
    x, m = numbers(2, 3, 4), numbers(3)
    assert len(graph_of(lambda x, m: fl.batch_norm(x, m, m, mean=m, var=m), x, m).stages) == 1


# ---------------------------------------------------------------- losses
def reduced(each: Array) -> dict[str, Array]:
    return {"none": each, "mean": each.mean(), "sum": each.sum()}


def cosine(a: Array, b: Array) -> Array:
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))  # type: ignore[no-any-return]


def huber(d: Array, delta: float) -> Array:
    return np.where(np.abs(d) <= delta, d * d / 2, delta * (np.abs(d) - delta / 2))


X, Y, LABELS = 2 * numbers(5, 7), numbers(5, 7, seed=1), numbers(5, 7, seed=2) > 0
P = sigmoid(X).astype(np.float32)
T, SIGNS = LABELS.astype(np.float32), np.where(LABELS, 1, -1).astype(np.float32)
W = np.abs(numbers(7, seed=5))
Q = special.softmax(Y, -1).astype(np.float32)
LOGS = special.log_softmax(X, -1).astype(np.float32)
BCE = softplus(X.astype(float)) - X * T
LOSSES: dict[str, tuple[Callable[..., Any], tuple[Array, ...], Array]] = {
    "mse_loss": (fl.mse_loss, (X, Y), (X - Y) ** 2),
    "l1_loss": (fl.l1_loss, (X, Y), np.abs(X - Y)),
    "huber_loss": (lambda x, y, **o: fl.huber_loss(x, y, delta=0.7, **o), (X, Y), huber(X - Y, 0.7)),
    "smooth_l1_loss": (lambda x, y, **o: fl.smooth_l1_loss(x, y, beta=0.7, **o), (X, Y), huber(X - Y, 0.7) / 0.7),
    "binary_cross_entropy": (fl.binary_cross_entropy, (P, T), -(T * np.log(P) + (1 - T) * np.log1p(-P))),
    "with_logits": (fl.binary_cross_entropy_with_logits, (X, T), BCE),
    "weighted": (
        lambda x, t, w, **o: fl.binary_cross_entropy_with_logits(x, t, positive_weight=w, **o),
        (X, T, W),
        W * T * softplus(-X) + (1 - T) * softplus(X),
    ),
    "focal_loss": (fl.focal_loss, (X, T), np.where(T > 0, 0.25, 0.75) * (1 - np.exp(-BCE)) ** 2 * BCE),
    "unbalanced": (lambda x, t, **o: fl.focal_loss(x, t, alpha=-1, gamma=1.5, **o), (X, T), (1 - np.exp(-BCE)) ** 1.5 * BCE),
    "kl_div": (fl.kl_div, (LOGS, Q), Q * (np.log(Q) - LOGS)),
    "kl_div_of_logs": (lambda x, y, **o: fl.kl_div(x, y, log_target=True, **o), (LOGS, np.log(Q)), Q * (np.log(Q) - LOGS)),
    "hinge_loss": (fl.hinge_loss, (X, SIGNS), np.maximum(1 - X * SIGNS, 0)),
    "hinge_embedding_loss": (fl.hinge_embedding_loss, (np.abs(X), SIGNS), np.where(LABELS, np.abs(X), np.maximum(1 - np.abs(X), 0))),
    "cosine_embedding_loss": (
        lambda a, b, y, **o: fl.cosine_embedding_loss(a, b, y, margin=0.1, **o),
        (X, Y, SIGNS[:, 0]),
        np.where(LABELS[:, 0], 1 - cosine(X, Y), np.maximum(cosine(X, Y) - 0.1, 0)),
    ),
    "triplet_margin_loss": (
        fl.triplet_margin_loss,
        (X, Y, T),
        np.maximum(np.linalg.norm(X - Y + 1e-6, axis=-1) - np.linalg.norm(X - T + 1e-6, axis=-1) + 1, 0),
    ),
    "triplet_of_order_1": (
        lambda a, p, n, **o: fl.triplet_margin_loss(a, p, n, p=1, **o),
        (X, Y, T),
        np.maximum(np.abs(X - Y).sum(-1) - np.abs(X - T).sum(-1) + 1, 0),
    ),
}


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str, reduction: str) -> None:
    fn, inputs, each = LOSSES[name]
    operands = ", ".join("abc"[: len(inputs)])
    near(run(eval(f"lambda {operands}: fn({operands}, reduction={reduction!r})", {"fn": fn}), *inputs), reduced(each)[reduction], 1e-5)


def test_divergence_by_batch_and_similarity_along_any_axis() -> None:
    near(run(lambda x, q: fl.kl_div(x, q, reduction="batchmean"), LOGS, Q), (Q * (np.log(Q) - LOGS)).sum() / 5, 1e-5)
    zero = np.where(LABELS, Q, 0).astype(np.float32)
    near(run(lambda x, q: fl.kl_div(x, q, reduction="sum"), LOGS, zero), special.xlogy(zero, zero).sum() - (zero * LOGS).sum(), 1e-5)
    near(both(lambda a, b: fl.cosine_similarity(a, b), X, Y), cosine(X, Y), 1e-5)
    near(both(lambda a, b: fl.cosine_similarity(a, b, axis=0), X, Y), cosine(X.T, Y.T), 1e-5)
    near(run(lambda a, b: fl.cosine_similarity(a, b), X[0], 0 * X[0]), np.float32(0))


def test_losses_of_extreme_logits_are_finite() -> None:
    x, t = np.array([-1e4, 1e4, -1e4, 1e4], np.float32), np.array([0, 1, 1, 0], np.float32)
    near(run(lambda x, t: fl.binary_cross_entropy_with_logits(x, t, reduction="none"), x, t), np.array([0, 0, 1e4, 1e4]))
    near(run(lambda p, t: fl.binary_cross_entropy(p, t, reduction="none"), t, 1 - t), np.full(4, 100.0))
    near(
        run(lambda x, k: fl.cross_entropy(x, k, reduction="none"), np.stack([x, x]), np.array([1, 0])),
        np.array([np.log(2), 2e4 + np.log(2)]),
    )


def smoothed(logs: Array, k: Array, w: Array, e: float) -> Array:
    picked = np.take_along_axis(logs * w, k[:, None], 1)[:, 0]
    return (1 - e) * -picked - e / logs.shape[1] * (logs * w).sum(1)  # type: ignore[no-any-return]


@pytest.mark.parametrize("e", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_cross_entropy_of_class_indices(weighted: bool, e: float, dtype: str) -> None:
    k, w = np.array([3, 0, -100, 6, 2], dtype), W if weighted else np.ones(7)
    logs, there = special.log_softmax(X.astype(float), -1), k >= 0
    each = np.where(there, smoothed(logs, np.maximum(k, 0), w, e), 0)
    for reduction, want in {"none": each, "sum": each.sum(), "mean": each.sum() / (w[np.maximum(k, 0)] * there).sum()}.items():
        options = {"reduction": reduction}

        def loss(x: Any, k: Any, w: Any, o: Any = options) -> Any:
            return fl.cross_entropy(x, k, label_smoothing=e, weight=w if weighted else None, **o)

        near(both(loss, X, k, W), want, 1e-5)
        if not e:
            near(run(lambda x, k, w, o=options: fl.nll_loss(x, k, weight=w if weighted else None, **o), LOGS, k, W), want, 1e-5)


def test_cross_entropy_of_probabilities_along_any_axis_and_of_one_row() -> None:
    logs = special.log_softmax(X.astype(float), 0)
    q = special.softmax(Y, 0).astype(np.float32)
    near(both(lambda x, q: fl.cross_entropy(x, q, axis=0), X, q), -(q * logs).sum(0).mean(), 1e-5)
    even = 0.8 * q + 0.2 / 5
    near(
        run(lambda x, q: fl.cross_entropy(x, q, axis=0, label_smoothing=0.2, weight=W[:5], reduction="none"), X, q),
        -(even * logs * W[:5, None]).sum(0),
        1e-5,
    )
    image, target = numbers(2, 4, 3, 5), np.abs(numbers(2, 3, 5, seed=1, dtype="int32")) % 4
    picked = np.take_along_axis(special.log_softmax(image.astype(float), 1), target[:, None], 1)
    near(both(lambda x, k: fl.cross_entropy(x, k, axis=1), image, target), -picked.mean(), 1e-5)
    near(run(lambda x, k: fl.cross_entropy(x, k), X[0], np.int32(4)), -special.log_softmax(X[0].astype(float))[4], 1e-5)
    bytes_ = np.array([1, 2, 255, 3, 0], np.uint8)
    kept = special.log_softmax(X.astype(float), -1)[[0, 1, 3, 4], [1, 2, 3, 0]]
    near(run(lambda x, k: fl.cross_entropy(x, k, ignore_index=255), X, bytes_), -kept.mean(), 1e-5)


def test_refusals() -> None:
    x, k = numbers(4, 6, 5), np.zeros((4, 6), np.int32)
    for wrong, code, said in [
        (lambda x, k: fl.glu(x), "A303", "not even"),
        (lambda x, k: fl.hardtanh(x, low=1.0, high=0.0), "A304", "low is below high"),
        (lambda x, k: fl.batch_norm(x[0, 0]), "A307", "at least 2 axes"),
        (lambda x, k: fl.batch_norm(x, numbers(5)), "A301", "each of the 6 channels"),
        (lambda x, k: fl.batch_norm(x, mean=numbers(6)), "A304", "are both"),
        (lambda x, k: fl.group_norm(x, 4), "A304", "divides 6 channels"),
        (lambda x, k: fl.instance_norm(x[0]), "A307", "axes of space"),
        (lambda x, k: fl.local_response_norm(x, 0), "A304", "positive number of channels"),
        (lambda x, k: fl.mse_loss(x, x, reduction="average"), "A304", "what becomes of the single losses"),
        (lambda x, k: fl.mse_loss(x, x[:3]), "A301", "broadcasting"),
        (lambda x, k: fl.huber_loss(x, x, delta=0.0), "A304", "above 0"),
        (lambda x, k: fl.kl_div(x, x, reduction="median"), "A304", "what becomes"),
        (lambda x, k: fl.triplet_margin_loss(x, x, x[:1]), "A301", "one shape"),
        (lambda x, k: fl.triplet_margin_loss(x, x, x, p=3), "A304", "order 1 or 2"),
        (lambda x, k: fl.cross_entropy(x, k[0]), "A301", "the other axes: [4, 6]"),
        (lambda x, k: fl.cross_entropy(x, x[:1]), "A301", "shape of the logits"),
        (lambda x, k: fl.cross_entropy(x, k, weight=numbers(6)), "A301", "each of the 5 classes"),
        (lambda x, k: fl.cross_entropy(x, k, label_smoothing=2.0), "A304", "from 0 to 1"),
        (lambda x, k: fl.nll_loss(x, k > 0), "A306", "indices are integers"),
    ]:  # fmt: skip
        problem = refusal(wrong, x, k)
        assert problem.code == code and said in problem.why, (problem.asked, problem.why)
