"""``fl.extern``: a stage that a function of NumPy's computes, for what no index expression can say.

The stage is opaque: it needs all of its inputs, has no loops, and nothing is written into it or computed inside it. Its value is the
operation `extern` of the inputs, each read at axes of its own that run over the whole of it; in a branch a bool comes first that says
whether the branch is taken, so that a function is called only where the algorithm calls it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any, overload

from .autodiff.custom import custom_vjp
from .building import call_site, current, placed
from .complex import complex_tensor, from_pair
from .complex.lifting import holds_complex
from .dtypes import canonical, part_of
from .errors import AlgorithmError
from .expr import Axis, Expr, Op, Read, as_expr, axis, binary, cast, refuse, where
from .extent import Extent, volume
from .passing import settled
from .stages import NAMED_FILE, Extern, Stage
from .tensor import Direct, Tensor, in_body
from .trace import build_stage, copied
from .wellformed import extent_of, name_of, require_size

Function = Callable[..., Any]
Pull = Callable[[tuple[Tensor, ...], Any], Any]


@overload
def extern(
    function: Function, shape: list[tuple[Extent, ...]], dtype: Any, *inputs: Any, vjp: Pull | None = None, name: str
) -> tuple[Tensor, ...]: ...
@overload
def extern(function: Function, shape: Sequence[Extent], dtype: Any, *inputs: Any, vjp: Pull | None = None, name: str) -> Tensor: ...


def extern(function: Function, shape: Any, dtype: Any, *inputs: Any, vjp: Pull | None = None, name: str) -> Any:
    """The tensor of this shape and type that ``function(*inputs)`` returns, a Python function of NumPy arrays.

        def ranks(x): return scipy.stats.rankdata(x).astype(np.float32)
        fl.extern(ranks, x.shape, fl.f32, x, name="ranks")

    `shape` may hold symbolic extents (those of the inputs); the array returned has exactly that shape and `dtype`, which every call checks.
    The function sees whole arrays that it cannot write to. It must be pure: the same inputs give the same result, nothing else is read or
    changed; it is called once for each stage, or once in all where the inputs are parameters that stay, on the thread that calls the model.

    Complex tensors are complex arrays to the function, and with `dtype` complex it returns one: ``fl.extern(np.linalg.inv, z.shape, fl.c64,
    z, name="inv")``.

    A list of shapes is for a function that returns several arrays: the result is a tuple of tensors. All are of one type, or of those in a
    list, which have the same precision (``[fl.f32, fl.c64]``).

        values, vectors = fl.extern(np.linalg.eigh, [(n,), (n, n)], fl.f32, x, name="eigh")

    `vjp(inputs, g)` is the derivative in reverse mode, written in the language: it takes the inputs as a tuple of tensors and what arrives
    at the result (a tuple of several), and returns a tuple of what arrives at each input, or None for 0; `fl.extern` in it calls NumPy
    again. Without it the stage cannot be differentiated. There is no forward mode. A model that is built into a folder finds the function
    again by its module and name, so it is defined at the top of a module that can be imported where the model is used.

    In fl.scan, fl.vmap and fl.while_loop it may stand only if no step changes its inputs; give it the whole batch instead. On a GPU it is
    refused. Raises AlgorithmError: no function, a shape that is none, a boundary view, an extern that a loop changes.
    """
    builder, source = current(), call_site()
    try:
        if in_body():
            raise refuse("A431", "fl.extern inside a stage", "a stage's lambda computes one element", "fl.extern before the stage")
        if not callable(function):
            raise refuse("A431", f"fl.extern of {function!r}", "it calls a function of NumPy arrays", "fl.extern(np.linalg.inv, ...)")
        results = _Results.of(shape, dtype)
        call = _Call(function, results, name_of(name, "a stage"), source)
        return call(*inputs) if vjp is None else custom_vjp(call, lambda *given: (call(*given), given), vjp)(*inputs)
    except AlgorithmError as error:
        raise placed(error, source, "/".join([builder.method, *builder.scopes, str(name)])) from None


@dataclass(frozen=True)
class _Results:
    """What the stage is: of this shape and type, all elements of `several` shapes in a row. Those at the positions `complex` are pairs."""

    shape: tuple[Extent, ...]
    dtype: str
    several: tuple[tuple[Extent, ...], ...] = ()
    complex: tuple[int, ...] = ()

    @classmethod
    def of(cls, shape: Any, dtype: Any) -> _Results:
        if not isinstance(shape, list) or not shape or not all(isinstance(s, list | tuple) for s in shape):
            part = part_of(dtype)
            return cls(_shape(shape), canonical(dtype)) if part is None else cls((*_shape(shape), 2), part, complex=(0,))
        dtypes = dtype if isinstance(dtype, list) else [dtype] * len(shape)
        parts = [part_of(d) for d in dtypes]
        stored = {canonical(d) if p is None else p for d, p in zip(dtypes, parts, strict=True)}
        if len(dtypes) != len(shape) or len(stored) != 1:
            why = "there is one for each result, and all are of one precision"
            raise refuse("A431", f"fl.extern of the types {dtype!r}", why, "[fl.f32, fl.c64]")
        pairs = tuple(k for k, p in enumerate(parts) if p is not None)
        several = tuple((*_shape(s), 2) if k in pairs else _shape(s) for k, s in enumerate(shape))
        total: Extent = 0
        for s in several:
            total = total + volume(s)
        return cls((total,), stored.pop(), several, pairs)


def _shape(shape: Any) -> tuple[Extent, ...]:
    if not isinstance(shape, list | tuple):
        raise refuse("A431", f"fl.extern of the shape {shape!r}", "it is a tuple of extents", "x.shape", "() for one number")
    found = tuple(extent_of(n, str(k), "shape") for k, n in enumerate(shape))
    require_size(found)
    return found


@dataclass(frozen=True)
class _Call:
    """An extern without its inputs. `source` is the line of the user's call."""

    function: Function
    results: _Results
    name: str
    source: str

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *inputs: Any) -> Any:
        """The result, or the results."""
        pairs = tuple(k for k, x in enumerate(inputs) if holds_complex(x))
        made = self._stage([self._given(x) for x in inputs], pairs)
        results, several = self.results.complex, self.results.several
        if not several:
            return from_pair(made) if results else made
        return tuple(from_pair(t) if k in results else t for k, t in enumerate(_cut(made, several)))

    def _stage(self, given: list[Direct], pairs: tuple[int, ...]) -> Direct:
        """The stage, with what it is given as stages before it."""
        builder, shape, dtype, several = current(), self.results.shape, self.results.dtype, self.results.several
        names = _labels(given[0] if given and given[0].shape == shape else None, shape)
        taken = [] if builder.when is None else [_taken(builder.when)]
        ranges, arguments = dict[Axis, Extent](), list[Expr]()
        for t in (*taken, *given, *([_extents(several)] if several else [])):
            mine = [axis(n) for n in _labels(t, t.shape)]
            ranges |= dict(zip(mine, t.shape, strict=True))
            arguments.append(Read(t.source, tuple(mine), t.dtype))
        path = builder.unique(self.name)
        made = Stage(
            builder.fresh(),
            path,
            builder.method,
            tuple(axis(n) for n in names),
            shape,
            dtype,
            Op("extern", tuple(arguments), dtype, False),
            op="extern",
            role=builder.role,
            source=self.source,
            when=builder.when,
            extern=Extern(self.function, tuple(ranges.items()), bool(taken), tuple(map(len, several)), pairs, self.results.complex),
        )
        builder.named.add(made.id)
        return builder.add(made)

    def _given(self, value: Any) -> Direct:
        """An input as a tensor that is stored; one that a derivative knows by another name is that tensor itself."""
        from .ops.shapes import tensor

        given = complex_tensor(value, "extern").pair(f"{self.name}/input") if holds_complex(value) else tensor(value, "extern")
        t = settled(given, "fl.extern")
        builder, source = current(), t.source
        while source in builder.aliases:
            made = builder.stages[source]
            if not isinstance(made.value, Read) or not _is_whole(made.value, made):
                return copied(t, f"{self.name}/input", "derived")
            source = made.value.source
        return t


