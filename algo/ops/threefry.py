"""Threefry-2x32 with 20 rounds: random bits as a pure function of a key and a counter.

J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. Everything is arithmetic of unsigned
integers, so the bits are the same in the interpreter and in every kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..expr import Expr, as_expr, cast
from ..extent import Extent
from ..tensor import Tensor
from ..trace import build_stage

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_EACH = 0x1_0000_0001  # times a 32-bit word: the word twice, side by side


def _word(value: Any) -> Expr:
    return cast(value, "uint32")


def _rotated(x: Expr, by: int) -> Expr:
    """The bits of a 32-bit word moved to the left, round the end. x stands in it once, so that expressions do not double each round."""
    return cast((cast(x, "uint64") * cast(_EACH, "uint64")) >> cast(32 - by, "uint64"), "uint32")


def _packed(low: Expr, high: Expr) -> Expr:
    return cast(low, "uint64") | (cast(high, "uint64") << cast(32, "uint64"))


def words(packed: Expr) -> tuple[Expr, Expr]:
    """The first and the second word of a block."""
    return cast(packed, "uint32"), cast(packed >> cast(32, "uint64"), "uint32")


def blocks(
    key: Tensor, names: Sequence[str], extents: Mapping[str, Extent], counter: Callable[..., tuple[Any, Any]], name: str | None = None
) -> Tensor:
    """One block of 64 bits for each index, of the counter's two words there: uint64, the first word below. Six stages; the key has two
    words."""

    def at(k: int) -> Expr:
        """Word k of the extended key."""
        first: Expr = key[(as_expr(0),)]
        second: Expr = key[(as_expr(1),)]
        return (first, second, first ^ second ^ _word(_PARITY))[k % 3]

    def start(*index: Expr) -> Expr:
        x, y = counter(*index)
        return _packed(_word(x) + at(0), _word(y) + at(1))

    state = build_stage(names, start, name="start", extents=extents)
    for group in range(5):

        def four_rounds(*index: Expr, state: Tensor = state, group: int = group) -> Expr:
            x, y = words(state[index] if index else state.as_scalar())
            for rotation in _ROTATIONS[group % 2]:
                x = x + y
                y = _rotated(y, rotation) ^ x
            return _packed(x + at(group + 1), y + at(group + 2) + _word(group + 1))

        state = build_stage(names, four_rounds, name=name if group == 4 else "rounds", extents=extents)
    return state
