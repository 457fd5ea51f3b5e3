"""GPU nests with blocks and threads as plain loops equal the oracle: indices, tiles, guards and reductions by the block."""

from __future__ import annotations

import pytest
from fluorite.schedule import ExecutionPlan

from .comparing import lowered, serially
from .gpu_algorithms import DEFAULTS, HAND_MADE, REDUCTIONS, numbers, photo, scaled, softmax


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_hand_made_plan(name: str) -> None:
    kernels = serially(*HAND_MADE[name])
    assert len(kernels.kernels) == (2 if name == "photo" else 1)


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_default_schedule(name: str) -> None:
    model, cases = DEFAULTS[name]
    kernels = serially(model, None, cases)
    assert all("block.x for" in k.text() for k in kernels.kernels)


@pytest.mark.parametrize("name", ["softmax", "layer_fixed", "blur", "batches"])
def test_the_default_schedule_is_a_plan(name: str) -> None:
    """What the default decides, written out and read again, gives the same kernels."""
    model, _ = DEFAULTS[name]
    _, first, _ = lowered(model)
    _, again, _ = lowered(model, type(first.scheduled.plan).from_yaml(first.scheduled.text()))
    assert again.text() == first.text()


def test_what_the_plans_say_is_what_is_lowered() -> None:
    texts = {name: lowered(model, plan)[1].text() for name, (model, plan, _) in HAND_MADE.items()}
    assert "image_tile: float32[34, 66] in shared" in texts["photo"]
    assert "max_partial: float32[256] in shared" in texts["softmax"]
    assert "acc" not in texts["layer"] and "matmul: float32[4, 4] in local" in texts["layer"]
    assert "vectorized for fetch lane in 0..4" in texts["layer_fixed"]


def test_a_reduction_by_the_block_reassociates() -> None:
    model, plan, _ = HAND_MADE["softmax"]
    assert lowered(model, plan)[1].numerics == "reassociates"
    model, plan, _ = HAND_MADE["layer"]
    assert lowered(model, plan)[1].numerics == "exact"


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_by_the_block(name: str) -> None:
    serially(*REDUCTIONS[name])


ORDERS = [
    "[{split: {axis: columns, factor: 16}}, {gpu_blocks: [columns_outer]}, {gpu_threads: [columns_inner]}]",
    "[{split: {axis: rows, factor: 8}}, {gpu_blocks: [rows_outer]}, {gpu_threads: [rows_inner]}]",
    "[{tile: {rows: 3, columns: 7}}, {reorder: [rows_inner, columns_inner, columns_outer, rows_outer]}, "
    "{gpu_blocks: [columns_outer, rows_outer]}, {gpu_threads: [rows_inner, columns_inner]}]",
    "[{fuse: [rows, columns]}, {split: {axis: rows_columns, factors: [~, 32, 4], into: [b, t, v]}}, "
    "{gpu_blocks: [b]}, {gpu_threads: [t]}, {vectorize: v}]",
    "[{gpu_blocks: [rows, columns]}]",
]


@pytest.mark.parametrize("schedule", ORDERS)
def test_blocks_and_threads_wherever_they_stand(schedule: str) -> None:
    plan = ExecutionPlan.from_yaml(f"schedule: {{scaled/add: {schedule}, exp: [compute_inline], multiply: [compute_inline]}}")
    serially(scaled, plan, [(numbers(n, m), numbers(m)) for n, m in [(9, 77), (1, 1), (8, 16), (17, 7)]])


PARTIAL = {
    "the owner and what stands between": (
        softmax,
        "max: [{compute_at: {stage: softmax/softmax, axis: rows}}, {store_in: shared}, "
        "{split: {axis: columns, factor: 256}}, {gpu_threads: [columns_inner]}]",
        HAND_MADE["softmax"][2],
    ),
    "what stands between": (
        photo,
        "rows: [{compute_at: {stage: unsharp, axis: x_outer}}, {store_in: shared}, fetch], unsharp: [{tile: {y: 8, x: 32}}, "
        "{gpu_blocks: [y_outer, x_outer]}, {gpu_threads: [y_inner, x_inner]}]",
        HAND_MADE["photo"][2],
    ),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_the_default_schedule_completes_a_plan(name: str) -> None:
    model, text, cases = PARTIAL[name]
    kernels = serially(model, ExecutionPlan.from_yaml(f"schedule: {{{text}}}"), cases)
    assert len(kernels.kernels) == (1 if model is softmax else 2)
