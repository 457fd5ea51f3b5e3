"""GPU nests with blocks and threads as plain loops equal the oracle: indices, tiles, guards and reductions by the block."""
from __future__ import annotations

import pytest

from .comparing import lowered, serially
from .gpu_algorithms import DEFAULTS, HAND_MADE


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
