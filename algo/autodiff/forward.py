"""Forward mode: tangents of stages, each at its stage's own axes, by the same scalar rules that reverse mode uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..building import Builder, call_site, current, placed
from ..clock import place
from ..combiners import Combiner
from ..dtypes import FLOATS, held
from ..errors import AlgorithmError
from ..expr import Expr, Op, Read, Scalar, as_expr, axis, binary, refuse, where
from ..graph import map_tree
from ..ordering import ordered, units
from ..recurrences import with_clocks
from ..rewriting import rewrite
from ..stages import Reduction, Stage
from ..tensor import Direct
from ..trees import leaves, refilled, same_shape
from .algebra import add, converted, is_zero, zero
from .emitting import Emitter
from .local import active_nodes
from .reach import Adjoint, condition_of, opaque, reader, unknown, upstream
from .reductions import under_reduction
from .rules import PULL
from .sweep import no_derivative
from .transforms import cotangent, held_arguments, relative, settled


def jvp(fn: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """(fn(*primals), its derivative along the tangents, which are built like the primals).

    Stages are called METHOD/tangent/RESULT/STAGE. Raises AlgorithmError: tangents of another shape or type, a function with a derivative
    of its own (fl.custom_vjp), which knows reverse mode only.
    """
    source = call_site()
    try:
        if len(primals) != len(tangents):
            raise refuse("A174", f"{len(tangents)} tangents of {len(primals)} primals", "there is one for each")
        held_, outcome = held_arguments(fn, primals)
        given: dict[int, Adjoint] = {}
        for h, t in zip(held_.values(), tangents, strict=True):
            same_shape(h.tree, t, "the tangent")
            for x, v in zip(h.inside, leaves(t), strict=True):
                given[x.source] = cotangent(v, x)
        outcome = map_tree(settled, outcome)
        results = list(leaves(outcome))
        sweep = _Forward(current(), given, results)
        return outcome, refilled(outcome, [sweep.tangent_of(r) for r in results])
    except AlgorithmError as error:
        raise placed(error, source, current().method) from None


class _Forward:
    """The tangents of all stages between some tensors and the results."""

    def __init__(self, builder: Builder, given: dict[int, Adjoint], results: Sequence[Direct]) -> None:
        self.builder, self.tangents = builder, dict(given)
        self.out = Emitter(builder, relative(results[0], builder), "tangent")
        needed = upstream(builder, [r.source for r in results])
        stages = ordered(s for i, s in builder.stages.items() if i in needed)
        for unit in units(stages):
            members = self._moving(unit)
            if members and members[0].turn is not None:
                raise self._reverse_only(unit, stages) or no_derivative(members[0])
            if members and members[0].clock is not None:
                self._recurrence(members)
            else:
                for s in members:
                    self._emit(s, None)

    def _reverse_only(self, loop: Sequence[Stage], stages: Sequence[Stage]) -> AlgorithmError | None:
        """The refusal of a loop that an fl.scan is."""
        mine, rules = {s.id for s in loop}, self.builder.rules
        rule = next((rules[s.id] for s in stages if s.id in rules and rules[s.id].name == "scan" and mine & {*s.sources}), None)
        if rule is None:
            return None
        why = "its steps wait for loops of the steps before, and are gone through again from the last to the first only"
        return placed(refuse("A171", "the tangent of an fl.scan that is a loop", why, "fl.vjp"), rule.source, self.builder.method)

    def _moving(self, unit: Sequence[Stage]) -> list[Stage]:
        """The stages of a unit that have a tangent."""
        live = set(self.tangents)
        found: dict[int, Stage] = {}
        more = True
        while more:
            more = False
            for s in unit:
                known = s.id in live or s.op == "stop_gradient" or s.dtype not in FLOATS
                if not known and active_nodes(s.value, live.__contains__):
                    live.add(s.id)
                    found[s.id] = s
                    more = True
        return [s for s in unit if s.id in found]

    def _recurrence(self, members: Sequence[Stage]) -> None:
        numbers = {s.id: self.builder.fresh() for s in members}
        before = set(self.builder.stages)
        for s in members:
            self.tangents[s.id] = moving_with(s, numbers[s.id])
        for s in members:
            self._emit(s, numbers[s.id])
        clock = members[0].clock
        assert clock is not None
        made = [s for i, s in self.builder.stages.items() if i not in before]
        self.builder.stages |= with_clocks(made, [(clock.axis.name, clock.reverse)])

    def _emit(self, s: Stage, number: int | None) -> None:
        if s.id in self.builder.rules:
            why = "a rule for what arrives says nothing of what leaves"
            raise refuse("A171", f"the tangent of {s.name}, which has a derivative of its own", why, "fl.vjp")
        if s.extern is not None:
            raise opaque(s, forward=True)
        if s.reduction is not None and s.reduction.combiner is not None:
            number = number or self.builder.fresh()
            self._dual(s, s.reduction, s.reduction.combiner, number)
            self.tangents[s.id] = moving_with(s, number)
            return
        value = self._tangent(s.value)
        reduction: Reduction | None = None
        if s.reduction is not None:
            reduction = Reduction("sum", s.reduction.axes, s.reduction.extents)
            with self.builder.branch(condition_of(s, self.builder)):
                value = under_reduction(s, value, self.out)
        elif held(s.dtype) != held(value.dtype):
            value = converted(value, s.dtype)
        made = self.out.emit(self.out.name_of(s), s.axes, s.extents, value, reduction, s.source, number, s.dtype, s.when)
        self.tangents[s.id] = reader(made.id, made.dtype)

    def _tangent(self, e: Expr) -> Expr:
        """How an expression moves with its reads."""
        return tangent(e, self.tangents)

    def _dual(self, s: Stage, reduction: Reduction, c: Combiner, number: int) -> None:
        """The tangent of a reduction with a combiner of the user's, which is one too, of elements together with their tangents."""
        elements, both, parts = s.of_elements, dual(c), c.parts(s.value)
        which = axis("part")
        value = both.value((*parts, *map(self._tangent, parts)), which)
        axes, extents = (which, *elements.axes), (2 * len(parts), *elements.extents)
        over, path = replace(reduction, combiner=both), f"{self.out.name_of(s)}/dual"
        self.out.emit(path, axes, extents, value, over, s.source, number, both.dtype, s.when)

    def tangent_of(self, r: Direct) -> Direct:
        to = r.dtype if r.dtype in FLOATS else "float32"
        return self.out.materialised(self.tangents.get(r.source) or (lambda index: zero(to)), r, to)


