"""Leaves and stages: what a Graph is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .clock import Clock, place
from .dtypes import NARROW, kind
from .expr import Axis, Expr, Op, Read, Size, where
from .extent import Extent
from .identities import identity
from .linear import Ranges, linear
from .printing import show
from .rewriting import reads, rewrite, walk

if TYPE_CHECKING:
    from .combiners import Combiner
    from .ranking import Rank
    from .scatter import Scatter


@dataclass(frozen=True)
class Leaf:
    """A tensor that no stage computes: an input of a method, a parameter or state of the Program, or a constant of the algorithm."""

    id: int
    path: str
    kind: str  # input | parameter | state | constant
    shape: tuple[Extent, ...]
    dtype: str
    axis_names: tuple[str | None, ...]
    value: Any = field(default=None, compare=False, repr=False)  # constant: ndarray; parameter or state: its initialiser
    source: str = ""
    complex: bool = False  # of complex numbers: real and imaginary part lie along the last axis, which no caller sees

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Reduction:
    """How a stage combines the values over its reduction axes: sum prod max min any all argmax argmin, or `reduce` with a combiner."""

    kind: str
    axes: tuple[Axis, ...]
    extents: tuple[Extent, ...]
    combiner: Combiner | None = None

    @property
    def in_order(self) -> bool:
        """Whether the elements are combined in the order of the axes, or else the result is another one."""
        return self.kind.startswith("arg") or (self.combiner is not None and not self.combiner.commutes)

    @property
    def label(self) -> str:
        """The kind, and what it combines with."""
        return self.kind if self.combiner is None else f"{self.kind}[{self.combiner.text()}]"

    def guarded(self, condition: Expr, value: Expr) -> Expr:
        """The value of the stage where the condition holds, else what changes nothing."""
        if self.combiner is None:
            return where(condition, value, identity(self.kind, value.dtype))
        parts = zip(self.combiner.parts(value), self.combiner.identity, strict=True)
        return self.combiner.value([where(condition, part, start) for part, start in parts], parts_axis(value))


@dataclass(frozen=True)
class Turn:
    """Being part of a loop that runs as long as a condition holds; all stages of one loop have the same `group`.

    A carry has a value before the first turn, which is what its stage says, and after each turn that of the stage `next`; `condition` is
    the stage that says whether there is another turn. All other stages of the loop are computed anew at each turn. A loop may be part of
    a turn of another one: `around` are the groups of those that it stands in, outermost first.
    """

    group: int
    next: int | None = None
    condition: int | None = None
    around: tuple[int, ...] = ()

    @property
    def loops(self) -> tuple[int, ...]:
        """The groups of all loops that the stage is part of, outermost first."""
        return (*self.around, self.group)

    @property
    def inside(self) -> Turn | None:
        """What is left of it within one turn of the outermost loop."""
        return replace(self, around=self.around[1:]) if self.around else None


NAMED_FILE = r"^__model_\d+_"
"""What the name of a module begins with that is a file named on the command line, and not imported."""


@dataclass(frozen=True, eq=False)
class Extern:
    """Being computed by a function of NumPy arrays: those of the operands of the stage's value, each read over `reading`, axes that run
    over the whole of it. With `conditional` the first operand is a bool that says whether the function is called at all.

    A function that returns several arrays has their `ranks`: the stage is all of their elements in a row, and the last operand, which the
    function is not given, holds the extents of the one after those of the other.

    Of the function's inputs and results those at these positions are complex: their last axis of 2 is the parts of one number."""

    function: Callable[..., Any]
    reading: tuple[tuple[Axis, Extent], ...]
    conditional: bool = False
    ranks: tuple[int, ...] = ()
    complex_inputs: tuple[int, ...] = ()
    complex_results: tuple[int, ...] = ()

    @property
    def label(self) -> str:
        """module:name, as far as the function says; of a file that was named to be run, the module that it is when it is imported."""
        name = getattr(self.function, "__qualname__", None) or type(self.function).__name__
        module = getattr(self.function, "__module__", None) or "?"
        return f"{re.sub(NAMED_FILE, '', module)}:{name}"


