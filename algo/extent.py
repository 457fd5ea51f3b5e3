"""Symbolic extents: integer polynomials over named symbols, with floor division and maximum as opaque atoms.

An extent is a plain ``int`` or a :class:`Dim`; every operation returns an ``int`` when the result is constant. Symbols are at least 1
unless a plan says otherwise, so that ``h - 1 >= 0`` is provable; what it says is then part of the symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd
from numbers import Integral
from typing import TypeAlias

from .extent_names import most_of


@dataclass(frozen=True, order=True)
class Symbol:
    """A named extent, the same everywhere in one method, which is never less than `least`."""

    name: str
    least: int = 1

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Quotient:
    """floor(numerator / denominator)."""

    numerator: Dim
    denominator: Extent

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        below = f"({self.denominator})" if isinstance(self.denominator, Dim) and not self.denominator.is_atom else str(self.denominator)
        return f"({self.numerator})//{below}"


@dataclass(frozen=True)
class Extremum:
    """The larger (or smaller) of two extents of which neither is provably so."""

    kind: str
    a: Extent
    b: Extent

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return f"{self.kind}({self.a}, {self.b})"


Atom = Symbol | Quotient | Extremum
Monomial = tuple[Atom, ...]
Extent: TypeAlias = "int | Dim"


@dataclass(frozen=True)
class Dim:
    """A polynomial: sorted ((monomial, coefficient), ...); the empty monomial is the constant."""

    terms: tuple[tuple[Monomial, int], ...]

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

    def __hash__(self) -> int:
        return self._hash

    @property
    def is_atom(self) -> bool:
        return len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1

    @property
    def constant(self) -> int:
        return dict(self.terms).get((), 0)

    def symbols(self) -> Iterator[str]:
        for monomial, _ in self.terms:
            for atom in monomial:
                match atom:
                    case Symbol(name):
                        yield name
                    case Quotient(a, b) | Extremum(_, a, b):
                        for part in (a, b):
                            if isinstance(part, Dim):
                                yield from part.symbols()

    # with an expression (n - i) the result is one: its own operators make it
    def __add__(self, other: Extent) -> Extent:
        if type(other) is int and not other:
            return self
        return _build([*self.terms, *_terms(other)]) if _is_extent(other) else NotImplemented

    __radd__ = __add__

    def __neg__(self) -> Extent:
        return self * -1

    def __sub__(self, other: Extent) -> Extent:
        return self + other * -1 if _is_extent(other) else NotImplemented

    def __rsub__(self, other: Extent) -> Extent:
        return self * -1 + other

    def __mul__(self, other: Extent) -> Extent:
        if type(other) is int and other:
            return self if other == 1 else Dim(tuple((m, c * other) for m, c in self.terms))
        if not _is_extent(other):
            return NotImplemented
        return _build([(tuple(sorted(m + n, key=str)), c * d) for m, c in self.terms for n, d in _terms(other)])

    __rmul__ = __mul__

    def __floordiv__(self, other: Extent) -> Extent:
        return floordiv(self, other) if _is_extent(other) else NotImplemented

    def __rfloordiv__(self, other: Extent) -> Extent:
        return floordiv(other, self)

    def __mod__(self, other: Extent) -> Extent:
        return self - floordiv(self, other) * other if _is_extent(other) else NotImplemented

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        text = ""
        for monomial, coefficient in sorted(self.terms, key=lambda t: (not t[0], [str(a) for a in t[0]])):
            body = "*".join(map(str, monomial))
            size = "" if abs(coefficient) == 1 and monomial else str(abs(coefficient))
            part = "*".join(p for p in (size, body) if p)
            text += ("-" if coefficient < 0 else "+" if text else "") + part
        return text

    __repr__ = __str__


def symbol(name: str, least: int | None = None) -> Dim:
    """The extent of this name. Unless `least` says otherwise it is at least 1, or 0 if it is computed."""
    usual = 1 if most_of(name) is None else 0
    return Dim((((Symbol(name, usual if least is None else least),), 1),))


def _is_extent(value: object) -> bool:
    return isinstance(value, int | Dim | Integral)


def _terms(e: Extent) -> tuple[tuple[Monomial, int], ...]:
    return e.terms if isinstance(e, Dim) else (((), int(e)),) if e else ()


def _build(terms: list[tuple[Monomial, int]]) -> Extent:
    total: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        total[monomial] = total.get(monomial, 0) + coefficient
    kept = {m: c for m, c in total.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    return Dim(tuple(sorted(kept.items(), key=_order) if len(kept) > 1 else kept.items()))


def _order(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    return len(term[0]), [str(a) for a in term[0]]


def volume(extents: Iterable[Extent]) -> Extent:
    """How many elements a box has."""
    total: Extent = 1
    for n in extents:
        total = total * n
    return total


def exact_quotient(a: Extent, b: Extent) -> Extent | None:
    """a / b when b divides every term of a."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b and a % b == 0 else None
    if b == 1:
        return a
    parts = _terms(b)
    if len(parts) != 1:
        return 1 if a == b else None
    (divisor, scale), out = parts[0], []
    for monomial, coefficient in _terms(a):
        left = list(monomial)
        for atom in divisor:
            if atom not in left:
                return None
            left.remove(atom)
        if coefficient % scale:
            return None
        out.append((tuple(left), coefficient // scale))
    return _build(out)


def floordiv(a: Extent, b: Extent) -> Extent:
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    exact = exact_quotient(a, b)
    if exact is not None:
        return exact
    if isinstance(b, int):
        whole = [(m, c) for m, c in _terms(a) if c % b == 0]
        rest = _build([(m, c) for m, c in _terms(a) if c % b])
        if whole and isinstance(rest, Dim):
            return _build([(m, c // b) for m, c in whole]) + floordiv(rest, b)
        if isinstance(rest, int):
            return _build([(m, c // b) for m, c in whole]) + rest // b
        if b > 0 and (inner := _quotient_and_rest(a)) is not None:
            (q, c), d = inner, inner[0].denominator
            if isinstance(d, int) and d > 0:  # blocks of blocks
                return floordiv(q.numerator + c * d, b * d)
    else:
        parts = [(m, c, exact_quotient(Dim(((m, c),)), b)) for m, c in _terms(a)]
        whole_part: Extent = sum((q for _, _, q in parts if q is not None), 0)
        rest = _build([(m, c) for m, c, q in parts if q is None])
        if nonnegative(rest) and nonnegative(b - 1 - rest):
            return whole_part
        if nonnegative(rest * -1 - 1) and nonnegative(b + rest):
            return whole_part - 1
    if isinstance(a, int):
        a = Dim((((), a),)) if a else Dim(())
    return Dim((((Quotient(a, b),), 1),))


def _quotient_and_rest(a: Extent) -> tuple[Quotient, int] | None:
    """The extent as one quotient plus a number, if it is that."""
    by = dict(_terms(a))
    rest = by.pop((), 0)
    match list(by.items()):
        case [((Quotient() as q,), 1)]:
            return q, rest
    return None


def ceildiv(a: Extent, b: Extent) -> Extent:
    return floordiv(a + b - 1, b)


def nonnegative(e: Extent, least: Mapping[str, int] | None = None) -> bool:
    """Whether e >= 0 is proved when every symbol is at least `least[name]` (its own `least` by default). False means unknown."""
    if isinstance(e, int):
        return e >= 0
    return _nonnegative(e) if least is None else _proved(e, least)


@lru_cache(maxsize=1 << 15)
def _nonnegative(e: Dim) -> bool:
    return _proved(e, None)


def _proved(e: Dim, least: Mapping[str, int] | None) -> bool:
    if any(most_of(name) is not None for name in e.symbols()) and nonnegative(_at_their_most(e), least):
        return True
    if _provable(e, least) or ((relaxed := _without_quotients(e, least)) is not None and _provable(relaxed, least)):
        return True
    return _by_cases(e, least)


def _at_their_most(e: Dim) -> Extent:
    """A lower bound of e, with the largest computed extents in what is taken off."""
    total: Extent = 0
    for monomial, c in e.terms:
        part: Extent = c
        for atom in monomial:
            most = most_of(atom.name) if isinstance(atom, Symbol) and c < 0 else None
            part = part * (Dim((((atom,), 1),)) if most is None else most)
        total = total + part
    return total if total != e else -1


def _by_cases(e: Dim, least: Mapping[str, int] | None) -> bool:
    """The proof with an extremum replaced by each of the two that it may be, or one floor division by the quotient above it, or by that of
    larger parts: k * (a // (k * d)) <= a // d."""
    for monomial, c in e.terms:
        match monomial:
            case (Extremum(kind, a, b),):
                rest = e - Dim(((monomial, c),))
                cases = (nonnegative(rest + c * x, least) for x in (a, b))
                return any(cases) if (kind == "max") == (c > 0) else all(cases)
            case (Quotient(a, int(d)),) if d > 0 and c < 0:
                rest = e - Dim(((monomial, c),))
                if nonnegative(rest * d + a * c, least):
                    return True
                if (k := gcd(c, d)) > 1 and nonnegative(rest + floordiv(a, d // k) * (c // k), least):
                    return True
    return False


def _provable(e: Extent, least: Mapping[str, int] | None) -> bool:
    shifted: Extent = 0
    for monomial, coefficient in _terms(e):
        product: Extent = coefficient
        for atom in monomial:
            low = (least or {}).get(atom.name, atom.least) if isinstance(atom, Symbol) else _least_of(atom, least)
            if low is None:
                return False
            product = product * (Dim((((atom,), 1),)) + low)
        shifted = shifted + product
    return all(c >= 0 for _, c in _terms(shifted))


def _without_quotients(e: Dim, least: Mapping[str, int] | None) -> Extent | None:
    """A lower bound of e without its floor divisions: a - d + 1 <= d * (a // d) <= a, and a // d - b // d >= (a - b) // d."""
    total: Extent = 0
    loose: list[tuple[Quotient, int]] = []
    for monomial, c in e.terms:
        match monomial:
            case (Quotient(_, int(d)) as q,) if d > 0:
                loose.append((q, c))
            case _:
                total = total + Dim(((monomial, c),))
    if not loose:
        return None
    while loose:
        q, c = loose.pop()
        assert isinstance(q.denominator, int)
        other = next(((o, k) for o, k in loose if o.denominator == q.denominator and k * c < 0), None)
        if other is not None and abs(other[1]) == abs(c):
            up, down = (q, other[0]) if c > 0 else (other[0], q)
            apart = up.numerator - down.numerator
            if isinstance(apart, int) or nonnegative(apart, least):
                total = total + (apart // q.denominator * abs(c) if isinstance(apart, int) else 0)
                loose.remove(other)
                continue
        if c % q.denominator:
            return None
        total = total + (q.numerator if c < 0 else q.numerator - q.denominator + 1) * (c // q.denominator)
    return total


def _least_of(atom: Quotient | Extremum, least: Mapping[str, int] | None) -> int | None:
    if isinstance(atom, Quotient):
        return 0 if nonnegative(atom.numerator, least) and nonnegative(atom.denominator, least) else None
    both = nonnegative(atom.a, least) and nonnegative(atom.b, least)
    either = nonnegative(atom.a, least) or nonnegative(atom.b, least)
    return 0 if (either if atom.kind == "max" else both) else None


def at_most(a: Extent, b: Extent, least: Mapping[str, int] | None = None) -> bool:
    return nonnegative(b - a, least)


def maximum(a: Extent, b: Extent) -> Extent:
    return b if at_most(a, b) else a if at_most(b, a) else Dim((((Extremum("max", a, b),), 1),))


def minimum(a: Extent, b: Extent) -> Extent:
    return a if at_most(a, b) else b if at_most(b, a) else Dim((((Extremum("min", a, b),), 1),))


def evaluate(e: Extent, values: Mapping[str, int]) -> int:
    """The integer that e is for these symbol values; KeyError names a missing symbol."""
    found = substitute(e, values.__getitem__)
    assert isinstance(found, int)
    return found


def substitute(e: Extent, value: Callable[[str], Extent | None]) -> Extent:
    """e with every symbol replaced of which `value` gives something."""
    if isinstance(e, int):
        return e
    total: Extent = 0
    for monomial, coefficient in e.terms:
        product: Extent = coefficient
        for atom in monomial:
            match atom:
                case Symbol(name):
                    found = value(name)
                    product = product * (Dim((((atom,), 1),)) if found is None else found)
                case Quotient(a, b):
                    product = product * floordiv(substitute(a, value), substitute(b, value))
                case Extremum(kind, a, b):
                    product = product * (maximum if kind == "max" else minimum)(substitute(a, value), substitute(b, value))
        total = total + product
    return total


def symbols_of(e: Extent) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.symbols())) if isinstance(e, Dim) else ()
