"""The prefix form of extents that an artefact's manifest uses."""

from __future__ import annotations

from .extent import Extent, Extremum, Monomial, Quotient, Symbol


def to_json(e: Extent) -> int | str | list[object]:
    """A number, a symbol, or an operator and its operands."""
    if isinstance(e, int):
        return e
    sums = [_product_json(m, c) for m, c in e.terms]
    return sums[0] if len(sums) == 1 else ["+", *sums]  # type: ignore[return-value]


def _product_json(monomial: Monomial, coefficient: int) -> object:
    factors: list[object] = [coefficient] if coefficient != 1 or not monomial else []
    for atom in monomial:
        match atom:
            case Symbol(name):
                factors.append(name)
            case Quotient(a, b):
                factors.append(["//", to_json(a), to_json(b)])
            case Extremum(kind, a, b):
                factors.append([kind, to_json(a), to_json(b)])
    return factors[0] if len(factors) == 1 else ["*", *factors]
