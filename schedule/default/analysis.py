"""What the rules ask about stages: costs, volumes, how one reads another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import lcm

from fluorite.algo.dtypes import itemsize, kind
from fluorite.algo.expr import REAL, Axis, Const, Expr, Op, Read
from fluorite.algo.extent import Extent, at_most, volume
from fluorite.algo.graph import Graph
from fluorite.algo.linear import is_index, linear
from fluorite.algo.rewriting import axes_of, reads, rewrite, walk
from fluorite.algo.scatter import loop_extents
from fluorite.algo.stages import Stage, product_operands

from ..typical import guess

FREE = ("cast", "where", "select", "edge", "reflect", "wrap", "and", "or", "not", "lt", "le")
EXPENSIVE = {"div": 4, "sqrt": 4, "rsqrt": 6, "floordiv": 8, "mod": 8}
TRANSCENDENTAL = 12
MOST_PARTS = 4
"""Parts of an element that lie side by side and are taken apart in registers."""
MOST_PHASES = 4
"""Positions along an axis that are written out, where each is computed in its own way."""
SCALING = 3
"""Operations that are done again rather than a tensor stored."""


def cost(s: Stage) -> int:
    """A rough number of vector instructions for one evaluation of the value, and for what a combiner of the user's makes of it."""
    total = 0
    combiner = s.reduction.combiner if s.reduction is not None else None
    for n in dict.fromkeys(n for e in (s.value, *(combiner.results if combiner is not None else ())) for n in walk(e)):
        total += price(n)
    return total


def price(n: Expr) -> int:
    """A rough number of vector instructions for an operation, without its operands."""
    if not isinstance(n, Op) or (n.weak and n.dtype == "int32") or n.op in FREE:
        return 0
    return EXPENSIVE.get(n.op, TRANSCENDENTAL if n.op in REAL else 1)


def written_out(e: Expr, inlined: Mapping[int, int]) -> int:
    """The size of an expression when nothing in it is shared, as the code generator's passes walk it; a read of an inlined stage counts
    as the size given for it."""
    sizes: dict[Expr, int] = {}
    for n in walk(e):
        sizes[n] = (inlined.get(n.source, 1) if isinstance(n, Read) else 1) + sum(sizes[c] for c in n.operands)
    return sizes[e]


def levels(e: Expr, inlined: Mapping[int, int]) -> int:
    """The depth of an expression; a read of an inlined stage is as deep as the number given for it."""
    depth: dict[Expr, int] = {}
    for n in walk(e):
        own = inlined.get(n.source, 0) if isinstance(n, Read) else 0
        depth[n] = max(own, 1 + max((depth[c] for c in n.operands), default=0))
    return depth[e]


def work(s: Stage) -> Extent:
    """Evaluations of the value."""
    return volume(loop_extents(s))


def known(n: Extent, otherwise: int) -> int:
    return n if isinstance(n, int) else otherwise


def sites(c: Stage, p: int) -> list[tuple[Expr, ...]]:
    """The different indices at which c reads p."""
    return list(dict.fromkeys(r.index for r in c.reads if r.source == p))


def is_bare(index: tuple[Expr, ...]) -> bool:
    """Whether the index is different axes, one each."""
    return all(isinstance(i, Axis) for i in index) and len(set(index)) == len(index)


def unwoven(g: Graph, s: Stage) -> Stage:
    """s as if the parts of elements that it reads lay apart, in tensors of their own: vectors of one part are loaded as well as those. And
    as if rows of elements, read part by part, were rows."""

    def apart(e: Expr) -> Expr | None:
        match e:
            case Read(source, (*index, Const()), dtype) if index and isinstance(n := g[source].shape[-1], int) and 1 < n <= MOST_PARTS:
                return Read(source, tuple(index), dtype)
            case Read(source, (*index, Op(op="floordiv", args=(x, n)), Op(op="mod", args=(y, m))), dtype) if x is y and n is m:
                return Read(source, (*index, x), dtype)
        return None

    value = rewrite(s.value, apart)
    return s if value is s.value else replace(s, value=value)


def pointwise(c: Stage, p: Stage) -> bool:
    """Whether c reads p only at its own position."""
    found = sites(c, p.id)
    return len(found) == 1 and len(found[0]) == len(c.axes) and all(i is a for i, a in zip(found[0], c.axes, strict=True))


def follows(c: Stage, p: Stage, depth: int) -> bool:
    """Whether every read of p by c starts with c's first `depth` axes."""
    return (
        len(p.axes) >= depth
        and len(c.axes) >= depth
        and all(all(i is a for i, a in zip(index[:depth], c.axes[:depth], strict=True)) for index in sites(c, p.id))
    )


def last_axis_is_contiguous(s: Stage, a: Axis) -> bool:
    """Whether most reads that depend on axis a run along memory with it."""
    found = [_runs_along(r, a) for r in s.reads if a in set(axes_of_index(r.index))]
    return 2 * sum(found) >= len(found)


