"""Where the elements of small matrices lie in memory: what an instruction reads, against what a stage reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fluorite.algo.expr import Axis, Const, Expr, Op, Read, as_expr, binary
from fluorite.algo.extent import Extent
from fluorite.algo.linear import Ranges, linear, simplify, within
from fluorite.algo.rewriting import axes_of, rewrite, substitute
from fluorite.algo.stages import Stage
from fluorite.algo.tensor import conjuncts

from . import logic
from .context import Context, Placed


def strides_of(shape: Sequence[Extent]) -> list[Extent]:
    """How far apart in memory neighbours along each dimension are."""
    strides: list[Extent] = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return strides


def is_multiple(n: Extent, of: int) -> bool:
    return isinstance(n, int) and n % of == 0


def starts_at(index: Sequence[Expr], shape: Sequence[Extent], multiple: int) -> bool:
    """Whether the index is that of an element whose number in memory is a multiple."""
    parts = ((linear(i), stride) for i, stride in zip(index, strides_of(shape), strict=True))
    return all(is_multiple(c * stride, multiple) for form, stride in parts for c in (form.constant, *(c for _, c in form.terms)))


def offsets(index: Sequence[Expr], shape: Sequence[Extent], loops: Mapping[Axis, int], ranges: Ranges) -> dict[Axis, list[Extent]] | None:
    """By each loop: how many elements further its iterations are than its first. None where that depends on other loops."""
    strides = strides_of(shape)
    if any(sum(a in loops for a in set(axes_of(atom))) > 1 for i in index for atom in linear(i).atoms):
        return None
    found: dict[Axis, list[Extent]] = {}
    for loop, n in loops.items():
        found[loop] = [0] * n
        for i, stride in zip(index, strides, strict=True):
            moved = _moved(i, loop, n, ranges)
            if moved is None:
                return None
            found[loop] = [total + m * stride for total, m in zip(found[loop], moved, strict=True)]
    return found


def _moved(i: Expr, loop: Axis, n: int, ranges: Ranges) -> list[Extent] | None:
    """How much more an index is in each iteration of a loop than in the first; None where that depends on something else."""
    if loop not in set(axes_of(i)):
        return [0] * n
    form = linear(i)
    if all(a is loop or loop not in set(axes_of(a)) for a in form.atoms):
        return [form.coefficient(loop) * v for v in range(n)]
    out: list[Extent] = []
    first = simplify(substitute(i, {loop: as_expr(0)}), ranges)
    for v in range(n):
        moved = linear(simplify(binary("sub", substitute(i, {loop: as_expr(v)}), first), ranges))
        if moved.terms:
            return None
        out.append(moved.constant)
    return out


def start_of(index: Sequence[Expr], loops: Mapping[Axis, int], ranges: Ranges) -> tuple[Expr, ...]:
    """The index at the first iteration of every loop."""
    return tuple(simplify(substitute(i, {loop: as_expr(0) for loop in loops}), ranges) for i in index)


def is_zero_beyond(work: Context, p: Placed, read: Read, value: Expr, limit: Expr, loops: Mapping[Axis, int]) -> bool:
    """Whether what p reads here is there, and 0, wherever value >= limit: a pack fills up with zeros. `loops` are the innermost ones."""
    index = tuple(simplify(rewrite(i, lambda n: p.values.get(n) if isinstance(n, Axis) else None), work.ranges) for i in read.index)
    source = work.graph[read.source]
    moving = set(axes_of(value))
    inside = (within(i, n, work.ranges) for i, n in zip(index, source.shape, strict=True) if moving & set(axes_of(i)))
    if not isinstance(source, Stage) or not all(inside):
        return False
    return _filled(work, source, index, binary("sub", value, limit), {a: n for a, n in loops.items() if a in moving})


def _follows(work: Context, x: Expr, y: Expr, loops: Mapping[Axis, int]) -> bool:
    """Whether x >= 0 wherever y >= 0, in every iteration of the loops: y is x, or so many times x plus what is less than that."""
    if loops:
        (loop, n), *rest = loops.items()
        at = ({loop: as_expr(v)} for v in range(n))
        return all(_follows(work, substitute(x, v), substitute(y, v), dict(rest)) for v in at)
    x, y = (simplify(e, work.ranges) for e in (x, y))
    if logic.same(x, y):
        return True
    (atom, own), times = next(iter(linear(x).terms), (None, 1)), None
    if atom is not None and isinstance(own, int) and isinstance(other := linear(y).coefficient(atom), int):
        times = other // own
    if times is None or times < 2:
        return False
    rest_of = linear(simplify(binary("sub", y, binary("mul", x, as_expr(times))), work.ranges))
    return not rest_of.terms and isinstance(rest_of.constant, int) and 0 <= rest_of.constant < times


def _filled(work: Context, s: Stage, index: Sequence[Expr], excess: Expr, loops: Mapping[Axis, int]) -> bool:
    """Whether the stage is 0 at an index wherever `excess` is not negative."""
    at = dict(zip(s.axes, index, strict=True))

    def here(e: Expr) -> Expr:
        return simplify(rewrite(e, lambda n: at.get(n) if isinstance(n, Axis) else None), work.ranges)

    value = s.value if s.reduction is None else None
    while isinstance(value, Op) and value.op == "where":
        condition, value, other = value.args
        if isinstance(other, Const) and other.value == 0:
            tests = (c for c in conjuncts(condition) if isinstance(c, Op) and c.op == "lt")
            if any(_follows(work, binary("sub", here(c.args[0]), here(c.args[1])), excess, loops) for c in tests):
                return True
    if isinstance(value, Read) and isinstance(source := work.graph[value.source], Stage):
        return _filled(work, source, tuple(map(here, value.index)), excess, loops)
    return False


__all__ = ["is_multiple", "is_zero_beyond", "offsets", "start_of", "starts_at"]
