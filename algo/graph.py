"""The Graph: leaves and stages by id, methods with their inputs and results. A value; every level below is derived from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .compound import Compound
from .extent import symbols_of
from .ordering import ordered
from .rewriting import reads
from .stages import Leaf, Stage


@dataclass(frozen=True)
class Method:
    """One callable of the model: (state, inputs) -> (new state, result).

    `result` mirrors what it returned: nested dict, list or tuple of ids, None for nothing. `updates` has, by the path of each parameter
    or state that the method assigns, the stage that is its new value; each has a stage of its own. `batch` is the symbol of the batch, and
    `reader` the attribute of the Program that inputs are read from. `ragged` has, by the padded tensor of each ragged input, its lengths:
    an input too, shared by those whose lengths are the same, that a call leaves out where it gives lists. `counts` are the inputs that are
    the number of their first extent. `complex` are the results that are complex numbers: tensors with real and imaginary part along the
    last axis. `data_dependent`: the time of a call depends on what is in its inputs.
    """

    name: str
    inputs: tuple[int, ...]
    result: Any
    doc: str = ""
    updates: Mapping[str, int] = field(default_factory=dict)
    batch: str | None = None
    reader: str | None = None
    ragged: Mapping[int, int] = field(default_factory=dict)
    counts: frozenset[int] = frozenset()
    complex: frozenset[int] = frozenset()
    data_dependent: bool = False

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
        case Compound():
            return tree.mapped(f)
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
    def paths(self) -> frozenset[str]:
        """The paths of all leaves and stages."""
        return frozenset(t.path for t in self.by_id.values())

    @cached_property
    def positions(self) -> Mapping[int, int]:
        """By id of a stage, its position among the stages."""
        return {s.id: n for n, s in enumerate(self.stages)}

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
            if s.sources and s.op != "pack at call" and not s.counts and s.id not in self.updates and all(same):
                found.add(s.id)
        return frozenset(found)

    @cached_property
    def pinned(self) -> frozenset[int]:
        """The tensors that are stored whatever a plan says: conditions, what loops carry, become and ask, externs and their inputs, rows
        that are to be written over others, and computed extents."""
        return self.conditions | self.carried | self.handed | self.rows | self.counts.keys()

    @cached_property
    def counts(self) -> Mapping[int, tuple[str, ...]]:
        """The computed extents, by the stages whose values they are."""
        found: dict[int, dict[str, None]] = {}
        for s in self.stages:
            for name, i in s.counts:
                found.setdefault(i, {})[name] = None
        return {i: tuple(names) for i, names in found.items()}

    @cached_property
    def rows(self) -> frozenset[int]:
        """The rows that are written over rows of state, and what says where they go."""
        from .row_writes import row_writes

        return frozenset(i for w in row_writes(self).values() for i in w.stored if self.stage(i) is not None)

    @cached_property
    def handed(self) -> frozenset[int]:
        """Externs, and what their functions are given: whole tensors as the algorithm says."""
        return frozenset(i for s in self.stages if s.extern is not None for i in (s.id, *s.sources))

    @cached_property
    def carried(self) -> frozenset[int]:
        """What loops carry, what it becomes, and what they ask."""
        carries = [s for s in self.stages if s.is_carry]
        return frozenset(i for s in carries if s.turn for i in (s.id, s.turn.next, s.turn.condition) if i is not None)

    @cached_property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions of NumPy arrays that externs call, by the path of each extern."""
        return {s.path: s.extern.function for s in self.stages if s.extern is not None}

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

    def declared(self, method: Method, id: int) -> str:
        """What an input of a method is: float32[h, w]; of a ragged one its padded tensor."""
        leaf = self[id]
        return "extent" if id in method.counts else f"{leaf.dtype}[{', '.join(map(str, leaf.shape))}]"

    def path_of(self, id: int) -> str:
        return self.by_id[id].path

    def with_stages(self, stages: Iterable[Stage], renamed: Mapping[int, int] | None = None) -> Graph:
        """The graph with these stages, in producer order; outputs follow `renamed` ids."""
        to = renamed or {}
        methods = tuple(
            replace(
                m,
                result=map_tree(lambda i: to.get(i, i), m.result),
                updates={k: to.get(v, v) for k, v in m.updates.items()},
                complex=frozenset(to.get(i, i) for i in m.complex),
            )
            for m in self.methods
        )
        return replace(self, stages=ordered(stages), methods=methods)

    def spliced(self, old: Stage, new: Sequence[Stage], readers: Sequence[Stage] = ()) -> Graph:
        """The graph with `new`, the last of which (if any) has old's id, where `old` stands, and `readers` for the stages of their ids.
        All read only what stands before them, so that recurrences and loops alone have to be put in order again."""
        at = self.stages.index(old)
        stages = [*self.stages[:at], *new, *self.stages[at + 1 :]]
        for reader in readers:
            stages[stages.index(self.by_id[reader.id])] = reader  # type: ignore[arg-type]
        if any(s.clock is not None or s.turn is not None for s in new):
            return self.with_stages(stages)
        made = replace(self, stages=tuple(stages))
        made._take_over(self, old, (*new, *readers))
        return made

    def _take_over(self, before: Graph, old: Stage, new: Iterable[Stage]) -> None:
        """What is indexed of the graph that this one was made of, with what changed. The graph before will index itself again if it is
        asked again: of a long line of graphs only the last is."""
        if (found := before.__dict__.pop("by_id", None)) is not None:
            by_id = dict(found)
            del by_id[old.id]
            by_id.update((s.id, s) for s in new)
            self.__dict__["by_id"] = by_id
        if (paths := before.__dict__.pop("paths", None)) is not None:
            self.__dict__["paths"] = (paths - {old.path}).union(s.path for s in new)

    def text(self) -> str:
        name = self.path_of
        lines, counts = [f"graph {self.name}"], {i for m in self.methods for i in m.counts}
        for leaf in self.leaves:
            dims = ", ".join(f"{n}={e}" if n and n != str(e) else str(e) for n, e in zip(leaf.axis_names, leaf.shape, strict=True))
            lines.append(f"  {leaf.kind} {leaf.path}: {'extent' if leaf.id in counts else f'{leaf.dtype}[{dims}]'}")
        for m in self.methods:
            lines.append(f"  method {m.name}({', '.join(self[i].name for i in m.inputs)})")
            lines += [f"    {s.text(name)}" for s in self.stages_of(m.name)]
            lines += [f"    update {path} = {name(i)}" for path, i in m.updates.items()]
            lines.append(f"    return {map_tree(_Name(name), m.result)!r}")
        return "\n".join(lines)

    def run(
        self,
        *inputs: Any,
        method: str | None = None,
        parameters: Mapping[str, np.ndarray] | None = None,
        float64: bool = False,
        **named: Any,
    ) -> Any:
        """The result of a method on the NumPy interpreter, which is the meaning of the language. `step` gives the new state too.

        With `float64`, what is float32 is computed and returned in float64: how far rounding alone takes the other result.
        """
        return self.step(*inputs, method=method, parameters=parameters, float64=float64, **named).result

    def step(
        self,
        *inputs: Any,
        method: str | None = None,
        parameters: Mapping[str, np.ndarray] | None = None,
        float64: bool = False,
        **named: Any,
    ) -> Transition:
        """One call as the state transition that it is: its result, and all parameters and state after it, by path. Nothing is changed.

        loss, weights = graph.step(x, y, method="train_step", parameters=weights)
        """
        from .interpreter import step

        return step(self, inputs, named, method=method, parameters=parameters, float64=float64)


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
