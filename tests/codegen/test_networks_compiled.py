"""The operators of neural networks, compiled under the empty plan, against the interpreter: many in one library, extents awkward."""

from __future__ import annotations

from typing import Any

import fluorite as fl

F = fl.f32


def agree(fn: Any, **inputs: fl.Spec) -> None:
    fn.__annotations__ = dict(inputs)
    report = fl.check(fn, None)
    assert report.ok and report.executed, report.text()


def test_convolutions() -> None:
    def fixed(s: Any, i: Any, v: Any, w1: Any, w2: Any, w3: Any, t: Any) -> Any:
        return {
            "line": fl.conv1d(s, w1, padding=((2, 1),), dilation=2),
            "volume": fl.conv3d(v, w3, stride=(1, 2, 1), padding=1),
            "groups": fl.conv2d(i, w2, groups=2, padding="same", stride=2),
            "back": fl.conv_transpose2d(i, t, stride=2, padding=1, output_padding=1),
            "back by groups": fl.conv_transpose2d(i, t, stride=(3, 4), dilation=(2, 2), groups=2, output_padding=(0, 1)),
            "back along a line": fl.conv_transpose1d(s, w1, stride=2, dilation=3),
            "windows": fl.unfold(i, (3, 2), stride=2, padding=1),
            "folded": fl.fold(fl.unfold(i, (3, 2), stride=2, padding=1), (7, 5), stride=2, padding=1),
        }

    agree(fixed, s=F(2, 4, 11), i=F(1, 4, 7, 5), v=F(1, 2, 4, 5, 3), w1=F(4, 4, 3), w2=F(6, 2, 3, 3), w3=F(3, 2, 3, 3, 2), t=F(4, 3, 3, 4))


def test_convolutions_of_any_size() -> None:
    def free(i: Any, w: Any) -> Any:
        return fl.conv_transpose2d(i, w, stride=2, padding=1), fl.unfold(i, 2, stride=3, padding=1), fl.conv2d(i, w, groups=2, padding=1)

    agree(free, i=F(1, 4, "h", "w"), w=F(4, 2, 3, 3))


def test_pools() -> None:
    def fixed(s: Any, i: Any, v: Any, k: Any) -> Any:
        return {
            "line": fl.max_pool1d(s, 3, stride=2, padding=1, ceil=True),
            "means": fl.avg_pool1d(s, 3, stride=2, padding=1, include_padding=True, ceil=True),
            "volume": fl.max_pool3d(v, 2, ceil=True),
            "powers": fl.lp_pool2d(i, 2, p=3, ceil=True),
            "parts": fl.adaptive_avg_pool2d(i, (3, 4)),
            "largest": fl.adaptive_max_pool2d(i, (5, 2)),
            "bytes": fl.max_pool2d(k, 3, stride=2, padding=1),
            "of bytes": fl.adaptive_avg_pool2d(k, 3),
            "whole": fl.global_avg_pool3d(v),
        }

    agree(fixed, s=F(2, 3, 11), i=F(2, 3, 7, 5), v=F(1, 2, 5, 4, 3), k=fl.u8(1, 2, 7, 5))


def test_pools_of_any_size() -> None:
    def free(i: Any) -> Any:
        return fl.adaptive_avg_pool2d(i, (3, 2)), fl.adaptive_max_pool2d(i, 3), fl.max_pool2d(i, 1, stride=2, ceil=True)

    agree(free, i=F(1, 2, "h", "w"))


def test_normalisations_and_activations() -> None:
    def norms(x: Any, s: Any, m: Any) -> Any:
        v = m * m + 0.5
        y = fl.batch_norm(x, s, m, mean=m, var=v)
        each = [
            fl.mish(y), fl.selu(y), fl.celu(y), fl.hardswish(y), fl.hardsigmoid(y), fl.softshrink(y), fl.quick_gelu(y), fl.logsigmoid(y),
            fl.softsign(y), fl.tanhshrink(y), fl.hardshrink(y), fl.relu6(y), fl.threshold(y, above=0.0, value=1.0),
        ]  # fmt: skip
        gates = [fl.glu(y, 1), fl.swiglu(y, 1), fl.geglu(y, 1), fl.softmin(y), fl.prelu(y, fl.reshape(s, (6, 1)))]
        return y, each, gates, fl.batch_norm(x), fl.group_norm(x, 3, s, m), fl.instance_norm(x), fl.local_response_norm(x, 3)

    agree(norms, x=F(3, 6, 5), s=F(6), m=F(6))


