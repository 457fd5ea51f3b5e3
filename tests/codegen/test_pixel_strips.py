"""Stencils over images whose last axis is a few parts of each pixel: one kernel, and the same values."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen import driver
from fluorite.codegen.target import resolve_target
from fluorite.schedule.default.pixel_strips import keeps_parts


def blur(image: Any) -> Any:
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x, c: image[y, x - 1, c] + fl.exp(image[y, x, c]) + image[y, x + 2, c], name="rows"))
    return fl.stage(lambda y, x, c: rows[y - 1, x, c] + 2 * rows[y, x, c] + rows[y + 1, x, c], name="blur")


def mixed(image: Any) -> Any:
    """Through one channel, and from one part to another."""
    gray = fl.edge(fl.stage(lambda y, x: fl.exp(image[y, x, 0]) + image[y, x, 1] + image[y, x, 2], name="gray"))
    source = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x, c: fl.exp(source[y, x - 1, c] - source[y + 2, x, c]) - gray[y, x], name="rows"))
    turned = fl.edge(fl.stage(lambda y, x, c: fl.exp(rows[y - 1, x, (c + 1) % 3] + rows[y, x, c]) + 1, name="turned"))
    return fl.stage(lambda y, x, c: turned[y, x, c] + turned[y + 1, x + 1, c] + gray[y, x], name="out")


def batch(images: Any) -> Any:
    images = fl.edge(images)
    rows = fl.edge(fl.stage(lambda n, y, x, c: fl.cast(images[n, y - 1, x, c], fl.i32) // 3 + images[n, y, x + 1, c], name="rows"))
    return fl.stage(lambda n, y, x, c: fl.cast((rows[n, y, x, c] * rows[n, y + 1, x, c]) % 251, fl.u8), name="out")


@pytest.mark.parametrize(
    ("f", "spec", "lead", "parts"),
    [(blur, fl.f32("h", "w", 3), (), 3), (mixed, fl.f32("h", "w", 3), (), 3), (batch, fl.u8(2, "h", "w", 4), (2,), 4)],
)
def test_one_kernel_with_the_same_values(f: Any, spec: Any, lead: tuple[int, ...], parts: int) -> None:
    g = fl.trace(f, None, inputs={"image" if f is not batch else "images": spec})
    plan, _ = driver.prepared(None, g)
    (made,) = driver.lower_variants(g, plan, resolve_target(plan.target))
    assert len(made.kernels) == 1
    model = fl.compile(g)
    for h, w in [(1, 1), (5, 17), (13, 16), (37, 33), (70, 48)]:
        image = np.random.default_rng(w).random((*lead, h, w, parts), np.float32)
        image = (image * 200).astype(np.uint8) if f is batch else image
        np.testing.assert_allclose(model(image), g.run(image), rtol=1e-5)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (lambda a, y, x, c: a[y, x + 1, c] + a[y + 2, x, c], True),
        (lambda a, y, x, c: a[y, x, 0] + a[y, x, c], False),
        (lambda a, y, x, c: a[y, 2 * x, c], False),
        (lambda a, y, x, c: a[x, y, c], False),
        (lambda a, y, x, c: a[y, x, c] + fl.cast(x, fl.f32), False),
    ],
)
def test_which_rows_of_parts_are_as_good_as_rows_of_pixels(value: Any, kept: bool) -> None:
    def f(a: Any) -> Any:
        return fl.stage(lambda y, x, c: value(a, y, x, c), name="out", extents={"y": 8, "x": 8, "c": 3})

    (s,) = fl.trace(f, None, inputs={"a": fl.f32(32, 32, 3)}).stages
    assert keeps_parts(s) == kept
