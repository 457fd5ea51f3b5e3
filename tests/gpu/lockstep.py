"""A device function executed in lock step, one NumPy lane a thread: what it finds no CPU run can.

It executes what the code generator gets, barriers included. An epoch is the time between two barriers. Found, with element and thread:
two threads that touch one element of memory within an epoch, at least one of them writing; two blocks that do so; a barrier that not all
threads reach; an index out of bounds; memory that is read before anything was written there. A barrier for shared memory alone ends no
epoch of global memory. An asynchronous copy reads at once, and writes as late as it may: when its thread waits for it. Not found: what code
generation does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from .lockstep_memory import Array, Memory, WatchedMemory, watched

Copied = tuple[Any, Array, Array, Array]
"""What an asynchronous copy writes, and where: buffer, index, values, threads."""
TURNS = 10_000
BARRIER, SHUFFLE = "fluorite_barrier", "fluorite_shuffle"

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Min": np.minimum,
    "Max": np.maximum,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
    "And": np.logical_and,
    "Or": np.logical_or,
    "RShift": np.right_shift,
    "LShift": np.left_shift,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Mod": np.fmod,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "sqrt": np.sqrt, "log": np.log, "tanh": np.tanh, "fabs": np.abs, "floor": np.floor, "expf": np.exp, "sqrtf": np.sqrt,
    "fabsf": np.abs, "tanhf": np.tanh, "logf": np.log, "floorf": np.floor,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "shift_left": np.left_shift, "shift_right": np.right_shift,
}  # fmt: skip
for _name in ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"):
    _type = np.dtype(getattr(ml_dtypes, _name, np.float16))
    _bits = np.dtype(f"uint{8 * _type.itemsize}")
    FUNCTIONS |= {
        f"fluorite_from_{_name}": lambda x, t=_type: np.ascontiguousarray(x).view(t).astype(np.float32),
        f"fluorite_to_{_name}": lambda x, t=_type, b=_bits: np.asarray(x, np.float32).astype(t).view(b),
        f"fluorite_round_{_name}": lambda x, t=_type: np.asarray(x, np.float32).astype(t).astype(np.float32),
    }


@dataclass
class Planted:
    """A fault put into a kernel: one barrier left out, one buffer an element too short, or no wait for copies. `barriers` are those met so
    far."""

    without_barrier: int | None = None
    short: str = ""
    without_wait: bool = False
    barriers: dict[Any, int] = field(default_factory=dict)


class Block(WatchedMemory):
    """One block of a launch."""

    def __init__(
        self,
        values: Mapping[Any, Any],
        blocks: Mapping[str, int],
        threads: Mapping[str, int],
        planted: Planted | None = None,
        touched: dict[int, list[Array]] | None = None,
    ) -> None:
        super().__init__(int(np.prod(list(threads.values()), dtype=int)), tuple(blocks.values()), {} if touched is None else touched)
        self.planted = planted or Planted()
        self.values: dict[Any, Any] = dict(values)
        self.tags: dict[str, Any] = {}
        rest = self.threads
        for lane in "xyz":
            n = threads.get(f"threadIdx.{lane}", 1)
            self.tags[f"threadIdx.{lane}"], rest = (rest % n)[:, None], rest // n
        self.tags |= {tag: np.array([[n]]) for tag, n in blocks.items()}
        self.copies: list[list[Copied]] = [[]]  # groups, the newest last, which is still open

    # ------------------------------------------------------------ statements
    def run(self, s: Any, active: Array) -> None:
        match type(s).__name__:
            case "SeqStmt":
                for each in s.seq:
                    self.run(each, active)
            case "AttrStmt":
                if s.attr_key == "thread_extent":
                    self.values[s.node.var] = self.tags[s.node.thread_tag]
                self.run(s.body, active)
            case "Bind":
                self.values[s.var] = self.value(s.value, active)
            case "AllocBuffer":
                self.allocate(s.buffer)
            case "DeclBuffer":
                found = self.values[s.data if s.data is not None else s.buffer.data]
                if not isinstance(found, Memory):
                    found = watched(s.buffer.name, "global", found, np.ones(found.size, bool))
                self.memory[s.buffer] = found
            case "For":
                low, extent = (np.broadcast_to(self.value(e, active), (self.count, 1)) for e in (s.min, s.extent))
                for i in range(int(extent[active].max(initial=0))):
                    self.values[s.loop_var] = low + i
                    self.run(s.body, active & (i < extent[:, 0]))
            case "While":
                self.repeat(s, active)
            case "IfThenElse":
                holds = np.broadcast_to(self.value(s.condition, active), (self.count, 1))[:, 0].astype(bool)
                for case, mask in ((s.then_case, active & holds), (s.else_case, active & ~holds)):
                    if case is not None and mask.any():
                        self.run(case, mask)
            case "BufferStore":
                self.store(s.buffer, self.value(s.indices[0], active), self.value(s.value, active), active)
            case "Evaluate":
                self.evaluate(s.value, active)
            case other:
                raise NotImplementedError(other)

    def repeat(self, s: Any, active: Array) -> None:
        for _ in range(TURNS):
            holds = np.broadcast_to(self.value(s.condition, active), (self.count, 1))[:, 0].astype(bool)
            active = active & holds
            if not active.any():
                return
            self.run(s.body, active)
        self.fault(f"a loop that has not ended after {TURNS} turns")

    def evaluate(self, e: Any, active: Array) -> None:
        if type(e).__name__ != "Call":
            return
        name = str(e.args[0].value if e.args and hasattr(e.args[0], "value") else "")
        if "tvm_storage_sync" not in e.op.name and name != BARRIER:
            if name.startswith("__pipeline"):
                self.copy(name, list(e.args[1:]), active)
            elif name.startswith("fluorite_"):
                self.by_warps(name, list(e.args[1:]), active)
            else:
                self.value(e, active)
            return
        if self.planted.barriers.setdefault(e, len(self.planted.barriers)) == self.planted.without_barrier:
            return
        if not active.all():
            self.fault(f"barrier that thread {int(np.argmin(active))} and {int((~active).sum()) - 1} others do not reach")
        for kind in ("shared", "global") if name == BARRIER else ("shared",):
            self.epochs[kind] += 1

    def copy(self, name: str, args: list[Any], active: Array) -> None:
        """Asynchronous copies, in groups."""
        if name == "__pipeline_commit":
            if not active.all():
                self.fault("a group of copies that some threads do not commit")
            self.copies.append([])
        elif name == "__pipeline_wait_prior":
            newest = int(args[0].value)
            done = len(self.copies) - 1 - newest if not self.planted.without_wait else 0
            for group in self.copies[: max(done, 0)]:
                for each in group:
                    self.store(*each)
            del self.copies[: max(done, 0)]
        else:
            to, source = (a.args[0] for a in args[:2])
            data = self.buffer_of(to)
            elements = np.arange(int(args[2].value) // np.dtype(str(data.dtype)).itemsize)[None]
            at, place = (np.asarray(self.value(x.indices[0], active)) + elements for x in (source, to))
            self.copies[-1].append((data, place, self.load(self.buffer_of(source), at, active), active))

    def by_warps(self, name: str, args: list[Any], active: Array) -> None:
        """An instruction of tensor cores, by its meaning. Thread t of a warp holds elements 8t to 8t + 7, and touches those of operands."""
        if not active.all() or self.count % 32:
            self.fault(f"{name} by some threads of a warp")
            return
        element = self.threads[:, None] % 32 * 8 + np.arange(8)[None]

        def place(e: Any, rows: Any) -> tuple[Any, Array]:
            first = np.broadcast_to(self.value(e.args[0].indices[0], active), (self.count, 1))
            if (first.reshape(-1, 32) != first.reshape(-1, 32)[:, :1]).any() or (first % 8).any():
                self.fault(f"{name}: the threads of a warp give different matrices, or one that is not aligned")
            return self.buffer_of(e.args[0]), first + element // 16 * self.value(rows, active) + element % 16

        def matrices(e: Any, rows: Any) -> Array:
            found = self.load(*place(e, rows), active)
            kinds = {"half": np.float16, "__nv_bfloat16": ml_dtypes.bfloat16}
            return np.ascontiguousarray(found).reshape(-1, 16, 16).view(kinds[name.split("<")[1].strip(">")]).astype(np.float32)

        own = args[0] if name.startswith("fluorite_multiply") else args[2]
        buffer, start = self.buffer_of(own.args[0]), self.value(own.args[0].indices[0], active)
        held = self.load(buffer, np.asarray(start) + np.arange(8)[None], active)
        if name.startswith("fluorite_store"):
            self.store(*place(args[0], args[1]), held, active)
            return
        c = np.ascontiguousarray(held).reshape(-1, 16, 16) + matrices(args[1], args[2]) @ matrices(args[3], args[4])
        self.store(buffer, np.asarray(start) + np.arange(8)[None], c.reshape(self.count, 8), active)

    @staticmethod
    def buffer_of(e: Any) -> Any:
        return e.buffer if hasattr(e, "buffer") else e.source

    def allocate(self, b: Any) -> None:
        size = int(np.prod([int(n) for n in b.shape], dtype=int)) - (b.name == self.planted.short)
        if b.scope().startswith("shared"):
            self.memory[b] = watched(b.name, "shared", np.zeros(size, str(b.dtype)), np.zeros(size, bool))
        else:
            self.memory[b] = Memory(b.name, "local", np.zeros((self.count, size), str(b.dtype)), np.zeros((self.count, size), bool))
        self.values[b.data] = self.memory[b]

    # ------------------------------------------------------------ values, as (threads or 1) x lanes
    def value(self, e: Any, active: Array) -> Any:
        name = type(e).__name__
        if name in BINARY:
            return BINARY[name](self.value(e.a, active), self.value(e.b, active))
        match name:
            case "IntImm" | "FloatImm":
                return np.dtype(str(e.ty.dtype)).type(e.value)
            case "Var":
                return self.values[e]
            case "Div":
                return self.divide(self.value(e.a, active), self.value(e.b, active))
            case "Not":
                return np.logical_not(self.value(e.a, active))
            case "Cast":
                return np.asarray(self.value(e.value, active)).astype(str(e.ty.dtype).split("x")[0])
            case "Select":
                return np.where(self.value(e.condition, active), self.value(e.true_value, active), self.value(e.false_value, active))
            case "Ramp":
                return np.asarray(self.value(e.base, active)) + np.asarray(self.value(e.stride, active)) * np.arange(int(e.lanes))[None]
            case "Broadcast":
                return self.value(e.value, active)
            case "TensorLoad" | "BufferLoad":
                return self.load(self.buffer_of(e), self.value(e.indices[0], active), active)
            case "Call":
                return self.call(e, active)
        raise NotImplementedError(name)

    @staticmethod
    def divide(a: Any, b: Any) -> Any:
        kind = np.result_type(a, b)
        return np.divide(a, b) if kind.kind == "f" else np.trunc(np.divide(a, b)).astype(kind)

    def call(self, e: Any, active: Array) -> Any:
        op, args = e.op.name.split(".")[-1], list(e.args)
        if op in ("call_pure_extern", "call_extern"):
            op, args = str(args[0].value), args[1:]
        if op == "if_then_else":
            holds = np.broadcast_to(self.value(args[0], active), (self.count, 1)).astype(bool)
            taken, other = active & holds[:, 0], active & ~holds[:, 0]
            a = self.value(args[1], taken) if taken.any() else 0
            b = self.value(args[2], other) if other.any() else 0
            return np.where(holds, a, b).astype(str(e.ty.dtype).split("x")[0])
        if op == SHUFFLE:
            return self.shuffled(np.broadcast_to(self.value(args[0], active), (self.count, 1)), int(args[1].value), active)
        return FUNCTIONS[op](*(self.value(a, active) for a in args))

    def shuffled(self, values: Array, distance: int, active: Array) -> Array:
        other = self.threads ^ distance
        if not active.all() or other.max() >= self.count:
            self.fault(f"a shuffle over {distance} lanes in which some threads take no part")
            return values
        return values[other]


def launch(function: Any, values: Sequence[Any], extents: Mapping[str, int], planted: Planted | None = None) -> list[str]:
    """Every block of a launch, one after the other: the faults that were found.

    `values` are those of the parameters, flat arrays among them, which are written in place; `extents` the blocks and threads by tag.
    """
    bound = dict(zip(function.params, (v if isinstance(v, np.ndarray) else np.array([[v]]) for v in values), strict=True))
    grid = {tag: n for tag, n in extents.items() if tag.startswith("block")}
    threads = {tag: n for tag, n in extents.items() if tag.startswith("thread")}
    faults: list[str] = []
    touched: dict[int, list[Array]] = {}
    for position in itertools.product(*(range(n) for n in grid.values())):
        block = Block(bound, dict(zip(grid, position, strict=True)), threads, planted, touched)
        with np.errstate(all="ignore"):
            block.run(function.body, np.ones(block.count, bool))
        faults += block.faults
    return faults


__all__ = ["Block", "Planted", "launch"]
