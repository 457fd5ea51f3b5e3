"""tensorize: the innermost loops of a sum of products as one instruction, with what it adds to in registers all through the reduction.

    for tile:                          for tile:
      for k_outer:                       fragments = 0
        for ii, jj:                      for k_outer:
          for i, j, k: c += a * b          fragments[ii, jj] += instruction(a, b) for ii, jj
                                         c = fragments[ii, jj] for ii, jj
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import NoReturn

from fluorite.algo.errors import PlanError
from fluorite.algo.expr import Axis, Expr, Op, Read, as_expr
from fluorite.algo.extent import Extent
from fluorite.algo.linear import simplify
from fluorite.algo.printing import show
from fluorite.algo.rewriting import axes_of
from fluorite.algo.stages import Stage
from fluorite.schedule.directives import Tensorize
from fluorite.schedule.intrinsics import INTRINSICS, WARP, Intrinsic, available
from fluorite.schedule.nest import TENSOR, Loop

from ..statements import Allocate, Barrier, Buffer, Matrix, MultiplyFragments, StartFragments, Statement, StoreFragments, sequence
from . import evaluating, guarding, layouts, looping
from .context import Context, Placed

_ROW, _START = 8, 16
"""Elements: rows of a warp's matrix lie a multiple of 8 apart, and it begins at a multiple of 16, which is 32 bytes of the narrow types."""


@dataclass(frozen=True)
class Parts:
    """Where the loops inside the reduction begin, those that are written out, and those of the instruction."""

    start: int
    written_out: int
    instruction: int


def parts(p: Placed) -> Parts | None:
    """None for a nest that is not tensorized."""
    loops = p.nest.loops
    inner = next((n for n, loop in enumerate(loops) if loop.kind == TENSOR), None)
    if inner is None:
        return None
    reducing = [n for n, loop in enumerate(loops[:inner]) if loop.reduction]
    return Parts(reducing[0], reducing[-1] + 1, inner) if reducing else Parts(inner, inner, inner)


def statements(work: Context, p: Placed, k: int) -> Statement | None:
    """What stands at loop k of a tensorized nest; None where that is a loop like any other."""
    found = parts(p)
    if found is None:
        return None
    if k == found.start and p.stage.id not in work.initialised:
        work.initialised.add(p.stage.id)
        return _reduction(work, p, found)
    return _product(work, p, found) if k == found.written_out else None


def _reduction(work: Context, p: Placed, found: Parts) -> Statement:
    d, instruction = _asked(work, p), _chosen(work, p, found)
    _check_loops(work, p, d, found, instruction)
    p = _without_tails(work, p, d, found)
    grid = _grid(p, found)
    count = prod(n for _, n in grid)
    elements = instruction.rows * instruction.columns // (WARP if instruction.fragment == "warp" else 1)
    memory = {"vector": "local", "tile": "tiles", "warp": "warp"}[instruction.fragment]
    fragments = Buffer(_fragments(p.stage), f"{p.stage.name}_fragments", p.stage.dtype, (count, elements), memory)
    stored = StoreFragments(instruction.name, fragments.id, grid, _result(work, p, d, found, instruction))
    start = StartFragments(instruction.name, fragments.id, count)
    return Allocate(fragments, sequence(start, looping.loops(work, p, found.start), *_between_barriers(work, stored, stored.to)))


def _between_barriers(work: Context, s: Statement, *used: Matrix) -> list[Statement]:
    """GPU: what a warp reads others have written, and others read what it writes. The code generator's own barriers do not see that."""
    buffers = [work.storage[x.buffer][0] for x in used if x.buffer in work.storage]
    return [Barrier(), s, Barrier()] if any(b.memory == "shared" and not b.rotates for b in buffers) else [s]


