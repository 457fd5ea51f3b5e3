"""In which order a product of several operands is contracted, two at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations

Labels = frozenset[str]
_EXHAUSTIVE = 8  # operands up to which every order is compared: 3**8 splits


def order(operands: Sequence[Labels], kept: Labels, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
    """The positions contracted at each step, in the list of what is left then: a result takes the place of its first operand.

    The order costs fewest multiplications: all orders are compared for up to 8 operands, and the cheapest pair is taken first beyond.
    """
    n = len(operands)
    if n <= 2:
        return [tuple(range(n))]
    pairs = _cheapest(operands, kept, sizes) if n <= _EXHAUSTIVE else _greedy(operands, kept, sizes)
    live = [1 << k for k in range(n)]
    steps: list[tuple[int, ...]] = []
    for a, b in pairs:
        first, second = sorted((live.index(a), live.index(b)))
        steps.append((first, second))
        live[first] = a | b
        del live[second]
    return steps


def _volume(labels: Labels, sizes: Mapping[str, int]) -> int:
    total = 1
    for n in labels:
        total *= sizes[n]
    return total


def _cheapest(operands: Sequence[Labels], kept: Labels, sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    """Sets of operands are bit masks; the best tree of a set is the best split of it."""
    everything = (1 << len(operands)) - 1

    @cache
    def left(mask: int) -> Labels:
        """The labels of the product of a set, once what no other operand and not the result has is summed."""
        inside = frozenset[str]().union(*(o for k, o in enumerate(operands) if mask >> k & 1))
        outside = kept.union(*(o for k, o in enumerate(operands) if not mask >> k & 1))
        return operands[mask.bit_length() - 1] if mask & (mask - 1) == 0 else inside & outside

    @cache
    def best(mask: int) -> tuple[int, tuple[tuple[int, int], ...]]:
        if mask & (mask - 1) == 0:
            return 0, ()
        found: tuple[int, tuple[tuple[int, int], ...]] | None = None
        part = (mask - 1) & mask
        while part:
            other = mask ^ part
            if part & (mask & -mask):  # each split once: the part with the first operand
                (a, first), (b, second) = best(part), best(other)
                cost = a + b + _volume(left(part) | left(other), sizes)
                if found is None or cost < found[0]:
                    found = cost, (*first, *second, (part, other))
            part = (part - 1) & mask
        assert found is not None
        return found

    return list(best(everything)[1])


def _greedy(operands: Sequence[Labels], kept: Labels, sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    live = {1 << k: o for k, o in enumerate(operands)}
    pairs: list[tuple[int, int]] = []
    while len(live) > 1:
        a, b = min(combinations(live, 2), key=lambda p: _volume(live[p[0]] | live[p[1]], sizes))
        inside = live.pop(a) | live.pop(b)
        live[a | b] = inside & kept.union(*live.values())
        pairs.append((a, b))
    return pairs
