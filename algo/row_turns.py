"""Turns that write one row, recognised: a carry of fl.while_loop that a turn leaves as it is but at one position of an axis.

``where(t == step, y, every[t])`` asks at every turn every position whether it is the one. Where nothing else of the loop reads ``every``,
one write at that position is all there is to do. It is how fl.scan stacks what its steps give where it is such a loop, and with it takes
time in proportion to its steps. ``every[t] + where(t == step, y, 0)`` is one too, up to the sign of a zero: so derivatives by what steps
read at a position of their own are added up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .expr import Axis, Const, Expr, Op, Read, as_expr, binary
from .rewriting import axes_of, reads, substitute
from .stages import Stage


@dataclass(frozen=True, eq=False)
class RowTurn:
    """For all positions of the other axes of `carry` at which the `guards` hold, `value` is written at `position` of `axis`, if there is
    such a position. Axes are those of the carry; `within` are the stages of which nothing else is left to compute."""

    carry: Stage
    axis: Axis
    position: Expr
    guards: tuple[Expr, ...]
    value: Expr
    within: frozenset[int]

    @property
    def others(self) -> tuple[Axis, ...]:
        return tuple(a for a in self.carry.axes if a is not self.axis)


def row_turns(unit: Sequence[Stage], becomes: Mapping[int, int]) -> dict[int, RowTurn]:
    """By carry, how a turn of the loop writes it, of those that are written so. `becomes` has what each carry becomes."""
    by_id = {s.id: s for s in unit}
    readers = Counter(i for s in unit for i in dict.fromkeys(s.sources))
    found = ((i, _row_turn(by_id[i], new, by_id, readers)) for i, new in becomes.items())
    return {i: w for i, w in found if w is not None}


def _row_turn(carry: Stage, new: int, by_id: Mapping[int, Stage], readers: Counter[int]) -> RowTurn | None:
    within: set[int] = set()
    tests: list[Expr] = []
    value: Expr = Read(new, carry.axes, carry.dtype)
    added = False
    while True:
        match value:
            case Read(source=i) if i != carry.id and _same(value, carry) and _plain(by_id.get(i), carry) and readers[i] == 1:
                within.add(i)
                value = substitute(by_id[i].value, dict(zip(by_id[i].axes, carry.axes, strict=True)))
            case Op(op="where" | "select", args=(test, then, kept)) if not added and _is_kept(kept, carry):
                tests += _parts(test)
                value = then
            case Op(op="add", args=(a, b)) if not added and (_is_kept(a, carry) or _is_kept(b, carry)):
                added, value = True, b if _is_kept(a, carry) else a
            case Op(op="where" | "select", args=(test, then, Const(value=0))) if added:
                tests += _parts(test)
                value = then
            case _:
                break
    alone = readers[carry.id] == sum(carry.id in by_id[i].sources for i in within)
    at = next((p for t in tests if (p := _position(t, carry)) is not None), None)
    if at is None or not alone or any(r.source == carry.id for e in (value, *tests) for r in reads(e)):
        return None
    test, axis, position = at
    guards = tuple(t for t in tests if t is not test)
    if any(axis in set(axes_of(e)) for e in guards):
        return None
    value = substitute(value, {axis: position})
    if added:
        inside = Op("edge", (position, as_expr(carry.ranges[axis])), "int32", True)
        value = binary("add", Read(carry.id, tuple(inside if a is axis else a for a in carry.axes), carry.dtype), value)
    return RowTurn(carry, axis, position, guards, value, frozenset(within))


def _is_kept(e: Expr, carry: Stage) -> bool:
    """Whether an expression is the old value at the very position that is written."""
    return isinstance(e, Read) and e.source == carry.id and _same(e, carry)


def _same(r: Read, carry: Stage) -> bool:
    """Whether a read is at the very position that is written."""
    return len(r.index) == len(carry.axes) and all(i is a for i, a in zip(r.index, carry.axes, strict=True))


def _plain(s: Stage | None, carry: Stage) -> bool:
    """Whether a stage of the loop is its expression at each position and nothing more."""
    if s is None or s.turn is None or s.is_carry or carry.turn is None or s.loops != carry.loops:
        return False
    return s.reduction is None and s.clock is None and s.extern is None and s.rank is None and s.dtype == carry.dtype


def _parts(test: Expr) -> Iterator[Expr]:
    match test:
        case Op(op="and", args=(a, b)):
            yield from _parts(a)
            yield from _parts(b)
        case _:
            yield test


def _position(test: Expr, carry: Stage) -> tuple[Expr, Axis, Expr] | None:
    """The axis that is compared with a position, and that position."""
    match test:
        case Op(op="eq", args=(a, b)):
            for one, other in ((_uncast(a), b), (_uncast(b), a)):
                if isinstance(one, Axis) and any(one is x for x in carry.axes) and one not in set(axes_of(other)):
                    return test, one, other
    return None


def _uncast(e: Expr) -> Expr:
    while isinstance(e, Op) and e.op == "cast":
        e = e.args[0]
    return e


__all__ = ["RowTurn", "row_turns"]
