"""Non-maximum suppression against its definition in NumPy, as an algorithm and compiled."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest

Array = np.ndarray[Any, Any]


def reference(boxes: Array, scores: Array, threshold: float) -> list[int]:
    """torchvision.ops.nms."""
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable"):
        low, high = np.maximum(boxes[i, :2], boxes[kept, :2]), np.minimum(boxes[i, 2:], boxes[kept, 2:])
        both = np.prod(np.maximum(high - low, 0), axis=-1)
        either = np.prod(boxes[kept, 2:] - boxes[kept, :2], axis=-1) + np.prod(boxes[i, 2:] - boxes[i, :2]) - both
        if not np.any(both > threshold * either):
            kept.append(int(i))
    return kept


def given(n: int, seed: int) -> tuple[Array, Array]:
    """Corners on a coarse grid, so that areas are exact, boxes without area among them; several scores alike."""
    rng = np.random.default_rng(seed)
    corner, side = rng.integers(0, 24, (n, 2)), rng.integers(0, 16, (n, 2))
    return (np.concatenate([corner, corner + side], 1) / 4).astype(np.float32), (rng.integers(0, 9, n) / 8).astype(np.float32)


@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("size", [1, 5, 64])
def test_against_the_definition(threshold: float, size: int) -> None:
    def model(boxes: fl.f32[fl.Tensor, "n", 4], scores: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.nms(boxes, scores, threshold, size)

    graph = fl.trace(model)
    compiled = fl.compile(graph) if size == 5 else None
    for n in (1, 2, 7, 40):
        boxes, scores = given(n, n)
        kept = reference(boxes, scores, threshold)
        for indices, total in [graph.run(boxes, scores), *([compiled(boxes, scores)] if compiled else [])]:
            assert (indices.dtype, total.dtype) == (np.int32, np.int32)
            assert list(indices) == (kept + [-1] * size)[:size] and int(total) == len(kept)


def test_without_boxes() -> None:
    def model(boxes: fl.f32[fl.Tensor, 0, 4], scores: fl.f32[fl.Tensor, 0]) -> Any:
        return fl.nms(boxes, scores, 0.5, 3)

    indices, total = fl.trace(model).run(np.zeros((0, 4), np.float32), np.zeros(0, np.float32))
    assert list(indices) == [-1, -1, -1] and int(total) == 0


@pytest.mark.parametrize(
    ("boxes", "scores", "threshold", "code", "says"),
    [
        (fl.f32("n", 5), fl.f32("n"), 0.5, "A301", "corners x1, y1, x2, y2"),
        (fl.f32(3, 4), fl.f32(4), 0.5, "A301", "scores are"),
        (fl.i32("n", 4), fl.f32("n"), 0.5, "A306", "floats"),
        (fl.f32("n", 4), fl.f32("n"), 1.5, "A304", "from 0 to 1"),
        (fl.f32("n", 4), fl.f32("n"), True, "A304", "from 0 to 1"),
    ],
)
def test_refusals(boxes: Any, scores: Any, threshold: Any, code: str, says: str) -> None:
    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(lambda b, s: fl.nms(b, s, threshold, 3), inputs={"b": boxes, "s": scores})
    assert caught.value.problems[0].code == code and says in caught.value.problems[0].why
