"""Comparing what was computed with what the algorithm means, within a bound that is derived and not guessed."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..complex.arrays import parts_of
from ..dtypes import kind
from ..expr import Op, Read
from ..graph import Graph, Transition, flatten
from ..interpreter import last_readers, leaf_arrays, needed, parameter_arrays
from ..interpreter.arguments import choose, take
from ..ordering import units
from ..rewriting import walk
from ..stages import Stage
from .casts import NO_CASTS, Casts
from .classes import CLASSES, accumulation, formats, tolerated, weakest, within
from .recurrences import bounded_unit
from .rules import FUNCTION_ULPS, Enclosure, roundings
from .sampled import deviations, is_loose, tightened
from .stages import EnclosingEvaluation

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Comparison:
    """One output against the oracle. Errors and tolerance are absolute, in the output's units."""

    path: str
    max_error: float                     # at the element that uses most of its tolerance
    tolerance: float                     # of that element
    ok: bool
    worst_index: tuple[int, ...] = ()
    undecided: int = 0                   # elements that hang on a decision (a comparison, a floor) within the bound: both are right
    elements: int = 0
    used: float = 0.0                    # max over elements of error / tolerance; above 1 is wrong
    why: str = ""                        # shape or dtype differ

    def text(self) -> str:
        """One line."""
        if self.why:
            return f"{self.path}: {self.why}"
        open_ = f", {self.undecided} of {self.elements} undecided" if self.undecided else ""
        if self.ok:
            return f"{self.path}: at {self.used:.2g} of its tolerance (error {self.max_error:.3g}, tolerance {self.tolerance:.3g}){open_}"
        return f"{self.path}: wrong at {list(self.worst_index)}: off by {self.max_error:.3g}, tolerance {self.tolerance:.3g}{open_}"


@dataclass(frozen=True)
class Tolerance:
    """A static summary of the bound of one output, for tables.

    An element may differ by relative * (the sum of the magnitudes that enter it) + absolute; `compare` uses each element's own bound.
    """

    path: str
    relative: float
    absolute: float


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


def compare(graph: Graph, method: str | None, inputs: tuple[Any, ...], got: Any, class_: str = "reassociates",
            parameters: Mapping[str, Any] | None = None, *, named: Mapping[str, Any] | None = None,
            casts: Casts = NO_CASTS) -> list[Comparison]:
    """Every output of a call (`got`, nested as the method returns it) against the oracle, within the bound of the numerics class and of
    what a plan's precision rounds.

    A Transition is compared with its parameters and state: new values likewise, and what the method leaves alone to the bit.
    """
    chosen = choose(graph, method)
    truth = bounds(graph, inputs, class_, method=method, named=named, parameters=parameters, casts=casts)
    if any(is_loose(t) for t in truth.values()):
        arrays, symbols = take(graph, chosen, inputs, named or {})
        stages, leaves = needed(graph, chosen.ends), leaf_arrays(graph, arrays, parameters)
        moved = deviations(graph, stages, leaves, symbols, class_, chosen.ends, casts)
        truth = {i: tightened(t, moved[i]) if is_loose(t) and i in moved else t for i, t in truth.items()}
    found = [parts_of(np.asarray(g)) for g in flatten(got.result if isinstance(got, Transition) else got)]
    ids = list(flatten(chosen.result))
    if len(found) != len(ids):
        return [Comparison(chosen.name, float("inf"), 0.0, False, why=f"{len(found)} results, expected {len(ids)}")]
    compared = [compare_array(graph.path_of(i), truth[i], g, graph[i].dtype) for i, g in zip(ids, found, strict=True)]
    if isinstance(got, Transition):
        for path, before in parameter_arrays(graph, parameters).items():
            new, i = parts_of(np.asarray(got.parameters[path])), chosen.updates.get(path)
            if i is not None:
                compared.append(compare_array(graph.path_of(i), truth[i], new, graph[i].dtype))
            elif not (left := compare_array(path, Enclosure(before), new, before.dtype.name)).ok:
                compared.append(left)
    return compared


def compare_array(path: str, truth: Enclosure, got: Any, dtype: str) -> Comparison:
    """One array against a bounded value."""
    found = np.asarray(got)
    if found.shape != truth.value.shape:
        return Comparison(path, float("inf"), 0.0, False, why=f"its shape is {list(found.shape)}, expected {list(truth.value.shape)}")
    if found.dtype.name != dtype:
        return Comparison(path, float("inf"), 0.0, False, why=f"it is {found.dtype.name}, expected {dtype}")
    if not found.size:
        return Comparison(path, 0.0, 0.0, True)
    with np.errstate(all="ignore"):
        off = _distance(found, truth.value)
        allowed = np.zeros(found.shape) if truth.error is None else truth.error * (1 + 1e-6)
        used = np.where(off == 0, 0, np.where(np.isinf(allowed), 0, off / allowed))
        used = np.where(np.isnan(used), np.inf, used)
    worst = np.unravel_index(int(np.argmax(used)), used.shape)
    if used[worst] == 0:
        finite = np.where(np.isinf(allowed), 0, off)
        worst = np.unravel_index(int(np.argmax(finite)), used.shape)
    undecided = 0 if truth.undecided is None else int(truth.undecided.sum())
    return Comparison(path, float(off[worst]), float(allowed[worst]), bool(used[worst] <= 1), tuple(int(i) for i in worst), undecided,
                      found.size, float(used[worst]))


def _distance(found: Array, value: Array) -> Array:
    """|found - value| as float64; equal infinities and two NaN are at no distance, one NaN is infinitely far."""
    if found.dtype.kind in "bi" + "u" and value.dtype == found.dtype:
        same = found == value
        return np.where(same, 0.0, np.maximum(np.abs(found.astype(np.float64) - value.astype(np.float64)), 1.0))
    a, b = found.astype(np.float64), value.astype(np.float64)
    off = np.abs(a - b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isnan(off), np.inf, off))


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


__all__ = ["CLASSES", "FUNCTION_ULPS", "NO_CASTS", "Casts", "Comparison", "Enclosure", "Tolerance", "bounds", "compare", "compare_array",
           "tolerance", "tolerated", "weakest", "within"]
