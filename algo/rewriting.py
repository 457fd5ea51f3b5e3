"""Walking and rewriting expressions; shared nodes are visited once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any, TypeVar

from .expr import Access, Axis, Expr, Op, Read, Reduce

E = TypeVar("E", bound=Expr)


def children(e: Expr) -> tuple[Expr, ...]:
    match e:
        case Read() | Access():
            return e.index
        case Op():
            return e.args
        case Reduce():
            return (e.body,)
    return ()


def with_children(e: E, new: tuple[Expr, ...]) -> E:
    if all(a is b for a, b in zip(children(e), new, strict=True)):
        return e
    match e:
        case Read():
            return Read(e.source, new, e.dtype)  # type: ignore[return-value]
        case Access():
            return Access(e.tensor, new, e.dtype)  # type: ignore[return-value]
        case Op():
            return Op(e.op, new, e.dtype, e.weak)  # type: ignore[return-value]
        case Reduce():
            return Reduce(e.kind, e.axes, e.extents, new[0], e.dtype)  # type: ignore[return-value]
    return e


def rewrite(e: Expr, rule: Callable[[Expr], Expr | None], memo: dict[Expr, Expr] | None = None) -> Expr:
    """Bottom-up: `rule` sees each node with rewritten children and returns its replacement, or None to keep it."""
    memo = {} if memo is None else memo
    if e in memo:
        return memo[e]
    new = with_children(e, tuple(rewrite(c, rule, memo) for c in children(e)))
    changed = rule(new)
    memo[e] = result = new if changed is None else changed
    return result


def substitute(e: Expr, mapping: dict[Axis, Expr]) -> Expr:
    return rewrite(e, lambda n: mapping.get(n) if isinstance(n, Axis) else None) if mapping else e


def walk(e: Expr) -> Iterator[Expr]:
    """Every distinct node once, children first."""
    seen: set[Expr] = set()

    def visit(n: Expr) -> Iterator[Expr]:
        if n not in seen:
            seen.add(n)
            for c in children(n):
                yield from visit(c)
            yield n

    yield from visit(e)


def reads(e: Expr) -> list[Read]:
    return [n for n in walk(e) if isinstance(n, Read)]


def axes_of(e: Expr) -> list[Axis]:
    return [n for n in walk(e) if isinstance(n, Axis)]


def node_fields(e: Expr) -> tuple[Any, ...]:
    return tuple(getattr(e, f.name) for f in fields(e))
