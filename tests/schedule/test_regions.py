"""Regions against brute force: what an iteration reads lies inside the box that is derived for it, and affine boxes are exact."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from fluorite.algo.expr import Axis, Expr, Op, as_expr, axis, binary
from fluorite.algo.extent import Extent, evaluate, symbol
from fluorite.schedule.regions import Box, Interval, image, raw_required, required, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from index_values import index_value

N = symbol("n")


def clamp(e: Expr, n: Extent) -> Expr:
    return Op("edge", (e, as_expr(n)), "int32", True)


@dataclass(frozen=True)
class Around:
    """A box over axes i and j inside an outer loop o, and the extent of o."""

    o: Axis
    i: Axis
    j: Axis
    box: Box
    outer: Extent

    def places(self, sizes: Mapping[str, int]) -> Iterator[dict[Axis, int]]:
        for o in range(evaluate(self.outer, sizes)):
            yield {self.o: o}

    def points(self, at: Mapping[Axis, int], sizes: Mapping[str, int]) -> Iterator[dict[Axis, int]]:
        ranges = []
        for a in (self.i, self.j):
            first, length = (index_value(x, at, sizes) for x in (self.box[a].start, self.box[a].length))
            assert length <= evaluate(self.box[a].bound, sizes)
            ranges.append(range(first, first + length))
        for i, j in itertools.product(*ranges):
            yield {**at, self.i: i, self.j: j}


@st.composite
def boxes(draw: st.DrawFn) -> Around:
    """i in a tile of the outer loop, with a tail or without; j over a whole extent."""
    o, i, j = axis("o"), axis("i"), axis("j")
    tile = draw(st.integers(1, 6))
    total: Extent = draw(st.sampled_from([N, 7, 12]))
    start = binary("mul", o, as_expr(tile))
    length: Expr = as_expr(tile)
    outer: Extent = (total + tile - 1) // tile
    if draw(st.booleans()):
        length = binary("min", length, binary("sub", as_expr(total), start))
    inner: Extent = draw(st.sampled_from([1, 3, N]))
    return Around(o, i, j, {i: Interval(start, length, tile), j: whole(inner)}, outer)


@st.composite
def affine(draw: st.DrawFn, around: Around) -> Expr:
    e: Expr = as_expr(draw(st.integers(-4, 4)))
    for a in (around.i, around.j, around.o):
        e = binary("add", e, binary("mul", a, as_expr(draw(st.integers(-2, 3)))))
    return e


@st.composite
def indices(draw: st.DrawFn, around: Around, size: Extent) -> Expr:
    """Affine, strided, halved and clamped indices, and clamps of clamps."""
    e = draw(affine(around))
    for _ in range(draw(st.integers(0, 2))):
        match draw(st.sampled_from(["floordiv", "edge", "other edge", "shift"])):
            case "floordiv":
                e = binary("floordiv", e, as_expr(draw(st.integers(2, 5))))
            case "edge":
                e = clamp(e, size)
            case "other edge":
                e = clamp(e, draw(st.sampled_from([5, N + 1])))
            case "shift":
                e = binary("add", e, as_expr(draw(st.integers(-2, 2))))
    return e


SIZES = st.fixed_dictionaries({"n": st.integers(1, 9)})


def read(e: Expr, around: Around, at: Mapping[Axis, int], sizes: Mapping[str, int]) -> list[int]:
    return [index_value(e, point, sizes) for point in around.points(at, sizes)]


@settings(max_examples=120, deadline=None)
@given(data=st.data(), around=boxes(), sizes=SIZES)
def test_the_image_of_an_affine_index_is_exact(data: st.DataObject, around: Around, sizes: dict[str, int]) -> None:
    e = data.draw(affine(around))
    raw = image(e, around.box)
    assert raw is not None
    for at in around.places(sizes):
        found = read(e, around, at, sizes)
        first, last = index_value(raw.first, at, sizes), index_value(raw.last, at, sizes)
        assert (first, last) == (min(found), max(found))
        assert last - first + 1 <= evaluate(raw.bound, sizes)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), around=boxes(), sizes=SIZES)
def test_the_image_of_any_index_covers_it(data: st.DataObject, around: Around, sizes: dict[str, int]) -> None:
    e = data.draw(indices(around, N + 2))
    raw = image(e, around.box)
    if raw is None:
        return
    for at in around.places(sizes):
        found = read(e, around, at, sizes)
        first, last = index_value(raw.first, at, sizes), index_value(raw.last, at, sizes)
        assert first <= min(found) and max(found) <= last
        assert last - first + 1 <= evaluate(raw.bound, sizes)


@st.composite
def sites(draw: st.DrawFn, around: Around, size: Extent) -> list[Expr]:
    """One index, or several beside one another, as stencils have."""
    e = draw(indices(around, size))
    out = [e]
    for _ in range(draw(st.integers(0, 2))):
        moved = binary("add", draw(st.sampled_from([e, draw(indices(around, size))])), as_expr(draw(st.integers(-3, 3))))
        out.append(clamp(moved, size) if draw(st.booleans()) else moved)
    return out


def _inside(found: list[int], n: int) -> list[int]:
    """The reads that count: others stand under a condition that is false there."""
    return [r for r in found if 0 <= r < n]


@settings(max_examples=200, deadline=None)
@given(data=st.data(), around=boxes(), sizes=SIZES, size=st.sampled_from([N, N + 2, 2 * N, 9]))
def test_what_is_required_covers_every_read_and_stays_inside(
    data: st.DataObject, around: Around, sizes: dict[str, int], size: Extent
) -> None:
    where = data.draw(sites(around, size))
    (interval,) = required([(e,) for e in where], [around.box] * len(where), (size,), {around.o: around.outer})
    n = evaluate(size, sizes)
    for at in around.places(sizes):
        start, length = index_value(interval.start, at, sizes), index_value(interval.length, at, sizes)
        for e in where:
            found = _inside(read(e, around, at, sizes), n)
            assert not found or (start <= min(found) and max(found) < start + length)
        assert start >= 0 and start + length <= n
        assert length <= evaluate(interval.bound, sizes)
        assert not interval.whole or (start, length) == (0, n)


@settings(max_examples=200, deadline=None)
@given(data=st.data(), around=boxes(), sizes=SIZES, size=st.sampled_from([N, N + 2, 2 * N, 9]))
def test_a_tile_that_may_stick_out_covers_every_read(data: st.DataObject, around: Around, sizes: dict[str, int], size: Extent) -> None:
    where = data.draw(sites(around, size))
    (interval,) = raw_required([(e,) for e in where], [around.box] * len(where), (size,), {around.o: around.outer})
    if interval is None:
        return
    assert isinstance(interval.bound, int)
    n = evaluate(size, sizes)
    for at in around.places(sizes):
        start = index_value(interval.start, at, sizes)
        for e in where:
            found = _inside(read(e, around, at, sizes), n)
            assert not found or (start <= min(found) and max(found) < start + interval.bound)


def test_a_stencil_needs_its_tile_and_its_margin() -> None:
    y, outer = axis("y"), axis("outer")
    box = {y: Interval(binary("mul", outer, as_expr(8)), as_expr(8), 8)}
    (interval,) = required([(clamp(y - 1, N),), (y,), (clamp(y + 1, N),)], [box] * 3, (N,), {outer: N // 8})
    assert interval.bound == 10 and not interval.whole
    tile = raw_required([(y - 1,), (y + 1,)], [box] * 2, (N,), {outer: N // 8})[0]
    assert tile is not None and tile.bound == 10 and index_value(tile.start, {outer: 2}, {"n": 99}) == 15


@pytest.mark.parametrize(
    ("index", "bound"),
    [("y", 8), ("2 * y", 15), ("y // 2", 4), ("y + z", 10), ("3 - y", 8), ("(y + 1) // 2", 5)],
)
def test_bounds_are_constant_and_small(index: str, bound: int) -> None:
    """The bound is what is allocated: of an aligned tile of eight, with a window of three."""
    y, z, outer = axis("y"), axis("z"), axis("outer")
    box = {y: Interval(binary("mul", outer, as_expr(8)), as_expr(8), 8), z: whole(3)}
    raw = image(eval(index, {"y": y, "z": z}), box)
    assert raw is not None and raw.bound == bound


def test_an_index_that_is_data_needs_everything() -> None:
    y, k = axis("y"), axis("k")
    assert image(binary("mul", y, k), {y: whole(4), k: whole(4)}) is None
    (interval,) = required([(binary("mul", y, k),)], [{y: whole(4), k: whole(4)}], (N,), {})
    assert interval.whole and interval.bound is N
