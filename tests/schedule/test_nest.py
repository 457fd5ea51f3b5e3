"""Loop nests: what every directive makes of one, what becomes of names, every refusal, and that no iteration is lost or done twice."""
# ruff: noqa: E501 (one case a line)

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pytest
from fluorite.algo.errors import Problem
from fluorite.algo.expr import axis
from fluorite.algo.extent import Extent, evaluate, symbol
from fluorite.schedule import (
    Directive,
    ExecutionPlan,
    Fuse,
    GpuBlocks,
    GpuThreads,
    Parallel,
    Reorder,
    Split,
    Tile,
    Unroll,
    Vectorize,
)
from fluorite.schedule.nest import Nest, shifted, start
from fluorite.schedule.shaping import shape
from hypothesis import given, settings
from hypothesis import strategies as st
from index_values import index_value

N, M = symbol("n"), symbol("m")


def fresh(axes: Mapping[str, Extent], reduced: Mapping[str, Extent] | None = None) -> Nest:
    inner = reduced or {}
    return start("f/s", [axis(a) for a in axes], list(axes.values()), [axis(a) for a in inner], list(inner.values()))


def shaped(nest: Nest, *directives: Directive) -> Nest:
    made, problems = shape(nest, directives, lambda dtype: {"float32": 16, "float64": 8}[dtype], "float32")
    assert problems == []
    return made


def refused(nest: Nest, *directives: Directive) -> Problem:
    _, problems = shape(nest, directives, lambda _: 16, "float32", "f.py:3")
    (problem,) = problems
    assert problem.path == "f/s" and problem.source == "f.py:3" and problem.asked and problem.why
    return problem


def lines(nest: Nest) -> list[str]:
    return [line.strip() for line in nest.text().splitlines()[1:]]


# ---------------------------------------------------------------- each directive, before and after
@pytest.mark.parametrize(
    ("directives", "after"),
    [
        ([], ["for y in 0..n", "for x in 0..40", "for k in 0..7  (reduction)"]),
        ([Split("x", 8)], ["for y in 0..n", "for x_outer in 0..5", "for x_inner in 0..8", "for k in 0..7  (reduction)"]),
        ([Split("y", 8)], ["for y_outer in 0..(n+7)//8", "for y_inner in 0..8", "for x in 0..40", "for k in 0..7  (reduction)"]),
        (
            [Split("x", factors=(None, 4, 5), into=("a", "b", "c"))],
            ["for y in 0..n", "for a in 0..2", "for b in 0..4", "for c in 0..5", "for k in 0..7  (reduction)"],
        ),
        (
            [Split("x", factors=(8, None), into=("a", "b")), Split("k", factors=(2, 4), into=("p", "q"))],
            ["for y in 0..n", "for a in 0..8", "for b in 0..5", "for p in 0..2  (reduction)", "for q in 0..4  (reduction)"],
        ),
        (
            [Split("x", 8), Split("x_inner", 4)],
            ["for y in 0..n", "for x_outer in 0..5", "for x_inner_outer in 0..2", "for x_inner_inner in 0..4", "for k in 0..7  (reduction)"],
        ),
        (
            [Tile({"y": 4, "x": 8})],
            ["for y_outer in 0..(n+3)//4", "for x_outer in 0..5", "for y_inner in 0..4", "for x_inner in 0..8", "for k in 0..7  (reduction)"],
        ),
        (
            [Tile({"k": 2, "x": 8})],
            ["for y in 0..n", "for k_outer in 0..4  (reduction)", "for x_outer in 0..5", "for x_inner in 0..8", "for k_inner in 0..2  (reduction)"],
        ),
        ([Reorder("k", "y")], ["for k in 0..7  (reduction)", "for x in 0..40", "for y in 0..n"]),
        ([Fuse("y", "x")], ["for y_x in 0..40*n", "for k in 0..7  (reduction)"]),
        ([Fuse("y", "x", into="t")], ["for t in 0..40*n", "for k in 0..7  (reduction)"]),
        ([Parallel("y")], ["parallel for y in 0..n", "for x in 0..40", "for k in 0..7  (reduction)"]),
        ([Vectorize("x")], ["for y in 0..n", "vectorized for x in 0..40", "for k in 0..7  (reduction)"]),
        (
            [Vectorize("x", width="native")],
            ["for y in 0..n", "for x_outer in 0..3", "vectorized for x_inner in 0..16", "for k in 0..7  (reduction)"],
        ),
        (
            [Vectorize("y", width=4)],
            ["for y_outer in 0..(n+3)//4", "vectorized for y_inner in 0..4", "for x in 0..40", "for k in 0..7  (reduction)"],
        ),
        ([Unroll("k")], ["for y in 0..n", "for x in 0..40", "unrolled for k in 0..7  (reduction)"]),
        (
            [Unroll("x", factor=2)],
            ["for y in 0..n", "for x_outer in 0..20", "unrolled for x_inner in 0..2", "for k in 0..7  (reduction)"],
        ),
        (
            [GpuBlocks("y"), GpuThreads("x")],
            ["block.x for y in 0..n", "thread.x for x in 0..40", "for k in 0..7  (reduction)"],
        ),
        (
            [Split("x", 8), GpuBlocks("y", "x_outer"), GpuThreads("x_inner", "k")],
            ["block.y for y in 0..n", "block.x for x_outer in 0..5", "thread.y for x_inner in 0..8", "thread.x for k in 0..7  (reduction)"],
        ),
    ],
)  # fmt: skip
def test_before_and_after(directives: list[Directive], after: list[str]) -> None:
    assert lines(shaped(fresh({"y": N, "x": 40}, {"k": 7}), *directives)) == after


