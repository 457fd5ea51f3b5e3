"""Which part of a producer some iterations of its consumers need: boxes, from the index expressions alone.

An interval is a start (an expression over the loops outside), an exact length (an expression) and a bound of that length that holds for
every iteration (an extent, constant wherever possible, since it is what gets allocated).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fluorite.algo.expr import Axis, Expr, Op, Read, as_expr, binary
from fluorite.algo.extent import Extent, at_most, exact_quotient, floordiv, maximum, minimum, nonnegative
from fluorite.algo.linear import Ranges, bounds, is_index, linear, simplify, within
from fluorite.algo.rewriting import axes_of, walk


@dataclass(frozen=True, eq=False)
class Raw:
    """First and last value, before clamping to a dimension, and a bound of their distance plus one; None where anything is possible."""

    first: Expr
    last: Expr
    bound: Extent


@dataclass(frozen=True, eq=False)
class Interval:
    """[start, start + length), length <= bound. `whole` marks all of a dimension, `sticking` what may reach outside it.

    `reach` covers the interval and is simpler: its ends before they were clamped to the dimension. What is read from there is taken of it,
    so that the parts that several readers need can be compared.
    """

    start: Expr
    length: Expr
    bound: Extent
    whole: bool = False
    sticking: bool = False
    reach: Raw | None = None

    @property
    def last(self) -> Expr:
        return binary("sub", binary("add", self.start, self.length), as_expr(1))


Box = Mapping[Axis, Interval]


def whole(n: Extent) -> Interval:
    return Interval(as_expr(0), as_expr(n), n, True)


def image(e: Expr, box: Box) -> Raw | None:
    """The values of an index expression over a box."""
    form = linear(e)
    first: Expr = as_expr(form.constant)
    last: Expr = first
    bound: Extent = 1
    for atom, c in form.terms:
        part = _atom(atom, box)
        if part is None or not (nonnegative(c) or nonnegative(c * -1)):
            return None
        low, high = (part.first, part.last) if nonnegative(c) else (part.last, part.first)
        first = binary("add", first, binary("mul", low, as_expr(c)))
        last = binary("add", last, binary("mul", high, as_expr(c)))
        bound = bound + (part.bound - 1) * (c if nonnegative(c) else c * -1)
    return Raw(first, last, bound)


def _atom(e: Expr, box: Box) -> Raw | None:
    if isinstance(e, Op) and not any(n in box or isinstance(n, Read) for n in walk(e)):  # one value, whatever the operation
        return Raw(e, e, 1)
    match e:
        case Axis():
            found = box.get(e)
            return Raw(e, e, 1) if found is None else found.reach or Raw(found.start, found.last, found.bound)
        case Op(op="floordiv", args=(a, b)) if is_index(e) and not linear(b).terms and nonnegative(linear(b).constant - 1):
            raw, k = image(a, box), linear(b).constant
            if raw is None:
                return None
            begins = linear(raw.first)
            aligned = all(exact_quotient(c, k) is not None for c in (begins.constant, *(c for _, c in begins.terms)))
            bound = 1 if raw.bound == 1 else floordiv(raw.bound - 1, k) + 1 if aligned else floordiv(raw.bound + k - 2, k) + 1
            first, last = (simplify(binary("floordiv", e, b), {}) for e in (raw.first, raw.last))  # to compare it with other readers'
            return Raw(first, last, bound)
        case Op(op="mod", args=(a, _)) if is_index(e):
            raw = image(a, box)
            return Raw(_at(e, raw.first), _at(e, raw.first), 1) if raw is not None and raw.bound == 1 else None
        case Op(op="edge", args=(a, n)):
            raw = image(a, box)
            if raw is None:
                return None
            size = linear(n).constant
            return Raw(
                Op("edge", (raw.first, n), "int32", True),
                Op("edge", (raw.last, n), "int32", True),
                minimum(raw.bound, size) if isinstance(size, int) else raw.bound,
            )
    return None


def _at(e: Op, first: Expr) -> Expr:
    """`e` at the one value that its argument takes."""
    return Op(e.op, (first, e.args[1]), e.dtype, e.weak)


def required(
    indices: list[tuple[Expr, ...]],
    boxes: list[Box],
    shape: tuple[Extent, ...],
    ranges: Ranges,
    inside: bool = False,
    readers: Sequence[Ranges] = (),
) -> list[Interval]:
    """Per dimension the smallest interval that covers reads at `indices`, each over its box, clamped to the dimension.

    `inside` says that boxes which do not stick out hold only positions that are there, whatever the ranges of the loops say. `readers` are
    the ranges of the axes of each reader.
    """
    out = []
    for d, n in enumerate(shape):
        same = _one_interval([index[d] for index in indices], boxes) if inside else None
        if same is not None:
            out.append(same)
            continue
        plain = [_unclamped(index[d], n) for index in indices]
        raws = [image(e, box) for e, box in zip(plain, boxes, strict=True)]
        joined: Raw | None = raws[0]
        for raw in raws[1:]:
            joined = _join(joined, raw)
        made = _clamp(joined, n, ranges)
        if joined is not None and not made.whole and (_overlaps(joined, n, ranges) or (readers and _meets(plain, boxes, readers, n))):
            made = replace(made, reach=Raw(simplify(joined.first, ranges), simplify(joined.last, ranges), joined.bound))
        out.append(made)
    return out


def _overlaps(raw: Raw, n: Extent, ranges: Ranges) -> bool:
    """Whether the first of these positions is surely below n, and the last not below 0: then clamping them only cuts off."""
    first, last = bounds(simplify(raw.first, ranges), ranges)[1], bounds(simplify(raw.last, ranges), ranges)[0]
    return first is not None and at_most(first, n - 1) and last is not None and nonnegative(last)


def _meets(plain: Sequence[Expr], boxes: Sequence[Box], readers: Sequence[Ranges], n: Extent) -> bool:
    """The same, where it is the readers' own axes that say so."""
    sticks = [any(a in box and box[a].sticking for a in axes_of(e)) for e, box in zip(plain, boxes, strict=True)]
    known = [bounds(e, r) for e, r, out in zip(plain, readers, sticks, strict=True) if not out]
    below = any(high is not None and at_most(high, n - 1) for _, high in known)
    return below and any(low is not None and nonnegative(low) for low, _ in known)


