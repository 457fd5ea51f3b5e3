"""Writes of rows, recognised: new values of state that differ from the old ones in the rows at some positions only.

``where(0 <= last[r], v[last[r]], old[r])``, with last[r] the last of the k with ``ids[k] == r``, asks every row whether something arrived.
Read the other way round, each k writes ``v[k]`` to row ``ids[k]``, in their order; where the new value lies where the old one lay, that is
all there is to do. It is how ``fl.scatter`` and lazy optimisers say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .expr import Axis, Const, Expr, Op, Read
from .extent import Extent
from .rewriting import reads
from .stages import Leaf, Stage

if TYPE_CHECKING:
    from .graph import Graph


@dataclass(frozen=True, eq=False)
class RowWrite:
    """For each of the `count` values of `each`, in order, `value` is written to row `position` of `old` along `row`, an axis of the stage,
    if there is such a row. In `value`, the read `which` stands for the number of the write, and `row` for its position."""

    stage: Stage
    old: Leaf
    last: Stage
    row: Axis
    which: Read
    value: Expr
    each: Axis
    count: Extent
    position: Expr

    @property
    def stored(self) -> frozenset[int]:
        """What has to be computed before anything is written: what says where, and all that is read at the number of a write."""
        numbered = (r.source for r in reads(self.value) if any(i is self.which or self.which in set(reads(i)) for i in r.index))
        return frozenset((self.last.id, *numbered))


def row_write(stage: Stage, old: Leaf, by_id: Mapping[int, Leaf | Stage]) -> RowWrite | None:
    """How the stage, a new value of `old`, writes rows, if it does."""
    if stage.reduction is not None or stage.clock is not None or stage.turn is not None or stage.when is not None:
        return None
    match stage.value:
        case Op(op="where", args=(Op(op="le", args=(Const(value=0), Read(index=(Axis() as row,)) as which)), value, Read() as kept)):
            last = by_id[which.source]
            whole = kept.source == old.id and all(i is a for i, a in zip(kept.index, stage.axes, strict=True))
            if not whole or not isinstance(last, Stage) or last.reduction is None or last.reduction.kind != "max" or last.when is not None:
                return None
            found = last.scatter
            if found is None or found.free or found.predicates or len(last.reduce_axes) != 1 or row not in stage.ranges:
                return None
            (each,) = last.reduce_axes
            if _plain(found.value) is not each or last.extents[0] != stage.ranges[row]:
                return None
            if any(r.source in (old.id, stage.id) for r in reads(value)):
                return None
            return RowWrite(stage, old, last, row, which, value, each, last.ranges[each], found.index[0])
    return None


def row_writes(g: Graph) -> dict[int, RowWrite]:
    """By the new value of each parameter or state that is written so, how."""
    found = ((i, row_write(s, old, g.by_id)) for i, old in g.updates.items() if (s := g.stage(i)) is not None)
    return {i: w for i, w in found if w is not None}


def _plain(e: Expr) -> Expr:
    """An axis without a cast of it."""
    while isinstance(e, Op) and e.op == "cast":
        e = e.args[0]
    return e


__all__ = ["RowWrite", "row_write", "row_writes"]
