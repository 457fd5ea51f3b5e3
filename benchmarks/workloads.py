"""What is measured: shapes, data, a reference result, and the least work that each workload needs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from examples.apps import reference as applications

from . import image_gradients, narrow_products, training

Array = np.ndarray[Any, Any]
Data = Mapping[str, Array]
GAUSS = np.exp(-(np.arange(-3, 4) ** 2) / (2 * 1.5**2))
GAUSS = (GAUSS / GAUSS.sum()).astype(np.float32)
LUMA = (np.float32(0.299), np.float32(0.587), np.float32(0.114))
F32 = np.float32


@dataclass(frozen=True)
class Workload:
    """`flops` and `bytes` of one call at least: each input read once, each output written once. `like` is of the result's shape and type,
    where the reference needs more than NumPy, which peers may not have."""

    name: str
    text: str
    flops: float
    bytes: float
    data: Callable[[np.random.Generator], Data]
    reference: Callable[[Data], Array]
    tolerance: float = 1e-4  # of the largest value
    like: Callable[[Data], Array] | None = None

    def inputs(self) -> Data:
        """The same for every peer."""
        return self.data(np.random.default_rng(zlib.crc32(self.name.encode())))

    def empty(self, data: Data) -> Array:
        """Room for the result."""
        return np.empty_like((self.like or self.reference)(data))


def _random(**shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Data]:
    return lambda r: {name: r.random(shape, F32) for name, shape in shapes.items()}


def _normal(**shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Data]:
    return lambda r: {name: r.standard_normal(shape, F32) for name, shape in shapes.items()}


def blur(d: Data) -> Array:
    x = d["image"]
    rows = (x[:, :-2] + x[:, 1:-1] + x[:, 2:]) * F32(1 / 3)
    return (rows[:-2] + rows[1:-1] + rows[2:]) * F32(1 / 3)


def _gray(x: Array) -> Array:
    return LUMA[0] * x[0] + LUMA[1] * x[1] + LUMA[2] * x[2]


def unsharp(d: Data) -> Array:
    gray = _gray(d["image"])
    h, w = gray.shape[0] - 6, gray.shape[1] - 6
    down = sum(GAUSS[i] * gray[i : i + h] for i in range(7))
    soft = sum(GAUSS[i] * down[:, i : i + w] for i in range(7))
    middle = gray[3:-3, 3:-3]
    return ((F32(2) * middle - soft) / middle) * d["image"][:, 3:-3, 3:-3]


def harris(d: Data) -> Array:
    g, k = _gray(d["image"]), F32(1 / 12)
    dx, dy = (g[:, 2:] - g[:, :-2]) * k, (g[2:] - g[:-2]) * k
    ix, iy = dx[:-2] + 2 * dx[1:-1] + dx[2:], dy[:, :-2] + 2 * dy[:, 1:-1] + dy[:, 2:]

    def box(p: Array) -> Array:
        t = p[:, :-2] + p[:, 1:-1] + p[:, 2:]
        return t[:-2] + t[1:-1] + t[2:]

    a, b, c = box(ix * ix), box(iy * iy), box(ix * iy)
    t = a + b
    return a * b - c * c - F32(0.04) * t * t


def softmax(d: Data) -> Array:
    e = d["x"] - d["x"].max(1, keepdims=True)
    np.exp(e, out=e)
    e /= e.sum(1, keepdims=True)
    return e


def layernorm(d: Data) -> Array:
    x = d["x"]
    c = x - x.mean(1, keepdims=True)
    c *= 1 / np.sqrt((c * c).mean(1, keepdims=True) + F32(1e-5))
    return c * d["gain"] + d["bias"]


def _unsharp_data(r: np.random.Generator) -> Data:
    return {"image": r.random((3, 2054, 2054), F32) * F32(0.9) + F32(0.1)}  # it is divided by


def _layernorm_data(r: np.random.Generator) -> Data:
    return {**_normal(x=(128, 1024), bias=(1024,))(r), "gain": r.random(1024, F32)}


def sgemm(d: Data) -> Array:
    return d["a"] @ d["b"]  # type: ignore[no-any-return]


def _bytes(r: np.random.Generator) -> Data:
    shape = (1024, 1024)  # without the upper half of uint8, which PyTorch's product of int8 does not have
    return {"a": r.integers(0, 128, shape).astype(np.uint8), "b": r.integers(-127, 128, shape).astype(np.int8)}


def byte_product(d: Data) -> Array:
    return (d["a"].astype(np.float64) @ d["b"].astype(np.float64)).astype(np.int32)


def _complex(n: int) -> Callable[[np.random.Generator], Data]:
    return lambda r: {name: (r.standard_normal(2 * n, F32)).view(np.complex64) for name in "ab"}


def complex_product(d: Data) -> Array:
    return d["a"] * d["b"]  # type: ignore[no-any-return]


def _app(name: str) -> Callable[[Data], Array]:
    return lambda d: getattr(applications, name)(*d.values())  # type: ignore[no-any-return]


def _scipy(name: str) -> Callable[[Data], Array]:
    def reference(d: Data) -> Array:
        from examples.apps import reference_scipy

        return getattr(reference_scipy, name)(*d.values())  # type: ignore[no-any-return]

    return reference


def _image(d: Data) -> Array:
    return d["image"]


def _levels(*shape: int, below: int = 65536) -> Callable[[np.random.Generator], Array]:
    """Smooth pixels, as photographs have, with some noise."""

    def pixels(r: np.random.Generator) -> Array:
        y, x = np.mgrid[: shape[-2], : shape[-1]].astype(F32) / 97
        smooth = 0.5 + 0.4 * np.sin(y + 0.3 * x) * np.cos(x - 0.2 * y) + r.normal(0, 0.02, shape)
        return (np.clip(smooth, 0, 1) * (below - 1)).astype(np.uint16)

    return pixels


def _raw(r: np.random.Generator) -> Data:
    warm, cold = (r.normal(0, 0.2, (3, 4)).astype(F32) + np.eye(3, 4, dtype=F32) for _ in range(2))
    return {"raw": _levels(1944, 2592, below=1024)(r), "warm": warm, "cold": cold}


def _pyramid(r: np.random.Generator) -> Data:
    return {"image": _levels(3, 1536, 2560)(r), "alpha": np.array(1 / 7, F32), "beta": np.array(1, F32)}


_SQUARE, _WIDE, _ROWS = 2048 * 2048, 1536 * 2560, 128 * 1024
_MLP = 784 * 512 + 512 * 512 + 512 * 10
_Application = tuple[str, str, str, int, int, int, Callable[[np.random.Generator], Data], Callable[[Data], Array]]
_APPLICATIONS: tuple[_Application, ...] = (
    ("interpolate", "pull-push interpolation, 8 levels", "4 x 1536 x 2560", _WIDE, 60, 28, _random(image=(4, 1536, 2560)),
     lambda d: d["image"][:3]),
    ("max_filter", "largest of a disc of radius 13", "1536 x 2560", _WIDE, 40, 8, _random(image=(1536, 2560)), _image),
    ("iir_blur", "four running means", "3 x 1536 x 2560", 3 * _WIDE, 12, 8,
     lambda r: {**_random(image=(3, 1536, 2560))(r), "alpha": np.array(0.1, F32)}, _image),
    ("wavelet", "wavelet denoising", "1536 x 2560", _WIDE, 32, 8,
     lambda r: {**_random(image=(1536, 2560))(r), "threshold": np.array(0.1, F32)}, _image),
    ("resize", "Lanczos to three fifths", "3 x 1535 x 2560", 3 * _WIDE, 21, 6, _random(image=(3, 1535, 2560)),
     lambda d: np.empty((3, 921, 1536), F32)),
)  # fmt: skip
_DEEP = 29 * 512 * 512 + 512 * 10
_MLP_STEP = 64 * (6 * _MLP - 2 * 784 * 512)
_PRODUCT = _normal(a=(1024, 1024), b=(1024, 1024))
WORKLOADS = {
    w.name: w
    for w in (
        Workload("blur", "3x3 blur in two stages, float32, 2048 x 2048", 6 * _SQUARE, 8 * _SQUARE, _random(image=(2050, 2050)), blur),
        Workload("unsharp", "unsharp mask, 7-tap Gaussian, float32, 3 x 2048 x 2048", 47 * _SQUARE, 24 * _SQUARE, _unsharp_data, unsharp),
        Workload("harris", "Harris corners, float32, 3 x 1536 x 2560", 60 * _WIDE, 16 * _WIDE, _random(image=(3, 1540, 2564)), harris),
        Workload("sgemm", "matrix product, float32, 1024^3", 2 * 1024**3, 12 * 1024**2, _PRODUCT, sgemm),
        Workload(
            "byte_product",
            "matrix product of uint8 and int8, added to int32, 1024^3; the limit is that of float32",
            2 * 1024**3,
            6 * 1024**2,
            _bytes,
            byte_product,
        ),
        *(
            Workload(name, p.text, p.flops, p.bytes, p.data, narrow_products.reference(p.of), tolerance=1e-2)
            for name, p in narrow_products.PRODUCTS.items()
        ),
        Workload(
            "complex_product",
            "product of complex numbers one by one, complex64, 1,000,000",
            6e6,
            24e6,
            _complex(1_000_000),
            complex_product,
        ),
        Workload(
            "stencil_chain",
            "eight dense 5x5 stencils, uint16, 1536 x 2560",
            8 * 50 * _WIDE,
            4 * _WIDE,
            lambda r: {"image": _levels(1536, 2560)(r)},
            _app("stencil_chain"),
        ),
        Workload(
            "bilateral_grid",
            "bilateral grid, float32, 1536 x 2560",
            50 * _WIDE,
            8 * _WIDE,
            _random(image=(1536, 2560)),
            _app("bilateral_grid"),
        ),
        Workload(
            "nl_means",
            "non-local means, 7x7 patches and search, float32, 3 x 614 x 1024",
            49 * 40 * 614 * 1024,
            24 * 614 * 1024,
            lambda r: {"image": (_levels(3, 614, 1024)(r) / 65535).astype(F32), "sigma": np.array(0.12, F32)},
            _app("nl_means"),
            tolerance=1e-3,  # Halide's fast_exp
        ),
        Workload(
            "camera",
            "raw pixels to a picture, 1944 x 2592 uint16 to 3 x 1920 x 2560 uint8",
            100 * 1920 * 2560,
            5 * 1920 * 2560,
            _raw,
            _app("camera"),
        ),
        Workload(
            "local_laplacian",
            "local Laplacian filter, 8 levels, 8 tones, uint16, 3 x 1536 x 2560",
            300 * _WIDE,
            12 * _WIDE,
            _pyramid,
            _app("local_laplacian"),
            tolerance=1e-2,  # rounding decides between neighbours in the table
        ),
        *(
            Workload(name, f"{text}, float32, {w}", flops * n, bytes_ * n, data, _scipy(name), tolerance=1e-4, like=like)
            for name, text, w, n, flops, bytes_, data, like in _APPLICATIONS
        ),
        Workload(
            "hist",
            "histogram equalisation, uint8, 3 x 1536 x 2560",
            15 * _WIDE,
            9 * _WIDE,
            lambda r: {"image": (_levels(3, 1536, 2560)(r) // 256).astype(np.uint8)},
            _scipy("hist"),
            tolerance=1e-2,  # rounding decides between neighbouring brightnesses
            like=_image,
        ),
        Workload("softmax", "softmax of the rows of 128 x 1024, float32", 10 * _ROWS, 8 * _ROWS, _normal(x=(128, 1024)), softmax),
        Workload(
            "mlp_train",
            "one step of training an MLP 784-512-512-10, batch 64, SGD, float32",
            _MLP_STEP,
            3 * 4 * _MLP,
            training.mlp_data,
            training.losses(training.mlp_gradients, "SGD"),
        ),
        Workload(
            "mlp_adam",
            "the same with Adam",
            _MLP_STEP,
            7 * 4 * _MLP,
            training.mlp_data,
            training.losses(training.mlp_gradients, "Adam"),
            tolerance=1e-3,  # the first steps divide gradients near 0 by themselves
        ),
        Workload(
            "deep_mlp",
            "one step of training thirty dense layers of 512, batch 64, SGD, float32",
            64 * (6 * _DEEP - 2 * 512 * 512),
            3 * 4 * _DEEP,
            training.deep_mlp_data,
            training.losses(training.deep_mlp_gradients, "SGD"),
        ),
        Workload(
            "deep_mlp_adam",
            "the same with Adam",
            64 * (6 * _DEEP - 2 * 512 * 512),
            7 * 4 * _DEEP,
            training.deep_mlp_data,
            training.losses(training.deep_mlp_gradients, "Adam"),
            tolerance=1e-3,
        ),
        Workload(
            "convnet_train",
            "one step of training two 3x3 convolutions of 32 and 64 channels, batch 32 of 28 x 28, SGD, float32",
            32 * 2 * 9 * (2 * 32 * 784 + 3 * 32 * 64 * 196) + 6 * 32 * 3136 * 10,
            4 * 32 * (784 + 2 * 32 * 784 + 2 * 64 * 196),
            training.convnet_data,
            training.losses(training.convnet_gradients, "SGD"),
        ),
        Workload(
            "lstm",
            "an LSTM layer over 100 steps, batch 8, width 64, float32",
            100 * 8 * (2 * 2 * 64 * 256 + 30 * 64),
            4 * (2 * 100 * 8 * 64 + 2 * 64 * 256),
            training.lstm_data,
            training.lstm,
        ),
        Workload(
            "unsharp_gradient",
            "gradient of an unsharp mask's error by 9 weights, amount and pixels, float32, 1024 x 1024",
            1024**2 * (2 * 18 + 2 * 36 + 10),
            3 * 4 * 1024**2,
            image_gradients.unsharp_data,
            image_gradients.unsharp,
        ),
        Workload(
            "bilateral_gradient",
            "gradient of a bilateral filter's error by 25 weights, tone and pixels, float32, 512 x 512",
            25 * 512**2 * (20 + 2 * 16),
            3 * 4 * 512**2,
            image_gradients.bilateral_data,
            image_gradients.bilateral,
        ),
        Workload("layernorm", "layer norm of the rows of 128 x 1024, float32", 8 * _ROWS, 8 * _ROWS, _layernorm_data, layernorm),
    )
}
