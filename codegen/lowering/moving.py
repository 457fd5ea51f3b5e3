"""Statements with other expressions in them, as they are at another iteration of a loop around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fluorite.algo.expr import Axis, Expr, binary
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import substitute

from ..statements import (
    AsyncCopy,
    Comb,
    Fetch,
    For,
    If,
    Matrix,
    MultiplyFragments,
    Statement,
    Store,
    StoreFragments,
    Weave,
    While,
    transform,
)  # fmt: skip


def moved(s: Statement, var: Axis, by: Expr) -> Statement:
    """The statement as it is where the loop variable is larger by `by`."""
    return changed(s, lambda e: simplify(substitute(e, {var: binary("add", var, by)}), {}))


def changed(s: Statement, at: Callable[[Expr], Expr]) -> Statement:
    """The statement with every expression in it changed."""

    def all_at(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(map(at, index))

    def matrix(x: Matrix) -> Matrix:
        return Matrix(x.buffer, all_at(x.index), at(x.row))

    def rule(n: Statement) -> Statement | None:
        match n:
            case MultiplyFragments():
                return replace(n, a=matrix(n.a), b=matrix(n.b))
            case StoreFragments():
                return replace(n, to=matrix(n.to))
            case Store():
                return Store(n.buffer, all_at(n.index), at(n.value))
            case Fetch() | Weave() | Comb():
                return replace(n, index=all_at(n.index))
            case AsyncCopy():
                return replace(n, index=all_at(n.index), at=all_at(n.at))
            case If() | While():
                return replace(n, condition=at(n.condition))
            case For():
                return replace(n, low=at(n.low), extent=at(n.extent))
        return None

    return transform(s, rule)


__all__ = ["changed", "moved"]
