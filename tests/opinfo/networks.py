"""Layers, losses, images and Fourier transforms, under PyTorch's names and with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl

from .left_out import NotOffered, unless, without


def channels_first(x: Any, space: int) -> Any:
    """PyTorch also takes one image without the axis of images."""
    unless(x.ndim == space + 2, "one image without the axis of images")
    return x


# ---------------------------------------------------------------- convolutions and windows
def conv(fn: Callable[..., Any], space: int) -> Callable[..., Any]:
    def apply(x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Any:
        return fn(channels_first(x, space), w, bias, stride=one(stride), padding=one(padding), dilation=one(dilation), groups=groups)

    return apply


def conv_transpose(fn: Callable[..., Any], space: int) -> Callable[..., Any]:
    def apply(
        x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1, dilation: Any = 1
    ) -> Any:
        return fn(
            channels_first(x, space), w, bias, stride=one(stride), padding=one(padding), output_padding=one(output_padding),
            dilation=one(dilation), groups=groups,
        )  # fmt: skip

    return apply


def one(value: Any) -> Any:
    """(2,) for every axis is 2."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 1 else tuple(value) if isinstance(value, list | tuple) else value


def max_pool(fn: Callable[..., Any], space: int) -> Callable[..., Any]:
    def apply(
        x: Any,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        without(return_indices=return_indices)
        return fn(
            channels_first(x, space),
            one(kernel_size),
            stride=one(stride or None),
            padding=one(padding),
            dilation=one(dilation),
            ceil=ceil_mode,
        )

    return apply


def avg_pool(fn: Callable[..., Any], space: int) -> Callable[..., Any]:
    def apply(
        x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: Any = None,
    ) -> Any:  # fmt: skip
        without(divisor_override=divisor_override)
        return fn(
            channels_first(x, space), one(kernel_size), stride=one(stride or None), padding=one(padding), include_padding=count_include_pad,
            ceil=ceil_mode,
        )  # fmt: skip

    return apply


def adaptive(fn: Callable[..., Any], space: int) -> Callable[..., Any]:
    def apply(x: Any, output_size: Any, return_indices: bool = False) -> Any:
        without(return_indices=return_indices)
        return fn(channels_first(x, space), kept(one(output_size), x, space))

    return apply


def kept(size: Any, x: Any, space: int) -> Any:
    """None keeps an extent."""
    given = size if isinstance(size, tuple) else (size,) * space
    return tuple(x.shape[2 + k] if n is None else n for k, n in enumerate(given))


def unfold(x: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Any:
    t = fl.unfold(channels_first(x, 2), kernel_size, stride=stride, padding=padding, dilation=dilation)
    n, c, ky, kx, h, w = t.shape
    return fl.reshape(t, (n, c * ky * kx, h * w))


# ---------------------------------------------------------------- norms, attention
def batch_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """In training PyTorch leaves the running statistics aside."""
    unless(x.ndim > 1, "no axis of channels")
    mean, var = (None, None) if training else (running_mean, running_var)
    return fl.batch_norm(x, weight, bias, mean=mean, var=var, eps=eps)


def instance_norm(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    unless(use_input_stats, "running statistics")
    return fl.instance_norm(x, weight, bias, eps=eps)


def group_norm(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return fl.group_norm(x, num_groups, weight, bias, eps=eps)


def layer_norm(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    return fl.layer_norm(x, weight, bias, axis=tuple(range(-len(normalized_shape), 0)), eps=eps)


def rms_norm(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    return fl.rms_norm(x, weight, axis=tuple(range(-len(normalized_shape), 0)), eps=2.0**-52 if eps is None else eps)


def local_response_norm(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    return fl.local_response_norm(x, size, alpha=alpha, beta=beta, k=k)


def attention(
    q: Any, k: Any, v: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:  # fmt: skip
    unless(dropout_p == 0, "random numbers of another generator")
    unless(not is_causal or q.shape[-2] == k.shape[-2], "the first query sees the first key only, where the counts differ")
    return fl.attention(q, k, v, mask=attn_mask, causal=is_causal, scale=scale)


# ---------------------------------------------------------------- losses
def loss(fn: Callable[..., Any], **names: str) -> Callable[..., Any]:
    """A loss whose options have other names in PyTorch: `names` maps those to ours."""

    def apply(*given: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean", **options: Any) -> Any:
        without(size_average=size_average, reduce=reduce)
        unknown = [n for n in options if n not in names]
        if unknown:
            raise NotOffered(f"{unknown[0]}=")
        return fn(*given, reduction=reduction, **{names[k]: v for k, v in options.items() if v is not None})

    return apply


def smooth_l1(*given: Any, beta: float = 1.0, **options: Any) -> Any:
    unless(beta > 0, "beta=0, which is l1_loss")
    return loss(fl.smooth_l1_loss, beta="beta")(*given, beta=beta, **options)


def hinge_embedding(x: Any, target: Any, **options: Any) -> Any:
    unless(x.ndim > 0, "targets that are neither 1 nor -1")
    return loss(fl.hinge_embedding_loss, margin="margin")(x, target, **options)


def binary_cross_entropy(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    without(weight=weight)
    return fl.binary_cross_entropy(x, target, reduction=reduction)


def with_logits(x: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> Any:
    without(weight=weight)
    return fl.binary_cross_entropy_with_logits(x, target, positive_weight=pos_weight, reduction=reduction)


def classes(fn: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", **more: Any) -> Any:
        return fn(x, target, weight=weight, ignore_index=ignore_index, reduction=reduction, axis=1 if x.ndim > 1 else 0, **more)

    return apply


def cosine_similarity(a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    return fl.cosine_similarity(a, b, dim, eps=eps)


def triplet(a: Any, p: Any, n: Any, *, margin: float = 1.0, **more: Any) -> Any:
    unless(more.get("p", 2) in (1, 2) and not more.get("swap"), "swap= and other norms")
    unless(a.ndim == 2, "other than vectors in rows")
    return fl.triplet_margin_loss(a, p, n, margin=margin, **{k: v for k, v in more.items() if k in ("p", "eps", "reduction")})


# ---------------------------------------------------------------- images and Fourier transforms
def interpolate(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: Any = None, antialias: bool = False,
) -> Any:  # fmt: skip
    unless(x.ndim == 4, "other than planes of images")
    unless(mode in ("nearest", "nearest-exact", "bilinear", "bicubic"), f"mode={mode!r}")
    unless(size is not None, "a scale instead of a size")
    wanted = tuple(size) if isinstance(size, list | tuple) else (size, size)
    if mode in ("nearest", "nearest-exact"):
        return fl.resize(x, wanted, "nearest", coordinates="asymmetric" if mode == "nearest" else "half_pixel")
    return fl.resize(x, wanted, mode, coordinates="align_corners" if align_corners else "half_pixel", antialias=antialias)


def grid_sample(x: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False) -> Any:
    unless(x.ndim == 4, "other than planes of images")
    return fl.grid_sample(x, grid, method=mode, outside=padding_mode, align_corners=bool(align_corners))


def transform(fn: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
        return fn(x, n, dim, norm=norm or "backward")

    return apply


def transforms(fn: Callable[..., Any], axes: Any = None) -> Callable[..., Any]:
    def apply(x: Any, s: Any = None, dim: Any = axes, norm: str | None = None) -> Any:
        over = (dim,) if isinstance(dim, int) else dim
        unless(axes is None or len(over) == len(axes), "other than two axes")
        return fn(x, s, over, norm=norm or "backward")

    return apply


def _windows() -> dict[str, tuple[str, Callable[..., Any]]]:
    kinds = {"conv{}d": conv, "conv_transpose{}d": conv_transpose, "max_pool{}d": max_pool, "avg_pool{}d": avg_pool,
             "adaptive_avg_pool{}d": adaptive, "adaptive_max_pool{}d": adaptive}  # fmt: skip
    return {
        f"nn.functional.{name}": (name, make(getattr(fl, name), n))
        for pattern, make in kinds.items()
        for n in (1, 2, 3)
        for name in [pattern.format(n)]
    }


_LOSSES: dict[str, Callable[..., Any]] = {
    "mse_loss": loss(fl.mse_loss), "l1_loss": loss(fl.l1_loss), "smooth_l1_loss": smooth_l1,
    "huber_loss": loss(fl.huber_loss, delta="delta"), "hinge_embedding_loss": hinge_embedding,
    "kl_div": loss(fl.kl_div, log_target="log_target"), "cosine_embedding_loss": loss(fl.cosine_embedding_loss, margin="margin"),
    "binary_cross_entropy": binary_cross_entropy, "binary_cross_entropy_with_logits": with_logits,
    "cross_entropy": classes(fl.cross_entropy), "nll_loss": classes(fl.nll_loss), "triplet_margin_loss": triplet,
}  # fmt: skip
NETWORKS: dict[str, tuple[str, Callable[..., Any]]] = {
    **_windows(),
    **{f"nn.functional.{n}": (n, fn) for n, fn in _LOSSES.items()},
    **{
        f"nn.functional.{fn.__name__}": (fn.__name__, fn)
        for fn in (unfold, batch_norm, instance_norm, group_norm, layer_norm, rms_norm, local_response_norm, cosine_similarity, grid_sample)
    },
    "nn.functional.scaled_dot_product_attention": ("attention", attention), "nn.functional.interpolate": ("resize", interpolate),
    **{f"fft.{n}": (n, transform(getattr(fl, n))) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{n}": (n, transforms(getattr(fl, n))) for n in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{f"fft.{n}": (n, transforms(getattr(fl, n), (-2, -1))) for n in ("fft2", "ifft2")},
    "fft.fftshift": ("fftshift", lambda x, dim=None: fl.fftshift(x, dim)),
    "fft.ifftshift": ("ifftshift", lambda x, dim=None: fl.ifftshift(x, dim)),
}  # fmt: skip
