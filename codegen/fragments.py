"""The instructions of `schedule.intrinsics` on registers: dot products of vectors, and the tiles of AMX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from struct import pack, unpack
from typing import Any

from fluorite.algo.dtypes import itemsize
from fluorite.algo.expr import Axis, Expr, as_expr
from fluorite.algo.linear import simplify
from fluorite.algo.rewriting import substitute
from fluorite.schedule.intrinsics import INTRINSICS, Intrinsic

from . import warps
from .real_functions import CALLS
from .statements import Matrix, MultiplyFragments, StartFragments, StoreFragments, Tensors
from .tvm_adapter import element_address, local_words, processor_instruction, tirx

TILES = 8
"""Tile registers of a processor."""
_SIGNS = {"int8": "s", "uint8": "u"}

Grid = Sequence[tuple[Axis, int]]
Index = Callable[[Expr], Any]


def emitted(s: Tensors, buffers: Mapping[int, Any], dtypes: Mapping[int, str], index: Index, serial: bool) -> Iterator[Any]:
    """The statements, one after the other. `index` makes TVM's expression of one; `dtypes` are the language's; `serial`: a warp is one
    thread."""
    instruction = INTRINSICS[s.intrinsic]
    if instruction.fragment == "warp":
        places = [] if isinstance(s, StartFragments) else [point for _, point in _points(s.grid)]

        def at(x: Matrix, number: int) -> list[Any]:
            return _at(x, places[number], index)

        return (warps.serial if serial else warps.emitted)(instruction, s, buffers, dtypes, at, lambda x: index(x.row))
    steps = _tiles if instruction.fragment == "tile" else _vectors
    return steps(instruction, s, buffers, dtypes, index)


def _points(grid: Grid) -> Iterator[tuple[int, dict[Axis, Expr]]]:
    """Number and position of every point of the grid."""
    positions = product(*(range(n) for _, n in grid))
    for number, at in enumerate(positions):
        yield number, {a: as_expr(v) for (a, _), v in zip(grid, at, strict=True)}


def _at(x: Matrix, point: Mapping[Axis, Expr], index: Index) -> list[Any]:
    return [index(simplify(substitute(i, point), {})) for i in x.index]


# ---------------------------------------------------------------- vectors
def _vectors(i: Intrinsic, s: Tensors, buffers: Mapping[int, Any], dtypes: Mapping[int, str], index: Index) -> Iterator[Any]:
    sums, n = buffers[s.fragments], i.columns

    def row(buffer: int, first: list[Any], lanes: int) -> Any:
        return tirx.BufferLoad(buffers[buffer], [*first[:-1], tirx.Ramp(first[-1], _number(1), lanes)])

    def place(number: int) -> list[Any]:
        return [_number(number), tirx.Ramp(_number(0), _number(1), n)]

    match s:
        case StartFragments():
            for number in range(s.count):
                yield tirx.BufferStore(sums, tirx.Broadcast(tirx.const(0, i.result), n), place(number))
        case MultiplyFragments():
            dot = CALLS[f"dot_{dtypes[s.a.buffer]}_{dtypes[s.b.buffer]}"]
            for number, point in _points(s.grid):
                a, b = row(s.a.buffer, _at(s.a, point, index), i.depth), row(s.b.buffer, _at(s.b, point, index), n * i.group)
                yield tirx.BufferStore(sums, dot(i.result, tirx.BufferLoad(sums, place(number)), a, b), place(number))
        case StoreFragments():
            for number, point in _points(s.grid):
                *outer, last = _at(s.to, point, index)
                to = [*outer, tirx.Ramp(last, _number(1), n)]
                yield tirx.BufferStore(buffers[s.to.buffer], tirx.BufferLoad(sums, place(number)), to)


# ---------------------------------------------------------------- tiles
def _tiles(i: Intrinsic, s: Tensors, buffers: Mapping[int, Any], dtypes: Mapping[int, str], index: Index) -> Iterator[Any]:
    """The fragments are the first tile registers. The others hold operands, the least recently used of which is loaded over."""

    def moved(name: str, register: int, x: Matrix, first: list[Any]) -> Any:
        stride = index(x.row) * _number(itemsize(dtypes[x.buffer]))
        return processor_instruction(name, _register(register), element_address(buffers[x.buffer], first), stride)

    match s:
        case StartFragments():
            allocated, address = local_words(f"{s.intrinsic}_shape", _configuration(i))
            yield from allocated
            yield processor_instruction("llvm.x86.ldtilecfg", address)
            for number in range(s.count):
                yield processor_instruction("llvm.x86.tilezero", _register(number))
        case MultiplyFragments():
            count = prod(n for _, n in s.grid)
            held: dict[tuple[int, tuple[Expr, ...]], int] = {}
            free = list(range(TILES - 1, count - 1, -1))
            for number, point in _points(s.grid):
                registers = []
                for x in (s.a, s.b):
                    key = (x.buffer, tuple(simplify(substitute(e, point), {}) for e in x.index))
                    if key not in held:
                        register = free.pop() if free else held.pop(next(iter(held)))
                        yield moved("llvm.x86.tileloadd64", register, x, _at(x, point, index))
                    else:
                        register = held.pop(key)
                    held[key] = register
                    registers.append(register)
                yield processor_instruction(_dot(dtypes[s.a.buffer], dtypes[s.b.buffer]), *map(_register, (number, *registers)))
        case StoreFragments():
            for number, point in _points(s.grid):
                yield moved("llvm.x86.tilestored64", number, s.to, _at(s.to, point, index))
            yield processor_instruction("llvm.x86.tilerelease")


def _dot(a: str, b: str) -> str:
    return "llvm.x86.tdpbf16ps" if a == "bfloat16" else f"llvm.x86.tdpb{_SIGNS[a]}{_SIGNS[b]}d"


def _configuration(i: Intrinsic) -> list[int]:
    """Palette 1 and the shape of every tile, 16 rows of 64 bytes, as ldtilecfg reads them."""
    text = bytearray(64)
    text[0] = 1
    for tile in range(TILES):
        text[16 + 2 * tile : 18 + 2 * tile] = pack("<H", 4 * i.columns)
        text[48 + tile] = i.rows
    return list(unpack("<8q", bytes(text)))


def _register(number: int) -> Any:
    return tirx.IntImm("int8", number)


def _number(n: int) -> Any:
    return tirx.IntImm("int64", n)


__all__ = ["emitted"]
