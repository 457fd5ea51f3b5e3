"""A plan applied to a graph: rewrites in turn, who decided what, kernels, and every problem at once."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.graph import Graph
from fluorite.schedule import Cache, ComputeAt, ComputeRoot, ExecutionPlan, Pack, Rfactor, Split, Vectorize
from fluorite.schedule.default import default_schedule
from fluorite.schedule.loop_checks import keeps_order
from fluorite.schedule.machine import Machine
from fluorite.schedule.nest import start
from fluorite.schedule.scheduled import Scheduled, apply
from fluorite.schedule.shaping import shape
from model_zoo import MODELS, blur, graph, layer

BLUR = fl.trace(blur, None, inputs={"image": fl.f32("h", "w")})
LAYER = fl.trace(layer, None, inputs={"x": fl.f32("n", "k"), "w": fl.f32("k", "m"), "b": fl.f32("m")})


def applied(g: Graph, text: str = "") -> Scheduled:
    return apply(ExecutionPlan.from_yaml(text, "p.yaml"), g, Machine(), default_schedule)


def fine(g: Graph, text: str) -> Scheduled:
    made = applied(g, text)
    assert [p.text() for p in made.problems] == []
    return made


def problems(g: Graph, text: str) -> list[tuple[str, int | None]]:
    made = applied(g, text)
    assert made.check() and made.groups == ()
    assert all(p.asked and p.file == "p.yaml" for p in made.problems)
    return sorted((p.code, p.line) for p in made.problems)


def kernels(s: Scheduled) -> list[str]:
    return [" ".join(s.graph.path_of(i).removeprefix(f"{s.graph.methods[0].name}/") for i in g.stages) for g in s.groups]


# ---------------------------------------------------------------- what a plan says, and what it leaves open
def test_the_empty_plan_leaves_all_to_the_default() -> None:
    s = fine(BLUR, "")
    assert set(s.decided_by.values()) == {"default"} and set(s.decided_by) >= {"blur/out"}


def test_what_the_plan_says_is_kept_word_for_word() -> None:
    s = fine(BLUR, "schedule: {out: [{split: {axis: y, factor: 8}}, {vectorize: {axis: x, width: 4}}]}")
    assert s.decided_by["blur/out"] == "plan" and s.decided_by["blur/rows"] == "default"
    assert [d.key for d in s.chosen["blur/out"]] == ["split", "vectorize"]


def test_auto_leaves_a_stage_open_in_the_midst_of_a_wildcard() -> None:
    s = fine(BLUR, "schedule: {'blur/*': [compute_root], blur/rows: auto}")
    assert s.decided_by == {"blur/out": "plan", "blur/rows": "default"}


def test_rewrites_make_stages_that_other_entries_name() -> None:
    s = fine(
        LAYER,
        """
schedule:
  matmul:
    - pack: {tensor: w, sizes: {j: 8}, order: [j, k], into: panels, when: call}
    - cache: {into: acc}
    - compute_root
  matmul/acc: [{rfactor: {axis: k, factor: 4}}, {compute_at: {stage: matmul, axis: i}}]
  matmul/acc/partial: [{compute_at: {stage: matmul, axis: i}}, {vectorize: k_inner}]
  panels: [{parallel: j_outer}]
  add: [compute_inline]
  relu: [compute_root]
