"""An image and the sums, filters and rows that are made of it: one pass by the default scheduler, and still what the algorithm says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.codegen import driver

from benchmarks.filters import unsharp_gradient

Image = fl.f32[fl.Tensor, "h", "w"]
SIZES = ((1, 1), (5, 9), (33, 70), (67, 131))


def spread(image: Any, weights: Any, boundary: Callable[[Any], Any] = fl.edge) -> tuple[Any, Any]:
    """A blur down the columns, and its products with the image."""
    source = boundary(image)
    soft = fl.stage(lambda y, x: fl.sum(lambda k: weights[k] * source[y + k - 1, x]), name="soft")
    return soft, fl.stage(lambda y, x: fl.exp(-soft[y, x]) * image[y, x], name="out")


def sums(image: Image, weights: fl.f32[fl.Tensor, 3]) -> dict[str, fl.Tensor]:
    """Sums of what a strip makes, of what it is made of, and of both in integers; the image itself is a result."""
    soft, out = spread(image, weights)
    source = fl.edge(image)
    return {
        "out": out,
        "total": fl.sum(out),
        "shares": fl.stage(lambda k: fl.sum(lambda y, x: out[y, x] * source[y, x + k - 1]), name="shares", extents={"k": 3}),
        "mixed": fl.stage(lambda: fl.max(lambda y, x: out[y, x] * soft[y, x]), name="mixed"),
    }


def along_rows(image: Image, weights: fl.f32[fl.Tensor, 3]) -> dict[str, fl.Tensor]:
    """A filter along the rows that also reads the sum of the first two pixels of each, and the total."""
    _, out = spread(image, weights, lambda x: fl.constant(x, 0))
    wide = fl.constant(out, 0)
    first = fl.stage(lambda y: fl.sum(lambda i: out[y, i], over={"i": 1}), name="first")
    across = fl.stage(lambda y, x: fl.sum(lambda k: weights[k] * wide[y, x + k - 1]), name="across")
    return {"sharp": fl.stage(lambda y, x: across[y, x] + first[y], name="sharp"), "total": fl.sum(out * out)}


def needs_all(image: Image, weights: fl.f32[fl.Tensor, 3]) -> dict[str, fl.Tensor]:
    """A result that reads the image and a total of it cannot be of the same pass as the total."""
    _, out = spread(image, weights)
    total = fl.sum(out)
    scaled = out / (total + 1)
    return {"scaled": scaled, "total": total, "more": fl.sum(scaled * out)}


def crossed(image: Image, weights: fl.f32[fl.Tensor, 3]) -> dict[str, fl.Tensor]:
    """Two images of which each is followed by what the other one's sum is needed for: the two passes cannot both take all."""
    _, first = spread(image, weights)
    second = fl.stage(lambda y, x: fl.sqrt(image[y, x] + 1), name="second")
    of_first, of_second = fl.sum(first), fl.sum(second)
    return {
        "a": fl.stage(lambda y, x: first[y, x] * of_second, name="a"),
        "b": fl.stage(lambda y, x: second[y, x] * of_first, name="b"),
        "sums": of_first + of_second,
    }


def turned(image: Image, weights: fl.f32[fl.Tensor, 3]) -> dict[str, fl.Tensor]:
    """A transposed reader and a window that reads other rows do not follow a strip."""
    _, out = spread(image, weights)
    near = fl.edge(out)
    return {
        "turned": fl.stage(lambda x, y: out[y, x] * 2, name="turned"),
        "below": fl.stage(lambda y, x: near[y + 1, x] - near[y - 1, x], name="below"),
        "total": fl.sum(out),
    }


def partly(image: fl.f32[fl.Tensor, 520, 640], weights: fl.f32[fl.Tensor, 3]) -> dict[str, fl.Tensor]:
    """The sum of the first rows alone is none of strips of all rows."""
    _, out = spread(image, weights)
    top = fl.stage(lambda: fl.sum(lambda y, x: fl.sin(out[y, x]) * fl.cos(out[y, x]), over={"y": 200}), name="top")
    return {"top": top, "total": fl.sum(fl.sin(out)), "out": out}


def test_gradients_of_an_unsharp_mask_take_two_passes() -> None:
    graph = fl.trace(unsharp_gradient)
    kernels = driver.compile_graph(graph, driver.as_plan(None), cache=False).variants[0].kernels
    large = [k for k in kernels if "parallel for strip" in k.text()]
    assert sorted(len(k.outputs) for k in large) == [2, 3], "weights and image; amount, weights and what the second pass reads"
    images = [b for k in kernels if k not in large for b in k.outputs if len(b.shape) == 2]
    assert not images, "no other kernel makes an image"


@pytest.mark.parametrize("model", [sums, along_rows, needs_all, crossed, turned, partly, unsharp_gradient])
def test_it_computes_the_algorithm(model: Callable[..., Any]) -> None:
    graph = fl.trace(model)
    compiled = driver.compile_graph(graph, driver.as_plan(None), cache=False)
    run = driver.assemble(compiled.manifest("joint"), compiled.library, driver.parameter_arrays(graph))
    rng = np.random.default_rng(7)
    for h, w in SIZES:
        sizes = {"h": h, "w": w}
        inputs = [rng.random(tuple(sizes.get(str(n), n) for n in graph[i].shape), np.float32) for i in graph.methods[0].inputs]
        wrong = [c for c in compare(graph, graph.methods[0].name, inputs, run(*inputs)) if not c.ok]
        assert not wrong, f"{h} x {w}: {wrong}"
