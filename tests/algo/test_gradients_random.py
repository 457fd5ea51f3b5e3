"""Random stages: affine, strided, modular and data-dependent indices, boundary views, predicates and every reduction, differentiated once
and twice beside finite differences in float64."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.trace import build_stage
from gradient_checks import check_gradient, positional
from hypothesis import given, settings
from hypothesis import strategies as st

EXTENTS = (1, 2, 3, 4, 5, 7)
REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": fl.sum, "max": fl.max, "min": fl.min, "prod": fl.prod}


class Drawing:
    """One random stage of x (any rank), y (a vector) and ids (integers), the same each time it is made."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        g = random.Random(seed)
        self.shape = tuple(g.choice(EXTENTS) for _ in range(g.randint(1, 3)))
        self.axes = {n: g.choice(EXTENTS) for n in "ijk"[: g.randint(0, 3)]}
        self.reduction = g.choice([None, *REDUCTIONS])
        self.over = {n: g.choice((1, 2, 3, 4)) for n in "rs"[: g.randint(1, 2)]} if self.reduction else {}
        self.count = g.choice((2, 3, 5))
        self.views: dict[str, Any] = {}

    def arrays(self) -> tuple[np.ndarray, ...]:
        g = np.random.default_rng(self.seed)
        spread = g.permutation(int(np.prod(self.shape))).reshape(self.shape)  # no two elements are close: the extrema are steady
        return (
            0.3 * spread / max(1, spread.size) + 0.7 + 0.01 * g.random(self.shape),
            g.standard_normal(self.count),
            g.integers(0, 50, self.count).astype(np.int32),
        )

    def __call__(self, x: Any, y: Any, ids: Any) -> Any:
        g = random.Random(self.seed + 1)
        self.views = {"edge": fl.edge(x), "wrap": fl.wrap(x), "reflect": fl.reflect(x), "constant": fl.constant(x, 0.5)}

        def body(*position: Any) -> Any:
            def value(*inner: Any) -> Any:
                return self.element(g, [*position, *inner], x, y, ids)

            if not self.reduction:
                return value()
            fn = eval(f"lambda {', '.join(self.over)}: value({', '.join(self.over)})", {"value": value})
            return REDUCTIONS[self.reduction](fn, over=self.over)

        return build_stage(list(self.axes), body, name="drawn", extents=self.axes)

    def element(self, g: random.Random, axes: list[Any], x: Any, y: Any, ids: Any) -> Any:
        e = self.read(g, axes, x, ids)
        for _ in range(g.randint(0, 2)):
            other = g.choice([lambda: self.read(g, axes, x, ids), lambda: y[self.position(g, axes, ids, self.count)], lambda e=e: e])()
            e = g.choice([lambda a, b: a * b, lambda a, b: a + 2 * b, lambda a, b: a - b, lambda a, b: fl.maximum(a, b + 0.031)])(e, other)
        e = g.choice([lambda e: e, lambda e: e, fl.sin, lambda e: fl.exp(-e * e), lambda e: e * e, lambda e: e / (2.5 + e * e)])(e)
        if axes and g.random() < 0.4:
            a, b = g.choice(axes), g.choice(axes)
            e = fl.where(
                g.choice([a + 1 > b, a >= 1, (a + b) % 2 == 0, a == b]), e, g.choice([0.0, y[self.position(g, axes, ids, self.count)]])
            )
        if g.random() < 0.2:
            e = fl.where(e > 0.37, e * 1.5, g.choice([0.0, y[0]]))
        return e

    def read(self, g: random.Random, axes: list[Any], x: Any, ids: Any) -> Any:
        kind = g.choice(["inside", "inside", "edge", "wrap", "reflect", "constant"])
        if kind == "inside":
            return x[tuple(self.position(g, axes, ids, n) for n in self.shape)]
        return self.views[kind][tuple(self.affine(g, axes) for _ in self.shape)]

    def affine(self, g: random.Random, axes: list[Any]) -> Any:
        e = g.randint(-2, 2)
        for a in g.sample(axes, min(len(axes), g.randint(0, 2))):
            e = e + a * g.choice((1, 1, 1, 2, -1, 3))
        return e

    def position(self, g: random.Random, axes: list[Any], ids: Any, extent: int) -> Any:
        """An index that is inside."""
        e = self.affine(g, axes)
        kind = g.choice(["mod", "mod", "div", "mirrored", "data"])
        if kind == "data":
            return (ids[e % self.count] + g.choice((0, 1))) % extent
        if kind == "div":
            return (e // g.choice((2, 3))) % extent
        if kind == "mirrored":
            return extent - 1 - e % extent
        return e % extent


@given(st.integers(0, 10**6))
@settings(max_examples=120, deadline=None)
def test_random_stage(seed: int) -> None:
    drawn = Drawing(seed)
    check_gradient(drawn, *drawn.arrays(), tolerance=1e-5)


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_random_stage_twice(seed: int) -> None:
    drawn = Drawing(seed)

    def slope(x: Any, y: Any, ids: Any) -> Any:
        loss = positional(lambda x, y: fl.sum(fl.square(drawn(x, y, ids))), 2)
        return list(fl.grad(loss, (0, 1))(x, y))

    check_gradient(slope, *drawn.arrays(), tolerance=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_seed_draws_the_same_stage(seed: int) -> None:
    from gradient_checks import traced

    drawn = Drawing(seed)
    assert traced(drawn, drawn.arrays()).text() == traced(drawn, drawn.arrays()).text()