def much_is_contiguous(s: Stage, a: Axis) -> bool:
    """Whether most of what is read at positions that depend on axis a runs along memory with it. A read that fewer loops change, as that
    of the mean of a row, is of fewer elements."""
    along = across = 0
    for r in s.reads:
        if a in (used := set(axes_of_index(r.index))):
            elements = guess(volume(s.ranges[x] for x in used))
            along, across = (along + elements, across) if _runs_along(r, a) else (along, across + elements)
    return along >= across


def _runs_along(r: Read, a: Axis) -> bool:
    return linear(plain(r.index[-1])).coefficient(a) == 1 and all(a not in set(axes_of(i)) for i in r.index[:-1])


def steps_along(s: Stage, a: Axis, most: int) -> bool:
    """Whether every read that depends on axis a moves along memory with it, by at most `most` elements a step."""
    for r in s.reads:
        if a in set(axes_of_index(r.index)):
            step = linear(plain(r.index[-1])).coefficient(a)
            if not isinstance(step, int) or not 1 <= step <= most or any(a in set(axes_of(i)) for i in r.index[:-1]):
                return False
    return True


def phases(s: Stage, a: Axis) -> int:
    """After how many positions along an axis what is divided there repeats, as `y % 2`; 1 where nothing is, or that is long."""
    divisors = [1]
    for e in walk(s.value):
        match e:
            case Op(op="floordiv" | "mod", args=(x, Const(value=by))) if is_index(e) and a in set(axes_of(x)):
                divisors.append(abs(int(by)) or 1)
    period = lcm(*divisors)
    return period if period <= MOST_PHASES else 1


def looked_up(s: Stage) -> list[Read]:
    """The reads of s at positions that are data."""
    return [r for r in s.reads if any(map(reads, r.index))]


def plain(e: Expr) -> Expr:
    """An index without its clamp."""
    return e.args[0] if isinstance(e, Op) and e.op in ("edge", "reflect", "wrap") else e


def axes_of_index(index: tuple[Expr, ...]) -> list[Axis]:
    return [a for i in index for a in axes_of(i)]


def is_flat(g: Graph, s: Stage) -> bool:
    """Whether s and everything it reads can be walked as one contiguous array."""
    for r in s.reads:
        t = g[r.source]
        if not t.shape:
            continue
        same = len(r.index) == len(s.axes) and all(i is a for i, a in zip(r.index, s.axes, strict=True))
        if not same or tuple(map(str, t.shape)) != tuple(map(str, s.extents)):
            return False
    return not any(isinstance(n, Axis) for n in _outside_reads(s.value))


def _outside_reads(e: Expr) -> Iterable[Expr]:
    """The nodes that are in no index."""
    seen: set[Expr] = set()
    pending = [e]
    while pending:
        n = pending.pop()
        if n not in seen:
            seen.add(n)
            pending += n.args if isinstance(n, Op) else ()
    return seen


def fits(a: Extent, b: Extent) -> bool:
    """Whether a <= b is sure."""
    return at_most(a, b)


def is_packed_at_load(g: Graph, s: Stage) -> bool:
    """Whether the stage is a parameter or a constant in fewer bits: made once, it takes less to read."""
    match s.value:
        case Op(op="cast", args=(Read(source, _, dtype),)):
            return g.is_fixed(g[source], s.method) and itemsize(s.dtype) < itemsize(dtype)
    return False


def is_rounding(s: Stage) -> bool:
    """Whether the stage is another tensor in fewer bits."""
    match s.value:
        case Op(op="cast", args=(Read(dtype=dtype),)):
            return kind(dtype) == kind(s.dtype) == "float" and itemsize(s.dtype) < itemsize(dtype)
    return False


def is_scaled(g: Graph, s: Stage) -> bool:
    """Whether the stage is another tensor times numbers, or nearly so: little is to be read and done for it."""
    wide = [r for r in s.reads if g[r.source].shape]
    same = len(wide) == 1 and len(wide[0].index) == len(s.axes) and all(i is a for i, a in zip(wide[0].index, s.axes, strict=True))
    return bool(s.axes) and s.reduction is None and same and cost(s) <= SCALING and not is_rounding(s)


def is_product(s: Stage) -> bool:
    """A sum of products in which the last axis is absent from one factor: operands are used again."""
    return factors(s) is not None


def factors(s: Stage) -> tuple[Read, Read] | None:
    """(the factor without the last axis, the factor with it) of a sum of products of two reads with reuse on both sides."""
    if not s.axes or (pair := product_operands(s)) is None:
        return None
    a, b = pair
    last = s.axes[-1]
    has = [last in set(axes_of_index(r.index)) for r in (a, b)]
    if has == [False, True]:
        return a, b
    return (b, a) if has == [True, False] else None
