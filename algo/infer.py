"""Extents of a stage's axes, inferred from its reads.

Axes start at 0. A bare read ``x[i]`` makes the axis as long as that dimension; several must agree. An offset or strided read shrinks the
far end. A read through a boundary view keeps its source's extent and never shrinks. Reads under ``where`` do not bound. What nothing
bounds must be given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .expr import Access, Axis, Expr, Op, Reduce, refuse
from .extent import Dim, Extent, at_most, nonnegative
from .linear import Linear, linear, simplify
from .rewriting import walk


@dataclass(frozen=True)
class _Bound:
    """One dimension read at an affine index."""

    index: Linear
    size: Extent
    access: Access
    dimension: int
    guarded: bool

    @property
    def bare(self) -> Axis | None:
        (atom, c), *more = self.index.terms or ((None, 0),)
        return atom if isinstance(atom, Axis) and c == 1 and not more and self.index.constant == 0 else None

    def window(self, known: Mapping[Axis, Extent], axes: tuple[Axis, ...]) -> Axis | None:
        """The one unknown axis of a read such as x[i - 1] or x[i + di], where di is a reduction's."""
        free = [a for a in self.index.atoms if isinstance(a, Axis) and a not in known]
        spatial = set(axes)
        if len(free) != 1 or self.index.coefficient(free[0]) != 1 or any(a in spatial for a in self.index.atoms if a is not free[0]):
            return None
        return free[0]

    def says(self) -> str:
        return f"{self.size} in {self.access.tensor.label} (dimension {self.dimension})"


def _accesses(e: Expr) -> Iterator[tuple[Access, bool]]:
    """Every access, and whether it stands in a branch of a choice; one that stands both ways comes twice."""
    seen: set[tuple[Expr, bool]] = set()
    pending = [(e, False)]
    while pending:
        n, guarded = pending.pop()
        if (n, guarded) in seen:
            continue
        seen.add((n, guarded))
        if isinstance(n, Access):
            yield n, guarded
        lazy = isinstance(n, Op) and n.op == "where"
        pending += reversed([(c, guarded or (lazy and k > 0)) for k, c in enumerate(n.operands)])


def infer(axes: tuple[Axis, ...], value: Expr, given: Mapping[str, Extent]) -> dict[Axis, Extent]:
    """Extent of every axis of the stage and of the reductions inside it.

    Raises AlgorithmError: disagreeing reads, an unbounded axis, a read provably outside, extents that cannot be compared.
    """
    inner = [n for n in walk(value) if isinstance(n, Reduce)]
    everything = [*axes, *(a for r in inner for a in r.axes)]
    extents: dict[Axis, Extent] = {a: given[a.name] for a in axes if a.name in given}
    extents |= {a: n for r in inner for a, n in zip(r.axes, r.extents, strict=True) if n is not None}
    fixed = set(extents)
    found = [
        _Bound(linear(simplify(i, {})), n, access, d, guarded)
        for access, guarded in _accesses(value)
        if access.tensor.is_settled
        for d, (i, n) in enumerate(zip(access.index, access.tensor.shape, strict=True))
    ]
    found = [b for b in found if b.index.terms and b.index.is_affine]
    firm = [b for b in found if not b.guarded and not b.access.tensor.is_bounded]

    bare: dict[Axis, _Bound] = {}
    for b in firm:
        if (a := b.bare) is not None and a not in fixed:
            if a in bare and bare[a].size != b.size:
                raise refuse(
                    "A201",
                    f"axis {a.name!r} is {bare[a].says()} and {b.says()}",
                    "bare reads of one axis must agree",
                    f"extents={{{a.name!r}: ...}}",
                    "an offset read or a boundary view where one is meant to be shorter",
                )
            bare.setdefault(a, b)
    extents |= {a: b.size for a, b in bare.items()}
    for b in found:
        if not b.guarded and b.access.tensor.is_bounded and (a := b.window(extents, axes)) is not None:
            extents[a] = b.size
    _shrink(firm, extents, fixed)
    for b in found:
        if b.guarded and (a := b.bare) is not None:
            extents.setdefault(a, b.size)
    for a in everything:
        if a not in extents:
            raise refuse(
                "A202",
                f"axis {a.name!r} has no extent",
                "no read bounds it",
                f"read a tensor with it, or give extents={{{a.name!r}: ...}}" if a in set(axes) else f"over={{{a.name!r}: ...}}",
            )
    for b in firm:
        _check(b, extents)
    return extents


def _shrink(firm: list[_Bound], extents: dict[Axis, Extent], fixed: set[Axis]) -> None:
    """Every affine read with one unknown axis bounds it; known ones shrink. Repeated to the fixed point."""
    for _ in range(len(firm) + 1):
        before = dict(extents)
        for b in firm:
            terms = [(a, c) for a, c in b.index.terms if isinstance(a, Axis)]
            if any(not nonnegative(c) for _, c in terms):
                continue
            unknown = [a for a, _ in terms if a not in extents]
            targets = unknown if len(unknown) == 1 else [terms[0][0]] if not unknown and len(terms) == 1 else []
            for a in targets:
                if a in fixed:
                    continue
                used = b.index.constant
                for other, c in terms:
                    if other is not a:
                        used = used + c * (extents[other] - 1)
                c = b.index.coefficient(a)
                limit = b.size - used if c == 1 else (b.size - 1 - used) // c + 1
                old = extents.get(a)
                extents[a] = limit if old is None else _smaller(old, limit, a, b)
        if extents == before:
            return


def _smaller(a: Extent, b: Extent, axis: Axis, at: _Bound) -> Extent:
    if at_most(a, b):
        return a
    if at_most(b, a):
        return b
    raise refuse(
        "A203",
        f"the extent of axis {axis.name!r}: {a} or {b} ({at.says()})",
        "which of the two is smaller depends on their values",
        f"extents={{{axis.name!r}: ...}}",
        "the same symbol in both declarations",
    )


def _check(b: _Bound, extents: Mapping[Axis, Extent]) -> None:
    low = high = b.index.constant
    for a, c in b.index.terms:
        assert isinstance(a, Axis)
        if nonnegative(c):
            high = high + c * (extents[a] - 1)
        else:
            low = low + c * (extents[a] - 1)
    empty = any(extents[a] == 0 for a, _ in b.index.terms if isinstance(a, Axis))
    if isinstance(low, int) and low < 0 and not empty:
        raise refuse(
            "A204",
            f"{b.access.tensor.label} read at {low} in dimension {b.dimension}",
            "axes start at 0, so this read is below the first element",
            f"fl.edge({b.access.tensor.label}) (or reflect, wrap, constant)",
            "fl.where(...) around the read",
        )
    over = high - b.size
    if nonnegative(over) and not empty:
        last = high if not isinstance(high, Dim) else f"({high})"
        raise refuse(
            "A205",
            f"{b.access.tensor.label} read at {last} in dimension {b.dimension}",
            f"its extent is {b.size}",
            "a smaller extents=",
            f"fl.edge({b.access.tensor.label}) (or reflect, wrap, constant)",
        )
    if isinstance(low, Dim) and nonnegative(low * -1 - 1) and not empty:
        raise refuse(
            "A204",
            f"{b.access.tensor.label} read at {low} in dimension {b.dimension}",
            "that is below the first element",
            f"fl.edge({b.access.tensor.label})",
        )
