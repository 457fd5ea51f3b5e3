"""Costly parts that neighbouring statements have in common, as nests that run together have: each is computed once, before them.

Neighbours are stores, or loops of vectors of one length with a store each. Under choices a part is shared where all that use it are under
the same ones: the register then holds it where these fall out that way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fluorite.algo.expr import REAL, Const, Expr, Op, Read, as_expr, where
from fluorite.algo.identities import identity
from fluorite.algo.linear import is_index
from fluorite.algo.rewriting import reads, rewrite, substitute, walk

from .statements import Allocate, Buffer, For, Sequence, Statement, Store, sequence, transform

COSTLY = frozenset((*REAL, "div", "sqrt", "rsqrt", "floordiv", "mod"))
"""Operations that are worth a register by themselves."""
NESTED = 2
"""Choices inside one another under which parts are looked for."""


@dataclass(frozen=True)
class Choices:
    """The conditions that a part stands under, outermost first, and which way they fall out. (Expressions compare by identity alone.)"""

    taken: tuple[tuple[Expr, bool], ...] = ()

    @property
    def key(self) -> tuple[tuple[int, bool], ...]:
        return tuple((id(condition), which) for condition, which in self.taken)

    def under(self, condition: Expr, which: bool) -> Choices:
        return Choices((*self.taken, (condition, which)))


def common_once(body: Statement, dtypes: Mapping[int, str]) -> Statement:
    """The kernel with these parts in registers. `dtypes` are those of all buffers."""
    fresh = itertools.count(min(dtypes) - 1, -1)

    def rule(s: Statement) -> Statement | None:
        if not isinstance(s, Sequence):
            return None
        parts = [x for lanes, run in itertools.groupby(s.body, _lanes) for x in (_shared(list(run), lanes, fresh) if lanes else run)]
        return sequence(*parts)

    return transform(body, rule)


def _lanes(s: Statement) -> int:
    """The length of a vector loop with one store, 1 for a store; 0 for anything else."""
    match s:
        case Store():
            return 1
        case For(kind="vectorized", low=Const(value=0), extent=Const(value=n), body=Store()):
            return int(n)
    return 0


@dataclass(frozen=True, eq=False)
class _Leaf:
    """A store of a run, over the lanes of the first one, and the loop of vectors around it."""

    store: Store
    loop: For | None

    def storing(self, value: Expr) -> Statement:
        store = replace(self.store, value=value)
        return store if self.loop is None else replace(self.loop, body=store)


def _shared(run: list[Statement], lanes: int, fresh: Iterator[int]) -> list[Statement]:
    """The statements with what they share computed first; as they are where that is nothing."""
    if len(run) < 2:
        return run
    first = run[0] if isinstance(run[0], For) else None
    leaves = [_leaf(s, first) for s in run]
    found = _common([x.store.value for x in leaves], {x.store.buffer for x in leaves})
    if not found:
        return run
    at: Expr = as_expr(0) if first is None else first.var
    known: dict[Expr, Expr] = {}
    steps: list[Statement] = []
    buffers: list[Buffer] = []
    for part, choices in found.items():
        b = Buffer(next(fresh), f"common{len(buffers)}", part.dtype, (lanes,), "local")
        buffers.append(b)
        store = Store(b.id, (at,), _under(choices, _replaced(part, known)))
        steps.append(store if first is None else replace(first, body=store))
        known[part] = Read(b.id, (at,), part.dtype)
    body = sequence(*steps, *(x.storing(rewrite(x.store.value, known.get)) for x in leaves))
    for b in reversed(buffers):
        body = Allocate(b, body)
    return [body]


def _leaf(s: Statement, first: For | None) -> _Leaf:
    if first is None:
        assert isinstance(s, Store)
        return _Leaf(s, None)
    assert isinstance(s, For) and isinstance(s.body, Store)
    to = {s.var: first.var}
    store = Store(s.body.buffer, tuple(substitute(i, to) for i in s.body.index), substitute(s.body.value, to))
    return _Leaf(store, replace(s, var=first.var))


def _common(values: list[Expr], stored: set[int]) -> dict[Expr, Choices]:
    """The largest costly parts of several values that none of these stores changes, smaller ones first, and the choices around each. No
    product that is added to something: a processor does that in one step, and rounds once."""
    if sum(any(map(is_costly, walk(v))) for v in values) < 2:
        return {}
    places = [_places(v) for v in values]
    shared: dict[Expr, Choices] = {}
    for part in dict.fromkeys(n for found in places for n in found):
        around = [c for found in places for c in found.get(part, {}).values()]
        if sum(part in found for found in places) < 2 or not _fits(part) or any(r.source in stored for r in reads(part)):
            continue
        least = min(around, key=lambda c: len(c.taken))
        if all(c.key[: len(least.taken)] == least.key for c in around):
            shared[part] = least
    added = {c for v in values for n in walk(v) if isinstance(n, Op) and n.op in ("add", "sub") for c in n.args}
    shared = {n: c for n, c in shared.items() if not (isinstance(n, Op) and n.op == "mul" and n in added)}
    largest = {v for v in values if v in shared}
    largest |= {c for v in values for n in walk(v) if n not in shared for c in n.operands if c in shared}
    costly = {n for n in largest if any(map(is_costly, walk(n)))}
    ordered = dict.fromkeys(n for v in values for n in walk(v) if n in costly)
    return {n: shared[n] for n in ordered}


def _places(value: Expr) -> dict[Expr, dict[object, Choices]]:
    """The parts of a value with the choices that each stands under, wherever it does."""
    found: dict[Expr, dict[object, Choices]] = {}
    pending = [(value, Choices())]
    while pending:
        n, around = pending.pop()
        if around.key in found.setdefault(n, {}):
            continue
        found[n][around.key] = around
        match n:
            case Read():
                pass
            case Op(op="where", args=(condition, a, b)):
                pending.append((condition, around))
                if len(around.taken) < NESTED:
                    pending += [(a, around.under(condition, True)), (b, around.under(condition, False))]
            case _:
                pending += [(c, around) for c in n.operands]
    return found


def is_costly(n: Expr) -> bool:
    """Whether an operation takes many instructions."""
    return isinstance(n, Op) and n.op in COSTLY and not is_index(n)


def _fits(n: Expr) -> bool:
    return isinstance(n, Op) and n.dtype != "bool" and not n.weak and not is_index(n)


def _under(choices: Choices, part: Expr) -> Expr:
    """The part where the choices fall out that way, else 0."""
    nothing = identity("sum", part.dtype)
    for condition, which in reversed(choices.taken):
        part = where(condition, part, nothing) if which else where(condition, nothing, part)
    return part


def _replaced(part: Expr, known: Mapping[Expr, Expr]) -> Expr:
    return rewrite(part, known.get) if known else part


__all__ = ["common_once", "is_costly"]