@dataclass(frozen=True, eq=False)
class Stage:
    """value(axes) for every point of the box of extents; with a reduction, combined over its axes as well.

    With a clock the stage is part of a recurrence: it may read itself, and the others of its group, at earlier steps.
    Where `when` is false the stage has no value: it need not be computed, and nothing may depend on it there.
    """

    id: int
    path: str
    method: str
    axes: tuple[Axis, ...]
    extents: tuple[Extent, ...]
    dtype: str
    value: Expr
    reduction: Reduction | None = None
    op: str = ""  # the innermost operator or function that made it
    role: str = "forward"  # forward | gradient | update
    origin: str = "user"  # user | derived
    source: str = ""  # file:line of the user's call
    clock: Clock | None = None
    when: Expr | None = None  # a condition over the axes
    turn: Turn | None = None
    extern: Extern | None = None
    loss: str = ""  # of an adjoint, which is linear in the seed of its sweep: the tensor, below the method, whose derivative it is
    counts: tuple[tuple[str, int], ...] = ()  # the computed extents that it has, each with the stage whose value it is

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def shape(self) -> tuple[Extent, ...]:
        return self.extents

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.axes)

    @cached_property
    def parts_axis(self) -> Axis | None:
        """The axis of the parts of which each element of a reduction is made. No loop runs along it: parts are combined together."""
        return parts_axis(self.value) if self.reduction is not None and self.reduction.combiner is not None else None

    @cached_property
    def of_elements(self) -> Stage:
        """The stage with axes for its elements alone, as what has a loop for each axis."""
        if self.parts_axis is None:
            return self
        kept = [(a, n) for a, n in zip(self.axes, self.extents, strict=True) if a is not self.parts_axis]
        return replace(self, axes=tuple(a for a, _ in kept), extents=tuple(n for _, n in kept))

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        return self.reduction.axes if self.reduction else ()

    @cached_property
    def ranges(self) -> Ranges:
        pairs = list(zip(self.axes, self.extents, strict=True))
        if self.extern is not None:
            return dict((*pairs, *self.extern.reading))
        return dict(pairs + (list(zip(self.reduction.axes, self.reduction.extents, strict=True)) if self.reduction else []))

    @cached_property
    def scatter(self) -> Scatter | None:
        """What the stage writes where, if its reduction is a scatter."""
        from .scatter import scatter_of

        return scatter_of(self)

    @cached_property
    def rank(self) -> Rank | None:
        """What is sorted, if the reduction counts what comes before each element."""
        from .ranking import rank_of

        return rank_of(self)

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """The reads of the value and of the condition."""
        return tuple(reads(self.value)) if self.when is None else tuple(dict.fromkeys((*reads(self.value), *reads(self.when))))

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """The other tensors that the stage reads, or that a carry becomes, and those that say how long its axes are."""
        found = dict.fromkeys((*(r.source for r in self.reads), *(i for _, i in self.counts)))
        if self.turn is not None:
            found |= dict.fromkeys(i for i in (self.turn.next, self.turn.condition) if i is not None)
        return tuple(i for i in found if i != self.id)

    @property
    def loops(self) -> tuple[int, ...]:
        """The groups of the loops that the stage is part of, outermost first."""
        return self.turn.loops if self.turn is not None else ()

    @property
    def is_carry(self) -> bool:
        """Whether the stage is what a loop carries from turn to turn."""
        return self.turn is not None and self.turn.next is not None

    @cached_property
    def handed(self) -> tuple[Read, ...]:
        """Of an extern, the reads of what its function is given."""
        operands = self.value.args if self.extern is not None and isinstance(self.value, Op) else ()
        return tuple(r for r in operands[bool(self.extern and self.extern.conditional) :] if isinstance(r, Read))

    @cached_property
    def earlier(self) -> tuple[Read, ...]:
        """The reads of the stage itself."""
        return tuple(r for r in self.reads if r.source == self.id)

    @cached_property
    def tick(self) -> int:
        """The position of the clock among the axes. Only for a stage that has a clock."""
        assert self.clock is not None
        return place(self.clock.axis, self.axes)

    @cached_property
    def facts(self) -> Mapping[str, str]:
        """What `key=value` selectors ask for."""
        return {"kind": kind_of(self), "role": self.role, "op": self.op, "dtype": self.dtype, "origin": self.origin}

    def text(self, name: Any = lambda i: f"%{i}") -> str:
        domain = ", ".join(f"{a.name}:{n}" for a, n in zip(self.axes, self.extents, strict=True))
        body = show(self.value, name)
        if self.extern is not None:
            body = f"{self.extern.label}({', '.join(name(r.source) for r in self.handed)})"
        if self.reduction:
            over = ", ".join(f"{a.name}:{n}" for a, n in zip(self.reduction.axes, self.reduction.extents, strict=True))
            body = f"{self.reduction.label}({over} | {body})"
        if self.clock:
            domain += f"; step by step along {self.clock.axis.name}{' from the last' if self.clock.reverse else ''}"
        if self.turn is not None and self.turn.next is not None and self.turn.condition is not None:
            domain += f"; then {name(self.turn.next)} while {name(self.turn.condition)}"
        elif self.turn is not None:
            domain += "; at each turn"
        if self.when is not None:
            domain += f"; when {show(self.when, name)}"
        return f"{self.path}({domain}): {self.dtype} = {body}" + (f"    # {self.source}" if self.source else "")