def _one_interval(indices: list[Expr], boxes: list[Box]) -> Interval | None:
    """The interval that all readers cover, if they read this dimension at one axis each, inside it, over the same interval."""
    found = [box.get(i) if isinstance(i, Axis) else None for i, box in zip(indices, boxes, strict=True)]
    first = found[0]
    if first is None or any(i is None or i.sticking or i.start is not first.start or i.length is not first.length for i in found):
        return None
    return first


def raw_required(indices: list[tuple[Expr, ...]], boxes: list[Box], shape: tuple[Extent, ...], ranges: Ranges) -> list[Interval | None]:
    """As `required`, but a tile of constant size that may stick out at its end. None where the size is not constant.

    A read that is clamped may land beside where its index points, so then the tile begins inside the dimension.
    """
    out: list[Interval | None] = []
    for d, n in enumerate(shape):
        plain = [_unclamped(index[d], n) for index in indices]
        raws = [image(e, box) for e, box in zip(plain, boxes, strict=True)]
        joined: Raw | None = raws[0]
        for raw in raws[1:]:
            joined = _join(joined, raw)
        if joined is None or not isinstance(joined.bound, int):
            out.append(None)
            continue
        first = simplify(joined.first, ranges)
        if any(e is not index[d] for e, index in zip(plain, indices, strict=True)) and not within(first, n, ranges):
            first = simplify(Op("edge", (first, as_expr(n)), "int32", True), ranges)
        out.append(Interval(first, as_expr(joined.bound), joined.bound))
    return out


def _unclamped(e: Expr, n: Extent) -> Expr:
    """Inside [0, n) a clamp to [0, n) changes nothing, and the result is clamped in the end."""
    match e:
        case Op(op="edge", args=(a, size)) if linear(size).constant == n:
            return _unclamped(a, n)
    return e


def _join(a: Raw | None, b: Raw | None) -> Raw | None:
    if a is None or b is None:
        return None
    apart = linear(binary("sub", b.first, a.first))
    if apart.terms:
        return None
    d = apart.constant
    if not (nonnegative(d) or nonnegative(d * -1)):
        return None
    later = nonnegative(d)
    ends = linear(binary("sub", b.last, a.last))
    last = (
        (b.last if ends.constant >= 0 else a.last) if not ends.terms and isinstance(ends.constant, int) else binary("max", a.last, b.last)
    )
    bound = maximum(a.bound, b.bound + d) if later else maximum(b.bound, a.bound - d)
    return Raw(a.first if later else b.first, last, bound)


def _clamp(raw: Raw | None, n: Extent, ranges: Ranges) -> Interval:
    if raw is None:
        return whole(n)
    first, last = simplify(raw.first, ranges), simplify(raw.last, ranges)
    first = first if within(first, n, ranges) else simplify(Op("edge", (first, as_expr(n)), "int32", True), ranges)
    last = last if within(last, n, ranges) else simplify(Op("edge", (last, as_expr(n)), "int32", True), ranges)
    bound = raw.bound if at_most(raw.bound, n) else n if at_most(n, raw.bound) else raw.bound if isinstance(raw.bound, int) else n
    length = simplify(binary("add", binary("sub", last, first), as_expr(1)), ranges)
    if not linear(first).terms and linear(first).constant == 0 and linear(length).constant == n and not linear(length).terms:
        return whole(n)
    return Interval(first, length, bound)
