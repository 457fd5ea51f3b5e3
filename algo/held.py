"""Parameters and state: tensors that belong to a Program, what they hold at each point of a method, and what it makes of them.

A method is (state, inputs) -> (new state, result). Reading an attribute that holds a parameter gives its value at that point; assigning
to it is what later reads see, and the last assignment is what the next call finds. The stage that is the new value is called
METHOD/update/PATH, or METHOD/update/OPTIMIZER/PATH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .building import Builder, call_site, current, placed, tracing
from .complex import ComplexTensor, complex_tensor, from_pair
from .complex.lifting import holds_complex
from .dtypes import canonical, part_of
from .errors import AlgorithmError
from .expr import Expr, refuse
from .extent import Extent
from .stages import Stage
from .tensor import Direct, Index, Tensor
from .trace import build_stage
from .types import named_dims

Init = Callable[[np.random.Generator, tuple[int, ...]], Any]


class Parameter(Tensor):
    """A tensor that belongs to the Program: shared by its methods, saved with the weights under its attribute path."""

    kind = "parameter"

    complex = False  # whether its last axis has the parts of complex numbers, which is said by what it is held by

    def __init__(self, shape: tuple[Extent, ...], dtype: str, axis_names: tuple[str | None, ...], init: Any, trainable: bool) -> None:
        super().__init__(shape, dtype, axis_names, self.kind)
        self.init, self.trainable = init, trainable

    def resolve(self, index: Index, ranges: Any, facts: Any) -> Expr:
        return self.now().resolve(index, ranges, facts)

    def now(self) -> Held:
        """Its value at this point of the method that is being traced: what it was assigned last, or what the call began with."""
        builder = current()
        if (made := builder.assigned.get(id(self))) is not None:
            return made.held
        found = builder.bound.get(id(self))
        if not isinstance(found, Direct):
            raise refuse(
                "A120",
                f"a {self.kind} that no attribute holds",
                f"the name of a {self.kind} is the path of its attribute",
                f"self.w = fl.{'state' if self.kind == 'state' else 'param'}(...) in __init__",
            )
        return found if isinstance(found, Held) else Held(self, found)

    def hold(self, builder: Builder, path: str) -> Held:
        """Make it part of the graph that is being traced, under this path."""
        self.label = path.rsplit("/", 1)[-1]
        builder.kept.append(self)
        made = Held(self, builder.leaf(self.kind, path, self.shape, self.dtype, self.axis_names, self.init, complex=self.complex))
        builder.bound[id(self)], builder.homes[id(self)] = made, path
        return made

    def assign(self, value: Any, by: str = "") -> None:
        """Its value from here on, and for the next call: a tensor of its shape and type, or a number for all of it.

        For what lists and dicts hold; of an attribute, ``self.w = value`` is the same. `by` is the path of the optimiser that says so.
        Raises AlgorithmError.
        """
        builder, source = tracing(), call_site()
        if builder is None:
            raise refuse(
                "A182",
                f"an assignment to a {self.kind} outside a method",
                "what a method assigns is its next value; outside, there is a value only in a compiled model",
                "init= for the first value",
                'model.parameters["path"] = value for a compiled model',
            )
        self.now()
        path = builder.homes[id(self)]
        try:
            made = _of_form(self, value, path, by)
        except AlgorithmError as error:
            raise placed(error, source, f"{builder.method}/update/{path}") from None
        held = Held(self, made)
        builder.assigned[id(self)] = Assigned(held, by, source)


class State(Parameter):
    """A tensor of the Program that its methods assign, and no optimiser moves: counters, running statistics, keys."""

    kind = "state"


class ComplexHeld(ComplexTensor):
    """A complex parameter or state, or what it holds at one point of a method: the parts of `stored`, along its last axis."""

    def __init__(self, stored: Parameter, now: Tensor) -> None:
        made = from_pair(now)
        super().__init__(made.real, made.imag, now)
        self.stored = stored

    @property
    def label(self) -> str:
        return self.stored.label

    def now(self) -> ComplexHeld:
        """See Parameter.now."""
        return ComplexHeld(self.stored, self.stored.now())

    def assign(self, value: Any, by: str = "") -> None:
        """See Parameter.assign; a number, real or complex, is for all of it."""
        self.stored.assign(_pair_for(self, value), by)


def stored_of(given: Any) -> Any:
    """The parameter that something from an attribute of a Program stands for; anything else as it is."""
    return given.parameter if isinstance(given, Held) else given.stored if isinstance(given, ComplexHeld) else given


class Held(Direct):
    """What a parameter or state holds at one point of a method."""

    def __init__(self, parameter: Parameter, value: Direct) -> None:
        super().__init__(value.source, value.shape, value.dtype, parameter.axis_names, parameter.label, value.owner)
        self.parameter = parameter

    def assign(self, value: Any, by: str = "") -> None:
        """See Parameter.assign."""
        self.parameter.assign(value, by)


@dataclass(frozen=True)
class Assigned:
    """The last value that a method gave to a parameter: by which optimiser, at which line."""

    held: Held
    by: str
    source: str


def param(
    *, init: Any = None, dtype: Any = "float32", trainable: bool = True, shape: tuple[int, ...] | None = None, **axes: int
) -> Tensor:
    """A parameter with named axes, ``fl.param(in_=64, out=32)``; a trailing underscore is dropped.

    `init` is an array, a number, or a function of (generator, shape); it is only run when weights are not given. What is returned is a
    fluorite.Parameter; with dtype=fl.c64 a complex tensor, whose parts lie together as float32 [..., 2] in files of weights.
    """
    names, extents = _form("param", init, shape, axes)
    return _made(Parameter, names, extents, dtype, init, trainable)


def state(*, init: Any = None, dtype: Any = "float32", shape: tuple[int, ...] | None = None, **axes: int) -> Tensor:
    """State that methods assign: ``self.count = fl.state(init=0, dtype=fl.i32)``, then ``self.count = self.count + 1`` in a method.

    Axes and `init` as for fl.param; without axes it is one number. It is saved with the weights, and no optimiser moves it.
    What is returned is a fluorite.Parameter.
    """
    names, extents = _form("state", init, shape, axes)
    return _made(State, names, extents, dtype, init, False)


def _made(
    kind: type[Parameter], names: tuple[str | None, ...], extents: tuple[Extent, ...], dtype: Any, init: Any, trainable: bool
) -> Tensor:
    part = part_of(dtype)
    if part is None:
        return kind(extents, canonical(dtype), names, init, trainable)
    stored = kind((*extents, 2), part, (*names, "part"), init, trainable)
    stored.complex = True
    return ComplexHeld(stored, stored)  # type: ignore[return-value]


def _form(what: str, init: Any, shape: tuple[int, ...] | None, axes: dict[str, int]) -> tuple[tuple[str | None, ...], tuple[Extent, ...]]:
    if shape is not None and axes:
        raise refuse("A121", "shape= and named axes together", "they say the same thing", "named axes alone")
    names: tuple[str | None, ...]
    extents: tuple[Extent, ...]
    if shape is not None:
        names, extents = named_dims(list(shape))
    else:
        names, extents = tuple(n.rstrip("_") for n in axes), tuple(_extent(what, n, k) for k, n in axes.items())
    if isinstance(init, np.ndarray) and init.shape != extents:
        kind = "parameter" if what == "param" else what
        raise refuse("A122", f"a {kind} of shape {list(extents)} with an initial value of shape {list(init.shape)}", "the shapes differ")
    return names, extents


def _extent(what: str, value: Any, name: str) -> int:
    if isinstance(value, np.integer):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        kind = "parameter" if what == "param" else what
        raise refuse("A140", f"fl.{what}({name}={value!r})", f"a {kind}'s extent is an integer of at least 0", f"{name}=64")
    return value


# ---------------------------------------------------------------- assignments
def _pair_for(p: ComplexHeld, value: Any) -> Tensor:
    """The value as both parts along a last axis. Raises AlgorithmError where it is not of the shape and type of p."""
    from .ops.creation import full

    if isinstance(value, bool | int | float | complex):
        return complex_tensor(full(p.shape, value, p.dtype), "assign").pair()
    if not holds_complex(value):
        raise refuse("A181", f"{p.label} = real numbers", f"{p.label} is {p.dtype}, and stays it", f'fl.cast(value, "{p.dtype}")')
    z = complex_tensor(value, "assign")
    if tuple(z.shape) != tuple(p.shape):
        raise refuse("A180", f"{p.label} = {z!r}", f"{p.label} has the shape [{', '.join(map(str, p.shape))}], and keeps it")
    if z.dtype != p.dtype:
        raise refuse("A181", f"{p.label} = {z!r}", f"{p.label} is {p.dtype}, and stays it", f'fl.cast(value, "{p.dtype}")')
    return z.pair()


def _of_form(p: Parameter, value: Any, path: str, by: str) -> Direct:
    """The value as a stage or leaf of the shape and type of the parameter. Raises AlgorithmError."""
    from .ops.shapes import tensor

    if isinstance(value, bool | int | float):
        return _filled(p, value, path, by)
    t = tensor(value, f"the new value of {path}")
    if t.is_bounded:
        raise refuse("A131", f"{path} = {t.label}", "a boundary view is a way to read, not a value", "the tensor itself")
    if isinstance(t, Parameter):
        t = t.now()
    if tuple(t.shape) != tuple(p.shape):
        shown, wanted = (f"[{', '.join(map(str, x.shape))}]" for x in (t, p))
        raise refuse("A180", f"{path} = a tensor of shape {shown}", f"{path} has the shape {wanted}, and keeps it", *_broadcast(t, p))
    if t.dtype != p.dtype:
        raise refuse("A181", f"{path} = a tensor of {t.dtype}", f"{path} is {p.dtype}, and stays it", f'fl.cast(value, "{p.dtype}")')
    if isinstance(t, Direct):
        t.require_mine()
        return t
    return _copied(p, t, path, by)


def _broadcast(t: Tensor, p: Parameter) -> tuple[str, ...]:
    return ("fl.broadcast_to(value, shape)",) if t.ndim < p.ndim else ()


def _names(p: Parameter) -> list[str]:
    names = [n or f"i{d}" for d, n in enumerate(p.axis_names)]
    return [n if n not in names[:d] else f"i{d}" for d, n in enumerate(names)]


def _filled(p: Parameter, value: bool | int | float, path: str, by: str) -> Direct:
    from .expr import cast

    names = _names(p)
    if isinstance(value, float) and "float" not in p.dtype:
        raise refuse("A181", f"{path} = {value!r}", f"{path} is {p.dtype}, and stays it", "a whole number")
    with updating(by):
        made = build_stage(
            names,
            lambda *_: cast(value, p.dtype),
            name=f"{path}/assigned",
            extents=dict(zip(names, p.shape, strict=True)),
            origin="derived",
        )
    assert isinstance(made, Direct)
    return made


def _copied(p: Parameter, t: Tensor, path: str, by: str) -> Direct:
    names = _names(p)
    with updating(by):
        made = build_stage(
            names,
            lambda *i: t[i] if i else t.as_scalar(),
            name=f"{path}/assigned",
            extents=dict(zip(names, p.shape, strict=True)),
            origin="derived",
        )
    assert isinstance(made, Direct)
    return made


@contextmanager
def updating(by: str = "") -> Iterator[None]:
    """Stages made inside are part of an update: METHOD/update/BY/NAME, of the role `update`."""
    builder = current()
    scopes, role = builder.scopes, builder.role
    builder.scopes, builder.role = ["update", *(by.split("/") if by else ())], "update"
    try:
        yield
    finally:
        builder.scopes, builder.role = scopes, role


def updates_of(builder: Builder) -> dict[str, int]:
    """By path, the stage that is the new value of what the method assigned, under its name."""
    found: dict[str, int] = {}
    for key, made in builder.assigned.items():
        leaf = builder.bound[key]
        assert isinstance(leaf, Direct)
        path = builder.homes[key]
        target = "/".join([builder.method, "update", *([made.by] if made.by else []), path])
        try:
            made.held.require_mine()
        except AlgorithmError as error:
            raise placed(error, made.source, target) from None
        if made.held.source == leaf.source:
            continue
        s = builder.stages.get(made.held.source)
        if s is None or not _may_take(builder, s, found.values()):
            s = builder.stages[_copied(made.held.parameter, made.held, path, made.by).source]
            s = replace(s, source=made.source)
        _name(builder, s, target)
        found[path] = s.id
    return found


def _may_take(builder: Builder, s: Stage, taken: Any) -> bool:
    """Whether the stage may bear the name of an update: it has no other name that a plan or a reader would look for."""
    if s.id in taken or s.id in builder.aliases or s.method != builder.method or s.clock is not None:
        return False
    if s.role == "update":
        return True
    return s.role == "forward" and s.id not in builder.named and not any(path.startswith(f"{s.path}/") for path in builder.paths)


def _name(builder: Builder, s: Stage, target: str) -> None:
    """The stage under this path, whatever had it before under another."""
    builder.paths.discard(s.path)
    other = next((x for x in builder.stages.values() if x.path == target and x.id != s.id), None) if target in builder.paths else None
    if other is not None:
        n = 2
        while f"{target}_{n}" in builder.paths:
            n += 1
        builder.paths.add(f"{target}_{n}")
        builder.stages[other.id] = replace(other, path=f"{target}_{n}")
    builder.paths.add(target)
    builder.stages[s.id] = replace(s, path=target, role="update")


__all__ = ["ComplexHeld", "Held", "Init", "Parameter", "State", "param", "state", "stored_of", "updates_of", "updating"]
