"""Halide (PyPI `halide`, just-in-time) under hand schedules: sliding producers for stencils, packed register tiles for the product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halide as hl  # type: ignore[import-not-found,unused-ignore]

from .halide_apps import APPS
from .halide_filters import FILTERS
from .workloads import GAUSS, LUMA, WORKLOADS, Array

VARIANTS = ("halide hand",)
LANES = 16
x, y, c, u = (hl.Var(n) for n in "xycu")
xo, xi, yo, yi = (hl.Var(n) for n in ("xo", "xi", "yo", "yi"))


def _f(value: Any) -> Any:
    return hl.f32(float(value))


def _gray(image: Any) -> Any:
    gray = hl.Func("gray")
    gray[x, y] = _f(LUMA[0]) * image[x, y, 0] + _f(LUMA[1]) * image[x, y, 1] + _f(LUMA[2]) * image[x, y, 2]
    return gray


def blur(image: Any) -> Any:
    rows, out, third = hl.Func("rows"), hl.Func("blurred"), _f(1 / 3)
    rows[x, y] = (image[x, y] + image[x + 1, y] + image[x + 2, y]) * third
    out[x, y] = (rows[x, y] + rows[x, y + 1] + rows[x, y + 2]) * third
    out.split(y, yo, yi, 32).parallel(yo).vectorize(x, LANES)
    rows.store_at(out, yo).compute_at(out, yi).vectorize(x, LANES)
    return out


def unsharp(image: Any) -> Any:
    gray, down, soft, ratio, out = _gray(image), *(hl.Func(n) for n in ("down", "soft", "ratio", "sharp"))
    down[x, y] = sum((_f(GAUSS[i]) * gray[x, y + i] for i in range(1, 7)), _f(GAUSS[0]) * gray[x, y])
    soft[x, y] = sum((_f(GAUSS[i]) * down[x + i, y] for i in range(1, 7)), _f(GAUSS[0]) * down[x, y])
    ratio[x, y] = (_f(2) * gray[x + 3, y + 3] - soft[x, y]) / gray[x + 3, y + 3]
    out[x, y, c] = ratio[x, y] * image[x + 3, y + 3, c]
    out.split(y, yo, yi, 64).reorder(x, c, yi, yo).parallel(yo).vectorize(x, LANES).bound(c, 0, 3).unroll(c)
    gray.store_at(out, yo).compute_at(out, yi).vectorize(x, LANES)
    for f in (down, ratio):
        f.compute_at(out, yi).vectorize(x, LANES)
    return out


def harris(image: Any) -> Any:
    g, ix, iy, out, k = _gray(image), hl.Func("ix"), hl.Func("iy"), hl.Func("corners"), _f(1 / 12)
    ix[x, y] = ((g[x + 2, y] - g[x, y]) + _f(2) * (g[x + 2, y + 1] - g[x, y + 1]) + (g[x + 2, y + 2] - g[x, y + 2])) * k
    iy[x, y] = ((g[x, y + 2] - g[x, y]) + _f(2) * (g[x + 1, y + 2] - g[x + 1, y]) + (g[x + 2, y + 2] - g[x + 2, y])) * k

    def box(a: Any, b: Any) -> Any:
        product, window = hl.Func(), hl.Func()
        product[x, y] = a[x, y] * b[x, y]
        window[x, y] = sum((product[x + i, y + j] for j in range(3) for i in range(3) if i or j), product[x, y])
        return window

    xx, yy, xy = box(ix, ix), box(iy, iy), box(ix, iy)
    trace = xx[x, y] + yy[x, y]
    out[x, y] = xx[x, y] * yy[x, y] - xy[x, y] * xy[x, y] - _f(0.04) * trace * trace
    out.split(y, yo, yi, 64).parallel(yo).vectorize(x, LANES)
    for f in (g, ix, iy):
        f.store_at(out, yo).compute_at(out, yi).vectorize(x, LANES)
    ix.compute_with(iy, x)
    return out


def sgemm(a: Any, b: Any) -> Any:
    k, product, out = hl.RDom([(0, 1024)]), hl.Func("product"), hl.Func("out")
    product[x, y] = _f(0)
    product[x, y] += a[k, y] * b[x, k]
    out[x, y] = product[x, y]
    out.tile(x, y, xo, yo, xi, yi, 64, 4).reorder(xi, yi, yo, xo).vectorize(xi, LANES).unroll(xi).unroll(yi).parallel(xo)
    product.compute_at(out, yo).vectorize(x, LANES).unroll(x).unroll(y)
    product.update().reorder(x, y, k).vectorize(x, LANES).unroll(x).unroll(y).unroll(k, 2)
    packed = b.in_()
    packed.compute_at(out, xo).vectorize(packed.args()[0], LANES)
    return out


def _rows(values: Any, kind: Any, start: Any) -> tuple[tuple[Any, Any, Any], Any]:
    """A reduction of each row as 64 running results and then one: the partial and the total function."""
    outer, lanes, partial, total = hl.RDom([(0, 16)]), hl.RDom([(0, 64)]), hl.Func(), hl.Func()
    partial[u, y] = start
    partial[u, y] = kind(partial[u, y], values(outer * 64 + u))
    total[y] = start
    total[y] = kind(total[y], partial[lanes, y])
    return (partial, outer, lanes), total


def _schedule_rows(out: Any, sums: Any, others: Any, scalars: Any) -> None:
    out.split(y, yo, yi, 16).parallel(yo).vectorize(x, LANES)
    for (partial, outer, lanes), total in sums:
        total.compute_at(out, yi)
        partial.compute_at(out, yi).vectorize(u, LANES).unroll(u)
        partial.update().reorder(u, outer).vectorize(u, LANES).unroll(u)
        total.update().atomic().vectorize(lanes, 64)
    for f in others:
        f.compute_at(out, yi).vectorize(x, LANES)
    for f in scalars:
        f.compute_at(out, yi)


def softmax(rows: Any) -> Any:
    top = _rows(lambda i: rows[i, y], hl.max, _f(-3e38))
    e, out, inverse = hl.Func("e"), hl.Func("softmax"), hl.Func("inverse")
    e[x, y] = hl.exp(rows[x, y] - top[1][y])
    total = _rows(lambda i: e[i, y], lambda a, b: a + b, _f(0))
    inverse[y] = _f(1) / total[1][y]
    out[x, y] = e[x, y] * inverse[y]
    _schedule_rows(out, (top, total), (e,), (inverse,))
    return out


def layernorm(rows: Any, bias: Any, gain: Any) -> Any:
    mean, scale, out = hl.Func("mean"), hl.Func("scale"), hl.Func("layernorm")
    first = _rows(lambda i: rows[i, y], lambda a, b: a + b, _f(0))
    mean[y] = first[1][y] / _f(1024)
    second = _rows(lambda i: (rows[i, y] - mean[y]) * (rows[i, y] - mean[y]), lambda a, b: a + b, _f(0))
    scale[y] = _f(1) / hl.sqrt(second[1][y] / _f(1024) + _f(1e-5))
    out[x, y] = (rows[x, y] - mean[y]) * scale[y] * gain[x] + bias[x]
    _schedule_rows(out, (first, second), (), (mean, scale))
    return out


def build(name: str, variant: str) -> Callable[[], Array] | None:
    algorithm = (APPS | FILTERS | {f.__name__: f for f in (blur, unsharp, harris, sgemm, softmax, layernorm)}).get(name)
    if algorithm is None:
        return None
    w = WORKLOADS[name]
    data = w.inputs()
    types = {"float32": hl.Float(32), "uint16": hl.UInt(16), "uint8": hl.UInt(8)}
    images = [hl.ImageParam(types[a.dtype.name], a.ndim, key) for key, a in data.items()]
    call = hl.Pipeline(algorithm(*images)).compile_to_callable(images, hl.get_host_target())
    out = w.empty(data)
    buffers = [*(hl.Buffer(a) for a in data.values()), hl.Buffer(out)]

    def run() -> Array:
        call(*buffers)
        return out

    return run