def _product(work: Context, p: Placed, found: Parts) -> Statement:
    d, instruction = _asked(work, p), _chosen(work, p, found)
    pair = operands(evaluating.value_of(work, p), instruction)
    assert pair is not None
    loops = _tensor_loops(p, found)
    k = next(loop.var for loop in p.nest.loops[found.instruction :] if loop.reduction)
    n = _column(work, p, d, found)
    problems = []
    for a, b in (pair, pair[::-1]):
        if n in _axes(b) and n not in _axes(a) and (a.dtype, b.dtype) in instruction.operands:
            made = _matrices(work, (a, b), loops, (n, k), instruction)
            if isinstance(made, tuple):
                product = MultiplyFragments(instruction.name, _fragments(p.stage), _grid(p, found), *made)
                return sequence(*_between_barriers(work, product, *made))
            problems.append(made)
    _refuse(p, d, "P281", problems[0] if problems else f"{n.name} is a loop of both operands, or of none", "pack", "reorder")


def _matrices(
    work: Context, pair: tuple[Read, Read], loops: dict[Axis, int], roles: tuple[Axis, Axis], instruction: Intrinsic
) -> tuple[Matrix, Matrix] | str:
    """The operands as the instruction reads them, or what is wrong with one of them."""
    (a, b), (n, k) = pair, roles
    group = instruction.group
    steps = []
    for read in pair:
        name, shape = _source(work, read)
        moved = layouts.offsets(read.index, shape, loops, work.ranges)
        if moved is None:
            return f"where {name} is read does not follow from the loops of the instruction alone"
        steps.append(moved)
    m = next((x for x in loops if x is not n and x is not k), None)
    of_a, of_b = steps
    if of_a[k] != list(range(loops[k])) or any(of_a[n]):
        return f"{instruction.name} reads {loops[k]} of {k.name} side by side in {_source(work, a)[0]}"
    width = [group * j for j in range(loops[n])]
    row = of_b[k][group] if loops[k] > group else 0
    if of_b[n] != width or of_b[k] != [row * (x // group) + x % group for x in range(loops[k])] or (m is not None and any(of_b[m])):
        return f"{instruction.name} reads {group} of {k.name} side by side for each {n.name} in {_source(work, b)[0]}"
    lead: Extent = of_a[m][1] if m is not None else 0
    if m is not None and of_a[m] != [lead * i for i in range(loops[m])]:
        return f"the rows of {_source(work, a)[0]} are not equally far apart"
    starts = [layouts.start_of(read.index, loops, work.ranges) for read in pair]
    if instruction.fragment == "warp":
        for read, start, apart in zip(pair, starts, (lead, row), strict=True):
            name, shape = _source(work, read)
            if not layouts.is_multiple(apart, _ROW) or not layouts.starts_at(start, shape, _START):
                return f"{instruction.name} reads rows that lie a multiple of {_ROW} elements apart, and those of {name} do not"
    return Matrix(a.source, starts[0], as_expr(lead)), Matrix(b.source, starts[1], as_expr(row))


def _result(work: Context, p: Placed, d: Tensorize, found: Parts, instruction: Intrinsic) -> Matrix:
    """Where the stage keeps what the instruction makes."""
    loops, index = _tensor_loops(p, found), evaluating.own_index(work, p)
    n = _column(work, p, d, found)
    moved = layouts.offsets(index, work.storage[p.stage.id][0].shape, loops, work.ranges)
    assert moved is not None
    m = next((loop.var for loop in p.nest.loops[found.instruction :] if not loop.reduction and loop.var is not n), None)
    row: Extent = moved[m][1] if m is not None else 0
    if m is not None and moved[m] != [row * i for i in range(loops[m])]:
        _refuse(p, d, "P281", f"the rows of {p.stage.name} are not equally far apart", "cache")
    start = layouts.start_of(index, loops, work.ranges)
    shape = work.storage[p.stage.id][0].shape
    if instruction.fragment == "warp" and not (layouts.is_multiple(row, _ROW) and layouts.starts_at(start, shape, _START)):
        why = f"{instruction.name} writes rows that lie a multiple of {_ROW} elements apart, and those of {p.stage.name} do not"
        _refuse(p, d, "P281", why, "cache, stored in shared memory")
    return Matrix(p.stage.id, start, as_expr(row))


def _column(work: Context, p: Placed, d: Tensorize, found: Parts) -> Axis:
    """The loop of the instruction along which the result lies side by side."""
    loops = _tensor_loops(p, found)
    moved = layouts.offsets(evaluating.own_index(work, p), work.storage[p.stage.id][0].shape, loops, work.ranges)
    spatial = [loop.var for loop in p.nest.loops[found.instruction :] if not loop.reduction]
    if moved is not None:
        for a in spatial:
            if moved[a] == list(range(loops[a])):
                return a
    names = ", ".join(a.name for a in spatial)
    _refuse(p, d, "P281", f"the result of an instruction is a row, and {p.stage.name} lies along none of {names}", "cache: {order: ...}")


# ---------------------------------------------------------------- what is asked for
def _asked(work: Context, p: Placed) -> Tensorize:
    return next(d for d in work.plan.directives[p.stage.id] if isinstance(d, Tensorize))


def operands(value: Expr, instruction: Intrinsic) -> tuple[Read, Read] | None:
    """The two reads whose product the value is, if the instruction takes their types."""
    if not isinstance(value, Op) or value.op != "mul" or value.dtype != instruction.result:
        return None
    found = []
    for x in value.args:
        if not isinstance(x, Op) or x.op != "cast" or x.dtype != instruction.result or not isinstance(x.args[0], Read):
            return None
        found.append(x.args[0])
    types = {(r.dtype, s.dtype) for r, s in (found, found[::-1])}
    return (found[0], found[1]) if types & set(instruction.operands) else None


def _chosen(work: Context, p: Placed, found: Parts) -> Intrinsic:
    """The instruction that the plan names, or the first of the target's that fits. Raises PlanError P280."""
    d, s = _asked(work, p), p.stage
    named = [INTRINSICS[d.intrinsic]] if d.intrinsic != "auto" else available(work.plan.features, work.plan.arch)
    if s.reduction is None or s.reduction.kind != "sum":
        _refuse(p, d, "P280", f"{s.name} is no sum of products")
    loops = p.nest.loops[found.instruction :]
    extents = sorted(loop.constant or 0 for loop in loops)
    reduced = [loop for loop in loops if loop.reduction]
    why, instead = "the target has no such instruction", ""
    for i in named:
        sizes = i.sizes()
        if operands(s.value, i) is None:
            if "bfloat16" in i.operands[0] and _types(s).startswith("float32 x"):
                instead = "precision: {compute: bf16}"
            takes = " or ".join(f"{a} x {b}" for a, b in i.operands)
            why = f"{i.name} adds products of {takes} to {i.result}, and {s.name} computes {_types(s)}"
        elif extents != sorted(sizes.values()) or [loop.constant for loop in reduced] != [sizes["k"]]:
            shown = ", ".join(f"{loop.name} {loop.extent}" for loop in loops)
            spatial = " and ".join(str(n) for role, n in sizes.items() if role != "k")
            why = f"{i.name} takes loops of {spatial} and one of the reduction of {sizes['k']}, and inside are {shown}"
            instead = f"split by {', '.join(map(str, sizes.values()))}"
        else:
            return i
    _refuse(p, d, "P280", why, *(instead,) * bool(instead))


def _types(s: Stage) -> str:
    """What a stage multiplies, for a message."""
    if not isinstance(s.value, Op) or s.value.op != "mul":
        return f"{s.dtype}, which is no product of two operands"
    inner = [x.args[0] if isinstance(x, Op) and x.op == "cast" else x for x in s.value.args]
    return f"{' x '.join(x.dtype for x in inner)} in {s.dtype}"


def _check_loops(work: Context, p: Placed, d: Tensorize, found: Parts, instruction: Intrinsic) -> None:
    """Inside the reduction its loops come first, then those that are written out, of constant extent."""
    loops = p.nest.loops
    spatial = next((loop for loop in loops[found.start : found.written_out] if not loop.reduction), None)
    if spatial is not None:
        last = loops[found.written_out - 1].name
        _refuse(p, d, "P280", f"{last}, a loop of the reduction, lies inside {spatial.name}", f"reorder: {last} outside {spatial.name}")
    written = loops[found.written_out : found.instruction]
    unknown = next((loop for loop in written if loop.constant is None), None)
    if unknown is not None:
        why = f"{unknown.name}, inside the reduction, has {unknown.extent} iterations, known only when the kernel runs"
        _refuse(p, d, "P280", why, "split")
    count = prod(loop.constant or 1 for loop in written)
    if count > instruction.most:
        names = " x ".join(f"{loop.name} ({loop.extent})" for loop in written)
        why = f"{names} inside the reduction are {count} results of {instruction.name}, and {instruction.most} fit into its registers"
        _refuse(p, d, "P280", why, "smaller tiles", "reorder: fewer loops inside the reduction")
    inside = {loop.name for loop in loops[found.written_out :]}
    late = next((work.by_id[i] for i, at in work.plan.placements.items() if at.owner == p.stage.id and at.loop in inside), None)
    if late is not None:
        _refuse(p, d, "P280", f"{late.name} is computed inside what is written out", "compute it at a loop of the reduction")


def _without_tails(work: Context, p: Placed, d: Tensorize, found: Parts) -> Placed:
    """The nest without the tests of a last part of the reduction that both operands fill up with zeros. Other tails are refused."""
    inside = {loop.var for loop in p.nest.loops[found.start :]}
    reduced = {loop.var for loop in p.nest.loops if loop.reduction}
    pair = list(p.stage.reads)
    kept = []
    for g in p.nest.guards:
        value = simplify(p.nest.value(g.value), work.ranges)
        used = set(axes_of(value))
        if work.plan.gpu and guarding.guards_of(work, replace(p, nest=replace(p.nest, guards=(g,)))):
            why = f"{g.value.name} has a last part that is not whole, and a warp computes all of its result"
            _refuse(p, d, "P280", why, "cache, and tensorize that: its tile is always whole", "extents that the loops divide")
        if not used & inside or not guarding.guards_of(work, replace(p, nest=replace(p.nest, guards=(g,)))):
            kept.append(g)
            continue
        n = g.limit
        if not used & reduced:
            extent = show(n) if isinstance(n, Expr) else n
            why = f"{g.value.name} has {extent} iterations, which the loops inside the reduction do not divide"
            _refuse(p, d, "P280", why, "cache, and tensorize that: its tile is always whole", "pad")
        for read in pair:
            if not layouts.is_zero_beyond(work, p, read, value, n if isinstance(n, Expr) else as_expr(n), _tensor_loops(p, found)):
                k, name = g.value.name, _source(work, read)[0]
                why = f"{k} has {n} iterations, which the instruction does not divide, and {name} has no zeros beyond them"
                size = next(loop.extent for loop in p.nest.loops[found.instruction :] if loop.reduction)
                _refuse(p, d, "P281", why, f"pack: {{tensor: {name}, sizes: {{{k}: {size}}}, ...}}, which fills up with zeros")
    return replace(p, nest=replace(p.nest, guards=tuple(kept)))


# ---------------------------------------------------------------- small things
def _grid(p: Placed, found: Parts) -> tuple[tuple[Axis, int], ...]:
    return tuple((loop.var, _constant(loop)) for loop in p.nest.loops[found.written_out : found.instruction])


def _tensor_loops(p: Placed, found: Parts) -> dict[Axis, int]:
    return {loop.var: _constant(loop) for loop in p.nest.loops[found.instruction :]}


def _constant(loop: Loop) -> int:
    assert loop.constant is not None
    return loop.constant


def _fragments(s: Stage) -> int:
    """The id of the buffer of fragments: that of the accumulator, which there is not."""
    return -2 * s.id


def _axes(read: Read) -> set[Axis]:
    return {a for i in read.index for a in axes_of(i)}


def _source(work: Context, read: Read) -> tuple[str, tuple[Extent, ...]]:
    """The name of an operand, and the shape of its memory."""
    if read.source in work.by_id:
        return work.by_id[read.source].name, work.storage[read.source][0].shape
    return work.graph[read.source].name, work.graph[read.source].shape


def _refuse(p: Placed, d: Tensorize, code: str, why: str, *try_: str) -> NoReturn:
    asked = f"tensorize of {p.stage.name} from {d.axis} inwards"
    raise PlanError([d.at("axis").problem(code, asked, why, try_, path=p.stage.path, source=p.stage.source)])


__all__ = ["operands", "parts", "statements"]
