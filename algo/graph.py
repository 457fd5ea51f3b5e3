"""The Graph: leaves and stages by id, methods with their inputs and results. A value; every level below is derived from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .clock import Clock, delay, place
from .dtypes import NARROW, kind
from .expr import Axis, Expr, Op, Read
from .extent import Extent, symbols_of
from .linear import Ranges, linear
from .printing import show
from .rewriting import reads, rewrite

if TYPE_CHECKING:
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

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Reduction:
    """How a stage combines the values over its reduction axes: sum prod max min any all argmax argmin."""

    kind: str
    axes: tuple[Axis, ...]
    extents: tuple[Extent, ...]


@dataclass(frozen=True)
class Turn:
    """Being part of a loop that runs as long as a condition holds; all stages of one loop have the same `group`.

    A carry has a value before the first turn, which is what its stage says, and after each turn that of the stage `next`; `condition` is
    the stage that says whether there is another turn. All other stages of the loop are computed anew at each turn.
    """

    group: int
    next: int | None = None
    condition: int | None = None


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

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def shape(self) -> tuple[Extent, ...]:
        return self.extents

    @property
    def axis_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.axes)

    @property
    def reduce_axes(self) -> tuple[Axis, ...]:
        return self.reduction.axes if self.reduction else ()

    @cached_property
    def ranges(self) -> Ranges:
        pairs = list(zip(self.axes, self.extents, strict=True))
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
        """The other tensors that the stage reads, or that a carry becomes."""
        found = dict.fromkeys(r.source for r in self.reads)
        if self.turn is not None:
            found |= dict.fromkeys(i for i in (self.turn.next, self.turn.condition) if i is not None)
        return tuple(i for i in found if i != self.id)

    @property
    def is_carry(self) -> bool:
        """Whether the stage is what a loop carries from turn to turn."""
        return self.turn is not None and self.turn.next is not None

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
        if self.reduction:
            over = ", ".join(f"{a.name}:{n}" for a, n in zip(self.reduction.axes, self.reduction.extents, strict=True))
            body = f"{self.reduction.kind}({over} | {body})"
        if self.clock:
            domain += f"; step by step along {self.clock.axis.name}{' from the last' if self.clock.reverse else ''}"
        if self.turn is not None and self.turn.next is not None and self.turn.condition is not None:
            domain += f"; then {name(self.turn.next)} while {name(self.turn.condition)}"
        elif self.turn is not None:
            domain += "; at each turn"
        if self.when is not None:
            domain += f"; when {show(self.when, name)}"
        return f"{self.path}({domain}): {self.dtype} = {body}" + (f"    # {self.source}" if self.source else "")


def unwidened(e: Expr) -> Expr:
    """A narrow float before it was converted to the wider type in which it is multiplied."""
    while isinstance(e, Op) and e.op == "cast" and e.args[0].dtype in NARROW and kind(e.dtype) == "float":
        e = e.args[0]
    return e


def product_operands(s: Stage) -> tuple[Read, Read] | None:
    """The two reads of a sum of products, if that is what the stage is."""
    if s.reduction is None or s.reduction.kind != "sum" or not isinstance(s.value, Op) or s.value.op != "mul":
        return None
    a, b = map(unwidened, s.value.args)
    return (a, b) if isinstance(a, Read) and isinstance(b, Read) else None


def kind_of(s: Stage) -> str:
    """matmul, convolution, scatter, sort, recurrence, another reduction, gather, stencil or elementwise: what selectors call the stage."""
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


@dataclass(frozen=True)
class Method:
    """One callable of the model: (state, inputs) -> (new state, result).

    `result` mirrors what it returned: nested dict, list or tuple of ids, None for nothing. `updates` has, by the path of each parameter
    or state that the method assigns, the stage that is its new value; each has a stage of its own. `batch` is the symbol of the batch, and
    `reader` the attribute of the Program that inputs are read from.
    """

    name: str
    inputs: tuple[int, ...]
    result: Any
    doc: str = ""
    updates: Mapping[str, int] = field(default_factory=dict)
    batch: str | None = None
    reader: str | None = None

    @property
    def outputs(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(flatten(self.result)))

    @property
    def ends(self) -> tuple[int, ...]:
        """All that a call is there for: results and new values of state."""
        return tuple(dict.fromkeys((*self.outputs, *self.updates.values())))


def flatten(tree: Any) -> Iterator[int]:
    match tree:
        case dict():
            for v in tree.values():
                yield from flatten(v)
        case list() | tuple():
            for v in tree:
                yield from flatten(v)
        case None:
            return
        case _:
            yield tree


def map_tree(f: Any, tree: Any) -> Any:
    match tree:
        case dict():
            return {k: map_tree(f, v) for k, v in tree.items()}
        case list():
            return [map_tree(f, v) for v in tree]
        case tuple():
            return tuple(map_tree(f, v) for v in tree)
        case None:
            return None
    return f(tree)


@dataclass(frozen=True, eq=False)
class Graph:
    """leaves and stages (producers before consumers) of every method of one model."""

    name: str
    leaves: tuple[Leaf, ...]
    stages: tuple[Stage, ...]
    methods: tuple[Method, ...]

    @cached_property
    def by_id(self) -> Mapping[int, Leaf | Stage]:
        everything: tuple[Leaf | Stage, ...] = (*self.leaves, *self.stages)
        return {t.id: t for t in everything}

    @cached_property
    def outputs(self) -> frozenset[int]:
        return frozenset(i for m in self.methods for i in m.ends)

    @cached_property
    def updates(self) -> Mapping[int, Leaf]:
        """By every stage that is the new value of a parameter or state: that parameter or state."""
        held = {t.path: t for t in self.leaves if t.kind in ("parameter", "state")}
        return {i: held[path] for m in self.methods for path, i in m.updates.items()}

    def is_fixed(self, t: Leaf | Stage, method: str) -> bool:
        """Whether t is the same in one call of the method and the next, unless another method or its owner assigns it: what may be packed
        before a call. Stages are that are made of nothing else."""
        if isinstance(t, Stage):
            return t.id in self._fixed
        return t.kind != "input" and all(t.path not in m.updates for m in self.methods if m.name == method)

    @cached_property
    def _fixed(self) -> frozenset[int]:
        found: set[int] = set()
        for s in self.stages:
            same = (i in found or (isinstance(t := self[i], Leaf) and self.is_fixed(t, s.method)) for i in s.sources)
            if s.sources and s.op != "pack at call" and s.id not in self.updates and all(same):
                found.add(s.id)
        return frozenset(found)

    @cached_property
    def pinned(self) -> frozenset[int]:
        """The tensors that are stored whatever a plan says of them: conditions, and what loops carry, become and ask."""
        return self.conditions | self.carried

    @cached_property
    def carried(self) -> frozenset[int]:
        """What loops carry, what it becomes, and what they ask."""
        carries = [s for s in self.stages if s.is_carry]
        return frozenset(i for s in carries if s.turn for i in (s.id, s.turn.next, s.turn.condition) if i is not None)

    @cached_property
    def conditions(self) -> frozenset[int]:
        """The tensors that decide whether stages are computed."""
        return frozenset(r.source for s in self.stages if s.when is not None for r in reads(s.when))

    @cached_property
    def consumers(self) -> Mapping[int, tuple[Stage, ...]]:
        found: dict[int, list[Stage]] = {t: [] for t in self.by_id}
        for s in self.stages:
            for source in s.sources:
                found[source].append(s)
        return {k: tuple(v) for k, v in found.items()}

    def __getitem__(self, id: int) -> Leaf | Stage:
        return self.by_id[id]

    def stage(self, id: int) -> Stage | None:
        found = self.by_id[id]
        return found if isinstance(found, Stage) else None

    def method(self, name: str) -> Method:
        return next(m for m in self.methods if m.name == name)

    def stages_of(self, method: str) -> tuple[Stage, ...]:
        return tuple(s for s in self.stages if s.method == method)

    def symbols(self, method: str | None = None) -> tuple[str, ...]:
        """Names of the symbolic extents, in order of first use in the inputs."""
        chosen = [m for m in self.methods if method in (None, m.name)]
        return tuple(dict.fromkeys(s for m in chosen for i in m.inputs for e in self[i].shape for s in symbols_of(e)))

    def path_of(self, id: int) -> str:
        return self.by_id[id].path

    def with_stages(self, stages: Iterable[Stage], renamed: Mapping[int, int] | None = None) -> Graph:
        """The graph with these stages, in producer order; outputs follow `renamed` ids."""
        to = renamed or {}
        methods = tuple(
            replace(m, result=map_tree(lambda i: to.get(i, i), m.result), updates={k: to.get(v, v) for k, v in m.updates.items()})
            for m in self.methods
        )
        return replace(self, stages=ordered(stages), methods=methods)

    def text(self) -> str:
        name = self.path_of
        lines = [f"graph {self.name}"]
        for leaf in self.leaves:
            dims = ", ".join(f"{n}={e}" if n and n != str(e) else str(e) for n, e in zip(leaf.axis_names, leaf.shape, strict=True))
            lines.append(f"  {leaf.kind} {leaf.path}: {leaf.dtype}[{dims}]")
        for m in self.methods:
            lines.append(f"  method {m.name}({', '.join(self[i].name for i in m.inputs)})")
            lines += [f"    {s.text(name)}" for s in self.stages_of(m.name)]
            lines += [f"    update {path} = {name(i)}" for path, i in m.updates.items()]
            lines.append(f"    return {map_tree(_Name(name), m.result)!r}")
        return "\n".join(lines)

    def run(self, *inputs: Any, method: str | None = None, parameters: Mapping[str, np.ndarray] | None = None, **named: Any) -> Any:
        """The result of a method on the NumPy interpreter, which is the meaning of the language. `step` gives the new state too."""
        return self.step(*inputs, method=method, parameters=parameters, **named).result

    def step(self, *inputs: Any, method: str | None = None, parameters: Mapping[str, np.ndarray] | None = None, **named: Any) -> Transition:
        """One call as the state transition that it is: its result, and all parameters and state after it, by path. Nothing is changed.

        loss, weights = graph.step(x, y, method="train_step", parameters=weights)
        """
        from .interpreter import step

        return step(self, inputs, named, method=method, parameters=parameters)


class Transition(NamedTuple):
    """What a call gives: its result, and every parameter and state afterwards, by path."""

    result: Any
    parameters: Mapping[str, np.ndarray]


class _Name:
    """Wraps ids so that a printed result tree shows paths without quotes."""

    def __init__(self, name: Any, id: int | None = None) -> None:
        self.name, self.id = name, id

    def __call__(self, id: int) -> _Name:
        return _Name(self.name, id)

    def __repr__(self) -> str:
        return str(self.name(self.id))


def ordered(stages: Iterable[Stage]) -> tuple[Stage, ...]:
    """Producers before consumers, otherwise as given. The stages of one recurrence stand together, in the order of one step."""
    given = list(stages)
    present = {s.id for s in given}
    unit_of = {s.id: unit for unit in units(sorted(given, key=_group)) for s in unit}
    done: set[int] = set()
    out: list[Stage] = []

    def needs(unit: tuple[Stage, ...]) -> Iterator[int]:
        return iter([i for s in unit for i in s.sources if i in present and unit_of[i] is not unit])

    def visit(start: tuple[Stage, ...]) -> None:
        stack = [(start, needs(start))]
        while stack:
            unit, sources = stack[-1]
            for source in sources:
                if source not in done:
                    stack.append((unit_of[source], needs(unit_of[source])))
                    break
            else:
                if unit[0].id not in done:
                    out.extend(turn_order(unit) if unit[0].turn else step_order(unit))
                    done.update(s.id for s in unit)
                stack.pop()

    for s in given:
        if s.id not in done:
            visit(unit_of[s.id])
    return tuple(out)


def _group(s: Stage) -> int:
    return s.turn.group if s.turn else s.clock.group if s.clock else s.id


def _together(a: Stage, b: Stage) -> bool:
    """Whether two stages are of one loop or, where neither is in one, of one recurrence."""
    if a.turn or b.turn:
        return a.turn is not None and b.turn is not None and a.turn.group == b.turn.group
    return a.clock is not None and b.clock is not None and a.clock.group == b.clock.group


def units(stages: Iterable[Stage]) -> list[tuple[Stage, ...]]:
    """Stages that are next to one another and of one loop or one recurrence, together; every other stage alone."""
    out: list[tuple[Stage, ...]] = []
    for s in stages:
        if out and _together(out[-1][0], s):
            out[-1] = (*out[-1], s)
        else:
            out.append((s,))
    return out


@dataclass(frozen=True)
class Turns:
    """A loop: what its carries start with, by id what each becomes, the condition, the units that the condition needs, and those that only
    a turn needs. Here no stage has a turn."""

    carries: tuple[Stage, ...]
    becomes: Mapping[int, int]
    condition: int
    asking: tuple[tuple[Stage, ...], ...]
    doing: tuple[tuple[Stage, ...], ...]


def turns(unit: Sequence[Stage]) -> Turns:
    """A unit that is a loop, in its parts."""
    carries = {s.id: s.turn for s in unit if s.is_carry and s.turn is not None}
    inside = {s.id: replace(s, turn=None) for s in unit if not s.is_carry}
    condition = next(t.condition for t in carries.values() if t.condition is not None)
    asked: set[int] = set()
    pending = [condition]
    while pending:
        i = pending.pop()
        if i in inside and i not in asked:
            asked.add(i)
            pending += inside[i].sources
    asking, doing = ([s for i, s in inside.items() if (i in asked) is first] for first in (True, False))
    becomes = {i: t.next for i, t in carries.items() if t.next is not None}
    start = tuple(replace(s, turn=None) for s in unit if s.is_carry)
    return Turns(start, becomes, condition, tuple(units(ordered(asking))), tuple(units(ordered(doing))))


def turn_order(unit: Sequence[Stage]) -> list[Stage]:
    """The stages of a loop: what it carries, what its condition needs, what a turn does."""
    found, by_id = turns(unit), {s.id: s for s in unit}
    return [by_id[s.id] for part in (found.carries, *found.asking, *found.doing) for s in part]


def step_order(members: Iterable[Stage]) -> list[Stage]:
    """The stages of one recurrence so that each comes after those that it reads at its own step. Raises ValueError where there is none."""
    left = {s.id: s for s in members}
    out: list[Stage] = []
    while left:
        ready = next((s for s in left.values() if not any(i in left for i in _at_own_step(s, left))), None)
        if ready is None:
            raise ValueError("a cycle within one step")
        out.append(left.pop(ready.id))
    return out


def _at_own_step(s: Stage, members: Mapping[int, Stage]) -> Iterator[int]:
    for r in s.reads:
        other = members.get(r.source)
        if other and s.clock and other.clock and delay(r.index[other.tick], s.clock.axis, s.clock.reverse) == 0:
            yield r.source


def redirect(s: Stage, to: Mapping[int, int]) -> Stage:
    """The stage reading other producers."""
    if not any(r.source in to for r in s.reads):
        return s
    return rewritten(s, lambda e: Read(to[e.source], e.index, e.dtype) if isinstance(e, Read) and e.source in to else None)


def rewritten(s: Stage, rule: Callable[[Expr], Expr | None]) -> Stage:
    """The stage with a rule applied to its expressions."""
    return replace(s, value=rewrite(s.value, rule), when=None if s.when is None else rewrite(s.when, rule))
