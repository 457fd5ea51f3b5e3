"""Values with large parts that occur more than once: each such part is computed once, into a register.

Expressions share their parts, but code is written out as a tree, and operations such as a maximum that minds NaN write their operands
several times. A chain of ten of these would be a tree of millions of nodes. A choice between large branches becomes a statement.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from fluorite.algo.dtypes import kind
from fluorite.algo.expr import Const, Expr, Op, Read, as_expr
from fluorite.algo.linear import is_index
from fluorite.algo.rewriting import axes_of, walk, with_operands

from .statements import Allocate, Buffer, For, If, Sequence, Statement, Store, While, sequence
from .statements import walk as each

LARGE = 256
"""Nodes of a tree that is looked at."""
PART = 12
"""Nodes of a part that gets a register."""
_REPEATING: Mapping[str, int] = {"min": 3, "max": 3, "floordiv": 4, "mod": 3, "sign": 3, "abs": 3, "shl": 2, "shr": 3, "isnan": 2}
"""How often the code of an operation has an operand in it."""


def computed_once(body: Statement, dtypes: Mapping[int, str]) -> Statement:
    """The kernel with its large shared parts in registers. `dtypes` are those of all buffers."""
    return _within(body, None, itertools.count(min(dtypes) - 1, -1), [])


def _within(s: Statement, vector: For | None, fresh: Iterator[int], made: list[Buffer]) -> Statement:
    """The registers of a vector loop are collected in `made` and taken outside it, where each has all lanes."""
    match s:
        case For(kind="vectorized", extent=Const()):
            own: list[Buffer] = []
            inner = _within(s.body, s, fresh, own)
            kind = "serial" if any(isinstance(n, If) and s.var in set(axes_of(n.condition)) for n in each(inner)) else s.kind
            return _allocated(own, replace(s, kind=kind, body=inner))
        case For():
            return replace(s, body=_within(s.body, vector, fresh, made))
        case While():
            return While(s.condition, _within(s.body, vector, fresh, made))
        case If():
            other = None if s.otherwise is None else _within(s.otherwise, vector, fresh, made)
            return If(s.condition, _within(s.then, vector, fresh, made), other)
        case Allocate():
            return Allocate(s.buffer, _within(s.body, vector, fresh, made))
        case Sequence():
            return sequence(*(_within(p, vector, fresh, made) for p in s.body))
        case Store() if vector is not None:
            return _in_steps(s, vector, fresh, made)
        case Store():
            scalars: list[Buffer] = []
            return _allocated(scalars, _in_steps(s, None, fresh, scalars))
    return s


def _allocated(buffers: list[Buffer], body: Statement) -> Statement:
    for b in reversed(buffers):
        body = Allocate(b, body)
    return body


def _in_steps(s: Store, vector: For | None, fresh: Iterator[int], made: list[Buffer]) -> Statement:
    sizes = _sizes(s.value)
    match s.value:
        case Op(op="where", args=(condition, taken, other)) if sizes[s.value] > LARGE:
            return If(condition, *(_in_steps(replace(s, value=x), vector, fresh, made) for x in (taken, other)))
    lanes, at = (1, as_expr(0)) if vector is None else (_lanes(vector), vector.var)
    known: dict[Expr, Expr] = {}
    steps: list[Statement] = []
    for part in _parts(s.value, sizes):
        b = Buffer(next(fresh), f"shared{len(made)}", part.dtype, (lanes,), "local")
        made.append(b)
        steps.append(_in_steps(Store(b.id, (at,), _replaced(part, known)), vector, fresh, made))
        known[part] = Read(b.id, (at,), part.dtype)
    return sequence(*steps, replace(s, value=_replaced(s.value, known))) if known else s


def _lanes(loop: For) -> int:
    assert isinstance(loop.extent, Const)
    return int(loop.extent.value)


def _sizes(value: Expr) -> dict[Expr, int]:
    """Nodes of each part as code writes it out, operands before what uses them."""
    sizes: dict[Expr, int] = {}
    for n in walk(value):
        sizes[n] = 1 + _times(n) * sum(sizes[c] for c in n.operands)
    return sizes


def _parts(value: Expr, sizes: Mapping[Expr, int]) -> list[Expr]:
    """The parts worth a register: those of several uses, and choices between large branches, of which only the one taken is computed."""
    if sizes[value] <= LARGE:
        return []
    always = unconditional(value)
    uses: Counter[Expr] = Counter()
    for n in always:
        for c in n.operands:
            uses[c] += _times(n)

    def worth(n: Expr) -> bool:
        chosen = isinstance(n, Op) and n.op == "where" and sizes[n] > LARGE
        return chosen or (uses[n] > 1 and sizes[n] >= PART)

    return [n for n in sizes if n in always and n is not value and _fits(n) and worth(n)]


def _fits(n: Expr) -> bool:
    return isinstance(n, Op) and n.dtype != "bool" and not is_index(n)


def _times(n: Expr) -> int:
    match n:
        case Op(op="cast", args=(a,)) if kind(n.dtype) == "int" and kind(a.dtype) == "float":
            return 6
        case Op():
            return _REPEATING.get(n.op, 1)
    return 1


def unconditional(value: Expr) -> frozenset[Expr]:
    """The parts that are computed whatever the branches that are taken."""
    found: set[Expr] = set()
    pending = [value]
    while pending:
        n = pending.pop()
        if n not in found:
            found.add(n)
            pending += n.args[:1] if isinstance(n, Op) and n.op == "where" else n.operands
    return frozenset(found)


def _replaced(e: Expr, known: Mapping[Expr, Expr]) -> Expr:
    """e with the parts inside it that have registers read from these."""
    memo = dict(known)

    def visit(n: Expr) -> Expr:
        if n not in memo:
            memo[n] = with_operands(n, tuple(map(visit, n.operands)))
        return memo[n]

    return with_operands(e, tuple(map(visit, e.operands)))


__all__ = ["computed_once", "unconditional"]
