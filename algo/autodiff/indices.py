"""Index arithmetic beyond the normal form of `linear`: what inverting an index map needs."""

from __future__ import annotations

from collections.abc import Mapping

from ..expr import Axis, Const, Expr, Op, Size, as_expr, binary
from ..extent import Extent, exact_quotient, nonnegative
from ..linear import Linear, Ranges, is_index, linear, simplify
from ..rewriting import rewrite, substitute, walk


def tidy(form: Linear) -> Linear:
    """y - c * (y // c) as y % c, and y - y % c as c * (y // c)."""
    changed = True
    while changed:
        changed = False
        for atom, k in form.terms:
            match atom:
                case Op(op="floordiv", args=(y, Const() | Size() as c)):
                    q = exact_quotient(k * -1, linear(c).constant)
                    other = Op("mod", (y, c), "int32", True)
                case Op(op="mod", args=(y, Const() | Size() as c)):
                    q, other = k * -1, Op("floordiv", (y, c), "int32", True)
                case _:
                    continue
            if q is None:
                continue
            size: Extent = q if atom.op == "floordiv" else q * linear(c).constant
            fewer = form + Linear(((atom, k),), 0).scaled(-1) + linear(y).scaled(q * -1) + Linear(((other, size),), 0)
            if len(fewer.terms) < len(form.terms):
                form, changed = fewer, True
                break
    return form


def tidied(e: Expr, ranges: Ranges) -> Expr:
    """e with all its index arithmetic in the normal form."""

    def rule(n: Expr) -> Expr | None:
        if isinstance(n, Op) and n.op in ("add", "sub") and is_index(n):
            form = linear(n)
            better = tidy(form)
            return None if better is form else better.expr()
        match n:
            case Op(op="mod", args=(y, Const() | Size() as c)) if is_index(n) and (inner := _unreduced(linear(y), linear(c).constant)):
                return binary("mod", inner.expr(), c)
        return None

    return simplify(rewrite(simplify(e, ranges), rule), ranges)


def _unreduced(form: Linear, by: Extent) -> Linear | None:
    """A form that has the same remainder, without the remainders inside it: (x + y % c) % c is (x + y) % c."""
    out = form
    for atom, k in form.terms:
        match atom:
            case Op(op="mod", args=(y, Const() | Size() as c)) if exact_quotient(linear(c).constant, by) is not None:
                out = out + Linear(((atom, k),), 0).scaled(-1) + linear(y).scaled(k)
    return None if out is form else out


def substituted(form: Linear, mapping: Mapping[Axis, Expr], ranges: Ranges) -> Linear:
    """The form with axes replaced, in normal form."""
    if not any(n in mapping for a in form.atoms for n in walk(a)):
        return form
    total = Linear((), form.constant)
    for atom, k in form.terms:
        new = mapping.get(atom) if isinstance(atom, Axis) else None
        if new is None:
            new = atom if isinstance(atom, Axis) else substitute(atom, mapping)
        total = total + linear(new).scaled(k)
    return tidy(linear(tidied(total.expr(), ranges)))


def quotient(form: Linear, by: Extent) -> Expr:
    """form // by. Never of a form that only falls: compilers have got those wrong, so (c - v) // k is -((v - c + k - 1) // k)."""
    if by == 1:
        return form.expr()
    if form.terms and all(isinstance(c, int) and c < 0 for _, c in form.terms) and isinstance(by, int):
        up = form.scaled(-1) + Linear((), by - 1)
        return binary("sub", as_expr(0), binary("floordiv", up.expr(), as_expr(by)))
    return binary("floordiv", form.expr(), as_expr(by))


def remainder(form: Linear, by: Extent) -> Expr:
    """form % by."""
    return as_expr(0) if by == 1 else binary("mod", form.expr(), as_expr(by))


def sign_of(c: Extent) -> int:
    """1 or -1 where the sign of a coefficient is proved, else 0."""
    return 1 if nonnegative(c - 1) else -1 if nonnegative(c * -1 - 1) else 0


__all__ = ["quotient", "remainder", "sign_of", "substituted", "tidied", "tidy"]
