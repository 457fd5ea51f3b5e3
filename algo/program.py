"""Programs: classes whose methods share parameters; and tracing of models (functions or Programs) to a Graph."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np

from .building import RESERVED, Builder, building, constant, current, placed, raised_at, scope
from .dtypes import canonical
from .errors import AlgorithmError, Problem
from .expr import Expr, Size, refuse
from .extent import Extent, symbols_of
from .graph import Graph, Leaf, Method, map_tree, ordered
from .rewriting import walk
from .tensor import Direct, Index, Tensor
from .trace import stage
from .types import Spec, named_dims, spec

Init = Callable[[np.random.Generator, tuple[int, ...]], Any]


class Parameter(Tensor):
    """A tensor that belongs to the Program: shared by its methods, saved with the weights under its attribute path."""

    def __init__(self, shape: tuple[Extent, ...], dtype: str, axis_names: tuple[str | None, ...], init: Any, trainable: bool) -> None:
        super().__init__(shape, dtype, axis_names, "parameter")
        self.init, self.trainable = init, trainable

    def resolve(self, index: Index, ranges: Any, facts: Any) -> Expr:
        return self._bound().resolve(index, ranges, facts)

    def _bound(self) -> Tensor:
        found = current().bound.get(id(self))
        if found is None:
            raise refuse(
                "A120",
                "a parameter that no attribute holds",
                "a parameter's name is the path of its attribute",
                "self.w = fl.param(...) in __init__",
            )
        return found


def param(
    *, init: Any = None, dtype: Any = "float32", trainable: bool = True, shape: tuple[int, ...] | None = None, **axes: int
) -> Parameter:
    """A parameter with named axes, ``fl.param(in_=64, out=32)``; a trailing underscore is dropped.

    `init` is an array, a number, or a function of (generator, shape); it is only run when weights are not given.
    """
    if shape is not None and axes:
        raise refuse("A121", "shape= and named axes together", "they say the same thing", "named axes alone")
    if shape is not None:
        names, extents = named_dims(list(shape))
    else:
        names, extents = tuple(n.rstrip("_") for n in axes), tuple(_parameter_extent(n, k) for k, n in axes.items())
    if isinstance(init, np.ndarray) and init.shape != extents:
        raise refuse("A122", f"a parameter of shape {list(extents)} with an initial value of shape {list(init.shape)}", "the shapes differ")
    return Parameter(extents, canonical(dtype), names, init, trainable)


def _parameter_extent(value: Any, name: str) -> int:
    if isinstance(value, np.integer):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise refuse("A140", f"fl.param({name}={value!r})", "a parameter's extent is an integer of at least 0", f"{name}=64")
    return value


class Module:
    """A reusable part of a Program; `forward` or `__call__` says what it computes. Calling it opens a scope of its attribute path."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__call__" in vars(cls):
            cls.__call__ = _scoped(vars(cls)["__call__"])  # type: ignore[method-assign]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        forward = getattr(self, "forward", None)
        if forward is None:
            raise refuse("A123", f"{type(self).__name__}(...)", "a module needs a method forward")
        with _entered(self):
            return forward(*args, **kwargs)


