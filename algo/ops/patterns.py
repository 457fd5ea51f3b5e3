"""Axes rearranged, reduced and repeated by a pattern that names them: ``"b (h p) c -> b h p c"``.

The notation is that of einops (A. Rogozhnikov, "Einops: clear and reliable tensor manipulations with Einstein-like notation", 2022):
names are separated by blanks, parentheses hold axes that are one axis of the tensor, 1 is an axis of extent 1, and ... stands for the
axes that are not written. Splits, merges and orders are views.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..building import operator
from ..errors import AlgorithmError
from ..expr import refuse
from ..extent import Extent, exact_quotient
from ..tensor import Tensor
from .reductions import all, any, max, mean, min, prod, sum
from .shapes import dimensions, shown, tensor, view
from .views import broadcast_view, made, reshape, transpose

Group: TypeAlias = "tuple[str, ...]"
_TOKEN = re.compile(r"\s*(\.\.\.|[A-Za-z_]\w*|1(?!\w)|[()])")
_REDUCTIONS: dict[str, Callable[..., Tensor]] = {"sum": sum, "mean": mean, "max": max, "min": min, "prod": prod, "any": any, "all": all}


@dataclass(frozen=True)
class _Side:
    """One side of a pattern: for each axis of the tensor the names in it; () is an extent of 1, ("...",) the axes left out.

    Inside parentheses these are called (...).
    """

    text: str
    groups: tuple[Group, ...]

    @property
    def names(self) -> list[str]:
        return [n for g in self.groups for n in g]


def _wrong(pattern: str, why: str, *try_: str) -> AlgorithmError:
    return refuse("A304", f"pattern {pattern!r}", why, *try_)


def _side(text: str, pattern: str) -> _Side:
    groups: list[Group] = []
    inside: list[str] | None = None
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise _wrong(pattern, f"{text[at:].strip().split()[0]!r} is not an axis: names, 1, ... and ( ) make a pattern")
        at, token = match.end(), match.group(1)
        match token:
            case "(" if inside is None:
                inside = []
            case ")" if inside is not None:
                groups.append(tuple(inside))
                inside = None
            case "(" | ")":
                raise _wrong(pattern, "its parentheses do not pair up, or stand in one another")
            case "1":
                if inside is None:
                    groups.append(())
            case _ if inside is not None:
                inside.append("(...)" if token == "..." else token)
            case _:
                groups.append((token,))
    if inside is not None:
        raise _wrong(pattern, "a ( has no )")
    side = _Side(text, tuple(groups))
    twice = next((n for n in side.names if side.names.count(n) > 1), None)
    if twice:
        raise _wrong(pattern, f"{twice} stands twice on one side")
    return side


@dataclass(frozen=True)
class _Plan:
    """A pattern met with a tensor: the elementary axes that x is split into, and the right side in them."""

    split: Tensor
    names: list[str]
    right: tuple[Group, ...]
    sizes: dict[str, Extent]

    @property
    def wanted(self) -> list[str]:
        return [n for g in self.right for n in g]


def _met(t: Tensor, pattern: str, lengths: Mapping[str, Extent]) -> _Plan:
    if pattern.count("->") != 1:
        raise _wrong(pattern, "it has two sides with one -> between them", '"b c h w -> b (c h w)"')
    left, right = (_side(s, pattern) for s in pattern.split("->"))
    if "(...)" in left.names:
        raise _wrong(pattern, "on the left, ... stands outside parentheses")
    dots = t.ndim - (len(left.groups) - 1)
    if ("..." in left.names and dots < 0) or ("..." not in left.names and len(left.groups) != t.ndim):
        raise _wrong(pattern, f"its left side has {len(left.groups)} axes, and {t.label} {shown(t.shape)} has {t.ndim}")
    rest = tuple(f"...{k}" for k in range(dots)) if "..." in left.names else ()
    unknown = [n for n in lengths if n not in left.names and n not in right.names]
    if unknown:
        raise _wrong(pattern, f"it has no axis {unknown[0]}, whose length is given")
    if {"...", "(...)"}.intersection(right.names) and "..." not in left.names:
        raise _wrong(pattern, "... on the right needs ... on the left")
    groups = [g for group in left.groups for g in ([(r,) for r in rest] if group == ("...",) else [group])]
    sizes: dict[str, Extent] = dict(lengths)
    for group, n in zip(groups, t.shape, strict=True):
        _sized(group, n, sizes, pattern)
    names = [n for g in groups for n in g]
    split = t if all_single(groups) else reshape(t, [sizes[n] for n in names])
    spread = [
        g
        for group in right.groups
        for g in ([(r,) for r in rest] if group == ("...",) else [tuple(m for n in group for m in (rest if n == "(...)" else (n,)))])
    ]
    return _Plan(split, names, tuple(spread), sizes)


def all_single(groups: list[Group]) -> bool:
    """Whether each axis has one name, so that nothing is split or merged."""
    return not [g for g in groups if len(g) != 1]


def _sized(group: Group, n: Extent, sizes: dict[str, Extent], pattern: str) -> None:
    """The length of the one axis of a group that is not known, from the extent of the group."""
    known: Extent = 1
    open_ = [name for name in group if name not in sizes]
    for name in group:
        known = known * sizes.get(name, 1)
    shown_ = f"({' '.join(group)})" if len(group) != 1 else group[0]
    if len(open_) > 1:
        raise _wrong(pattern, f"{shown_} of extent {n} can be split in many ways", f"{open_[-1]}=... as an argument")
    rest = n if not open_ and known == n else exact_quotient(n, known) if open_ and known != 0 else None
    if rest is None:
        inside = " * ".join(str(sizes[name]) for name in group if name in sizes) or "1"
        raise _wrong(pattern, f"{shown_} is an axis of extent {n}, which is not {'a multiple of ' if open_ else ''}{inside}")
    for name in open_:
        sizes[name] = rest


def _arranged(t: Tensor, names: list[str], plan: _Plan) -> Tensor:
    """t, whose axes are the wanted names in any order, in the order and the groups of the right side."""
    order = [names.index(n) for n in plan.wanted]
    t = t if order == list(range(t.ndim)) else transpose(t, order)
    if not all_single(list(plan.right)):
        shape: list[Extent] = []
        for group in plan.right:
            size: Extent = 1
            for name in group:
                size = size * plan.sizes[name]
            shape.append(size)
        t = reshape(t, shape)
    own = [g[0] if len(g) == 1 and not g[0].startswith("...") else None for g in plan.right]
    return _called(t, [name or old for name, old in zip(own, t.axis_names, strict=True)])


def _called(t: Tensor, names: Sequence[str | None]) -> Tensor:
    """t with its axes named so."""
    return t if t.axis_names == tuple(names) else made(t, t.shape, names, lambda i: i)


def _dimension(lengths: Mapping[str, Any], pattern: str) -> dict[str, Extent]:
    return {n: dimensions((e,), f"length {n} of {pattern!r}")[1][0] for n, e in lengths.items()}


@view
def rearrange(x: Any, pattern: str, **lengths: Extent) -> Tensor:
    """The axes of x split, ordered and merged as the pattern says: ``rearrange(x, "b (h p) c -> b h p c", p=4)``. A view.

    Both sides hold the same names. Of the axes in parentheses on the left all lengths but one are given. Axes of the result bear the
    pattern's names.
    """
    plan = _met(tensor(x, "rearrange"), pattern, _dimension(lengths, pattern))
    lost, new = [n for n in plan.names if n not in plan.wanted], [n for n in plan.wanted if n not in plan.names]
    if lost or new:
        which, side = (lost[0], "left") if lost else (new[0], "right")
        instead = "fl.reduce_ sums it away" if lost else "fl.repeat makes new axes"
        raise _wrong(pattern, f"{which.rstrip('0123456789') if '.' in which else which} stands on its {side} side alone", instead)
    return _arranged(plan.split, plan.names, plan)


@operator
def reduce_(x: Any, pattern: str, kind: str, **lengths: Extent) -> Tensor:
    """Axes that stand on the left side of the pattern alone are reduced: ``reduce_(x, "b (h p) c -> b h c", "max", p=2)``.

    `kind` is sum, mean, max, min, prod, any or all. (einops calls it reduce, which is here a reduction with one's own combination.)
    """
    if kind not in _REDUCTIONS:
        raise refuse("A304", f"reduce_ by {kind!r}", "there is no such reduction", *_REDUCTIONS)
    plan = _met(tensor(x, "reduce_"), pattern, _dimension(lengths, pattern))
    new = [n for n in plan.wanted if n not in plan.names]
    if new:
        raise _wrong(pattern, f"{new[0]} stands on its right side alone", "fl.repeat makes new axes")
    named = _called(plan.split, [None if "." in n else n for n in plan.names])
    over = [d for d, n in enumerate(plan.names) if n not in plan.wanted]
    result = _REDUCTIONS[kind](named, over) if over else named
    return _arranged(result, [n for n in plan.names if n in plan.wanted], plan)


def repeated_to(t: Tensor, pattern: str, lengths: Mapping[str, Extent]) -> Tensor:
    """Axes that stand on the right side of the pattern alone repeat t. A view."""
    plan = _met(t, pattern, _dimension(lengths, pattern))
    lost = [n for n in plan.names if n not in plan.wanted]
    if lost:
        raise _wrong(pattern, f"{lost[0]} stands on its left side alone", "fl.reduce_ reduces axes")
    new = [n for n in plan.wanted if n not in plan.names]
    missing = [n for n in new if n not in plan.sizes]
    if missing:
        raise _wrong(pattern, f"{missing[0]} is new, and its length is not given", f"{missing[0]}=... as an argument")
    to = [*(plan.sizes[n] for n in new), *plan.split.shape]
    return _arranged(broadcast_view(plan.split, to, (None,) * len(to)), [*new, *plan.names], plan)
