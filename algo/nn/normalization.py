"""Normalisations with their scales, shifts and statistics."""

from __future__ import annotations

import math
from typing import Any

from .. import init as initial
from ..building import training
from ..expr import cast
from ..extent import maximum
from ..held import param, state
from ..modules import Module
from ..ops import batch_norm, group_norm, instance_norm, layer_norm, mean, rms_norm, var
from ..tensor import Tensor
from ..trace import stage


class LayerNorm(Module):
    """Mean 0 and variance 1 along the last axis, then `scale` and `shift` [features]."""

    def __init__(self, features: int, *, eps: float = 1e-5, dtype: Any = "float32") -> None:
        self.scale = param(init=initial.ones, dtype=dtype, features=features)
        self.shift = param(init=initial.zeros, dtype=dtype, features=features)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.scale, self.shift, eps=self.eps)


class RMSNorm(Module):
    """Mean square 1 along the last axis, then `scale` [features]."""

    def __init__(self, features: int, *, eps: float = 1e-6, dtype: Any = "float32") -> None:
        self.scale = param(init=initial.ones, dtype=dtype, features=features)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.scale, eps=self.eps)


class _OfChannels(Module):
    def __init__(self, channels: int, *, eps: float = 1e-5, affine: bool = True, dtype: Any = "float32") -> None:
        self.scale = param(init=initial.ones, dtype=dtype, c=channels) if affine else None
        self.shift = param(init=initial.zeros, dtype=dtype, c=channels) if affine else None
        self.eps = eps


class BatchNorm(_OfChannels):
    """fluorite.batch_norm, then `scale` and `shift` [c] unless `affine` is false.

    A method that trains normalises by the mean and variance of its batch, stages `mean` and `var`, and moves the running statistics
    towards them: mean = (1 - momentum) * mean + momentum * (the batch's), and likewise var, with the unbiased one. Other methods normalise
    by the running statistics, as one stage. These are state `mean` and `var` [c]: 0 and 1 until something is learnt or loaded.
    """

    def __init__(self, channels: int, *, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, dtype: Any = "float32") -> None:
        super().__init__(channels, eps=eps, affine=affine, dtype=dtype)
        self.mean = state(init=initial.zeros, dtype=dtype, c=channels)
        self.var = state(init=initial.ones, dtype=dtype, c=channels)
        self.momentum = momentum

    def forward(self, x: Tensor) -> Tensor:
        if not training():
            return batch_norm(x, self.scale, self.shift, mean=self.mean, var=self.var, eps=self.eps)
        others = [d for d in range(x.ndim) if d != 1]
        centre, spread = mean(x, others), var(x, others)
        old_mean, old_var, part = self.mean, self.var, self.momentum
        count = math.prod((x.shape[d] for d in others), start=1)
        self.mean = stage(lambda c: cast((1.0 - part) * old_mean[c] + part * centre[c], x.dtype))
        unbiased = cast(count, "float32") / cast(maximum(count - 1, 1), "float32")
        self.var = stage(lambda c: cast((1.0 - part) * old_var[c] + part * (spread[c] * unbiased), x.dtype))
        return batch_norm(x, self.scale, self.shift, mean=centre, var=spread, eps=self.eps)


class GroupNorm(_OfChannels):
    """fluorite.group_norm over `groups` runs of channels, then `scale` and `shift` [c] unless `affine` is false."""

    def __init__(self, groups: int, channels: int, *, eps: float = 1e-5, affine: bool = True, dtype: Any = "float32") -> None:
        super().__init__(channels, eps=eps, affine=affine, dtype=dtype)
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        return group_norm(x, self.groups, self.scale, self.shift, eps=self.eps)


class InstanceNorm(_OfChannels):
    """fluorite.instance_norm, then `scale` and `shift` [c] unless `affine` is false."""

    def forward(self, x: Tensor) -> Tensor:
        return instance_norm(x, self.scale, self.shift, eps=self.eps)
