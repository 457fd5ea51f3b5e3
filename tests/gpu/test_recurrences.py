"""Recurrences, scans and loops as GPU kernels: each is one kernel, whose threads wait for one another between its stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen.driver import as_plan, lower_variants, parameter_arrays, prepared
from fluorite.codegen.gpu import cross_build, pocl, serial
from fluorite.codegen.gpu.building import nvcc
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

from .comparing import OPENCL, same
from .gpu_algorithms import numbers
from .lockstep import Block, Planted
from .lockstep_memory import Memory
from .test_lockstep import Lockstep

Cases = Sequence[tuple[Any, ...]]


class Layer(fl.Program):
    def __init__(self, cell: Any, **options: Any) -> None:
        self.layer = cell(3, 5, **options)

    @fl.method(batch="n")
    def infer(self, x: fl.f32[fl.Tensor, "n", "t", 3]) -> fl.Tensor:
        every, _ = self.layer(x)
        return every


def ragged(x: fl.f32[fl.Tensor, "n", "t", 3], u: fl.f32[fl.Tensor, 3, 3], lengths: fl.i32[fl.Tensor, "n"]) -> Any:
    def step(h: fl.Tensor, x: fl.Tensor) -> Any:
        h = fl.tanh(x + h @ u)
        return h, h

    return fl.scan(step, fl.zeros((x.shape[0], 3)), x, axis=1, lengths=lengths)


def scanned_loss(x: fl.f32[fl.Tensor, "n", "t", 3], u: fl.f32[fl.Tensor, 3, 3]) -> fl.Tensor:
    def step(h: fl.Tensor, x: fl.Tensor) -> Any:
        h = fl.tanh(x + h @ u)
        return h, h

    return fl.sum(fl.square(fl.scan(step, fl.zeros((x.shape[0], 3)), x, axis=1)[1]))


def gradient(x: fl.f32[fl.Tensor, "n", "t", 3], u: fl.f32[fl.Tensor, 3, 3]) -> Any:
    return fl.grad(scanned_loss, (0, 1))(x, u)


def filtered(x: fl.f32[fl.Tensor, "t", "m"]) -> fl.Tensor:
    return fl.lfilter([1.0, 0.5], [1.0, -0.5, 0.25], x, 0)


def cumulative(x: fl.f32[fl.Tensor, "n", "m"]) -> Any:
    y = fl.cumulative_sum(x, 0)
    most, logs = fl.cumulative_max(x, 1, reverse=True), fl.logcumsumexp(x, 1)
    return {"most": most, "logs": logs, "one": fl.cumulative_sum(x[0]), "soft": fl.softmax(y, 1)}


def mirrored(x: fl.f32[fl.Tensor, "n", "m"]) -> fl.Tensor:
    m = x.shape[1]
    return fl.recurrence(lambda h, t, i: 0.5 * fl.where(t >= 1, h[t - 1, m - 1 - i], 0) + x[t, i], name="run")


def inverse(a: fl.f32[fl.Tensor, "n", "n"]) -> fl.Tensor:
    """Newton's iteration, of matrix products."""

    def body(c: Any) -> Any:
        x = c["x"] @ (2 * fl.eye(a.shape[0]) - a @ c["x"])
        return {"x": x, "off": fl.max(fl.abs(a @ x - fl.eye(a.shape[0])))}

    start = {"x": fl.transpose(a) / fl.sum(fl.square(a)), "off": fl.sum(a) * 0 + 1.0}
    return fl.while_loop(lambda c: c["off"] > 1e-3, body, start)["x"]


def nested(x: fl.f32[fl.Tensor, "m"]) -> Any:
    """A loop in a loop, with a branch that is taken in some turns."""

    def outer(c: Any) -> Any:
        inner = fl.while_loop(lambda y: fl.sum(y) > c["limit"], lambda y: y * 0.5, c["x"])
        limit = fl.cond(fl.max(inner) > 0.3, lambda: c["limit"] * 0.5, lambda: c["limit"] - 0.25)
        return {"x": inner + 0.01, "limit": limit, "n": c["n"] + 1}

    return fl.while_loop(lambda c: c["n"] < 4, outer, {"x": fl.abs(x), "limit": fl.sum(x) * 0 + 1.0, "n": fl.sum(x) * 0})


def stepped(x: fl.f32[fl.Tensor, "t", "m"]) -> Any:
    """Loops in the steps of a scan, which wait for one another."""

    def step(h: fl.Tensor, x: fl.Tensor) -> Any:
        h = fl.while_loop(lambda y: fl.sum(fl.abs(y)) > 1, lambda y: y * 0.5, h + x)
        return h, fl.sum(h)

    return fl.scan(step, fl.zeros((x.shape[1],)), x)


def scans_in_turns(x: fl.f32[fl.Tensor, "n", "m"]) -> Any:
    def body(c: Any) -> Any:
        y = fl.cumulative_sum(c["x"], 0) * 0.5
        return {"x": y, "n": c["n"] + 1}

    return fl.while_loop(lambda c: (c["n"] < 3) & (fl.max(c["x"]) < 1e3), body, {"x": x, "n": fl.sum(x) * 0})["x"]


