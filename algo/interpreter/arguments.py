"""The inputs of a call made into arrays, and the extents that they imply; or sentences about what is wrong with them."""
from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from ..dtypes import kind
from ..errors import Problem, RunError
from ..extent import Extent, Symbol, evaluate, symbols_of
from ..graph import Graph, Method
from ..stages import Leaf

Array = np.ndarray[Any, Any]
_RANK = {"bool": 0, "int": 1, "float": 2}
_KIND = {"b": "bool", "i": "int", "u": "int", "f": "float"}


def choose(graph: Graph, method: str | None) -> Method:
    """The method asked for, or the only one. Raises RunError."""
    names = [m.name for m in graph.methods]
    if method is None and len(names) == 1:
        return graph.methods[0]
    if method in names:
        return graph.method(str(method))
    asked = f"{graph.name} has several methods" if method is None else f"{graph.name} has no method {method}"
    raise RunError(Problem("R114", "run", asked=asked, try_=(f"method= one of {', '.join(names)}",)))


def declared(leaf: Leaf) -> str:
    """float32[h, w]"""
    return f"{leaf.dtype}[{', '.join(map(str, leaf.shape))}]"


def take(graph: Graph, method: Method, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[dict[int, Array], dict[str, int]]:
    """Input arrays by id, and the symbols' values. All problems at once, as a RunError."""
    label = graph.name if len(graph.methods) == 1 and graph.name == method.name else f"{graph.name}.{method.name}"
    leaves = [leaf for i in method.inputs if isinstance(leaf := graph[i], Leaf)]
    wrong: list[Problem] = []
    given = dict(zip((leaf.name for leaf in leaves), inputs, strict=False))
    signature = ", ".join(f"{leaf.name}: {declared(leaf)}" for leaf in leaves) or "none"
    if len(inputs) > len(leaves):
        wrong.append(_problem("R101", f"{label}: {len(inputs)} inputs given, expected {signature}"))
    for name, value in named.items():
        if name in given:
            wrong.append(_problem("R102", f"{label}: {name} is given twice, by position and by name"))
        elif name not in {leaf.name for leaf in leaves}:
            near = get_close_matches(name, [leaf.name for leaf in leaves])
            wrong.append(_problem("R103", f"{label}: there is no input {name}", *(f"did you mean {n}" for n in near)))
        else:
            given[name] = value
    arrays: dict[int, Array] = {}
    for leaf in leaves:
        if leaf.name not in given:
            wrong.append(_problem("R101", f"{label}: {leaf.name} is missing, expected {declared(leaf)}"))
            continue
        made = as_array(leaf, given[leaf.name], label)
        if isinstance(made, Problem):
            wrong.append(made)
        else:
            arrays[leaf.id] = made
    if wrong:
        raise RunError(wrong)
    symbols = bind([(leaf, arrays[leaf.id]) for leaf in leaves], label, wrong)
    if wrong:
        raise RunError(wrong)
    return arrays, symbols


def as_array(leaf: Leaf, value: Any, label: str) -> Array | Problem:
    """The value with the leaf's dtype and rank. Python numbers and lists are weak; arrays must have the dtype."""
    where = f"{label}: {leaf.name}"
    expected = f"expected {declared(leaf)}"
    if isinstance(value, bool | int | float | list | tuple):
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError) as error:
            return _problem("R104", f"{where} is not a rectangular list of numbers ({error}), {expected}")
        found = _KIND.get(array.dtype.kind)
        if array.size and (found is None or _RANK[found] > _RANK[kind(leaf.dtype)]):
            return _problem("R104", f"{where} is {found or array.dtype.name}, {expected}")
        if kind(leaf.dtype) == "int" and array.size and found == "int":
            info = np.iinfo(leaf.dtype)
            if int(array.min()) < info.min or int(array.max()) > info.max:
                return _problem("R104", f"{where} holds a number outside {leaf.dtype}, {expected}")
        array = array.astype(leaf.dtype)
    elif isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.newbyteorder("=") != np.dtype(leaf.dtype):
            return _problem("R104", f"{where} is {array.dtype.name}, {expected}", f"{leaf.name}.astype(np.{leaf.dtype})")
        array = array.astype(leaf.dtype, copy=False)
    else:
        try:
            array = np.from_dlpack(value)
        except Exception:
            return _problem("R104", f"{where} is of type {type(value).__name__}, {expected}", "a NumPy array")
        if array.dtype != np.dtype(leaf.dtype):
            return _problem("R104", f"{where} is {array.dtype.name}, {expected}")
    if array.ndim != len(leaf.shape):
        return _problem("R105", f"{where} has shape {array.shape}, {expected}")
    return array


def bind(tensors: list[tuple[Leaf, Array]], label: str, wrong: list[Problem]) -> dict[str, int]:
    """The value of every symbol; disagreements go to `wrong`."""
    symbols: dict[str, int] = {}
    origin: dict[str, str] = {}
    for leaf, array in tensors:
        for e, n in zip(leaf.shape, array.shape, strict=True):
            if (name := _plain(e)) is not None and name not in symbols:
                symbols[name], origin[name] = n, leaf.name
    for leaf, array in tensors:
        for e, n in zip(leaf.shape, array.shape, strict=True):
            name = _plain(e)
            if any(s not in symbols for s in symbols_of(e)):
                wrong.append(_problem("R105", f"{label}: {leaf.name} has extent {e}, which no input determines"))
            elif evaluate(e, symbols) != n:
                wrong.append(_problem("R105", f"{label}: {name} is {symbols[name]} in {origin[name]}, but {n} in {leaf.name}" if name else
                                      f"{label}: {leaf.name} has shape {array.shape}, expected {declared(leaf)}"))
    return symbols


def _plain(e: Extent) -> str | None:
    """The name, if e is one symbol."""
    if isinstance(e, int) or not e.is_atom:
        return None
    atom = e.terms[0][0][0]
    return atom.name if isinstance(atom, Symbol) else None


def _problem(code: str, asked: str, *try_: str) -> Problem:
    return Problem(code, "run", asked=asked, try_=try_)