def extents_in(s: Stage) -> tuple[Extent, ...]:
    """All extents that a stage speaks of: of its axes, of those of its reduction, and in its value."""
    sizes = (n.extent for n in walk(s.value) if isinstance(n, Size))
    return (*s.extents, *(s.reduction.extents if s.reduction else ()), *sizes)


def parts_axis(value: Expr) -> Axis | None:
    """The axis of the parts of an element, if there are several."""
    which = value.args[0] if isinstance(value, Op) and value.op == "tuple" else None
    return which if isinstance(which, Axis) else None


def unwidened(e: Expr) -> Expr:
    """A narrow float, or an integer, before it was converted to the wider type in which it is multiplied."""
    while isinstance(e, Op) and e.op == "cast" and widens(e.args[0].dtype, e.dtype):
        e = e.args[0]
    return e


def widens(narrow: str, wide: str) -> bool:
    """Whether a cast keeps every number of the narrow type."""
    if narrow in NARROW:
        return kind(wide) == "float"
    return kind(narrow) == kind(wide) == "int" and narrow != wide and bool(np.can_cast(narrow, wide))


def product_operands(s: Stage) -> tuple[Read, Read] | None:
    """The two reads of a sum of products, if that is what the stage is."""
    if s.reduction is None or s.reduction.kind != "sum" or not isinstance(s.value, Op) or s.value.op != "mul":
        return None
    a, b = map(unwidened, s.value.args)
    return (a, b) if isinstance(a, Read) and isinstance(b, Read) else None


def kind_of(s: Stage) -> str:
    """matmul, convolution, scatter, sort, recurrence, another reduction, gather, stencil, extern or elementwise: what selectors call it."""
    if s.extern is not None:
        return "extern"
    if s.earlier:
        return "recurrence"
    if (pair := product_operands(s)) is not None and s.reduction is not None:
        used = [{a for i in r.index for a in linear(i).atoms} for r in pair]
        shared = used[0] & used[1]
        bare = all(isinstance(i, Axis) for r in pair for i in r.index)
        if (used[0] - shared) and (used[1] - shared) and set(s.reduction.axes) <= shared:
            return "matmul" if bare else "convolution"
    if s.reduction is not None:
        return "scatter" if s.scatter is not None else "sort" if s.rank is not None else "reduction"
    if any(isinstance(i, Read) or any(isinstance(x, Read) for x in reads(i)) for r in s.reads for i in r.index):
        return "gather"
    index: dict[int, set[tuple[Expr, ...]]] = {}
    for r in s.reads:
        index.setdefault(r.source, set()).add(r.index)
    if any(len(v) > 1 for v in index.values()):
        return "stencil"
    return "elementwise"


def redirect(s: Stage, to: Mapping[int, int]) -> Stage:
    """The stage reading other producers."""
    if not any(r.source in to for r in s.reads):
        return s
    return rewritten(s, lambda e: Read(to[e.source], e.index, e.dtype) if isinstance(e, Read) and e.source in to else None)


def rewritten(s: Stage, rule: Callable[[Expr], Expr | None]) -> Stage:
    """The stage with a rule applied to its expressions."""
    return replace(s, value=rewrite(s.value, rule), when=None if s.when is None else rewrite(s.when, rule))
