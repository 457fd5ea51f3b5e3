"""Methods of Programs, and tracing of models (functions or Programs) to a Graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, overload

import numpy as np

from .building import Builder, building, call_site, calling_itself, constant, placed, raised_at
from .complex import complex_tensor, from_pair, is_complex
from .declaring import as_function, first_line, inputs_of
from .dtypes import part_of
from .errors import AlgorithmError
from .expr import refuse
from .extent import symbols_of
from .graph import Graph, Method, flatten, map_tree
from .held import Parameter, param, state, updates_of
from .modules import Module, Program, members
from .ordering import ordered
from .python import converted
from .ragged import Ragged, mask_of
from .stages import Leaf, extents_in
from .tensor import Direct, Tensor
from .trace import copied, stage
from .types import Spec


@dataclass(frozen=True)
class MethodInfo:
    batch: str | None = None
    training: bool = False
    reader: str | None = None
    data_dependent: bool = False


TAKEN = frozenset(
    ("batch_rows", "checkpoint", "compile", "copy", "epoch", "grad", "load", "manifest", "memory", "parameters", "passes", "peak", "plan",
     "position", "reset", "resume", "save", "signatures", "steps")
)  # fmt: skip
"""What a Program or a compiled model has of its own, which a method of the same name would hide, or be hidden by."""

F = TypeVar("F", bound=Callable[..., Any])


@overload
def method(fn: F, /) -> F: ...
@overload
def method(
    *, batch: str | None = None, training: bool = False, reader: str | None = None, data_dependent: bool | None = None
) -> Callable[[F], F]: ...
def method(
    fn: Callable[..., Any] | None = None,
    *,
    batch: str | None = None,
    training: bool = False,
    reader: str | None = None,
    data_dependent: bool | None = None,
) -> Any:
    """Marks a Program's method as compiled. `batch` names the axis of the batch, which a call with one sample leaves out; with `training`
    its layers train (see fluorite.nn.training); `reader` is the attribute that its inputs are read from where it is called without any (see
    fluorite.data). `data_dependent` says that how long a call takes depends on what is in its inputs, as where a loop ends: tuning then
    asks for inputs, and measures no random ones. Raises AlgorithmError for a name that a compiled model has for something else."""

    def mark(f: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(f, staticmethod | classmethod | property):
            why = "a method is called on its Program, for the parameters and state that it reads"
            raise placed(refuse("A136", f"@fl.method over @{type(f).__name__}", why, "def method(self, ...)"), call_site(), "")
        if (name := getattr(f, "__name__", "")) in TAKEN:
            why = f"a compiled model has something else of this name: model.{name}"
            raise placed(refuse("A135", f"@fl.method called {name!r}", why, f"{name}_", f"{name}_of"), first_line(f), name)
        f.__fluorite_method__ = MethodInfo(batch, training, reader, bool(data_dependent))  # type: ignore[attr-defined]
        return f

    return mark if fn is None else mark(fn)


def methods_of(program: Program) -> dict[str, Callable[..., Any]]:
    found = {}
    for cls in reversed(type(program).__mro__):
        for name, value in vars(cls).items():
            if hasattr(value, "__fluorite_method__"):
                found[name] = getattr(program, name)
    return found


def trace(model: Any, method: str | None = None, inputs: Mapping[str, Spec] | None = None) -> Graph:
    """The Graph of a function or of a Program's methods (one of them if `method` is given).

    `inputs` declares the inputs of an unannotated function by name. Raises AlgorithmError.
    """
    return traced(model, method, inputs).graph()


@dataclass(frozen=True, eq=False)
class Traced:
    """A trace with its methods, before it becomes a Graph: stages may still be added, and rules of derivatives are still known."""

    name: str
    builder: Builder
    methods: tuple[Method, ...]

    def graph(self, kept: Container[int] = ()) -> Graph:
        """The Graph of the methods. Of the stages that only give a tensor another identity those in `kept` stay."""
        from .autodiff.aliases import without_aliases

        aliases = {i for i in self.builder.aliases if i not in kept}
        loops = [s.turn for s in self.builder.stages.values() if s.turn is not None]
        carried = {i for turn in loops for i in (turn.next, turn.condition) if i is not None}
        stages = without_aliases(list(self.builder.stages.values()), aliases, carried.union(*(m.ends for m in self.methods)))
        return _prune(Graph(self.name, tuple(self.builder.leaves.values()), ordered(stages), self.methods))


def traced(model: Any, method: str | None = None, inputs: Mapping[str, Spec] | None = None) -> Traced:
    """As `trace`, unfinished."""
    if isinstance(model, type) and issubclass(model, Program):
        model = model()
    if isinstance(model, Program):
        chosen = methods_of(model)
        name = type(model).__name__
        if not chosen:
            raise refuse("A127", name, "it has no compiled method", "@fl.method above one")
    else:
        name, fn = as_function(model)
        chosen = {name: fn}
    if method is not None:
        if method not in chosen:
            raise refuse("A129", f"method {method!r}", f"{name} has {', '.join(chosen)}")
        chosen = {method: chosen[method]}
    builder = Builder("")
    made: list[Method] = []
    with building(builder):
        if isinstance(model, Program):
            builder.stateful = True
            held = list(members(model))
            for path, member in held:
                if isinstance(member, Parameter):
                    member.hold(builder, path)
                else:
                    builder.kept.append(member)
                    builder.homes[id(member)] = path
        for method_name, fn in chosen.items():
            made.append(_trace_method(builder, method_name, fn, inputs))
            if isinstance(model, Program):
                made[-1] = _described(made[-1], builder, fn, model)
                _require_same(builder, method_name, fn, [member for _, member in held], model)
    return Traced(name, builder, tuple(made))


def _described(method: Method, builder: Builder, fn: Callable[..., Any], model: Program) -> Method:
    """The method with what its decorator says about it. Raises AlgorithmError where that means nothing."""
    info: MethodInfo = fn.__fluorite_method__  # type: ignore[attr-defined]
    axes = {s for i in method.inputs for e in builder.leaves[i].shape for s in symbols_of(e)}
    error = None
    if info.batch is not None and info.batch not in axes:
        asked, why = f"@fl.method(batch={info.batch!r})", f"no input of {method.name} has an extent of this name"
        error = refuse("A195", asked, why, *(f"batch={s!r}" for s in sorted(axes)))
    if info.reader is not None and (not method.inputs or not hasattr(model, info.reader)):
        why = f"{type(model).__name__} has no attribute {info.reader}" if method.inputs else f"{method.name} has no inputs"
        error = refuse("A196", f"@fl.method(reader={info.reader!r})", why, f"self.{info.reader} = fl.data.arrays(...) in __init__")
    if error is not None:
        raise placed(error, first_line(fn), method.name)
    return replace(method, batch=info.batch, reader=info.reader, data_dependent=info.data_dependent)


def _require_same(builder: Builder, method: str, fn: Callable[..., Any], before: list[Any], model: Program) -> None:
    """Raises AlgorithmError where a list or dict of the Program now holds something else in the place of a parameter: no assignment to its
    elements is noticed."""
    now = {id(member) for _, member in members(model)}
    for member in before:
        if isinstance(member, Parameter) and id(member) not in now:
            path = builder.homes[id(member)]
            why = "only attributes notice that they are assigned, lists and dicts do not"
            error = refuse("A184", f"{path} was replaced in its list or dict", why, "the element's .assign(value)")
            raise placed(error, first_line(fn), f"{method}/update/{path}")


_DEFERRED = (
    (inspect.iscoroutinefunction, "a coroutine function (async def)"),
    (inspect.isasyncgenfunction, "an asynchronous generator"),
    (inspect.isgeneratorfunction, "a generator (it has a yield)"),
)
"""Functions whose call runs nothing of them yet."""


def _trace_method(builder: Builder, name: str, fn: Callable[..., Any], inputs: Mapping[str, Spec] | None) -> Method:
    info = getattr(fn, "__fluorite_method__", None)
    if what := next((w for test, w in _DEFERRED if test(fn)), ""):
        why = "a method runs once, when it is traced, and returns tensors"
        raise placed(refuse("A130", f"{name} is {what}", why), first_line(fn), name)
    builder.begin(name, isinstance(info, MethodInfo) and info.training)
    ids, ragged, groups, counts = list[int](), dict[int, int](), dict[Any, tuple[Direct, Tensor]](), set[int]()
    arguments: dict[str, Any] = {}
    for k, s in inputs_of(fn, inputs).items():
        t = arguments[k] = _input(builder, name, k, s)
        ids.append(t.source)
        if s.counts:
            arguments[k] = s.shape[0]
            counts.add(t.source)
        if builder.leaves[t.source].complex:
            arguments[k] = from_pair(t)
        if s.ragged:
            if s.shape[:2] not in groups:
                lengths = _input(builder, name, f"{k}.lengths", Spec("int32", s.axis_names[:1], s.shape[:1]))
                groups[s.shape[:2]] = lengths, mask_of(t, lengths, f"{k}.mask")
                ids.append(lengths.source)
            arguments[k] = Ragged(t, *groups[s.shape[:2]])
            ragged[t.source] = groups[s.shape[:2]][0].source
    try:
        result = converted(fn)(**arguments)
    except AlgorithmError as error:
        raise placed(error, raised_at(error), name) from None
    except RecursionError as error:
        if (found := calling_itself(error)) is None:
            raise
        why = "a function is traced on both sides of a branch that a tensor decides, so its calls of itself end only where Python knows it"
        raise placed(refuse("A138", f"{found[0]} calls itself without end", why, "fl.while_loop or fl.scan"), found[1], name) from None
    for end in builder.endings:
        end()
    if result is None and not builder.assigned:
        why = "a method returns a tensor, or a tuple, list or dict of them, or it assigns state"
        raise placed(refuse("A130", f"{name} returns nothing", why), first_line(fn), name)
    try:
        _require_plain(result, name, set())
        pairs: set[int] = set()
        tree = _settled(result, name, pairs)
        updates = updates_of(builder)
        kept = {i: _kept(builder, i, updates) for i in flatten(tree)}
        tree = map_tree(kept.__getitem__, tree)
    except AlgorithmError as error:
        raise placed(error, first_line(fn), name) from None
    _require_known_symbols(builder, name, ids)
    doc, shown = inspect.getdoc(fn) or "", frozenset(kept[i] for i in pairs)
    return Method(name, tuple(ids), tree, doc, updates, ragged=ragged, counts=frozenset(counts), complex=shown)


def _input(builder: Builder, method: str, name: str, s: Spec) -> Direct:
    builder.paths.add(f"{method}/{name}")
    if (part := part_of(s.dtype)) is None:
        return builder.leaf("input", f"{method}/{name}", s.shape, s.dtype, s.axis_names)
    return builder.leaf("input", f"{method}/{name}", (*s.shape, 2), part, (*s.axis_names, "part"), complex=True)


def _kept(builder: Builder, i: int, updates: Mapping[str, int]) -> int:
    """A result; what a parameter held before the method changed it is a stage that keeps it."""
    found = builder.leaves.get(i)
    if found is None or found.path not in updates:
        return i
    made = copied(Direct(i, found.shape, found.dtype, found.axis_names, found.name, builder), found.name)
    return made.source


def _require_plain(result: Any, name: str, above: set[int]) -> None:
    """Raises AlgorithmError for a nest of results that holds itself or nothing, is very deep, or has keys that are no strings."""
    if above and result is None:
        raise refuse("A130", f"{name} returns None", "a method returns tensors, or tuples, lists and dicts of them; or nothing at all")
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
    known |= builder.counts.keys()
    for s in builder.stages.values():
        if s.method == name and (unknown := [x for e in extents_in(s) for x in symbols_of(e) if x not in known]):
            error = refuse("A134", f"the extent {unknown[0]}", f"no input of {name} has it, so it has no value", *sorted(known))
            raise placed(error, s.source, s.path)


def _settled(result: Any, name: str, pairs: set[int]) -> Any:
    """The ids of a nest of results; those of complex ones, which have both parts along a last axis, go to `pairs` too."""
    match result:
        case dict():
            return {k: _settled(v, name, pairs) for k, v in result.items()}
        case list() | tuple():
            found = [_settled(v, name, pairs) for v in result]
            return found if isinstance(result, list) else tuple(found)
        case None:
            return None
    if not is_complex(result):
        return _materialise(result, name)
    pair = complex_tensor(result, "result").pair("result")
    made = pair.source if isinstance(pair, Direct) else copied(pair, "result").source
    pairs.add(made)
    return made


def _materialise(value: Any, name: str) -> int:
    """The id of a returned tensor; views, parameters and numbers become stages."""
    if isinstance(value, Direct):
        value.require_mine()
        return value.source
    if isinstance(value, Parameter):
        return value.now().source
    if isinstance(value, Tensor):
        if value.is_bounded:
            raise refuse("A131", f"{name} returns {value.label}", "a boundary view is a way to read, not a result", "the tensor itself")
        return copied(value, "result").source
    if isinstance(value, int | float | bool):
        made = stage(lambda: value, name="result")
        assert isinstance(made, Direct)
        return made.source
    if isinstance(value, np.ndarray | np.generic):
        bound = constant(value)
        assert isinstance(bound, Direct)
        return bound.source
    raise refuse("A130", f"{name} returns {type(value).__name__}", "a method returns tensors, or tuples, lists and dicts of them")


def _prune(g: Graph) -> Graph:
    """Without stages and constants that no result and no new value of state needs."""
    needed: set[int] = set()
    pending = [i for m in g.methods for i in m.ends]
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
    )


__all__ = [
    "MethodInfo", "Module", "Parameter", "Program", "Traced", "inputs_of", "method", "methods_of", "param", "state", "trace", "traced",
]  # fmt: skip
