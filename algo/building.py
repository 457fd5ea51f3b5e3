"""The trace being made: its builder, scopes, and the user's place in the source."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, fields, replace
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .dtypes import canonical
from .errors import AlgorithmError
from .expr import Expr, refuse
from .extent import Extent, symbols_of
from .stages import Leaf, Stage, extents_in
from .tensor import Direct, Tensor
from .wellformed import name_of

if TYPE_CHECKING:
    from .autodiff.custom import Rule
    from .autodiff.solving import Transpose
    from .held import Assigned

_HERE = os.path.dirname(os.path.abspath(__file__))
RESERVED = ("grad", "update", "comm", "cast", "recompute", "scan")


@dataclass
class Builder:
    """The stages and leaves made so far; the only mutable thing of a trace."""

    method: str
    next_id: int = 0
    leaves: dict[int, Leaf] = field(default_factory=dict)
    stages: dict[int, Stage] = field(default_factory=dict)
    scopes: list[str] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    bound: dict[int, Tensor] = field(default_factory=dict)  # id(parameter or array) -> its tensor in this graph
    assigned: dict[int, Assigned] = field(default_factory=dict)  # id(parameter) -> what the method made of it so far
    homes: dict[int, str] = field(default_factory=dict)  # id(module or parameter) -> its attribute path
    slots: dict[str, Any] = field(default_factory=dict)  # path -> state that the algorithm adds to the Program itself
    named: set[int] = field(default_factory=set)  # the stages that the user gave a name
    role: str = "forward"  # of the stages being made
    training: bool = False  # whether the method trains
    stateful: bool = False  # whether methods of a Program are traced, which has state
    call_key: Tensor | None = None  # what the random keys of a call are made of, once one is asked for
    keys: int = 0  # how many were
    steps: list[Callable[[], Tensor]] = field(default_factory=list)  # which step it is of every loop whose step is being traced
    losses: list[Tensor] = field(default_factory=list)  # what the method's optimisers go down
    endings: list[Callable[[], None]] = field(default_factory=list)  # what is to be done when all of the method has been traced
    modules: list[Any] = field(default_factory=list)  # the modules being called, outermost first
    kept: list[Any] = field(default_factory=list)  # keeps those ids alive
    closed: set[int] = field(default_factory=set)  # what stood for the carries and slices of scans that are done
    standing: dict[int, Direct] = field(default_factory=dict)  # what stands for the carries and slices of scans, by number
    aliases: set[int] = field(default_factory=set)  # stages that only give a tensor another identity; none of them is in the Graph
    transposes: dict[int, Transpose] = field(default_factory=dict)  # a gradient's stage -> what it was solved from
    rules: dict[int, Rule] = field(default_factory=dict)  # a result -> how its adjoint goes on, where the user says so
    counts: dict[str, int] = field(default_factory=dict)  # computed extents by symbol: the stages whose values they are
    when: Expr | None = None  # the condition of the stages being made
    known: tuple[Expr, ...] = ()  # the conditions whose stages may be read

    def fresh(self) -> int:
        self.next_id += 1
        return self.next_id

    def unique(self, name: str) -> str:
        base = "/".join([self.method, *self.scopes, name])
        path, n = base, 1
        while path in self.paths:
            n += 1
            path = f"{base}_{n}"
        self.paths.add(path)
        return path

    def has(self, id: int, rank: int) -> bool:
        """Whether a tensor of this rank still means what it was made as: the stages of a scan's step get one axis more when it is done."""
        return id not in self.closed and (id not in self.stages or len(self.stages[id].axes) == rank)

    def decided(self, id: int) -> bool:
        """Whether a tensor has a value wherever the stages being made have: not what was made in a branch that is left."""
        made = self.stages.get(id)
        return made is None or made.when is None or any(made.when is c for c in self.known)

    @contextmanager
    def branch(self, when: Expr | None) -> Iterator[None]:
        """Stages made inside are computed where the condition holds (a complete one, conditions around it included)."""
        saved = self.when, self.known
        self.when, self.known = when, self.known if when is None else (*self.known, when)
        try:
            yield
        finally:
            self.when, self.known = saved

    def begin(self, method: str, training: bool) -> None:
        """Stages are those of another method from here on."""
        self.method, self.training = method, training
        self.assigned, self.losses, self.endings, self.call_key, self.keys = {}, [], [], None, 0

    @contextmanager
    def step(self, number: Callable[[], Tensor], around: Sequence[Callable[[], Tensor]] | None = None) -> Iterator[None]:
        """What is made inside is made once for all steps of a loop; `number` gives or refuses the number of the step. `around` are those of
        the loops that it stands in, where they are not the open ones."""
        saved = self.steps
        self.steps = [*(saved if around is None else around), number]
        try:
            yield
        finally:
            self.steps = saved

    @contextmanager
    def at_root(self) -> Iterator[None]:
        """Stages made inside are named right below the method, whatever scope is open."""
        scopes, self.scopes = self.scopes, []
        try:
            yield
        finally:
            self.scopes = scopes

    def snapshot(self) -> dict[str, Any]:
        """All that has been made so far."""
        return {f.name: _kept(getattr(self, f.name)) for f in fields(self)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Forget what was made since. Its numbers are not given again."""
        for name, value in saved.items():
            if name != "next_id":
                setattr(self, name, _kept(value))

    def leaf(
        self, kind: str, path: str, shape: Sequence[Extent], dtype: str, names: Sequence[str | None], value: Any = None, source: str = "",
        complex: bool = False,
    ) -> Direct:
        made = Leaf(self.fresh(), path, kind, tuple(shape), dtype, tuple(names), value, source, complex)
        self.leaves[made.id] = made
        return Direct(made.id, made.shape, dtype, made.axis_names, made.name, self)

    def add(self, stage: Stage) -> Direct:
        if self.counts:
            used = dict.fromkeys(n for e in extents_in(stage) for n in symbols_of(e) if n in self.counts)
            stage = replace(stage, counts=tuple((n, self.counts[n]) for n in used))
        self.stages[stage.id] = stage
        return Direct(stage.id, stage.extents, stage.dtype, stage.axis_names, stage.name, self)


def _kept(value: Any) -> Any:
    """A container as it is now; all else is never changed, and told apart by identity."""
    return copy(value) if isinstance(value, dict | list | set) else value


R = TypeVar("R")
_builder: ContextVar[Builder | None] = ContextVar("fluorite_builder", default=None)


def tracing() -> Builder | None:
    """The trace being made, if one is."""
    return _builder.get()


def training() -> bool:
    """Whether the method that is being traced trains, as ``@fl.method(training=True)`` says: dropout drops, batch norm normalises by the
    batch. A module of one's own may ask, too."""
    return current().training


def current() -> Builder:
    found = _builder.get()
    if found is None:
        raise refuse(
            "A109",
            "a stage outside a trace",
            "stages are made while fluorite runs an algorithm",
            "fl.trace(f), fl.compile(f)",
            "put it into a function or a method",
        )
    return found


@contextmanager
def building(builder: Builder) -> Iterator[Builder]:
    token = _builder.set(builder)
    try:
        yield builder
    finally:
        _builder.reset(token)


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Stages made inside have `name` in their path. A second use inside one parent becomes name_2. A name may be a path of several."""
    if name_of(name, "a scope") in RESERVED:
        raise refuse("A110", f"a scope called {name!r}", "fluorite uses that name in paths", f"{name}_")
    with opened(name):
        yield


@contextmanager
def opened(name: str) -> Iterator[None]:
    """`scope` for the names that are fluorite's own, too."""
    builder = current()
    depth = len(builder.scopes)
    builder.scopes += [*name.split("/")[:-1], builder.unique(name).rsplit("/", 1)[-1]]
    try:
        yield
    finally:
        del builder.scopes[depth:]


def operator(fn: Callable[..., R]) -> Callable[..., R]:
    """A library operator: opens a scope of its name. The stage of its result has the operator's own path."""
    import functools

    op = fn.__name__.rstrip("_")

    @functools.wraps(fn)
    def call(*args: Any, name: str | None = None, **kwargs: Any) -> R:
        builder = current()
        label = name or op
        before = set(builder.stages)
        with scope(label):
            prefix = "/".join([builder.method, *builder.scopes])
            try:
                result = fn(*args, **kwargs)
            except AlgorithmError as error:
                raise placed(error, call_site(), prefix) from None
            inner = f"{prefix}/{builder.scopes[-1]}"
        made = [i for i in builder.stages if i not in before]
        for i in made:
            if builder.stages[i].op == label != op:
                builder.stages[i] = replace(builder.stages[i], op=op)
        last = _stage_of(result)
        if name is not None and last is not None:
            builder.named.add(last)
        if last in made and (old := builder.stages[last]).path.startswith(prefix + "/") and (len(made) == 1 or old.path == inner):
            builder.paths.discard(old.path)
            builder.stages[old.id] = replace(old, path=prefix, op=op)
            _relabel(result, old.id, builder.stages[old.id].name)
        elif not made:
            builder.paths.discard(prefix)
        return result

    return call


def _stage_of(result: Any) -> int | None:
    """The stage that a result is, or is a view of."""
    while (base := getattr(result, "base", None)) is not None:
        result = base
    return result.source if isinstance(result, Direct) else None


def _relabel(result: Any, id: int, name: str) -> None:
    if isinstance(result, Direct) and result.source == id:
        result.label = name


def function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """An algorithm with a scope of its own: the stages of each call are named function/stage."""
    import functools

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if _builder.get() is None:
            raise refuse(
                "A109",
                f"{fn.__name__}(...) outside a trace",
                "an algorithm makes stages only while fluorite runs it",
                f"fl.compile({fn.__name__}), then call the result",
            )
        from .python import converted

        with scope(fn.__name__):
            return converted(fn)(*args, **kwargs)

    call.__fluorite_function__ = fn  # type: ignore[attr-defined]
    return call


def call_site() -> str:
    """file:line of the innermost frame outside the language's own files."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(os.path.abspath(frame.f_code.co_filename)).startswith(_HERE):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def raised_at(error: BaseException) -> str:
    """file:line of the innermost frame outside the language's own files that an exception came through."""
    found, step = "", error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if not os.path.dirname(os.path.abspath(code.co_filename)).startswith(_HERE) and code.co_filename != contextlib.__file__:
            found = f"{os.path.basename(code.co_filename)}:{step.tb_lineno}"
        step = step.tb_next
    return found


def calling_itself(error: RecursionError) -> tuple[str, str] | None:
    """The name and file:line of the function outside the language's own files that was being called again and again."""
    calls: dict[CodeType, int] = {}
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if not os.path.dirname(os.path.abspath(code.co_filename)).startswith(_HERE) and code.co_filename != contextlib.__file__:
            calls[code] = calls.get(code, 0) + 1
        step = step.tb_next
    code = max(calls, key=lambda c: calls[c], default=None)  # type: ignore[assignment]
    return None if code is None or calls[code] < 10 else (code.co_name, f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}")


def placed(error: AlgorithmError, source: str, path: str) -> AlgorithmError:
    """The error with the user's line and the path of what was being made."""
    return AlgorithmError([p if p.source else replace(p, source=source, path=p.path or path) for p in error.problems])


def rename(t: Tensor, name: str) -> Tensor:
    builder = current()
    name_of(name, "a stage")
    if not isinstance(t, Direct) or t.owner is not builder or t.source not in builder.stages:
        raise refuse("A114", f"{t.label}.named({name!r})", "only a stage's result can be renamed, not a view, an input or a parameter")
    old = builder.stages[t.source]
    builder.paths.discard(old.path)
    parent = old.path.rsplit("/", 1)[0]
    saved, builder.scopes = builder.scopes, parent.split("/")[1:]
    try:
        path = builder.unique(name)
    finally:
        builder.scopes = saved
    builder.stages[old.id] = replace(old, path=path)
    builder.named.add(old.id)
    return Direct(old.id, t.shape, t.dtype, t.axis_names, name, builder)


def constant(value: Any) -> Tensor:
    """A NumPy array as a constant of the algorithm."""
    builder = current()
    array = np.asarray(value)
    if id(value) not in builder.bound:
        dtype = canonical(array.dtype)
        builder.kept.append(value)
        n = sum(x.kind == "constant" for x in builder.leaves.values())
        builder.bound[id(value)] = builder.leaf(
            "constant", f"constant/{n}", array.shape, dtype, (None,) * array.ndim, np.array(array, dtype, order="C")
        )
    return builder.bound[id(value)]