def test_marks_apply_after_the_loops_are_made_whatever_their_place() -> None:
    early = shaped(fresh({"y": N, "x": 40}), Parallel("y_outer"), Split("y", 4))
    late = shaped(fresh({"y": N, "x": 40}), Split("y", 4), Parallel("y_outer"))
    assert lines(early) == lines(late)


def test_a_width_splits_where_it_stands() -> None:
    nest = shaped(fresh({"y": 8, "x": 40}), Vectorize("x", width=8), Reorder("x_outer", "y", "x_inner"))
    assert nest.names == ("x_outer", "y", "x_inner") and nest.loops[2].kind == "vectorized"


def test_a_used_up_name_may_be_given_again() -> None:
    nest = shaped(fresh({"x": 40}), Split("x", 8, into=("x", "lane")), Split("x", 5, into=("x", "middle")))
    assert nest.names == ("x", "middle", "lane")
    assert [evaluate(loop.extent, {}) for loop in nest.loops] == [1, 5, 8]


def test_guards_are_there_exactly_where_a_split_does_not_divide() -> None:
    assert shaped(fresh({"x": 40}), Split("x", 8)).guards == ()
    assert shaped(fresh({"x": N * 8}), Split("x", 8)).guards == ()
    (guard,) = shaped(fresh({"x": N}), Split("x", 8, tail="shift")).guards
    assert str(guard.limit) == "n" and guard.tail == "shift"


# ---------------------------------------------------------------- refusals
def from_text(directives: str) -> tuple[Directive, ...]:
    (entry,) = ExecutionPlan.from_yaml(f"schedule:\n  s:\n{directives}", "p.yaml").entries()
    return tuple(entry.do)


def test_a_loop_that_never_was() -> None:
    problem = refused(fresh({"rows": N, "columns": 4}), Split("row", 2))
    assert problem.code == "P203" and problem.asked == 'split: s has no loop "row"'
    assert "outermost first: rows, columns" in problem.why and problem.try_ == ("rows",)


@pytest.mark.parametrize(
    ("taker", "wrong", "made", "line"),
    [
        ("    - split: {axis: x, factor: 4}\n", "vectorize: x", ("x_outer", "x_inner"), 3),
        ("    - tile: {y: 2, x: 4}\n", "unroll: x", ("x_outer", "x_inner"), 3),
        ("    - fuse: {axes: [y, x], into: t}\n", "parallel: x", ("t",), 3),
        ("    - vectorize: {axis: x, width: 4}\n", "parallel: x", ("x_outer", "x_inner"), 3),
    ],
)
def test_a_used_up_name_says_what_took_it(taker: str, wrong: str, made: tuple[str, ...], line: int) -> None:
    problem = refused(fresh({"y": 8, "x": 16}), *from_text(f"{taker}    - {wrong}\n"))
    assert problem.code == "P203" and (problem.file, problem.line) == ("p.yaml", 4)
    assert 'has no loop "x" any more' in problem.asked
    assert f"line {line} (" in problem.why and f"made it {', '.join(made)}" in problem.why


def test_one_mistake_does_not_hide_the_next() -> None:
    _, problems = shape(fresh({"y": 8, "x": 16}), [Split("q", 2), Parallel("r"), Vectorize("x")], lambda _: 16, "float32")
    assert [p.code for p in problems] == ["P203", "P203"]


