"""Convolutions with their kernels and biases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from .. import init as initial
from ..expr import refuse
from ..ops import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from ..ops.windows import TAPS, spatial
from ..program import Module, param
from ..tensor import Tensor


def _per_group(what: str, channels: int, groups: int) -> int:
    if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1 or channels % groups:
        raise refuse("A304", f"nn.{what}: groups={groups!r}", f"it is a positive integer that divides the {channels} channels")
    return channels // groups


class _Convolution(Module):
    rank: ClassVar[int]
    function: ClassVar[Callable[..., Tensor]]

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int | tuple[int, ...],
        *,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        init: Any = None,
        dtype: Any = "float32",
    ) -> None:
        what = type(self).__name__
        taps: dict[str, Any] = dict(zip(TAPS[self.rank], spatial(size, f"nn.{what}: size", 1, self.rank), strict=True))
        self.w = self._kernels(what, inputs, outputs, groups, taps, init or initial.kaiming_uniform(), dtype)
        self.b = param(init=initial.zeros, dtype=dtype, out=outputs) if bias else None
        self.options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}

    def _kernels(self, what: str, inputs: int, outputs: int, groups: int, taps: dict[str, Any], init: Any, dtype: Any) -> Tensor:
        return param(init=init, dtype=dtype, out=outputs, in_=_per_group(what, inputs, groups), **taps)

    def forward(self, x: Tensor) -> Tensor:
        return type(self).function(x, self.w, self.b, **self.options)


class Conv1d(_Convolution):
    """fluorite.conv1d with kernels w [out, in / groups, kx] and bias b [out] as parameters."""

    rank, function = 1, staticmethod(conv1d)


class Conv2d(_Convolution):
    """fluorite.conv2d with kernels w [out, in / groups, ky, kx] and bias b [out] as parameters."""

    rank, function = 2, staticmethod(conv2d)


class Conv3d(_Convolution):
    """fluorite.conv3d with kernels w [out, in / groups, kz, ky, kx] and bias b [out] as parameters."""

    rank, function = 3, staticmethod(conv3d)


class _Transposed(_Convolution):
    def __init__(self, inputs: int, outputs: int, size: int | tuple[int, ...], *, output_padding: Any = 0, **options: Any) -> None:
        super().__init__(inputs, outputs, size, **options)
        self.options["output_padding"] = output_padding

    def _kernels(self, what: str, inputs: int, outputs: int, groups: int, taps: dict[str, Any], init: Any, dtype: Any) -> Tensor:
        return param(init=init, dtype=dtype, in_=inputs, out=_per_group(what, outputs, groups), **taps)


class ConvTranspose1d(_Transposed):
    """fluorite.conv_transpose1d with kernels w [in, out / groups, kx] and bias b [out] as parameters."""

    rank, function = 1, staticmethod(conv_transpose1d)


class ConvTranspose2d(_Transposed):
    """fluorite.conv_transpose2d with kernels w [in, out / groups, ky, kx] and bias b [out] as parameters."""

    rank, function = 2, staticmethod(conv_transpose2d)


class ConvTranspose3d(_Transposed):
    """fluorite.conv_transpose3d with kernels w [in, out / groups, kz, ky, kx] and bias b [out] as parameters."""

    rank, function = 3, staticmethod(conv_transpose3d)
