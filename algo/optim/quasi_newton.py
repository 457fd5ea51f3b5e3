"""L-BFGS: the inverse of the curvature from what the last steps and gradients say of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..expr import Expr, as_expr, binary, cast, refuse, unary, where
from ..reducing import reduce_axes
from ..scanning import scan
from ..tensor import Tensor
from ..trace import build_stage
from .line_search import backtracked
from .optimizer import Optimizer
from .strong_wolfe import strong_wolfe
from .update import Update, elementwise, number
from .vectors import PAIR, axis_labels, dot, each_with, magnitude, total

SEARCHES = {"backtracking": backtracked, "strong_wolfe": strong_wolfe}


class LBFGS(Optimizer):
    """w + rate * d, where d is minus the gradient times the inverse of the curvature as the last `history_size` pairs of a step s and
    a change of gradient y have it (Nocedal, "Updating quasi-Newton matrices with limited storage", 1980). All parameters are one vector.

    A pair counts if s . y > `curvature` * |s| |y|; others, of a loss that is not convex there, are left out. The first step is against the
    gradient, and `rate` * min(1, 1 / |g|_1) times as long; the others start from the identity times s . y / y . y of the newest pair. For
    losses that are the same function in every call, such as that of a whole data set.

    With ``line_search="backtracking"`` the step is halved until the loss is low enough (see fluorite.algo.optim.line_search); with
    ``"strong_wolfe"`` it is made longer and shorter until the slope is small, too, as torch.optim.LBFGS has it (strong_wolfe). Both search
    inside the compiled step, and `minimize` takes the function that makes the loss: ``self.optimizer.minimize(lambda: self.loss(x, y))``.

    State: `s` and `y` [history_size, ...] of every parameter, a ring of which `head` is written next and `pairs` are filled; the parameters
    and gradients of the last step as `w` and `g`; the products of all pairs as `sy` and `yy`. Products of vectors are added in float64.
    """

    by_rows = False

    def __init__(
        self, learning_rate: Any = 1.0, history_size: int = 10, *, curvature: float = 1e-10, line_search: str | None = None, **options: Any
    ) -> None:
        super().__init__(learning_rate, **options)
        if line_search is not None and line_search not in SEARCHES:
            why = f"it is {' or '.join(map(repr, SEARCHES))}, or left out"
            raise refuse("A191", f"line_search={line_search!r}", why, *(f"line_search={name!r}" for name in SEARCHES))
        if line_search and self.accumulate > 1:
            asked = f"line_search={line_search!r} with accumulate={self.accumulate}"
            raise refuse("A191", asked, "no call has the whole loss", "one of them")
        self.line_search = line_search
        if isinstance(history_size, bool) or not isinstance(history_size, int) or history_size < 1:
            raise refuse("A191", f"history_size={history_size!r}", "it is the number of steps that are remembered, from 1 on")
        self.history_size, self.curvature = history_size, number(curvature, "curvature", 0.0, 1.0)

    def rules(self, updates: Sequence[Update]) -> None:
        news = [_New(u, u.g()) for u in updates]
        ring = self._remembered(news)
        size = total("size", [magnitude(f"size/{n.path}", n.g) for n in news])
        length = elementwise((), (), "length", "float64", self._first, news[0].update.step.done, size)
        moves = [(n, d) for n, d in zip(news, self._directions(news, ring), strict=True)]
        rate = elementwise((), (), "length_with_rate", "float64", lambda t, r: t * r, length, news[0].update.rate)
        rate = self._searched(moves, rate)
        for n, direction in moves:
            n.update.finish(lambda w, _, d, much, u=n.update: w + u.real(much) * d, direction, rate)
            n.update.keep("w", lambda old, w, u=n.update: u.real(w), n.update.w)
            n.update.keep("g", lambda old, g: g, n.g)

    def _searched(self, moves: Sequence[tuple[_New, Tensor]], first: Tensor) -> Tensor:
        """How far to go."""
        again = moves[0][0].update.step.again
        if self.line_search is None:
            return first
        if again is None:
            why = "it asks for the loss at other parameters"
            raise refuse("A191", "a line search of a loss that is a tensor", why, "minimize(lambda: ...), a function that makes the loss")
        slope = total("slope", [dot(f"slope/{n.path}", n.g, d) for n, d in moves])
        return SEARCHES[self.line_search](again, first, slope, [(n.update, d) for n, d in moves])

    @staticmethod
    def _first(done: Expr, size: Expr) -> Expr:
        """How long a step is: the first has no scale of its own."""
        return where(done > 0, cast(1.0, "float64"), 1.0 / binary("max", size, cast(1.0, "float64")))

    # ------------------------------------------------------------ the pairs
    def _remembered(self, news: Sequence[_New]) -> _Ring:
        """The ring with the newest pair, if it counts."""
        m, step = self.history_size, news[0].update.step
        sy = total("new_sy", [dot(f"new_sy/{n.path}", n.s, n.y) for n in news])
        ss = total("new_ss", [dot(f"new_ss/{n.path}", n.s, n.s) for n in news])
        yy = total("new_yy", [dot(f"new_yy/{n.path}", n.y, n.y) for n in news])
        gate = [] if step.ready is None else [step.ready]

        def counts(done: Expr, sy: Expr, ss: Expr, yy: Expr, *ready: Expr) -> Expr:
            good = (done > 0) & (sy > self.curvature * unary("sqrt", ss) * unary("sqrt", yy))
            return good & ready[0] if ready else good

        good = elementwise((), (), "counts", "bool", counts, step.done, sy, ss, yy, *gate)
        head, pairs = (self.state(n, (), "int32", ()) for n in ("head", "pairs"))
        slot = elementwise((), (), "slot", "int32", lambda h, g: where(g, h, -1), head.now(), good)
        after = elementwise((), (), "head", "int32", lambda h, g: where(g, (h + 1) % m, h), head.now(), good)
        filled = elementwise((), (), "pairs", "int32", lambda n, g: binary("min", n + cast(g, "int32"), as_expr(m)), pairs.now(), good)
        head.assign(after)
        pairs.assign(filled)
        for n in news:
            n.steps, n.changes = (self._written(name, n.update, new, slot) for name, new in (("s", n.s), ("y", n.y)))
        y_s = each_with("y_s", [(n.changes, n.s, n.path) for n in news], m)
        s_y = each_with("s_y", [(n.steps, n.y, n.path) for n in news], m)
        y_y = each_with("y_y", [(n.changes, n.y, n.path) for n in news], m)
        return _Ring(m, after, filled, self._products("sy", slot, y_s, s_y), self._products("yy", slot, y_y, y_y))

    def _written(self, name: str, u: Update, new: Tensor, slot: Tensor) -> Tensor:
        """A ring of tensors like the parameter, with a new one in its place."""
        names = [PAIR, *(n if n and n != PAIR and n not in u.axis_names[:d] else f"i{d}" for d, n in enumerate(u.axis_names))]
        held = self.state(f"{name}/{u.path}", (self.history_size, *u.shape), u.dtype, tuple(names))
        old, shape = held.now(), (self.history_size, *u.shape)

        def value(k: Expr, *i: Expr) -> Expr:
            return where(k == slot.as_scalar(), new[i] if i else new.as_scalar(), old[(k, *i)])

        made = build_stage(names, value, name=u.label(name), extents=dict(zip(names, shape, strict=True)), origin="derived")
        held.assign(made)
        return made

    def _products(self, name: str, slot: Tensor, row: Tensor, column: Tensor) -> Tensor:
        """The products of all pairs, with those of the newest in its row and column."""
        m, axes = self.history_size, ("a", "b")
        held = self.state(name, (m, m), "float64", axes)
        old, at = held.now(), slot.as_scalar

        def value(a: Expr, b: Expr) -> Expr:
            return where(a == at(), row[b], where(b == at(), column[a], old[a, b]))

        made = build_stage(axes, value, name=name, extents={"a": m, "b": m}, origin="derived")
        held.assign(made)
        return made

    # ------------------------------------------------------------ the direction
    def _directions(self, news: Sequence[_New], ring: _Ring) -> list[Tensor]:
        """The two loops over the pairs, on the products of vectors alone (Chen, Wang and Zhou, "Large-scale L-BFGS using MapReduce",
        2014): coefficients of all s and y in the direction, and then their sum."""
        m = self.history_size
        sg = ring.aged("sg", each_with("s_g", [(n.steps, n.g, n.path) for n in news], m))
        yg = ring.aged("yg", each_with("y_g", [(n.changes, n.g, n.path) for n in news], m))
        sy, yy = ring.both("sy", ring.sy), ring.both("yy", ring.yy)
        inverse = _vector("inverse", m, lambda i: where(i < ring.filled.as_scalar(), 1.0 / _kept(sy[i, i]), 0.0))
        scale = elementwise((), (), "scale_of_curvature", "float64", lambda n: where(n > 0, sy[0, 0] / _kept(yy[0, 0]), 1.0), ring.filled)
        ages, zero = _vector("age", m, lambda i: i, "int32"), _vector("none", m, lambda i: as_expr(0.0))

        def newest_first(a: Tensor, x: Any) -> Any:
            row, g, rho, i = x
            return _put(a, i, lambda: -rho.as_scalar() * (g.as_scalar() + _sum(m, lambda j: a[j] * row[j]))), None

        def oldest_first(b: Tensor, x: Any) -> Any:
            column, own, left, rho, i = x
            return _put(b, i, lambda: own.as_scalar() + rho.as_scalar() * (left.as_scalar() - _sum(m, lambda j: b[j] * column[j]))), None

        a, _ = scan(newest_first, zero, (sy, sg, inverse, ages))
        rest = _vector("rest", m, lambda i: scale.as_scalar() * (yg[i] + _sum(m, lambda j: a[j] * yy[i, j])))
        columns = build_stage(["i", "j"], lambda i, j: sy[j, i], name="columns", extents={"i": m, "j": m}, origin="derived")
        b, _ = scan(oldest_first, zero, (columns, a, rest, inverse, ages), reverse=True)
        of_s = _vector("of_s", m, lambda k: b[ring.age(k)])
        of_y = _vector("of_y", m, lambda k: -scale.as_scalar() * a[ring.age(k)])
        return [_direction(n, m, scale, of_s, of_y) for n in news]


class _New:
    """What a step says of one parameter: its gradient `g`, the last step `s` and how that changed the gradient, `y`."""

    steps: Tensor  # all that are remembered
    changes: Tensor

    def __init__(self, u: Update, g: Tensor) -> None:
        self.update, self.g, self.path = u, g, u.path
        self.s = u.stage("last_step", lambda w, old: u.real(w) - old, u.w, u.old("w"))
        self.y = u.stage("last_change", lambda g, old: g - old, g, u.old("g"))


@dataclass(frozen=True, eq=False)
class _Ring:
    """The pairs by place: `head` is behind the newest, of which there are `filled`; the products of steps and changes of gradients."""

    size: int
    head: Tensor
    filled: Tensor
    sy: Tensor
    yy: Tensor

    def age(self, i: Expr) -> Expr:
        """The age of what is in a place, from 0, the newest; and the place of what has an age."""
        return (cast(self.head.as_scalar(), "int32") + (2 * self.size - 1) - i) % self.size

    def aged(self, name: str, t: Tensor) -> Tensor:
        """A vector over places, by age."""
        return _vector(name, self.size, lambda i: t[self.age(i)])

    def both(self, name: str, t: Tensor) -> Tensor:
        m = {"i": self.size, "j": self.size}
        return build_stage(list(m), lambda i, j: t[self.age(i), self.age(j)], name=f"{name}_by_age", extents=m, origin="derived")


def _kept(e: Expr) -> Expr:
    """The number, or 1 for 0: what is divided by where nothing is read."""
    return where(e == 0.0, 1.0, e)


def _vector(name: str, m: int, fn: Callable[[Expr], Any], dtype: str = "float64") -> Tensor:
    return build_stage(["i"], lambda i: cast(fn(i), dtype), name=name, extents={"i": m}, origin="derived")


def _sum(m: int, fn: Callable[[Expr], Expr]) -> Expr:
    return reduce_axes("sum", ["j"], fn, {"j": m})


def _put(t: Tensor, at: Tensor, value: Callable[[], Expr]) -> Tensor:
    """The vector with another number at one place."""
    made = build_stage([], value, name="number", origin="derived")
    return build_stage(["i"], lambda i: where(i == at.as_scalar(), made.as_scalar(), t[i]), name="numbers", extents={"i": t.shape[0]})


def _direction(n: _New, m: int, scale: Tensor, of_s: Tensor, of_y: Tensor) -> Tensor:
    """The part of the direction that one parameter moves along."""
    u, axes = n.update, axis_labels(n.g)

    def value(*i: Expr) -> Expr:
        def element(k: Expr) -> Any:
            return u.real(of_s[k]) * n.steps[(k, *i)] + u.real(of_y[k]) * n.changes[(k, *i)]

        g = n.g[i] if i else n.g.as_scalar()
        return reduce_axes("sum", [PAIR], element, {PAIR: m}) - u.real(scale.as_scalar()) * g

    return build_stage(axes, value, name=u.label("direction"), extents=dict(zip(axes, n.g.shape, strict=True)), origin="derived")


__all__ = ["LBFGS"]
