"""The graph in narrower types: a stage computed in a type reads tensors of that type, and does its arithmetic in float32.

What a stage reads is rounded where it is stored: `PATH/cast` is tensor PATH in the narrow type. It is made of

- every parameter and constant that the method does not change (once, at load);
- an input that is read other than element by element, since such elements are read many times;
- a stage of which a reader needs more than the element at its own place, or that several readers share: it has to be stored anyway.

What passes from one stage straight to the next, and so stays in registers, keeps its bits; as do the steps of a recurrence, and what a
loop carries from turn to turn. Results keep the type of the algorithm. New values of what is stored in a narrower type are rounded for
the next call, in a stage PATH/cast; in this one they keep their bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from fluorite.algo.dtypes import NARROW, itemsize, kind
from fluorite.algo.errors import Problem
from fluorite.algo.expr import Axis, Const, Expr, Op, Read, axis
from fluorite.algo.graph import Graph
from fluorite.algo.numerics import Casts
from fluorite.algo.rewriting import axes_of, rewrite, walk
from fluorite.algo.stages import Leaf, Stage, Turn

ARITHMETIC = "float32"
NO_TYPES: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Narrowed:
    """A graph after `precision`, and what that rounds in the graph before it. `problems` are those of the section's selectors."""

    graph: Graph
    casts: Casts
    problems: tuple[Problem, ...] = ()


def narrowed(graph: Graph, types: Mapping[int, str], stored: Mapping[int, str] = NO_TYPES, gradients: str | None = None) -> Narrowed:
    """The graph in which the stages of `types` compute in these types, parameters and state are `stored` in those, and updates find
    gradients in the type `gradients`."""
    work = _Narrowing(graph, {i: to for i, to in types.items() if _computes(graph.stage(i))}, stored, gradients)
    stages = [part for s in graph.stages for part in work.rewritten(s)]
    if not work.made and not work.rounded and not work.arithmetic:
        return Narrowed(graph, Casts())
    leaves = tuple(replace(t, dtype=work.dtype(t)) for t in graph.leaves)
    methods = tuple(replace(m, updates={path: work.kept.get((m.name, i), i) for path, i in m.updates.items()}) for m in graph.methods)
    made = replace(graph, leaves=leaves, methods=methods).with_stages([*work.made.values(), *stages])
    return Narrowed(made, Casts(work.rounded, work.arithmetic, bool(work.kept)))


def _computes(s: Stage | None) -> bool:
    """Whether a float enters the stage."""
    return s is not None and s.extern is None and any(kind(n.dtype) == "float" for n in walk(s.value))


