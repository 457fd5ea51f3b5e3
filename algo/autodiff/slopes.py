"""Derivatives beside the slopes of what they are derivatives of, measured in float64 on the interpreter.

A claim (see `pullbacks`) is judged along random directions: what it says of a direction is a product of sums, and central differences of
the function itself say the same. Every float is computed in float64, whatever its type, so nothing is rounded on the way.

fl.stop_gradient keeps the value that it has at the point: that is what a derivative takes it for, so the comparison is exact with it.

How far a measured slope may be off is measured, too. Along the line the function is sampled at nine evenly spaced points; its sixth
differences are 0 up to rounding where it is smooth, and as large as the change of slope (or the jump) where it has a kink (or a step)
among them. So rounding, kinks and what the formula of the slope leaves out are seen alike: over the spacing, a kink puts at most an eighth
of the largest sixth difference into the slope, a step or rounding less, and that eighth is the bound. A point at which a kink lies closer
than any useful spacing is not judged. (Differences as a measure of noise: R. W. Hamming, "Introduction to Applied Numerical Analysis",
1971, chapter 6; J. J. Moré, S. M. Wild, "Estimating computational noise", 2011.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import ml_dtypes
import numpy as np

from ..dtypes import FLOATS
from ..errors import RunError
from ..expr import Const, Op, Read
from ..interpreter import Evaluation, evaluate_unit, leaf_arrays, needed
from ..interpreter.arguments import take
from ..interpreter.elementary import literal
from ..ordering import units
from ..stages import Leaf, Stage
from .pullbacks import Derivative, Pullback

Array = np.ndarray[Any, Any]
SPACINGS = tuple(2.0**-n for n in (17, 21, 25, 12, 8))
COARSE = tuple(2.0**-n for n in (6, 4, 8, 11))
"""Distances between samples, relative to what is moved, in the order in which they are tried; COARSE where a function of NumPy's, whose
result is rounded to float32, is on the way."""
SAFETY = 4.0  # times the error that the differences show
DIGITS = 2.0**-18  # of a derivative: people write constants with as many, and a formula is not wrong by less
DECISIVE = 1e-3  # a slope that is not known to this, relative, says nothing
_REACH = 4  # samples on each side
_STENCIL = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])  # the slope of a polynomial of degree 8


@dataclass(frozen=True)
class Slope:
    """One claim along one direction. `claimed` and `measured` are derivatives of a random combination of the results, and may differ by
    `tolerance`. `verdict`: right; wrong; or unsure, because the function is not smooth enough there, for which `why` is the reason."""

    claim: Pullback
    claimed: float
    measured: float
    tolerance: float
    verdict: Literal["right", "wrong", "unsure"]
    why: str = ""
    by: tuple[int, ...] = ()  # of a wrong one: the tensors whose derivative is wrong, as far as each shows it alone

    @property
    def off(self) -> float:
        return abs(self.claimed - self.measured) if np.isfinite(self.claimed) else float("inf")

    @property
    def used(self) -> float:
        """The part of the tolerance."""
        return self.off / self.tolerance if self.tolerance else 0.0 if not self.off else float("inf")


class Smooth(Evaluation):
    """Every float in float64. While `shaking`, what functions of NumPy's are given and return is off by its rounding."""

    shaking: np.random.Generator | None = None

    def working(self, dtype: str) -> str:
        return "float64" if dtype in FLOATS else dtype

    def constant(self, e: Const) -> Array:
        return literal(e.value, "float64") if e.dtype in FLOATS else super().constant(e)

    def stage(self, s: Stage, sources: Mapping[int, Array]) -> Array:
        if s.extern is None or self.shaking is None:
            return super().stage(s, sources)
        given = {r.source: r.dtype for r in s.handed}
        found = super().stage(s, {i: self._off(a, given[i]) if i in given else a for i, a in sources.items()})
        return self._off(found, s.dtype)

    def _off(self, a: Array, dtype: str) -> Array:
        if dtype not in FLOATS or self.shaking is None:
            return a
        unit = float(ml_dtypes.finfo(np.dtype(dtype)).eps)  # type: ignore[no-untyped-call]
        signs: Array = self.shaking.choice((-1.0, 1.0), a.shape)
        return np.asarray(a * (1 + unit * signs))