def moving_with(s: Stage, number: int) -> Adjoint:
    """What the stage of a tangent holds: of a reduction with a combiner the parts behind those of its result."""
    if s.reduction is None or s.reduction.combiner is None:
        return reader(number, s.dtype)
    at, count, dtype = None if s.parts_axis is None else place(s.parts_axis, s.axes), len(s.reduction.combiner.identity), s.dtype

    def read(index: Sequence[Expr]) -> Expr:
        part = as_expr(0) if at is None else index[at]
        rest = tuple(index) if at is None else (*index[:at], *index[at + 1 :])
        return Read(number, (binary("add", part, as_expr(count)), *rest), dtype)

    return read


def dual(c: Combiner) -> Combiner:
    """The combiner of elements together with their tangents: what it makes, and how that moves."""
    sides = [[Scalar(f"d{e.name}", e.dtype) for e in side] for side in (c.left, c.right)]
    given = (*c.left, *c.right)
    stand = [Read(~n, (), e.dtype) for n, e in enumerate(given)]
    moves: dict[int, Adjoint] = {r.source: lambda _, d=d: d for r, d in zip(stand, (*sides[0], *sides[1]), strict=True)}  # type: ignore[misc]
    back: dict[Expr, Expr] = dict(zip(stand, given, strict=True))
    slopes = [rewrite(tangent(e, moves), back.get) for e in c.of(stand[: len(c.left)], stand[len(c.left) :])]
    left, right = (*c.left, *sides[0]), (*c.right, *sides[1])
    return replace(c, left=left, right=right, results=(*c.results, *slopes), identity=(*c.identity, *(zero(e.dtype) for e in c.identity)))


def tangent(e: Expr, tangents: Mapping[int, Adjoint]) -> Expr:
    """How an expression moves with its reads."""
    moving: dict[Expr, Expr] = {}
    for n in active_nodes(e, tangents.__contains__):
        match n:
            case Read():
                moving[n] = tangents[n.source](n.index)
            case Op(op="where" | "select", args=(c, a, b)):
                moving[n] = where(c, moving.get(a, zero(n.dtype)), moving.get(b, zero(n.dtype)))
            case Op(op=op, args=args):
                if op not in PULL:
                    raise unknown(op)
                total: Expr = zero(n.dtype)
                for k, argument in enumerate(args):
                    if argument in moving and not is_zero(moving[argument]):
                        total = add(total, converted(PULL[op][k](converted(moving[argument], n.dtype), n), n.dtype))
                moving[n] = total
    return moving.get(e, zero(e.dtype))


__all__ = ["jvp"]