@dataclass
class _Narrowing:
    """The casts made so far, by tensor, type, method and the loops that they are part of."""

    graph: Graph
    types: Mapping[int, str]
    stored: Mapping[int, str]
    gradients: str | None
    made: dict[tuple[int, str, str, tuple[int, ...]], Stage] = field(default_factory=dict)
    rounded: dict[tuple[int, int], str] = field(default_factory=dict)
    arithmetic: dict[int, str] = field(default_factory=dict)
    kept: dict[tuple[str, int], int] = field(default_factory=dict)  # by method: new values of state as they are stored
    fresh: int = 0

    def __post_init__(self) -> None:
        self.fresh = max(self.graph.by_id, default=0)
        self.paths = {t.path for t in self.graph.by_id.values()}
        self.carried = {i for s in self.graph.stages if s.turn is not None and s.is_carry for i in (s.id, s.turn.next)}

    # ------------------------------------------------------------ types
    def dtype(self, t: Leaf | Stage) -> str:
        """The type in which a tensor of the algorithm is stored from now on."""
        if isinstance(t, Leaf):
            return self.stored.get(t.id, t.dtype)
        return ARITHMETIC if self.shrinks(t) and t.id not in self.graph.outputs else t.dtype

    def shrinks(self, s: Stage) -> bool:
        """Whether the stage's own arithmetic gets a narrower type: float64 of the algorithm."""
        stays = s.clock is not None or s.id in self.carried or s.id in self.graph.handed
        stays = stays or (s.reduction is not None and s.reduction.combiner is not None)  # which has types of its own
        return s.id in self.types and not stays and any(n.dtype == "float64" for n in walk(s.value))

    # ------------------------------------------------------------ stages
    def rewritten(self, s: Stage) -> tuple[Stage, ...]:
        """The stage, after what it needs besides."""
        held = self.graph.updates.get(s.id)
        if held is not None and held.id in self.stored:
            self.kept[s.method, s.id] = self.copy_of(s, self.stored[held.id], s.method).id
        value = rewrite(s.value, self.reading(s))
        if not self.shrinks(s):
            return (s,) if value is s.value else (replace(s, value=value),)
        self.arithmetic[s.id] = ARITHMETIC
        if s.dtype != "float64":
            return (replace(s, value=value),)
        if s.id not in self.graph.outputs:
            return (replace(s, value=value, dtype=ARITHMETIC),)
        if s.reduction is None:
            return (replace(s, value=converted(value, s.dtype)),)
        inner = self.copy_of(s, ARITHMETIC, s.method, s.loops)
        fresh = {a: axis(a.name) for a in s.reduction.axes}
        outer = dict(zip(s.axes, inner.axes, strict=True))
        body = rewrite(value, lambda n: {**fresh, **outer}.get(n) if isinstance(n, Axis) else None)
        computed = replace(inner, value=body, reduction=replace(s.reduction, axes=tuple(fresh.values())), op=s.op)
        self.made[s.id, ARITHMETIC, s.method, s.loops] = computed
        return (replace(s, value=converted(Read(inner.id, s.axes, ARITHMETIC), s.dtype), reduction=None),)

    def reading(self, s: Stage) -> _Rule:
        """What becomes of each node of the stage's value."""
        at: dict[int, Read] = {}
        for t in (self.graph[i] for i in s.sources):
            to = self.types.get(s.id)
            stored = self.dtype(t)
            if self.gradients is not None and s.role == "update" and isinstance(t, Stage) and t.loss and wider(stored, self.gradients):
                at[t.id] = Read(self.copy_of(t, self.gradients, s.method, s.loops).id, (), self.gradients)
                self.rounded[s.id, t.id] = self.gradients
                continue
            if kind(t.dtype) != "float":
                continue
            if stored != t.dtype:
                at[t.id] = Read(t.id, (), stored)
                if isinstance(t, Leaf):
                    self.rounded[s.id, t.id] = stored
            if to is None or not wider(stored, to) or not t.shape or _one_recurrence(s, t) or not self.is_stored(s, t, to):
                if to is not None and wider(stored, ARITHMETIC) and self.shrinks(s):
                    self.rounded[s.id, t.id] = ARITHMETIC
                continue
            at[t.id] = Read(self.copy_of(t, to, s.method, s.loops).id, (), to)
            self.rounded[s.id, t.id] = to
        return _Rule(at, ARITHMETIC if self.shrinks(s) else None)

    def is_stored(self, s: Stage, t: Leaf | Stage, to: str) -> bool:
        """Whether s, which computes in `to`, reads a copy of t of that type."""
        if isinstance(t, Leaf) and self.graph.is_fixed(t, s.method):
            return True
        readers = [c for c in self.graph.consumers[t.id] if self.types.get(c.id) == to and not _one_recurrence(c, t)]
        if any(not at_own_place(c, t) for c in readers):
            return True
        return isinstance(t, Stage) and sum(len(c.axes) == len(t.axes) for c in readers) > 1

    def copy_of(self, t: Leaf | Stage, to: str, method: str, loops: tuple[int, ...] = ()) -> Stage:
        """PATH/cast: the tensor in another type, for a reader that is part of `loops`. What a loop carries has another value at each turn
        than after it, so each has a copy of its own."""
        shared = tuple(a for a, b in zip(t.loops, loops, strict=False) if a == b) if isinstance(t, Stage) else ()
        key = (t.id, to, method, shared)
        if key not in self.made:
            names = [n if n and not n.isdigit() else f"i{k}" for k, n in enumerate(t.axis_names)]
            axes = tuple(axis(n if n not in names[:k] else f"i{k}") for k, n in enumerate(names))
            self.fresh += 1
            value = converted(Read(t.id, axes, self.dtype(t)), to)
            base = t.path if t.path.startswith(f"{method}/") else f"{method}/{t.path}"
            path, when = self.free(f"{base}/cast"), t.when if isinstance(t, Stage) else None
            made = Stage(self.fresh, path, method, axes, t.shape, to, value, op="cast", origin="derived", source=t.source)
            turn = Turn(shared[-1], around=shared[:-1]) if shared else None
            self.made[key] = replace(made, when=None if when is None or axes_of(when) else when, turn=turn)
        return self.made[key]

    def free(self, path: str) -> str:
        found, n = path, 2
        while found in self.paths:
            found, n = f"{path}_{n}", n + 1
        self.paths.add(found)
        return found


