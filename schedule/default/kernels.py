"""One rule a kind of kernel: the directives that a person who knows the machine would write first."""
from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.expr import Axis
from fluorite.algo.extent import Extent
from fluorite.algo.graph import Graph, Leaf, Stage
from fluorite.algo.linear import linear

from ..directives import Cache, ComputeAt, Directive, Fuse, Pack, Parallel, Reorder, Rfactor, Split, StoreIn, Tile, Unroll, Vectorize
from ..machine import Machine
from ..rewrites import operand_axes
from .analysis import axes_of_index, cost, factors, is_flat, known, last_axis_is_contiguous, volume, work

Directives = tuple[Directive, ...]
_PARALLEL_WORK = 1 << 15        # below about this many operations, waking threads costs more than they save
_TYPICAL = 1024                 # what a symbolic extent is taken to be


def pays_parallel(*stages: Stage) -> bool:
    total = sum(_guess(work(s)) * max(1, cost(s)) for s in stages)
    return total >= _PARALLEL_WORK


def _guess(n: Extent) -> int:
    if isinstance(n, int):
        return n
    from fluorite.algo.extent import evaluate

    return evaluate(n, {s: _TYPICAL for s in n.symbols()})


def vector(s: Stage, name: str, machine: Machine) -> Directives:
    """The loop along axis `name` in native vectors, where it is long enough."""
    a = next(x for x in s.axes if x.name == name)
    lanes = machine.lanes(s.dtype)
    extent = s.ranges[a]
    if isinstance(extent, int) and extent < lanes:
        return ()
    if extent == lanes:
        return (Vectorize(name),)
    return (Vectorize(name, width=lanes),)


# ---------------------------------------------------------------- elementwise
def elementwise(g: Graph, s: Stage, machine: Machine) -> Mapping[str, Directives]:
    if not s.axes:
        return {s.path: ()}
    parallel = pays_parallel(s)
    names = [a.name for a in s.axes]
    if is_flat(g, s):
        flat = names[0] if len(names) == 1 else "flat"
        ds: list[Directive] = [Fuse(*names, into=flat)] if len(names) > 1 else []
        total, lanes = volume(s.extents), machine.lanes(s.dtype)
        if isinstance(total, int) and total < lanes:
            return {s.path: tuple(ds)}
        if parallel:
            chunk = _chunk(total, lanes, machine)
            ds += [Split(flat, chunk, into=("task", "item")), Parallel("task"), Vectorize("item", width=lanes)]
        else:
            ds += [Vectorize(flat, width=lanes)]
        return {s.path: tuple(ds)}
    return {s.path: (*_transposed(s, machine), *_outer(names[:-1], parallel), *vector(s, names[-1], machine))}


