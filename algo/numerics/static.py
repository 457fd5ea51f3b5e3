"""Bounds of whole outputs from the graph alone, for tables."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dtypes import kind
from ..expr import Op, Read
from ..graph import Graph
from ..interpreter import needed
from ..interpreter.arguments import choose
from ..rewriting import walk
from ..stages import Stage
from .classes import accumulation, formats
from .rules import roundings
from .stages import EnclosingEvaluation


@dataclass(frozen=True)
class Tolerance:
    """A static summary of the bound of one output, for tables.

    An element may differ by relative * (the sum of the magnitudes that enter it) + absolute; `compare` uses each element's own bound.
    """

    path: str
    relative: float
    absolute: float


def tolerance(graph: Graph, method: str | None = None, class_: str = "reassociates",
              lengths: Mapping[str, int] | None = None) -> list[Tolerance]:
    """The static bound of every output: roundings along the longest chain, a reduction counting as many as it has terms, a
    recurrence every step.

    `lengths` gives the symbols' values; a symbol that is left out counts as 1024.
    """
    chosen = choose(graph, method)
    evaluation = EnclosingEvaluation(graph, {s: (lengths or {}).get(s, 1024) for s in graph.symbols(chosen.name)}, class_)
    count: dict[int, float] = {}
    for s in needed(graph, chosen.ends):
        count[s.id] = _relative(s, count, evaluation)
    floats = formats(class_)
    return [Tolerance(graph.path_of(i), count.get(i, 0.0), floats[graph[i].dtype].tiny if graph[i].dtype in floats else 0.0)
            for i in chosen.ends]


def length_of(s: Stage, evaluation: EnclosingEvaluation) -> int:
    """How many elements a reduction combines."""
    return int(np.prod(evaluation.extents(s)[1]))


def _relative(s: Stage, count: Mapping[int, float], evaluation: EnclosingEvaluation) -> float:
    memo: dict[Any, float] = {}
    for e in walk(s.value):
        inner = [memo[c] for c in e.operands]
        worst = max(inner, default=0.0)
        match e:
            case Read(source=source):
                worst = max(worst, count.get(source, 0.0))
            case Op(op=op, dtype=dtype) if (form := evaluation.form(dtype)) is not None:
                worst = (sum(inner) if op in ("mul", "div") else worst) + roundings(op) * form.unit
        memo[e] = worst
    total = memo[s.value]
    if s.reduction is not None and s.reduction.kind in ("sum", "prod") and kind(s.dtype) == "float":
        length = length_of(s, evaluation)
        total += max(length - 1, 0) * accumulation(evaluation.class_, s.dtype)
    if s.reduction is not None and s.reduction.combiner is not None:
        steps = {n: evaluation.form(n.dtype) for e in s.reduction.combiner.results for n in walk(e)}
        total += length_of(s, evaluation) * sum(roundings(n.op) * form.unit for n, form in steps.items() if isinstance(n, Op) and form)
    if s.clock is not None:
        total *= max(evaluation.extents(s)[0][s.tick], 1)
    return total
