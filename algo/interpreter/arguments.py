"""The inputs of a call made into arrays, and the extents that they imply; or sentences about what is wrong with them."""

from __future__ import annotations

from collections.abc import Container, Mapping
from difflib import get_close_matches
from typing import Any

from ..errors import Problem, RunError
from ..extent import Extent, Symbol, evaluate, symbols_of
from ..graph import Graph, Method
from ..stages import Leaf
from .padding import padded
from .weak import Array, as_array, as_count, declared, problem, seen


def choose(graph: Graph, method: str | None) -> Method:
    """The method asked for, or the only one. Raises RunError."""
    names = [m.name for m in graph.methods]
    if method is None and len(names) == 1:
        return graph.methods[0]
    if method in names:
        return graph.method(str(method))
    asked = f"{graph.name} has several methods" if method is None else f"{graph.name} has no method {method}"
    raise RunError(Problem("R114", "run", asked=asked, try_=(f"method= one of {', '.join(names)}",)))


def take(graph: Graph, method: Method, inputs: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[dict[int, Array], dict[str, int]]:
    """Input arrays by id, and the symbols' values. All problems at once, as a RunError."""
    label = graph.name if len(graph.methods) == 1 and graph.name == method.name else f"{graph.name}.{method.name}"
    leaves = [leaf for i in method.inputs if isinstance(leaf := graph[i], Leaf)]
    wrong: list[Problem] = []
    lists = len(method.ragged) > 0 and len(inputs) + len(named) < len(leaves)
    wanted = [leaf for leaf in leaves if leaf.id not in method.ragged.values()] if lists else leaves
    given = dict(zip((leaf.name for leaf in wanted), inputs, strict=False))
    signature = ", ".join(f"{leaf.name}: {graph.declared(method, leaf.id)}" for leaf in wanted) or "none"
    if len(inputs) > len(wanted):
        wrong.append(problem("R101", f"{label}: {len(inputs)} inputs given, expected {signature}"))
    for name, value in named.items():
        if name in given:
            wrong.append(problem("R102", f"{label}: {name} is given twice, by position and by name"))
        elif name not in {leaf.name for leaf in wanted}:
            near = get_close_matches(name, [leaf.name for leaf in wanted])
            wrong.append(problem("R103", f"{label}: there is no input {name}", *(f"did you mean {n}" for n in near)))
        else:
            given[name] = value
    missing = [leaf for leaf in wanted if leaf.name not in given]
    wrong += [problem("R101", f"{label}: {leaf.name} is missing, expected {graph.declared(method, leaf.id)}") for leaf in missing]
    if lists and not wrong:
        given |= padded([(leaf, graph[method.ragged[leaf.id]].name) for leaf in wanted if leaf.id in method.ragged], given, label)
    arrays: dict[int, Array] = {}
    for leaf in leaves:
        if leaf.name not in given:
            continue
        made = (as_count if leaf.id in method.counts else as_array)(leaf, given[leaf.name], label)
        if isinstance(made, Problem):
            wrong.append(made)
        else:
            arrays[leaf.id] = made
    if wrong:
        raise RunError(wrong)
    symbols = bind([(leaf, arrays[leaf.id]) for leaf in leaves], label, wrong, method.counts)
    if wrong:
        raise RunError(wrong)
    return arrays, symbols


def bind(tensors: list[tuple[Leaf, Array]], label: str, wrong: list[Problem], counts: Container[int] = ()) -> dict[str, int]:
    """The value of every symbol; disagreements go to `wrong`. `counts` are the ids of inputs that are given as a number."""
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
                wrong.append(problem("R105", f"{label}: {leaf.name} has extent {e}, which no input determines"))
            elif evaluate(e, symbols) != n:
                whole = f"is {n}, expected {e}" if leaf.id in counts else f"has shape {seen(leaf, array)}, expected {declared(leaf)}"
                both = f"{name} is {symbols[name]} in {origin[name]}, but {n} in {leaf.name}" if name else f"{leaf.name} {whole}"
                wrong.append(problem("R105", f"{label}: {both}"))
    return symbols


def _plain(e: Extent) -> str | None:
    """The name, if e is one symbol."""
    if isinstance(e, int) or not e.is_atom:
        return None
    atom = e.terms[0][0][0]
    return atom.name if isinstance(atom, Symbol) else None
