"""Races, missing and divergent barriers, out-of-bounds accesses: none in our kernels, and every planted one is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from fluorite.codegen.emit import argument_names, emit
from fluorite.codegen.gpu import execution
from fluorite.codegen.gpu.serial import bits_of
from fluorite.codegen.tvm_adapter import (
    generate,
    host_target,
    imitate_device,
    kernel_signatures,
    register_function,
    split_for_device,
    tensor_on,
)
from fluorite.schedule.sections import Target

from .comparing import OPENCL, compare, lowered
from .gpu_algorithms import DEFAULTS, HAND_MADE, REDUCTIONS, layers, matrices, photographs
from .lockstep import Block, Planted, launch

SMALL: dict[str, list[tuple[Any, ...]]] = {
    "photo": photographs((33, 66), (1, 1)), "softmax": matrices((2, 300), (1, 1)), "layer": layers((65, 17, 9), (3, 1, 70)),
    "layer_fixed": HAND_MADE["layer_fixed"][2],
}  # fmt: skip


class Lockstep:
    """A model's kernels, lowered once. The host functions are real, up to the launch."""

    def __init__(self, model: Callable[..., Any], plan: Any, machine: Target = OPENCL) -> None:
        self.graph, self.kernels, target = lowered(model, plan, machine)
        self.kind = machine.kind
        imitate_device(self.kind)
        self.faults: list[str] = []
        self.planted = Planted()
        self.functions: dict[str, Any] = {}
        for kernel in self.kernels.kernels:
            host, ((module, _),) = split_for_device({kernel.name: emit(kernel)}, target.dict())
            self.functions[kernel.name] = self.instead(kernel, generate(host, host_target())[kernel.name], module)

    def instead(self, kernel: Any, entry: Any, module: Any) -> Callable[..., None]:
        """The kernel for NumPy arrays: the host's function, launching into the executor."""
        ((symbol, dtypes, tags),) = kernel_signatures(module)
        (device,) = module.functions.values()
        arrays: dict[str, Any] = {}

        def launched(*values: Any) -> None:
            mine = [arrays[p.name] if d == "handle" else v for p, d, v in zip(device.params, dtypes, values, strict=False)]
            extents = dict(zip(tags, map(int, values[len(dtypes) :]), strict=True))
            self.faults += launch(device, mine, extents, self.planted)

        register_function(symbol, launched)  # once: the host keeps what it finds

        def function(*given: Any) -> None:
            arrays.update({f"{name}_ptr": bits_of(a).reshape(-1) for name, a in zip(argument_names(kernel), given, strict=False)})
            entry(*(tensor_on(self.kind, bits_of(a)) if isinstance(a, np.ndarray) else a for a in given))

        return function

    def run(self, cases: Sequence[tuple[Any, ...]], planted: Planted | None = None) -> list[str]:
        """The faults of these calls; where there are none, the results are those of the oracle."""
        self.faults, self.planted = [], planted or Planted()
        for inputs in cases:
            got = execution.run(self.kernels, self.functions, *inputs)
            if not self.faults:
                compare(got, self.graph.run(*inputs), [np.shape(x) for x in inputs])
        return self.faults


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_hand_made_plan(name: str) -> None:
    model, plan, _ = HAND_MADE[name]
    assert Lockstep(model, plan).run(SMALL[name]) == []


@pytest.mark.parametrize("name", ["softmax", "layer", "batches", "blur", "norm", "total", "any_above", "gathered", "several"])
def test_the_default_schedule(name: str) -> None:
    model, cases = DEFAULTS[name]
    assert Lockstep(model, None).run(cases[:2]) == []


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_by_the_block(name: str) -> None:
    model, plan, cases = REDUCTIONS[name]
    assert Lockstep(model, plan).run(cases[:2]) == []


PLANTED = {"photo": photographs((3, 65)), "softmax": matrices((1, 300)), "layer": layers((3, 20, 65))}


@pytest.mark.parametrize("name", PLANTED)
def test_every_barrier_is_needed(name: str) -> None:
    """Leaving one out is found, whichever it is: so the executor sees races, and no barrier is there for nothing."""
    model, plan, _ = HAND_MADE[name]
    met, kernels = Planted(), Lockstep(model, plan)
    assert kernels.run(PLANTED[name], met) == []
    assert len(met.barriers) >= 2
    for n in range(len(met.barriers)):
        faults = kernels.run(PLANTED[name], Planted(without_barrier=n))
        assert any("without a barrier between" in f or "before it is written" in f for f in faults), (n, faults)


@pytest.mark.parametrize("name, buffer", [("photo", "image_tile"), ("photo", "rows"), ("layer", "w_tile"), ("softmax", "max_partial")])
def test_a_buffer_that_is_too_short_is_found(name: str, buffer: str) -> None:
    model, plan, _ = HAND_MADE[name]
    faults = Lockstep(model, plan).run(PLANTED[name], Planted(short=buffer))
    assert any(f"write to {buffer}[" in f for f in faults), faults


# ---------------------------------------------------------------- the executor itself, on statements made by hand
def node(kind: str, **fields: Any) -> Any:
    return type(kind, (), fields)()


def test_a_barrier_that_some_threads_do_not_reach_is_found() -> None:
    lane = node("Var", name="lane")
    zero = node("IntImm", value=0, ty=node("Type", dtype="int64"))
    barrier = node("Evaluate", value=node("Call", op=node("Op", name="tirx.tvm_storage_sync"), args=()))
    body = node("IfThenElse", condition=node("LT", a=zero, b=lane), then_case=barrier, else_case=None)
    block = Block({}, {}, {"threadIdx.x": 4})
    block.values[lane] = block.tags["threadIdx.x"]
    block.run(body, np.ones(4, bool))
    assert block.faults == ["barrier that thread 0 and 0 others do not reach"]


def test_threads_that_write_one_element_are_found() -> None:
    zero = node("IntImm", value=0, ty=node("Type", dtype="int64"))
    buffer = node("Buffer", name="s", shape=[4], dtype="float32", data="s_ptr", scope=lambda self: "shared")
    block = Block({}, {}, {"threadIdx.x": 4})
    block.run(node("AllocBuffer", buffer=buffer), np.ones(4, bool))
    block.run(node("BufferStore", buffer=buffer, indices=[zero], value=zero), np.ones(4, bool))
    assert block.faults == ["s: several threads write one element"]
