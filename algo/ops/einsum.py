"""Sums of products named by labels, as NumPy's einsum. The labels are the axis names of the stages that it makes."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..building import operator
from ..complex.lifting import multilinear
from ..errors import AlgorithmError
from ..expr import Expr, as_expr, cast, refuse
from ..extent import Extent, evaluate, symbols_of
from ..reducing import ACCUMULATOR, reduce_axes
from ..tensor import Index, Tensor
from ..trace import build_stage
from .contraction_order import order
from .shapes import shown, tensor
from .views import made

_GUESS = 1024  # what a symbolic extent counts as when contraction orders are compared
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class _Labelled:
    """A tensor and the label of each of its axes."""

    tensor: Tensor
    labels: tuple[str, ...]

    def at(self, where: dict[str, Expr]) -> Any:
        if not self.labels:
            return self.tensor.as_scalar()
        pairs = zip(self.labels, self.tensor.shape, strict=True)
        return self.tensor[tuple(where[n] if n in where and e != 1 else as_expr(0) for n, e in pairs)]


@multilinear("given")
@operator
def einsum(*given: Any) -> Tensor:
    """``einsum("ij,jk->ik", a, b)``: the sum of products over the labels that the result does not have.

    Without ``->`` the result has the labels that stand once, in alphabetical order. A label that stands twice in one operand is its
    diagonal, ... are axes that broadcast (called b0, b1, ...), extents of 1 stretch. Three and more operands are contracted two at a time,
    in the order that costs fewest multiplications (a symbolic extent counts as 1024). The other form, ``einsum(a, [0, 1], b, [1, 2],
    [0, 2])``, numbers the labels. Axes are named by their labels; bool, 8-bit and 16-bit integers are summed in 32 bits. What sums nothing
    and has one operand is a view.
    """
    text, operands = _as_text(given)
    parts, wanted = _parsed(text, operands)
    sizes = _sizes(text, parts)
    parts = [_diagonal(p) for p in parts]
    summed = {n for p in parts for n in p.labels} - {*wanted}
    if len(parts) == 1 and not summed:
        return _permuted(parts[0], wanted)
    steps = order([frozenset(p.labels) for p in parts], frozenset(wanted), {n: _guess(e) for n, e in sizes.items()})
    for step, pair in enumerate(steps):
        chosen = [parts[k] for k in pair]
        rest = [p for k, p in enumerate(parts) if k not in pair]
        last = step == len(steps) - 1
        needed = {*wanted, *(n for p in rest for n in p.labels)}
        kept = wanted if last else tuple(dict.fromkeys(n for p in chosen for n in p.labels if n in needed))
        result = _contracted(chosen, kept, sizes, bool(summed), None if last else "product")
        parts = [result if k == pair[0] else p for k, p in enumerate(parts) if k not in pair[1:]]
    return parts[0].tensor


def _contracted(parts: Sequence[_Labelled], kept: tuple[str, ...], sizes: dict[str, Extent], wide: bool, name: str | None) -> _Labelled:
    """The product of the parts, summed over the labels that are not kept: one stage."""
    gone = list(dict.fromkeys(n for p in parts for n in p.labels if n not in kept))

    def value(*index: Expr) -> Any:
        outer = dict(zip(kept, index, strict=True))

        def term(*ks: Expr) -> Expr:
            where = outer | dict(zip(gone, ks, strict=True))
            factors = [as_expr(p.at(where)) for p in parts]
            if wide:
                factors = [cast(f, ACCUMULATOR[f.dtype]) if f.dtype in ACCUMULATOR else f for f in factors]
            result = factors[0]
            for f in factors[1:]:
                result = result * f
            return result

        return reduce_axes("sum", gone, term, {n: sizes[n] for n in gone}) if gone else term()

    # an intermediate stage need not be as long as the label where its parts are all stretched there
    result = build_stage(kept, value, name=name, extents={n: sizes[n] for n in kept})
    return _Labelled(result, kept)


def _guess(e: Extent) -> int:
    return e if isinstance(e, int) else builtins.max(evaluate(e, dict.fromkeys(symbols_of(e), _GUESS)), 1)


# ---------------------------------------------------------------- the two notations
def _wrong(text: str, why: str, *try_: str) -> AlgorithmError:
    return refuse("A304", f"einsum {text!r}", why, *try_)


def _as_text(given: tuple[Any, ...]) -> tuple[str, list[Tensor]]:
    """Subscripts as text, and the operands."""
    if given and isinstance(given[0], str):
        return given[0].replace(" ", ""), [tensor(t, "einsum") for t in given[1:]]
    if len(given) < 2:
        raise refuse("A304", "einsum without subscripts", "its first argument names the axes", 'fl.einsum("ij,jk->ik", a, b)')
    lists = [*given[1::2], *given[-1:]] if len(given) % 2 else [*given[1::2]]
    operands = [*given[: len(given) - len(given) % 2 : 2]]
    texts = ["".join(_letter(n) for n in subscripts) for subscripts in lists]
    text = ",".join(texts[: len(operands)]) + ("->" + texts[-1] if len(given) % 2 else "")
    return text, [tensor(t, "einsum") for t in operands]


def _letter(n: Any) -> str:
    if n is Ellipsis:
        return "..."
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < len(_LETTERS):
        raise refuse("A304", f"einsum with label {n!r}", f"a numbered label is from 0 to {len(_LETTERS) - 1}, or ...")
    return _LETTERS[n]


def _parsed(text: str, operands: Sequence[Tensor]) -> tuple[list[_Labelled], tuple[str, ...]]:
    """Every operand with its labels, and the labels of the result."""
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise _wrong(text, f"it speaks of {len(terms)} operands, and {len(operands)} are given")
    for term in [*terms, right]:
        bare = term.replace("...", "", 1)
        bad = next((c for c in bare if not (c.isascii() and c.isalpha())), None)
        if bad is not None:
            raise _wrong(text, f"{bad!r} is not a label: letters, one ... , commas and one -> make subscripts")
    extra = [t.ndim - len(term.replace("...", "")) if "..." in term else 0 for term, t in zip(terms, operands, strict=True)]
    dots = builtins.max(extra, default=0)
    names = [f"b{k}" for k in range(dots)]
    parts = []
    for k, (term, t) in enumerate(zip(terms, operands, strict=True)):
        here = _expanded(term, names[dots - extra[k] :] if extra[k] > 0 else [])
        if len(here) != t.ndim or extra[k] < 0:
            raise _wrong(text, f"operand {k} {shown(t.shape)} has {t.ndim} axes, and its subscripts {term!r} name {len(here)}")
        parts.append(_Labelled(t, tuple(here)))
    used = {n for p in parts for n in p.labels}
    if not arrow:
        once = sorted(n for n in used if n not in names and left.count(n) == 1)
        return parts, (*names, *once)
    if "..." not in right and dots:
        raise _wrong(text, "the axes of ... are not in the result", f"{left}->...{right}")
    wanted = tuple(_expanded(right, names))
    twice = next((n for n in wanted if wanted.count(n) > 1), None)
    if twice or not used.issuperset(wanted):
        unknown = next((n for n in wanted if n not in used), None)
        raise _wrong(text, f"{twice} stands twice in the result" if twice else f"no operand has the label {unknown} of the result")
    return parts, wanted


def _expanded(term: str, names: Sequence[str]) -> list[str]:
    before, dots, after = term.partition("...")
    return [*before, *(names if dots else ()), *after]


def _sizes(text: str, parts: Sequence[_Labelled]) -> dict[str, Extent]:
    """The extent of every label; extents of 1 stretch."""
    sizes: dict[str, Extent] = {}
    for p in parts:
        for label, n in zip(p.labels, p.tensor.shape, strict=True):
            known = sizes.get(label, 1)
            if 1 not in (known, n) and known != n:
                of = " and ".join(shown(q.tensor.shape) for q in parts)
                raise refuse("A301", f"einsum {text!r} of {of}", f"{label} is {known} and {n}")
            sizes[label] = n if known == 1 else known
    return sizes


# ---------------------------------------------------------------- one operand
def _diagonal(p: _Labelled) -> _Labelled:
    """Every label once: where one stood twice, the elements at equal positions. A view."""
    labels = tuple(dict.fromkeys(p.labels))
    if len(labels) == len(p.labels):
        return p
    size: dict[str, Extent] = {}
    for n, e in zip(p.labels, p.tensor.shape, strict=True):
        size[n] = e if size.get(n, 1) == 1 else size[n]

    def index_map(i: Index) -> Index:
        at = dict(zip(labels, i, strict=True))
        return tuple(as_expr(0) if e == 1 else at[n] for n, e in zip(p.labels, p.tensor.shape, strict=True))

    return _Labelled(made(p.tensor, [size[n] for n in labels], labels, index_map), labels)


def _permuted(p: _Labelled, wanted: tuple[str, ...]) -> Tensor:
    places = [wanted.index(n) for n in p.labels]
    return made(p.tensor, [p.tensor.shape[p.labels.index(n)] for n in wanted], wanted, lambda i: tuple(i[k] for k in places))
