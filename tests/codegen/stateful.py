"""A program with state, and compiled models beside the interpreter call by call."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
from fluorite.algo.numerics import compare
from fluorite.algo.parameters import initial_parameters

F32 = np.float32


def variant(model: Any, method: str) -> dict[str, Any]:
    found: dict[str, Any] = model.manifest["methods"][method]["variants"][-1]
    return found


def copies(model: Any, method: str) -> set[str]:
    """The state whose new value takes the way over memory of its own."""
    v = variant(model, method)
    return {v["buffers"][held]["name"] for _, held in v.get("copies", ())}


def follow(program: Any, calls: list[tuple[str, tuple[Any, ...]]], model: Any = None) -> Any:
    """A compiled model that has made these calls, each compared with the interpreter's transition from the model's own state."""
    graph = fl.trace(program)
    model = model or fl.compile(program)
    for method, inputs in calls:
        before = {path: np.array(model.parameters[path]) for path in initial_parameters(graph)}
        result = getattr(model, method)(*inputs)
        held = {path: np.array(model.parameters[path]) for path in before}
        found = compare(graph, method, inputs, fl.algo.graph.Transition(result, held), "reassociates", before)
        assert found and all(c.ok for c in found), [c.text() for c in found if not c.ok]
    return model


class Line(fl.Program):
    """Linear regression with its gradient written out."""

    def __init__(self, features: int = 13) -> None:
        self.w, self.b = fl.param(init=fl.init.normal(1.0), in_=features, out=1), fl.param(init=0.0, out=1)
        self.steps = fl.state(init=0, dtype=fl.i32)
        self.velocity = fl.state(in_=features, out=1)

    def predict(self, x: Any) -> Any:
        return x @ self.w + self.b

    @fl.method(batch="n")
    def infer(self, x: fl.f32("n", 13)) -> Any:  # type: ignore[valid-type]
        return self.predict(x)

    @fl.method(batch="n")
    def train_step(self, x: fl.f32("n", 13), y: fl.f32("n", 1)) -> Any:  # type: ignore[valid-type]
        error = self.predict(x) - y
        loss = fl.mean(error * error, name="loss")
        slope = fl.stage(lambda i, o: fl.sum(lambda n: x[n, i] * error[n, o]), name="slope") * (2.0 / fl.cast(x.shape[0], fl.f32))
        self.velocity = 0.9 * self.velocity + slope
        self.w = self.w - 0.01 * self.velocity
        self.b = self.b - 0.02 * fl.mean(error, axis=0)
        self.steps += 1
        return {"loss": loss}


def rows(n: int, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n, 13)).astype(F32)
    return x, (x @ np.arange(13, dtype=F32)[:, None] / 13 + 1).astype(F32)
