"""Nests of tensors: lists, tuples and dicts, with Programs and modules as the dicts of their parameters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..expr import refuse
from ..graph import map_tree


def leaves(tree: Any) -> Iterator[Any]:
    match tree:
        case dict():
            for v in tree.values():
                yield from leaves(v)
        case list() | tuple():
            for v in tree:
                yield from leaves(v)
        case _:
            yield tree


def refilled(tree: Any, parts: Any) -> Any:
    """The nest with other leaves in it."""
    given = iter(parts)
    return map_tree(lambda _: next(given), tree)


def same_shape(a: Any, b: Any, what: str) -> None:
    """Raises AlgorithmError where two nests differ in how they are built."""
    if described(a) != described(b):
        raise refuse("A174", f"{what} is {described(b)}", f"{described(a)} was expected")


def described(tree: Any) -> str:
    match tree:
        case dict():
            return "{" + ", ".join(f"{k!r}: {described(v)}" for k, v in tree.items()) + "}"
        case list() | tuple():
            inner = ", ".join(map(described, tree))
            return f"[{inner}]" if isinstance(tree, list) else f"({inner})"
    return "a tensor"


__all__ = ["described", "leaves", "refilled", "same_shape"]