def test_losses() -> None:
    def losses(x: Any, y: Any, k: Any) -> Any:
        signs, p = fl.where(y > 0, 1.0, -1.0), fl.softmax(y)
        return [
            fl.mse_loss(x, y), fl.l1_loss(x, y, reduction="sum"), fl.huber_loss(x, y), fl.smooth_l1_loss(x, y, reduction="none"),
            fl.binary_cross_entropy_with_logits(x, p), fl.binary_cross_entropy(p, p), fl.focal_loss(x, p), fl.hinge_loss(x, signs),
            fl.kl_div(fl.log_softmax(x), p, reduction="batchmean"), fl.cosine_similarity(x, y), fl.triplet_margin_loss(x, y, p),
            fl.cross_entropy(x, k, label_smoothing=0.1), fl.cross_entropy(x, p), fl.nll_loss(x, k, ignore_index=2, reduction="sum"),
            fl.hinge_embedding_loss(x, signs), fl.cosine_embedding_loss(x, y, signs[:, 0]),
        ]  # fmt: skip

    agree(losses, x=F("n", 5), y=F("n", 5), k=fl.i32("n"))


def test_attention() -> None:
    def each(q: Any, k: Any, v: Any, m: Any, p: Any) -> Any:
        turned = fl.rotary(q), fl.rotary(k, interleaved=True, offset=p)
        hidden = fl.where(m > 1.0, float("-inf"), m)
        return {
            "grouped": fl.attention(*turned, v, causal=True, window=3),
            "added": fl.attention(q, k, v, mask=hidden, bias=fl.alibi(4, 5, 7)),
            "step": fl.cached_attention(q, k[:, :, :5], v[:, :, :5], k, v, p),
            "places": fl.sinusoidal_positions(5, 6),
        }

    agree(each, q=F(2, 4, 5, 8), k=F(2, 2, 7, 8), v=F(2, 2, 7, 3), m=F(5, 7), p=fl.i32())


def test_images() -> None:
    def each(x: Any) -> Any:
        return [
            fl.resize(x, (4, 9)), fl.resize(x, (9, 3), "bicubic", antialias=True), fl.rgb_to_hsv(x[:, :3]), fl.hsv_to_rgb(x[:, :3]),
            fl.gaussian_filter(x, 0.8), fl.bilateral_filter(x, 1, 1.0, 0.5), fl.opening(x), fl.pixel_shuffle(x, 2) * 2,
        ]  # fmt: skip

    agree(each, x=F(1, 4, 6, 5))


def test_images_at_positions_that_are_data() -> None:
    def each(x: Any, g: Any, m: Any, f: Any, t: Any) -> Any:
        return {
            "zeros": fl.grid_sample(x, g),
            "border": fl.grid_sample(x, g, outside="border", align_corners=True),
            "reflection": fl.grid_sample(x, g, outside="reflection"),
            "nearest": fl.grid_sample(x, g, method="nearest", outside="reflection", align_corners=True),
            "of a map": fl.grid_sample(x, fl.affine_grid(t, (3, 11))),
            "turned": fl.warp_affine(x, m, (9, 2)),
            "moved": fl.warp(x, f),
        }

    agree(each, x=F(2, 3, 5, 7), g=F(2, 4, 5, 2), m=F(2, 3), f=F(2, 2, 5, 7), t=F(2, 2, 3))


def test_images_at_positions_that_are_data_of_any_size() -> None:
    def free(x: Any, g: Any) -> Any:
        return fl.grid_sample(x, g, outside="reflection")

    agree(free, x=F("n", 3, "h", "w"), g=F("n", "y", 5, 2))


def test_medians_of_pixels() -> None:
    def each(x: Any, k: Any) -> Any:
        return fl.median_filter(x), fl.median_filter(k, 5, boundary="reflect"), fl.median_filter(x, 5, boundary=0.5)

    agree(each, x=F(11, 19), k=fl.u8(7, 13))


def test_fourier_transforms() -> None:
    def each(x: Any, i: Any, r: Any) -> Any:
        return {
            "mixed": fl.fft(x, norm="ortho"),
            "columns": fl.ifft(i, 64, axis=0),
            "plane": fl.fft2(i),
            "real": fl.rfft(r),
            "and back": fl.irfft(x, 35),
            "spectrum": fl.fftshift(fl.rfftn(r) * fl.conj(fl.rfftn(r[::-1]))),
        }

    agree(each, x=fl.c64("n", 60), i=fl.c64(7, 16), r=F(3, 128))
