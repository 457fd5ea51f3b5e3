"""The default scheduler on every kind of algorithm and machine: legal, complete, within what the plan and the registers allow."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage
from fluorite.schedule import Cache, ComputeAt, Directive, ExecutionPlan, Fusion, Numerics, Pack, Parallel, Rfactor, Vectorize
from fluorite.schedule.default import default_schedule
from fluorite.schedule.loop_checks import SHAPING, keeps_order, loop_problems
from fluorite.schedule.machine import Machine
from fluorite.schedule.nest import PARALLEL, SERIAL, UNROLLED, VECTOR, Nest, start
from fluorite.schedule.scheduled import Scheduled, apply
from fluorite.schedule.shaping import shape
from model_zoo import MODELS, graph

MACHINES = {
    "avx512": Machine("llvm", 64, 32, 2),
    "avx2": Machine("llvm", 32, 16, 8),
    "sse": Machine("llvm", 16, 16, 1),
    "many cores": Machine("llvm", 64, 32, 64),
}


def scheduled(g: Graph, machine: Machine = MACHINES["avx512"], plan: ExecutionPlan | None = None) -> Scheduled:
    made = apply(plan or ExecutionPlan(), g, machine, default_schedule)
    assert [p.text() for p in made.problems] == []
    return made


def nest_of(s: Stage, ds: tuple[Directive, ...], machine: Machine) -> Nest:
    reduction = s.reduction.extents if s.reduction else ()
    nest, problems = shape(
        start(s.path, s.axes, s.extents, s.reduce_axes, reduction), [d for d in ds if isinstance(d, SHAPING)], machine.lanes, s.dtype
    )
    assert [p for p in problems if p.code not in ("P207", "P211")] == []
    return nest


def nests(made: Scheduled) -> dict[str, Nest]:
    return {s.path: nest_of(s, made.directives[s.id], made.machine) for s in made.graph.stages}


ALL = [(name, machine) for name in MODELS for machine in MACHINES]


@pytest.mark.parametrize(("name", "machine"), ALL, ids=[f"{n} {m}" for n, m in ALL])
def test_every_stage_has_a_legal_schedule(name: str, machine: str) -> None:
    made = scheduled(graph(name), MACHINES[machine])
    chosen = {s.path: made.chosen[s.path] for s in made.graph.stages}
    assert set(made.decided_by) >= set(chosen)
    placements = {i: p for g in made.groups for i, p in g.placements.items()}
    assert loop_problems(made.graph, chosen, placements, made.machine) == []
    for i in made.source.outputs:
        assert i in made.graph.by_id, "a result was written into its readers"
    if len(made.graph.methods) == 1:
        assert made.graph.outputs == made.source.outputs


@pytest.mark.parametrize("name", MODELS)
def test_nothing_fuses_where_the_plan_says_none(name: str) -> None:
    made = scheduled(graph(name), plan=ExecutionPlan(fusion=Fusion(rest="none")))
    source = {s.path for s in made.source.stages}
    assert source <= {s.path for s in made.graph.stages}, "inlining is fusing"
    for group in made.groups:
        assert len({made.graph.path_of(i) for i in group.stages} & source) <= 1


@pytest.mark.parametrize("name", MODELS)
def test_never_is_kept(name: str) -> None:
    """Any two stages that share a kernel under the empty plan, written into it or not, do without."""
    g = graph(name)
    for pair in shared(scheduled(g))[:6]:
        made = scheduled(g, plan=ExecutionPlan(fusion=Fusion(never=(tuple("/" + p for p in pair),))))
        assert pair not in shared(made)


def shared(made: Scheduled) -> list[tuple[str, str]]:
    """Pairs of the algorithm's stages that one kernel computes."""
    source = made.source
    homes: dict[int, set[int]] = {}
    for s in reversed(source.stages):
        kernel = next((n for n, group in enumerate(made.groups) if s.id in group.stages), None)
        homes[s.id] = {kernel} if kernel is not None else set().union(*(homes[c.id] for c in source.consumers[s.id]))
    return [(a.path, b.path) for n, a in enumerate(source.stages) for b in source.stages[n + 1 :] if homes[a.id] & homes[b.id]]


