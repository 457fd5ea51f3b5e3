"""Tensors as the algorithm sees them: handles on stages and leaves, and views, which are index maps and never stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .expr import Access, Const, Expr, Op, Read, as_expr, refuse, where
from .extent import Extent, at_most, nonnegative, volume
from .linear import Ranges, bounds, linear, simplify, within
from .methods import Methods
from .numpy_calls import OwnOperators
from .printing import show

Index = tuple[Expr, ...]
_DEEP = 32
"""Levels of an index that a view of a view is given as it is; deeper ones are simplified on the way."""
_in_body: ContextVar[bool] = ContextVar("fluorite_in_body", default=False)


@contextmanager
def body() -> Iterator[None]:
    """Inside, indexing a tensor makes a read; outside, it slices."""
    token = _in_body.set(True)
    try:
        yield
    finally:
        _in_body.reset(token)


def in_body() -> bool:
    return _in_body.get()


class Tensor(OwnOperators, Methods):
    """A tensor of the algorithm: `shape` (ints and symbolic extents), `dtype`, `axis_names`. Immutable.

    Inside a stage's lambda ``x[i, j]`` is a read. Elsewhere indexing slices, and arithmetic broadcasts as in NumPy.
    """

    __array_priority__ = 1000

    def __init__(self, shape: Sequence[Extent], dtype: str, axis_names: Sequence[str | None], label: str) -> None:
        self.shape: tuple[Extent, ...] = tuple(shape)
        self.dtype = dtype
        self.axis_names: tuple[str | None, ...] = tuple(axis_names)
        self.label = label

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("shape", "dtype", "axis_names") and name in vars(self) and self.is_settled:
            instead = {"shape": f"fl.reshape({self.label}, {value!r})", "dtype": f"fl.cast({self.label}, ...)"}.get(name, "fl.stage")
            raise refuse("A106", f"assignment to {self.label}.{name}", "a tensor does not change: another one is made of it", instead)
        object.__setattr__(self, name, value)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Extent:
        return volume(self.shape)

    def resolve(self, index: Index, ranges: Ranges, facts: Sequence[Expr]) -> Expr:
        raise NotImplementedError

    @property
    def is_bounded(self) -> bool:
        """Whether any index may be read (a boundary view)."""
        return False

    @property
    def is_settled(self) -> bool:
        """Whether the shape is known: that of a stage whose body reads itself follows from its other reads."""
        return True

    def as_scalar(self) -> Expr:
        if self.shape == () and in_body():
            return Access(self, (), self.dtype)
        raise refuse(
            "A105",
            f"{self.label} in an expression",
            f"it has {self.ndim} axes; an element is needed",
            f"{self.label}[{', '.join('ijklmn'[: self.ndim])}]",
        )

    def __getitem__(self, index: Any) -> Any:
        given = index if isinstance(index, tuple) else (index,)
        if in_body():
            if len(given) != self.ndim or any(isinstance(i, slice) or i is None or i is Ellipsis for i in given):
                raise refuse(
                    "A106",
                    f"{self.label}[{', '.join(map(_shown, given))}]",
                    f"{self.label} has {self.ndim} axes {self._dims()}, indexed with {len(given)}",
                    "one index per axis inside a stage",
                )
            return Access(self, tuple(map(as_index, given)), self.dtype)
        from .ops import slicing

        return slicing.getitem(self, given)

    def _dims(self) -> str:
        return "[" + ", ".join(map(str, self.shape)) + "]"

    def __repr__(self) -> str:
        return f"{self.label}: {self.dtype}{self._dims()}"

    def __iter__(self) -> Iterator[Any]:
        if not self.shape or not isinstance(self.shape[0], int):
            raise refuse("A107", f"iteration over {self!r}", "its first extent is not a known integer")
        return iter([self[i] for i in range(self.shape[0])])

    def __len__(self) -> int:
        if not self.shape or not isinstance(self.shape[0], int):
            raise refuse("A107", f"len({self!r})", "its first extent is not a known integer", "x.shape[0], a symbolic extent")
        return self.shape[0]

    def __bool__(self) -> bool:
        raise refuse(
            "A102",
            f"the truth value of {self!r}",
            "its value is known only when the kernel runs",
            "fl.where(condition, a, b)",
            "fl.cond(condition, f, g)",
            "& | ~ instead of and, or, not",
            "@fl.function over the function that holds the if or while: the model's own functions, decorated ones and those given to "
            "fl.grad, fl.scan and the like may branch on tensors",
        )

    def _as_number(self) -> Any:
        why = "its value is known only when the kernel runs"
        raise refuse("A103", f"{self!r} where Python needs a number", why, "the tensor itself, or fl.cast(x, fl.f32)")

    def __format__(self, form: str) -> str:
        return self._as_number() if form else str(self)

    def __setitem__(self, index: Any, value: Any) -> None:
        why = "a tensor does not change: what would be another value is another tensor"
        raise refuse("A106", f"assignment to elements of {self!r}", why, "fl.where(condition, value, x)", "fl.scatter(x, ids, values)")

    __index__ = __int__ = __float__ = __complex__ = __round__ = __trunc__ = _as_number

    __hash__ = object.__hash__

    def assign(self, value: Any) -> None:
        """The next value of a parameter or state; see fluorite.state. Raises AlgorithmError: other tensors are values, and stay."""
        why = "a method changes parameters and state, and nothing else"
        raise refuse("A183", f"{self.label}.assign(...)", why, "fl.state(...) in __init__")

    def named(self, name: str) -> Tensor:
        """The same tensor with the stage that computes it renamed."""
        from .building import rename

        return rename(self, name)


class Direct(Tensor):
    """A stage or a leaf. `owner` is the trace that made it."""

    def __init__(
        self, source: int, shape: Sequence[Extent], dtype: str, axis_names: Sequence[str | None], label: str, owner: object = None
    ) -> None:
        super().__init__(shape, dtype, axis_names, label)
        self.source, self.owner = source, owner

    def require_mine(self) -> None:
        """Raises AlgorithmError where another trace made this tensor: its number means something else in this one."""
        from .building import current

        if self.owner is not None and self.owner is not current():
            raise refuse(
                "A133",
                f"{self.label} of another trace",
                "a tensor belongs to the call that made it",
                "make it inside the function that uses it",
            )
        if self.owner is not None and not current().has(self.source, self.ndim):
            raise refuse(
                "A163",
                f"{self.label} outside the step of its loop",
                "inside it is the value at one step, outside there are all of them",
                "return it from the step as part of the carry or of what is stacked",
            )
        if self.owner is not None and not current().decided(self.source):
            raise refuse(
                "A403",
                f"{self.label} outside the branch that makes it",
                "where the other branch is taken it has no value",
                "return it from both branches of the fl.cond",
            )

    def resolve(self, index: Index, ranges: Ranges, facts: Sequence[Expr]) -> Expr:
        self.require_mine()
        return Read(self.source, _safe(index, self.shape, ranges, facts), self.dtype)


def _safe(index: Index, shape: Sequence[Extent], ranges: Ranges, facts: Sequence[Expr]) -> Index:
    """The index, clamped where it is not proved to be inside."""
    return tuple(
        i if within(i, n, ranges) or implied(i, n, ranges, facts) else Op("edge", (i, as_expr(n)), "int32", True)
        for i, n in zip(index, shape, strict=True)
    )


class View(Tensor):
    """`base` seen through an index map."""

    def __init__(
        self, base: Tensor, shape: Sequence[Extent], axis_names: Sequence[str | None], index_map: Callable[[Index], Index], label: str
    ) -> None:
        super().__init__(shape, base.dtype, axis_names, label)
        self.base, self.index_map = base, index_map

    def resolve(self, index: Index, ranges: Ranges, facts: Sequence[Expr]) -> Expr:
        seen: Tensor = self
        while isinstance(seen, View):  # views of views may be many
            index = seen.index_map(_safe(index, seen.shape, ranges, facts))
            index = tuple(simplify(i, ranges) if i.depth > _DEEP else i for i in index)
            seen = seen.base
        return seen.resolve(index, ranges, facts)


class Bounded(Tensor):
    """`base` with a value everywhere: reads outside are mapped inside (edge, reflect, wrap) or take a constant."""

    def __init__(self, base: Tensor, boundary: str, value: Any = None) -> None:
        super().__init__(base.shape, base.dtype, base.axis_names, f"{boundary}({base.label})")
        self.base, self.boundary, self.value = base, boundary, value

    @property
    def is_bounded(self) -> bool:
        return True

    def resolve(self, index: Index, ranges: Ranges, facts: Sequence[Expr]) -> Expr:
        outside = [(i, n) for i, n in zip(index, self.shape, strict=True) if not within(i, n, ranges)]
        if self.boundary != "constant":
            inside = tuple(
                Op(self.boundary, (i, as_expr(n)), "int32", True) if any(i is o for o, _ in outside) else i
                for i, n in zip(index, self.shape, strict=True)
            )
            return self.base.resolve(inside, ranges, facts)
        condition: Expr | None = None
        for i, n in outside:
            for part in _inside(i, n, ranges):
                condition = part if condition is None else condition & part
        if condition is None:
            return self.base.resolve(index, ranges, facts)
        return where(condition, self.base.resolve(index, ranges, [*facts, *conjuncts(condition)]), Const(self.value, self.dtype, False))


def _inside(i: Expr, n: Extent, ranges: Ranges) -> Iterator[Expr]:
    """The parts of 0 <= i < n that are not proved."""
    low, high = bounds(i, ranges)
    if low is None or not nonnegative(low):
        yield as_expr(0) <= i
    if high is None or not at_most(high, n - 1):
        yield i < as_expr(n)


def as_index(value: Any) -> Expr:
    e = as_expr(value)
    if e.dtype == "bool" or "float" in e.dtype:
        raise refuse("A108", f"an index of type {e.dtype}", "indices are integers", "fl.cast(x, fl.i32)")
    return e


def _shown(i: Any) -> str:
    return show(i) if isinstance(i, Expr) else str(i)


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions of which this one is the conjunction, as written."""
    found, pending = [], [condition]
    while pending:
        match pending.pop():
            case Op(op="and", args=(a, b), dtype="bool"):
                pending += b, a
            case c:
                found.append(c)
    return found


def known_nonnegative(fact: Expr) -> Expr | None:
    """e such that the fact says e >= 0."""
    match fact:
        case Op(op="lt", args=(a, b)):
            return b - a - 1
        case Op(op="le", args=(a, b)):
            return b - a
    return None


def implied(i: Expr, n: Extent, ranges: Ranges, facts: Sequence[Expr]) -> bool:
    """Whether the facts (conditions known to hold) prove 0 <= i < n."""
    known = [k for f in facts if (k := known_nonnegative(f)) is not None and (k.weak)]

    def proved(e: Expr) -> bool:
        low, _ = bounds(e, ranges)
        if low is not None and nonnegative(low):
            return True
        for k in known:
            low, _ = bounds(linear(e - k).expr(), ranges)
            if low is not None and nonnegative(low):
                return True
        return False

    return bool(known) and i.weak and proved(i) and proved(as_expr(n) - 1 - i)


__all__ = ["Access", "Bounded", "Direct", "Index", "Tensor", "View", "as_index", "body", "conjuncts", "in_body"]
