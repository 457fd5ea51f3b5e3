"""Algorithms that the GPU tests schedule, with inputs of given sizes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
from fluorite.schedule import ExecutionPlan

PLANS = Path(__file__).parent / "plans"
EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> Any:
    """An example's algorithm file as a module, wherever pytest was started."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


photo = example("photo").photo


def softmax(x: fl.f32[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
    return fl.softmax(x)


def layer(x: fl.f32[fl.Tensor, "n", "depth"], w: fl.f32[fl.Tensor, "depth", "m"], b: fl.f32[fl.Tensor, "m"]) -> fl.Tensor:
    return fl.relu(fl.matmul(x, w) + b)


def layer_fixed(x: fl.f32[fl.Tensor, 100, 52], w: fl.f32[fl.Tensor, 52, 72], b: fl.f32[fl.Tensor, 72]) -> fl.Tensor:
    return fl.relu(fl.matmul(x, w) + b)


def matmul(x: fl.f32[fl.Tensor, "n", "depth"], w: fl.f32[fl.Tensor, "depth", "m"]) -> fl.Tensor:
    return fl.matmul(x, w)


def batches(x: fl.f32[fl.Tensor, "b", "n", "depth"], w: fl.f32[fl.Tensor, "b", "depth", "m"]) -> fl.Tensor:
    return fl.matmul(x, w)


def blur(image: fl.f32[fl.Tensor, "h", "w"]) -> fl.Tensor:
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3, name="rows"))
    return fl.stage(lambda y, x: (rows[y - 1, x] + rows[y, x] + rows[y + 1, x]) / 3, name="blur")


def norm(x: fl.f32[fl.Tensor, "b", "t", 100], g: fl.f32[fl.Tensor, 100], s: fl.f32[fl.Tensor, 100]) -> fl.Tensor:
    return fl.layer_norm(x, g, s)