@pytest.mark.parametrize(
    "directives",
    [
        [Split("q", 2), Parallel("q_outer"), Vectorize("q_inner")],
        [Vectorize("q", width=4), Unroll("q_inner")],
        [Tile({"y": 2, "q": 4}), Reorder("y_outer", "q_outer", "y_inner", "q_inner"), Vectorize("q_inner")],
        [Fuse("y", "q", into="t"), Split("t", 4), Parallel("t_outer")],
    ],
)
def test_what_follows_from_a_mistake_is_no_second_one(directives: list[Directive]) -> None:
    (problem,) = shape(fresh({"y": 8, "x": 16}), directives, lambda _: 16, "float32")[1]
    assert problem.code == "P203" and '"q"' in problem.asked


@pytest.mark.parametrize(
    ("directives", "code", "asked", "reason"),
    [
        ([Split("x", 4, into=("y", "lane"))], "P206", 'already has a loop "y"', "differ"),
        ([Split("k", 4, into=("x", "k"))], "P206", 'already has a loop "x"', "differ"),
        ([Fuse("x", "k", into="y")], "P206", 'already has a loop "y"', "differ"),
        ([Split("x", factors=(3, 5), into=("a", "b"))], "P207", "3 x 5 = 15 iterations", "x has 16"),
        ([Split("n", factors=(3, 5), into=("a", "b"))], "P207", "3 x 5 = 15 iterations", "n has n"),
        ([Fuse("y", "k")], "P208", "not directly inside one another", "outermost first: n, y, x, k, l"),
        ([Fuse("x", "y")], "P208", "in this order", "outermost first"),
        ([Fuse("x", "k")], "P208", "mix a reduction loop", "either"),
        ([Parallel("x"), Vectorize("x")], "P209", "x is parallel already", "one thing"),
        ([Unroll("x"), Unroll("x")], "P209", "x is unrolled already", "one thing"),
        ([Vectorize("y"), Vectorize("x")], "P209", "y of this nest is vectorised already", "one direction"),
        ([Parallel("k")], "P210", "k is a reduction loop", "one place"),
        ([Vectorize("k")], "P210", "k is a reduction loop", "one place"),
        ([GpuBlocks("k")], "P210", "k is a reduction loop", "one place"),
        ([Vectorize("n")], "P211", "the extent of n is n", "constant"),
        ([Unroll("n")], "P211", "the extent of n is n", "constant"),
        ([GpuThreads("n")], "P211", "the extent of n is n", "constant"),
        ([Fuse("y", "x"), Split("y_x", 600), Unroll("l")], "P211", "l has 2000 iterations", "very much code"),
        ([Unroll("l")], "P211", "l has 2000 iterations", "very much code"),
        ([Parallel("n"), Parallel("y")], "P212", "n of this nest is parallel already", "do not nest"),
        ([Split("x", 5, tail="pad")], "P226", "16 iterations of x are no multiple of 5", "only an axis of a stage"),
        ([Split("k", 5, tail="pad")], "P226", "16 iterations of k are no multiple of 5", "would be added"),
        ([Split("k", 5, tail="shift")], "P226", "tail: shift on k, a reduction loop", "would be added again"),
    ],
)
def test_refusals(directives: list[Directive], code: str, asked: str, reason: str) -> None:
    problem = refused(fresh({"n": N, "y": 8, "x": 16}, {"k": 16, "l": 2000}), *directives)
    assert problem.code == code
    assert asked in problem.asked and reason in problem.why


def test_a_product_of_factors_may_cover_more_than_the_loop_but_never_less() -> None:
    assert [loop.extent for loop in shaped(fresh({"x": 14}), Split("x", factors=(3, 5), into=("a", "b"))).loops] == [3, 5]
    assert refused(fresh({"x": N}), Split("x", factors=(4, 8), into=("a", "b"))).code == "P207"


# ---------------------------------------------------------------- every iteration once
def iterations(nest: Nest, sizes: Mapping[str, int]) -> Iterator[dict[object, int]]:
    """The loop variables at each iteration that passes the guards, in order."""
    ranges = [range(evaluate(loop.extent, sizes)) for loop in nest.loops]
    for point in itertools.product(*ranges):
        at = {loop.var: i for loop, i in zip(nest.loops, point, strict=True)}
        limits = [(nest.value(g.value), evaluate(g.limit, sizes)) for g in nest.guards]  # type: ignore[arg-type]
        if all(index_value(value, at, sizes) < limit for value, limit in limits):
            yield at  # type: ignore[misc]


