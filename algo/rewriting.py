"""Walking and rewriting expressions; shared nodes are visited once. Nothing here recurses: expressions may be thousands of nodes deep."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterator, Mapping
from typing import TypeVar

from .expr import Access, Axis, Expr, Op, Read, Reduce

E = TypeVar("E", bound=Expr)
K = TypeVar("K")
V = TypeVar("V")
_FLIGHT = 32
"""Levels between two landings."""


def with_operands(e: E, new: tuple[Expr, ...]) -> E:
    if all(a is b for a, b in zip(e.operands, new, strict=True)):
        return e
    match e:
        case Read():
            return Read(e.source, new, e.dtype)  # type: ignore[return-value]
        case Access():
            return Access(e.tensor, new, e.dtype)  # type: ignore[return-value]
        case Op():
            return Op(e.op, new, e.dtype, e.weak)  # type: ignore[return-value]
        case Reduce():
            return Reduce(e.kind, e.axes, e.extents, new[0], e.dtype, e.combiner)  # type: ignore[return-value]
    return e


def rewrite(e: Expr, rule: Callable[[Expr], Expr | None], memo: dict[Expr, Expr] | None = None) -> Expr:
    """Bottom-up: `rule` sees each node with rewritten operands and returns its replacement, or None to keep it."""
    memo = {} if memo is None else memo
    pending = [e]
    while pending:
        n = pending[-1]
        if n in memo:
            pending.pop()
            continue
        operands = n.operands
        missing = [c for c in operands if c not in memo]
        if missing:
            missing.reverse()
            pending += missing
            continue
        pending.pop()
        new = n if all(memo[c] is c for c in operands) else with_operands(n, tuple([memo[c] for c in operands]))
        changed = rule(new)
        memo[n] = new if changed is None else changed
    return memo[e]


def substitute(e: Expr, mapping: Mapping[Axis, Expr]) -> Expr:
    return rewrite(e, lambda n: mapping.get(n) if isinstance(n, Axis) else None) if mapping else e


def replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    """e with one node in the place of another."""
    return e if old is new else rewrite(e, lambda n: new if n is old else None)


def walk(e: Expr, known: Container[Expr] = ()) -> Iterator[Expr]:
    """Every distinct node once, operands first; not those in `known`, nor what only they have below them."""
    seen: set[Expr] = set()
    pending = [e]
    while pending:
        n = pending[-1]
        if n in seen or n in known:
            pending.pop()
            continue
        missing = [c for c in n.operands if c not in seen and c not in known]
        if missing:
            missing.reverse()
            pending += missing
            continue
        pending.pop()
        seen.add(n)
        yield n


def landings(e: Expr, known: Container[Expr] = ()) -> Iterator[Expr]:
    """Nodes of a deep expression, lower ones first, such that every way down meets one after so many levels at most.

    A recursive function that remembers its results is called with these first: then no call of it goes deep.
    """
    if e.depth <= _FLIGHT:
        return
    levels: dict[Expr, int] = {}
    for n in walk(e, known):
        levels[n] = 1 + max((levels.get(c, 0) for c in n.operands), default=0)
        if levels[n] > _FLIGHT:
            levels[n] = 0
            yield n


def unwound(step: Callable[[K], Generator[K, V, V]], start: K) -> V:
    """A recursive function on a stack of our own: `x = yield key` in a step stands for x = step(key)."""
    stack = [step(start)]
    given: V | None = None
    while True:
        try:
            key = stack[-1].send(given)  # type: ignore[arg-type]
        except StopIteration as done:
            stack.pop()
            given = done.value
            if not stack:
                return given
        else:
            stack.append(step(key))
            given = None


def reads(e: Expr) -> list[Read]:
    return [n for n in walk(e) if isinstance(n, Read)]


def axes_of(e: Expr) -> list[Axis]:
    return [n for n in walk(e) if isinstance(n, Axis)]
