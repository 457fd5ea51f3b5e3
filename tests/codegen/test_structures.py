"""Models built of Python's own structures: lists and dicts of layers, layers made by functions, recursion over trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.codegen import driver

Array = np.ndarray[Any, Any]


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def checked(model: Any, *inputs: Array) -> tuple[Any, fl.Graph, dict[str, Array]]:
    """The result of the compiled model, which is the interpreter's, with its graph and parameters."""
    g = fl.trace(model)
    made = fl.compile(g)
    parameters = {k: np.asarray(v) for k, v in made.parameters.items()}
    name = g.methods[0].name
    got = getattr(made, name)(*inputs)
    for found in compare(g, name, inputs, got, parameters=parameters):
        assert found.ok, found.text()
    return got, g, parameters


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


class Stack(fl.Program):
    """Layers in a list, a dict and a tuple in one another, one of them used twice."""

    def __init__(self, widths: list[int]) -> None:
        self.layers = [fl.nn.Linear(a, b) for a, b in pairwise(widths)]
        self.heads = {"mean": fl.nn.Linear(widths[-1], 2), "more": [fl.nn.Linear(widths[-1], widths[-1])]}

    @fl.method
    def infer(self, x: fl.f32[fl.Tensor, "n", 4]) -> Any:
        for layer in self.layers:
            x = fl.relu(layer(x))
        for _ in range(2):
            x = x + self.heads["more"][0](x)
        return {name: head(x) for name, head in self.heads.items() if name != "more"}


@pytest.mark.parametrize("widths", [[4, 3], [4, 8, 5, 3]])
def test_lists_and_dicts_of_layers(widths: list[int]) -> None:
    x = numbers(3, 4)
    got, g, p = checked(Stack(widths), x)
    for n in range(len(widths) - 1):
        x = relu(x @ p[f"layers.{n}/w"] + p[f"layers.{n}/b"])
    for _ in range(2):
        x = x + x @ p["heads.more.0/w"] + p["heads.more.0/b"]
    np.testing.assert_allclose(got["mean"], x @ p["heads.mean/w"] + p["heads.mean/b"], rtol=1e-4, atol=1e-5)
    assert any("layers.0" in s.path for s in g.stages)


class Residual(fl.Module):
    """A layer around whatever layer it is given."""

    def __init__(self, inner: Callable[[Any], Any], scale: float) -> None:
        self.inner, self.scale = inner, scale

    def forward(self, x: Any) -> Any:
        return x + self.inner(x) * self.scale


def block(width: int, depth: int) -> list[fl.Module]:
    """Layers made by a function, which calls itself."""
    return [] if depth == 0 else [*block(width, depth - 1), Residual(fl.nn.Linear(width, width), 1 / depth)]


class Made(fl.Program):
    def __init__(self, depth: int) -> None:
        self.blocks = block(5, depth)
        self.activations: list[Callable[[Any], Any]] = [fl.tanh, fl.relu]  # functions are layers as well

    @fl.method
    def infer(self, x: fl.f32[fl.Tensor, "n", 5]) -> Any:
        for n, layer in enumerate(self.blocks):
            x = self.activations[n % 2](layer(x))
        return x


@pytest.mark.parametrize("depth", [0, 1, 4])
def test_layers_that_functions_make(depth: int) -> None:
    x = numbers(3, 5)
    got, _, p = checked(Made(depth), x)
    for n in range(depth):
        x = x + (x @ p[f"blocks.{n}/inner/w"] + p[f"blocks.{n}/inner/b"]) / (n + 1)
        x = np.tanh(x) if n % 2 == 0 else relu(x)
    np.testing.assert_allclose(got, x, rtol=1e-4, atol=1e-5)


@dataclass(frozen=True)
class Node:
    """A tree: a leaf is the number of a row."""

    left: Node | int
    right: Node | int


class Tree(fl.Program):
    """A recursive network (R. Socher et al., 2011): what two subtrees are makes what the tree is, by one layer."""

    def __init__(self, tree: Node, width: int) -> None:
        self.tree = tree
        self.join = fl.nn.Linear(2 * width, width)
        self.score = fl.nn.Linear(width, 1)

    def encode(self, tree: Node | int, words: Any) -> Any:
        if isinstance(tree, int):
            return words[tree]
        parts = [self.encode(t, words) for t in (tree.left, tree.right)]
        return fl.tanh(self.join(fl.concatenate(parts)))

    @fl.method
    def infer(self, words: fl.f32[fl.Tensor, "n", 6]) -> Any:
        return self.score(self.encode(self.tree, words))

    @fl.method
    def slopes(self, words: fl.f32[fl.Tensor, "n", 6]) -> Any:
        return fl.grad(lambda p, words: fl.sum(self.score(self.encode(self.tree, words))), (0, 1))(self.join, words)


