"""Linear layers, tables, and layers one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import init as initial
from ..ops import add, embedding, matmul, prelu, reshape
from ..program import Module, param
from ..tensor import Tensor


class Linear(Module):
    """``x @ w + b`` on the last axis: x [..., inputs] gives [..., outputs]. Stages `matmul` and `bias`."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = True, init: Any = None, dtype: Any = "float32") -> None:
        self.w = param(init=init or initial.glorot_uniform(), dtype=dtype, in_=inputs, out=outputs)
        self.b = param(init=initial.zeros, dtype=dtype, out=outputs) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = matmul(x, self.w)
        return result if self.b is None else add(result, self.b, name="bias")


class Embedding(Module):
    """Rows of a table w [rows, features]: integer ids [...] give [..., features]."""

    def __init__(self, rows: int, features: int, *, init: Any = None, dtype: Any = "float32") -> None:
        self.w = param(init=init or initial.normal(1.0), dtype=dtype, rows=rows, features=features)

    def forward(self, ids: Tensor) -> Tensor:
        return embedding(ids, self.w)


class PReLU(Module):
    """x above 0, slope * x below, with a `slope` for each channel (axis 1), or one for all with ``channels=1``."""

    def __init__(self, channels: int = 1, *, init: Any = 0.25, dtype: Any = "float32") -> None:
        self.slope = param(init=init, dtype=dtype, c=channels)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = prelu(x, self.slope if x.ndim < 2 else reshape(self.slope, (*self.slope.shape, *(1,) * (x.ndim - 2))))
        return result


class Sequential(Module):
    """Modules and functions applied one after the other; their paths are `layers.0`, `layers.1`, ..."""

    def __init__(self, *layers: Callable[[Tensor], Tensor]) -> None:
        self.layers = list(layers)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
