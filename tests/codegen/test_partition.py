"""Loops split where a test changes its answer: every iteration takes the branch that it took before, in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fluorite.algo.expr import Axis, Expr, as_expr, axis, binary
from fluorite.algo.extent import Extent, symbol
from fluorite.codegen.partition import partition
from fluorite.codegen.shortening import shortened
from fluorite.codegen.statements import For, If, Sequence, Statement, Store, walk
from hypothesis import given, settings
from hypothesis import strategies as st
from index_values import index_value

N = symbol("n")
FAST, SLOW = 1, 2


def events(s: Statement, at: Mapping[Axis, int], sizes: Mapping[str, int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(buffer, index) of every store, in order."""
    match s:
        case Store(buffer=b, index=index):
            yield b, tuple(index_value(i, at, sizes) for i in index)
        case If(condition=c, then=a, otherwise=b):
            branch = a if index_value(c, at, sizes) else b
            if branch is not None:
                yield from events(branch, at, sizes)
        case For(var=v, low=low, extent=extent, body=body):
            first = index_value(low, at, sizes)
            for i in range(first, first + index_value(extent, at, sizes)):
                yield from events(body, {**at, v: i}, sizes)
        case Sequence(body=parts):
            for part in parts:
                yield from events(part, at, sizes)


def loop(v: Axis, low: int, extent: Extent, body: Statement) -> For:
    return For(v, v.name, as_expr(low), as_expr(extent), "serial", "", body)


@st.composite
def comparisons(draw: st.DrawFn, variables: list[Axis]) -> Expr:
    e: Expr = as_expr(draw(st.integers(-6, 6)))
    for v in variables:
        e = binary("add", e, binary("mul", v, as_expr(draw(st.integers(-3, 3)))))
    if draw(st.booleans()):
        e = binary("floordiv", e, as_expr(draw(st.integers(2, 4))))
    limit = as_expr(draw(st.sampled_from([N, N * 2, 0, 3, N - 4])))
    pair = (e, limit) if draw(st.booleans()) else (limit, e)
    return binary(draw(st.sampled_from(["lt", "le"])), *pair)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), n=st.integers(1, 9))
def test_every_iteration_keeps_its_branch(data: st.DataObject, n: int) -> None:
    y, x = axis("y"), axis("x")
    inner: Statement = Store(FAST, (y, x), as_expr(1))
    other: Statement = Store(SLOW, (y, x), as_expr(1))
    test = data.draw(comparisons([y, x]))
    for _ in range(data.draw(st.integers(0, 3))):
        test = test & data.draw(comparisons([y, x]))
    extents = data.draw(st.tuples(st.sampled_from([N, 5, N + 2, 0]), st.sampled_from([N, 7, N * 2])))
    lows = data.draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    before = loop(y, lows[0], extents[0], loop(x, lows[1], extents[1], If(test, inner, other)))
    after = partition(before)
    assert list(events(after, {}, {"n": n})) == list(events(before, {}, {"n": n}))


def test_the_steady_part_has_no_test() -> None:
    x = axis("x")
    tested = If((as_expr(1) <= x) & (x < N - 1), Store(FAST, (x,), as_expr(1)), Store(SLOW, (x,), as_expr(1)))
    after = partition(loop(x, 0, N, tested))
    assert not any(isinstance(s, If) for s in walk(after))
    assert isinstance(after, Sequence) and [s.body.buffer for s in after.body] == [SLOW, FAST, SLOW]  # type: ignore[union-attr]


def test_a_test_without_another_branch_stays() -> None:
    x = axis("x")
    before = loop(x, 0, N, If(x < 3, Store(FAST, (x,), as_expr(1))))
    assert partition(before) == before


@settings(max_examples=60, deadline=None)
@given(n=st.integers(0, 20), low=st.integers(-3, 5), scale=st.sampled_from([1, 2, -1]), offset=st.integers(-6, 12))
def test_loops_that_store_small_numbers_run_no_further_than_their_test_holds(n: int, low: int, scale: int, offset: int) -> None:
    x, y = axis("x"), axis("y")
    inside = (binary("mul", x, as_expr(scale)) < as_expr(offset)) & (y < as_expr(N)) & (as_expr(2) <= y)
    before = loop(y, 0, 12, loop(x, low, 9, If(inside, Store(FAST, (y, x), as_expr(1)))))
    assert shortened(before, {FAST: "float32"}) == before
    after = shortened(before, {FAST: "bfloat16"})
    assert list(events(after, {}, {"n": n})) == list(events(before, {}, {"n": n}))
    assert not any(isinstance(s, If) for s in walk(after))
