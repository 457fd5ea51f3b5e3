"""Normalisations with their scales, shifts and statistics."""

from __future__ import annotations

from typing import Any

from .. import init as initial
from ..ops import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from ..program import Module, param
from ..tensor import Tensor


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
    """fluorite.batch_norm by the running statistics `mean` and `var` [c], then `scale` and `shift` [c] unless `affine` is false.

    The statistics are parameters that no optimiser moves: 0 and 1 until weights are loaded. They are folded into nothing; one stage.
    """

    def __init__(self, channels: int, *, eps: float = 1e-5, affine: bool = True, dtype: Any = "float32") -> None:
        super().__init__(channels, eps=eps, affine=affine, dtype=dtype)
        self.mean = param(init=initial.zeros, dtype=dtype, trainable=False, c=channels)
        self.var = param(init=initial.ones, dtype=dtype, trainable=False, c=channels)

    def forward(self, x: Tensor) -> Tensor:
        return batch_norm(x, self.scale, self.shift, mean=self.mean, var=self.var, eps=self.eps)


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
