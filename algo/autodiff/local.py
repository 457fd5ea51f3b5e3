"""The adjoint of one expression: what arrives at each of its reads.

The nodes are visited once, consumers first. What arrives at a node is kept by the conditions under which it arrives, so that a branch
that was not taken contributes nothing, not even a NaN times zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..dtypes import FLOATS
from ..expr import Expr, Op, Read, binary
from ..rewriting import rewrite
from ..tensor import conjuncts
from .algebra import add, is_masked, is_zero, masked, negation
from .predicates import Predicate, conjunction, split
from .reach import unknown
from .rules import FLAT, PULL

Guard = tuple[Expr, ...]
Live = Callable[[int], bool]


@dataclass(frozen=True)
class Arrival:
    """`value` arrives at `read` where the predicates hold."""

    read: Read
    predicates: tuple[Predicate, ...]
    value: Expr


def differentiable(e: Expr) -> tuple[Expr, ...]:
    """The operands through which a change of e's value may come: no conditions, no positions, nothing that is constant in steps."""
    match e:
        case Op(op="where" | "select", args=(_, a, b)):
            return (a, b) if e.dtype in FLOATS else ()
        case Op(op=op, args=args) if e.dtype in FLOATS and op not in FLAT:
            return tuple(a for a in args if a.dtype in FLOATS)
    return ()


def active_nodes(e: Expr, live: Live) -> list[Expr]:
    """The nodes on a way from e to a read of a live tensor, operands first."""
    done: dict[Expr, bool] = {}
    order: list[Expr] = []
    pending = [e]
    while pending:
        n = pending[-1]
        if n in done:
            pending.pop()
            continue
        below = differentiable(n)
        missing = [c for c in below if c not in done]
        if missing:
            pending += missing
            continue
        pending.pop()
        done[n] = live(n.source) if isinstance(n, Read) and n.dtype in FLOATS else any(done[c] for c in below)
        if done[n]:
            order.append(n)
    return order


def arrivals(e: Expr, g: Expr, live: Live) -> Iterator[Arrival]:
    """What arrives at every live read of e when g arrives at e."""
    order = active_nodes(e, live)
    reached: dict[Expr, dict[Guard, Expr]] = {n: {} for n in order}
    if e not in reached or is_zero(g):
        return

    def send(to: Expr, guard: Guard, value: Expr) -> None:
        if to in reached and not is_zero(value):
            there = reached[to]
            there[guard] = add(there[guard], value) if guard in there else value

    send(e, (), g)
    for n in reversed(order):
        for positions, condition, value in _gathered(reached[n]):
            guard = (*positions, *condition)
            match n:
                case Read():
                    yield _arrival(n, guard, value)
                case Op(op="where" | "select", args=(c, a, b)):
                    send(a, (*guard, c), value)
                    send(b, (*guard, negation(c)), value)
                case Op(op="tuple", args=args):  # what arrives at one is one
                    for part, arrived in zip(args, value.operands, strict=True):
                        send(part, guard, arrived)
                case Op(op=op, args=args):
                    if op not in PULL:
                        raise unknown(op)
                    for k, argument in enumerate(args):
                        if argument in reached:
                            send(argument, guard, PULL[op][k](value, n))


def _arrival(read: Read, guard: Guard, value: Expr) -> Arrival:
    """What arrives, with all that says where it does in one place: the guards, and the masks that its factors brought along."""
    value = decided(value, guard)
    conditions = list(guard)
    while isinstance(value, Op) and is_masked(value):
        conditions += conjuncts(value.args[0])
        value = value.args[1]
    predicates: list[Predicate] = []
    others: list[Expr] = []
    for c in dict.fromkeys(conditions):
        found, rest = split(c)
        predicates += found
        others += rest
    whole = conjunction(others)
    return Arrival(read, tuple(predicates), value if whole is None else masked(whole, value))


def decided(e: Expr, guard: Guard) -> Expr:
    """e where the conditions of a guard hold: choices between what they tell apart are made."""
    true = {c for g in guard for c in conjuncts(g)} | set(guard)
    false = {negation(c) for c in true}
    if not true:
        return e

    def rule(n: Expr) -> Expr | None:
        match n:
            case Op(op="where" | "select", args=(c, a, b)):
                if c in true or all(part in true for part in conjuncts(c)):
                    return a
                if c in false or any(part in false for part in conjuncts(c)):
                    return b
        return None

    return rewrite(e, rule)


def _gathered(entries: dict[Guard, Expr]) -> Iterator[tuple[Guard, Guard, Expr]]:
    """(conditions on positions, other conditions, value): one for each set of the former, so that choices on choices do not multiply."""
    groups: dict[frozenset[Expr], tuple[Guard, list[tuple[Guard, Expr]]]] = {}
    for guard, value in entries.items():
        positions, others = _separated(guard)
        groups.setdefault(frozenset(positions), (positions, []))[1].append((others, value))
    for positions, found in groups.values():
        condition, value = _merged(found)
        yield positions, condition, value


def _separated(guard: Guard) -> tuple[Guard, Guard]:
    """The conjuncts that speak of positions alone, and the others."""
    positions: list[Expr] = []
    others: list[Expr] = []
    for c in dict.fromkeys(guard):
        found, rest = split(c)
        if not rest:
            positions.append(c)
        elif not found:
            others.append(c)
        else:
            positions += [p.expr() for p in found]
            others += rest
    return tuple(positions), tuple(others)


def _merged(found: list[tuple[Guard, Expr]]) -> tuple[Guard, Expr]:
    """One value and the condition under which it is not 0."""
    if len(found) == 1:
        return found[0]
    shared = set(found[0][0]).intersection(*(set(guard) for guard, _ in found))
    common = tuple(c for c in found[0][0] if c in shared)
    rests = [(tuple(c for c in guard if c not in shared), value) for guard, value in found]
    total: Expr | None = None
    for rest, value in rests:
        whole = conjunction(rest)
        part = value if whole is None else masked(whole, value)
        total = part if total is None else add(total, part)
    assert total is not None
    return (*common, *_either([rest for rest, _ in rests])), total


def _either(guards: list[Guard]) -> Guard:
    """The condition that one of the guards holds; none where that is certain."""
    if any(not g for g in guards):
        return ()
    singles = [g[0] for g in guards if len(g) == 1]
    if any(negation(a) in set(singles) for a in singles):
        return ()
    out: Expr | None = None
    for g in guards:
        whole = conjunction(g)
        assert whole is not None
        out = whole if out is None else binary("or", out, whole)
    return () if out is None else (out,)


__all__ = ["Arrival", "active_nodes", "arrivals", "differentiable"]