@dataclass(frozen=True, eq=False)
class _Rule:
    """Nodes of one stage as they are after narrowing. `at` says what is read in place of a tensor, `arithmetic` the type for float64."""

    at: Mapping[int, Read]
    arithmetic: str | None

    def __call__(self, e: Expr) -> Expr | None:
        match e:
            case Read(source, index, dtype):
                found = self.at.get(source)
                read = e if found is None else Read(found.source, index, found.dtype)
                return converted(read, self.held(dtype))
            case Const(value, "float64", weak):
                return Const(value, self.held("float64"), weak)
            case Op(op="cast", args=(a,)):
                return converted(a, self.held(e.dtype), e.weak)
            case Op(op="lt" | "le" | "eq" | "ne" | "isnan" | "isinf" | "isfinite", args=args):
                return Op(e.op, _as_stored(args) or args, e.dtype, e.weak)
            case Op(op="where", args=(c, *branches)) if (inner := _as_stored(tuple(branches))) is not None:
                chosen = Op("where", (c, *inner), inner[0].dtype, False)
                return converted(chosen, self.held(e.dtype), e.weak)
            case Op(dtype="float64"):
                return Op(e.op, e.args, self.held("float64"), e.weak)
        return None

    def held(self, dtype: str) -> str:
        return self.arithmetic if dtype == "float64" and self.arithmetic is not None else dtype


def converted(e: Expr, dtype: str, weak: bool = False) -> Expr:
    """The expression as a value of a type; a number of a narrower type that was only widened comes back as it was."""
    if e.dtype == dtype and e.weak == weak:
        return e
    if isinstance(e, Op) and e.op == "cast" and e.args[0].dtype == dtype and wider(e.dtype, dtype):
        return e.args[0]
    return Op("cast", (e,), dtype, weak)


def _as_stored(args: tuple[Expr, ...]) -> tuple[Expr, ...] | None:
    """Operands before they were widened, if all were of one type, or are 0 or 1: comparing and choosing need no more."""
    types = {a.args[0].dtype for a in args if isinstance(a, Op) and _is_widening(a)}
    if len(types) != 1:
        return None
    (to,) = types
    found: list[Expr] = []
    for a in args:
        match a:
            case Op() if _is_widening(a):
                found.append(a.args[0])
            case Const(value=0 | 1 as value, weak=False):
                found.append(Const(float(value), to, False))
            case _:
                return None
    return tuple(found)


def _is_widening(e: Op) -> bool:
    return e.op == "cast" and isinstance(e.args[0], Read | Op) and wider(e.dtype, e.args[0].dtype) and e.args[0].dtype in NARROW


def wider(a: str, b: str) -> bool:
    """Whether float type a has more bits than float type b."""
    return kind(a) == kind(b) == "float" and itemsize(a) > itemsize(b)


def at_own_place(s: Stage, t: Leaf | Stage) -> bool:
    """Whether s reads t only at its own position, or at fewer of its own axes: what is read so can stay in registers."""
    own = set(s.axes)
    for r in s.reads:
        if r.source == t.id:
            bare = [i for i in r.index if isinstance(i, Axis) and i in own]
            if len(set(bare)) != len(r.index):
                return False
            if len(t.shape) == len(s.axes) and any(i is not a for i, a in zip(bare, s.axes, strict=True)):
                return False
    return True


def _one_recurrence(s: Stage, t: Leaf | Stage) -> bool:
    return isinstance(t, Stage) and s.clock is not None and t.clock is not None and s.clock.group == t.clock.group


__all__ = ["Narrowed", "at_own_place", "narrowed", "wider"]
