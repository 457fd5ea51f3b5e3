"""Kernels: which stages share one, in which order they run, and what cannot."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.grouping import Apart, Group, Placement, group_stages
from fluorite.schedule.notation.places import Place
from hypothesis import given, settings
from hypothesis import strategies as st


def diamond(x: Any) -> Any:
    a = fl.stage(lambda i: x[i] + 1, name="a")
    b = fl.stage(lambda i: a[i] * 2, name="b")
    c = fl.stage(lambda i: a[i] * 3, name="c")
    return fl.stage(lambda i: b[i] + c[i], name="d")


G = fl.trace(diamond, None, inputs={"x": fl.f32("n")})
ID = {s.name: s.id for s in G.stages}


def grouped(*together: str, placed: dict[str, str] | None = None, apart: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """(members, outputs) of each kernel, by letters."""
    placements = {ID[s]: Placement(ID[owner], "i") for s, owner in (placed or {}).items()}
    groups = group_stages(
        G,
        placements,
        [[ID[s] for s in t] for t in together],
        [Apart(frozenset([ID[p[0]]]), frozenset([ID[p[1]]]), (p[0], p[1])) for p in apart],
    )
    return [("".join(G[i].name for i in g.stages), "".join(sorted(G[i].name for i in g.outputs))) for g in groups]


def test_alone_by_default() -> None:
    assert grouped() == [("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")]


def test_a_placement_ties_two_stages() -> None:
    assert grouped(placed={"b": "d"}) == [("a", "a"), ("c", "c"), ("bd", "d")]
    assert grouped(placed={"a": "b"}) == [("ab", "ab"), ("c", "c"), ("d", "d")]


def test_placements_and_groups_join() -> None:
    assert grouped("ac", placed={"b": "d"}) == [("ac", "ac"), ("bd", "d")]
    assert grouped("ab", "bc", placed={"c": "d"}) == [("abcd", "d")]


def test_never_contradicts() -> None:
    with pytest.raises(PlanError) as caught:
        grouped("abc", apart=("ac",))
    (problem,) = caught.value.problems
    assert problem.code == "P230" and "a and c share a kernel" in problem.asked
    assert grouped("ab", apart=("ac", "bd")) == [("ab", "ab"), ("c", "c"), ("d", "d")]


def test_a_kernel_may_not_enclose_a_stage_of_another() -> None:
    with pytest.raises(PlanError) as caught:
        grouped("ad")
    (problem,) = caught.value.problems
    assert problem.code == "P231" and "kernel of a, d would need b" in problem.asked and "compute b in it as well" in problem.try_


def test_the_place_of_a_group_that_encloses() -> None:
    place = Place("p.yaml", 2, 18)
    with pytest.raises(PlanError) as caught:
        group_stages(G, {}, [[ID["a"], ID["d"]]], places=[place])
    assert (caught.value.problems[0].code, caught.value.problems[0].line) == ("P231", 2)


def test_the_place_of_a_placement_that_encloses() -> None:
    plan = ExecutionPlan.from_yaml("schedule:\n  a:\n    - compute_at: {stage: d, axis: i}\n", "p.yaml")
    (entry,) = plan.entries()
    with pytest.raises(PlanError) as caught:
        group_stages(G, {ID["a"]: Placement(ID["d"], "i", entry.do[0])}, [])  # type: ignore[arg-type]
    assert (caught.value.problems[0].code, caught.value.problems[0].line) == ("P231", 3)


def _added(name: str, tensors: list[Any]) -> Any:
    return fl.stage(lambda i: sum(t[i] for t in tensors) + 1, name=name)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    reads = [draw(st.lists(st.integers(0, n), min_size=1, max_size=3)) for n in range(draw(st.integers(1, 7)))]

    def model(x: Any) -> Any:
        made = [x]
        for n, sources in enumerate(reads):
            made.append(_added(f"s{n}", [made[k] for k in sources]))
        return tuple(made[-2:]) if len(made) > 2 else made[-1]

    return fl.trace(model, None, inputs={"x": fl.f32("n")})


@settings(max_examples=80, deadline=None)
@given(g=graphs(), data=st.data())
def test_kernels_run_in_an_order_in_which_each_finds_its_inputs(g: Graph, data: st.DataObject) -> None:
    ids = [s.id for s in g.stages]
    together = data.draw(st.lists(st.lists(st.sampled_from(ids), min_size=2, max_size=3, unique=True), max_size=2)) if len(ids) > 1 else []
    apart = data.draw(st.permutations(ids))[:2] if len(ids) > 1 and data.draw(st.booleans()) else []
    try:
        groups = group_stages(g, {}, together, [Apart(frozenset(apart[:1]), frozenset(apart[1:]), ("a", "b"))] if apart else [])
    except PlanError as error:
        assert {p.code for p in error.problems} <= {"P230", "P231"}
        return
    done: set[int] = set()
    for group in groups:
        for i in group.stages:
            assert all(source in done or source in group.stages for source in g.stage(i).sources if g.stage(source))  # type: ignore[union-attr]
        assert list(group.stages) == [i for i in ids if i in group.stages]
        done |= set(group.stages)
    assert sorted(i for group in groups for i in group.stages) == sorted(ids)
    assert all(any(set(t) <= set(group.stages) for group in groups) for t in together)
    assert not apart or not any(set(apart) <= set(group.stages) for group in groups)
    assert _outputs(g, groups)


def _outputs(g: Graph, groups: tuple[Group, ...]) -> bool:
    """Exactly what others read, or the program returns, leaves its kernel."""
    home = {i: n for n, group in enumerate(groups) for i in group.stages}
    needed = {i for i in home if i in g.outputs or any(home[c.id] != home[i] for c in g.consumers[i])}
    return needed == {i for group in groups for i in group.outputs}
