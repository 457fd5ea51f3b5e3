"""Random programs: one or two methods, each a small graph of stages of every kind, over symbolic, fixed and mixed extents and all types."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import fluorite as fl
from fluorite.algo.dtypes import kind
from fluorite.algo.graph import Graph
from fluorite.algo.program import trace

from .steps import FLOATS, NARROW, OTHERS, STEPS, Step


def program(rng: random.Random) -> tuple[Graph, dict[str, int]]:
    """A random graph and values for its symbols. Extents that are fixed may be 0."""
    sizes = {"h": rng.choice([1, 2, 5, 7, 16, 17, 33, 40]), "w": rng.choice([1, 3, 8, 16, 19, 32, 35, 50])}
    symbolic = rng.choice([(), (), ("h", "w"), ("h", "w"), ("h",), ("w",)])
    if rng.random() < 0.03:
        sizes |= {n: 0 for n in rng.sample(sorted(sizes), 1) if n not in symbolic}
    shape = tuple(n if n in symbolic else sizes[n] for n in sizes)
    count = 2 if rng.random() < 0.1 else 1
    methods = {f"m{n}": _method(rng, f"m{n}", shape) for n in range(count)}
    made = type("Fuzz", (fl.Program,), dict(methods))
    return trace(made()), {n: sizes[n] for n in symbolic}


def chained(steps: Sequence[Step], seeds: Sequence[int], x: Any, y: Any) -> list[Any]:
    """Two tensors, and what each step makes of those before it."""
    values = [x, y]
    for n, (step, seed) in enumerate(zip(steps, seeds, strict=True)):
        values.append(step(random.Random(seed), values, f"s{n}"))
    return values


def _method(rng: random.Random, name: str, shape: tuple[Any, ...]) -> Any:
    dtype = rng.choice(rng.choices([FLOATS, OTHERS, NARROW], [65, 25, 10])[0])
    steps = [rng.choice(STEPS) for _ in range(rng.choice([1, 1, 2, 2, 3]))]
    seeds = [rng.randrange(1 << 30) for _ in steps]
    several = rng.random() < 0.3
    sloped = dtype in FLOATS and rng.random() < 0.2

    def run(self: Any, x: Any, y: Any) -> Any:
        if sloped:
            return {"slope": fl.grad(lambda t: fl.sum(fl.sin(forward(t, y))))(x)}
        return forward(x, y)

    def forward(x: Any, y: Any) -> Any:
        values = chained(steps, seeds, x, y)
        if sloped:
            return fl.cast(values[-1], x.dtype) if kind(values[-1].dtype) != "float" else values[-1]
        return {"out": values[-1], "mid": values[-2]} if several and len(steps) > 1 else values[-1]

    run.__annotations__ = {"x": dtype(*shape), "y": dtype(*shape)}
    run.__name__ = name
    return fl.method(run)