@pytest.mark.parametrize("name", MODELS)
def test_exact_numerics_keep_the_order_of_every_sum(name: str) -> None:
    made = scheduled(graph(name), plan=ExecutionPlan(numerics=Numerics(allow="exact")))
    assert not any(isinstance(d, Rfactor) for ds in made.chosen.values() for d in ds)
    by_path = {s.path: s for s in made.graph.stages}
    assert all(keeps_order(by_path[path], nest) for path, nest in nests(made).items())


@pytest.mark.parametrize("name", ["chain", "blur", "harris", "softmax", "norm", "layer", "transposed_product", "moved", "convolution"])
def test_large_kernels_use_all_cores_and_vectors(name: str) -> None:
    made = scheduled(graph(name))
    shaped = nests(made)
    for group in made.groups:
        loops = [loop for i in group.stages for loop in shaped[made.graph.path_of(i)].loops]
        assert {PARALLEL, VECTOR} <= {loop.kind for loop in loops}


def test_small_kernels_do_not_wake_threads() -> None:
    made = scheduled(graph("chain 3x5"))
    assert all(loop.kind in (SERIAL, VECTOR, UNROLLED) for nest in nests(made).values() for loop in nest.loops)


def test_a_chain_is_one_kernel_without_memory_in_between() -> None:
    made = scheduled(graph("chain"))
    assert [s.name for s in made.graph.stages] == ["s3"]


def test_a_softmax_is_one_kernel_by_rows() -> None:
    made = scheduled(graph("softmax"))
    assert len(made.groups) == 1
    owner = made.graph.stages[-1]
    assert all(isinstance(next(d for d in made.directives[s.id] if isinstance(d, ComputeAt)), ComputeAt) for s in made.graph.stages[:-1])
    assert any(isinstance(d, Parallel) for d in made.directives[owner.id])


def test_a_product_accumulates_in_registers_and_its_epilogue_comes_along() -> None:
    made = scheduled(graph("layer"))
    (group,) = [g for g in made.groups if any(made.graph.path_of(i) == "layer/relu" for i in g.stages)]
    names = [made.graph.path_of(i) for i in group.stages]
    assert "layer/matmul" in names and "layer/relu" in names
    product = next(s for s in made.graph.stages if s.path == "layer/matmul")
    assert made.directives[product.id] and made.directives[product.id][1].key == "store_in"


def test_a_product_alone_gets_an_accumulator_and_a_packed_operand() -> None:
    made = scheduled(graph("transposed_product"))
    given = made.chosen["transposed_product/matmul"]
    assert any(isinstance(d, Cache) for d in given)
    assert any(isinstance(d, Pack) for d in made.chosen["transposed_product/matmul/acc"])


def test_the_stages_a_plan_decided_are_left_alone() -> None:
    plan = ExecutionPlan(schedule={"out": (Vectorize("x", width=4),)})
    made = scheduled(graph("blur"), plan=plan)
    assert made.chosen["blur/out"] == (Vectorize("x", width=4),)
    assert made.decided_by["blur/rows"] == "default"


def test_a_group_of_the_plan_stays_together_and_alone() -> None:
    def four(x: Any) -> Any:
        a = fl.stage(lambda i: x[i] + 1, name="a")
        b = fl.stage(lambda i: a[i] * 2, name="b")
        c = fl.stage(lambda i: fl.exp(b[i]), name="c")
        return fl.stage(lambda i: c[i] - 1, name="d")

    g = fl.trace(four, None, inputs={"x": fl.f32("n")})
    made = scheduled(g, plan=ExecutionPlan(fusion=Fusion(groups=(("a", "b"), ("c", "d")))))
    assert [s.name for s in made.graph.stages] == ["b", "d"]
