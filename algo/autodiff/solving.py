"""The transpose of a read in gather form.

A stage that reads x[index(z)] at the points z of its box adds body(z) to the adjoint of x at a = index(z). Read the other way round,
the adjoint at a is the sum of body over all z with index(z) = a: the equations are solved for as many axes as they determine, what is
left of z is summed over, and what the solution has to satisfy are predicates. Equations that determine no axis, such as a = ids[i],
stay predicates, which makes the stage a scatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..expr import Axis, Const, Expr, Op, Size, as_expr, axis
from ..extent import Extent, at_most, ceildiv, floordiv
from ..linear import Linear, bounds, is_index, linear
from ..rewriting import axes_of, substitute
from .indices import quotient, remainder, sign_of, substituted, tidied
from .predicates import Predicate, equal, holds_data, least

_SYMBOLIC = 1 << 30
"""What an extent that is no number counts as when the longest axis is looked for."""


@dataclass(frozen=True)
class Transpose:
    """sum of `body` over the points of `axes` at which `predicates` hold, into a tensor at `index`; not solved."""

    axes: tuple[Axis, ...]
    extents: Mapping[Axis, Extent]
    predicates: tuple[Predicate, ...]
    index: tuple[Expr, ...]
    body: Expr


@dataclass(frozen=True)
class Gather:
    """At the target's axes: sum over `axes`, of `body` where `predicates` hold. `ranges` are the extents of all axes."""

    axes: tuple[Axis, ...]
    ranges: Mapping[Axis, Extent]
    predicates: tuple[Predicate, ...]
    body: Expr


def gather(t: Transpose, targets: Sequence[Axis], shape: Sequence[Extent]) -> Gather | None:
    """The solution at the target's axes; None where no point ever reaches the target."""
    solver = _Solver(dict(t.extents) | dict(zip(targets, shape, strict=True)), list(t.axes), list(t.predicates))
    equations = [_difference(a, solver.linearised(linear(tidied(i, solver.ranges)))) for a, i in zip(targets, t.index, strict=True)]
    equations += [p.form for p in solver.predicates if p.kind == "equal"]
    solver.predicates = [p for p in solver.predicates if p.kind != "equal"]
    solver.solve(equations)
    solver.tighten()
    kept = solver.remaining()
    if kept is None:
        return None
    body = tidied(substitute(t.body, solver.solution), solver.ranges)
    return Gather(tuple(solver.left), solver.ranges, tuple(kept), body)


def _difference(a: Expr, form: Linear) -> Linear:
    return Linear(((a, 1),), 0) + form.scaled(-1)


