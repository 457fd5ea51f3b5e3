"""Lowered statements to TVM's loop IR, one to one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from fluorite.algo.dtypes import NARROW, held, itemsize
from fluorite.algo.errors import InternalError
from fluorite.algo.expr import Axis, Const, Expr, Op, Read, Size, binary
from fluorite.algo.extent import Extent, Extremum, Quotient, Symbol, nonnegative
from fluorite.algo.linear import bounds, is_index
from fluorite.algo.rewriting import landings, walk
from fluorite.schedule.intrinsics import WARP

from . import fragments, streaming, synchronising
from .casting import cast, constant, rounded
from .functions.narrow_floats import FORMATS
from .index_operations import BOUNDARIES, clamp, floordiv, floormod, rises
from .intrinsics import INTRINSICS
from .invariants import Scopes
from .statements import (
    Allocate,
    AsyncCopy,
    Barrier,
    Buffer,
    Call,
    Comb,
    CommitGroup,
    Deal,
    Exchange,
    Fetch,
    For,
    If,
    Kernel,
    MultiplyFragments,
    Sequence,
    StartFragments,
    Statement,
    Store,
    StoreFragments,
    WaitGroup,
    Weave,
    While,
)
from .statements import walk as walk_statements
from .tvm_adapter import LOOP_KIND, ROTATING, ForKind, prefetch, tirx

SCOPE = {"global": "", "workspace": "global", "local": "local", "shared": "shared", "warp": "local", "lanes": "local"}

_STACK = 32 << 10
"""Bytes of one buffer that threads can afford on their stacks."""


def emit(kernel: Kernel, serial: bool = False) -> Any:
    """The PrimFunc of a kernel: tensors, then one int64 for each symbol. `serial` makes GPU loops plain ones, to check them on a CPU."""
    return _Emitter(kernel, serial).function()


class _Emitter:
    def __init__(self, kernel: Kernel, serial: bool) -> None:
        self.kernel, self.serial = kernel, serial
        self.symbols = {s: tirx.Var(_identifier(s), "int64") for s in kernel.symbols}
        self.vars: dict[Axis, Any] = {}
        self.dtypes: dict[int, str] = {}
        self.buffers = {b.id: self.declare(replace(b, name=name)) for b, name in zip(kernel.arguments, argument_names(kernel), strict=True)}
        self.memo: dict[Expr, Any] = {}
        self.registers: set[int] = set()  # buffers of which each thread has one element
        self.ranges: dict[Axis, Extent] = {}
        self.streamed = {b.id for b in kernel.outputs if b.streamed}
        on_gpu = any(isinstance(s, For) and s.kind in ("block", "thread") for s in walk_statements(kernel.body))
        self.scopes = None if on_gpu else Scopes()

    def function(self) -> Any:
        body = self.finished(self.inside(self.kernel.body))
        parameters = [self.buffers[b.id] for b in self.kernel.arguments] + list(self.symbols.values())
        f = tirx.PrimFunc(parameters, body)
        f = f.with_attr("global_symbol", self.kernel.name)
        return f if _hands_on(self.kernel) and not self.serial else f.with_attr("tirx.noalias", True)

    def declare(self, b: Buffer) -> Any:
        shape = [self.extent(n) for n in b.shape]
        alignment = itemsize(b.dtype) if b.memory == "global" else 64  # callers' arrays are rarely aligned further
        scope = ROTATING if b.rotates and b.memory == "shared" else SCOPE[b.memory]
        scope = "global" if self.serial and b.memory == "shared" else scope
        self.dtypes[b.id] = b.dtype
        stored = FORMATS[b.dtype].storage if b.dtype in NARROW else b.dtype
        return tirx.decl_buffer(shape, stored, _identifier(b.name), scope=scope, data_alignment=alignment)

    def finished(self, body: Any) -> Any:
        """The body of a kernel or a thread, after which others see what it has stored."""
        return tirx.SeqStmt([body, streaming.finished()]) if self.streamed else body

    # ------------------------------------------------------------ statements
    def statement(self, s: Statement) -> Any:
        match s:
            case Sequence(body=parts):
                return tirx.SeqStmt([x for p in parts for x in self.flat(p)])
            case Allocate():
                return tirx.SeqStmt(self.flat(s))
            case Store():
                value = self.stored(s.value, self.dtypes[s.buffer])
                value = streaming.marked(value) if s.buffer in self.streamed else value
                return tirx.BufferStore(self.buffers[s.buffer], value, self.place(s.buffer, s.index))
            case Fetch():
                return tirx.Evaluate(prefetch(self.buffers[s.buffer][tuple(self.index(i) for i in s.index)]))
            case If():
                return tirx.IfThenElse(
                    self.value(s.condition), self.statement(s.then), None if s.otherwise is None else self.statement(s.otherwise)
                )
            case For():
                return self.loop(s)
            case While():
                return self.repeated(s)
            case Deal():
                return tirx.SeqStmt(self.flat(s))
            case Weave():
                return self.woven(s)
            case Comb():
                return self.combed(s)
            case Barrier() | Exchange() | AsyncCopy() | CommitGroup() | WaitGroup():
                return synchronising.emitted(s, self.buffers, self.index, self.serial)
            case StartFragments() | MultiplyFragments() | StoreFragments():
                steps = self.flat(s)
                return steps[0] if len(steps) == 1 else tirx.SeqStmt(steps)
            case Call():
                raise InternalError("code for what is called on the host")
        raise TypeError(type(s))

    def flat(self, s: Statement) -> list[Any]:
        if isinstance(s, Sequence):
            return [x for p in s.body for x in self.flat(p)]
        if isinstance(s, Allocate) and s.buffer.memory == "tiles":  # the instructions name the registers
            return self.flat(s.body)
        if isinstance(s, StartFragments | MultiplyFragments | StoreFragments):
            return list(fragments.emitted(s, self.buffers, self.dtypes, self.index, self.serial))
        if isinstance(s, Allocate):
            saved, self.memo = self.memo, {}
            room = tuple(max(n, 1) if isinstance(n, int) else n for n in s.buffer.shape)  # TVM does not allocate nothing
            if s.buffer.memory == "warp" and self.serial:  # one thread is a whole warp
                room = (room[0], room[1] * WARP)
            if s.buffer.memory == "lanes" and not self.serial:
                room = (1,)
                self.registers.add(s.buffer.id)
            self.buffers[s.buffer.id] = buffer = self.declare(replace(s.buffer, shape=room))
            body = [tirx.AllocBuffer(buffer, _on_stack(s.buffer)), *self.flat(s.body)]
            self.memo = saved
            return body
        if isinstance(s, Deal):
            n, count = s.lanes, len(s.parts)
            row = self.vector(s.source, [], n * count)
            return [
                tirx.BufferStore(self.buffers[part], tirx.Shuffle([row], [_lane(i * count + p) for i in range(n)]), [_ramp(_lane(0), n)])
                for p, part in enumerate(s.parts)
            ]
        return [self.statement(s)]

    def vector(self, buffer: int, index: list[Any], lanes: int) -> Any:
        """Elements side by side, from the index on; from the first one of the buffer without."""
        *outer, last = index or [_lane(0)]
        return tirx.BufferLoad(self.buffers[buffer], [*outer, _ramp(last, lanes)])

    def combed(self, s: Comb) -> Any:
        """The last of the vectors ends with the last element of the span: nothing beyond it is touched."""
        *outer, first = map(self.index, s.index)
        span = s.span
        n = min(len(s.offsets), span)
        starts = [min(start, span - n) for start in range(0, span, n)]
        rows = [self.vector(s.source, [*outer, first + _lane(start)], n) for start in starts]
        lanes = [_lane(o // n * n + o - starts[o // n]) for o in s.offsets]
        enough = rows * -(-len(lanes) // (n * len(rows)))  # TVM's shuffle makes no more lanes than it is given
        return tirx.BufferStore(self.buffers[s.part], tirx.Shuffle(enough, lanes), [_ramp(_lane(0), len(lanes))])

    def woven(self, s: Weave) -> Any:
        *outer, last = map(self.index, s.index)
        n, count = s.lanes, len(s.parts)
        parts = [self.vector(b, [], n) for b in s.parts]
        together = tirx.Shuffle(parts, [_lane(p * n + i) for i in range(n) for p in range(count)])
        together = streaming.marked(together) if s.target in self.streamed else together
        return tirx.BufferStore(self.buffers[s.target], together, [*outer, _ramp(last, n * count)])

    def repeated(self, s: While) -> Any:
        saved, self.memo = self.memo, {}
        made = tirx.While(self.value(s.condition), self.statement(s.body))
        self.memo = saved
        return made

    def inside(self, s: Statement) -> Any:
        """The body of a loop, or the kernel's, after the numbers that are computed where it begins."""
        body = self.statement(s)
        return body if self.scopes is None else _after(self.scopes.leave(), body)

    def loop(self, s: For) -> Any:
        if s.kind in LOOP_KIND and isinstance(s.extent, Const) and s.extent.value <= 0:  # TVM makes no vector of nothing
            return tirx.Evaluate(_lane(0))
        low, extent = self.index(s.low), self.index(s.extent)
        saved, self.memo = self.memo, {}
        first, _ = bounds(s.low, self.ranges)
        _, end = bounds(binary("add", s.low, s.extent), self.ranges)
        if first is not None and end is not None and nonnegative(first):
            self.ranges[s.var] = end
        self.vars[s.var] = var = tirx.Var(_identifier(s.name), "int64")
        if self.scopes is not None:
            self.scopes.enter(s.var, s.kind in ("serial", "parallel"))
        body = self.inside(s.body)
        body = self.finished(body) if s.kind == "parallel" else body
        self.memo = saved
        if s.kind in LOOP_KIND:
            return tirx.For(var, low, extent, LOOP_KIND[s.kind], body)
        if self.serial:
            return tirx.For(var, low, extent, ForKind.SERIAL, body)
        tag = f"{'blockIdx' if s.kind == 'block' else 'threadIdx'}.{s.lane}"
        binding = tirx.IterVar(None, tirx.Var(tag, "int64"), tirx.IterVar.ThreadIndex, tag)
        return tirx.For(var, low, extent, ForKind.THREAD_BINDING, body, thread_binding=binding)

    # ------------------------------------------------------------ extents and indices
    def extent(self, e: Extent) -> Any:
        if isinstance(e, int):
            return tirx.IntImm("int64", e)
        total: Any = None
        for monomial, c in e.terms:
            part: Any = None
            for atom in monomial:
                match atom:
                    case Symbol(name):
                        x = self.symbols[name]
                    case Quotient(a, b):
                        divided = tirx.floordiv if isinstance(b, int) and b > 0 else partial(INTRINSICS["floordiv"], "int64")
                        x = divided(self.extent(a), self.extent(b))
                    case Extremum(which, a, b):
                        x = (tirx.max if which == "max" else tirx.min)(self.extent(a), self.extent(b))
                part = x if part is None else part * x
            scaled = tirx.IntImm("int64", c) if part is None else part if c == 1 else part * tirx.IntImm("int64", c)
            total = scaled if total is None else total + scaled
        return total

    def index(self, e: Expr) -> Any:
        value = self.value(e)
        return value if str(_dtype(value)) == "int64" else value.astype("int64")

    # ------------------------------------------------------------ values
    def value(self, e: Expr) -> Any:
        if e not in self.memo:
            for n in (*landings(e, self.memo), e):
                self.memo[n] = self.named(n)
        return self.memo[e]

    def named(self, e: Expr) -> Any:
        """The number that was computed outside the loops that do not change it, where that is worth while."""
        home = None if self.scopes is None else self.scopes.home(e)
        if home is None:
            return self.make(e)
        if e not in home.named:
            made = self.make(e)
            if not isinstance(made, tirx.IntImm | tirx.Var):
                var = tirx.Var(f"at{len(home.steps)}", "int64")
                home.steps.append(tirx.Bind(var, made if str(_dtype(made)) == "int64" else made.astype("int64")))
                made = var
            home.named[e] = made
        return home.named[e]

    def make(self, e: Expr) -> Any:
        match e:
            case Const():
                return constant(e.value, "int64" if is_index(e) else e.dtype)
            case Axis():
                return self.vars[e]
            case Size():
                return self.extent(e.extent)
            case Read():
                loaded, dtype = self.load(e), self.dtypes[e.source]
                return INTRINSICS[f"from_{dtype}"](dtype, loaded) if dtype in NARROW else loaded
            case Op(op="cast"):
                return cast(self.value(e.args[0]), _type(e.args[0]), e.dtype)
            case Op(op="edge" | "reflect" | "wrap" as op):
                position, n = map(self.index, e.args)
                return clamp(position, n) if op == "edge" and self.scopes is None else BOUNDARIES[op](position, n)
            case Op(op="where" | "select" as op, args=(c, a, b)):
                condition, x, y = self.value(c), self.operand(a, e), self.operand(b, e)
                return tirx.if_then_else(condition, x, y) if op == "where" else _selected(e, condition, x, y)
            case Op(op="floordiv" | "mod" as op, args=(a, b)) if is_index(e):
                sure = self.is_nonnegative(a) and (op == "floordiv" or rises(a))
                return (floordiv if op == "floordiv" else floormod)(self.index(a), self.index(b), sure)
            case Op(op="add" | "sub" | "mul" | "neg" as op) if is_index(e):
                return _EXACT[op](*map(self.index, e.args))
            case Op():
                dtype = _type(e)
                compared = e.op in ("lt", "le", "eq", "ne")
                of = _type(e.args[0]) if compared and not e.args[0].weak else _type(e.args[1]) if compared and len(e.args) > 1 else dtype
                args = [
                    cast(self.value(a), _type(a), of) if _type(a) != of and e.op not in ("isnan", "isinf", "isfinite") else self.value(a)
                    for a in e.args
                ]
                found = INTRINSICS.get(e.op)
                if found is None:
                    raise InternalError(f"no code for operation {e.op}")
                result = found(held(of), *args)
                return result if e.op in _UNROUNDED else rounded(result, dtype)
        raise InternalError(f"{type(e).__name__} in lowered code: {e.operands}")

    def load(self, e: Read) -> Any:
        return tirx.BufferLoad(self.buffers[e.source], self.place(e.source, e.index))

    def place(self, buffer: int, index: tuple[Expr, ...]) -> list[Any]:
        return [_lane(0)] if buffer in self.registers else [self.index(i) for i in index]

    def stored(self, e: Expr, dtype: str) -> Any:
        """The value as a buffer of `dtype` keeps it: bits of a narrow float, and those that are only moved untouched."""
        if dtype not in NARROW:
            return self.value(e)
        match e:
            case Read() if self.dtypes[e.source] == dtype:
                return self.load(e)
            case Op(op="where" | "select" as op, args=(c, a, b)) if a.dtype == b.dtype == dtype:
                condition, x, y = self.value(c), self.stored(a, dtype), self.stored(b, dtype)
                return tirx.if_then_else(condition, x, y) if op == "where" else _selected(e, condition, x, y)
        return INTRINSICS[f"to_{dtype}"](dtype, self.value(e))

    def is_nonnegative(self, e: Expr) -> bool:
        low, _ = bounds(e, self.ranges)
        return low is not None and nonnegative(low)

    def operand(self, a: Expr, e: Expr) -> Any:
        return cast(self.value(a), _type(a), _type(e))