TREES = [0, Node(0, 1), Node(Node(0, 1), Node(2, Node(3, 4))), Node(Node(Node(Node(0, 1), 2), 3), 4)]


@pytest.mark.parametrize("tree", TREES)
def test_recursion_over_a_tree(tree: Any) -> None:
    words = numbers(5, 6)
    program = Tree(tree, 6)
    g = fl.trace(program)
    model = fl.compile(g)
    p = {k: np.asarray(v, np.float64) for k, v in model.parameters.items()}

    def encode(t: Any, w: Array) -> Array:
        if isinstance(t, int):
            return w[t]
        return np.tanh(np.concatenate([encode(t.left, w), encode(t.right, w)]) @ p["join/w"] + p["join/b"])

    def whole(w: Array) -> Array:
        return encode(tree, w) @ p["score/w"] + p["score/b"]

    np.testing.assert_allclose(model.infer(words), whole(words.astype(np.float64)), rtol=1e-4, atol=1e-5)
    joins, by_words = model.slopes(words)
    direction = numbers(5, 6, seed=1).astype(np.float64)
    numeric = float(np.sum(whole(words + 1e-6 * direction) - whole(words - 1e-6 * direction))) / 2e-6
    np.testing.assert_allclose(float(np.sum(by_words * direction)), numeric, rtol=1e-3, atol=1e-4)
    assert set(joins) == {"w", "b"} and (joins["w"].any() == isinstance(tree, Node))


class Experts(fl.Program):
    """A list of layers, one of which data picks: only that one runs."""

    def __init__(self) -> None:
        self.experts = [fl.nn.Linear(4, 3) for _ in range(3)]

    @fl.method
    def infer(self, x: fl.f32[fl.Tensor, "n", 4], which: fl.i32[fl.Tensor]) -> Any:
        y = fl.switch(which, self.experts, x)
        if fl.sum(y) > 0:
            y = fl.relu(y)
        total = 0
        for row in y:
            total = total + fl.sum(row)
        return y, total


def test_a_layer_that_data_picks() -> None:
    x = numbers(5, 4)
    for k in range(3):
        (got, total), g, p = checked(Experts(), x, np.array(k, np.int32))
        y = x @ p[f"experts.{k}/w"] + p[f"experts.{k}/b"]
        y = relu(y) if y.sum() > 0 else y
        np.testing.assert_allclose(got, y, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(total, y.sum(), rtol=1e-3, atol=1e-4)
        assert sum(s.when is not None for s in g.stages) >= 3


class Drawn(fl.Program):
    """Random numbers in branches, and a loop of unknown length, as Python writes them."""

    def __init__(self) -> None:
        self.layer = fl.nn.Linear(6, 6)

    @fl.method
    def infer(self, x: fl.f32[fl.Tensor, "n", 6], p: fl.boolean[fl.Tensor]) -> Any:
        y = fl.relu(self.layer(x))
        turns = 0
        if p:
            y = y * fl.random.uniform(fl.random.key(3), (6,))
            turns = 0
        else:
            y = y + fl.random.normal(fl.random.key(3), (6,))
        while fl.sum(fl.abs(y)) > 1 and turns < 50:
            y = y * 0.5
            turns += 1
        return y, turns


def test_every_verb(tmp_path: Path) -> None:
    model, x = fl.compile(Drawn()), numbers(5, 6)
    driver.build(Drawn(), None, tmp_path / "drawn")
    loaded = fl.load(tmp_path / "drawn")
    narrow = fl.compile(Drawn(), fl.ExecutionPlan.from_yaml("version: 1\nprecision: {compute: bf16}\n", "p.yaml"))
    for p in (True, False):
        y, turns = model.infer(x, np.array(p))
        assert 0 < turns < 50 and 0 < np.abs(y).sum() <= 1
        for a, b in zip(loaded.infer(x, np.array(p)), (y, turns), strict=True):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(narrow.infer(x, np.array(p))[0], y, atol=0.01)
    assert fl.check(Drawn(), None).ok
    again = fl.ExecutionPlan.from_yaml("version: 1\nmemory: {recompute: [while/multiply]}\n", "p.yaml")
    with pytest.raises(fl.PlanError, match="each turn"):
        fl.compile(Drawn(), again)
