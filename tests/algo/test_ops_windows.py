from __future__ import annotations

import itertools
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, graph_of, near, numbers, refusal, run, same


def padded(x: np.ndarray, sides: Any, value: float) -> np.ndarray:
    return np.pad(x, [(0, 0), (0, 0), *sides], constant_values=value)


def correlated(x: np.ndarray, w: np.ndarray, stride: tuple[int, int], sides: Any, dilation: tuple[int, int], groups: int) -> np.ndarray:
    x = padded(x, sides, 0).astype(float)
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    size = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *size))
    per, channels = w.shape[0] // groups, w.shape[1]
    for o, c, ky, kx in itertools.product(*map(range, w.shape)):
        rows = slice(ky * dilation[0], ky * dilation[0] + (size[0] - 1) * stride[0] + 1, stride[0])
        columns = slice(kx * dilation[1], kx * dilation[1] + (size[1] - 1) * stride[1] + 1, stride[1])
        out[:, o] += x[:, o // per * channels + c, rows, columns] * w[o, c, ky, kx]
    return out


def sides_of(padding: Any, shape: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, int], dilation: tuple[int, int]) -> Any:
    if padding == "same":
        total = [max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0) for n, k, s, d in zip(shape, kernel, stride, dilation, strict=True)]
        return [(t // 2, t - t // 2) for t in total]
    if padding == "valid":
        return [(0, 0), (0, 0)]
    if isinstance(padding, int):
        return [(padding, padding)] * 2
    return [p if isinstance(p, tuple) else (p, p) for p in padding]


@pytest.mark.parametrize("padding", [0, 1, (1, 2), ((0, 1), (2, 0)), "same", "valid"], ids=str)
@pytest.mark.parametrize(("stride", "dilation", "groups"), [(1, 1, 1), (2, 1, 1), ((1, 3), (2, 1), 1), (1, 1, 2), (2, 2, 4)], ids=str)
def test_conv2d(padding: Any, stride: Any, dilation: Any, groups: int) -> None:
    x, w = numbers(2, 4, 9, 7), numbers(8, 4 // groups, 3, 2, seed=1)
    steps, gaps = np.broadcast_to(stride, 2).tolist(), np.broadcast_to(dilation, 2).tolist()
    want = correlated(x, w, steps, sides_of(padding, x.shape[2:], w.shape[2:], steps, gaps), gaps, groups)

    def convolve(x: Any, w: Any) -> Any:
        return fl.conv2d(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)

    near(run(convolve, x, w), want, 1e-5)
    near(fl.trace(convolve, inputs={"x": fl.f32("n", 4, "h", "w"), "w": fl.f32(*w.shape)}).run(x, w), want, 1e-5)


def test_conv2d_is_one_convolution_stage_with_published_axes() -> None:
    graph = graph_of(lambda x, w: fl.conv2d(x, w), numbers(1, 3, 8, 8), numbers(4, 3, 3, 3))
    (stage,) = graph.stages
    assert stage.path.endswith("/conv2d") and stage.facts["kind"] == "convolution"
    assert stage.axis_names == ("n", "o", "y", "x") and [a.name for a in stage.reduce_axes] == ["c", "ky", "kx"]
    assert "edge" not in graph.text()
    biased = graph_of(lambda x, w, b: fl.conv2d(x, w, b, padding=1), numbers(1, 3, 8, 8), numbers(4, 3, 3, 3), numbers(4))
    assert [s.path.split("/", 1)[1] for s in biased.stages] == ["conv2d/product", "conv2d/bias"]
    x, w, b = numbers(1, 3, 8, 8), numbers(4, 3, 3, 3), numbers(4)
    near(biased.run(x, w, b), correlated(x, w, (1, 1), [(1, 1)] * 2, (1, 1), 1) + b[:, None, None], 1e-5)


def test_strided_reads_of_symbolic_images_need_no_guard() -> None:
    def net(x: Any, w: Any) -> Any:
        return fl.max_pool2d(fl.conv2d(x, w, stride=2), 2)

    text = fl.trace(net, inputs={"x": fl.f32("n", 3, "h", "w"), "w": fl.f32(4, 3, 3, 3)}).text()
    assert "edge" not in text and "where" not in text


def test_conv2d_of_bytes_is_summed_in_32_bits() -> None:
    x, w = np.full((1, 2, 3, 3), 200, np.uint8), np.full((1, 2, 2, 2), 100, np.uint8)
    same(run(lambda x, w: fl.conv2d(x, w, padding=1), x, w), correlated(x, w, (1, 1), [(1, 1)] * 2, (1, 1), 1).astype(np.uint32))


def pooled(x: np.ndarray, window: Any, stride: Any, sides: Any, fill: float, how: Any) -> np.ndarray:
    x = padded(x.astype(float), sides, fill)
    views = np.lib.stride_tricks.sliding_window_view(x, window, axis=(2, 3))[:, :, :: stride[0], :: stride[1]]
    return np.asarray(how(views, axis=(-2, -1)))


@pytest.mark.parametrize("padding", [0, 1, ((0, 1), (1, 0)), "same"], ids=str)
@pytest.mark.parametrize(("window", "stride"), [(2, None), (3, 2), ((3, 2), 1), ((2, 3), (3, 1))], ids=str)
def test_pools(window: Any, stride: Any, padding: Any) -> None:
    x = numbers(2, 3, 8, 7)
    taps = tuple(np.broadcast_to(window, 2).tolist())
    steps = taps if stride is None else tuple(np.broadcast_to(stride, 2).tolist())
    sides = sides_of(padding, x.shape[2:], taps, steps, (1, 1))
    near(both(lambda x: fl.max_pool2d(x, window, stride=stride, padding=padding), x), pooled(x, taps, steps, sides, -np.inf, np.max))
    near(
        both(lambda x: fl.avg_pool2d(x, window, stride=stride, padding=padding), x), pooled(x, taps, steps, sides, np.nan, np.nanmean), 1e-5
    )
    included = both(lambda x: fl.avg_pool2d(x, window, stride=stride, padding=padding, include_padding=True), x)
    near(included, pooled(x, taps, steps, sides, 0, np.mean), 1e-5)


def test_pools_of_integers_and_of_the_whole_image() -> None:
    k = -np.abs(numbers(1, 2, 4, 4, dtype="int32")) - 5
    same(
        run(lambda k: fl.max_pool2d(k, 3, stride=1, padding=1), k.astype(np.int32)),
        pooled(k, (3, 3), (1, 1), [(1, 1)] * 2, -99, np.max).astype(np.int32),
    )
    x = numbers(2, 3, 5, 4)
    near(both(lambda x: fl.global_avg_pool2d(x), x), x.mean((2, 3)), 1e-5)
    near(both(lambda x: fl.global_max_pool2d(x), x), x.max((2, 3)))
    near(
        run(lambda x: fl.max_pool2d(x, 2, stride=1, dilation=2), x),
        np.maximum.reduce([x[:, :, a : a + 3, b : b + 2] for a in (0, 2) for b in (0, 2)]),
    )


def test_refusals() -> None:
    x, w = numbers(1, 3, 5, 5), numbers(4, 3, 3, 3)
    for wrong, code in [
        (lambda x, w: fl.conv2d(x[0], w), "A307"), (lambda x, w: fl.conv2d(x, w[0]), "A307"), (lambda x, w: fl.conv2d(x[:, :2], w), "A301"),
        (lambda x, w: fl.conv2d(x, w, groups=3), "A304"), (lambda x, w: fl.conv2d(x, w, groups=2), "A301"),
        (lambda x, w: fl.conv2d(x, w, stride=0), "A304"), (lambda x, w: fl.conv2d(x, w, padding=-1), "A304"),
        (lambda x, w: fl.conv2d(x, w, padding="full"), "A304"), (lambda x, w: fl.conv2d(x, w, dilation=3), "A301"),
        (lambda x, w: fl.conv2d(x, w, numbers(3)), "A301"), (lambda x, w: fl.max_pool2d(x, 6), "A301"),
        (lambda x, w: fl.max_pool2d(x, (2, 2, 2)), "A304"), (lambda x, w: fl.avg_pool2d(w[0], 2), "A307"),
    ]:  # fmt: skip
        assert refusal(wrong, x, w).code == code
    both_shapes = refusal(lambda x, w: fl.conv2d(x, w), numbers(1, 2, 5, 5), w)
    assert "[1, 2, 5, 5]" in both_shapes.asked and "[4, 3, 3, 3]" in both_shapes.asked and "2 channels" in both_shapes.why
