"""Layers: modules with parameters, written with the operators. Parameters have named axes, which a plan may speak of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import init as initial
from .ops import add, conv2d, embedding, layer_norm, matmul, rms_norm
from .program import Module, param
from .tensor import Tensor


class Linear(Module):
    """``x @ w + b`` on the last axis: x [..., inputs] gives [..., outputs]. Stages `matmul` and `bias`."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True, init: Any = None, dtype: Any = "float32") -> None:
        self.w = param(init=init or initial.glorot_uniform(), dtype=dtype, in_=inputs, out=outputs)
        self.b = param(init=initial.zeros, dtype=dtype, out=outputs) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = matmul(x, self.w)
        return result if self.b is None else add(result, self.b, name="bias")


class Conv2d(Module):
    """fluorite.conv2d with kernels w [out, in / groups, ky, kx] and bias b [out] as parameters."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int | tuple[int, int],
        *,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        init: Any = None,
        dtype: Any = "float32",
    ) -> None:
        ky, kx = (size, size) if isinstance(size, int) else size
        self.w = param(init=init or initial.kaiming_uniform(), dtype=dtype, out=outputs, in_=inputs // groups, ky=ky, kx=kx)
        self.b = param(init=initial.zeros, dtype=dtype, out=outputs) if bias else None
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups

    def forward(self, x: Tensor) -> Tensor:
        return conv2d(x, self.w, self.b, stride=self.stride, padding=self.padding, dilation=self.dilation, groups=self.groups)


class Embedding(Module):
    """Rows of a table w [rows, features]: integer ids [...] give [..., features]."""

    def __init__(self, rows: int, features: int, *, init: Any = None, dtype: Any = "float32") -> None:
        self.w = param(init=init or initial.normal(1.0), dtype=dtype, rows=rows, features=features)

    def forward(self, ids: Tensor) -> Tensor:
        return embedding(ids, self.w)


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


class Sequential(Module):
    """Modules and functions applied one after the other; their paths are `layers.0`, `layers.1`, ..."""

    def __init__(self, *layers: Callable[[Tensor], Tensor]) -> None:
        self.layers = list(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


__all__ = ["Conv2d", "Embedding", "LayerNorm", "Linear", "Module", "RMSNorm", "Sequential"]