class Point:
    """A derivative at one point: `held` has every leaf and stage in float64, `symbols` the extents."""

    def __init__(self, d: Derivative, inputs: Sequence[Array], parameters: Mapping[str, Array], seed: int = 0) -> None:
        """`inputs` are those of the method, `parameters` at least its own. Raises RunError as the interpreter does."""
        self.derivative, self.graph = d, d.judged
        (method,) = d.judged.methods
        seeds = {i for c in d.claims for i in c.seeds}
        own = replace(method, inputs=tuple(i for i in method.inputs if i not in seeds))
        arrays, self.symbols = take(d.judged, own, tuple(inputs), {})
        self.evaluation = Smooth(self.symbols, wide=True)
        self.rng = np.random.default_rng(seed)
        own_parameters = {t.path: parameters[t.path] for t in d.judged.leaves if t.path in parameters}
        leaves = leaf_arrays(d.judged, arrays, own_parameters)
        self.held = {i: a.astype(self.evaluation.working(a.dtype.name), copy=False) for i, a in leaves.items()}
        self.units = units(needed(d.judged, method.ends))
        with np.errstate(all="ignore"):
            later = self._downstream(seeds)
            self._evaluate([u for u in self.units if u[0].id not in later])
            for c in d.claims:
                self.held |= {i: self._weights(self.held[r]) for i, r in zip(c.seeds, c.results, strict=True)}
            self._evaluate([u for u in self.units if u[0].id in later])

    def _downstream(self, ids: set[int]) -> set[int]:
        """What changes with these tensors, themselves among it; all stages of a recurrence or loop, or none."""
        found = set(ids)
        for unit in self.units:
            if any(s.id in found or not found.isdisjoint(s.sources) for s in unit):
                found |= {s.id for s in unit}
        return found

    def _evaluate(self, some: Sequence[tuple[Stage, ...]]) -> None:
        for unit in some:
            self.held |= evaluate_unit(self.evaluation, unit, self.held)

    def _weights(self, result: Array) -> Array:
        """What arrives at a result: nothing where it is no number."""
        return np.where(np.isfinite(result), self.rng.standard_normal(result.shape), 0.0)

    # ------------------------------------------------------------ judging
    def judge(self, claim: Pullback, directions: int) -> list[Slope]:
        """The claim along random directions of all that it is by; where one is wrong, of each tensor alone, too."""
        found = [self._along(claim, claim.by) for _ in range(directions)]
        if not any(s.verdict == "wrong" for s in found):
            return found
        alone = [i for i in claim.by if self._along(claim, (i,)).verdict == "wrong"] if len(claim.by) > 1 else [*claim.by]
        return [replace(s, by=tuple(alone or claim.by)) if s.verdict == "wrong" else s for s in found]

    def _along(self, claim: Pullback, by: Sequence[int]) -> Slope:
        arriving = dict(zip(claim.by, claim.arriving, strict=True))
        towards = {i: self._direction(self.held[i]) for i in by}
        terms = [self.held[a] * towards[i] for i in by if (a := arriving[i]) is not None]
        with np.errstate(all="ignore"):
            claimed = float(sum(np.sum(t) for t in terms))
            spread = float(np.sqrt(sum(np.sum(t**2) for t in terms)))  # how large the sum is, whatever the direction
            line = _Line(self, claim, towards)
            return line.judged(claimed, spread)

    def _direction(self, a: Array) -> Array:
        """A random one of the size of the tensor."""
        finite = a[np.isfinite(a)]
        size = float(np.sqrt(np.mean(finite**2))) if finite.size else 0.0
        return np.asarray(self.rng.standard_normal(a.shape) * (size or 1.0))


