"""GPU nests with blocks and threads as plain loops equal the oracle: indices, tiles, guards and reductions by the block."""
from __future__ import annotations

from typing import Any

import pytest
from examples import photo

from .comparing import lowered, serially
from .gpu_algorithms import DEFAULTS, EXAMPLES, PLANS, layer, layer_fixed, numbers, softmax

SIZES = [(123, 77), (1, 1), (32, 64), (33, 65), (2, 130), (100, 3)]


def photographs() -> list[tuple[Any, ...]]:
    return [(abs(numbers(h, w)) % 1, numbers()) for h, w in SIZES]


def layers() -> list[tuple[Any, ...]]:
    return [(numbers(n, k), numbers(k, m), numbers(m)) for n, k, m in [(65, 17, 70), (1, 1, 1), (64, 16, 64), (63, 31, 129)]]


def test_the_photo_plan() -> None:
    kernels = serially(photo.photo, EXAMPLES / "photo_gpu.yaml", photographs())
    assert len(kernels.kernels) == 2
    assert "image_tile: float32[34, 66] in shared" in kernels.text()


def test_the_softmax_plan() -> None:
    kernels = serially(softmax, PLANS / "softmax.yaml", [(numbers(n, m),) for n, m in [(3, 1000), (1, 1), (2, 256), (4, 257)]])
    assert len(kernels.kernels) == 1
    assert kernels.numerics == "reassociates"


@pytest.mark.parametrize("model, cases", [(layer, layers()), (layer_fixed, [(numbers(100, 52), numbers(52, 72), numbers(72))])])
def test_the_matmul_plan(model: Any, cases: list[tuple[Any, ...]]) -> None:
    kernels = serially(model, PLANS / "layer.yaml", cases)
    assert len(kernels.kernels) == 1
    assert "vectorized for" in kernels.text()


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_default_schedule(name: str) -> None:
    model, cases = DEFAULTS[name]
    kernels = serially(model, None, cases)
    assert all("block.x for" in k.text() for k in kernels.kernels)


def test_the_default_schedule_is_a_plan() -> None:
    """What the default decides, written out and read again, gives the same kernels."""
    for name in ("softmax", "layer_fixed", "blur", "batches"):
        model, _ = DEFAULTS[name]
        _, first, _ = lowered(model)
        _, again, _ = lowered(model, type(first.scheduled.plan).from_yaml(first.scheduled.text()))
        assert again.text() == first.text()