def points(nest: Nest, original: Nest, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
    values = [nest.value(loop.var) for loop in original.loops]
    return [tuple(index_value(v, at, sizes) for v in values) for at in iterations(nest, sizes)]  # type: ignore[arg-type]


@st.composite
def shaping(draw: st.DrawFn, nest: Nest, ordered: bool = False) -> Nest:
    """The nest after some directives that fit it; `ordered` ones keep the order of iterations."""
    for _ in range(draw(st.integers(0, 4))):
        name = draw(st.sampled_from(nest.names))
        kind = draw(st.sampled_from(["split", "factors", "fuse"] if ordered else ["split", "factors", "fuse", "tile", "reorder"]))
        parts = [f"l{len(nest.gone)}{c}" for c in "abc"]
        d: Directive
        match kind:
            case "split":
                reduction = next(loop.reduction for loop in nest.loops if loop.name == name)
                tail = draw(st.sampled_from(["auto", "guard"] if reduction else ["auto", "guard", "shift"]))
                d = Split(name, draw(st.integers(1, 5)), into=tuple(parts[:2]), tail=tail)
            case "factors":
                factors = draw(st.permutations([None, draw(st.integers(1, 4)), draw(st.integers(1, 3))]))
                d = Split(name, factors=tuple(factors), into=tuple(parts))
            case "tile":
                chosen = draw(st.lists(st.sampled_from(nest.names), min_size=1, max_size=2, unique=True))
                d = Tile({n: draw(st.integers(1, 4)) for n in chosen})
            case "reorder":
                d = Reorder(*draw(st.permutations(nest.names)))
            case _:
                at = draw(st.integers(0, len(nest.loops) - 1))
                pair = nest.loops[at : at + 2]
                if len(pair) < 2 or pair[0].reduction != pair[1].reduction:
                    continue
                d = Fuse(pair[0].name, pair[1].name, into=parts[0])
        nest, problems = shape(nest, [d], lambda _: 16, "float32")
        assert problems == []
    return nest


SIZES = st.fixed_dictionaries({"n": st.integers(1, 7), "m": st.integers(1, 5)})


@st.composite
def nests(draw: st.DrawFn) -> Nest:
    extent = st.one_of(st.integers(0, 7), st.just(N), st.just(M + 1))
    axes = {name: draw(extent) for name in ("y", "x")[: draw(st.integers(1, 2))]}
    return fresh(axes, {"k": draw(extent)} if draw(st.booleans()) else {})


@settings(max_examples=150, deadline=None)
@given(data=st.data(), sizes=SIZES)
def test_every_iteration_is_done_once(data: st.DataObject, sizes: dict[str, int]) -> None:
    original = data.draw(nests())
    nest = data.draw(shaping(original))
    wanted = list(itertools.product(*(range(evaluate(loop.extent, sizes)) for loop in original.loops)))
    assert sorted(points(nest, original, sizes)) == wanted


@settings(max_examples=60, deadline=None)
@given(data=st.data(), sizes=SIZES)
def test_splits_and_fuses_keep_the_order(data: st.DataObject, sizes: dict[str, int]) -> None:
    original = data.draw(nests())
    nest = data.draw(shaping(original, ordered=True))
    assert points(nest, original, sizes) == list(itertools.product(*(range(evaluate(loop.extent, sizes)) for loop in original.loops)))


@settings(max_examples=80, deadline=None)
@given(extent=st.integers(1, 30), factor=st.integers(1, 9), data=st.data())
def test_a_shifted_tail_covers_everything_and_stays_inside(extent: int, factor: int, data: st.DataObject) -> None:
    original = fresh({"x": extent, "y": 2})
    nest = shaped(original, Split("x", factor, tail="shift"), *data.draw(st.sampled_from([[], [Reorder("y", "x_outer")]])))
    if not nest.guards:
        assert extent % factor == 0
        return
    moved = shifted(nest, nest.guards[0])
    assert (moved is None) == (extent < factor)
    if moved is not None:
        assert moved.guards == ()
        assert set(points(moved, original, {})) == set(itertools.product(range(extent), range(2)))


def test_a_tail_is_not_shifted_inside_a_reduction() -> None:
    nest = shaped(fresh({"x": 10}, {"k": 3}), Split("x", 4), Reorder("k", "x_outer"))
    assert shifted(nest, nest.guards[0]) is None
    reduced = shaped(fresh({"x": 10}, {"k": 10}), Split("k", 4))
    assert shifted(reduced, reduced.guards[0]) is None
