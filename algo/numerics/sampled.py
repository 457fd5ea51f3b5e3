"""How far rounding really moves a result: the oracle run again with every stage disturbed by as much as its own roundings may.

Bounds that add up every rounding of a deep graph as if all pushed one way grow by an order of magnitude a layer, although errors mostly
cancel. Disturbing each stage at random within its own bound, and once with all stages pushed one way, samples what rounding can do
(stochastic arithmetic: J. Vignes, "A stochastic arithmetic for reliable scientific computation", 1993). `SAFETY` times the largest
deviation seen is then a tolerance where the bound is looser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..extent import evaluate, volume
from ..extent_names import most_of
from ..graph import Graph
from ..interpreter.stages import Evaluation
from ..ordering import units
from ..stages import Stage
from .casts import NO_CASTS, Casts
from .recurrences import disturbed_unit
from .rules import Enclosure
from .stages import EnclosingEvaluation, numbers

Array = np.ndarray[Any, Any]
SAFETY = 8.0
LOOSE = 1e-4  # of an output's largest magnitude: bounds tighter than this are used as they are
_SAMPLES, _SAMPLES_OF_FEW, _FEW = 4, 16, 256


def is_loose(truth: Enclosure) -> bool:
    """Whether an output's bound says little about it."""
    value = numbers(truth.value)
    if truth.error is None or not value.size or value.dtype.kind != "f":
        return False
    finite = np.isfinite(truth.error) & np.isfinite(value)
    return bool(finite.any()) and float(truth.error[finite].max()) > LOOSE * float(np.abs(value[finite]).max())


def tightened(truth: Enclosure, deviation: float) -> Enclosure:
    """The enclosure with the sampled tolerance where that is smaller, and nothing hangs on a decision."""
    if truth.error is None or not np.isfinite(deviation) or deviation == 0:
        return truth
    smaller = np.minimum(truth.error, SAFETY * deviation)
    kept = smaller if truth.undecided is None else np.where(truth.undecided, truth.error, smaller)
    return Enclosure(truth.value, np.where(np.isfinite(truth.error), kept, truth.error), truth.undecided)


def deviations(
    graph: Graph,
    stages: list[Stage],
    leaves: Mapping[int, Array],
    symbols: Mapping[str, int],
    class_: str,
    outputs: tuple[int, ...],
    casts: Casts = NO_CASTS,
) -> dict[int, float]:
    """The largest deviation of every output over all samples and elements."""
    bounding, plain = EnclosingEvaluation(graph, symbols, class_, casts), Evaluation(symbols, wide=True)
    exact = {i: a.astype(plain.working(a.dtype.name), copy=False) for i, a in leaves.items()}
    known = {**{n: most_of(n) or 0 for names in graph.counts.values() for n in names}, **symbols}
    few = any(evaluate(volume(graph[i].shape), known) <= _FEW for i in outputs)
    samples: list[dict[int, Array]] = [dict(exact) for _ in range(_SAMPLES_OF_FEW if few else _SAMPLES)]
    rng = np.random.default_rng(0)

    def push(n: int, error: Array) -> Array:
        reach = np.where(np.isfinite(error), error, 0)
        return reach * (1.0 if n == 0 else rng.uniform(-1, 1, reach.shape))

    for unit in units(stages):
        bounding.count(unit, exact)
        plain.count(unit, exact)
        if any(s.earlier for s in unit) or len(unit) > 1:
            disturbed_unit(bounding, plain, unit, exact, samples, push)
            continue
        (s,) = unit
        own = bounding.bounded(s, {i: Enclosure(exact[i]) for i in s.sources})
        exact[s.id] = own.value
        for n, held in enumerate(samples):
            value = numbers(plain.stage(s, held))
            if own.error is not None and value.dtype.kind == "f":
                value = value + push(n, np.broadcast_to(own.error, value.shape))
            held[s.id] = value
    with np.errstate(all="ignore"):
        floats = {i: value for i in outputs if (value := numbers(exact[i])).dtype.kind == "f"}
        return {i: max((_largest(numbers(held[i]) - value) for held in samples), default=0.0) for i, value in floats.items()}


def _largest(difference: Array) -> float:
    finite = np.abs(difference[np.isfinite(difference)])
    return float(finite.max()) if finite.size else 0.0
