"""One rule a kind of kernel: the directives that a person who knows the machine would write first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fluorite.algo.expr import Axis, Op
from fluorite.algo.extent import Extent, volume
from fluorite.algo.graph import Graph
from fluorite.algo.rewriting import axes_of, reads, walk
from fluorite.algo.scatter import Scatter
from fluorite.algo.stages import Stage

from ..directives import Cache, ComputeAt, Directive, FindBest, Fuse, Parallel, Reorder, Rfactor, Split, StoreIn, Unroll, Vectorize
from ..machine import Machine
from ..typical import TYPICAL, guess
from .analysis import axes_of_index, cost, is_flat, known, last_axis_is_contiguous, looked_up, much_is_contiguous, phases, steps_along, work

Directives = tuple[Directive, ...]
_FEW_SUMS = 4  # of a scatter, which are unrolled
CHEAP_TWICE = 4  # vector instructions that argmax may spend on each value again
UNROLLED = 256  # operations of an unrolled body
PARALLEL_WORK = 1 << 15  # below about this many operations, waking threads costs more than they save


def pays_parallel(*stages: Stage) -> bool:
    total = sum(guess(work(s)) * max(1, cost(s)) for s in stages)
    return total >= PARALLEL_WORK


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
    if is_flat(g, s) or len(names) == 1:
        flat = names[0] if len(names) == 1 else "flat"
        ds: list[Directive] = [Fuse(*names, into=flat)] if len(names) > 1 else []
        total, lanes = volume(s.extents), machine.lanes(s.dtype)
        if isinstance(total, int) and total < lanes:
            return {s.path: tuple(ds)}
        if parallel:
            ds += [Split(flat, chunk(total, lanes, machine), into=("task", "item")), Parallel("task"), Vectorize("item", width=lanes)]
        else:
            ds += [Vectorize(flat, width=lanes)]
        return {s.path: tuple(ds)}
    if (tall := tall_of(s, known(s.extents[-2], TYPICAL))) > 1 and known(s.extents[-1], TYPICAL) >= machine.lanes(s.dtype):
        *loops, line, lane = by_lines(s, machine, tall)
        return {s.path: (*loops, *by_rows([*names[:-2], f"{names[-2]}_group"], parallel), line, lane)}
    return {s.path: (*by_rows(names[:-1], parallel), *vector(s, names[-1], machine))}


def chunk(total: Extent, lanes: int, machine: Machine) -> int:
    """Elements of one task: a multiple of four vectors, eight tasks a core where there are enough."""
    share = guess(total) // (8 * machine.cores)
    return max(4 * lanes, min(16384, share // (4 * lanes) * (4 * lanes)))


def by_rows(names: list[str], parallel: bool, into: str = "row") -> Directives:
    if not parallel or not names:
        return ()
    if len(names) == 1:
        return (Parallel(names[0]),)
    return (Fuse(*names, into=into), Parallel(into))


# ---------------------------------------------------------------- reductions
def reduction(g: Graph, s: Stage, machine: Machine, reassociate: bool) -> Mapping[str, Directives]:
    assert s.reduction is not None
    parallel = pays_parallel(s)
    names = [a.name for a in s.axes]
    lanes = machine.lanes(s.dtype)
    in_place = is_window(s) or (names and _has_parts(s) and not spans_lanes(s, machine) and last_axis_is_contiguous(s, s.axes[-1]))
    if in_place and known(s.extents[-1], TYPICAL) >= lanes:
        reduced = [a.name for a in s.reduction.axes]
        last = names[-1]
        return {
            s.path: (
                Split(last, lanes, into=(f"{last}_vec", f"{last}_lane")),
                *by_rows(names[:-1], parallel),
                Reorder(f"{last}_vec", *reduced, f"{last}_lane"),
                *unrolled(s),
                Vectorize(f"{last}_lane"),
            )
        }
    if reassociate and spans_lanes(s, machine):
        out = positions_of_best(s, machine) if s.reduction.kind.startswith("arg") else lanes_of_partials(s, machine)
        place: Directives = (ComputeAt(stage="/" + s.path, axis=names[-1]),) if names else ()
        for path in out.keys() - {s.path}:
            out[path] = (*place, *out[path])
        shared = by_rows(names[:1], parallel)
        out[s.path] = (*out[s.path], *shared)
        return out
    units = names[len(s.axes) - next((n for n, x in enumerate(reversed(s.extents)) if x != 1), 0) :]  # the last ones, of one element
    across = s.axes[len(names) - len(units) - 1] if names else None
    if (
        not s.reduction.kind.startswith("arg")
        and across is not None
        and last_axis_is_contiguous(s, across)
        and known(s.ranges[across], TYPICAL) >= lanes
    ):
        last, extent = across.name, known(s.ranges[across], TYPICAL)
        longer = 16 * lanes if machine.registers >= 32 and extent >= 32 * machine.cores * lanes else 4 * lanes
        width = longer if extent >= longer else lanes
        acc = [a.name for a in s.reduction.axes]
        outer = [*(n for n in names if n != last), f"{last}_tile"]
        own: list[Directive] = [Cache("acc"), Split(last, width, into=(f"{last}_tile", last + "_in"))]
        own += [Reorder(*outer, last + "_in")] if units else []
        own += [Vectorize(last + "_in", width=lanes)]
        task = outer[0] if len(outer) == 1 else "task"
        own += [Fuse(*outer, into=task)] if len(outer) > 1 else []
        own += [Parallel(task)] if parallel else []
        return {
            s.path: tuple(own),
            f"{s.path}/acc": (
                ComputeAt(stage="/" + s.path, axis=task),
                StoreIn("stack"),
                Split(last, lanes, into=("jv", "lane")),
                Reorder(*acc, *units, "jv", "lane"),
                Unroll("jv"),
                Vectorize("lane"),
            ),
        }
    return {s.path: by_rows(names, parallel)}


def _has_parts(s: Stage) -> bool:
    """Whether elements have several parts."""
    return s.reduction is not None and s.reduction.combiner is not None and len(s.reduction.combiner.identity) > 1


def scatter(g: Graph, s: Stage, machine: Machine) -> Mapping[str, Directives]:
    """One pass over what is scattered: whole vectors where the last axis is no target, in parallel over the axes that are none."""
    assert s.scatter is not None
    free = [a.name for a in s.scatter.free]
    last, lanes = s.axes[-1], machine.lanes(s.dtype)
    if s.axes[-1] not in set(s.scatter.free) or known(s.extents[-1], TYPICAL) < lanes or not last_axis_is_contiguous(s, last):
        return {s.path: _several_at_a_place(s, s.scatter) or by_rows(free, pays_parallel(s))}
    outer, reduced = [n for n in free if n != last.name], [a.name for a in s.reduce_axes]
    width = known(s.extents[-1], TYPICAL)
    if outer or not pays_parallel(s) or width < 2 * machine.cores * lanes:
        return {s.path: (Reorder(*outer, *reduced, last.name), *by_rows(outer, pays_parallel(s)), *vector(s, last.name, machine))}
    share = -(-width // (machine.cores * lanes)) * lanes
    columns = (f"{last.name}_task", f"{last.name}_in")
    return {
        s.path: (
            Split(last.name, share, into=columns),
            Reorder(columns[0], *reduced, columns[1]),
            Parallel(columns[0]),
            Vectorize(columns[1], width=lanes),
        )
    }


def _several_at_a_place(s: Stage, found: Scatter) -> Directives:
    """A few sums that all change at the same place: together, so that the place is looked up once."""
    placing = {a for e in (*found.index, *found.predicates) for a in axes_of(e)}
    few = [a.name for a in found.free if known(s.ranges[a], TYPICAL) <= _FEW_SUMS and a not in placing]
    if not few:
        return ()
    outer = [a.name for a in found.free if a.name not in few]
    reduced = [a.name for a in s.reduce_axes]
    return (Reorder(*outer, *reduced, *few), *by_rows(outer, pays_parallel(s)), *(Unroll(name) for name in few))


def rank(g: Graph, s: Stage, machine: Machine) -> Mapping[str, Directives]:
    """A sort of every row, in parallel over the rows."""
    assert s.rank is not None
    comparisons = guess(work(s)) * guess(s.ranges[s.rank.over]).bit_length()
    return {s.path: by_rows([a.name for a in s.rank.free], comparisons >= PARALLEL_WORK)}


def is_window(s: Stage) -> bool:
    """A reduction over a few neighbours (pooling, box filters) rather than over a whole dimension."""
    if s.reduction is None or not s.axes:
        return False
    total = volume(s.reduction.extents)
    return (
        isinstance(total, int)
        and total <= 64
        and not s.reduction.kind.startswith("arg")
        and steps_along(s, s.axes[-1], 4)
        and any(len(set(axes_of(i))) > 1 for r in s.reads for i in r.index)
    )


def _runs_along(s: Stage, k: Axis) -> bool:
    """Whether the reads run along memory with reduction axis k."""
    return much_is_contiguous(s, k) and any(k in set(axes_of_index(r.index)) for r in s.reads)


def spans_lanes(s: Stage, machine: Machine) -> bool:
    """Whether the reduction runs along memory, far enough for vectors of partial results."""
    assert s.reduction is not None
    k = s.reduction.axes[-1]
    if s.reduction.kind.startswith("arg") and (s.value.dtype == "bool" or cost(s) > CHEAP_TWICE):
        return False
    if s.reduction.combiner is not None and s.reduction.in_order:
        return False
    return not picks(s, k) and _runs_along(s, k) and known(s.ranges[k], TYPICAL) >= 2 * machine.lanes(s.value.dtype)


def picks(s: Stage, k: Axis) -> bool:
    """Whether the value asks at which k data says something is: partial results over lanes of k would be a scatter."""
    equations = [n for n in walk(s.value) if isinstance(n, Op) and n.op == "eq" and any(map(reads, n.args))]
    return any(k in set(axes_of(e)) and not reads(e) for n in equations for e in n.args)


def positions_of_best(s: Stage, machine: Machine) -> dict[str, Directives]:
    """argmax and argmin: the best value in vector lanes, then its first position in vector lanes."""
    path, best = s.path, f"{s.path}/best"
    out = lanes_of_partials(s, machine)
    values = lanes_of_partials(replace(s, path=best, dtype=s.value.dtype), machine)
    return {**values, best: (*values[best], StoreIn("stack")), **out, path: (FindBest(), *out[path])}


def lanes_of_partials(s: Stage, machine: Machine) -> dict[str, Directives]:
    """The reduction in vector lanes of partial results, which are added up in shorter vectors first: a chain of single adds is slow."""
    assert s.reduction is not None
    k, lanes = s.reduction.axes[-1], machine.lanes(s.dtype)
    extent = known(s.ranges[k], TYPICAL)
    factor = lanes * next(
        (
            n
            for n in (4, 2)
            if extent >= 2 * n * lanes
            and ((isinstance(s.ranges[k], int) and extent % (n * lanes) == 0) or (not isinstance(s.ranges[k], int) and n == 2))
        ),
        1,
    )
    inner = f"{k.name}_inner"
    others = [a.name for a in s.reduction.axes[:-1]]
    partial: list[Directive] = [StoreIn("stack")]
    if factor > lanes:
        partial += [
            Split(inner, lanes, into=("jv", "lane")),
            Reorder(*others, f"{k.name}_outer", "jv", "lane"),
            Unroll("jv"),
            Vectorize("lane"),
        ]
    else:
        partial += [Reorder(*others, f"{k.name}_outer", inner), Vectorize(inner)]
    few = max(2, lanes // 2)
    halves = (StoreIn("stack"), Reorder(f"{inner}_outer", f"{inner}_inner"), Unroll(f"{inner}_outer"), Vectorize(f"{inner}_inner"))
    return {
        s.path: (Rfactor(axis=k.name, factor=factor), Rfactor(axis=inner, factor=few, into="few")),
        f"{s.path}/partial": tuple(partial),
        f"{s.path}/few": halves,
    }


# ---------------------------------------------------------------- rows: softmax, norms
def rows(g: Graph, root: Stage, members: list[Stage], depth: int, machine: Machine, reassociate: bool) -> Mapping[str, Directives]:
    lead = [a.name for a in root.axes[:depth]]
    row = lead[0] if depth == 1 else "row"
    out: dict[str, Directives] = {}
    own: list[Directive] = [Fuse(*lead, into=row)] if depth > 1 else []
    if pays_parallel(root, *members):
        block = min(8, guess(volume(root.extents[:depth])) // (4 * machine.cores))
        own += [Split(row, block, into=("task", "line")), Parallel("task")] if block > 1 else [Parallel(row)]
        row = "line" if block > 1 else row
    at = ComputeAt(stage="/" + root.path, axis=row)
    for s in (*members, root):
        mine: Directives
        partial: dict[str, Directives] = {}
        if s.reduction is not None and reassociate and spans_lanes(s, machine):
            partial = positions_of_best(s, machine) if s.reduction.kind.startswith("arg") else lanes_of_partials(s, machine)
            mine = partial.pop(s.path)
            inside = at if len(s.axes) <= depth else ComputeAt(stage="/" + s.path, axis=s.axes[-1].name)  # one element's at a time
            out |= {path: (inside, *ds) for path, ds in partial.items()}
        elif s.reduction is None and len(s.axes) > depth:
            mine = vector(s, s.axes[-1].name, machine)
        elif len(s.axes) > depth and is_window(s):
            mine = windowed(s, machine)
        else:
            mine = ()
        out[s.path] = (*mine, *own) if s is root else (*mine, at)
    return out


# ---------------------------------------------------------------- windows: stencils that read their inputs directly
def window(g: Graph, root: Stage, machine: Machine) -> Mapping[str, Directives]:
    """Four rows of one vector at a time: what they share is read and computed once and stays in registers.

    A row of its own where data says what most lanes read: rows share little of that, and each lane of each row would be code of its own.
    """
    *outer, y, x = [a.name for a in root.axes]
    lanes = machine.lanes(root.dtype)
    if known(root.extents[-1], TYPICAL) < lanes:
        return elementwise(g, root, machine)
    rows_ = known(root.extents[-2], TYPICAL)
    tall = tall_of(root, rows_) if 2 * len(looked_up(root)) < len(root.reads) else 1
    block = max(1, min(16, rows_ // (tall * 4 * machine.cores)))
    own: list[Directive] = [
        *blocks(y, block, tall),
        Split(x, lanes, into=("xv", "lane")),
        Reorder(*outer, "strip", "block", "xv", *line_of(tall), "lane"),
    ]
    if pays_parallel(root):
        own += [Fuse(*outer, "strip", into="task"), Parallel("task")] if outer else [Parallel("strip")]
    return {root.path: (*own, *map(Unroll, line_of(tall)), Vectorize("lane"))}


def line_of(tall: int) -> list[str]:
    return ["line"] if tall > 1 else []


def blocks(y: str, block: int, tall: int) -> Directives:
    """Rows in strips of `block` groups of `tall`: two splits, so that only the last group has to test for the end."""
    if tall == 1:
        return (Split(y, block, into=("strip", "block")),)
    return (Split(y, tall, into=("group", "line")), Split("group", block, into=("strip", "block")))


def tall_of(s: Stage, rows_: int) -> int:
    """Rows that are written out: four that share what they read, or one of each kind where they are computed in different ways."""
    kinds = phases(s, s.axes[-2])
    if rows_ < 2 * max(kinds, 4):
        return 1
    return 4 if shares_rows(s) and 4 % kinds == 0 else kinds


def by_lines(s: Stage, machine: Machine, tall: int) -> Directives:
    """One vector of a few rows at a time."""
    *_, y, x = [a.name for a in s.axes]
    lanes = machine.lanes(s.dtype)
    if tall == 1 or known(s.extents[-1], TYPICAL) < lanes:
        return vector(s, x, machine)
    group, line, columns, lane = f"{y}_group", f"{y}_line", f"{x}_vec", f"{x}_lane"
    loops = (Split(y, tall, into=(group, line)), Split(x, lanes, into=(columns, lane)), Reorder(group, columns, line, lane))
    return (*loops, Unroll(line), Vectorize(lane))


def shares_rows(s: Stage, row: int = -2) -> bool:
    """Whether neighbouring rows of s read the same rows of something; `row` is which axis counts them, from the last one."""
    rows_: dict[object, set[object]] = {}
    for r in s.reads:
        if len(r.index) >= -row:
            rows_.setdefault((r.source, *r.index[:row], *r.index[len(r.index) + row + 1 :]), set()).add(r.index[row])
    return any(len(v) > 1 for v in rows_.values())


def windowed(s: Stage, machine: Machine) -> Directives:
    assert s.reduction is not None
    lanes, last = machine.lanes(s.dtype), s.axes[-1].name
    if known(s.extents[-1], TYPICAL) < lanes or s.reduction.kind.startswith("arg"):
        return ()
    reduced = [a.name for a in s.reduction.axes]
    return (
        Split(last, lanes, into=(f"{last}_vec", f"{last}_lane")),
        Reorder(f"{last}_vec", *reduced, f"{last}_lane"),
        *unrolled(s),
        Vectorize(f"{last}_lane"),
    )


def unrolled(s: Stage) -> Directives:
    """The short loops of a window, innermost first, while their bodies stay small."""
    assert s.reduction is not None
    size, out = max(1, cost(s)), []
    for a in reversed(s.reduction.axes):
        size *= known(s.ranges[a], UNROLLED)
        if size <= UNROLLED and known(s.ranges[a], UNROLLED) <= 8:
            out.append(Unroll(a.name))
    return tuple(reversed(out))
