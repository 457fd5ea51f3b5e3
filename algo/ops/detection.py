"""Choosing among boxes that overlap."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import expr as E
from ..building import operator
from ..dtypes import kind
from ..expr import Expr, refuse
from ..scanning import scan
from ..tensor import Tensor
from ..trace import build_stage
from .creation import arange, zeros
from .finding import nonzero
from .gather import take
from .shapes import shown, tensor
from .sorting import argsort


class Nms(NamedTuple):
    """The boxes that are kept, an int32 tensor of their numbers, best first, padded with -1; and how many there are."""

    indices: Tensor
    total: Tensor


@operator
def nms(boxes: Any, scores: Any, iou_threshold: float, size: int, *, cut: bool = False) -> Nms:
    """(indices, total) by non-maximum suppression: of boxes [n, 4] as (x1, y1, x2, y2), from the best score [n] on, each is kept that
    overlaps none kept before by more than `iou_threshold`, the area of both over the area of either (as torchvision.ops.nms).

    The first `size` of them are given; `total` counts all. With `cut` nothing is padded: there are as many as are kept, an extent that is
    known when the program runs (see fl.extent). Of equal scores the earlier box is better. Stages: those of argsort (`order`),
    `ranked zeros arange overlap`, a step for every box in `scan/lost`, `kept`, those of nonzero (`found`), and `indices`.
    """
    b, s = tensor(boxes, "nms"), tensor(scores, "nms")
    if b.ndim != 2 or b.shape[1] != 4 or s.ndim != 1 or s.shape[0] != b.shape[0]:
        asked = f"nms of boxes {shown(b.shape)} and scores {shown(s.shape)}"
        raise refuse("A301", asked, "boxes are [n, 4], corners x1, y1, x2, y2, and scores are [n]")
    if kind(b.dtype) != "float" or kind(s.dtype) != "float":
        raise refuse("A306", f"nms of {b.dtype} and {s.dtype}", "corners and scores are floats", "fl.cast(boxes, fl.f32)")
    if isinstance(iou_threshold, bool) or not isinstance(iou_threshold, int | float) or not 0 <= iou_threshold <= 1:
        raise refuse("A304", f"nms: iou_threshold={iou_threshold!r}", "it is a share of an area, from 0 to 1")
    n = b.shape[0]
    order = argsort(s, descending=True, name="order")
    ranked = take(b, order, axis=0, name="ranked")

    def area(i: Expr) -> Any:
        return (ranked[i, 2] - ranked[i, 0]) * (ranked[i, 3] - ranked[i, 1])

    def overlaps(i: Expr, j: Expr) -> Any:
        """Compared without a division, which would be by 0 for two boxes without area."""
        sides = [E.binary("min", ranked[i, d + 2], ranked[j, d + 2]) - E.binary("max", ranked[i, d], ranked[j, d]) for d in (0, 1)]
        both = E.binary("max", sides[0], 0) * E.binary("max", sides[1], 0)
        return both > iou_threshold * (area(i) + area(j) - both)

    overlap = build_stage(["i", "j"], overlaps, name="overlap", extents={"i": n, "j": n})

    def step(gone: Tensor, at: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        row, number = at

        def lost(j: Expr) -> Any:
            here = number.as_scalar()
            return gone[j] | (E.unary("not", gone[here]) & (here < j) & row[j])

        return build_stage(["j"], lost, name="lost", extents={"j": n}), None

    gone, _ = scan(step, zeros((n,), dtype="bool"), (overlap, arange(n)))
    kept = build_stage(["i"], lambda i: E.unary("not", gone[i]), name="kept", extents={"i": n})
    (at,), total = nonzero(kept, size, cut=cut, name="found")
    return Nms(build_stage(["k"], lambda k: E.where(at[k] < 0, -1, order[E.binary("max", at[k], 0)]), name="indices"), total)
