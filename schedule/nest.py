"""Loop nests: the loops of one stage, and how its axes follow from them.

A nest starts with one loop per axis of its stage, reduction axes innermost. Names belong to a nest; a used-up name is remembered with the
directive that took it, so that a message can say what became of it. Nothing here knows a target's code generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fluorite.algo.expr import Axis, Expr, as_expr, binary
from fluorite.algo.extent import Extent
from fluorite.algo.rewriting import axes_of, rewrite

SERIAL, PARALLEL, VECTOR, UNROLLED, BLOCK, THREAD = "serial", "parallel", "vectorized", "unrolled", "block", "thread"
VTHREAD = "vthread"
"""Threads of which a real one runs several."""
TENSOR = "tensorized"
"""Part of what one instruction computes."""


@dataclass(frozen=True, eq=False)
class Loop:
    """One loop from 0 to `extent`. `lane` is "x", "y" or "z" for a loop bound to blocks or threads."""

    name: str
    var: Axis
    extent: Extent
    reduction: bool
    kind: str = SERIAL
    lane: str = ""
    shuffled: bool = False  # of threads: they are the lanes of a warp

    @property
    def constant(self) -> int | None:
        return self.extent if isinstance(self.extent, int) else None


@dataclass(frozen=True)
class Guard:
    """`value < limit` must be tested, because a split did not divide; `tail` is how its directive wants that done.

    Of a split in two, `outer` and `inner` are the new variables: value = outer * factor + inner.
    """

    value: Axis
    limit: Extent | Expr
    tail: str = "auto"
    outer: Axis | None = None
    inner: Axis | None = None
    factor: int = 0


@dataclass(frozen=True)
class Nest:
    """loops, outermost first; `define` gives every loop variable that a directive replaced in terms of newer ones."""

    path: str
    loops: tuple[Loop, ...]
    define: Mapping[Axis, Expr] = field(default_factory=dict)
    guards: tuple[Guard, ...] = ()
    gone: Mapping[str, str] = field(default_factory=dict)  # used-up loop name -> what took it
    lost: frozenset[str] = frozenset()  # names that refused directives would have made: nobody is told again that these are missing

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(loop.name for loop in self.loops)

    def loop(self, name: str) -> Loop | None:
        return next((loop for loop in self.loops if loop.name == name), None)

    def position(self, name: str) -> int:
        return self.names.index(name)

    def value(self, var: Axis) -> Expr:
        """A stage axis (or a replaced loop variable) in terms of the loops that there are."""
        definition = self.define.get(var)
        return var if definition is None else _expand(definition, self.define)

    def text(self) -> str:
        lines = [f"{self.path}:"]
        for depth, loop in enumerate(self.loops):
            kind = "" if loop.kind == SERIAL else f"{loop.kind}{'.' + loop.lane if loop.lane else ''} "
            lines.append("  " * (depth + 1) + f"{kind}for {loop.name} in 0..{loop.extent}" + ("  (reduction)" if loop.reduction else ""))
        return "\n".join(lines)


def _expand(e: Expr, define: Mapping[Axis, Expr]) -> Expr:
    def rule(n: Expr) -> Expr | None:
        if isinstance(n, Axis) and n in define:
            return _expand(define[n], define)
        return None

    return rewrite(e, rule)


def start(
    path: str, axes: Sequence[Axis], extents: Sequence[Extent], reduce_axes: Sequence[Axis] = (), reduce_extents: Sequence[Extent] = ()
) -> Nest:
    """The unscheduled nest of a stage over a box."""
    loops = [Loop(a.name, a, n, False) for a, n in zip(axes, extents, strict=True)]
    loops += [Loop(a.name, a, n, True) for a, n in zip(reduce_axes, reduce_extents, strict=True)]
    return Nest(path, tuple(loops))


def shifted(nest: Nest, guard: Guard) -> Nest | None:
    """The nest with the last part of a split moved back so that it ends with the loop: computed again where it overlaps, never beyond.

    None where the loop may be shorter than a part, or where a reduction runs outside it, so that what is computed again would be
    added again.
    """
    if guard.outer is None or guard.inner is None or not isinstance(guard.limit, int) or guard.limit < guard.factor:
        return None
    first = next((n for n, loop in enumerate(nest.loops) if loop.reduction), len(nest.loops))
    outside = axes_of(nest.value(guard.outer))
    position = {loop.var: n for n, loop in enumerate(nest.loops)}
    if any(nest.loops[position[a]].reduction or position[a] > first for a in outside if a in position):
        return None
    start_ = binary("min", binary("mul", guard.outer, as_expr(guard.factor)), as_expr(guard.limit - guard.factor))
    return replace(
        nest,
        define={**nest.define, guard.value: binary("add", start_, guard.inner)},
        guards=tuple(g for g in nest.guards if g is not guard),
    )
