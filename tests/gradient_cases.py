"""Functions to differentiate: operators, views, scans and recurrences, each with operands at which finite differences follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np

G = np.random.default_rng(3)
STEPS = np.array([3, 1, 0], np.int32)


def normal(*shape: int) -> np.ndarray:
    return G.standard_normal(shape)


def ids(high: int, *shape: int) -> np.ndarray:
    return G.integers(0, high, shape).astype(np.int32)


def taps(view: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A stencil that reads past every end of a boundary view."""

    def stencil(x: Any) -> Any:
        e = view(x)
        return fl.stage(lambda i, j: (e[i, j - 2] + 2 * e[i, j] * e[i, j] + e[i + 1, j + 2]) / 3)

    return stencil


def cell(carry: Any, x: Any, w: Any) -> Any:
    h, c = carry
    z = fl.stage(lambda n, j, q: fl.sum(lambda k: h[n, k] * w[k, j, q]) + x[n, j])
    c = fl.sigmoid(z[..., 1]) * c + fl.tanh(z[..., 2])
    return (fl.tanh(c) * fl.sigmoid(z[..., 0]), c), c


OPERATORS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "edge": (taps(fl.edge), (normal(5, 6),)),
    "reflect": (taps(fl.reflect), (normal(5, 6),)),
    "wrap": (taps(fl.wrap), (normal(5, 6),)),
    "conv1d": (lambda x, w: fl.conv1d(x, w, stride=2, padding=1), (normal(2, 3, 9), normal(4, 3, 3))),
    "conv2d": (lambda x, w: fl.conv2d(x, w, padding=1), (normal(2, 3, 6, 5), normal(4, 3, 3, 3))),
    "conv2d of stride 2": (lambda x, w: fl.conv2d(x, w, stride=2, padding=1), (normal(2, 3, 7, 6), normal(4, 3, 3, 3))),
    "conv2d dilated": (lambda x, w: fl.conv2d(x, w, stride=2, padding=2, dilation=2), (normal(1, 2, 9, 8), normal(4, 2, 3, 3))),
    "conv2d of stride 3": (lambda x, w: fl.conv2d(x, w, stride=3, padding=1), (normal(1, 2, 10, 8), normal(2, 2, 2, 4))),
    "conv2d in groups": (lambda x, w: fl.conv2d(x, w, padding=1, groups=2), (normal(1, 4, 5, 5), normal(6, 2, 3, 3))),
    "conv3d": (lambda x, w: fl.conv3d(x, w, padding=1), (normal(1, 2, 3, 4, 4), normal(2, 2, 3, 3, 3))),
    "conv_transpose2d": (lambda x, w: fl.conv_transpose2d(x, w, stride=2, padding=1), (normal(1, 3, 4, 5), normal(3, 2, 3, 3))),
    "max_pool2d": (lambda x: fl.max_pool2d(x, 3, stride=2, padding=1), (normal(1, 2, 7, 7),)),
    "avg_pool2d": (lambda x: fl.avg_pool2d(x, 3, stride=2, padding=1), (normal(1, 2, 7, 7),)),
    "adaptive_avg_pool2d": (lambda x: fl.adaptive_avg_pool2d(x, (3, 2)), (normal(1, 2, 7, 7),)),
    "softmax": (lambda x: fl.softmax(x, -1), (normal(3, 5),)),
    "log_softmax": (lambda x: fl.log_softmax(x, -1), (normal(3, 5),)),
    "logsumexp": (lambda x: fl.logsumexp(x, -1), (normal(3, 5),)),
    "layer_norm": (lambda x, w, b: fl.layer_norm(x, w, b), (normal(3, 5), normal(5), normal(5))),
    "rms_norm": (lambda x, w: fl.rms_norm(x, w), (normal(3, 5), normal(5))),
    "group_norm": (lambda x: fl.group_norm(x, 2), (normal(2, 4, 3, 3),)),
    "instance_norm": (lambda x: fl.instance_norm(x), (normal(2, 4, 3, 3),)),
    "gelu": (fl.gelu, (normal(9),)),
    "silu": (fl.silu, (normal(9),)),
    "softplus": (fl.softplus, (normal(9),)),
    "mish": (fl.mish, (normal(9),)),
    "elu": (fl.elu, (normal(9),)),
    "selu": (fl.selu, (normal(9),)),
    "leaky_relu": (fl.leaky_relu, (normal(9),)),
    "hardswish": (fl.hardswish, (normal(9),)),
    "cross_entropy": (lambda x, y: fl.cross_entropy(x, y), (normal(4, 5), ids(5, 4))),
    "embedding": (lambda i, w: fl.embedding(i, w), (ids(6, 4, 3), normal(6, 2))),
    "take": (lambda x, i: fl.take(x, i, axis=1), (normal(3, 5), ids(5, 4))),
    "take_along_axis": (lambda x, i: fl.take_along_axis(x, i, 1), (normal(3, 5), ids(5, 3, 2))),
    "gather_nd": (lambda x, i: fl.gather_nd(x, i), (normal(3, 5), np.stack([ids(3, 4), ids(5, 4)], -1))),
    "scatter_add": (lambda x, i, v: fl.scatter_add(x, i, v), (normal(6, 2), ids(6, 4), normal(4, 2))),
    "scatter": (lambda x, i, v: fl.scatter(x, i, v), (normal(6, 2), np.array([3, 1, 5], np.int32), normal(3, 2))),
    "segment_sum": (lambda x, i: fl.segment_sum(x, i, 4), (normal(6, 2), ids(4, 6))),
    "segment_max": (lambda x, i: fl.segment_max(x, i, 3), (normal(6, 2), np.array([0, 1, 2, 0, 1, 2], np.int32))),
    "sort": (lambda x: fl.sort(x), (normal(3, 7),)),
    "top_k": (lambda x: fl.top_k(x, 3)[0], (normal(3, 7),)),
    "median": (lambda x: fl.median(x, axis=-1), (normal(3, 7),)),
    "cumulative_sum": (lambda x: fl.cumulative_sum(x, axis=1), (normal(3, 7),)),
    "cumulative_prod": (lambda x: fl.cumulative_prod(x, axis=1), (normal(3, 5),)),
    "cumulative_max": (lambda x: fl.cumulative_max(x, axis=1), (normal(3, 7),)),
    "prod": (lambda x: fl.prod(x, axis=1), (normal(3, 4),)),
    "prod with zeros": (lambda x: fl.prod(x, axis=1), (np.array([[1.0, 0, 2], [0, 0, 3], [2, 3, 4]]),)),
    "attention": (lambda q, k, v: fl.attention(q, k, v), (normal(1, 2, 3, 4), normal(1, 2, 5, 4), normal(1, 2, 5, 4))),
    "causal attention": (lambda q, k, v: fl.attention(q, k, v, causal=True), (normal(1, 2, 4, 4), normal(1, 2, 4, 4), normal(1, 2, 4, 4))),
    "pixel_shuffle": (lambda x: fl.pixel_shuffle(x, 2), (normal(1, 8, 3, 2),)),
    "reshape": (lambda x: fl.reshape(x, (6, 10)) * 2, (normal(3, 4, 5),)),
    "resize": (lambda x: fl.resize(x, (7, 5)), (normal(4, 3),)),
    "resize bicubic": (lambda x: fl.resize(x, (7, 5), method="bicubic"), (normal(4, 3),)),
    "grid_sample": (lambda x, c: fl.grid_sample(x, c), (normal(1, 2, 5, 6), np.tanh(normal(1, 3, 4, 2)))),
    "rfft": (lambda x: list(fl.rfft(x).parts()), (normal(8),)),
    "std": (lambda x: fl.std(x, axis=1), (normal(3, 5),)),
    "vector_norm": (lambda x: fl.vector_norm(x, axis=1), (normal(3, 5),)),
    "unfold": (lambda x: fl.unfold(x, 3), (normal(1, 2, 5, 5),)),
    "einsum": (lambda a, b: fl.einsum("bij,bjk->bik", a, b), (normal(2, 3, 4), normal(2, 4, 2))),
    "where": (lambda x: fl.where(x > 0, fl.log(fl.abs(x)), x * x), (normal(9),)),
    "diagonal": (lambda x: fl.diagonal(x), (normal(4, 4),)),
    "rotary": (lambda x: fl.rotary(x), (normal(1, 2, 4, 6),)),
    "concat": (lambda a, b: fl.concat([a, b], axis=0) * 3, (normal(3, 2), normal(2, 2))),
    "pad": (lambda a: fl.pad(a, ((1, 2), (0, 1))) * 3, (normal(3, 2),)),
    "roll": (lambda a: fl.roll(a, 2, 0) * 3, (normal(5, 2),)),
    "lfilter": (lambda x: fl.lfilter([0.5, 0.2], [1.0, -0.4], x), (normal(9),)),
    "bilateral": (lambda x: fl.bilateral_filter(x, 2, 1.0, 0.5), (normal(6, 6),)),
    "gaussian": (lambda x: fl.gaussian_filter(x, 1.0), (normal(7, 6),)),
    "scan": (lambda x, w, h: fl.scan(lambda c, e: (fl.tanh(e + c @ w), c * 2), h, x)[0], (normal(5, 2, 3), normal(3, 3), normal(2, 3))),
    "scan, every step": (
        lambda x, w, h: fl.scan(lambda c, e: (fl.tanh(e + c @ w), c * e), h, x)[1],
        (normal(5, 2, 3), normal(3, 3), normal(2, 3)),
    ),
    "scan from the last": (
        lambda x, w, h: fl.scan(lambda c, e: (fl.tanh(e + c @ w), c * e), h, x, reverse=True)[1],
        (normal(5, 2, 3), normal(3, 3), normal(2, 3)),
    ),
    "scan of lengths": (
        lambda x, w, h, n: fl.scan(lambda c, e: (fl.tanh(e + c @ w), c * e), h, x, lengths=n)[1],
        (normal(5, 3, 3), normal(3, 3), normal(3, 3), STEPS),
    ),
    "scan of two carries": (
        lambda x, w, h, c: fl.scan(lambda carry, e: cell(carry, e, w), (h, c), x)[1],
        (normal(4, 2, 3), normal(3, 3, 3), normal(2, 3), normal(2, 3)),
    ),
    "recurrence of two delays": (
        lambda x: fl.recurrence(
            lambda h, t, i: fl.where(t >= 1, 0.9 * h[t - 1, i], 0.0) + fl.where(t >= 2, 0.3 * h[t - 2, i], 0.0) + x[t, i], dtype="float64"
        ),
        (normal(6, 2),),
    ),
    "reduce": (lambda x: fl.stage(lambda i: fl.reduce(lambda a, b: a + b - a * b, 0.0, lambda k: fl.sin(x[i, k]))), (normal(3, 5),)),
    "reduce of parts": (
        lambda x: fl.stage(
            lambda i: fl.reduce(lambda a, b: (b[0] * a[0], b[0] * a[1] + b[1]), (1.0, 0.0), lambda k: (fl.sin(x[i, k]), x[i, k]))[1]
        ),
        (normal(3, 5),),
    ),
    "reduce of two axes": (lambda x: fl.stage(lambda: fl.reduce(fl.logaddexp, -1e30, lambda i, k: x[i, k])), (normal(3, 4),)),
}
STATIC = ("conv2d in groups", "gather_nd", "median", "pixel_shuffle", "reshape", "grid_sample", "rfft", "rotary", "prod with zeros")
"""Those that need to know an extent, or of which one shape is the point."""
