"""Models of many stages: what it takes to compile them with the empty plan, and what the interpreter takes to run them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
from fluorite import nn


class Block(nn.Module):
    """Two convolutions around which the input is added (He et al., 2015)."""

    def __init__(self, channels: int, to: int, stride: int = 1) -> None:
        self.first = nn.Conv2d(channels, to, 3, stride=stride, padding=1, bias=False)
        self.second = nn.Conv2d(to, to, 3, padding=1, bias=False)
        self.norms = [nn.BatchNorm(to) for _ in range(2)]
        self.shortcut = None
        if (channels, stride) != (to, 1):
            self.shortcut = nn.Conv2d(channels, to, 1, stride=stride, bias=False), nn.BatchNorm(to)

    def forward(self, x: fl.Tensor) -> fl.Tensor:
        y = fl.relu(self.norms[0](self.first(x)))
        y = self.norms[1](self.second(y))
        if self.shortcut is not None:
            conv, norm = self.shortcut
            x = norm(conv(x))
        return fl.relu(x + y)


class ResNet18(fl.Program):
    """The network of ImageNet with 18 layers that hold weights."""

    def __init__(self) -> None:
        self.first, self.norm = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm(64)
        widths = ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1))
        self.blocks = [Block(*w) for w in widths]
        self.out = nn.Linear(512, 1000)

    @fl.method
    def infer(self, x: fl.f32[fl.Tensor, 1, 3, 224, 224]) -> fl.Tensor:
        x = fl.max_pool2d(fl.relu(self.norm(self.first(x))), 3, stride=2, padding=1)
        for block in self.blocks:
            x = block(x)
        return self.out(fl.mean(x, (2, 3)))


class BertLayer(fl.Program):
    """One layer of BERT-base (Devlin et al., 2018) over 128 tokens."""

    def __init__(self) -> None:
        self.layer = nn.TransformerEncoderLayer(768, 12)

    @fl.method
    def infer(self, x: fl.f32[fl.Tensor, 1, 128, 768]) -> fl.Tensor:
        return self.layer(x)


@fl.function
def pipeline(x: fl.f32[fl.Tensor, "h", "w"]) -> fl.Tensor:
    """Fifty stages, each a stencil of three of the one before."""

    def step(x: fl.Tensor, n: int) -> fl.Tensor:
        x = fl.edge(x)
        if n % 2:
            return fl.stage(lambda i, j: (x[i - 1, j] + x[i, j] + x[i + 1, j]) / 3, name=f"s{n}")
        return fl.stage(lambda i, j: (x[i, j - 1] + x[i, j] + x[i, j + 1]) / 3, name=f"s{n}")

    for n in range(50):
        x = step(x, n)
    return x


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "resnet18": (ResNet18, (1, 3, 224, 224)),
    "bert_layer": (BertLayer, (1, 128, 768)),
    "pipeline": (lambda: pipeline, (1080, 1920)),
}
"""Name -> what makes the algorithm, and the shape of its input."""


def measured(name: str) -> dict[str, float]:
    """Seconds that compiling without the cache takes, the interpreter, and a call; the greatest difference by the greatest value."""
    make, shape = MODELS[name]
    model, x = make(), np.random.default_rng(0).standard_normal(shape, np.float32)

    begin = time.perf_counter()
    built = fl.compile(model, cache=False)
    ready = time.perf_counter()
    meant = fl.trace(model).run(x)
    end = time.perf_counter()

    found = built(x)
    calls = []
    for _ in range(5):
        before = time.perf_counter()
        built(x)
        calls.append(time.perf_counter() - before)
    difference = float(np.abs(found - meant).max() / np.abs(meant).max())
    return {"compile": ready - begin, "oracle": end - ready, "call": min(calls), "difference": difference}
