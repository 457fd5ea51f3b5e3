"""The values between kernels that are there while kernels run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from fluorite.algo.dtypes import itemsize
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph

from .typical import guess


class Alive:
    """What groups of stages take and free: by id of a value, the groups that have yet to read it."""

    def __init__(self, g: Graph, root: Callable[[int], int], members_of: Mapping[int, Sequence[int]]) -> None:
        self.reads: dict[int, set[int]] = {r: set() for r in members_of}
        self.makes: dict[int, int] = dict.fromkeys(members_of, 0)
        self.readers: dict[int, set[int]] = {}
        self.sizes: dict[int, int] = {}
        for r, members in members_of.items():
            for i in members:
                readers = {root(c.id) for c in g.consumers[i]} - {r}
                if not readers and i not in g.outputs:
                    continue
                self.sizes[i] = guess(volume(g[i].shape)) * itemsize(g[i].dtype)
                if i not in g.updates:  # a new value of state is written over the old one
                    self.makes[r] += self.sizes[i]
                if i not in g.outputs:
                    self.readers[i] = readers
                    for reader in readers:
                        self.reads[reader].add(i)

    def growth(self, group: int, ready: Container[int]) -> float:
        """Bytes that are there after the group has run beyond those before: fewer if it is the last to read large values. Several groups
        that are all `ready` to read a value for the last time share in what this frees."""
        freed = sum(self.sizes[i] / len(self.readers[i]) for i in self.reads[group] if all(r in ready for r in self.readers[i]))
        return self.makes[group] - freed

    def run(self, group: int) -> None:
        for i in self.reads[group]:
            self.readers[i].discard(group)