@dataclass
class _Solver:
    """The axes that are `left`, what is known of the others, and the conditions that came with knowing it."""

    ranges: dict[Axis, Extent]
    left: list[Axis]
    predicates: list[Predicate]
    solution: dict[Axis, Expr] = field(default_factory=dict)
    parts: dict[tuple[Expr, Expr], Expr] = field(default_factory=dict)  # (y, c) -> y // c as an axis and a start

    # ------------------------------------------------------------ y // c and y % c as axes of their own
    def linearised(self, form: Linear) -> Linear:
        total = Linear((), form.constant)
        for atom, k in form.terms:
            total = total + (self._divided(atom) or Linear(((atom, 1),), 0)).scaled(k)
        return total

    def _divided(self, atom: Expr) -> Linear | None:
        match atom:
            case Op(op="floordiv" | "mod" | "wrap" as op, args=(y, Const() | Size() as c)) if is_index(atom) and not holds_data(y):
                by = linear(c).constant
            case _:
                return None
        if not (set(axes_of(y)) & set(self.left)) or sign_of(by) != 1:
            return None
        inner = self.linearised(linear(y))
        if (y, c) not in self.parts:
            low, high = bounds(inner.expr(), self.ranges)
            if low is None or high is None:
                return None
            first, last = floordiv(low, by), floordiv(high, by)
            q = axis("q")
            self.ranges[q] = last - first + 1
            self.left.append(q)
            part = linear(q) + Linear((), first)
            self.predicates += [least(inner + part.scaled(by * -1)), least(part.scaled(by) + Linear((), by - 1) + inner.scaled(-1))]
            self.parts[y, c] = part.expr()
        part = linear(self.parts[y, c])
        return part if op == "floordiv" else inner + part.scaled(by * -1)

    # ------------------------------------------------------------ equations
    def solve(self, equations: Sequence[Linear]) -> None:
        for form in sorted(equations, key=lambda e: len(e.terms)):
            form = substituted(form, self.solution, self.ranges)
            chosen = self._determined(form)
            if chosen is None:
                if form.terms or form.constant != 0:
                    self.predicates.append(equal(form))
                continue
            k = form.coefficient(chosen)
            rest = (form + Linear(((chosen, k),), 0).scaled(-1)).scaled(-sign_of(k))
            size = k * sign_of(k)
            if size != 1:
                self.predicates.append(equal(linear(tidied(remainder(rest, size), self.ranges))))
            self._replace(chosen, tidied(quotient(rest, size), self.ranges))

    def _determined(self, form: Linear) -> Axis | None:
        """The axis that an equation is solved for: the longest one, of the smallest coefficient."""
        nested = {a for atom in form.atoms if not isinstance(atom, Axis) for a in axes_of(atom)}
        data = any(holds_data(a) for a in form.atoms)

        def preferred(a: Axis) -> tuple[bool, int, int]:
            k = form.coefficient(a)
            return data and k in (1, -1), _size(self.ranges[a]), -_size(k * sign_of(k))

        candidates = [
            a for a in form.atoms if isinstance(a, Axis) and a in set(self.left) and a not in nested and sign_of(form.coefficient(a))
        ]
        return max(candidates, key=preferred, default=None)

    def _replace(self, a: Axis, by: Expr, new: Axis | None = None) -> None:
        """`a` is `by`, which may use a new axis in its place."""
        place = next(n for n, x in enumerate(self.left) if x is a)
        self.left[place : place + 1] = [] if new is None else [new]
        form = linear(by)
        self.predicates += [least(form), least(Linear((), self.ranges[a] - 1) + form.scaled(-1))]
        mapping = {a: by}
        self.solution = {x: tidied(substitute(e, mapping), self.ranges) for x, e in self.solution.items()} | mapping

    # ------------------------------------------------------------ shorter axes
    def tighten(self) -> None:
        """A congruence becomes a step, a band a shift, constant limits a shorter axis; an axis of one point is gone."""
        for _ in range(64):
            known = [Predicate(p.kind, substituted(p.form, self.solution, self.ranges)) for p in self.predicates]
            if not any(self._tightened(a, known) for a in tuple(self.left)):
                return

    def _tightened(self, a: Axis, known: Sequence[Predicate]) -> bool:
        extent = self.ranges[a]
        if extent == 1:
            self._replace(a, as_expr(0))
            return True
        return self._stepped(a, extent, known) or self._banded(a, extent, known)

    def _stepped(self, a: Axis, extent: Extent, known: Sequence[Predicate]) -> bool:
        """(a + y) % c == 0, so a is a multiple of c after the first that fits."""
        for p in known:
            match p:
                case Predicate(kind="equal", form=Linear(terms=((Op(op="mod", args=(y, Const() | Size() as c)), _),), constant=0)):
                    form, by = linear(y), linear(c).constant
                case _:
                    continue
            k = form.coefficient(a)
            sign = k if k in (1, -1) else 1 if k == by * -1 + 1 else -1 if k == by - 1 else 0
            rest = form + Linear(((a, k),), 0).scaled(-1)
            if (
                not isinstance(sign, int)
                or not sign
                or a in {x for atom in rest.atoms for x in axes_of(atom)}
                or not _shorter(ceildiv(extent, by), extent)
            ):
                continue
            n = axis(a.name)
            self.ranges[n] = ceildiv(extent, by)
            start = remainder(rest.scaled(-sign), by)
            self._replace(a, tidied(Linear(((n, by),), 0).expr() + start, self.ranges), n)
            return True
        return False

    def _banded(self, a: Axis, extent: Extent, known: Sequence[Predicate]) -> bool:
        """low <= k * a <= high with a known distance between the two."""
        lows: list[tuple[Extent, Linear]] = [(1, Linear((), 0))]
        highs: list[tuple[Extent, Linear]] = [(1, Linear((), extent - 1))]
        for p in known:
            k = p.form.coefficient(a)
            sign = sign_of(k)
            rest = p.form + Linear(((a, k),), 0).scaled(-1)
            if p.kind != "least" or not sign or a in {x for atom in rest.atoms for x in axes_of(atom)}:
                continue
            ends = lows if sign > 0 else highs
            ends.append((k * sign, rest.scaled(-sign)))
            if (furthest := bounds(rest.expr(), self.ranges)[1]) is not None:  # whatever the other axes are
                ends.append((k * sign, Linear((), furthest * -sign)))
        best: tuple[Extent, Extent, Linear, Linear] | None = None
        for low_k, low in [*lows, *_divided_ends(lows, up=True)]:
            for high_k, high in [*highs, *_divided_ends(highs, up=False)]:
                width = high + low.scaled(-1)
                if low_k != high_k or width.terms:
                    continue
                count = floordiv(width.constant, low_k) + 1
                if _shorter(count, extent if best is None else best[0]):
                    best = (count, low_k, low, high)
        if best is None:
            return False
        count, k, low, high = best
        if isinstance(count, int) and count < 1:
            count = 1  # never true, which the predicates say
        if count == 1 and k != 1:
            self._replace(a, tidied(quotient(high, k), self.ranges))
            return True
        n = axis(a.name)
        self.ranges[n] = count
        start = low.expr() if k == 1 else quotient(low + Linear((), k - 1), k)
        self._replace(a, tidied(n + start, self.ranges), n)
        return True

    # ------------------------------------------------------------ what is left to be asked
    def remaining(self) -> list[Predicate] | None:
        """The predicates that are not proved, none of which follows from another; None if one never holds."""
        asked: dict[Any, Predicate] = {}
        for p in self.predicates:
            form = substituted(p.form, self.solution, self.ranges)
            q = Predicate(p.kind, form)
            if q.never(self.ranges):
                return None
            if not q.always(self.ranges):
                asked.setdefault(q.key, q)
        return [p for p in asked.values() if not any(o is not p and o.implies(p) for o in asked.values())]


def _divided_ends(ends: Sequence[tuple[Extent, Linear]], up: bool) -> list[tuple[Extent, Linear]]:
    """Limits k * a <= constant as limits of a itself."""
    return [(1, Linear((), ceildiv(f.constant, k) if up else floordiv(f.constant, k))) for k, f in ends if k != 1 and not f.terms]


def _shorter(count: Extent, extent: Extent) -> bool:
    """Whether `count` is less; a number counts as less than anything symbolic, and nothing symbolic as less than a number."""
    if isinstance(extent, int):
        return isinstance(count, int) and count < extent
    return isinstance(count, int) or at_most(count, extent - 1)


def _size(e: Extent) -> int:
    return e if isinstance(e, int) else _SYMBOLIC


__all__ = ["Gather", "Transpose", "gather"]
