"""Small algorithms of every kind, as graphs: what schedulers and lowering are tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
from fluorite.algo.graph import Graph


def chain(x: Any) -> Any:
    def step(x: Any, n: int) -> Any:
        return fl.stage(lambda i, j: fl.sqrt(abs(x[i, j])) + n, name=f"s{n}")

    for n in range(4):
        x = step(x, n)
    return x


def blur(image: Any) -> Any:
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3, name="rows"))
    return fl.stage(lambda y, x: (rows[y - 1, x] + rows[y, x] + rows[y + 1, x]) / 3, name="out")


def harris(image: Any) -> Any:
    """Two gradients, their products, windows of them: strips with several members."""
    image = fl.edge(image)
    gx = fl.stage(lambda y, x: image[y, x + 1] - image[y, x - 1], name="gx")
    gy = fl.stage(lambda y, x: image[y + 1, x] - image[y - 1, x], name="gy")

    def product(name: str, a: Any, b: Any) -> Any:
        return fl.edge(fl.stage(lambda y, x: a[y, x] * b[y, x], name=name))

    def windowed(name: str, p: Any) -> Any:
        return fl.stage(lambda y, x: fl.sum(lambda dy, dx: p[y + dy, x + dx], over={"dy": (-1, 2), "dx": (-1, 2)}), name=name)

    xx, yy, xy = (windowed(f"sum_{n}", product(n, a, b)) for n, a, b in (("xx", gx, gx), ("yy", gy, gy), ("xy", gx, gy)))
    return fl.stage(lambda y, x: xx[y, x] * yy[y, x] - xy[y, x] * xy[y, x] - 0.04 * (xx[y, x] + yy[y, x]) ** 2, name="response")


def softmax(x: Any) -> Any:
    return fl.softmax(x)


def norm(x: Any) -> Any:
    return fl.layer_norm(x)


def layer(x: Any, w: Any, b: Any) -> Any:
    return fl.relu(x @ w + b)


def transposed_product(x: Any, w: Any) -> Any:
    return x @ w.T


def sums(x: Any) -> Any:
    return {
        "rows": fl.sum(x, axis=1),
        "columns": fl.sum(x, axis=0),
        "all": fl.sum(x),
        "best": fl.argmax(x, axis=1),
        "low": fl.min(x, axis=0),
    }


def moved(x: Any) -> Any:
    return {"turned": x.T * 2, "joined": fl.concatenate([x, x + 1], axis=1), "flat": fl.reshape(x, (-1,)) + 1, "flipped": fl.flip(x, 0) - 1}


def gathered(table: Any, ids: Any) -> Any:
    return fl.take(table, ids, axis=0) * 2


def convolution(x: Any, w: Any) -> Any:
    return fl.relu(fl.conv2d(x, w, padding=1))


def pooled(x: Any) -> Any:
    return fl.max_pool2d(x, 2), fl.avg_pool2d(x, 3)


def attention(q: Any, k: Any, v: Any) -> Any:
    return fl.attention(q, k, v)


F, D = fl.f32, dict[str, Any]
SYMBOLIC: dict[str, tuple[Callable[..., Any], D]] = {
    "chain": (chain, {"x": F("n", "m")}),
    "blur": (blur, {"image": F("n", "m")}),
    "harris": (harris, {"image": F("n", "m")}),
    "softmax": (softmax, {"x": F("n", "m")}),
    "norm": (norm, {"x": F("n", "m")}),
    "layer": (layer, {"x": F("n", "k"), "w": F("k", "m"), "b": F("m")}),
    "transposed_product": (transposed_product, {"x": F("n", "k"), "w": F("m", "k")}),
    "sums": (sums, {"x": F("n", "m")}),
    "moved": (moved, {"x": F("n", "m")}),
    "gathered": (gathered, {"table": F("n", "m"), "ids": fl.i32("k")}),
    "convolution": (convolution, {"x": F(1, 3, "n", "m"), "w": F(8, 3, 3, 3)}),
    "pooled": (pooled, {"x": F(1, 2, "n", "m")}),
    "attention": (attention, {"q": F(1, 2, "n", 8), "k": F(1, 2, "n", 8), "v": F(1, 2, "n", 8)}),
}
_FIXED: dict[str, tuple[Callable[..., Any], D]] = {
    "chain 3x5": (chain, {"x": F(3, 5)}),
    "blur 512x768": (blur, {"image": F(512, 768)}),
    "softmax 1000x10": (softmax, {"x": F(1000, 10)}),
    "layer 64x128x96": (layer, {"x": F(64, 128), "w": F(128, 96), "b": F(96)}),
    "layer 1x64x10": (layer, {"x": F(1, 64), "w": F(64, 10), "b": F(10)}),
    "transposed_product 33x17x130": (transposed_product, {"x": F(33, 17), "w": F(130, 17)}),
    "sums 7x1000": (sums, {"x": F(7, 1000)}),
    "convolution 14x30": (convolution, {"x": F(2, 3, 14, 30), "w": F(32, 3, 3, 3)}),
    "attention 17": (attention, {"q": F(2, 2, 17, 8), "k": F(2, 2, 17, 8), "v": F(2, 2, 17, 8)}),
}
MODELS = {**SYMBOLIC, **_FIXED}


def graph(name: str) -> Graph:
    model, inputs = MODELS[name]
    return fl.trace(model, None, inputs=inputs)