def _scoped(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def call(self: Module, *args: Any, **kwargs: Any) -> Any:
        with _entered(self):
            return fn(self, *args, **kwargs)

    return call


@contextmanager
def _entered(module: Module) -> Iterator[None]:
    """The scope of a module: its attribute path, from that of the module which calls it if that holds it."""
    builder = current()
    caller = builder.modules[-1] if builder.modules else None
    if caller is module:  # its __call__ went on to the inherited one
        yield
        return
    path = str(builder.bound.get(id(module), type(module).__name__.lower()))
    outer = f"{builder.bound.get(id(caller), '')}/"
    builder.modules.append(module)
    try:
        with scope(path.removeprefix(outer)):
            yield
    finally:
        builder.modules.pop()


class Program:
    """A model with state. Attributes hold parameters, modules, and lists or dicts of them; ``@fl.method`` marks what is compiled."""

    def compile(self, plan: Any = None, **options: Any) -> Any:
        """The compiled model: see fluorite.compile."""
        import fluorite

        return fluorite.compile(self, plan, **options)


@dataclass(frozen=True)
class MethodInfo:
    batch: str | None = None
    training: bool = False
    reader: str | None = None


F = TypeVar("F", bound=Callable[..., Any])


@overload
def method(fn: F, /) -> F: ...
@overload
def method(*, batch: str | None = None, training: bool = False, reader: str | None = None) -> Callable[[F], F]: ...
def method(fn: Callable[..., Any] | None = None, *, batch: str | None = None, training: bool = False, reader: str | None = None) -> Any:
    """Marks a Program's method as compiled. `batch` names the batch axis."""
    if training or reader is not None:
        raise refuse("A190", "@fl.method(training=..., reader=...)", "training is not built yet", "an inference method")

    def mark(f: Callable[..., Any]) -> Callable[..., Any]:
        f.__fluorite_method__ = MethodInfo(batch, training, reader)  # type: ignore[attr-defined]
        return f

    return mark if fn is None else mark(fn)


def members(root: Any) -> Iterator[tuple[str, Any]]:
    """(path, object) for every parameter and module below a Program or module: attributes in order, lists as name.0, dicts as name.key."""
    seen: set[int] = set()

    def visit(value: Any, path: str) -> Iterator[tuple[str, Any]]:
        if isinstance(value, Parameter | Module | Program | list | tuple | dict):
            if id(value) in seen:
                return
            seen.add(id(value))
        if isinstance(value, Parameter | Module):
            yield path, value
        if isinstance(value, Module | Program):
            for k, v in vars(value).items():
                if isinstance(v, Parameter | Module | list | tuple | dict):
                    if k in RESERVED:
                        raise refuse("A110", f"an attribute called {k!r}", "fluorite uses that name in paths", f"{k}_")
                    yield from visit(v, f"{path}/{k}" if path else k)
        elif isinstance(value, list | tuple):
            for n, v in enumerate(value):
                yield from visit(v, f"{path}.{n}")
        elif isinstance(value, dict):
            for k, v in value.items():
                yield from visit(v, f"{path}.{k}")

    yield from visit(root, "")


def methods_of(program: Program) -> dict[str, Callable[..., Any]]:
    found = {}
    for cls in reversed(type(program).__mro__):
        for name, value in vars(cls).items():
            if hasattr(value, "__fluorite_method__"):
                found[name] = getattr(program, name)
    return found


def inputs_of(fn: Callable[..., Any], given: Mapping[str, Spec] | None = None) -> dict[str, Spec]:
    """The declared inputs of a function, in order.

    Raises AlgorithmError for a parameter that is neither declared nor has a default.
    """
    inner = getattr(fn, "__fluorite_function__", fn)
    try:
        hints = inspect.get_annotations(inner, eval_str=False)
        space = dict(vars(sys.modules[inner.__module__])) if inner.__module__ in sys.modules else {}
        closure = inspect.getclosurevars(inner).nonlocals if inspect.isfunction(inspect.unwrap(inner)) or inspect.ismethod(inner) else {}
        space = {**getattr(inner, "__globals__", space), **closure}
        hints = {
            k: eval(v, space) if isinstance(v, str) else v for k, v in hints.items() if k != "return"
        }  # the module's own annotations, as typing does
    except AlgorithmError:
        raise
    except Exception as e:
        raise refuse("A124", f"the annotations of {inner.__name__}", f"{type(e).__name__}: {e}") from None
    found: dict[str, Spec] = {}
    for name, p in inspect.signature(inner).parameters.items():
        declared = (given or {}).get(name) or spec(hints.get(name))
        if declared is not None and p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            error = refuse(
                "A125", f"parameter {str(p).split(':')[0]!r}", "an input is one tensor that can be given by position and by name"
            )
            raise placed(error, _first_line(inner), inner.__name__)
        if declared is not None:
            found[name] = declared
        elif p.default is inspect.Parameter.empty and name != "self":
            code = inner.__code__
            raise AlgorithmError(
                [
                    Problem(
                        "A125",
                        "algorithm",
                        source=f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}",
                        path=inner.__name__,
                        asked=f"parameter {name!r}",
                        why="its type is not declared",
                        try_=(f'{name}: fl.f32[fl.Tensor, "h", "w"]', "a default value"),
                    )
                ]
            )
    unknown = [k for k in given or {} if k not in found]
    if unknown:
        raise refuse("A126", f"inputs {', '.join(unknown)}", f"{inner.__name__} has {', '.join(found) or 'no inputs'}")
    return found


def trace(model: Any, method: str | None = None, inputs: Mapping[str, Spec] | None = None) -> Graph:
    """The Graph of a function or of a Program's methods (one of them if `method` is given).

    `inputs` declares the inputs of an unannotated function by name. Raises AlgorithmError.
    """
    if isinstance(model, type) and issubclass(model, Program):
        model = model()
    if isinstance(model, Program):
        chosen = methods_of(model)
        name = type(model).__name__
        if not chosen:
            raise refuse("A127", name, "it has no compiled method", "@fl.method above one")
    elif callable(model):
        name = model.__name__.strip("<>")
        chosen = {name: getattr(model, "__fluorite_function__", model)}
    else:
        raise refuse("A128", repr(model), "a model is a function or a fl.Program")
    if method is not None:
        if method not in chosen:
            raise refuse("A129", f"method {method!r}", f"{name} has {', '.join(chosen)}")
        chosen = {method: chosen[method]}
    from .autodiff.aliases import without_aliases

    builder = Builder("")
    made: list[Method] = []
    with building(builder):
        if isinstance(model, Program):
            for path, member in members(model):
                builder.kept.append(member)
                if isinstance(member, Parameter):
                    builder.bound[id(member)] = builder.leaf("parameter", path, member.shape, member.dtype, member.axis_names, member.init)
                    member.label = path.rsplit("/", 1)[-1]
                else:
                    builder.bound[id(member)] = _ModulePath(path)  # type: ignore[assignment]
        for method_name, fn in chosen.items():
            made.append(_trace_method(builder, method_name, fn, inputs))
    stages = without_aliases(list(builder.stages.values()), builder.aliases, {i for m in made for i in m.outputs})
    return _prune(Graph(name, tuple(builder.leaves.values()), ordered(stages), tuple(made)))


