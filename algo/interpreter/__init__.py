"""The interpreter: the meaning of a Graph, on NumPy. Everything that is compiled is compared with it."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..complex.arrays import complex_of
from ..graph import Graph, Transition, map_tree
from ..ordering import units
from ..parameters import given_parameters, initial_parameters
from ..stages import Leaf, Stage
from .arguments import choose, take
from .recurrences import evaluate_unit
from .stages import Evaluation

Array = np.ndarray[Any, Any]
Watch = Callable[[Stage, Array], None]


def run(graph: Graph, inputs: tuple[Any, ...] = (), named: Mapping[str, Any] | None = None, *, method: str | None = None,
        parameters: Mapping[str, Any] | None = None, float64: bool = False, watch: Watch | None = None, seed: int = 0) -> Any:
    """The result of `step`."""
    return step(graph, inputs, named, method=method, parameters=parameters, float64=float64, watch=watch, seed=seed).result


def step(graph: Graph, inputs: tuple[Any, ...] = (), named: Mapping[str, Any] | None = None, *, method: str | None = None,
         parameters: Mapping[str, Any] | None = None, float64: bool = False, watch: Watch | None = None, seed: int = 0) -> Transition:
    """What the method returns, nested as it returned it, and all parameters and state after the call: arrays of the declared dtypes.

    `method` may be left out where there is one. Parameters come from `parameters` (complete, by path), else from their initialisers
    and `seed`. With `float64`, float32 parts are computed and returned in float64. `watch(stage, array)` sees every stage in turn.
    Raises RunError: wrong inputs or parameters, a negative extent, a maximum over nothing.
    """
    chosen = choose(graph, method)
    arrays, symbols = take(graph, chosen, inputs, named or {})
    values = parameter_arrays(graph, parameters, seed)
    held = leaf_arrays(graph, arrays, values)
    stages = needed(graph, chosen.ends)
    last = last_readers(stages)
    evaluation = Evaluation(symbols, float64)
    for n, unit in enumerate(units(stages)):
        held |= evaluate_unit(evaluation, unit, held)
        for s in unit:
            if watch is not None:
                watch(s, held[s.id])
        for source in (i for s in unit for i in s.sources):
            if last[source] == n and source not in chosen.ends:
                held.pop(source, None)

    def result(i: int) -> Array:
        """A leaf that is returned as it came is copied, so that no result shares memory with an input."""
        found = np.array(held[i], evaluation.working(graph[i].dtype)) if isinstance(graph[i], Leaf) else held[i]
        return complex_of(found) if i in chosen.complex else found

    after = {**values, **{path: np.array(held[i]) for path, i in chosen.updates.items()}}
    pairs = {t.path for t in graph.leaves if t.complex}
    return Transition(map_tree(result, chosen.result), {path: complex_of(a) if path in pairs else a for path, a in after.items()})


def evaluate_stages(graph: Graph, inputs: tuple[Any, ...] = (), named: Mapping[str, Any] | None = None, *, method: str | None = None,
                    parameters: Mapping[str, Any] | None = None, float64: bool = False, seed: int = 0) -> dict[int, Array]:
    """The array of every leaf and stage that the method needs, by id, for comparisons stage by stage. Arguments and errors as for `run`."""
    chosen = choose(graph, method)
    arrays, symbols = take(graph, chosen, inputs, named or {})
    held = leaf_arrays(graph, arrays, parameters, seed)
    evaluation = Evaluation(symbols, float64)
    for unit in units(needed(graph, chosen.ends)):
        held |= evaluate_unit(evaluation, unit, held)
    return held


def last_readers(stages: Iterable[Stage]) -> dict[int, int]:
    """The number of the last unit (stage or recurrence) that reads each tensor."""
    return {source: n for n, unit in enumerate(units(stages)) for s in unit for source in s.sources}


def parameter_arrays(graph: Graph, parameters: Mapping[str, Any] | None, seed: int = 0) -> dict[str, Array]:
    """Parameters and state by path: those given, which must be complete, else the initial ones of `seed`."""
    return given_parameters(graph, parameters) if parameters is not None else initial_parameters(graph, seed)


def leaf_arrays(graph: Graph, inputs: Mapping[int, Array], parameters: Mapping[str, Any] | None, seed: int = 0) -> dict[int, Array]:
    """Inputs, constants, parameters and state by id."""
    values = parameter_arrays(graph, parameters, seed)
    held = dict(inputs)
    for leaf in graph.leaves:
        if leaf.kind == "constant":
            held[leaf.id] = np.asarray(leaf.value)
        elif leaf.kind in ("parameter", "state"):
            held[leaf.id] = values[leaf.path]
    return held


def needed(graph: Graph, outputs: tuple[int, ...]) -> list[Stage]:
    """The stages that these depend on, producers first."""
    wanted: set[int] = set()
    pending = list(outputs)
    while pending:
        i = pending.pop()
        if i not in wanted and (s := graph.stage(i)) is not None:
            wanted.add(i)
            pending += s.sources
    return [s for s in graph.stages if s.id in wanted]


def method_symbols(graph: Graph, method: str | None, inputs: tuple[Any, ...], named: Mapping[str, Any] | None = None) -> dict[str, int]:
    """The extents that a call's inputs imply. Raises RunError."""
    return take(graph, choose(graph, method), inputs, named or {})[1]


__all__ = ["Evaluation", "Watch", "evaluate_stages", "evaluate_unit", "last_readers", "leaf_arrays", "method_symbols", "needed",
           "parameter_arrays", "run", "step"]
