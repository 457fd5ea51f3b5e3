"""A step that meets the strong Wolfe conditions, by bracketing and zoom with cubic interpolation (Nocedal and Wright, "Numerical
Optimization", 2006, algorithms 3.5 and 3.6), decision for decision as torch.optim.LBFGS has it: a loop that makes the loss and its slope
along the direction at one length a turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..looping import while_loop
from ..tensor import Tensor
from .line_search import moved_along
from .update import Again, Update, elementwise

_LOWER, _FLATTER = 1e-4, 0.9
_NARROW = 1e-9
_MOST = 25


@dataclass(frozen=True, eq=False)
class _Point:
    """A length, with the loss and the slope there; float64."""

    t: Tensor
    f: Tensor
    slope: Tensor

    def dict(self) -> dict[str, Tensor]:
        return {"t": self.t, "f": self.f, "slope": self.slope}


def strong_wolfe(again: Again, first: Tensor, slope: Tensor, moves: Sequence[tuple[Update, Tensor]]) -> Tensor:
    """A length, float64, at which the loss is lower by 1e-4 of what the slope says and its slope at most 0.9 of the first, or the best of
    26 that were tried. `moves` are the parameters, each with its part of the direction; `first` is tried first. Raises AlgorithmError as
    `backtracked` does."""
    from ..autodiff import gradients
    from ..ops import abs as abs_
    from ..ops import cast, logical_and, logical_or

    largest = _largest(moves)
    zero = elementwise((), (), "no_length", "float64", lambda: 0.0)
    start = _Point(zero, cast(again.loss, "float64"), slope)

    def at(t: Tensor) -> _Point:
        t = elementwise((), (), "trial/length", "float64", lambda e: e, t)
        loss = moved_along(again, t, moves)
        (found,) = gradients(loss, [t])
        return _Point(t, loss, zero if found is None else found)

    def enough(p: _Point) -> Tensor:
        low: Tensor = p.f <= start.f + _LOWER * p.t * slope
        return low

    def flat(p: _Point) -> Tensor:
        level: Tensor = abs_(p.slope) <= -_FLATTER * slope
        return level

    def turn(c: dict[str, Any]) -> dict[str, Any]:
        new, low, high, before = at(c["next"]), *(_Point(**c[name]) for name in ("low", "high", "before"))
        tries = c["tries"] + 1
        last, zooms = tries > _MOST, c["zooms"]

        # bracketing: the new point ends the bracket, is good, or is behind the next one
        high_enough = logical_or(~enough(new), logical_and(tries > 2, new.f >= before.f))
        good = logical_and(~high_enough, flat(new))
        ends = logical_or(high_enough, new.slope >= 0)
        from_start = logical_and(last, ~logical_or(ends, good))
        other = _either(from_start, start, before)
        lower = other.f <= new.f
        bracket = _either(lower, other, new), _either(lower, new, other)
        bracket = _either(good, new, bracket[0]), _either(good, new, bracket[1])
        step = new.t - before.t
        further = _cubic(before, new, new.t + 0.01 * step, 10 * new.t)

        # zoom: the new point is one end of a smaller bracket
        worse = logical_or(~enough(new), new.f >= low.f)
        turned = logical_and(~flat(new), new.slope * (high.t - low.t) >= 0)
        best_still = logical_and(worse, low.f <= new.f)
        smaller_low = _either(best_still, low, new)
        smaller_high = _either(worse, _either(best_still, new, low), _either(turned, low, high))
        settled = logical_and(~worse, flat(new))

        low, high = _either(zooms, smaller_low, bracket[0]), _either(zooms, smaller_high, bracket[1])
        zooms_next = logical_or(zooms, logical_or(ends, last))
        finished = _pick(zooms, settled, good)
        narrow = logical_and(zooms_next, abs_(high.t - low.t) * largest < _NARROW)
        inside, stuck = _inside(low, high, c["stuck"])
        return {
            "next": _pick(zooms_next, inside, further),
            "low": low.dict(),
            "high": high.dict(),
            "before": new.dict(),
            "zooms": zooms_next,
            "stuck": logical_and(zooms_next, stuck),
            "tries": tries,
            "done": logical_or(finished, logical_or(narrow, last)),
        }

    begin = {
        "next": first, "low": start.dict(), "high": start.dict(), "before": start.dict(), "zooms": _no("zooms"), "stuck": _no("stuck"),
        "tries": elementwise((), (), "tries", "int32", lambda: 0), "done": _no("done"),
    }  # fmt: skip
    found = while_loop(lambda c: ~c["done"], turn, begin)
    length: Tensor = found["low"]["t"]
    return length


def _inside(low: _Point, high: _Point, stuck: Tensor) -> tuple[Tensor, Tensor]:
    """The next length within the bracket, and whether it lies at its border. Twice in a row it does not."""
    from ..ops import abs as abs_
    from ..ops import logical_and, logical_or, maximum, minimum

    least, most = minimum(low.t, high.t), maximum(low.t, high.t)
    t = _cubic(low, high, least, most)
    margin = 0.1 * (most - least)
    near = minimum(most - t, t - least) < margin
    away = logical_and(near, logical_or(stuck, logical_or(t >= most, t <= least)))
    moved = _pick(abs_(t - most) < abs_(t - least), most - margin, least + margin)
    return _pick(away, moved, t), logical_and(near, ~away)


def _cubic(a: _Point, b: _Point, least: Tensor, most: Tensor) -> Tensor:
    """Where the cubic through two points, with their slopes, is least; the middle where it is nowhere."""
    from ..ops import maximum, minimum, sqrt

    left, right = _either(a.t <= b.t, a, b), _either(a.t <= b.t, b, a)
    d1 = left.slope + right.slope - 3 * (left.f - right.f) / (left.t - right.t)
    square = d1 * d1 - left.slope * right.slope
    d2 = sqrt(_pick(square >= 0, square, 0.0 * square))
    t = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2))
    return _pick(square >= 0, minimum(maximum(t, least), most), (least + most) / 2)


def _largest(moves: Sequence[tuple[Update, Tensor]]) -> Tensor:
    """The largest element of the direction."""
    from ..ops import abs as abs_
    from ..ops import cast, maximum
    from ..ops.reductions import max as max_

    found = [cast(max_(abs_(d)) if d.shape else abs_(d), "float64") for _, d in moves]
    out = found[0]
    for other in found[1:]:
        out = maximum(out, other)
    return out


def _pick(test: Tensor, a: Tensor, b: Tensor) -> Tensor:
    from ..ops import where

    picked: Tensor = where(test, a, b)
    return picked


def _either(test: Tensor, a: _Point, b: _Point) -> _Point:
    return _Point(_pick(test, a.t, b.t), _pick(test, a.f, b.f), _pick(test, a.slope, b.slope))


def _no(name: str) -> Tensor:
    return elementwise((), (), name, "bool", lambda: False)


__all__ = ["strong_wolfe"]
