"""The values between the kernels of one method: what each kernel makes, reads and frees, and the most that is there at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fluorite.algo.dtypes import itemsize
from fluorite.algo.extent import volume
from fluorite.algo.graph import Graph

from .typical import guess


@dataclass(frozen=True, eq=False)
class Values:
    """By group of stages: the bytes that it makes, and the values (stages) that it reads of others. By value: its bytes, and the groups
    that read it. What leaves the method is not freed; what is packed at load, and new values of state, which are written over old ones,
    take nothing."""

    makes: Mapping[int, int]
    reads: Mapping[int, tuple[int, ...]]
    sizes: Mapping[int, int]
    readers: Mapping[int, tuple[int, ...]]

    def peak(self, order: Iterable[int]) -> int:
        """The most bytes that are there at a time when groups run in this order."""
        left = {value: len(readers) for value, readers in self.readers.items()}
        now = most = 0
        for group in order:
            now += self.makes[group]
            most = max(most, now)
            for value in self.reads[group]:
                left[value] -= 1
                if not left[value]:
                    now -= self.sizes[value]
        return most

    @property
    def least(self) -> int:
        """No order takes less: a group finds all that it reads beside what it makes."""
        return max((made + sum(self.sizes[v] for v in self.reads[group]) for group, made in self.makes.items()), default=0)


def values_of(g: Graph, root: Callable[[int], int], members_of: Mapping[int, Sequence[int]], extent: int) -> Values:
    """The values of these groups, where each symbolic extent is `extent`."""
    makes = dict.fromkeys(members_of, 0)
    reads: dict[int, list[int]] = {group: [] for group in members_of}
    sizes: dict[int, int] = {}
    readers: dict[int, tuple[int, ...]] = {}
    for group, members in members_of.items():
        for i in members:
            s = g.stage(i)
            assert s is not None
            others = tuple(dict.fromkeys(r for c in g.consumers[i] if (r := root(c.id)) != group))
            lasting = i in g.updates or g.is_fixed(s, s.method)
            size = 0 if lasting else guess(volume(s.shape), extent) * itemsize(s.dtype)
            if others or i in g.outputs:
                makes[group] += size
            if others and i not in g.outputs:
                sizes[i], readers[i] = size, others
                for reader in others:
                    reads[reader].append(i)
    return Values(makes, {group: tuple(found) for group, found in reads.items()}, sizes, readers)
