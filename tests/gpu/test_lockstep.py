"""Races, missing and divergent barriers, out-of-bounds accesses: none in our kernels, and every planted one is found."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from fluorite.codegen.emit import emit
from fluorite.codegen.gpu import execution
from fluorite.codegen.tvm_adapter import split_for_device

from .comparing import compare, lowered
from .gpu_algorithms import DEFAULTS, HAND_MADE, blur, layers, matrices, numbers, photographs, softmax
from .lockstep import launch

SMALL: dict[str, list[tuple[Any, ...]]] = {
    "photo": photographs((33, 66), (1, 1)), "softmax": matrices((2, 300), (1, 1)), "layer": layers((65, 17, 9), (3, 1, 70)),
    "layer_fixed": HAND_MADE["layer_fixed"][2],
}  # fmt: skip


def lockstep(model: Callable[..., Any], plan: Any, cases: Sequence[tuple[Any, ...]], mangle: Callable[[Any], Any] = lambda m: m) -> list[str]:
    """Runs the model's kernels and compares the results if nothing was found."""
    g, kernels, target = lowered(model, plan)
    functions: dict[str, Any] = {}
    faults: list[str] = []
    for kernel in kernels.kernels:
        _, devices = split_for_device({kernel.name: emit(kernel)}, target.dict())
        (device,) = [f for m, _ in devices for f in mangle(m).functions.values()]
        names = [*(b.name for b in kernel.arguments), *kernel.symbols]

        def function(*arguments: Any, device: Any = device, names: Any = names) -> None:
            flat = [a.reshape(-1) if isinstance(a, np.ndarray) else np.array([[a]]) for a in arguments]
            faults.extend(launch(device, dict(zip(names, flat, strict=True))))

        functions[kernel.name] = function
    for inputs in cases:
        got = execution.run(kernels, functions, *inputs)
        if not faults:
            compare(got, g.run(*inputs), [np.shape(x) for x in inputs])
    return faults


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_hand_made_plan(name: str) -> None:
    model, plan, _ = HAND_MADE[name]
    assert lockstep(model, plan, SMALL[name]) == []


@pytest.mark.parametrize("name", [n for n in DEFAULTS if n not in ("layer_fixed",)])
def test_the_default_schedule(name: str) -> None:
    model, cases = DEFAULTS[name]
    assert lockstep(model, None, cases[:2]) == []