_EXACT: dict[str, Callable[..., Any]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg}
"""Index arithmetic, which stays small: TVM may take it that nothing overflows."""
_UNROUNDED = frozenset({"neg", "abs", "sign", "min", "max", "floor", "ceil", "trunc", "round"})
"""What gives a number of the type whenever it is given some."""


def _after(steps: list[Any], body: Any) -> Any:
    return tirx.SeqStmt([*steps, *(body.seq if isinstance(body, tirx.SeqStmt) else [body])]) if steps else body


def argument_names(kernel: Kernel) -> list[str]:
    """What the kernel's arguments are called in its code: by their names, and a number where two have the same."""
    taken: dict[str, None] = {}
    for b in kernel.arguments:
        name, n = _identifier(b.name), 2
        while name in taken:
            name, n = f"{_identifier(b.name)}_{n}", n + 1
        taken[name] = None
    return list(taken)


def _hands_on(kernel: Kernel) -> bool:
    """Whether threads read what others write to its tensors. A compiler that is told that only one pointer leads there may keep what it has
    read over a barrier."""
    return any(isinstance(s, Barrier) and s.everywhere for s in walk_statements(kernel.body))


def _type(e: Expr) -> str:
    return "int64" if is_index(e) else e.dtype


def _dtype(value: Any) -> str:
    ty = getattr(value, "dtype", None) or value.ty.dtype
    return str(ty)


