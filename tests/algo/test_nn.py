from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite import nn
from fluorite.algo.parameters import initial_parameters
from operator_running import near, numbers
from scipy import special


class Block(nn.Module):
    """Written with __call__, which opens the scope as forward does."""

    def __init__(self, dim: int) -> None:
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim, bias=False)

    def __call__(self, x: fl.Tensor) -> fl.Tensor:
        return x + self.down(fl.gelu(self.up(self.norm(x))))  # type: ignore[no-any-return]


class Stacked(Block):
    def __call__(self, x: fl.Tensor) -> fl.Tensor:
        return super().__call__(x) * 2  # type: ignore[no-any-return]


class Model(fl.Program):
    def __init__(self) -> None:
        self.embed = nn.Embedding(11, 4)
        self.layers = [Block(4), Stacked(4)]
        self.head = nn.Sequential(nn.RMSNorm(4), fl.relu, nn.Linear(4, 3))

    def hidden(self, ids: fl.Tensor) -> fl.Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return x

    @fl.method(batch="n")
    def predict(self, ids: fl.i32[fl.Tensor, "n", "t"]) -> Any:
        return self.head(self.hidden(ids))

    @fl.method(batch="n")
    def inside(self, x: fl.f32[fl.Tensor, "n", 4]) -> Any:
        return self.layers[0].down(self.layers[0].up(x))


def test_paths_follow_the_attributes() -> None:
    graph = fl.trace(Model)
    paths = [s.path for s in graph.stages]
    for wanted in [
        "predict/embed/embedding", "predict/layers.0/up/matmul", "predict/layers.0/up/bias", "predict/layers.0/down/matmul",
        "predict/layers.0/add", "predict/layers.1/norm/layer_norm/mean", "predict/layers.1/multiply", "predict/head/layers.0/rms_norm",
        "predict/head/relu", "predict/head/layers.2/matmul", "inside/layers.0/up/matmul", "inside/layers.0/down/matmul",
    ]:  # fmt: skip
        assert wanted in paths
    assert not any("layers.1/layers.1" in p or "_2" in p for p in paths)
    assert [leaf.path for leaf in graph.leaves if leaf.kind == "parameter"][:3] == ["embed/w", "layers.0/norm/scale", "layers.0/norm/shift"]
    up = next(leaf for leaf in graph.leaves if leaf.path == "layers.0/up/w")
    assert up.axis_names == ("in", "out") and up.shape == (4, 8)


def test_values() -> None:
    graph = fl.trace(Model)
    p = {k: v.astype(float) for k, v in initial_parameters(graph, 3).items()}
    ids = np.array([[1, 0, 10], [4, 4, 2]], np.int32)
    x = p["embed/w"][ids]
    for n, factor in ((0, 1), (1, 2)):
        y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * p[f"layers.{n}/norm/scale"] + p[
            f"layers.{n}/norm/shift"
        ]
        y = y @ p[f"layers.{n}/up/w"] + p[f"layers.{n}/up/b"]
        x = (x + (y * special.ndtr(y)) @ p[f"layers.{n}/down/w"]) * factor
    x = (
        np.maximum(x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * p["head/layers.0/scale"], 0) @ p["head/layers.2/w"]
        + p["head/layers.2/b"]
    )
    near(graph.run(ids, method="predict", parameters={k: v.astype(np.float32) for k, v in p.items()}), x, 1e-5)


def test_conv2d_layer() -> None:
    class Net(fl.Program):
        def __init__(self) -> None:
            self.conv = nn.Conv2d(4, 6, (3, 2), stride=2, padding="same", groups=2)

        @fl.method
        def run(self, x: fl.f32[fl.Tensor, "n", 4, "h", "w"]) -> Any:
            return self.conv(x)

    graph = fl.trace(Net)
    assert [s.path for s in graph.stages] == ["run/conv/conv2d/product", "run/conv/conv2d/bias"]
    w = next(leaf for leaf in graph.leaves if leaf.path == "conv/w")
    assert w.axis_names == ("out", "in", "ky", "kx") and w.shape == (6, 2, 3, 2)
    assert graph.run(numbers(1, 4, 5, 6)).shape == (1, 6, 3, 3)


@pytest.mark.parametrize(
    ("make", "deviation"),
    [
        (fl.init.normal(0.5), 0.5), (fl.init.uniform(-1, 1), 1 / np.sqrt(3)), (fl.init.glorot_uniform(), np.sqrt(2 / 500)),
        (fl.init.glorot_normal(), np.sqrt(2 / 500)), (fl.init.kaiming_uniform(), np.sqrt(2 / 200)),
        (fl.init.kaiming_normal(1.0), np.sqrt(1 / 200)),
        (fl.init.xavier_uniform(2.0), 2 * np.sqrt(2 / 500)), (fl.init.he_normal(), np.sqrt(2 / 200)),
    ],
    ids=repr,
)  # fmt: skip
def test_initialisers_have_their_spread_and_are_functions_of_the_generator(make: Any, deviation: float) -> None:
    def draw(seed: int) -> np.ndarray:
        return np.asarray(make(np.random.default_rng(seed), (200, 300)))

    assert abs(draw(0).std() / deviation - 1) < 0.02 and abs(draw(0).mean()) < deviation * 0.02
    assert np.array_equal(draw(1), draw(1)) and not np.array_equal(draw(1), draw(2))


def test_constant_and_orthogonal_initialisers() -> None:
    g = np.random.default_rng(0)
    assert fl.init.zeros is fl.init.zeros()
    assert np.array_equal(fl.init.zeros(g, (2, 3)), np.zeros((2, 3))) and np.array_equal(fl.init.ones(g, (2,)), np.ones(2))
    assert np.array_equal(fl.init.constant(2.5)(g, (2,)), [2.5, 2.5])
    for shape in ((5, 3), (3, 5), (4, 4)):
        q = fl.init.orthogonal()(g, shape)
        near(q.T @ q if shape[0] >= shape[1] else q @ q.T, np.eye(min(shape)), 1e-6)
    assert fl.algo.init.fans((8, 4, 3, 3)) == (36, 72) and fl.algo.init.fans((7,)) == (7, 7)
    with pytest.raises(fl.AlgorithmError, match="below high"):
        fl.init.uniform(1, 0)
    with pytest.raises(fl.AlgorithmError, match="generator and a shape"):
        fl.init.ones(g)
