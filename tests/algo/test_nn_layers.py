"""Layers: their parameters, their values, and sharing."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite import nn
from fluorite.algo.parameters import initial_parameters
from operator_running import near, numbers, run

Array = np.ndarray[Any, Any]


def program(layer: Any, call: Any = None, **inputs: fl.Spec) -> fl.Graph:
    """A Program of one layer, `layer`."""

    class Net(fl.Program):
        def __init__(self) -> None:
            self.layer = layer

        @fl.method
        def run(self, x: Any) -> Any:
            return self.layer(x) if call is None else call(self.layer, x)

    Net.run.__annotations__ = inputs
    return fl.trace(Net)


def parameters(graph: fl.Graph) -> dict[str, tuple[tuple[str | None, ...], tuple[Any, ...]]]:
    return {leaf.path.removeprefix("layer/"): (leaf.axis_names, leaf.shape) for leaf in graph.leaves if leaf.kind in ("parameter", "state")}


def drawn(graph: fl.Graph, seed: int = 1) -> dict[str, Array]:
    """Values of all parameters, none of them 0 or 1; variances are positive."""
    found = {p: numbers(*v.shape, seed=seed + n) for n, (p, v) in enumerate(initial_parameters(graph).items())}
    return {p: np.abs(v) + np.float32(0.5) if p.endswith("var") else v for p, v in found.items()}


CONVOLUTIONS: list[tuple[Any, str, fl.Spec, tuple[int, ...], dict[str, Any]]] = [
    (nn.Conv1d, "conv1d", fl.f32("n", 4, "w"), (2, 4, 9), {"stride": 2, "padding": "same", "groups": 2}),
    (nn.Conv2d, "conv2d", fl.f32("n", 4, "h", "w"), (2, 4, 9, 5), {"padding": 1, "dilation": 2}),
    (nn.Conv3d, "conv3d", fl.f32("n", 4, "d", "h", "w"), (1, 4, 4, 5, 6), {"stride": (1, 2, 3)}),
    (nn.ConvTranspose1d, "conv_transpose1d", fl.f32("n", 4, "w"), (2, 4, 5), {"stride": 2, "output_padding": 1, "groups": 2}),
    (nn.ConvTranspose2d, "conv_transpose2d", fl.f32("n", 4, "h", "w"), (2, 4, 3, 5), {"stride": 3, "padding": 1}),
    (nn.ConvTranspose3d, "conv_transpose3d", fl.f32("n", 4, "d", "h", "w"), (1, 4, 2, 3, 2), {"dilation": 2}),
]


@pytest.mark.parametrize(("layer", "function", "spec", "shape", "options"), CONVOLUTIONS, ids=lambda v: v if isinstance(v, str) else "")
def test_convolutions(layer: Any, function: str, spec: fl.Spec, shape: tuple[int, ...], options: dict[str, Any]) -> None:
    graph = program(layer(4, 6, 3, **options), x=spec)
    groups, taps = options.get("groups", 1), ("kz", "ky", "kx")[5 - len(shape) :]
    back = "transpose" in function
    names, extents = (("in", "out"), (4, 6 // groups)) if back else (("out", "in"), (6, 4 // groups))
    assert parameters(graph) == {"w": ((*names, *taps), (*extents, *(3,) * len(taps))), "b": (("out",), (6,))}
    x, values = numbers(*shape), drawn(graph)
    want = run(lambda x, w, b: getattr(fl, function)(x, w, b, **options), x, values["layer/w"], values["layer/b"])
    near(graph.run(x, parameters=values), want)
    assert "b" not in parameters(program(layer(4, 6, 3, bias=False), x=spec))


def test_normalisations() -> None:
    x = numbers(3, 4, 5, 6)
    for layer, function in [
        (nn.BatchNorm(4), lambda x, p: fl.batch_norm(x, p["scale"], p["shift"], mean=p["mean"], var=p["var"])),
        (nn.GroupNorm(2, 4), lambda x, p: fl.group_norm(x, 2, p["scale"], p["shift"])),
        (nn.InstanceNorm(4), lambda x, p: fl.instance_norm(x, p["scale"], p["shift"])),
    ]:
        graph = program(layer, x=fl.f32("n", 4, "h", "w"))
        values = drawn(graph)
        given = {k.removeprefix("layer/"): v for k, v in values.items()}
        near(graph.run(x, parameters=values), run(lambda x, f=function, p=given: f(x, p), x), 1e-5)
        assert all(names == ("c",) for names, _ in parameters(graph).values())
    graph = program(nn.BatchNorm(4, affine=False), x=fl.f32("n", 4))
    assert set(parameters(graph)) == {"mean", "var"} and len(graph.stages) == 1
    assert not nn.BatchNorm(4).mean.trainable and not nn.BatchNorm(4).var.trainable
    near(graph.run(x[:, :, 0, 0]), x[:, :, 0, 0], 1e-5)


def test_prelu() -> None:
    x, slope = numbers(2, 3, 4), np.array([0.1, -1, 2], np.float32)
    graph = program(nn.PReLU(3), x=fl.f32("n", 3, "w"))
    near(graph.run(x, parameters={"layer/slope": slope}), np.where(x > 0, x, x * slope[:, None]))
    near(program(nn.PReLU(), x=fl.f32("n")).run(x[0, 0]), np.where(x[0, 0] > 0, x[0, 0], x[0, 0] / 4))


# ---------------------------------------------------------------- attention
def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)  # type: ignore[no-any-return]


def dense(p: dict[str, Array], path: str, x: Array) -> Array:
    return x @ p[f"layer/{path}/w"] + p.get(f"layer/{path}/b", 0)  # type: ignore[no-any-return]


def normal(p: dict[str, Array], path: str, x: Array) -> Array:
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return y * p[f"layer/{path}/scale"] + p[f"layer/{path}/shift"]  # type: ignore[no-any-return]


def mixed(p: dict[str, Array], path: str, x: Array, memory: Array, heads: int, causal: bool) -> Array:
    """Attention of several heads, one head at a time."""
    q, k, v = dense(p, f"{path}/query", x), dense(p, f"{path}/key", memory), dense(p, f"{path}/value", memory)
    size, parts = q.shape[-1] // heads, []
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        scores = q[..., part] @ np.swapaxes(k[..., part], -1, -2) / np.sqrt(size)
        scores = np.where(np.tri(x.shape[1], memory.shape[1], dtype=bool), scores, -np.inf) if causal else scores
        parts.append(softmax(scores) @ v[..., part])
    return dense(p, f"{path}/output", np.concatenate(parts, -1))


def network(p: dict[str, Array], x: Array, activation: Any) -> Array:
    return dense(p, "network/down", activation(dense(p, "network/up", x)))


def gelu(x: Array) -> Array:
    from scipy.special import ndtr

    return x * ndtr(x)  # type: ignore[no-any-return]


def relu(x: Array) -> Array:
    return np.maximum(x, 0)


TOKENS = fl.f32("n", "t", 8)
X, MEMORY = numbers(2, 5, 8), numbers(2, 3, 8, seed=9)


@pytest.mark.parametrize("first", [False, True])
def test_encoder_and_block(first: bool) -> None:
    graph = program(nn.TransformerEncoderLayer(8, 2, norm_first=first), x=TOKENS)
    p = drawn(graph)
    if first:
        y = X + mixed(p, "attention", normal(p, "attention_norm", X), normal(p, "attention_norm", X), 2, False)
        want = y + network(p, normal(p, "network_norm", y), gelu)
    else:
        y = normal(p, "attention_norm", X + mixed(p, "attention", X, X, 2, False))
        want = normal(p, "network_norm", y + network(p, y, gelu))
    near(graph.run(X, parameters=p), want, 2e-4)
    if first:
        block = program(nn.TransformerBlock(8, 2), x=TOKENS)
        inner = normal(p, "attention_norm", X)
        y = X + mixed(p, "attention", inner, inner, 2, True)
        near(block.run(X, parameters=p), y + network(p, normal(p, "network_norm", y), gelu), 2e-4)


@pytest.mark.parametrize("first", [False, True])
def test_decoder(first: bool) -> None:
    class Net(fl.Program):
        def __init__(self) -> None:
            self.layer = nn.TransformerDecoderLayer(8, 4, 12, norm_first=first)

        @fl.method
        def run(
            self, x: fl.f32[fl.Tensor, "n", "t", 8], memory: fl.f32[fl.Tensor, "n", "s", 8], seen: fl.boolean[fl.Tensor, "t", "s"]
        ) -> Any:
            return self.layer(x, memory, memory_mask=seen)

    graph = fl.trace(Net)
    p = drawn(graph)

    def added(x: Array, norm: str, part: Any) -> Array:
        return x + part(normal(p, norm, x)) if first else normal(p, norm, x + part(x))  # type: ignore[no-any-return]

    y = added(X, "attention_norm", lambda x: mixed(p, "attention", x, x, 4, True))
    y = added(y, "memory_norm", lambda x: mixed(p, "memory_attention", x, MEMORY, 4, False))
    y = added(y, "network_norm", lambda x: network(p, x, relu))
    near(graph.run(X, MEMORY, np.ones((5, 3), bool), parameters=p), y, 2e-4)
    assert parameters(graph)["memory_attention/query/w"] == (("in", "out"), (8, 8))


@pytest.mark.parametrize("llama", [False, True])
def test_decoding_with_a_cache_gives_what_the_whole_sequence_gives(llama: bool) -> None:
    class Model(fl.Program):
        def __init__(self) -> None:
            self.block = nn.TransformerBlock(16, 4, kv_heads=2, window=4, llama=llama)

        @fl.method
        def whole(self, x: fl.f32[fl.Tensor, "n", "t", 16]) -> Any:
            return self.block(x)

        @fl.method
        def step(
            self,
            x: fl.f32[fl.Tensor, "n", "t", 16],
            keys: fl.f32[fl.Tensor, "n", 2, 8, 4],
            values: fl.f32[fl.Tensor, "n", 2, 8, 4],
            at: fl.i32[fl.Tensor],
        ) -> Any:
            return self.block.step(x, keys, values, at)

    graph = fl.trace(Model)
    x = numbers(2, 6, 16)
    want = graph.run(x, method="whole")
    keys = values = np.full((2, 2, 8, 4), np.float32(1e6))
    out, keys, values = graph.run(x[:, :3], keys, values, np.int32(0), method="step")
    near(out, want[:, :3], 1e-5)
    for t in range(3, 6):
        out, keys, values = graph.run(x[:, t : t + 1], keys, values, np.int32(t), method="step")
        near(out, want[:, t : t + 1], 1e-5)
    paths = {leaf.path for leaf in graph.leaves if leaf.kind in ("parameter", "state")}
    assert ("block/network/gate/w" in paths) == llama and ("block/attention/query/b" in paths) != llama
    assert {"whole/block/attention/query/matmul", "whole/block/network/down/matmul"} <= {s.path for s in graph.stages}


def test_shared_layers_and_containers() -> None:
    class Net(fl.Program):
        def __init__(self) -> None:
            self.embed = nn.Embedding(7, 4)
            shared = nn.Linear(4, 4)
            self.stack = [shared, nn.Linear(4, 4), shared]
            self.heads = {"a": nn.Linear(4, 2), "b": nn.Sequential(nn.Linear(4, 3), fl.relu)}
            self.tied = self.embed.w

        @fl.method
        def run(self, ids: fl.i32[fl.Tensor, "n"]) -> Any:
            x = self.embed(ids)
            for layer in self.stack:
                x = layer(x)
            return {k: head(x) for k, head in self.heads.items()}, x @ self.tied.T

    graph = fl.trace(Net)
    assert [leaf.path for leaf in graph.leaves if leaf.kind in ("parameter", "state")] == [
        "embed/w", "stack.0/w", "stack.0/b", "stack.1/w", "stack.1/b", "heads.a/w", "heads.a/b", "heads.b/layers.0/w", "heads.b/layers.0/b",
    ]  # fmt: skip
    p = {k: v.astype(float) for k, v in initial_parameters(graph, 2).items()}
    x = p["embed/w"][[3, 1]]
    for n in (0, 1, 0):
        x = x @ p[f"stack.{n}/w"] + p[f"stack.{n}/b"]
    heads, scores = graph.run(np.array([3, 1], np.int32), parameters={k: v.astype(np.float32) for k, v in p.items()})
    near(heads["a"], x @ p["heads.a/w"] + p["heads.a/b"], 1e-5)
    near(scores, x @ p["embed/w"].T, 1e-5)


def test_refusals() -> None:
    for wrong, said in [
        (lambda: nn.Conv2d(4, 6, (3, 3, 3)), "2 of them for y x"),
        (lambda: nn.Conv2d(4, 6, 3, groups=3), "divides the 4 channels"),
        (lambda: nn.ConvTranspose2d(4, 6, 3, groups=4), "divides the 6 channels"),
        (lambda: nn.MultiHeadAttention(8, 3), "divides 8 features"),
        (lambda: nn.MultiHeadAttention(8, 4, kv_heads=3), "divides 4 heads"),
    ]:
        with pytest.raises(fl.AlgorithmError, match=said):
            wrong()