def running(x: fl.f32[fl.Tensor, "n", "m"]) -> fl.Tensor:
    """Each step is a reduction of two values at a time."""

    def combine(a: Any, b: Any) -> Any:
        return a[0] + b[0], fl.maximum(a[1], b[1])

    def step(h: fl.Tensor, x: fl.Tensor) -> Any:
        def pair(k: Any) -> Any:
            return h[k] * 0.25, x[k]

        total = fl.stage(lambda: fl.reduce(combine, (0.0, -1e9), pair)[0])
        most = fl.stage(lambda: fl.reduce(combine, (0.0, -1e9), pair)[1])
        h = fl.tanh(x + total + most)
        return h, h

    return fl.scan(step, fl.zeros((x.shape[1],)), x)[1]


LENGTHS = [np.array([4, 0, 2], "int32"), np.array([1], "int32")]
FUNCTIONS: dict[str, tuple[Callable[..., Any], Cases]] = {
    "ragged": (ragged, [(numbers(3, 4, 3), numbers(3, 3), LENGTHS[0]), (numbers(1, 1, 3), numbers(3, 3), LENGTHS[1])]),
    "gradient": (gradient, [(numbers(2, 5, 3), numbers(3, 3)), (numbers(1, 1, 3), numbers(3, 3))]),
    "filtered": (filtered, [(numbers(7, 5),), (numbers(1, 1),), (numbers(3, 300),)]),
    "cumulative": (cumulative, [(numbers(7, 5),), (numbers(1, 1),), (numbers(2, 270),)]),
    "mirrored": (mirrored, [(numbers(7, 5),), (numbers(1, 1),), (numbers(3, 300),)]),
    "inverse": (inverse, [(numbers(5, 5) + 5 * np.eye(5, dtype="float32"),), (numbers(1, 1) + 3,)]),
    "nested": (nested, [(numbers(7),), (numbers(1),), (numbers(300) * 0.1,)]),
    "stepped": (stepped, [(numbers(5, 7),), (numbers(1, 1),)]),
    "scans in turns": (scans_in_turns, [(numbers(5, 7),), (numbers(1, 1),)]),
    "reductions of pairs": (running, [(numbers(5, 7),), (numbers(1, 1),)]),
}  # fmt: skip
LAYERS = {"lstm": Layer(fl.nn.LSTM, layers=2), "gru": Layer(fl.nn.GRU, bidirectional=True), "rnn": Layer(fl.nn.RNN, reverse=True)}
ALL: dict[str, tuple[Any, Cases]] = {**FUNCTIONS, **{k: (p, [(numbers(2, 5, 3),), (numbers(1, 1, 3),)]) for k, p in LAYERS.items()}}


def made(model: Any, plan: ExecutionPlan | None = None, target: Target = OPENCL) -> tuple[Any, Any, Any]:
    g = fl.trace(model)
    chosen, _ = prepared(as_plan(plan).replace(target=target), g)
    (kernels,) = lower_variants(g, chosen, resolve_target(chosen.target))
    return g, kernels, resolve_target(chosen.target)


@pytest.mark.parametrize("name", ALL)
def test_serially(name: str) -> None:
    model, cases = ALL[name]
    g, kernels, _ = made(model)
    same(g, kernels, serial.serial_functions(kernels), cases, parameters=parameter_arrays(g, 3))


@pytest.mark.skipif(not pocl.available(), reason="needs pyopencl and PoCL, which .ci/run installs")
@pytest.mark.parametrize("name", ["lstm", "ragged", "gradient", "filtered", "nested", "stepped"])
def test_by_pocl(name: str) -> None:
    model, cases = ALL[name]
    g, kernels, target = made(model)
    functions, _ = pocl.pocl_functions(kernels, target)
    same(g, kernels, functions, cases, pocl.Device(), parameters=parameter_arrays(g, 3))


@pytest.mark.parametrize("name", ["ragged", "mirrored", "filtered", "nested", "reductions of pairs"])
def test_in_lock_step(name: str) -> None:
    model, cases = FUNCTIONS[name]
    assert Lockstep(model, None).run(cases[:2]) == []


def test_every_barrier_between_steps_is_needed() -> None:
    model, cases = FUNCTIONS["mirrored"]
    kernels, met = Lockstep(model, None), Planted()
    assert kernels.run(cases[:1], met) == []
    assert len(met.barriers) == 2  # of the first step, and of the others
    for n in range(2):
        faults = kernels.run(cases[:1], Planted(without_barrier=n))
        assert any("without a barrier between" in f for f in faults), (n, faults)


def test_blocks_that_meet_are_found() -> None:
    """The executor sees what the check of plans keeps from happening."""
    m = Memory("h", "global", np.zeros(4, "float32"), np.ones(4, bool))
    touched: dict[int, Any] = {}
    first, second = (Block({}, {"blockIdx.x": n}, {"threadIdx.x": 1}, None, touched) for n in range(2))
    first.between_blocks(m, np.array([1]), writes=True)
    second.between_blocks(m, np.array([1]), writes=False)
    assert first.faults == [] and second.faults == ["h[1] is read by a block and written by another"]


