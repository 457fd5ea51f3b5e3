"""How each reduction starts and takes in one more value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fluorite.algo.clock import place
from fluorite.algo.combiners import Combiner
from fluorite.algo.dtypes import held, kind
from fluorite.algo.expr import Axis, Const, Expr, Op, Read, as_expr, binary, cast
from fluorite.algo.identities import identity
from fluorite.algo.stages import Stage
from fluorite.schedule.nest import Loop

from .statements import Allocate, Buffer, If, Statement, Store, sequence

Index = tuple[Expr, ...]
ZERO: Index = (as_expr(0),)


def accumulators(s: Stage) -> tuple[Buffer, ...]:
    """One-element buffers that hold the running state of a reduction: its value, its parts, or the index and the best value of argmax and
    argmin."""
    assert s.reduction is not None
    if s.parts_axis is not None:
        return _scalars(s, "acc", 0)
    state = (Buffer(-2 * s.id, f"{s.name}_acc", held(s.dtype), (1,), "local"),)
    if s.reduction.kind.startswith("arg"):
        return (*state, Buffer(-2 * s.id - 1, f"{s.name}_best", held(s.value.dtype), (1,), "local"))
    return state


def _scalars(s: Stage, name: str, batch: int, lanes: int = 1) -> tuple[Buffer, ...]:
    """One for each part of an element, in each lane."""
    types = [e.dtype for e in initial(s)]
    first = -2 * s.id - (batch << 48)
    return tuple(Buffer(first - (k << 32), f"{s.name}_{name}{k}", held(d), (lanes,), "local") for k, d in enumerate(types))


def initial(s: Stage) -> tuple[Expr, ...]:
    """Starting values, in the order of `accumulators`."""
    assert s.reduction is not None
    if s.reduction.combiner is not None:
        return s.reduction.combiner.identity
    if s.reduction.kind.startswith("arg"):
        return Const(-1, s.dtype, False), identity(s.reduction.kind, s.value.dtype)
    return (identity(s.reduction.kind, s.dtype),)


def begun(s: Stage, index: Index) -> Statement:
    """The result at an index before anything is combined."""
    at = places(s, index)
    return sequence(*(Store(s.id, i, cast(e, s.dtype)) for i, e in zip(at, initial(s)[: len(at)], strict=True)))


def finished(s: Stage, index: Index, state: Sequence[Expr] | None = None) -> Statement:
    """The result at an index, of a state, or of the accumulators."""
    at = places(s, index)
    values = (state or [Read(b.id, ZERO, b.dtype) for b in accumulators(s)])[: len(at)]  # of argmax and argmin the position alone
    return sequence(*(Store(s.id, i, v if s.parts_axis is None else cast(v, s.dtype)) for i, v in zip(at, values, strict=True)))


def places(s: Stage, index: Index) -> list[Index]:
    """The places in the result of an element at an index: one for each of its parts."""
    if s.parts_axis is None:
        return [index]
    at = place(s.parts_axis, s.axes)
    return [(*index[:at], as_expr(k), *index[at + 1 :]) for k in range(len(initial(s)))]


COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "or", "all": "and"}


def together(s: Stage, left: Expr, right: Expr) -> Expr:
    """What two values of a reduction combine to."""
    assert s.reduction is not None
    if s.reduction.combiner is None:
        return Op(COMBINE[s.reduction.kind], (left, right), s.dtype, False)
    (combined,) = eager(s.reduction.combiner).of((left,), (right,))
    return combined


def merged(s: Stage, left: Sequence[Expr], right: Sequence[Expr]) -> list[Expr]:
    """What two states of a reduction combine to, part by part; of argmax and argmin in whichever order they come."""
    assert s.reduction is not None
    c = s.reduction.combiner
    if s.reduction.kind.startswith("arg"):
        (at, best), (other, found) = left, right
        less, more = (best, found) if s.reduction.kind == "argmax" else (found, best)
        better, same = binary("lt", less, more), binary("eq", best, found)
        if kind(best.dtype) == "float":
            missing = ~binary("eq", best, best), ~binary("eq", found, found)
            better, same = better | (missing[1] & ~missing[0]), same | (missing[0] & missing[1])
        zero = Const(0, s.dtype, False)
        better = ~(other < zero) & ((at < zero) | better | (same & (other < at)))
        return [Op("select", (better, b, a), a.dtype, False) for a, b in zip(left, right, strict=True)]
    if c is None or s.parts_axis is None:
        return [together(s, left[0], right[0])]
    pairs = [[cast(e, start.dtype) for e, start in zip(state, c.identity, strict=True)] for state in (left, right)]
    return list(eager(c).of(*pairs))


def assigned(s: Stage, state: Sequence[Buffer], index: Index, values: Sequence[Expr]) -> Statement:
    """A state becomes these values, all of which are there before any of it is stored."""
    if len(state) == 1:
        return Store(state[0].id, index, values[0])
    new = [Buffer(-2 * s.id - (1 << 48) - (k << 32), f"{s.name}_new{k}", b.dtype, (1,), "local") for k, b in enumerate(state)]
    body = sequence(
        *(Store(n.id, ZERO, v) for n, v in zip(new, values, strict=True)),
        *(Store(b.id, index, Read(n.id, ZERO, n.dtype)) for n, b in zip(new, state, strict=True)),
    )
    for n in reversed(new):
        body = Allocate(n, body)
    return body


def eager(c: Combiner) -> Combiner:
    """The combiner with choices of which both sides are computed: they are made of the elements, which are there already."""
    select = c.rewritten(lambda n: Op("select", n.args, n.dtype, n.weak) if isinstance(n, Op) and n.op == "where" else None)
    return replace(c, results=select)


def accumulate(s: Stage, target: int, index: Index, value: Expr, at: Mapping[Axis, Expr], lane: Loop | None = None) -> Statement:
    """state[index] = state[index] combined with value. `at` gives the reduction axes' values, which argmax and argmin need; `lane` is the
    loop of vectors that the statement stands in."""
    assert s.reduction is not None
    kind_ = s.reduction.kind
    if s.parts_axis is not None:
        return _parts_combined(s, target, index, value, lane)
    if not kind_.startswith("arg"):
        return Store(target, index, together(s, Read(target, index, s.dtype), value))
    best_buffer = accumulators(s)[1]
    best = Read(best_buffer.id, ZERO, best_buffer.dtype)
    found = Read(target, index, s.dtype)
    low, high = (best, value) if kind_ == "argmax" else (value, best)
    better: Expr = binary("lt", low, high)
    if kind(value.dtype) == "float":  # NaN is better than every number, and no NaN better than the first
        better = ~binary("le", high, low) & binary("eq", best, best)
    better = better | (found < Const(0, s.dtype, False))
    flat: Expr = as_expr(0)
    for a, n in zip(s.reduction.axes, s.reduction.extents, strict=True):
        flat = binary("add", binary("mul", flat, as_expr(n)), at[a])
    return If(better, sequence(Store(target, index, cast(flat, s.dtype)), Store(best_buffer.id, ZERO, value)))


def _parts_combined(s: Stage, target: int, index: Index, value: Expr, lane: Loop | None) -> Statement:
    """All parts of the state with those of the value: what they become is put aside before any of it is stored."""
    assert s.reduction is not None and s.reduction.combiner is not None
    c, own = s.reduction.combiner, accumulators(s)
    scalars = [(b.id, ZERO, b.dtype) for b in own]
    state = scalars if target == own[0].id else [(target, i, s.dtype) for i in places(s, index)]
    left = [cast(Read(b, i, d), e.dtype) for (b, i, d), e in zip(state, c.identity, strict=True)]
    at, lanes = (ZERO, 1) if lane is None else ((lane.var,), int(str(lane.extent)))
    new, aside = _scalars(s, "new", 1, lanes), eager(c).of(left, c.parts(value))
    body = sequence(
        *(Store(b.id, at, e) for b, e in zip(new, aside, strict=True)),
        *(Store(b, i, cast(Read(n.id, at, n.dtype), d)) for (b, i, d), n in zip(state, new, strict=True)),
    )
    for b in reversed(new):
        body = Allocate(b, body)
    return body
