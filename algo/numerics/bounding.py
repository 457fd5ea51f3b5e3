"""The value of every result with a bound of its error, by enclosing evaluation."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graph import Graph
from ..interpreter import last_readers, leaf_arrays, needed
from ..interpreter.arguments import choose, take
from ..ordering import units
from .casts import NO_CASTS, Casts
from .recurrences import bounded_unit
from .rules import Enclosure
from .stages import EnclosingEvaluation


def bounds(graph: Graph, inputs: tuple[Any, ...], class_: str = "reassociates", *, method: str | None = None,
           named: Mapping[str, Any] | None = None, parameters: Mapping[str, Any] | None = None,
           keep: bool = False, seed: int = 0, casts: Casts = NO_CASTS) -> dict[int, Enclosure]:
    """Value, error bound and undecided mark of every result and new value of state by id; of every stage with `keep`. `casts` are what a
    plan's precision rounds.

    Raises RunError as `run` does."""
    chosen = choose(graph, method)
    arrays, symbols = take(graph, chosen, inputs, named or {})
    evaluation = EnclosingEvaluation(graph, symbols, class_, casts)
    leaves = leaf_arrays(graph, arrays, parameters, seed)
    held = {i: Enclosure(a.astype(evaluation.working(a.dtype.name), copy=False)) for i, a in leaves.items()}
    stages = needed(graph, chosen.ends)
    last = last_readers(stages)
    for n, unit in enumerate(units(stages)):
        held |= bounded_unit(evaluation, unit, held)
        for source in (i for s in unit for i in s.sources):
            if not keep and last[source] == n and source not in chosen.ends:
                held.pop(source, None)
    return held if keep else {i: held[i] for i in chosen.ends}