HELD = "/ragged/scan/held: [{gpu_blocks: [n]}, {gpu_threads: [j]}]"
BOTH = "/ragged/scan/tanh: [{gpu_blocks: [n]}, {gpu_threads: [j]}]\n  " + HELD
PLANS = [f"""
  /ragged/scan/matmul: [{{gpu_blocks: [i]}}, {{gpu_threads: [j]}}, {{unroll: k}}]
  {BOTH}""", """
  /ragged/scan/matmul: [{split: {axis: i, factor: 2}}, {gpu_threads: [i_inner, j]}]
  /ragged/scan/tanh: [{split: {axis: n, factor: 2}}, {gpu_threads: [n_inner, j]}]
  /ragged/scan/held: [{split: {axis: n, factor: 2}}, {gpu_threads: [n_inner, j]}]""", """
  /ragged/scan/matmul: [{split: {axis: i, factor: 2}}, {gpu_blocks: [i_outer]}, {gpu_threads: [i_inner, j]}]
  /ragged/scan/add: [{split: {axis: n, factor: 2}}, {gpu_blocks: [n_outer]}, {gpu_threads: [n_inner, j]}]
  /ragged/scan/tanh: [{split: {axis: n, factor: 2}}, {gpu_blocks: [n_outer]}, {gpu_threads: [n_inner, j]}]
  /ragged/scan/held: [{split: {axis: n, factor: 2}}, {gpu_blocks: [n_outer]}, {gpu_threads: [n_inner, j]}]""", """
  /ragged/scan/matmul: [{split: {axis: k, factor: 4}}, {gpu_blocks: [i]}, {gpu_threads: [k_inner]}]
  /ragged/scan/tanh: [{gpu_blocks: [n]}]
  /ragged/scan/held: [{gpu_blocks: [n]}]""", """
  /ragged/scan/matmul: [{split: {axis: j, factor: 2}}, {gpu_blocks: [i]}, {gpu_vthreads: [j_inner]}, {unroll: k}]"""]  # fmt: skip


@pytest.mark.parametrize("text", PLANS)
def test_plans_of_ones_own(text: str) -> None:
    kernels = Lockstep(ragged, ExecutionPlan.from_yaml("schedule:" + text, "p.yaml"))
    assert kernels.run(FUNCTIONS["ragged"][1]) == []


NARROW = "/ragged/scan/matmul: [{split: {axis: j, factor: 2}}, {gpu_blocks: [i]}, {gpu_threads: [j_inner]}]"
def test_lanes_reduce_in_a_step() -> None:
    text = "/ragged/scan/matmul: [{split: {axis: k, factor: 4}}, {gpu_blocks: [i]}, {gpu_lanes: k_inner}]"
    plan = ExecutionPlan.from_yaml(f"schedule: {{{text}}}")
    assert Lockstep(ragged, plan, Target(kind="cuda", arch=("sm_90",))).run(FUNCTIONS["ragged"][1]) == []


REFUSED = [
    (ragged, f"/ragged/scan/matmul: [{{gpu_blocks: [j]}}]\n  {BOTH}", "P252", "computed together"),
    (ragged, f"/ragged/scan/matmul: [{{gpu_threads: [j]}}]\n  {BOTH}", "P252", "matmul has no gpu_blocks"),
    (ragged, f"{NARROW}\n  {BOTH}", "P255", "2 threads"),
    (ragged, "/ragged/scan/matmul: [{gpu_blocks: [t]}]", "P272", "gpu_blocks: t of matmul"),
    (mirrored, "run: [{gpu_blocks: [i]}]", "P270", "run reads what is computed at others"),
    (mirrored, "run: [{split: {axis: t, factor: 4}}]", "P272", "computed together, step by step"),
    (ragged, "\n  ".join(f"/ragged/scan/{s}: [{{gpu_blocks: [j]}}]" for s in ["add", "held", "tanh", "matmul"]), "P270", "gpu_blocks: [n]"),
    (nested, "/nested/while/while/sum: [{split: {axis: m, factor: 2048}}, {gpu_threads: [m_inner]}]", "P253", "2048 threads"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "text", "code", "words"), REFUSED)
def test_refusals(model: Any, text: str, code: str, words: str) -> None:
    with pytest.raises(fl.PlanError) as caught:
        made(model, ExecutionPlan.from_yaml("schedule:\n  " + text, "p.yaml"))
    found = [p.text() for p in caught.value.problems if p.code == code]
    assert any(words in f for f in found), caught.value


@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
@pytest.mark.slow
def test_cubins() -> None:
    for name in ("lstm", "nested", "inverse"):
        built = cross_build(fl.trace(ALL[name][0]), as_plan(None).replace(target=Target(kind="cuda", arch=("sm_90",))))
        assert all(f.spill_stores == 0 for f in built.stats)
        text = "".join(text for k, text in built.sources.items() if "fluorite_barrier()" in text)
        assert text and "__restrict__" not in text  # what others have written is read from memory
        assert "bar.sync" in built.ptx["sm_90"]
