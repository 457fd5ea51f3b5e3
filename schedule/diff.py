"""What differs between two plans, by path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .notation.tree import Items, Keys, Leaf, Tree
from .notation.yaml_writer import flow

if TYPE_CHECKING:
    from .plan import ExecutionPlan


@dataclass(frozen=True)
class Difference:
    """One path at which two plans differ, with both values as YAML on one line; None where a plan says nothing."""

    path: str
    old: str | None
    new: str | None

    def text(self) -> str:
        """`path: old -> new`."""
        return f"{self.path}: {'(nothing)' if self.old is None else self.old} -> {'(nothing)' if self.new is None else self.new}"


def diff(old: ExecutionPlan, new: ExecutionPlan) -> tuple[Difference, ...]:
    """All differences from `old` to `new`, in the order of the sections. Values that only repeat a default are no difference."""
    if old == new:
        return ()
    return tuple(_between(_plain(old), _plain(new), ()))


def _plain(plan: ExecutionPlan) -> Tree:
    """The plan as data, without what only repeats a default."""
    return type(plan).from_yaml(plan.to_yaml()).tree()


def _between(old: Tree | None, new: Tree | None, path: tuple[str, ...]) -> Iterator[Difference]:
    match old, new:
        case Keys(), Keys():
            for name in dict.fromkeys((*old.names, *new.names)):
                yield from _between(old.get(name), new.get(name), (*path, name))
        case Items(left), Items(right) if len(left) == len(right) and all(_alike(a, b) for a, b in zip(left, right, strict=True)):
            for i, (a, b) in enumerate(zip(left, right, strict=True)):
                yield from _between(a, b, (*path, str(i)))
        case _:
            texts = [None if tree is None else flow(tree) for tree in (old, new)]
            if texts[0] != texts[1]:
                yield Difference("/".join(path), texts[0], texts[1])


def _alike(old: Tree, new: Tree) -> bool:
    """Whether two list elements are the same thing with other arguments."""
    if isinstance(old, Keys) and isinstance(new, Keys):
        return old.names == new.names
    return isinstance(old, Leaf) and isinstance(new, Leaf)
