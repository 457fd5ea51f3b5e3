"""Index arithmetic: linear normal forms, provable ranges and simplification of index expressions.

An index is brought to sum(coefficient * atom) + constant, where coefficients and the constant are extents (so symbols may multiply) and
atoms are axes or opaque integer nodes. Whatever needs to know where a read may land (extents, bounds, views, tiles) asks here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from itertools import combinations
from typing import TypeAlias

from .dtypes import kind
from .expr import Axis, Const, Expr, Op, Read, Size, as_expr, binary
from .extent import Dim, Extent, at_most, exact_quotient, floordiv, maximum, minimum, nonnegative
from .rewriting import rewrite

Ranges = Mapping[Axis, Extent]
Terms: TypeAlias = tuple[tuple[Expr, Extent], ...]
BOUNDARIES = ("edge", "reflect", "wrap")
"""Index operators op(i, n) that map any integer into [0, n) and are the identity there."""


@dataclass(frozen=True)
class Linear:
    terms: Terms
    constant: Extent

    def coefficient(self, atom: Expr) -> Extent:
        return next((c for a, c in self.terms if a is atom), 0)

    @property
    def atoms(self) -> tuple[Expr, ...]:
        return tuple(a for a, _ in self.terms)

    @property
    def is_affine(self) -> bool:
        return all(isinstance(a, Axis) for a in self.atoms)

    def __add__(self, other: Linear) -> Linear:
        total: dict[Expr, Extent] = dict(self.terms)
        for atom, c in other.terms:
            total[atom] = total.get(atom, 0) + c
        return Linear(tuple((a, c) for a, c in total.items() if c != 0), self.constant + other.constant)

    def scaled(self, k: Extent) -> Linear:
        return Linear(tuple((a, c * k) for a, c in self.terms), self.constant * k) if k != 0 else Linear((), 0)

    def expr(self) -> Expr:
        total: Expr | None = None
        for atom, c in self.terms:
            negative = isinstance(c, int) and c < 0
            size = -c if negative else c
            part = atom if size == 1 else binary("mul", atom, as_expr(size))
            total = (
                (binary("sub", as_expr(0), part) if negative else part)
                if total is None
                else binary("sub" if negative else "add", total, part)
            )
        if total is None:
            return as_expr(self.constant)
        if isinstance(self.constant, int) and self.constant < 0:
            return binary("sub", total, as_expr(-self.constant))
        return total if self.constant == 0 else binary("add", total, as_expr(self.constant))


def is_index(e: Expr) -> bool:
    """Whether e is exact integer arithmetic (axes, extents and weak integers)."""
    return e.weak and kind(e.dtype) == "int"


def linear(e: Expr) -> Linear:
    match e:
        case Const():
            return Linear((), int(e.value))
        case Size():
            return Linear((), e.extent)
        case Op(op="add" | "sub" | "mul", args=(a, b)) if is_index(e):
            kept: dict[str, Linear | None] = e.__dict__
            if "linear" not in kept:  # nodes are interned: what is found of one is found for all
                kept["linear"] = _combined(e.op, linear(a), linear(b))
            if (found := kept["linear"]) is not None:
                return found
    return Linear(((e, 1),), 0)


def _combined(op: str, x: Linear, y: Linear) -> Linear | None:
    """The form of a sum, a difference or a product with a constant; None of another product, which stands for itself."""
    match op:
        case "add":
            return x + y
        case "sub":
            return x + y.scaled(-1)
    return y.scaled(x.constant) if not x.terms else x.scaled(y.constant) if not y.terms else None


def normal(e: Op) -> Expr:
    """A sum, a difference or a product of positions as its linear form is written."""
    kept: dict[str, Expr | None] = e.__dict__
    if "normal" not in kept:
        made = linear(e).expr()
        kept["normal"] = None if made is e else made  # a node that held itself would live for ever
    found = kept["normal"]
    return e if found is None else found


def bounds(e: Expr, ranges: Ranges) -> tuple[Extent | None, Extent | None]:
    """Smallest and largest value (inclusive) that e provably has; None where unknown."""
    form = linear(e)
    apart, terms = _clamped_apart(form.terms)
    low: Extent | None = form.constant + min(apart, 0)
    high: Extent | None = form.constant + max(apart, 0)
    for atom, c in terms:
        a, b = _atom_bounds(atom, ranges)
        if not nonnegative(c):
            if not nonnegative(c * -1):
                return None, None
            a, b = b, a
        low = None if low is None or a is None else low + c * a
        high = None if high is None or b is None else high + c * b
    return low, high


def _clamped_apart(terms: Terms) -> tuple[int, Terms]:
    """How far apart two positions are that were clamped to the same extent and are subtracted from each other: no further than before,
    and on the same side. The other terms too."""
    clamped = [t for t in terms if isinstance(t[0], Op) and t[0].op == "edge"]
    for (a, k), (b, m) in combinations(clamped, 2):
        assert isinstance(a, Op) and isinstance(b, Op)
        if not isinstance(k, int) or k != -m or a.args[1] is not b.args[1]:
            continue
        before = linear(a.args[0]) + linear(b.args[0]).scaled(-1)
        if not before.terms and isinstance(before.constant, int):
            return before.constant * k, tuple(t for t in terms if t[0] is not a and t[0] is not b)
    return 0, terms


def _atom_bounds(e: Expr, ranges: Ranges) -> tuple[Extent | None, Extent | None]:
    match e:
        case Axis():
            extent = ranges.get(e)
            return (0, extent - 1) if extent is not None else (None, None)
        case Op(op="floordiv", args=(a, b)) if is_index(e):
            low, high = bounds(a, ranges)
            by = linear(b)
            if by.terms or not nonnegative(by.constant - 1):
                return None, None
            return (None if low is None else floordiv(low, by.constant)), (None if high is None else floordiv(high, by.constant))
        case Op(op="mod", args=(_, b)) if is_index(e):
            by = linear(b)
            return (None, None) if by.terms or not nonnegative(by.constant - 1) else (0, by.constant - 1)
        case Op(op="min" | "max" as op, args=(a, b)) if is_index(e):
            (la, ha), (lb, hb) = bounds(a, ranges), bounds(b, ranges)
            pick, known = (minimum, "high") if op == "min" else (maximum, "low")
            low = pick(la, lb) if la is not None and lb is not None else (la if la is not None else lb) if known == "low" else None
            high = pick(ha, hb) if ha is not None and hb is not None else (ha if ha is not None else hb) if known == "high" else None
            return low, high
        case Op(op="edge" | "reflect" | "wrap" as op, args=(a, n)):
            size = linear(n).constant
            low, high = bounds(a, ranges)
            if op == "edge":
                least = low if low is not None and nonnegative(low) and at_most(low, size - 1) else 0
                return least, high if high is not None and nonnegative(high) and at_most(high, size - 1) else size - 1
            return 0, size - 1
        case Op(op="where", args=(_, a, b)) if kind(e.dtype) == "int":
            (la, ha), (lb, hb) = bounds(a, ranges), bounds(b, ranges)
            return (None if la is None or lb is None else minimum(la, lb)), (None if ha is None or hb is None else maximum(ha, hb))
        case Op(op="cast", args=(a,)) if kind(a.dtype) == "bool":
            return 0, 1
        case Op(op="cast", args=(a,)) if is_index(a) and kind(e.dtype) == "int":
            return _narrowed(e.dtype, *bounds(a, ranges))
        case Read(dtype="uint8"):
            return 0, 255
        case Read(dtype="bool"):
            return 0, 1
    return None, None


def _narrowed(dtype: str, low: Extent | None, high: Extent | None) -> tuple[Extent | None, Extent | None]:
    """Bounds after a cast, which wraps what does not fit; positions are taken to fit 32 bits."""
    bits, unsigned = int(dtype.strip("uint")), dtype.startswith("u")
    least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    wide = bits >= 32
    if low is not None and high is not None and (at_most(least, low) or (wide and not unsigned)) and (wide or at_most(high, most)):
        return low, high
    return (0 if unsigned else None, None) if wide else (least, most)


def within(e: Expr, size: Extent, ranges: Ranges) -> bool:
    """Whether 0 <= e < size is proved."""
    low, high = bounds(e, ranges)
    return low is not None and high is not None and nonnegative(low) and at_most(high, size - 1)


def simplify(e: Expr, ranges: Ranges, memo: dict[Expr, Expr] | None = None) -> Expr:
    """e with its index arithmetic in normal form: div and mod of what divides or stays below, decided minima, comparisons and branches.

    `memo` holds what was simplified before with these ranges.
    """

    def rule(n: Expr) -> Expr | None:
        match n:
            case Op(op="floordiv", args=(a, b)) if is_index(n) and isinstance(b, Const | Size):
                return _quotient(a, linear(b).constant, ranges)
            case Op(op="mod", args=(a, b)) if is_index(n) and isinstance(b, Const | Size):
                return _remainder(a, linear(b).constant, ranges)
            case Op(op="edge" | "reflect" | "wrap" as op, args=(a, n_)):
                return _boundary(op, a, linear(n_).constant, ranges)
            case Op(op="min" | "max") if is_index(n):
                return _extremum(n, ranges)
            case Op(op="lt" | "le" as op, args=(a, b)) if is_index(a) and is_index(b):
                low, high = bounds(binary("sub", a, b), ranges)
                strict = 1 if op == "lt" else 0
                if high is not None and nonnegative(high * -1 - strict):
                    return Const(True, "bool", False)
                if low is not None and nonnegative(low - 1 + strict):
                    return Const(False, "bool", False)
                return None
            case Op(op="and" | "or" as op, args=(a, b), dtype="bool"):
                for x, other in ((a, b), (b, a)):
                    if isinstance(x, Const):
                        return other if bool(x.value) == (op == "and") else x
                return None
            case Op(op="not", args=(Const(value=v),), dtype="bool"):
                return Const(not v, "bool", False)
            case Op(op="where" | "select", args=(Const(value=c), a, b)):
                return a if c else b
            case Op(op="add" | "sub" | "mul") if is_index(n):
                return normal(n)
        return None

    return rewrite(e, rule, memo)


def _extremum(n: Op, ranges: Ranges) -> Expr | None:
    """Without the operands that others decide; None where all are needed."""
    parts = operands_of(n.op, n)
    kept: list[Expr] = []
    for k, e in enumerate(parts):
        others = (*kept, *parts[k + 1 :])
        if not any(surely_at_most(*((o, e) if n.op == "min" else (e, o)), ranges) for o in others):
            kept.append(e)
    return reduce(partial(binary, n.op), kept) if len(kept) < len(parts) else None


def operands_of(op: str, e: Expr) -> tuple[Expr, ...]:
    """Those of a minimum of minima, or of a maximum of maxima."""
    if isinstance(e, Op) and e.op == op and is_index(e):
        return (*operands_of(op, e.args[0]), *operands_of(op, e.args[1]))
    return (e,)


def surely_at_most(a: Expr, b: Expr, ranges: Ranges) -> bool:
    """Whether a <= b is proved: of minima and maxima by their operands, of quotients by the same number by what is divided."""
    if a is b:
        return True
    least, most = operands_of("min", a), operands_of("max", b)
    if len(least) > 1 or len(most) > 1:
        return any(surely_at_most(x, y, ranges) for x in least for y in most)
    every, all_ = operands_of("max", a), operands_of("min", b)
    if len(every) > 1 or len(all_) > 1:
        return all(surely_at_most(x, y, ranges) for x in every for y in all_)
    (x, k), (y, m) = _as_quotient(a), _as_quotient(b)
    if k != m:
        if k != 1 and m != 1:
            return False
        x, y = binary("mul", x, as_expr(m)), binary("mul", y, as_expr(k))
    low, _ = bounds(binary("sub", y, x), ranges)
    return low is not None and nonnegative(low)


def _as_quotient(e: Expr) -> tuple[Expr, int]:
    """e as floor(numerator / number)."""
    form = linear(e)
    for atom, c in form.terms:
        match atom:
            case Op(op="floordiv", args=(a, Const(value=k))) if c == 1 and k > 0:
                others = binary("sub", form.expr(), atom)
                return binary("add", a, binary("mul", others, as_expr(int(k)))), int(k)
    return e, 1


def _boundary(op: str, a: Expr, size: Extent, ranges: Ranges) -> Expr | None:
    """The index itself where it is inside, an end where it is beyond that."""
    low, high = bounds(a, ranges)
    if low is not None and high is not None and nonnegative(low) and at_most(high, size - 1):
        return a
    if op == "edge" and high is not None and nonnegative(high * -1):
        return as_expr(0)
    if op == "edge" and low is not None and at_most(size - 1, low):
        return as_expr(size - 1)
    return None


def _split(a: Expr, by: Extent) -> tuple[Linear, Linear]:
    """a = by * quotient + rest, taking into the quotient every term that `by` divides, and of the constant what keeps the rest small."""
    form = linear(a)
    quotient, rest = Linear((), 0), Linear((), 0)
    for atom, c in form.terms:
        q = exact_quotient(c, by)
        quotient, rest = (quotient + Linear(((atom, q),), 0), rest) if q is not None else (quotient, rest + Linear(((atom, c),), 0))
    if isinstance(form.constant, int) and isinstance(by, int):
        q, r = divmod(form.constant, by)
        return quotient + Linear((), q), rest + Linear((), r)
    q = exact_quotient(form.constant, by)
    return (quotient + Linear((), q), rest) if q is not None else (quotient, rest + Linear((), form.constant))


def _quotient(a: Expr, by: Extent, ranges: Ranges) -> Expr | None:
    if by == 0 or not nonnegative(by - 1):
        return None
    form = linear(a)
    if not form.terms:
        return as_expr(floordiv(form.constant, by))
    quotient, rest = _split(a, by)
    low, high = bounds(rest.expr(), ranges)
    if low is not None and high is not None and nonnegative(low) and at_most(high, by - 1):
        return quotient.expr()
    if (parts := _common(rest, by, ranges)) is not None:
        _, whole, _, left = parts
        return binary("add", quotient.expr(), binary("floordiv", whole.expr(), as_expr(left)))
    if not quotient.terms and quotient.constant == 0:
        return None
    return binary("add", quotient.expr(), Op("floordiv", (rest.expr(), as_expr(by)), "int32", True))


def _common(form: Linear, by: Extent, ranges: Ranges) -> tuple[Extent, Linear, Linear, Extent] | None:
    """(g, whole, rest, left) with form = g * whole + rest, 0 <= rest < g and by = g * left: then form // by is whole // left."""
    for _, g in form.terms:
        left = exact_quotient(by, g)
        if left is None or g == 1 or left == 1 or not nonnegative(g - 1) or not nonnegative(left - 1):
            continue
        whole, rest = _split(form.expr(), g)
        low, high = bounds(rest.expr(), ranges)
        if low is not None and high is not None and nonnegative(low) and at_most(high, g - 1):
            return g, whole, rest, left
    return None


def _remainder(a: Expr, by: Extent, ranges: Ranges) -> Expr | None:
    if by == 0 or not nonnegative(by - 1):
        return None
    quotient, rest = _split(a, by)
    low, high = bounds(rest.expr(), ranges)
    if low is not None and high is not None and nonnegative(low) and at_most(high, by - 1):
        return rest.expr()
    if (parts := _common(rest, by, ranges)) is not None:
        g, whole, low_part, left = parts
        return binary("add", binary("mul", binary("mod", whole.expr(), as_expr(left)), as_expr(g)), low_part.expr())
    if not quotient.terms and quotient.constant == 0:
        return None
    return Op("mod", (rest.expr(), as_expr(by)), "int32", True)


__all__ = ["BOUNDARIES", "Dim", "Linear", "Ranges", "bounds", "is_index", "linear", "simplify", "within"]