class _Line:
    """The results of a claim along a line through a point, less what they are there."""

    def __init__(self, point: Point, claim: Pullback, towards: Mapping[int, Array]) -> None:
        self.point, self.claim = point, claim
        stopped, fresh = point.derivative.stopped, max(point.graph.by_id) + 1
        self.leaves: dict[int, Array] = {}
        moved: dict[int, Stage] = {}
        for n, (i, direction) in enumerate(towards.items()):
            s = point.graph[i]
            self.leaves[i if isinstance(s, Leaf) else fresh + n] = direction
            if isinstance(s, Stage):
                moved[i] = replace(s, value=Op("add", (s.value, Read(fresh + n, s.axes, s.dtype)), s.dtype, False))
        there = [s for s in needed(point.graph, claim.results) if s.id not in stopped]
        kept = [moved.get(s.id, s) for s in there]
        changing = set(self.leaves)
        self.units = []
        for unit in units(kept):
            if any(not changing.isdisjoint(s.sources) for s in unit):
                changing |= {s.id for s in unit}
                self.units.append(unit)
        self.rounded = any(s.extern is not None for unit in self.units for s in unit)
        self.weights = [point.held[i] for i in claim.seeds]
        self.start = [point.held[i] for i in claim.results]

    def at(self, t: float) -> float:
        """The combination of the results that the seeds say, at a distance, less that at the point; NaN where there are no results."""
        point = self.point
        held = dict(point.held)
        for i, direction in self.leaves.items():
            held[i] = point.held[i] + t * direction if i in point.held else t * direction
        try:
            for unit in self.units:
                held |= evaluate_unit(point.evaluation, unit, held)
        except RunError:  # of a function of NumPy's: the end of what it takes
            return float("nan")
        parts = (
            np.sum(np.where(w == 0, 0.0, w * (held[i] - start)))
            for i, w, start in zip(self.claim.results, self.weights, self.start, strict=True)
        )
        return float(sum(parts))

    def noise(self) -> tuple[float, float]:
        """How far rounding alone moves the combination (that of its last operation, and what functions of NumPy's do to it), and how large
        its terms are."""
        size = float(sum(np.sum(np.abs(w * np.where(w == 0, 0.0, s))) for w, s in zip(self.weights, self.start, strict=True)))
        found = 2.0**-52 * size
        if self.rounded:
            self.point.evaluation.shaking = np.random.default_rng(0)
            found += max(abs(self.at(0.0)) for _ in range(3))
            self.point.evaluation.shaking = None
        return found, size

    def judged(self, claimed: float, spread: float) -> Slope:
        """By the first spacing that decides; what is wrong by one must be wrong by the next, too."""
        noise, size = self.noise()
        best = Slope(self.claim, claimed, float("nan"), float("inf"), "unsure", _UNSURE)
        if not any(w.size for w in self.weights):
            return replace(best, why=_EMPTY)
        if not np.isfinite(claimed) and not all(np.isfinite(a).all() for a in self.start):
            return replace(best, why=_NOT_FINITE)
        for spacing in COARSE if self.rounded else SPACINGS:
            measured, error = self._slope(spacing, noise)
            tolerance = SAFETY * error + DIGITS * (spread if np.isfinite(spread) else 0.0)
            if not tolerance < best.tolerance:
                continue
            off = abs(measured - claimed)
            decisive = tolerance <= max(DECISIVE * max(abs(measured), spread if np.isfinite(spread) else 0.0), DECISIVE**2 * size)
            best = Slope(self.claim, claimed, measured, tolerance, "unsure", _UNSURE)
            if off <= tolerance and decisive:
                return replace(best, verdict="right", why="")
            if not off <= tolerance and (decisive or np.isfinite(off)) and self._confirmed(claimed, spread, spacing, measured, noise):
                return replace(best, verdict="wrong", why="")
        return best

    def _confirmed(self, claimed: float, spread: float, spacing: float, measured: float, noise: float) -> bool:
        """Whether another spacing says the same."""
        again, error = self._slope(spacing / 2, noise)
        tolerance = SAFETY * error + DIGITS * (spread if np.isfinite(spread) else 0.0)
        return abs(again - measured) <= 2 * tolerance and not abs(again - claimed) <= tolerance

    def _slope(self, spacing: float, noise: float) -> tuple[float, float]:
        """The slope at the point, and how far it may be off."""
        f = np.array([self.at(n * spacing) for n in range(-_REACH, _REACH + 1)])
        if not np.isfinite(f).all():
            return float("nan"), float("inf")
        return float(_STENCIL @ f / spacing), float((np.abs(np.diff(f, 6)).max() / 8 + noise) / spacing)


_UNSURE = "the function is not smooth enough at the points that were tried"
_NOT_FINITE = "the results are no numbers at the points that were tried"
_EMPTY = "the results have no elements"

__all__ = ["Point", "Slope"]