def _on_stack(b: Buffer) -> dict[str, Any]:
    """Keeps small local memory on the stack, where registers can take its place: TVM would ask the heap for it in every iteration."""
    elements = 1
    for n in b.shape:
        elements *= n if isinstance(n, int) else _STACK
    fits = b.memory in ("local", "warp", "lanes") and elements * np.dtype(b.dtype).itemsize <= _STACK
    return {"disable_lower_builtin": tirx.IntImm("bool", 1)} if fits else {}


def _lane(number: int) -> Any:
    return tirx.IntImm("int64", number)


def _ramp(first: Any, lanes: int) -> Any:
    return tirx.Ramp(first, _lane(1), lanes)


def _identifier(name: str) -> str:
    """The name as C takes it: constants are called by numbers."""
    found = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return f"c{found}" if found[:1].isdigit() else found


def _selected(e: Op, condition: Any, x: Any, y: Any) -> Any:
    """The choice, of which both sides are computed: TVM's simplifier takes the condition for granted inside a side, and would drop what
    keeps an index in bounds where the condition is false. Behind a cast it does not see it."""
    if any(isinstance(n, Read) for side in e.args[1:] for n in walk(side)):
        condition = tirx.NE(tirx.Cast("int32", condition), tirx.IntImm("int32", 0))
    return tirx.Select(condition, x, y)


__all__ = ["argument_names", "emit"]
