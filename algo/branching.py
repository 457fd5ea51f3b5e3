"""``fl.cond`` and ``fl.switch``: branches of which only the one that is taken is computed.

Every stage that a branch makes bears the condition under which the branch is taken. What the branches return meets in stages that choose,
``where(pred, a[i], b[i])``, which read the taken side only; nothing else reads the stages of a branch from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .building import Builder, call_site, current, opened, placed
from .errors import AlgorithmError
from .expr import Expr, Read, as_expr, binary, refuse, unary, where
from .graph import map_tree
from .held import Assigned, Held, updating
from .passing import labels_of, settled
from .tensor import Direct, Tensor, in_body
from .trace import build_stage
from .trees import described, leaves, refilled

Branch = Callable[..., Any]


def cond(pred: Any, then: Branch, otherwise: Branch, *operands: Any) -> Any:
    """``then(*operands)`` where pred is true, else ``otherwise(*operands)``; only that one is computed.

        fl.cond(fl.any(x < 0), lambda x: fl.exp(x), lambda x: x * 2, x)

    pred is a bool tensor without axes (of a Python bool the branch is simply called). Both branches return nests of tensors that are built
    alike, of the same shapes and types; numbers take the type of the other side. Stages are called cond/then/NAME and cond/otherwise/NAME.
    Element by element is ``fl.where``. On a GPU both branches are computed. Raises AlgorithmError: branches that differ, a pred with axes.
    """
    from .python import converted

    then, otherwise = converted(then), converted(otherwise)
    if isinstance(pred, bool | np.bool_):
        return (then if pred else otherwise)(*operands)
    builder, source = current(), call_site()
    try:
        with opened("cond"):
            test = condition(pred, "cond")
            made = _Branches(builder, [test, unary("not", test)])
            return made.joined([made.of(0, "then", then, operands), made.of(1, "otherwise", otherwise, operands)])
    except AlgorithmError as error:
        raise placed(error, source, "/".join([builder.method, *builder.scopes, "cond"])) from None


def switch(index: Any, branches: Sequence[Branch], *operands: Any) -> Any:
    """``branches[index](*operands)``; only that one is computed. An index below 0 takes the first branch, one too large the last.

    index is an integer tensor without axes, or a Python int. Branches return what those of ``fl.cond`` do. Stages are called
    switch/0/NAME, switch/1/NAME, ... Raises AlgorithmError: no branches, branches that differ, an index with axes.
    """
    from .python import converted

    builder, source, branches = current(), call_site(), [converted(b) for b in branches]
    try:
        if not branches:
            raise refuse("A401", "fl.switch without branches", "there is nothing to take", "fl.switch(index, [f, g], x)")
        last = len(branches) - 1
        if isinstance(index, int | np.integer):
            return branches[min(max(int(index), 0), last)](*operands)
        if not last:
            return branches[0](*operands)
        with opened("switch"):
            at = _scalar(index, "switch", ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), "an integer")
            tests = [at <= 0, *(binary("eq", at, k) for k in range(1, last)), at >= last]
            made = _Branches(builder, tests)
            return made.joined([made.of(k, str(k), f, operands) for k, f in enumerate(branches)])
    except AlgorithmError as error:
        raise placed(error, source, "/".join([builder.method, *builder.scopes, "switch"])) from None


def choose(
    pred: Tensor,
    then: Callable[[], Sequence[Any]],
    otherwise: Callable[[], Sequence[Any]],
    differing: Callable[[int, Sequence[Any]], Any],
    unset: type | None = None,
) -> tuple[Any, ...]:
    """`cond` for the variables of a program: each is what the branch that is taken leaves in it.

    Nests of tensors and numbers that are built alike are chosen between; an object that both leave stays; what else a variable is after
    branches that differ, `differing(number, values)` says. A value of the type `unset` is never read: beside another one it is that, or 0.
    """
    builder = current()
    with opened("cond"):
        test = condition(pred, "if")
        made = _Branches(builder, [test, unary("not", test)])
        sides = [made.variables(k, name, run) for k, (name, run) in enumerate((("then", then), ("otherwise", otherwise)))]
        made.assign()
        out = []
        for n, found in enumerate(zip(*sides, strict=True)):
            values, parts = [v for v, _ in found], [p for _, p in found]
            there = [(v, p) for v, p in found if unset is None or not isinstance(v, unset)]
            if len(there) == 1:
                values, parts = [there[0][0]] * 2, [map_tree(_nothing, there[0][1]) if v is not there[0][0] else p for v, p in found]
                if there[0][1] is not None:
                    out.append(made.chosen(parts))
                    continue
            if all(v is values[0] for v in values) or _equal(values):
                out.append(values[0])
            elif any(p is None for p in parts) or len({described(p) for p in parts}) > 1:
                out.append(differing(n, values))
            else:
                out.append(made.chosen(parts))
        return tuple(out)


def _equal(values: Sequence[Any]) -> bool:
    """Whether plain values of Python's are equal."""
    plain = (bool, int, float, str, bytes, type(None))
    return all(isinstance(v, plain) and type(v) is type(values[0]) and v == values[0] for v in values)


def condition(pred: Any, what: str) -> Expr:
    """A bool tensor without axes as an expression."""
    return _scalar(pred, what, ("bool",), "a bool")