fusion: {rest: none}
""",
    )
    assert set(s.decided_by) == {"layer/matmul/acc", "layer/matmul/acc/partial", "layer/matmul", "layer/panels", "layer/add", "layer/relu"}
    assert set(s.decided_by.values()) == {"plan"}
    assert kernels(s) == ["panels", "matmul/acc/partial matmul/acc matmul", "relu"]
    rng = np.random.default_rng(0)
    x, w, b = (rng.random(shape, dtype=np.float32) for shape in ((3, 5), (5, 9), (9,)))
    np.testing.assert_allclose(s.graph.run(x, w, b), LAYER.run(x, w, b), rtol=1e-5)


def test_rewrites_of_the_default_can_be_scheduled_by_the_plan_that_spells_them_out() -> None:
    made = applied(LAYER)
    again = apply(made.complete_plan(), LAYER, Machine(), default_schedule)
    assert again.problems == () and kernels(again) == kernels(made)


def test_inlined_stages_are_gone_from_the_graph_but_not_from_the_decisions() -> None:
    s = fine(BLUR, "schedule: {rows: [compute_inline]}")
    assert [x.path for x in s.graph.stages] == ["blur/out"] and s.decided_by["blur/rows"] == "plan"
    image = np.random.default_rng(0).random((4, 7), dtype=np.float32)
    np.testing.assert_allclose(s.graph.run(image), BLUR.run(image), rtol=1e-6)


def test_compute_at_puts_both_in_one_kernel() -> None:
    text = "schedule: {rows: [{compute_at: {stage: out, axis: y}}], out: [compute_root]}"
    assert kernels(fine(BLUR, text)) == ["rows out"]
    assert kernels(fine(BLUR, "schedule: {'blur/*': [compute_root]}\nfusion: {rest: none}")) == ["rows", "out"]


def test_a_group_of_the_plan_is_one_kernel() -> None:
    both = "schedule: {'blur/*': [compute_root]}\nfusion: {groups: [[rows, out]]}"
    assert kernels(fine(BLUR, both)) == ["rows out"]


def test_a_wildcard_binds_the_stage_and_its_place() -> None:
    def model(x: Any) -> Any:
        def part(name: str) -> Any:
            with fl.scope(name):
                a = fl.edge(fl.stage(lambda y, x_: x[y, x_] * 2, name="a"))
                return fl.stage(lambda y, x_: a[y - 1, x_] + a[y + 1, x_], name="b")

        return part("one"), part("two")

    g = fl.trace(model, None, inputs={"x": fl.f32("h", "w")})
    s = fine(g, "schedule: {'*/a': [{compute_at: {stage: '*/b', axis: y}}], '*/b': [compute_root]}")
    assert kernels(s) == ["one/a one/b", "two/a two/b"]


def test_a_placement_pulls_what_lies_between_with_it() -> None:
    def model(x: Any) -> Any:
        a = fl.edge(fl.stage(lambda y, x_: x[y, x_] * 2, name="a"))
        b = fl.edge(fl.stage(lambda y, x_: fl.exp(a[y - 1, x_]) + fl.exp(a[y + 1, x_]), name="b"))
        return fl.stage(lambda y, x_: b[y, x_ - 1] + b[y, x_ + 1], name="c")

    g = fl.trace(model, None, inputs={"x": fl.f32("h", "w")})
    s = fine(g, "schedule: {a: [{compute_at: {stage: c, axis: y}}]}")
    assert kernels(s) == ["a b c"] and s.decided_by["model/b"] == "default"


# ---------------------------------------------------------------- problems
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("schedule:\n  out: [{parallel: z}]\n  rows: [{unroll: q}]\n", [("P203", 2), ("P203", 3)]),
        ("schedule:\n  out: [{parallel: z}]\n  nowhere: [compute_root]\n", [("P101", 3), ("P203", 2)]),
        ("schedule:\n  rows: [{compute_at: {stage: rows, axis: y}}]\n", [("P204", 2)]),
        ("schedule:\n  rows: [{compute_at: {stage: out, axis: z}}]\n", [("P204", 2)]),
        ("schedule:\n  out: [compute_inline]\n", [("P225", 2)]),
        ("schedule:\n  rows: [{rfactor: {axis: k, factor: 2}}]\n  out: [{parallel: z}]\n", [("P203", 3), ("P222", 2)]),
        ("schedule:\n  out:\n    - vectorize: {axis: x, width: 8, tail: pad}\n    - unroll: x_inner\n", [("P226", 3)]),
        ("schedule:\n  out: [{split: {axis: q, factor: 4}}]\n  rows: [{compute_at: {stage: out, axis: q_outer}}]\n", [("P203", 2)]),
        ("fusion:\n  groups: [[rows, nothing]]\n", [("P101", 2)]),
        ("fusion:\n  never: [[rows, nothing]]\n", [("P101", 2)]),
        (
            "schedule:\n  rows: [{compute_at: {stage: out, axis: y}}]\nfusion:\n  never: [[rows, out]]\n",
            [("P230", 4)],
        ),
        ("schedule:\n  rows: [compute_inline]\nfusion:\n  never: [[rows, out]]\n", [("P230", 4)]),
        ("schedule:\n  rows: [{split: {axis: x, factor: 4}}]\n  blur/rows: [compute_root]\n  /blur/out: [{parallel: q}]\n", [("P203", 4)]),
    ],
)  # fmt: skip
def test_every_problem_at_once(text: str, found: list[tuple[str, int]]) -> None:
    assert problems(BLUR, text) == found


def test_the_loops_that_would_do_are_listed() -> None:
    made = applied(
        BLUR,
        "schedule: {rows: [{compute_at: {stage: out, axis: y}}], out: [{split: {axis: y, factor: 8}}, {vectorize: {axis: x, width: 8}}]}",
    )
    (problem,) = made.problems
    assert problem.code == "P204" and "made it y_outer, y_inner" in problem.why and "legal: y_outer, y_inner, x_outer" in problem.why


def test_a_reader_that_does_not_need_the_stage() -> None:
    def two(x: Any) -> Any:
        return fl.stage(lambda i: x[i] + 1, name="a"), fl.stage(lambda i: x[i] * 2, name="b")

    g = fl.trace(two, None, inputs={"x": fl.f32("n")})
    made = applied(g, "schedule: {a: [{compute_at: {stage: b, axis: i}}]}")
    assert [p.code for p in made.problems] == ["P204"] and "b does not need it" in made.problems[0].why


# ---------------------------------------------------------------- laws
@pytest.mark.parametrize("name", MODELS)
def test_a_complete_plan_says_everything_and_means_the_same(name: str) -> None:
    first = applied(graph(name))
    text = first.text()
    second = apply(ExecutionPlan.from_yaml(text), graph(name), Machine(), default_schedule)
    assert [p.text() for p in second.problems] == []
    assert set(second.decided_by.values()) == {"plan"}
    assert kernels(second) == kernels(first)
    by_path = [{s.graph.path_of(i): ds or (ComputeRoot(),) for i, ds in s.directives.items()} for s in (first, second)]
    assert by_path[0] == by_path[1]


def test_order_of_a_reduction() -> None:
    g = fl.trace(lambda x: fl.stage(lambda i: fl.sum(lambda p, q: x[i, p, q]), name="r"), None, inputs={"x": fl.f32("n", "p", "q")})
    (s,) = g.stages
    reduction = s.reduction
    assert reduction is not None

    def ordered(*lines: str) -> bool:
        plan = ExecutionPlan.from_yaml("schedule: {r: [" + ", ".join(lines) + "]}")
        nest, found = shape(
            start(s.path, s.axes, s.extents, s.reduce_axes, reduction.extents), plan.entries()[0].do, lambda _: 8, "float32"
        )  # type: ignore[arg-type]
        assert found == []
        return keeps_order(s, nest)

    assert ordered("compute_root") and ordered("{reorder: [p, i, q]}") and ordered("{split: {axis: q, factor: 4}}")
    assert ordered("{split: {axis: p, factors: [3, ~, 2], into: [a, b, c]}}") and ordered("{fuse: [p, q]}")
    assert ordered("{fuse: [p, q]}", "{split: {axis: p_q, factor: 8}}")
    assert not ordered("{reorder: [q, p]}") and not ordered("{tile: {p: 2, q: 2}}")
    assert not ordered("{split: {axis: q, factor: 4}}", "{reorder: [q_inner, q_outer]}")
    assert not ordered("{split: {axis: p, factors: [3, ~, 2], into: [a, b, c]}}", "{reorder: [b, a, c]}")


def test_directives_are_values() -> None:
    """Plans made in Python mean what the same YAML means."""
    plan = ExecutionPlan(
        schedule={
            "matmul": (Pack(tensor="w", sizes={"j": 8}, order=("j", "k"), into="panels", when="call"), Cache("acc")),
            "matmul/acc": (Rfactor(axis="k", factor=4), ComputeAt(stage="matmul", axis="i"), Split("j", 4)),
            "relu": (Vectorize("j", width=8),),
        }
    )
    a, b = (apply(p, LAYER, Machine(), default_schedule) for p in (plan, ExecutionPlan.from_yaml(plan.to_yaml())))
    assert a.chosen == b.chosen and kernels(a) == kernels(b)
