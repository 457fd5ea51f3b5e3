"""Products whose operands both run along memory with the reduction: dot products (matrix times vector, few rows times a transposed matrix).

A tile of results has one vector of partial sums each. A row of the left operand meets several of the right one while it is in registers,
and nothing is packed: where few rows use the matrix, packing it would cost more than reading it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.expr import Axis, Read
from fluorite.algo.graph import Graph
from fluorite.algo.linear import linear
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage

from ..directives import ComputeAt, Directive, Fuse, Parallel, Reorder, Rfactor, Split, StoreIn, Unroll, Vectorize
from ..machine import Machine
from ..typical import TYPICAL
from .analysis import factors, known
from .kernels import PARALLEL_WORK, Directives
from .products import ProductShape

FEW_ROWS = 24  # from here on packing the other operand is paid back


def suits(g: Graph, product: Stage, root: Stage, machine: Machine) -> bool:
    """Whether the product is better taken as dot products than as a register tile over its last axis."""
    pair = factors(product)
    if pair is None or product.reduction is None:
        return False
    s = ProductShape(product, root, machine, pair)
    k = product.reduction.axes[-1]
    return (
        not g.is_fixed(g[pair[1].source], product.method)
        and s.m < FEW_ROWS
        and known(product.ranges[k], TYPICAL) >= 2 * s.lanes
        and all(_contiguous(r, k) for r in pair)
        and not (set(axes_of(pair[1].index[-1])) - {k})
    )


def _contiguous(r: Read, k: Axis) -> bool:
    """Whether r runs along memory with k, and k stands nowhere else in it."""
    return bool(r.index) and linear(r.index[-1]).coefficient(k) == 1 and all(k not in set(axes_of(i)) for i in r.index[:-1])


def dots(product: Stage, root: Stage, machine: Machine) -> Mapping[str, Directives]:
    """Directives for such a product and the stage that finishes it (itself, if nothing does)."""
    pair = factors(product)
    assert pair is not None and product.reduction is not None
    s = ProductShape(product, root, machine, pair)
    *outer, k = [a.name for a in product.reduction.axes]
    budget = 16 if machine.registers >= 32 else 8
    tall = min(4, s.m, budget // 2)
    wide = max(2, min(8, budget // tall))
    wide = next((w for w in (wide, wide // 2) if w >= 2 and s.n % w == 0), wide)
    own: list[Directive] = [Split(s.root_name(s.j), wide, into=("jo", "ji"), tail="guard")]
    inner = ["ji"]
    head = [*s.others, "jo"]
    rows: list[str] = []
    if s.i is not None:
        ir = s.root_name(s.i)
        rows = [ir]
        if tall > 1:
            own += [Split(ir, tall, into=("io", "ii"), tail="guard")]
            rows, inner = ["io"], ["ii", "ji"]
    own += [Reorder(*head, *rows, *inner)]
    task = head[0]
    if len(head) > 1:
        task = "task"
        own += [Fuse(*head, into=task)]
    if s.other_count * s.m * s.n * s.depth >= PARALLEL_WORK:
        own += [Parallel(task)]
    at = ComputeAt(stage="/" + root.path, axis=rows[-1] if rows else task)
    few = max(2, s.lanes // 2)
    unrolled = [*(Unroll(a.name) for a in (s.i, s.j) if a is not None)]
    sums = (Rfactor(axis=k, factor=s.lanes), Rfactor(axis=f"{k}_inner", factor=few, into="few"))
    names = [a.name for a in product.axes]
    partial = (StoreIn("registers"), Reorder(*outer, f"{k}_outer", *names, f"{k}_inner"), *unrolled, Vectorize(f"{k}_inner"))
    halves = (
        StoreIn("registers"),
        Reorder(*names, f"{k}_inner_outer", f"{k}_inner_inner"),
        *unrolled,
        Unroll(f"{k}_inner_outer"),
        Vectorize(f"{k}_inner_inner"),
    )
    out: dict[str, Directives] = {
        f"{product.path}/partial": (at, *partial),
        f"{product.path}/few": (at, *halves),
    }
    if product is root:
        return {**out, root.path: (*sums, *own)}
    return {**out, product.path: (*sums, at, StoreIn("registers")), root.path: tuple(own)}
