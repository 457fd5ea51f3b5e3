"""What lowering knows while it works on one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fluorite.algo.errors import Problem
from fluorite.algo.expr import Axis, Const, Expr
from fluorite.algo.extent import Extent
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Directive
from fluorite.schedule.grouping import Companion, Placement
from fluorite.schedule.nest import Loop, Nest
from fluorite.schedule.regions import Box

from ..gpu.stepped import Stepped
from ..statements import Buffer

TRUE, FALSE = Const(True, "bool", False), Const(False, "bool", False)


@dataclass(frozen=True)
class KernelPlan:
    """What one kernel computes: stages in producer order (inlined ones gone), those that must reach global memory, directives by stage."""

    name: str
    stages: tuple[Stage, ...]
    outputs: frozenset[int]
    directives: Mapping[int, tuple[Directive, ...]]
    placements: Mapping[int, Placement]
    companions: Mapping[int, Companion] = field(default_factory=dict)
    gpu: bool = False
    features: tuple[str, ...] = ()  # of the processor, that code may use
    arch: int = 0  # of the GPU


@dataclass(frozen=True, eq=False)
class Placed:
    """A stage with its nest over a box, and how its axes follow from the loops. `known` are conditions that hold where it stands."""

    stage: Stage
    nest: Nest
    box: Box
    values: Mapping[Axis, Expr]
    padded: frozenset[Axis]
    known: tuple[Expr, ...] = ()


@dataclass(eq=False)
class Context:
    """One kernel's lowering. `native(dtype)` is the number of lanes of the widest vector. The only thing here that changes."""

    graph: Graph
    plan: KernelPlan
    native: Callable[[str], int]
    problems: list[Problem] = field(default_factory=list)
    nests: dict[int, Nest] = field(default_factory=dict)
    ranges: dict[Axis, Extent] = field(default_factory=dict)
    storage: dict[int, tuple[Buffer, tuple[Expr, ...]]] = field(default_factory=dict)  # stage -> its buffer, and the origin of indices
    folds: dict[tuple[int, Axis], int] = field(default_factory=dict)  # stage and axis -> positions of its circular buffer
    slots: dict[int, tuple[Axis, int]] = field(default_factory=dict)  # stage -> loop of its pipeline, and how many parts are kept
    kept: dict[tuple[int, int], list[Buffer]] = field(default_factory=dict)  # owner and position of its loop -> what is kept there
    allocated: list[Buffer] = field(default_factory=list)
    initialised: set[int] = field(default_factory=set)
    parallel: list[str] = field(default_factory=list)  # the parallel loop around the place that is being lowered
    lanes: Mapping[str, Extent] = field(default_factory=dict)  # GPU: the kernel's threads
    threads: list[Loop] = field(default_factory=list)  # GPU: the thread loops around the place that is being lowered
    stepped: Stepped | None = None  # GPU: how stages that are computed together, step by step or turn by turn, share blocks
    again: set[int] = field(default_factory=set)  # stages of which some elements are computed twice, where a last part is moved back

    def __post_init__(self) -> None:
        self.by_id: Mapping[int, Stage] = {s.id: s for s in self.plan.stages}
        self.runs_together = {*self.plan.companions, *(c.leader for c in self.plan.companions.values())}

    def overwrites(self, s: Stage) -> bool:
        """Whether the stage is the new value of state and reads the old one, so that it is best stored over it, each element once."""
        leaf = self.graph.updates.get(s.id)
        return leaf is not None and leaf.id in s.sources
