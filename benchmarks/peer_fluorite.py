"""fluorite under the empty plan, the hand-written plan, and a tuned one. Results that nobody holds any more are written over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import fluorite as fl
import numpy as np

from . import algorithms, filters, image_gradients, networks, training
from .workloads import WORKLOADS, Array

VARIANTS = ("fluorite empty", "fluorite hand", "fluorite tuned")
PLANS = Path(__file__).parent / "plans"
APPS = Path(__file__).parents[1] / "examples" / "apps"


def build(name: str, variant: str) -> Callable[[], Array] | None:
    kind = variant.split()[-1]
    plan = None
    if kind != "empty":
        suffix = "" if kind == "hand" else "_tuned"
        plan = next((p for p in (PLANS / f"{name}{suffix}.yaml", APPS / f"{name}{suffix or '_cpu'}.yaml") if p.exists()), None)
        if plan is None:
            return None
    data = WORKLOADS[name].inputs()
    if name in networks.NETWORKS:
        return training_step(name, plan)
    if name in networks.INFERENCE:
        return inference(name, plan)
    if name in filters.__all__:
        return gradient(name, plan)
    graph = fl.trace(algorithms.named(name))
    inputs = [graph[i] for i in graph.methods[0].inputs]
    sizes = {str(size): n for t in inputs for size, n in zip(t.shape, data[t.name].shape, strict=not t.complex)}  # pairs are one axis more
    model = fl.compile(graph, plan, extents={s: sizes[s] for s in graph.symbols()})
    arguments = [data[t.name] if t.complex else data[t.name].astype(t.dtype, copy=False) for t in inputs]
    return lambda: model(*arguments)  # type: ignore[no-any-return]


def inference(name: str, plan: Path | None) -> Callable[[], Array]:
    data = WORKLOADS[name].inputs()
    program, method = networks.INFERENCE[name]
    model = fl.compile(program(), plan)
    for path, value in training.parameters(data).items():
        model.parameters[path] = value
    return lambda: getattr(model, method)(data["x"])  # type: ignore[no-any-return]


def gradient(name: str, plan: Path | None) -> Callable[[], Array]:
    data = WORKLOADS[name].inputs()
    h, w = data["image"].shape
    model = fl.compile(getattr(filters, name), plan, extents={"h": h, "w": w})
    return lambda: image_gradients.flat(model(*data.values()))


def training_step(name: str, plan: Path | None) -> Callable[[], Array]:
    """One step of training; its result are the losses of the first steps, which `build` has taken."""
    data = WORKLOADS[name].inputs()
    model = fl.compile(networks.NETWORKS[name](), plan)
    for path, value in training.parameters(data).items():
        model.parameters[path] = value
    x, y = data["x"], data["y"]
    first = np.array([float(model.train_step(x, y)["cost"]) for _ in range(training.STEPS)])

    def call() -> Array:
        model.train_step(x, y)
        return first

    return call
