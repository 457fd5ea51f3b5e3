"""What plans with mistakes are plans of: the examples and benchmarks with those that ship, and random programs with random ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fluorite as fl
from fluorite.algo.errors import FluoriteError
from fluorite.algo.graph import Graph

from .plans import plan
from .programs import program

_ROOT = Path(__file__).resolve().parents[2]
_MODELS: dict[str, tuple[str, bool, dict[str, int]]] = {
    "examples/photo": ("examples.photo:photo", True, {"h": 37, "w": 50}),
    "examples/digits": ("examples.digits:Digits", True, {"n": 5}),
    "examples/attention": ("examples.attention:Block", False, {}),
    "examples/apps/*": ("examples.apps.{0}:{0}", False, {}),
    "benchmarks/plans/*": ("benchmarks.algorithms:{0}", True, {"h": 37, "w": 50, "m": 19, "k": 33, "n": 21}),
}
"""files -> the model of their plans, whether it compiles in a few seconds, and extents to run it at."""


@dataclass(frozen=True)
class Subject:
    """A program, a plan of it as text, values for its symbols, and whether compiling it is quick."""

    graph: Graph
    text: str
    symbols: dict[str, int]
    quick: bool


def subject(rng: random.Random) -> Subject:
    if rng.random() < 0.5:
        files = _shipped()
        path, model, quick, sizes = rng.choice(files)
        graph = _traced(model)
        return Subject(graph, path.read_text(encoding="utf-8"), {s: sizes.get(s, 16) for s in graph.symbols()}, quick)
    while True:
        try:
            graph, symbols = program(rng)
        except FluoriteError:
            continue
        return Subject(graph, plan(rng, graph).to_yaml(), symbols, True)


@cache
def _shipped() -> list[tuple[Path, str, bool, dict[str, int]]]:
    found = []
    for pattern, (model, quick, sizes) in _MODELS.items():
        for path in sorted(_ROOT.glob(f"{pattern}_*.yaml" if "*" not in pattern else f"{pattern}.yaml")):
            found.append((path, model.format(path.stem.removesuffix("_cpu")), quick, sizes))
    presets = sorted((_ROOT / "schedules").glob("*.yaml"))
    return found + [(path, "examples.photo:photo", True, {"h": 37, "w": 50}) for path in presets]


@cache
def _traced(name: str) -> Graph:
    module, attribute = name.split(":")
    made: Callable[..., Any] = getattr(__import__(module, fromlist=[attribute]), attribute)
    return fl.trace(made() if isinstance(made, type) else made)
