"""The workloads as fluorite algorithms: the same operations in the same order as the references and the other peers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import fluorite as fl

from .workloads import GAUSS, LUMA

Image = fl.f32[fl.Tensor, 3, "h", "w"]
Rows = fl.f32[fl.Tensor, "n", "m"]


def blur(image: fl.f32[fl.Tensor, "h", "w"]) -> fl.Tensor:
    rows = fl.stage(lambda y, x: (image[y, x] + image[y, x + 1] + image[y, x + 2]) * (1 / 3), name="rows")
    return fl.stage(lambda y, x: (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) * (1 / 3), name="blurred")


def _gray(image: fl.Tensor) -> fl.Tensor:
    r, g, b = (float(k) for k in LUMA)
    return fl.stage(lambda y, x: r * image[0, y, x] + g * image[1, y, x] + b * image[2, y, x], name="gray")


def unsharp(image: Image) -> fl.Tensor:
    gray, tap = _gray(image), [float(k) for k in GAUSS]
    down = fl.stage(lambda y, x: sum((tap[i] * gray[y + i, x] for i in range(1, 7)), tap[0] * gray[y, x]), name="down")
    soft = fl.stage(lambda y, x: sum((tap[i] * down[y, x + i] for i in range(1, 7)), tap[0] * down[y, x]), name="soft")
    ratio = fl.stage(lambda y, x: (2 * gray[y + 3, x + 3] - soft[y, x]) / gray[y + 3, x + 3], name="ratio")
    return fl.stage(lambda c, y, x: ratio[y, x] * image[c, y + 3, x + 3], name="sharp", extents={"c": 3})


def harris(image: Image) -> fl.Tensor:
    g, k = _gray(image), 1 / 12
    ix = fl.stage(
        lambda y, x: ((g[y, x + 2] - g[y, x]) + 2 * (g[y + 1, x + 2] - g[y + 1, x]) + (g[y + 2, x + 2] - g[y + 2, x])) * k, name="ix"
    )
    iy = fl.stage(
        lambda y, x: ((g[y + 2, x] - g[y, x]) + 2 * (g[y + 2, x + 1] - g[y, x + 1]) + (g[y + 2, x + 2] - g[y, x + 2])) * k, name="iy"
    )

    def box(p: fl.Tensor, q: fl.Tensor, name: str) -> fl.Tensor:
        product = fl.stage(lambda y, x: p[y, x] * q[y, x], name=f"{name}_product")

        def window(y: Any, x: Any) -> Any:
            terms = [product[y + j, x + i] for j in range(3) for i in range(3)]
            return sum(terms[1:], terms[0])

        return fl.stage(window, name=name)

    xx, yy, xy = box(ix, ix, "xx"), box(iy, iy, "yy"), box(ix, iy, "xy")
    trace = fl.stage(lambda y, x: xx[y, x] + yy[y, x], name="trace")
    return fl.stage(lambda y, x: xx[y, x] * yy[y, x] - xy[y, x] * xy[y, x] - 0.04 * trace[y, x] * trace[y, x], name="corners")


def sgemm(a: fl.f32[fl.Tensor, "m", "k"], b: fl.f32[fl.Tensor, "k", "n"]) -> fl.Tensor:
    return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[k, j]), name="product")


def byte_product(a: fl.u8[fl.Tensor, "m", "k"], b: fl.i8[fl.Tensor, "k", "n"]) -> fl.Tensor:
    return fl.stage(lambda i, j: fl.sum(lambda k: fl.cast(a[i, k], "int32") * fl.cast(b[k, j], "int32")), name="product")


def _widened(a: fl.Tensor, b: fl.Tensor, to: str) -> fl.Tensor:
    return fl.stage(lambda i, j: fl.sum(lambda k: fl.cast(a[i, k], to) * fl.cast(b[k, j], to)), name="product")


def int8_product(a: fl.i8[fl.Tensor, "m", "k"], b: fl.i8[fl.Tensor, "k", "n"]) -> fl.Tensor:
    return _widened(a, b, "int32")


def half_product(a: fl.f16[fl.Tensor, "m", "k"], b: fl.f16[fl.Tensor, "k", "n"]) -> fl.Tensor:
    return _widened(a, b, "float32")


def bf16_product(a: fl.bf16[fl.Tensor, "m", "k"], b: fl.bf16[fl.Tensor, "k", "n"]) -> fl.Tensor:
    return _widened(a, b, "float32")


bf16_product_512 = bf16_few_rows = bf16_product


def complex_product(a: fl.c64[fl.Tensor, "n"], b: fl.c64[fl.Tensor, "n"]) -> fl.Tensor:
    return a * b


def softmax(x: Rows) -> fl.Tensor:
    return fl.softmax(x, axis=1)


def layernorm(x: Rows, gain: fl.f32[fl.Tensor, "m"], bias: fl.f32[fl.Tensor, "m"]) -> fl.Tensor:
    return fl.layer_norm(x, gain, bias)


def add(x: fl.f32[fl.Tensor, 16], y: fl.f32[fl.Tensor, 16]) -> fl.Tensor:
    return x + y


def chain(x: fl.f32[fl.Tensor, "n"]) -> fl.Tensor:
    """Twenty stages that the benchmark's plan keeps in kernels of their own."""
    for n in range(20):
        x = _step(x, f"step{n}")
    return x


def named(name: str) -> Callable[..., Any]:
    """The algorithm of a workload: one of this file, or an example."""
    found: Callable[..., Any] = globals().get(name) or getattr(import_module(f"examples.apps.{name}"), name)
    return found


def _step(x: fl.Tensor, name: str) -> fl.Tensor:
    return fl.stage(lambda i: x[i] * 0.5 + 0.25, name=name)
