"""Asynchronous copies: the loads of a pipeline's tiles as instructions that bring bytes from global to shared memory by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Axis, Const, Expr, Read, as_expr
from fluorite.algo.extent import Extent
from fluorite.algo.linear import linear, simplify
from fluorite.algo.rewriting import axes_of, substitute
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import SoftwarePipeline
from fluorite.schedule.nest import SERIAL

from ..statements import AsyncCopy, For, Statement, Store, transform
from .context import Context

SIZES = (4, 8, 16)
"""Bytes that one instruction copies."""


def asynchronous(load: Statement, work: Context, d: SoftwarePipeline, tiles: Sequence[Stage]) -> Statement:
    """The statements that fill the tiles, as asynchronous copies. Raises PlanError P265."""

    def rule(s: Statement) -> Statement | None:
        match s:
            case Store(value=Read(source=source) as read) if s.buffer in work.slots and source not in work.by_id:
                return _alone(work, d, AsyncCopy(s.buffer, s.index, source, read.index))
            case Store():
                raise _refused(work, d, s.buffer, "it computes what it stores, and a copy only moves")
            case For(kind="vectorized", extent=Const(value=lanes), body=AsyncCopy() as copy):
                return _together(work, s, copy, int(lanes)) or replace(s, kind=SERIAL)
        return None

    missing = next((s for s in tiles if not s.sources), None)
    if missing is not None:
        raise _refused(work, d, missing.id, "it copies nothing")
    return transform(load, rule)


def _alone(work: Context, d: SoftwarePipeline, copy: AsyncCopy) -> AsyncCopy:
    size = _itemsize(work, copy)
    if size not in SIZES:
        raise _refused(work, d, copy.buffer, f"its elements have {size} byte{'s' * (size != 1)}, and 4, 8 or 16 are copied at once")
    if work.graph[copy.source].dtype != work.by_id[copy.buffer].dtype:
        raise _refused(work, d, copy.buffer, "it converts what it stores, and a copy only moves")
    return copy


def _together(work: Context, loop: For, copy: AsyncCopy, lanes: int) -> AsyncCopy | None:
    """The copies of a vector loop as one, where both sides lie side by side and begin at a multiple of its bytes."""
    shapes = work.storage[copy.buffer][0].shape, work.graph[copy.source].shape
    if lanes * _itemsize(work, copy) not in SIZES or not all(
        _is_aligned_row(i, n, loop.var, lanes) for i, n in zip((copy.index, copy.at), shapes, strict=True)
    ):
        return None

    def first(index: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(simplify(substitute(i, {loop.var: as_expr(0)}), work.ranges) for i in index)

    return AsyncCopy(copy.buffer, first(copy.index), copy.source, first(copy.at), lanes)


def _is_aligned_row(index: Sequence[Expr], shape: Sequence[Extent], lane: Axis, lanes: int) -> bool:
    """Whether the lanes are side by side, the first of them at a multiple of their number."""
    if any(lane in set(axes_of(i)) for i in index[:-1]):
        return False
    last = shape[-1]
    if len(shape) > 1 and not (isinstance(last, int) and last % lanes == 0):
        return False
    form = linear(index[-1])
    if form.coefficient(lane) != 1 or any(lane in set(axes_of(a)) for a in form.atoms if a is not lane):
        return False
    rest = [form.constant, *(c for a, c in form.terms if a is not lane)]
    return all(isinstance(c, int) and c % lanes == 0 for c in rest)


def _itemsize(work: Context, copy: AsyncCopy) -> int:
    return int(np.dtype(work.graph[copy.source].dtype).itemsize)


def _refused(work: Context, d: SoftwarePipeline, buffer: int, why: str) -> PlanError:
    s = work.by_id[buffer]
    asked = f"software_pipeline: an asynchronous copy of {s.name}"
    return PlanError([d.at("asynchronous").problem("P265", asked, why, ("asynchronous: false",), path=s.path, source=s.source)])
