"""Optimisers compiled: every step against the interpreter's transition from the same state, and models that learn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.graph import Transition
from fluorite.algo.numerics import compare
from fluorite.algo.parameters import initial_parameters

sys.path.insert(0, str(Path(__file__).parents[1] / "algo"))
from optimizer_references import OPTIMIZERS

F32 = np.float32
MAKERS: dict[str, Any] = {
    **{name: make for name, (make, _, _) in OPTIMIZERS.items()},
    "all_options": lambda: fl.optim.AdamW(
        fl.optim.warmup(fl.optim.cosine(0.1, 5), 2), clip_value=1.0, clip_norm=2.0, decay="*/w", accumulate=2, average=0.9
    ),
}


class Part(fl.Module):
    def __init__(self, optimizer: fl.optim.Optimizer, dtype: Any) -> None:
        self.w = fl.param(init=fl.init.normal(1.0), dtype=dtype, in_=37, out=19)
        self.b = fl.param(init=0.0, dtype=dtype, i=7)
        self.s = fl.param(init=0.5, dtype=dtype)
        self.optimizer = optimizer


def program(dtype: str) -> fl.Program:
    """A method for every optimiser, with parameters of its own."""

    def stepping(name: str) -> Any:
        def step(self: Any, g: fl.f32(37, 19), h: fl.f32(7), k: fl.f32()) -> Any:  # type: ignore[valid-type]
            part = self.parts[name]
            given = [fl.cast(t, dtype) for t in (g, h, k)]
            part.optimizer.apply(zip((part.w, part.b, part.s), given, strict=True))

        step.__name__ = name
        return fl.method(step)

    def begin(self: Any) -> None:
        self.parts = {name: Part(make(), dtype) for name, make in MAKERS.items()}

    made: fl.Program = type("Every", (fl.Program,), {"__init__": begin, **{name: stepping(name) for name in MAKERS}})()
    return made


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_every_step_is_the_interpreters(dtype: str) -> None:
    every = program(dtype)
    graph, model = fl.trace(every), fl.compile(every)
    generator = np.random.default_rng(3)
    for n in range(3):
        given = (generator.standard_normal((37, 19)).astype(F32), generator.standard_normal(7).astype(F32), F32(n - 1))
        for name in MAKERS:
            before = {path: np.array(model.parameters[path]) for path in initial_parameters(graph)}
            getattr(model, name)(*given)
            after = {path: np.array(model.parameters[path]) for path in before}
            found = compare(graph, name, given, Transition(None, after), "reassociates", before)
            assert found and all(c.ok for c in found), (name, [c.text() for c in found if not c.ok])
            assert (after[f"parts.{name}/w"] != before[f"parts.{name}/w"]).any() or name == "all_options"
    v = {name: model.manifest["methods"][name]["variants"][0] for name in ("sgd", "momentum", "adam", "lamb")}
    assert not any(x.get("copies") for x in v.values())


class Fit(fl.Program):
    """One class to train and to predict with."""

    def __init__(self, batch_size: int = 64) -> None:
        self.prediction = fl.nn.Linear(13, 1)
        self.optimizer = fl.optim.Adam(0.05)

    @fl.method(batch="n")
    def train_step(self, x: fl.f32("n", 13), y: fl.f32("n", 1)) -> Any:  # type: ignore[valid-type]
        cost = fl.mean(fl.square(self.prediction(x) - y), name="avg_cost")
        self.optimizer.minimize(cost)
        return {"avg_cost": cost}

    @fl.method(batch="n")
    def infer(self, x: fl.f32("n", 13)) -> Any:  # type: ignore[valid-type]
        return self.prediction(x)


def test_a_line_is_fitted_and_predicted_with() -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((256, 13)).astype(F32)
    y = (x @ generator.standard_normal((13, 1)) + 0.7).astype(F32)
    model = fl.compile(Fit())
    for n in range(400):
        rows = slice(64 * (n % 4), 64 * (n % 4) + 64)
        cost = model.train_step(x[rows], y[rows])["avg_cost"]
    assert cost < 1e-4
    np.testing.assert_allclose(model.infer(x), y, atol=0.05)
    assert fl.check(Fit(), extents={"n": 5}).ok


class Two(fl.Program):
    """Two networks against one another, on one state."""

    def __init__(self) -> None:
        self.generator, self.critic = fl.nn.Linear(4, 6), fl.nn.Linear(6, 1)
        self.g_opt, self.d_opt = fl.optim.Adam(0.01), fl.optim.SGD(0.05, 0.5)

    @fl.method
    def d_step(self, real: fl.f32("n", 6), noise: fl.f32("n", 4)) -> Any:  # type: ignore[valid-type]
        fake = fl.stop_gradient(self.generator(noise))
        loss = fl.mean(fl.softplus(-self.critic(real)) + fl.softplus(self.critic(fake)), name="d_loss")
        self.d_opt.minimize(loss, params=self.critic)
        return {"d_loss": loss}

    @fl.method
    def g_step(self, noise: fl.f32("n", 4)) -> Any:  # type: ignore[valid-type]
        loss = fl.mean(fl.softplus(-self.critic(self.generator(noise))), name="g_loss")
        self.g_opt.minimize(loss, params=self.generator)
        return {"g_loss": loss}


def test_alternating_methods_share_one_state() -> None:
    graph, model = fl.trace(Two()), fl.compile(Two())
    generator = np.random.default_rng(1)
    for n in range(6):
        noise = generator.standard_normal((9, 4)).astype(F32)
        real = generator.standard_normal((9, 6)).astype(F32)
        method, given = ("d_step", (real, noise)) if n % 2 == 0 else ("g_step", (noise,))
        before = {path: np.array(model.parameters[path]) for path in initial_parameters(graph)}
        result = getattr(model, method)(*given)
        after = {path: np.array(model.parameters[path]) for path in before}
        found = compare(graph, method, given, Transition(result, after), "reassociates", before)
        assert all(c.ok for c in found), [c.text() for c in found if not c.ok]
        moved = {path for path in before if (after[path] != before[path]).any()}
        side, other = ("critic/", "generator/") if method == "d_step" else ("generator/", "critic/")
        assert any(p.startswith(side) for p in moved) and not any(p.startswith(other) for p in moved)


class Deep(fl.Program):
    """A convolutional network with everything that differs in training."""

    def __init__(self) -> None:
        self.conv, self.norm = fl.nn.Conv2d(1, 4, 3, padding=1), fl.nn.BatchNorm(4)
        self.drop, self.head = fl.nn.Dropout(0.25), fl.nn.Linear(4 * 16, 10)
        self.optimizer = fl.optim.SGD(0.1, 0.9, nesterov=True)

    def logits(self, x: Any) -> Any:
        x = fl.max_pool2d(fl.relu(self.norm(self.conv(x))), 2)
        return self.head(self.drop(fl.reshape(x, (x.shape[0], 64))))

    @fl.method(batch="n", training=True)
    def train_step(self, x: fl.f32("n", 1, 8, 8), y: fl.i32("n")) -> Any:  # type: ignore[valid-type]
        loss = fl.cross_entropy(self.logits(x), y, name="loss")
        self.optimizer.minimize(loss)
        return loss

    @fl.method(batch="n")
    def infer(self, x: fl.f32("n", 1, 8, 8)) -> Any:  # type: ignore[valid-type]
        return self.logits(x)


def test_a_network_trains_as_the_interpreter_does_and_tells_classes_apart() -> None:
    graph, model = fl.trace(Deep()), fl.compile(Deep())
    generator = np.random.default_rng(0)
    patterns = generator.standard_normal((10, 1, 8, 8)).astype(F32)
    labels = np.arange(40, dtype=np.int32) % 10
    images = patterns[labels] + 0.3 * generator.standard_normal((40, 1, 8, 8)).astype(F32)
    for n in (7, 1, 16):
        before = {path: np.array(model.parameters[path]) for path in initial_parameters(graph)}
        result = model.train_step(images[:n], labels[:n])
        after = {path: np.array(model.parameters[path]) for path in before}
        found = compare(graph, "train_step", (images[:n], labels[:n]), Transition(result, after), "reassociates", before)
        assert found and all(c.ok for c in found), [c.text() for c in found if not c.ok]
    for _ in range(60):
        model.train_step(images, labels)
    assert (model.infer(images).argmax(1) == labels).mean() > 0.95
    assert model.parameters["random/calls"] == 63
