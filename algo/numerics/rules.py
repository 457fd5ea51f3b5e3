"""How far the result of one operator may be from the truth, given how far its operands may be: running error analysis, rule by rule.

An `Enclosure` is what float64 makes of the algorithm, with a bound on |computed - value| for every computation that a numerics class
allows (fused multiply-adds, reassociated sums, functions of stated accuracy). Where the bound spans a discontinuity (a comparison, floor,
a cast to integer) both sides are right: the bound covers the jump and the element is marked undecided.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..dtypes import NARROW, kind
from ..expr import REAL, Op
from ..interpreter.elementary import OPERATORS, convert

Array = np.ndarray[Any, Any]

FUNCTION_ULPS = 4
"""Accuracy that kernels must reach for exp, log, tanh and the like, in units in the last place of the result."""
_EXACT = frozenset({"neg", "abs", "min", "max", "floor", "ceil", "round", "trunc", "sign", "where", "isnan", "isinf", "isfinite"})
_STEPS = frozenset({"floor", "ceil", "round", "trunc", "sign"})
_MONOTONE = frozenset({"exp", "log", "rsqrt", "tanh", "sigmoid", "erf", "log1p", "expm1", "exp2", "log2", "log10", "sinh",
                       "asin", "acos", "atan"})
_PERIODIC = frozenset({"sin", "cos"})


class Enclosure(NamedTuple):
    """`error` is None where nothing can differ, `undecided` where no decision lies within the bound."""

    value: Array
    error: Array | None = None
    undecided: Array | None = None


@dataclass(frozen=True)
class Format:
    """A float type as kernels may compute in it: unit roundoff, smallest normal and largest number."""

    unit: float
    tiny: float
    largest: float


_NO_FORMAT = Format(0.0, 0.0, np.inf)


def loose(x: Enclosure) -> Array:
    return np.zeros((), np.float64) if x.error is None else x.error


def either(*marks: Array | None) -> Array | None:
    """The union of marks, None where there is none."""
    found = [m for m in marks if m is not None]
    if not found:
        return None
    out = found[0]
    for m in found[1:]:
        out = out | m
    return out


def operator(e: Op, value: Array, args: list[Enclosure], form: Format | None, nonnegative: bool = False) -> Enclosure:
    """The bound of `value`, the operator's float64 or exact result. `form` is that of a float result; `nonnegative` says that the first
    operand, however computed, is never below zero."""
    mark = either(*(a.undecided for a in args))
    if form is None:
        error = None if all(a.error is None for a in args) else _discrete(e, value, args)
        if error is None:
            return Enclosure(value, None, mark)
        return Enclosure(value, error, either(mark, error > 0))
    if e.dtype in NARROW:
        found = _narrow(e, np.asarray(value, np.float64), args, form, nonnegative)
        return found._replace(undecided=either(mark, found.undecided))
    moved: Array | None = None
    if e.op == "cast":
        moved, rounds = args[0].error, _cast_rounds(args[0].value, form)
    else:
        rounds = roundings(e.op) * form.unit
        if e.op in ("mod", "floordiv") or any(a.error is not None for a in args):
            moved = _moved(e, value, args, form, nonnegative)
    bounded = settle(value, moved, rounds, form, e.op in _PERIODIC)
    if e.op in _STEPS and bounded.error is not None:
        mark = either(mark, bounded.error > 0)
    if e.op in ("where", "mod", "floordiv") and moved is not None:
        mark = either(mark, _jumped(e, args, form))
    return Enclosure(bounded.value, bounded.error, either(mark, bounded.undecided))


def _narrow(e: Op, value: Array, args: list[Enclosure], form: Format, nonnegative: bool) -> Enclosure:
    """Where no operand is off, neither is a narrow float: its operations are defined to the bit, but for the real functions. Where one is,
    both results are rounded, so that they may end up one place further apart."""
    given = [a.error for a in args if a.error is not None]
    moved = None if not given else args[0].error if e.op == "cast" else _moved(e, value, args, form, nonnegative)
    rounds: Any = 2 * form.unit + 2 * FUNCTION_ULPS * 2.0**-24
    past = ~np.isfinite(value)
    if e.op in REAL and e.op != "sqrt":
        near = np.abs(OPERATORS[e.op](*(a.value for a in args))) <= form.largest * (1 + 2 * form.unit)
        open_ = past & near
    elif moved is None:
        return Enclosure(value)
    else:
        open_ = np.zeros((), bool)
        rounds = 0 if e.op in _EXACT else np.where(moved > 0, rounds, 0)
    for error in given:
        open_ = open_ | past & (error > 0)
    bounded = settle(value, moved, rounds, form, e.op in _PERIODIC)
    jumps: Array | None = None
    if e.op in _STEPS and bounded.error is not None:
        jumps = bounded.error > 0
    elif e.op in ("where", "mod", "floordiv") and moved is not None:
        jumps = _jumped(e, args, form)
    if not open_.any():
        return bounded._replace(undecided=either(bounded.undecided, jumps))
    return Enclosure(bounded.value, np.where(open_, np.inf, loose(bounded)), either(bounded.undecided, open_, jumps))


def roundings(op: str) -> float:
    """Relative error of one operator in units of roundoff; an ulp is two of them."""
    if op in _EXACT:
        return 0
    if op in ("mod", "floordiv"):
        return 4
    return 2 * FUNCTION_ULPS if op in REAL and op != "sqrt" else 1


def settle(value: Array, moved: Array | None, rounds: Any, form: Format, absolute: bool = False) -> Enclosure:
    """The bound after rounding, overflow to infinity included; `rounds` is relative (absolute too at a periodic function's zeros)."""
    size = np.abs(value)
    reach = size if moved is None else size + moved
    error = moved
    if np.any(rounds):
        step = np.where((reach > 0) & (rounds > 0), rounds * reach + form.tiny, 0)
        if absolute:
            step = np.where(step > 0, step + rounds / 4, 0)
        error = step if moved is None else moved + step
    if error is None:
        return Enclosure(value)
    finite = np.isfinite(value)
    error = np.where(np.isnan(error), np.where(finite, np.inf, 0), error)
    if not finite.all():
        given = np.zeros(()) if moved is None else np.where(np.isnan(moved), 0, moved)
        error = np.where(finite, error, np.where(np.isinf(given), np.inf, 0))
    past = finite & (size + error > form.largest)
    undecided: Array | None = None
    if past.any():
        surely = past & (size - error > form.largest * (1 + form.unit))
        value = np.where(surely, np.copysign(np.inf, value), value)
        error = np.where(surely, 0, np.where(past, np.inf, error))
    open_ = np.isinf(error)
    if open_.any():
        undecided = open_
    return Enclosure(value, error, undecided)


def _cast_rounds(x: Array, form: Format) -> Any:
    """What converting to the float type may round: nothing that it represents."""
    if x.dtype.kind in "bu" and x.dtype.itemsize == 1:
        return 0.0
    whole = 0.5 / form.unit
    if x.dtype.kind in "iu":
        return np.where(np.abs(x.astype(np.float64)) <= whole, 0, form.unit)
    exact = x.astype(np.float32) if form.unit > 1e-12 else x
    return np.where(exact == x, 0, form.unit)


# ---------------------------------------------------------------- float results
def _moved(e: Op, value: Array, args: list[Enclosure], form: Format, nonnegative: bool) -> Array:
    """What the operands' errors may do to the exact operator."""
    rule = _RULES.get(e.op)
    if rule is not None:
        return rule(value, args, form)
    a = args[0]
    if e.op in _STEPS or e.op in _MONOTONE:
        return spread(OPERATORS[e.op], value, a)
    if e.op in _PERIODIC:
        return np.minimum(loose(a), 2)
    if e.op == "sqrt":
        low = a.value - loose(a)
        if nonnegative:
            return widest(np.sqrt(a.value + loose(a)) - value, value - np.sqrt(np.maximum(low, 0)))
        return np.where(low < 0, np.inf, spread(np.sqrt, value, a))
    return np.full(np.shape(value), np.inf)


def spread(fn: Callable[[Array], Array], value: Array, a: Enclosure) -> Array:
    """|f(x) - f(a)| at the ends of a's interval, the largest there is for a monotone f."""
    return widest(fn(a.value + loose(a)) - value, fn(a.value - loose(a)) - value)


def widest(a: Array, b: Array) -> Array:
    """The larger of two distances."""
    out: Array = np.maximum(np.abs(a), np.abs(b))
    return out


def flags(x: Array) -> Array:
    """Truth values as distances, 0 or 1."""
    return np.asarray(x, np.float64)


def _add(value: Array, args: list[Enclosure], form: Format) -> Array:
    return loose(args[0]) + loose(args[1])


def _mul(value: Array, args: list[Enclosure], form: Format) -> Array:
    a, b = args
    ea, eb = loose(a), loose(b)
    out: Array = np.abs(a.value) * eb + np.abs(b.value) * ea + ea * eb
    steady = np.isinf(value) & (np.abs(a.value) > ea) & (np.abs(b.value) > eb)
    return np.where(steady, 0, out)


def _div(value: Array, args: list[Enclosure], form: Format) -> Array:
    a, b = args
    ea, eb = loose(a), loose(b)
    away = np.abs(b.value) - eb
    out = (ea + np.where(eb > 0, np.abs(value), 0) * eb) / away
    out = np.where((eb > 0) & ~(away > 0), np.inf, out)
    sure = (eb == 0) & (b.value == 0) & (np.abs(a.value) > ea)
    return np.where(sure | (np.isinf(b.value) & np.isfinite(ea)) & (eb == 0), 0, out)


def _max(value: Array, args: list[Enclosure], form: Format) -> Array:
    a, b = args
    ea, eb = loose(a), loose(b)
    out: Array = np.where(a.value - ea > b.value + eb, ea, np.where(b.value - eb > a.value + ea, eb, np.maximum(ea, eb)))
    return out


def _min(value: Array, args: list[Enclosure], form: Format) -> Array:
    a, b = args
    ea, eb = loose(a), loose(b)
    out: Array = np.where(a.value + ea < b.value - eb, ea, np.where(b.value + eb < a.value - ea, eb, np.maximum(ea, eb)))
    return out


def _where(value: Array, args: list[Enclosure], form: Format) -> Array:
    c, a, b = args
    taken = np.where(c.value, loose(a), loose(b))
    if c.error is None:
        return taken
    jump = np.abs(a.value - b.value) + np.maximum(loose(a), loose(b))
    same = (a.value == b.value) | (np.isnan(a.value) & np.isnan(b.value))
    jump = np.where(np.isnan(jump), np.where(same, 0, np.inf), jump)
    return np.where(c.error > 0, jump, taken)


def _quotient(args: list[Enclosure], form: Format) -> tuple[Array, Array]:
    """floor of the quotient, and whether it is uncertain."""
    a, b = args
    q = a.value / b.value
    error = _div(q, args, form) + 4 * form.unit * np.abs(q)
    return np.floor(q), ~((np.floor(q - error) == np.floor(q + error)) & np.isfinite(q))


def _mod(value: Array, args: list[Enclosure], form: Format) -> Array:
    a, b = args
    q, open_ = _quotient(args, form)
    return np.where(open_, np.abs(b.value) + loose(b), loose(a) + np.abs(q) * loose(b) + 8 * form.unit * np.abs(a.value))


def _floordiv(value: Array, args: list[Enclosure], form: Format) -> Array:
    q, open_ = _quotient(args, form)
    return np.where(open_, 1 + _div(q, args, form), 0)


def _pow(value: Array, args: list[Enclosure], form: Format) -> Array:
    a, b = args
    bases, exponents = ((x.value - loose(x), x.value + loose(x)) for x in (a, b))
    out = np.max([np.abs(np.power(x, y) - value) for x in bases for y in exponents], axis=0)
    straddles = (np.abs(a.value) <= loose(a)) & (loose(a) > 0)
    return np.where(straddles & (b.value - loose(b) <= 0), np.inf, np.where(straddles, np.maximum(out, np.abs(value)), out))


def _atan2(value: Array, args: list[Enclosure], form: Format) -> Array:
    y, x = args
    error = loose(y) + loose(x)
    radius = np.hypot(y.value, x.value) - error
    cut = (x.value < loose(x)) & (np.abs(y.value) <= loose(y)) & (error > 0)
    return np.where(error == 0, 0, np.where(cut | (radius <= 0), 2 * np.pi, error / radius))


def _tan(value: Array, args: list[Enclosure], form: Format) -> Array:
    a = args[0]
    branch = np.floor((a.value - loose(a)) / np.pi + 0.5) == np.floor((a.value + loose(a)) / np.pi + 0.5)
    return np.where(branch, spread(np.tan, value, a), np.inf)


def _cosh(value: Array, args: list[Enclosure], form: Format) -> Array:
    size, error = np.abs(args[0].value), loose(args[0])
    return widest(np.cosh(size + error) - value, value - np.cosh(np.maximum(size - error, 0)))


_RULES: dict[str, Callable[[Array, list[Enclosure], Format], Array]] = {
    "add": _add, "sub": _add, "mul": _mul, "div": _div, "max": _max, "min": _min, "where": _where,
    "neg": lambda v, args, form: loose(args[0]), "abs": lambda v, args, form: loose(args[0]), "mod": _mod, "floordiv": _floordiv,
    "pow": _pow, "atan2": _atan2, "tan": _tan, "cosh": _cosh,
}


def _jumped(e: Op, args: list[Enclosure], form: Format) -> Array | None:
    if e.op == "where":
        return None if args[0].error is None else args[0].error > 0
    return _quotient(args, form)[1]


# ---------------------------------------------------------------- integers and truth values
def _discrete(e: Op, value: Array, args: list[Enclosure]) -> Array:
    """How far an integer or a truth value (0 or 1) may be off, because a decision above it is open."""
    a, b = args[0], args[-1]
    ea, eb = loose(a), loose(b)
    match e.op:
        case "lt" | "le" | "eq" | "ne":
            reach = ea + eb
            apart = np.abs(a.value.astype(np.float64) - b.value.astype(np.float64))
            return flags((reach > 0) & (apart <= reach) | np.isinf(reach))
        case "isnan" | "isinf" | "isfinite":
            return flags(np.isinf(ea))
        case "where":
            first, second = (Enclosure(x.value.astype(np.float64), x.error) for x in args[1:])
            return _where(value, [args[0], first, second], _NO_FORMAT)
        case "cast" if kind(e.dtype) == "bool":
            return flags((ea > 0) & (np.abs(a.value.astype(np.float64)) <= ea))
        case "cast" if a.value.dtype.kind == "f":
            ends = [convert(a.value + sign * ea, value.dtype.name).astype(np.float64) for sign in (-1, 1)]
            return np.where(ea > 0, widest(ends[0] - value, ends[1] - value), 0)
        case "cast" | "not" | "edge" | "abs":
            return ea * np.ones(np.shape(value))
        case "and" | "or" if value.dtype.kind == "b":
            stops = e.op == "or"
            settled = ((ea == 0) & (a.value == stops)) | ((eb == 0) & (b.value == stops))
            return flags(((ea > 0) | (eb > 0)) & ~settled)
        case "xor" if value.dtype.kind == "b":
            return widest(ea, eb) * np.ones(np.shape(value))
        case "add" | "sub":
            return ea + eb
        case "mul":
            return np.asarray(np.abs(a.value.astype(np.float64)) * eb + np.abs(b.value.astype(np.float64)) * ea + ea * eb)
        case "min" | "max":
            return widest(ea, eb)
    return np.where(sum((loose(x) for x in args), np.zeros(())) > 0, np.inf, 0) * np.ones(np.shape(value)) if args else ea
