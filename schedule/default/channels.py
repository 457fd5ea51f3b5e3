"""Products whose last axis makes poor vectors (convolutions of small or strided images): vectors run along the kernels' own axis.

The operand without the last axis is packed with panels of its axis innermost, and each of its vectors is multiplied by neighbouring
elements of the other operand. Results come out with that axis innermost too and are turned when they are stored: what a register tile
costs at its end.
"""

from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.expr import Axis, Read
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph
from fluorite.algo.linear import linear
from fluorite.algo.stages import Stage

from ..directives import Cache, ComputeAt, ComputeInline, Directive, Fuse, Pack, Parallel, Reorder, Split, StoreIn, Unroll, Vectorize
from ..machine import Machine
from ..rewrites import operand_name
from ..typical import TYPICAL, guess
from .analysis import axes_of_index, factors, known
from .kernels import PARALLEL_WORK, Directives

_LEAST_POSITIONS = 32  # that many uses pay for packing


def lane_axis(product: Stage, machine: Machine) -> Axis | None:
    """The axis to run vectors along instead of the last one, where that is quicker."""
    pair = factors(product)
    if pair is None or product.reduction is None or len(product.axes) < 2:
        return None
    weights, image = pair
    x, lanes = product.axes[-1], machine.lanes(product.dtype)
    o = next((a for a in product.axes[:-1] if a in set(weights.index) and a not in set(axes_of_index(image.index))), None)
    if o is None or weights.source == image.source or not all(isinstance(i, Axis) for i in weights.index):
        return None
    if all(isinstance(i, Axis) for i in image.index):
        return None
    wide, n = known(product.ranges[o], TYPICAL), known(product.ranges[x], TYPICAL)
    depth, positions = guess(volume(product.reduction.extents)), guess(volume(product.extents)) // max(1, wide)
    if wide < lanes or positions < _LEAST_POSITIONS:
        return None
    return o if _cycles_along(depth, lanes) < _cycles_across(depth, n, lanes, image, x) else None


def _cycles_along(depth: int, lanes: int) -> float:
    """Of one result: multiplications at 0.7 of the peak of two vectors a cycle, then its turn and its store."""
    return depth / (2 * lanes * 0.7) + 2


def _cycles_across(depth: int, n: int, lanes: int, image: Read, x: Axis) -> float:
    """The same with vectors of the image: some lanes idle, none used where the row is shorter than a vector; strided loads take longer."""
    used = n / (-(-n // lanes) * lanes) if n >= lanes else 1 / lanes
    loads = 1.0 if linear(image.index[-1]).coefficient(x) == 1 else 0.35
    return depth / (2 * lanes * 0.6 * used * loads)


def channels(g: Graph, product: Stage, root: Stage, o: Axis, machine: Machine) -> Mapping[str, Directives]:
    """Directives for such a product and the stage that finishes it (itself, if nothing does)."""
    pair = factors(product)
    assert pair is not None and product.reduction is not None
    lanes, position = machine.lanes(product.dtype), [id(a) for a in product.axes].index(id(o))
    vectors = 2 if known(product.ranges[o], TYPICAL) > lanes else 1
    tall = _rows(known(product.extents[-1], TYPICAL), {2: 8, 1: 12} if machine.registers >= 32 else {2: 4, 1: 8}, vectors)
    width = vectors * lanes
    ro, rx = root.axes[position].name, root.axes[-1].name
    others = [a.name for n, a in enumerate(root.axes[:-1]) if n != position]
    inner = ["jv", "lane"] if vectors > 1 else ["lane"]
    own: list[Directive] = [Split(ro, width, into=("jo", "ji" if vectors > 1 else "lane"), tail="guard")]
    own += [Split("ji", lanes, into=("jv", "lane"))] if vectors > 1 else []
    own += [Split(rx, tall, into=("io", "ii"), tail="guard")]
    head = ["jo", *others]
    own += [Reorder(*head, "io", *inner, "ii")]
    own += [Fuse(*head, into="task")] if len(head) > 1 else []
    if guess(volume(product.extents)) * guess(volume(product.reduction.extents)) >= PARALLEL_WORK:
        own += [Parallel("task" if len(head) > 1 else "jo")]
    names = [a.name for a in product.axes if a is not o]
    weights = g[pair[0].source]
    axes = [a for a in pair[0].index if isinstance(a, Axis)]
    reduced = set(product.reduce_axes)
    order = (*(a.name for a in axes if a not in reduced and a is not o), o.name, *(a.name for a in axes if a in reduced))
    name = operand_name(g, product, weights)
    packed = f"{product.name}_{name.replace('/', '_')}_packed"
    cached = (Cache("acc", order=(*names, o.name)),)
    fixed = g.is_fixed(weights, product.method)
    tile: list[Directive] = [Split(o.name, lanes, into=("jv", "lane"))] if vectors > 1 else []
    tile += [Reorder(*(a.name for a in product.reduction.axes), *names, *(inner if vectors > 1 else [o.name]))]
    tile += [Unroll(names[-1]), *([Unroll("jv")] if vectors > 1 else []), Vectorize("lane" if vectors > 1 else o.name)]
    out: dict[str, Directives] = {
        f"{product.path}/acc": (
            ComputeAt(stage="/" + root.path, axis="io"),
            StoreIn("registers"),
            Pack(tensor=name, sizes={o.name: width}, order=order, into=packed),
            *tile,
        ),
        f"{product.path}/{packed}": () if fixed else (Parallel(f"{order[0]}_outer" if order[0] == o.name else order[0]),),
    }
    if product is root:
        return {**out, root.path: (*cached, *own)}
    return {**out, product.path: (*cached, ComputeInline()), root.path: tuple(own)}


def _rows(n: int, budget: Mapping[int, int], vectors: int) -> int:
    """Rows of a tile: as many as the registers hold, fewer where they then divide better."""
    most = min(budget[vectors], n)
    return min(range(max(1, most // 2 + 1), most + 1), key=lambda t: (-(-n // t) * t, -t))
