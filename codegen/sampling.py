"""Inputs for trying a model out: random ones that suit its reads, or those of a file; and parameters that hide nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from fluorite.algo.cost import costs
from fluorite.algo.dtypes import kind
from fluorite.algo.errors import Problem, RunError
from fluorite.algo.expr import Read
from fluorite.algo.extent import Extent, evaluate, symbols_of
from fluorite.algo.extent_names import most_of
from fluorite.algo.graph import Graph, Method
from fluorite.algo.interpreter.weak import as_count
from fluorite.algo.parameters import initial_parameters
from fluorite.algo.rewriting import walk
from fluorite.algo.stages import Leaf

Array = np.ndarray[Any, Any]


def inputs_of(graph: Graph, method: Method) -> tuple[Leaf, ...]:
    return tuple(leaf for i in method.inputs if isinstance(leaf := graph[i], Leaf))


def random_inputs(graph: Graph, method: str, extents: Mapping[str, int], seed: int = 0) -> tuple[Array, ...]:
    """One array per input, a function of the seed alone. Integers that are used as an index stay within what they index."""
    chosen = graph.method(method)
    limits = index_limits(graph, chosen, extents)
    return tuple(
        _random(leaf, tuple(evaluate(e, extents) for e in leaf.shape), seed, limits.get(leaf.id)) for leaf in inputs_of(graph, chosen)
    )


def index_limits(graph: Graph, method: Method, extents: Mapping[str, int]) -> dict[int, int]:
    """For every input whose values are used as an index directly: the smallest extent that it indexes. Lengths are at most their extent."""
    wanted, found = set(method.inputs), dict[int, int]()
    for s in graph.stages_of(method.name):
        for read in s.reads:
            for size, index in zip(graph[read.source].shape, read.index, strict=True):
                for inner in walk(index):
                    if isinstance(inner, Read) and inner.source in wanted:
                        limit = max(1, evaluate(size, extents))
                        found[inner.source] = min(limit, found.get(inner.source, limit))
    for tensor, lengths in method.ragged.items():
        found[lengths] = evaluate(graph[tensor].shape[1], extents) + 1
    return found


def _random(leaf: Leaf, shape: tuple[int, ...], seed: int, limit: int | None) -> Array:
    key = hashlib.sha256(f"{seed}\0{leaf.path}".encode()).digest()
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key[:16], "little")))
    match kind(leaf.dtype):
        case "bool":
            return generator.integers(0, 2, shape).astype(bool)
        case "float":
            made: Any = generator.random(shape) if seed % 2 else generator.standard_normal(shape)
            return np.asarray(made, dtype=leaf.dtype)
    info = np.iinfo(leaf.dtype)
    if limit is not None:
        return generator.integers(0, min(limit, int(info.max) + 1), shape).astype(leaf.dtype)
    low, high = (0, 256) if info.min == 0 else (-100, 101)
    return generator.integers(low, high, shape).astype(leaf.dtype)


def as_stored(graph: Graph, parameters: Mapping[str, Array]) -> dict[str, Array]:
    """The parameters in the types that the graph has for them."""
    types = {t.path: np.dtype(t.dtype) for t in graph.leaves}
    with np.errstate(all="ignore"):
        return {name: array.astype(types.get(name, array.dtype), copy=False) for name, array in parameters.items()}


def sample_parameters(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Parameters for checking: initial ones, but those that start out all alike are perturbed, so that none drops out of the result.

    State only grows: it may be a sum of squares, and its root is taken.
    """
    kinds = {t.path: t.kind for t in graph.leaves}
    made = initial_parameters(graph, seed)
    for path, array in made.items():
        if array.size and array.dtype.kind == "f" and (array == array.flat[0]).all():
            key = hashlib.sha256(f"{seed}\1{path}".encode()).digest()
            generator = np.random.Generator(np.random.Philox(key=int.from_bytes(key[:16], "little")))
            noise = generator.standard_normal(array.shape)
            made[path] = (array + 0.1 * (np.abs(noise) if kinds[path] == "state" else noise)).astype(array.dtype)
    return made


def read_inputs(source: str | Path | Mapping[str, Any]) -> dict[str, Array]:
    """Arrays by input name, from a mapping, an .npz file or a folder of .npy files. Nothing is unpickled. Raises RunError."""
    if isinstance(source, Mapping):
        return {name: np.asarray(value) for name, value in source.items()}
    path = Path(source)
    try:
        if path.is_dir():
            return {file.stem: np.load(file, allow_pickle=False) for file in sorted(path.glob("*.npy"))}
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, AttributeError, TypeError, EOFError) as error:
        why = (
            error.strerror if isinstance(error, OSError) and error.strerror else "it is no .npz file of arrays, and no folder of .npy files"
        )
        raise RunError(
            Problem("R130", "run", asked=f"the inputs {path} cannot be read", why=why, try_=("numpy.savez(file, image=array)",))
        ) from None


def given_inputs(graph: Graph, method: str, arrays: Mapping[str, Array]) -> tuple[Array, ...] | None:
    """The method's inputs among the arrays, named NAME or METHOD/NAME; None if none is there. Raises RunError for some but not all."""
    leaves = inputs_of(graph, graph.method(method))
    found = {leaf.name: arrays.get(f"{method}/{leaf.name}", arrays.get(leaf.name)) for leaf in leaves}
    missing = [name for name, array in found.items() if array is None]
    if missing and len(missing) < len(found):
        raise RunError(
            Problem(
                "R101",
                "run",
                asked=f"{method}: the inputs lack {', '.join(missing)}",
                why="some inputs of the method are given, so all must be",
            )
        )
    if missing:
        return None
    counts = graph.method(method).counts
    return tuple(_given(leaf, array, leaf.id in counts) for leaf in leaves if (array := found[leaf.name]) is not None)


def _given(leaf: Leaf, array: Array, counts: bool) -> Array:
    """An input as kernels have it: of a number that is an extent, an array of no elements with it. Raises RunError."""
    made = as_count(leaf, array, "the inputs") if counts else array
    if isinstance(made, Problem):
        raise RunError(made)
    return made


def work(graph: Graph, method: str) -> Callable[[Mapping[str, int]], tuple[int, int]]:
    """Operations and elements of one call, as far as they decide how long the interpreter takes, as a function of the extents."""
    found, inputs = costs(graph, method).values(), inputs_of(graph, graph.method(method))

    def at(extents: Mapping[str, int]) -> tuple[int, int]:
        operations = sum(number(e, extents) for c in found for e in (c.flops, c.integer_ops, c.loads))
        elements = sum(number(c.points, extents) for c in found) + sum(prod(number(e, extents) for e in t.shape) for t in inputs)
        return operations, elements

    return at


def number(e: Extent, extents: Mapping[str, int]) -> int:
    return e if isinstance(e, int) else evaluate(e, {s: most_of(s) or 0 if s not in extents else extents[s] for s in symbols_of(e)})


def extents_text(extents: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in extents.items())


__all__ = [
    "Array",
    "as_stored",
    "extents_text",
    "given_inputs",
    "index_limits",
    "inputs_of",
    "number",
    "random_inputs",
    "read_inputs",
    "sample_parameters",
    "work",
]
