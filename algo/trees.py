"""Nests of tensors: lists, tuples and dicts, one in another. A complex tensor is a nest of its parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .compound import Compound
from .expr import refuse
from .graph import map_tree


def leaves(tree: Any) -> list[Any]:
    """The tensors of a nest, in order. None is a nest without any."""
    match tree:
        case None:
            return []
        case dict():
            return [x for v in tree.values() for x in leaves(v)]
        case list() | tuple():
            return [x for v in tree for x in leaves(v)]
        case Compound():
            return list(tree.parts())
    return [tree]


def refilled(tree: Any, parts: Iterable[Any]) -> Any:
    """The nest with other leaves in it."""
    given = iter(parts)
    return map_tree(lambda t: None if t is None else next(given), tree)


def described(tree: Any) -> str:
    """How a nest is built, in words."""
    match tree:
        case None:
            return "nothing"
        case dict():
            return "{" + ", ".join(f"{k}: {described(v)}" for k, v in tree.items()) + "}"
        case list() | tuple():
            inner = ", ".join(map(described, tree))
            return f"[{inner}]" if isinstance(tree, list) else f"({inner})"
        case Compound():
            return tree.what
    return "a tensor"


def form_of(value: Any) -> str:
    """What a function gave that was to give a nest of another form, in words."""
    from .tensor import Tensor

    return described(value) if all(isinstance(x, Tensor) for x in leaves(value)) else type(value).__name__


def same_shape(a: Any, b: Any, what: str) -> None:
    """Raises AlgorithmError where two nests differ in how they are built."""
    if described(a) != described(b):
        raise refuse("A174", f"{what} is {described(b)}", f"{described(a)} was expected")


__all__ = ["described", "form_of", "leaves", "refilled", "same_shape"]
