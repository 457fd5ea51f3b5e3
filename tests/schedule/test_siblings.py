"""Which reductions the default scheduler runs together, and which it leaves as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import pytest
from fluorite.schedule import ComputeWith, ExecutionPlan, Numerics
from fluorite.schedule.default import default_schedule
from fluorite.schedule.default.chosen import Chosen
from fluorite.schedule.default.siblings import same_places, shared_cost
from fluorite.schedule.machine import Machine
from fluorite.schedule.scheduled import Undecided, apply

from benchmarks.filters import bilateral_gradient, unsharp_gradient

F = fl.f32
SIDE = {"image": F(512, 512), "target": F(512, 512), "near": F(5, 5), "tone": F()}


def together(program: Callable[..., Any], plan: ExecutionPlan | None = None, **inputs: Any) -> dict[str, str]:
    """Who runs with whom, below the method."""
    graph = fl.trace(program, None, inputs=inputs)
    made = apply(plan or ExecutionPlan(), graph, Machine(), default_schedule)
    assert not made.problems
    again = ExecutionPlan.from_yaml(made.text())
    assert not apply(again, graph, Machine(), default_schedule).problems
    cut = len(graph.methods[0].name) + 1
    return {p[cut:]: d.stage[cut + 1 :] for p, ds in made.chosen.items() for d in ds if isinstance(d, ComputeWith)}


def test_the_gradient_of_a_bilateral_filter_computes_its_weights_four_times() -> None:
    found = together(bilateral_gradient, **SIDE)
    image = {m: s for m, s in found.items() if m.startswith("grad/error/image")}
    sums = [f"grad/error/{x}/tasks" for x in ("tone/from/blended", "tone/from/total", "near/from/total")]
    assert found["blended"] == "total"
    assert {m: s for m, s in found.items() if m.endswith("tasks")} == dict.fromkeys(sums, "grad/error/near/from/blended/tasks")
    assert image["grad/error/image/from/total"] == "grad/error/image/from/blended_2"
    assert image["grad/error/image/from/total_10"] == "grad/error/image/from/blended"


def pair(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    def both(x: Any) -> Any:
        a = fl.stage(lambda i, j: fl.sum(lambda k: first(x, i, j, k)), name="a", extents={"i": 64, "j": 64})
        return a, fl.stage(lambda p, q: fl.max(lambda r: second(x, p, q, r)), name="b", extents={"p": 64, "q": 64})

    return both


def costly(x: Any, i: Any, j: Any, k: Any) -> Any:
    return fl.exp(x[i, k] - x[j, k])


@pytest.mark.parametrize(
    ("second", "joins"),
    [
        (lambda x, p, q, r: costly(x, p, q, r) * x[q, r], True),
        (lambda x, p, q, r: costly(x, q, p, r), False),
        (lambda x, p, q, r: costly(x, p, q, r + 1), False),
        (lambda x, p, q, r: x[p, r] - x[q, r], False),
        (lambda x, p, q, r: fl.where(x[p, r] > x[q, r], costly(x, p, q, r), 0), True),
    ],
    ids=["of the same", "turned", "shifted", "cheap", "under a choice"],
)
def test_those_that_share_costly_parts_of_the_same_places_run_together(second: Callable[..., Any], joins: bool) -> None:
    assert together(pair(costly, second), x=F(64, 96)) == ({"b": "a", "b/partial": "a/partial"} if joins else {})


def moments(x: Any) -> Any:
    return fl.stage(lambda i: fl.sum(lambda k: x[i, k]), name="a"), fl.stage(lambda i: fl.sum(lambda k: x[i, k] * x[i, k]), name="b")


@pytest.mark.parametrize(("rows", "joins"), [(64, False), (1024, True)])
def test_what_no_cache_holds_is_read_once(rows: int, joins: bool) -> None:
    assert together(moments, x=F(rows, 1024)) == ({"b": "a", "b/partial": "a/partial"} if joins else {})


def two_filters(x: Any, v: Any, w: Any) -> Any:
    """Both read every pixel often: in loops of its own each keeps them in registers."""
    near = fl.edge(x)
    return tuple(
        fl.stage(lambda y, x, u=u: fl.sum(lambda j, i: u[j, i] * near[y + j - 1, x + i - 1]), name=name) for name, u in (("v", v), ("w", w))
    )


def test_what_is_read_again_and_again_is_no_reason() -> None:
    assert together(two_filters, x=F(1024, 1024), v=F(3, 3), w=F(3, 3)) == {}


def chained(x: Any) -> Any:
    """The second sum needs the first one, by way of another stage."""
    a = fl.stage(lambda i: fl.sum(lambda k: fl.exp(x[i, k])), name="a")
    top = fl.max(a)
    return a, fl.stage(lambda i: fl.sum(lambda k: fl.exp(x[i, k]) * top), name="b")


def test_one_that_needs_the_other_does_not() -> None:
    assert together(chained, x=F(256, 256)) == {}


def test_it_is_exact() -> None:
    plan = ExecutionPlan(numerics=Numerics(allow="exact"))
    found = together(bilateral_gradient, plan, **SIDE)
    assert found["blended"] == "total"


@pytest.mark.parametrize(
    ("program", "inputs"),
    [
        (lambda x: fl.softmax(x, axis=-1), {"x": F(512, 512)}),
        (lambda x, w, b: fl.layer_norm(x, w, b), {"x": F(512, 512), "w": F(512), "b": F(512)}),
        (lambda a, b, c: (a @ b, a @ c), {"a": F(256, 256), "b": F(256, 256), "c": F(256, 256)}),
        (unsharp_gradient, {"image": F(512, 512), "target": F(512, 512), "weights": F(5), "amount": F()}),
    ],
    ids=["softmax", "layer norm", "products", "unsharp"],
)
def test_others_keep_their_plans(program: Callable[..., Any], inputs: dict[str, Any]) -> None:
    assert together(program, **inputs) == {}


def test_axes_are_matched_by_what_is_computed() -> None:
    """Results of one may be reductions of the other."""

    def sums(x: Any) -> Any:
        near = fl.edge(x)
        size = {"y": 8, "x": 9}
        by = fl.stage(lambda k: fl.sum(lambda y, x: fl.exp(near[y, x + k]), over=size), name="by", extents={"k": 3})
        return by, fl.stage(lambda: fl.sum(lambda v, u, i: fl.exp(near[v, u + i]), over={"v": 8, "u": 9, "i": 3}), name="all")

    g = fl.trace(sums, None, inputs={"x": F(8, 9)})
    chosen = Chosen(g, Undecided(frozenset(s.id for s in g.stages), (), (), Machine(), True, True))
    by, all_ = (next(s for s in g.stages if s.name == name) for name in ("by", "all"))
    axes = same_places(chosen, by, all_)
    assert axes is not None and {a.name: b.name for a, b in axes.items()} == {"k": "i", "y": "v", "x": "u"}
    assert shared_cost(chosen, by, all_, axes) >= 12