class _ModulePath(str):
    """The attribute path of a module, kept beside the tensors of parameters."""


def _trace_method(builder: Builder, name: str, fn: Callable[..., Any], inputs: Mapping[str, Spec] | None) -> Method:
    builder.method = name
    ids, arguments = [], {}
    for k, s in inputs_of(fn, inputs).items():
        t = builder.leaf("input", f"{name}/{k}", s.shape, s.dtype, s.axis_names)
        builder.paths.add(f"{name}/{k}")
        ids.append(t.source)
        arguments[k] = t
    try:
        result = fn(**arguments)
    except AlgorithmError as error:
        raise placed(error, raised_at(error), name) from None
    if result is None:
        raise placed(
            refuse("A130", f"{name} returns nothing", "a method returns a tensor, or a tuple, list or dict of them"), _first_line(fn), name
        )
    try:
        _require_plain(result, name, set())
        tree = map_tree(lambda v: _materialise(v, name), result)
    except AlgorithmError as error:
        raise placed(error, _first_line(fn), name) from None
    _require_known_symbols(builder, name, ids)
    return Method(name, tuple(ids), tree, inspect.getdoc(fn) or "")


def _first_line(fn: Callable[..., Any]) -> str:
    """file:line of a function."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else ""


def _require_plain(result: Any, name: str, above: set[int]) -> None:
    """Raises AlgorithmError for a nest of results that holds itself, is very deep, or has keys that are no strings."""
    if not isinstance(result, dict | list | tuple):
        return
    if id(result) in above or len(above) > 32:
        raise refuse("A130", f"{name} returns a nest that is too deep, or holds itself", "tuples, lists and dicts may be 32 deep")
    if isinstance(result, dict) and not all(isinstance(k, str) for k in result):
        raise refuse(
            "A130", f"{name} returns a dict with the key {next(k for k in result if not isinstance(k, str))!r}", "keys are strings"
        )
    for part in result.values() if isinstance(result, dict) else result:
        _require_plain(part, name, {*above, id(result)})


def _require_known_symbols(builder: Builder, name: str, inputs: list[int]) -> None:
    """Raises AlgorithmError for a stage with a symbolic extent that no input of its method has."""
    known = {s for i in inputs for e in builder.leaves[i].shape for s in symbols_of(e)}
    for s in builder.stages.values():
        used = (*s.extents, *(s.reduction.extents if s.reduction else ()), *(n.extent for n in walk(s.value) if isinstance(n, Size)))
        if s.method == name and (unknown := [x for e in used for x in symbols_of(e) if x not in known]):
            error = refuse("A134", f"the extent {unknown[0]}", f"no input of {name} has it, so it has no value", *sorted(known))
            raise placed(error, s.source, s.path)


def _materialise(value: Any, name: str) -> int:
    """The id of a returned tensor; views, parameters and numbers become stages."""
    if isinstance(value, Direct):
        value.require_mine()
        return value.source
    if isinstance(value, Parameter):
        bound = value._bound()
        assert isinstance(bound, Direct)
        return bound.source
    if isinstance(value, Tensor):
        from .trace import build_stage

        if value.is_bounded:
            raise refuse("A131", f"{name} returns {value.label}", "a boundary view is a way to read, not a result", "the tensor itself")
        names = unique_names(value.axis_names)
        made = build_stage(
            names, lambda *i: value[i] if i else value.as_scalar(), name="result", extents=dict(zip(names, value.shape, strict=True))
        )
        assert isinstance(made, Direct)
        return made.source
    if isinstance(value, int | float | bool):
        made = stage(lambda: value, name="result")
        assert isinstance(made, Direct)
        return made.source
    if isinstance(value, np.ndarray | np.generic):
        bound = constant(value)
        assert isinstance(bound, Direct)
        return bound.source
    raise refuse("A130", f"{name} returns {type(value).__name__}", "a method returns tensors, or tuples, lists and dicts of them")


def unique_names(names: tuple[str | None, ...]) -> list[str]:
    """Axis names for a new stage: the ones there are, else i0, i1, ..."""
    out: list[str] = []
    for n, name in enumerate(names):
        out.append(name if name and name not in out else f"i{n}")
    return out


def _prune(g: Graph) -> Graph:
    """Without stages and constants that no result needs."""
    needed: set[int] = set()
    pending = [i for m in g.methods for i in m.outputs]
    while pending:
        i = pending.pop()
        if i not in needed:
            needed.add(i)
            found = g.by_id[i]
            if not isinstance(found, Leaf):
                pending += found.sources
    return Graph(
        g.name,
        tuple(t for t in g.leaves if t.kind != "constant" or t.id in needed),
        tuple(s for s in g.stages if s.id in needed),
        g.methods,
        g.updates,
    )
