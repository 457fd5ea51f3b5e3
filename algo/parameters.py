"""Values of a Program's parameters and state: initial ones, drawn independently of the order of declaration, and given ones checked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from .complex.arrays import parts_of
from .dtypes import paired
from .errors import AlgorithmError, Problem, RunError
from .extent import Extent
from .graph import Graph
from .stages import Leaf

Array = np.ndarray[Any, Any]


def generator(seed: int, path: str) -> np.random.Generator:
    """Random numbers of one parameter: a function of the seed and its path alone."""
    key = hashlib.sha256(f"{seed}\0{path}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(key[:16], "little")))


def parameter_leaves(graph: Graph) -> dict[str, Leaf]:
    return {leaf.path: leaf for leaf in graph.leaves if leaf.kind in ("parameter", "state")}


def initial_parameters(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """path -> array of the declared dtype and shape. An initialiser is an array, a number, f(generator, shape), or None for zeros.

    Raises AlgorithmError: a symbolic shape, or an initialiser that gives something of another shape.
    """
    return {path: _initial(leaf, seed) for path, leaf in parameter_leaves(graph).items()}


def _initial(leaf: Leaf, seed: int) -> Array:
    stored = tuple(_fixed(e, leaf) for e in leaf.shape)
    value = leaf.value
    if value is None:
        return np.zeros(stored, leaf.dtype)
    shape, dtype = (stored[:-1], paired(leaf.dtype)) if leaf.complex else (stored, leaf.dtype)
    if callable(value):
        value = _called(value, leaf, seed, shape)
    found = np.asarray(value)
    if found.dtype.kind not in ("biufc" if leaf.complex else "biuf") and found.dtype != np.dtype(leaf.dtype):
        raise AlgorithmError(
            Problem(
                "A141", path=leaf.path, asked=f"an initial value of type {found.dtype.name}", why="it is a number, or an array of numbers"
            )
        )
    if found.shape not in ((), shape):
        raise AlgorithmError(
            Problem(
                "A122",
                path=leaf.path,
                asked=f"an initial value of shape {list(found.shape)}",
                why=f"{leaf.path} has shape {list(shape)}",
                try_=(f"a value of shape {list(shape)}, or a number",),
            )
        )
    return parts_of(np.array(np.broadcast_to(found, shape), dtype, order="C"))


def _called(init: Any, leaf: Leaf, seed: int, shape: tuple[int, ...]) -> Any:
    try:
        draw = getattr(init, "complex", init) if leaf.complex else init
        return draw(generator(seed, leaf.path), shape)
    except (AlgorithmError, MemoryError):
        raise
    except Exception as error:
        problem = Problem(
            "A141",
            path=leaf.path,
            asked=f"the initialiser of {leaf.path} raised {type(error).__name__}: {error}",
            why=f"it was called with a NumPy generator and the shape {shape}",
        )
        raise AlgorithmError(problem) from error


def _fixed(e: Extent, leaf: Leaf) -> int:
    if not isinstance(e, int):
        raise AlgorithmError(
            Problem(
                "A140",
                path=leaf.path,
                asked=f"{leaf.path} with extent {e}",
                why="a parameter's shape is fixed when the Program is made",
                try_=("an integer",),
            )
        )
    return e


def given_parameters(graph: Graph, given: Mapping[str, Any]) -> dict[str, Array]:
    """The given values by path, complete and of the declared shapes and dtypes, complex ones as their parts.

    Raises RunError with all that is wrong.
    """
    leaves = parameter_leaves(graph)
    wrong = [_problem("R110", f"{graph.name} has no parameter {name}") for name in given if name not in leaves]
    arrays: dict[str, Array] = {}
    for path, leaf in leaves.items():
        if path not in given:
            wrong.append(_problem("R110", f"parameter {path} is missing"))
            continue
        array = np.asarray(given[path])
        array = parts_of(array) if leaf.complex else array
        expected = f"expected {paired(leaf.dtype)}{list(leaf.shape[:-1])}" if leaf.complex else f"expected {leaf.dtype}{list(leaf.shape)}"
        if array.dtype != np.dtype(leaf.dtype):
            wrong.append(_problem("R111", f"{path} is {array.dtype.name}, {expected}", f"value.astype(np.{leaf.dtype})"))
        elif array.shape != leaf.shape:
            wrong.append(_problem("R111", f"{path} has shape {list(array.shape)}, {expected}"))
        else:
            arrays[path] = array
    if wrong:
        raise RunError(wrong)
    return arrays


def _problem(code: str, asked: str, *try_: str) -> Problem:
    return Problem(code, "run", asked=asked, try_=try_)