def row_sums(x: fl.f32[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
    return fl.sum(x, axis=1)


def total(x: fl.f32[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
    return fl.sum(x)


def best(x: fl.f32[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
    return fl.argmax(x, axis=1)


def column_maxima(x: fl.f32[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
    return fl.max(x, axis=0)


def counts(x: fl.u8[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
    return fl.sum(x, axis=(0, 1))


def any_above(x: fl.f32[fl.Tensor, "rows", "columns"]) -> fl.Tensor:
    return fl.any(x > 2, axis=1)


def scaled(x: fl.f32[fl.Tensor, "rows", "columns"], y: fl.f32[fl.Tensor, "columns"]) -> fl.Tensor:
    return fl.exp(x) * y + 1


def pooled(x: fl.f32[fl.Tensor, "n", 3, 8, 10]) -> fl.Tensor:
    return fl.max_pool2d(x, 2)


def convolved(x: fl.f32[fl.Tensor, "n", 3, 9, 10], w: fl.f32[fl.Tensor, 4, 3, 3, 3]) -> fl.Tensor:
    return fl.conv2d(x, w)


def gathered(x: fl.f32[fl.Tensor, "rows", "columns"], i: fl.i32[fl.Tensor, "n"]) -> fl.Tensor:
    return fl.take(x, i, axis=0)


def log_sums(x: fl.f32[fl.Tensor, "rows", "columns"]) -> dict[str, fl.Tensor]:
    """By a function of one's own, and with pairs of the largest and a scaled sum."""

    def join(a: Any, b: Any) -> Any:
        top = fl.maximum(a[0], b[0])
        return top, a[1] * fl.exp(a[0] - top) + b[1] * fl.exp(b[0] - top)

    def of_column(j: Any) -> Any:
        top, scaled = fl.reduce(join, (-1e30, 0.0), lambda i: (x[i, j], 1.0))
        return top + fl.log(scaled)

    return {
        "rows": fl.stage(lambda i: fl.reduce(fl.logaddexp, -1e30, lambda j: x[i, j]), name="rows"),
        "columns": fl.stage(of_column, name="columns"),
    }


def several(x: fl.f32[fl.Tensor, "rows", "columns"]) -> dict[str, fl.Tensor]:
    smooth = blur(x)
    return {"smooth": smooth, "rest": x - smooth, "norm": fl.softmax(smooth)}


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype("float32")


def photographs(*sizes: tuple[int, int]) -> list[tuple[Any, ...]]:
    return [(abs(numbers(h, w)) % 1, numbers()) for h, w in sizes]


def layers(*sizes: tuple[int, int, int]) -> list[tuple[Any, ...]]:
    return [(numbers(n, k), numbers(k, m), numbers(m)) for n, k, m in sizes]


def matrices(*sizes: tuple[int, int]) -> list[tuple[Any, ...]]:
    return [(numbers(n, m),) for n, m in sizes]


FIXED = [(numbers(100, 52), numbers(52, 72), numbers(72))]
HAND_MADE: dict[str, tuple[Callable[..., Any], Path, list[tuple[Any, ...]]]] = {
    "photo": (photo, EXAMPLES / "photo_gpu.yaml", photographs((123, 77), (1, 1), (32, 64), (33, 65), (2, 130), (100, 3))),
    "softmax": (softmax, PLANS / "softmax.yaml", matrices((3, 1000), (1, 1), (2, 256), (4, 257))),
    "layer": (layer, PLANS / "layer.yaml", layers((65, 17, 70), (1, 1, 1), (64, 16, 64), (63, 31, 129))),
    "layer_fixed": (layer_fixed, PLANS / "layer.yaml", FIXED),
}
Case = tuple[Callable[..., Any], list[tuple[Any, ...]]]
DEFAULTS: dict[str, Case] = {
    "softmax": (softmax, [(numbers(7, 300),), (numbers(1, 1),), (numbers(3, 256),)]),
    "layer": (layer, [(numbers(65, 17), numbers(17, 70), numbers(70)), (numbers(1, 1), numbers(1, 1), numbers(1))]),
    "layer_fixed": (layer_fixed, [(numbers(100, 52), numbers(52, 72), numbers(72))]),
    "matmul": (matmul, [(numbers(64, 32), numbers(32, 64)), (numbers(3, 33), numbers(33, 129))]),
    "batches": (batches, [(numbers(3, 20, 17), numbers(3, 17, 30))]),
    "blur": (blur, [(numbers(33, 65),), (numbers(1, 1),), (numbers(2, 70),), (numbers(64, 32),)]),
    "norm": (norm, [(numbers(2, 5, 100), numbers(100), numbers(100))]),
    "row_sums": (row_sums, [(numbers(9, 777),), (numbers(2, 1),)]),
    "total": (total, [(numbers(9, 77),), (numbers(1, 1),)]),
    "best": (best, [(numbers(9, 77),)]),
    "column_maxima": (column_maxima, [(numbers(9, 300),)]),
    "counts": (counts, [(np.arange(15 * 31, dtype="uint8").reshape(15, 31),)]),
    "any_above": (any_above, [(numbers(9, 70),)]),
    "scaled": (scaled, [(numbers(9, 77), numbers(77))]),
    "pooled": (pooled, [(numbers(2, 3, 8, 10),)]),
    "convolved": (convolved, [(numbers(2, 3, 9, 10), numbers(4, 3, 3, 3))]),
    "gathered": (gathered, [(numbers(9, 7), np.array([3, 8, -1, 0, 20], "int32"))]),
    "log_sums": (log_sums, [(numbers(9, 300),), (numbers(1, 1),)]),
    "several": (several, [(numbers(40, 50),)]),
}


def reduction_plan(stage: str, directives: str) -> ExecutionPlan:
    return ExecutionPlan.from_yaml(f"schedule: {{{stage}: [{directives}]}}")


REDUCTIONS: dict[str, tuple[Callable[..., Any], ExecutionPlan, list[tuple[Any, ...]]]] = {
    "threads for rows and for columns": (
        row_sums,
        reduction_plan(
            "row_sums/sum",
            "{split: {axis: rows, factor: 4}}, {split: {axis: columns, factor: 8}}, "
            "{gpu_blocks: [rows_outer]}, {gpu_threads: [rows_inner, columns_inner]}",
        ),
        matrices((9, 77), (4, 8), (1, 1), (5, 3)),
    ),
    "two reduction loops": (
        total,
        reduction_plan(
            "total/sum", "{split: {axis: rows, factor: 5}}, {split: {axis: columns, factor: 6}}, {gpu_threads: [rows_inner, columns_inner]}"
        ),
        matrices((9, 77), (1, 1)),
    ),
    "a serial loop around": (
        row_sums,
        reduction_plan(
            "row_sums/sum",
            "{split: {axis: rows, factor: 3}}, {split: {axis: columns, factor: 16}}, "
            "{gpu_blocks: [rows_outer]}, {gpu_threads: [columns_inner]}",
        ),
        matrices((7, 50), (1, 1)),
    ),
    "one thread": (
        row_sums,
        reduction_plan("row_sums/sum", "{split: {axis: columns, factor: 1}}, {gpu_blocks: [rows]}, {gpu_threads: [columns_inner]}"),
        matrices((3, 5)),
    ),
    "an odd number of threads": (
        any_above,
        reduction_plan("any_above/any", "{split: {axis: columns, factor: 7}}, {gpu_blocks: [rows]}, {gpu_threads: [columns_inner]}"),
        matrices((3, 5), (4, 70)),
    ),
}