def _is_whole(read: Read, s: Stage) -> bool:
    """Whether a stage is a copy, axis by axis, of what it reads."""
    return len(read.index) == len(s.axes) and all(i is a for i, a in zip(read.index, s.axes, strict=True))


def _labels(t: Tensor | None, shape: Sequence[Extent]) -> list[str]:
    from .ops.shapes import labels

    return labels(t.axis_names if t is not None else (None,) * len(shape))


def _taken(when: Expr) -> Direct:
    """The condition of the branch as a tensor: the host asks it before it calls the function."""
    with current().branch(None):
        made = build_stage([], lambda: when, name="taken", origin="derived")
    assert isinstance(made, Direct)
    return made


def _extents(shapes: Sequence[Sequence[Extent]]) -> Direct:
    """The extents of several results in a row: what their arrays are compared with."""
    row = [n for shape in shapes for n in shape]

    def value(k: Expr) -> Expr:
        found = cast(0, "int64")
        for place, n in enumerate(row):
            found = where(binary("eq", k, place), cast(as_expr(n), "int64"), found)
        return found

    made = build_stage(["k"], value, name="extents", extents={"k": len(row)}, origin="derived")
    assert isinstance(made, Direct)
    return made


def _cut(packed: Direct, shapes: Sequence[tuple[Extent, ...]]) -> tuple[Tensor, ...]:
    """Several results out of all of their elements in a row: views."""
    from .ops.slicing import getitem
    from .ops.views import reshape

    out = list[Tensor]()
    start: Extent = 0
    for shape in shapes:
        end = start + volume(shape)
        out.append(reshape(getitem(packed, (slice(start, end),)), shape))
        start = end
    return tuple(out)


def found_again(function: Any) -> str | None:
    """module:name under which another process finds a function; None where it does not.

    One of a file that was named to be run, m.py, is found as m:name where that module can be imported from the folder of the file, unless
    Python has another one of this name.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    named = re.sub(NAMED_FILE, "", module)
    try:
        there: Any = sys.modules[module] if named != module and _imported_as(named, sys.modules[module]) else import_module(module)
        for part in name.split("."):
            there = getattr(there, part)
    except (ImportError, AttributeError):
        return None
    return f"{named}:{name}" if there is function else None


def _imported_as(name: str, module: ModuleType) -> bool:
    """Whether a file that was run is what Python imports under this name where its folder is among those that are searched. Raises
    ImportError where it is not."""
    file = os.path.realpath(module.__file__ or "")
    beside = [p for p in sys.path if os.path.realpath(p or os.getcwd()) != os.path.dirname(file)]
    others = name in sys.stdlib_module_names or PathFinder.find_spec(name, beside) is not None
    if others or os.path.basename(file) != f"{name}.py" or not name.isidentifier():
        raise ImportError(f"{file} is not what {name} is")
    return True


def named_folders() -> list[str]:
    """The folders of the files that were named to be run: what another process searches for them, and for modules beside them."""
    files = (m.__file__ for name, m in list(sys.modules.items()) if re.match(NAMED_FILE, name) and m.__file__)
    return list(dict.fromkeys(os.path.dirname(os.path.realpath(f)) for f in files))


__all__ = ["extern", "found_again", "named_folders"]
