"""What was computed against what the algorithm means, element by element."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..complex.arrays import parts_of
from ..graph import Graph, Method, Transition, flatten
from ..interpreter import leaf_arrays, needed, parameter_arrays
from ..interpreter.arguments import choose, take
from .bounding import bounds
from .casts import NO_CASTS, Casts
from .rules import Enclosure
from .sampled import deviations, is_loose, tightened

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


@dataclass(frozen=True, eq=False)
class Expected:
    """What one call of a method may return: every result and new value of state with its bound, by id."""

    graph: Graph
    method: Method
    parameters: Mapping[str, Any] | None
    truth: Mapping[int, Enclosure]

    def compare(self, got: Any) -> list[Comparison]:
        """Every output of a call, nested as the method returns it.

        A Transition is compared with its parameters and state: new values likewise, and what the method leaves alone to the bit.
        """
        graph, truth = self.graph, self.truth
        found = [parts_of(np.asarray(g)) for g in flatten(got.result if isinstance(got, Transition) else got)]
        ids = list(flatten(self.method.result))
        if len(found) != len(ids):
            return [Comparison(self.method.name, float("inf"), 0.0, False, why=f"{len(found)} results, expected {len(ids)}")]
        compared = [compare_array(graph.path_of(i), truth[i], g, graph[i].dtype) for i, g in zip(ids, found, strict=True)]
        if isinstance(got, Transition):
            for path, before in parameter_arrays(graph, self.parameters).items():
                new, i = parts_of(np.asarray(got.parameters[path])), self.method.updates.get(path)
                if i is not None:
                    compared.append(compare_array(graph.path_of(i), truth[i], new, graph[i].dtype))
                elif not (left := compare_array(path, Enclosure(before), new, before.dtype.name)).ok:
                    compared.append(left)
        return compared


def expected(graph: Graph, method: str | None, inputs: tuple[Any, ...], class_: str = "reassociates",
             parameters: Mapping[str, Any] | None = None, *, named: Mapping[str, Any] | None = None,
             casts: Casts = NO_CASTS) -> Expected:
    """What a call is compared with, within the bound of the numerics class and of what a plan's precision rounds.

    Raises RunError as `run` does."""
    chosen = choose(graph, method)
    truth = bounds(graph, inputs, class_, method=method, named=named, parameters=parameters, casts=casts)
    if any(is_loose(t) for t in truth.values()):
        arrays, symbols = take(graph, chosen, inputs, named or {})
        stages, leaves = needed(graph, chosen.ends), leaf_arrays(graph, arrays, parameters)
        moved = deviations(graph, stages, leaves, symbols, class_, chosen.ends, casts)
        truth = {i: tightened(t, moved[i]) if is_loose(t) and i in moved else t for i, t in truth.items()}
    return Expected(graph, chosen, parameters, truth)


def compare(graph: Graph, method: str | None, inputs: tuple[Any, ...], got: Any, class_: str = "reassociates",
            parameters: Mapping[str, Any] | None = None, *, named: Mapping[str, Any] | None = None,
            casts: Casts = NO_CASTS) -> list[Comparison]:
    """Every output of a call (`got`, nested as the method returns it, or a Transition) against the oracle."""
    return expected(graph, method, inputs, class_, parameters, named=named, casts=casts).compare(got)


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