def _scalar(value: Any, what: str, dtypes: Sequence[str], kind: str) -> Expr:
    """The one element of a tensor of one of these types. It is read of a stage or leaf, so that it is computed once."""
    from .ops.shapes import tensor

    if in_body():
        raise refuse("A401", f"fl.{what} inside a stage", "a stage's lambda computes one element", "fl.where(condition, a, b)")
    found = settled(tensor(value, what), what)
    if found.shape != () or found.dtype not in dtypes:
        instead = ("fl.any(x)", "fl.all(x)", "fl.where, element by element") if kind == "a bool" else ("one element of it",)
        if found.shape == () and kind == "a bool":
            instead = (f"{found.label} != 0",)
        raise refuse("A401", f"fl.{what} on {found!r}", f"it decides by {kind} tensor without axes", *instead)
    return Read(found.source, (), found.dtype)


class _Branches:
    """The branches of one choice. `tests` say which is taken: of those that hold, the first."""

    def __init__(self, builder: Builder, tests: Sequence[Expr]) -> None:
        self.builder, self.tests = builder, tests
        outer = builder.when
        self.whens = [t if outer is None else binary("and", outer, t) for t in tests]

        self.assigned: list[dict[int, Assigned]] = []  # by each branch, to parameters and state

    def of(self, k: int, name: str, branch: Branch, operands: Sequence[Any]) -> Any:
        """What a branch returns, its stages made under its condition."""
        with self._taken(k, name):
            return map_tree(_given, branch(*operands))

    def variables(self, k: int, name: str, branch: Callable[[], Sequence[Any]]) -> list[tuple[Any, Any]]:
        """What a branch leaves in variables, and each as a nest of tensors that are stages or leaves; None where it is none."""
        with self._taken(k, name):
            return [(v, map_tree(_given, v) if is_nest(v) else None) for v in branch()]

    @contextmanager
    def _taken(self, k: int, name: str) -> Iterator[None]:
        before, self.builder.assigned = self.builder.assigned, dict(self.builder.assigned)
        try:
            with opened(name), self.builder.branch(self.whens[k]):
                yield
        finally:
            self.assigned.append(self.builder.assigned)
            self.builder.assigned = before

    def joined(self, results: Sequence[Any]) -> Any:
        """The result of the branch that is taken. What it assigned to parameters and state, these hold from here on."""
        self.assign()
        first = results[0]
        for other in results[1:]:
            if described(first) != described(other):
                raise refuse(
                    "A402", f"branches that return {described(first)} and {described(other)}", "they return nests that are built alike"
                )
        return self.chosen(results)

    def chosen(self, results: Sequence[Any]) -> Any:
        """Of nests that are built alike, that of the branch that is taken."""
        parts = [self._one(list(found)) for found in zip(*(leaves(r) for r in results), strict=True)]
        return refilled(results[0], parts)

    def assign(self) -> None:
        """Parameters and state hold what the branch that is taken assigned to them."""
        before = self.builder.assigned
        for key in dict.fromkeys(key for found in self.assigned for key in found):
            made = [found.get(key) for found in self.assigned]
            if all(m is before.get(key) for m in made):
                continue
            last = next(m for m in made if m is not None and m is not before.get(key))
            p = last.held.parameter
            sides = [p.now() if m is None else m.held for m in made]
            with updating(last.by):
                joined = self._one([Direct(s.source, s.shape, s.dtype, s.axis_names, s.label, s.owner) for s in sides])
            before[key] = Assigned(Held(p, joined), last.by, last.source)

    def _one(self, sides: list[Any]) -> Any:
        """One tensor of the result. What all branches return alike is returned as it is."""
        if all(s is sides[0] or (not isinstance(s, Tensor) and type(s) is type(sides[0]) and s == sides[0]) for s in sides):
            return sides[0]
        like = next((s for s in sides if isinstance(s, Tensor)), None)
        shape = () if like is None else tuple(like.shape)
        for s in sides:
            if like is not None and isinstance(s, Tensor) and (tuple(s.shape) != shape or s.dtype != like.dtype):
                why = "which branch is taken is known only when the kernel runs, so both return tensors of one shape and type"
                raise refuse("A402", f"branches that return {like!r} and {s!r}", why, "fl.cast", "fl.broadcast_to")
            if not isinstance(s, Tensor) and shape:
                raise refuse("A402", f"branches that return {like!r} and {s!r}", "both return tensors of one shape and type", "fl.full")
        names = [] if like is None else labels_of(like)

        def value(*i: Expr) -> Expr:
            at = [(s[i] if i else s.as_scalar()) if isinstance(s, Tensor) else as_expr(s) for s in sides]
            out = at[-1]
            for test, x in zip(reversed(self.tests[:-1]), reversed(at[:-1]), strict=True):
                out = where(test, x, out)
            return out

        with _meeting(self.builder, self.whens):
            return build_stage(
                names,
                value,
                name="result",
                extents=dict(zip(names, shape, strict=True)),
                dtype=None if like is None else like.dtype,
            )


def is_nest(value: Any) -> bool:
    """Whether a value is a nest of tensors and numbers, and of nothing else."""
    found = leaves(value)
    return bool(found) and all(isinstance(x, Tensor | bool | int | float | np.ndarray | np.generic) for x in found)


def _given(value: Any) -> Any:
    """A result of a branch: a tensor that is a stage or a leaf, or a number."""
    from .ops.shapes import tensor

    if value is None or isinstance(value, bool | int | float):
        return value
    return settled(tensor(value, "cond"), "cond")


def _nothing(like: Any) -> Any:
    """A value of the form of another one."""
    from .ops.creation import full

    return full(like.shape, 0, dtype=like.dtype) if isinstance(like, Tensor) else like


@contextmanager
def _meeting(builder: Builder, whens: Sequence[Expr]) -> Iterator[None]:
    """Inside, stages may read those of all branches."""
    saved = builder.known
    builder.known = (*saved, *whens)
    try:
        yield
    finally:
        builder.known = saved


__all__ = ["choose", "cond", "condition", "is_nest", "switch"]