def _chunk(total: Extent, lanes: int, machine: Machine) -> int:
    """Elements of one task: a multiple of four vectors, eight tasks a core where there are enough."""
    share = _guess(total) // (8 * machine.cores)
    return max(4 * lanes, min(16384, share // (4 * lanes) * (4 * lanes)))


def _outer(names: list[str], parallel: bool, into: str = "row") -> Directives:
    if not parallel or not names:
        return ()
    if len(names) == 1:
        return (Parallel(names[0]),)
    return (Fuse(*names, into=into), Parallel(into))


def _transposed(s: Stage, machine: Machine) -> Directives:
    return ()


# ---------------------------------------------------------------- reductions
def reduction(g: Graph, s: Stage, machine: Machine, reassociate: bool) -> Mapping[str, Directives]:
    assert s.reduction is not None
    parallel = pays_parallel(s)
    names = [a.name for a in s.axes]
    inner = s.reduction.axes[-1]
    lanes = machine.lanes(s.dtype)
    if names and _window(s) and known(s.extents[-1], _TYPICAL) >= lanes:
        reduced = [a.name for a in s.reduction.axes]
        last = names[-1]
        return {s.path: (Split(last, lanes, into=(f"{last}_vec", f"{last}_lane")), *_outer(names[:-1], parallel), Reorder(f"{last}_vec", *reduced, f"{last}_lane"),
                         *(Unroll(r) for r in reduced if known(s.ranges[_axis(s, r)], 1) <= 8), Vectorize(f"{last}_lane"))}
    if not s.reduction.kind.startswith("arg") and reassociate and _runs_along(s, inner) and known(s.ranges[inner], _TYPICAL) >= 2 * lanes:
        out = lanes_of_partials(s, machine)
        place: Directives = (ComputeAt(stage="/" + s.path, axis=names[-1]),) if names else ()
        out[f"{s.path}/partial"] = (*place, *out[f"{s.path}/partial"])
        out[s.path] = (*out[s.path], *(_outer(names, parallel) if len(names) == 1 else (Parallel(names[0]),) if names and parallel else ()))
        return out
    if not s.reduction.kind.startswith("arg") and names and last_axis_is_contiguous(s, s.axes[-1]) and known(s.extents[-1], _TYPICAL) >= lanes:
        last, width = names[-1], lanes * (4 if known(s.extents[-1], _TYPICAL) >= 4 * lanes else 1)
        acc = [a.name for a in s.reduction.axes]
        own: list[Directive] = [Cache("acc"), Split(last, width, into=(f"{last}_tile", last + "_in")), Vectorize(last + "_in", width=lanes)]
        outer = [*names[:-1], f"{last}_tile"]
        task = outer[0] if len(outer) == 1 else "task"
        own += [Fuse(*outer, into=task)] if len(outer) > 1 else []
        own += [Parallel(task)] if parallel else []
        return {s.path: tuple(own), f"{s.path}/acc": (ComputeAt(stage="/" + s.path, axis=task), StoreIn("stack"), Split(last, lanes, into=("jv", "lane")),
                                                      Reorder(*acc, "jv", "lane"), Unroll("jv"), Vectorize("lane"))}
    return {s.path: _outer(names, parallel)}


def _axis(s: Stage, name: str) -> Axis:
    return next(a for a in s.ranges if a.name == name)


def _window(s: Stage) -> bool:
    """A reduction over a few neighbours (pooling, box filters) rather than over a whole dimension."""
    assert s.reduction is not None
    total = volume(s.reduction.extents)
    return isinstance(total, int) and total <= 64 and not s.reduction.kind.startswith("arg") and last_axis_is_contiguous(s, s.axes[-1]) and any(len(linear(i).terms) > 1 for r in s.reads for i in r.index)


def _runs_along(s: Stage, k: Axis) -> bool:
    """Whether the reads run along memory with reduction axis k."""
    return last_axis_is_contiguous(s, k) and any(k in set(axes_of_index(r.index)) for r in s.reads)


def lanes_of_partials(s: Stage, machine: Machine) -> dict[str, Directives]:
    """The reduction in vector lanes of partial results: rfactor of its innermost axis."""
    assert s.reduction is not None
    k, lanes = s.reduction.axes[-1], machine.lanes(s.dtype)
    extent = known(s.ranges[k], _TYPICAL)
    factor = lanes * next((n for n in (4, 2) if extent >= 2 * n * lanes and (isinstance(s.ranges[k], int) and extent % (n * lanes) == 0 or not isinstance(s.ranges[k], int) and n == 2)), 1)
    inner = f"{k.name}_inner"
    others = [a.name for a in s.reduction.axes[:-1]]
    partial: list[Directive] = [StoreIn("stack")]
    if factor > lanes:
        partial += [Split(inner, lanes, into=("jv", "lane")), Reorder(*others, f"{k.name}_outer", "jv", "lane"), Unroll("jv"), Vectorize("lane")]
    else:
        partial += [Reorder(*others, f"{k.name}_outer", inner), Vectorize(inner)]
    return {s.path: (Rfactor(axis=k.name, factor=factor),), f"{s.path}/partial": tuple(partial)}


# ---------------------------------------------------------------- rows: softmax, norms
def rows(g: Graph, root: Stage, members: list[Stage], depth: int, machine: Machine, reassociate: bool) -> Mapping[str, Directives]:
    lead = [a.name for a in root.axes[:depth]]
    row = lead[0] if depth == 1 else "row"
    out: dict[str, Directives] = {}
    at = ComputeAt(stage="/" + root.path, axis=row)
    parallel = pays_parallel(root, *members)
    own: list[Directive] = [Fuse(*lead, into=row)] if depth > 1 else []
    own += [Parallel(row)] if parallel else []
    for s in (*members, root):
        mine: Directives
        partial: dict[str, Directives] = {}
        if s.reduction is not None and reassociate and not s.reduction.kind.startswith("arg") and _runs_along(s, s.reduction.axes[-1]) and known(s.ranges[s.reduction.axes[-1]], _TYPICAL) >= 2 * machine.lanes(s.dtype):
            partial = lanes_of_partials(s, machine)
            mine = partial.pop(s.path)
            out |= {path: (at, *ds) for path, ds in partial.items()}
        elif s.reduction is None and len(s.axes) > depth:
            mine = vector(s, s.axes[-1].name, machine)
        else:
            mine = ()
        out[s.path] = (*mine, *own) if s is root else (*mine, at)
    return out


# ---------------------------------------------------------------- strips: stencils
def strips(g: Graph, root: Stage, members: list[Stage], machine: Machine) -> Mapping[str, Directives]:
    """Strips of rows in parallel; producers computed a strip at a time, full width, in vectors."""
    y, x = root.axes[0].name, root.axes[-1].name
    width = _guess(volume(root.extents[1:]))
    bytes_a_row = 4 * width * max(1, len(members))
    height = next((h for h in (64, 32, 16, 8) if bytes_a_row * (h + 4) <= machine.l2 // 2), 8)
    rows_ = known(root.extents[0], _TYPICAL)
    while height > 4 and rows_ < height * machine.cores * 2:
        height //= 2
    out: dict[str, Directives] = {root.path: (Split(y, height), *((Parallel(f"{y}_outer"),) if pays_parallel(root, *members) else ()), *vector(root, x, machine))}
    at = ComputeAt(stage="/" + root.path, axis=f"{y}_outer")
    for s in members:
        out[s.path] = (at, *(_windowed(s, machine) if s.reduction is not None else vector(s, s.axes[-1].name, machine)))
    return out


def _windowed(s: Stage, machine: Machine) -> Directives:
    assert s.reduction is not None
    lanes, last = machine.lanes(s.dtype), s.axes[-1].name
    if known(s.extents[-1], _TYPICAL) < lanes:
        return ()
    reduced = [a.name for a in s.reduction.axes]
    return (Split(last, lanes, into=(f"{last}_vec", f"{last}_lane")), Reorder(f"{last}_vec", *reduced, f"{last}_lane"),
            *(Unroll(r) for r in reduced if known(s.ranges[_axis(s, r)], 99) <= 8), Vectorize(f"{last}_lane"))


# ---------------------------------------------------------------- products: matmul and convolutions
def matmul(g: Graph, product: Stage, root: Stage, machine: Machine) -> Mapping[str, Directives]:
    """A register tile of vectors that accumulates over the reduction, operands packed where that pays; `root` finishes and owns the loops."""
    pair = factors(product)
    assert pair is not None and product.reduction is not None
    lanes = machine.lanes(product.dtype)
    j = product.axes[-1]
    n = known(product.ranges[j], _TYPICAL)
    i = next((a for a in reversed(product.axes[:-1]) if a in set(axes_of_index(pair[0].index)) and a not in set(axes_of_index(pair[1].index))), None)
    m = known(product.ranges[i], _TYPICAL) if i is not None else 1
    k = [_guess(e) for e in product.reduction.extents]
    vectors = 2 if machine.registers >= 32 and n > lanes else 1
    if i is None or m <= 2:
        vectors = 4 if n >= 4 * lanes else 2 if n >= 2 * lanes else 1
    tall = min(8 if machine.registers >= 32 else 6, m)
    width = vectors * lanes
    acc_path = product.path if product is not root else f"{product.path}/acc"
    names = [a.name for a in root.axes]
    spatial = dict(zip((a.name for a in product.axes), names, strict=True))
    jr, others = names[-1], [x for x in names[:-1] if i is None or x != spatial[i.name]]
    own: list[Directive] = [Cache("acc")] if product is root else []
    own += [Split(jr, width, into=("jo", "ji")), Split("ji", lanes, into=("jv", "lane"))] if vectors > 1 else [Split(jr, lanes, into=("jo", "lane"))]
    inner = ["jv", "lane"] if vectors > 1 else ["lane"]
    if i is not None:
        ir = spatial[i.name]
        block = 16 if m >= 32 * tall else 4 if m >= 8 * tall else 1
        own += [Split(ir, tall, into=("io", "ii")), Split("io", block, into=("ib", "it"))]
        loops = [*others, "ib", "jo", "it"]
        own += [Reorder(*loops, "ii", *inner), Unroll("ii")]
        tile = "it"
    else:
        loops = [*others, "jo"]
        own += [Reorder(*loops, *inner)]
        tile = "jo"
    own += [Unroll("jv")] if vectors > 1 else []
    own += [Vectorize("lane")]
    total = _guess(volume(product.extents)) * volume_of(k)
    if total >= _PARALLEL_WORK:
        outer = loops[:-1] if i is not None else loops
        count = 1
        for name in outer:
            count *= {"ib": max(1, m // (tall * (16 if m >= 32 * tall else 4 if m >= 8 * tall else 1))), "jo": max(1, n // width)}.get(name, known(root.ranges.get(_root_axis(root, name), 1), _TYPICAL) if name in names else 1)
        head = outer[:-1] if len(outer) > 1 and _count(outer[:-1], root, names, m, tall) >= 2 * machine.cores else outer
        own += [Fuse(*head, into="task"), Parallel("task")] if len(head) > 1 else [Parallel(head[0])]
        if tile == head[-1] and len(head) > 1:
            tile = "task"
    acc: list[Directive] = [ComputeAt(stage="/" + root.path, axis=tile), StoreIn("stack"), *_packs(g, product, pair, i, tall, width, m, n, k)]
    kn = [a.name for a in product.reduction.axes]
    jn = j.name
    acc += [Split(jn, lanes, into=("jv", "lane"))] if vectors > 1 else []
    step = 4 if k[-1] % 4 == 0 and isinstance(product.reduction.extents[-1], int) else 1
    tail = [f"{kn[-1]}_outer", f"{kn[-1]}_inner"] if step > 1 and k[-1] > 8 else [kn[-1]]
    acc += [Split(kn[-1], step)] if len(tail) > 1 else []
    rest = [a.name for a in product.axes[:-1]]
    acc += [Reorder(*kn[:-1], *tail, *rest, *(("jv", "lane") if vectors > 1 else (jn,)))]
    acc += [Unroll(tail[1])] if len(tail) > 1 else []
    acc += [Unroll(i.name)] if i is not None else []
    acc += [Unroll("jv"), Vectorize("lane")] if vectors > 1 else [Vectorize(jn)]
    out: dict[str, Directives] = {root.path: tuple(own), acc_path: tuple(acc)}
    parent = "/".join(acc_path.split("/")[:-1])
    for d in acc:
        if isinstance(d, Pack):
            first = f"{d.order[0]}_outer" if d.order[0] in d.sizes else d.order[0]
            last = next(iter(d.sizes))
            size = d.sizes[last]
            fast: Directives = (Vectorize(f"{last}_inner", width=lanes),) if size > lanes else (Vectorize(f"{last}_inner"),) if size == lanes else (Unroll(f"{last}_inner"),)
            out[f"{parent}/{d.into}"] = (Parallel(first), *fast)
    return out


def _root_axis(root: Stage, name: str) -> Axis:
    return next(a for a in root.axes if a.name == name)


def _count(loops: list[str], root: Stage, names: list[str], m: int, tall: int) -> int:
    total = 1
    for name in loops:
        total *= max(1, m // (tall * (16 if m >= 32 * tall else 4 if m >= 8 * tall else 1))) if name == "ib" else known(root.ranges[_root_axis(root, name)], _TYPICAL) if name in names else 1
    return total


def volume_of(k: list[int]) -> int:
    total = 1
    for n in k:
        total *= n
    return total


def _packs(g: Graph, product: Stage, pair: tuple[object, object], i: Axis | None, tall: int, width: int, m: int, n: int, k: list[int]) -> list[Pack]:
    """Packing of the operands: the vector side where it is constant, reused or badly laid out; the broadcast side for large products."""
    from fluorite.algo.expr import Read

    left, right = pair
    assert isinstance(left, Read) and isinstance(right, Read) and product.reduction is not None
    out = []
    depth = volume_of(k)
    b = g[right.source]
    names = operand_axes(product, b)
    j = product.axes[-1]
    if all(isinstance(x, Axis) for x in right.index) and j.name in names and left.source != right.source:
        straight = right.index[-1] is j
        fixed = isinstance(b, Leaf) and b.kind != "input"
        if (fixed and depth * n >= 256) or not straight or n % width or (m >= 32 and depth >= 64 and depth * n >= 1 << 14):
            order = [x for x in names if x not in {a.name for a in product.reduce_axes} and x != j.name]
            out.append(Pack(tensor="/" + b.path if False else b.name, sizes={j.name: width}, order=(*order, j.name, *(x for x in names if x not in order and x != j.name)), into=f"{product.name}_{b.name}_packed"))
    a = g[left.source]
    names = operand_axes(product, a)
    if i is not None and all(isinstance(x, Axis) for x in left.index) and i.name in names and left.source != right.source and m >= 64 and n >= 64 and depth >= 128 and tall > 1:
        order = [x for x in names if x not in {r.name for r in product.reduce_axes} and x != i.name]
        out.append(Pack(tensor=a.name, sizes={i.name: tall}, order=(*order, i.name, *(x for x in names if x not in order and x != i.name)), into=f"{product.name}_{a.name}_packed"))
    return out


__all__ = ["Tile", "elementwise", "matmul", "reduction", "rows", "strips"]
