"""The index-expression IR: one small set of immutable, interned nodes.

Nodes are interned: structurally equal expressions are the same object, so identity is equality, common subexpressions are shared and
rewrites memoise by node. ``==`` builds a comparison, as in NumPy; use ``is`` to compare nodes.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .dtypes import FLOATS, INTEGERS
from .errors import AlgorithmError, Problem
from .extent import Dim, Extent
from .numpy_calls import OwnOperators

if TYPE_CHECKING:
    from .combiners import Combiner

E = TypeVar("E", bound="Expr")


class _Interned(type):
    """Calling a node class returns the one node with these fields."""

    _nodes: ClassVar[weakref.WeakValueDictionary[Any, Any]] = weakref.WeakValueDictionary()

    def __call__(cls, *args: Any) -> Any:
        key = (cls, *map(_field_key, args))
        node = cls._nodes.get(key)
        if node is None:
            node = super().__call__(*args)
            operands = node._operands()
            object.__setattr__(node, "operands", operands)
            object.__setattr__(node, "depth", 1 + max([e.depth for e in operands], default=0))
            cls._nodes[key] = node
        return node


def _field_key(value: Any) -> Any:
    of = type(value)
    if of is str:
        return value
    if of is tuple:
        return tuple(map(_field_key, value))
    if of is int or of is bool:
        return (of, value)
    if isinstance(value, Expr):
        return id(value)
    return (of, repr(value)) if isinstance(value, (float, int)) else value


@dataclass(frozen=True, eq=False)
class Expr(OwnOperators, metaclass=_Interned):
    """A scalar as a function of axes. `dtype` is its element type; a weak one yields to the other operand's. `operands` are the
    expressions that it is made of, `depth` is the number of nodes on the longest way down."""

    __array_priority__: ClassVar[int] = 1000
    if TYPE_CHECKING:

        @property
        def dtype(self) -> str: ...
        @property
        def weak(self) -> bool: ...
        @property
        def operands(self) -> tuple[Expr, ...]: ...
        @property
        def depth(self) -> int: ...

    def _operands(self) -> tuple[Expr, ...]:
        return ()

    def __add__(self, other: Any) -> Expr:
        return applied("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return applied("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return applied("sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return applied("sub", other, self)

    def __mul__(self, other: Any) -> Expr:
        return applied("mul", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return applied("mul", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return applied("div", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return applied("div", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return applied("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return applied("floordiv", other, self)

    def __mod__(self, other: Any) -> Expr:
        return applied("mod", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return applied("mod", other, self)

    def __divmod__(self, other: Any) -> tuple[Expr, Expr]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Expr, Expr]:
        return other // self, other % self

    def __pow__(self, other: Any) -> Expr:
        return applied("pow", self, other)

    def __rpow__(self, other: Any) -> Expr:
        return applied("pow", other, self)

    def __neg__(self) -> Expr:
        return unary("neg", self)

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return unary("abs", self)

    def __lt__(self, other: Any) -> Expr:
        return applied("lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return applied("le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return applied("lt", other, self)

    def __ge__(self, other: Any) -> Expr:
        return applied("le", other, self)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return applied("eq", self, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return applied("ne", self, other)

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Expr:
        return applied("and", self, other)

    def __rand__(self, other: Any) -> Expr:
        return applied("and", other, self)

    def __or__(self, other: Any) -> Expr:
        return applied("or", self, other)

    def __ror__(self, other: Any) -> Expr:
        return applied("or", other, self)

    def __xor__(self, other: Any) -> Expr:
        return applied("xor", self, other)

    def __rxor__(self, other: Any) -> Expr:
        return applied("xor", other, self)

    def __lshift__(self, other: Any) -> Expr:
        return applied("shl", self, other)

    def __rshift__(self, other: Any) -> Expr:
        return applied("shr", self, other)

    def __invert__(self) -> Expr:
        return unary("not", self)

    def __bool__(self) -> bool:
        raise refuse(
            "A102",
            "the truth value of an expression",
            "its value is known only when the kernel runs",
            "fl.where(condition, a, b)",
            "& | ~ instead of and, or, not",
        )

    def _as_number(self) -> Any:
        why = "its value is known only when the kernel runs"
        raise refuse("A103", "an expression where Python needs a number", why, "the expression itself, or fl.cast(x, fl.i32)")

    __index__ = __int__ = __float__ = __complex__ = __round__ = __trunc__ = _as_number

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise refuse(
            "A103",
            "an expression where NumPy needs an array or an index",
            "its value is known only when the kernel runs",
            "fl.asarray(table) before the stage, to index a NumPy array by an axis",
        )

    def __iter__(self) -> Iterator[Any]:
        raise refuse("A102", "iteration over an expression", "it is one scalar")


@dataclass(frozen=True, eq=False)
class Const(Expr):
    value: bool | int | float
    dtype: str
    weak: bool


@dataclass(frozen=True, eq=False)
class Axis(Expr):
    """A loop variable. Axes of one name in different stages differ by `uid`."""

    name: str
    uid: int
    dtype: ClassVar[str] = "int32"
    weak: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class Size(Expr):
    """The value of a symbolic extent."""

    extent: Dim
    dtype: ClassVar[str] = "int32"
    weak: ClassVar[bool] = True


@dataclass(frozen=True, eq=False)
class Read(Expr):
    """source[index]; `source` is the id of a stage or leaf."""

    source: int
    index: tuple[Expr, ...]
    dtype: str
    weak: ClassVar[bool] = False

    def _operands(self) -> tuple[Expr, ...]:
        return self.index


@dataclass(frozen=True, eq=False)
class Access(Expr):
    """A read of a Tensor as written, before views are substituted. Only lives while a stage is being made."""

    tensor: Any
    index: tuple[Expr, ...]
    dtype: str
    weak: ClassVar[bool] = False

    def _operands(self) -> tuple[Expr, ...]:
        return self.index


@dataclass(frozen=True, eq=False)
class Op(Expr):
    op: str
    args: tuple[Expr, ...]
    dtype: str
    weak: bool

    def _operands(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, eq=False)
class Scalar(Expr):
    """An argument of what a reduction combines with."""

    name: str
    dtype: str
    weak: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class Reduce(Expr):
    """A reduction inside an expression; tracing makes a stage of it. `combiner` is that of the kind "reduce"."""

    kind: str
    axes: tuple[Axis, ...]
    extents: tuple[Extent | None, ...]
    body: Expr
    dtype: str
    combiner: Combiner | None = None
    weak: ClassVar[bool] = False

    def _operands(self) -> tuple[Expr, ...]:
        return (self.body,)


_fresh = itertools.count()


def axis(name: str) -> Axis:
    """A new axis, different from all others of this name."""
    return Axis(name, next(_fresh))


def refuse(code: str, asked: str, why: str, *try_: str) -> AlgorithmError:
    return AlgorithmError([Problem(code, "algorithm", asked=asked, why=why, try_=try_)])


# at the end, since arithmetic makes the nodes above
from .arithmetic import applied, as_expr, binary, cast, common, fold, power, strong, unary, where  # noqa: E402
from .operations import ARITHMETIC, COMPARISON, LOGICAL, REAL, SYMBOL  # noqa: E402

__all__ = [
    "ARITHMETIC", "COMPARISON", "FLOATS", "INTEGERS", "LOGICAL", "REAL", "SYMBOL", "Access", "Axis", "Const", "Expr", "Op", "Read",
    "Reduce", "Scalar", "Size", "as_expr", "axis", "binary", "cast", "common", "fold", "power", "refuse", "strong", "unary", "where",
]  # fmt: skip
