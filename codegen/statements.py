"""The lowered level: loop nests as statements, in the plan's loop names, before any TVM object exists.

Expressions are those of the algorithm; a Read names a buffer by id. Buffer ids of whole tensors are their graph ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fluorite.algo.expr import Axis, Expr
from fluorite.algo.extent import Extent


@dataclass(frozen=True)
class Buffer:
    """Memory of a stage, a leaf or an accumulator. `memory`: global (a kernel argument), workspace, local, shared, tiles (of AMX), warp (a
    thread's part of what a warp holds), lanes (a register of each thread).

    `rotates`: its first dimension is parts that are written in turn; in shared memory the kernel has barriers of its own for it.
    `streamed`: what is stored goes past the caches.
    """

    id: int
    name: str
    dtype: str
    shape: tuple[Extent, ...]
    memory: str = "global"
    rotates: bool = False
    streamed: bool = False


@dataclass(frozen=True)
class Store:
    buffer: int
    index: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True)
class Fetch:
    """Ask for the cache line that holds this element; nothing is read yet."""

    buffer: int
    index: tuple[Expr, ...]


@dataclass(frozen=True)
class Barrier:
    """All threads of the block come here before any goes on, and see what the others have written to shared memory; to global memory,
    too, if that is `everywhere`."""

    everywhere: bool = False


@dataclass(frozen=True)
class Exchange:
    """target[index] = source[index], but of the thread whose number along the loop `lane` differs in one bit, worth `distance`: a shuffle
    of the warp, whose threads all come here."""

    target: int
    source: int
    index: tuple[Expr, ...]
    lane: Axis
    distance: int


@dataclass(frozen=True)
class AsyncCopy:
    """buffer[index ...] = source[at ...], `elements` side by side, global to shared memory: done when its group has been waited for."""

    buffer: int
    index: tuple[Expr, ...]
    source: int
    at: tuple[Expr, ...]
    elements: int = 1


@dataclass(frozen=True)
class CommitGroup:
    """The copies that the thread has started since the last one are a group."""


@dataclass(frozen=True)
class WaitGroup:
    """Until only the `groups` newest groups of the thread's copies may be unfinished."""

    groups: int


@dataclass(frozen=True)
class If:
    """`likely` says which branch the steady state takes."""

    condition: Expr
    then: Statement
    otherwise: Statement | None = None


@dataclass(frozen=True)
class For:
    var: Axis
    name: str
    low: Expr
    extent: Expr
    kind: str
    lane: str
    body: Statement


@dataclass(frozen=True)
class While:
    """As long as the condition holds, which the body changes."""

    condition: Expr
    body: Statement


@dataclass(frozen=True)
class Sequence:
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Allocate:
    buffer: Buffer
    body: Statement


@dataclass(frozen=True)
class Marked:
    """The nest of a stage, while it may still move beside that of another one."""

    stage: int
    body: Statement


@dataclass(frozen=True)
class Deal:
    """parts[p][i] = source[len(parts) * i + p], for `lanes` lanes in each part, as vectors."""

    source: int
    parts: tuple[int, ...]
    lanes: int


@dataclass(frozen=True)
class Weave:
    """The opposite: target[index + len(parts) * i + p] = parts[p][i] along the last axis."""

    target: int
    index: tuple[Expr, ...]
    parts: tuple[int, ...]
    lanes: int


@dataclass(frozen=True)
class Comb:
    """part[i] = source[index + offsets[i]] along the last axis, as a vector. `span` elements are loaded; offsets are from 0 up to these."""

    part: int
    source: int
    index: tuple[Expr, ...]
    offsets: tuple[int, ...]
    span: int


@dataclass(frozen=True)
class Call:
    """target = function(operands), a function of NumPy arrays called on the host for the stage `path`, if the bool `taken` says so.

    With `ranks` it returns one array of each, whose extents are the last operand. Operands and results at the positions `complex_inputs`
    and `complex_results` are pairs that are complex numbers to the function."""

    path: str
    function: str
    target: int
    operands: tuple[int, ...]
    taken: int | None = None
    ranks: tuple[int, ...] = ()
    complex_inputs: tuple[int, ...] = ()
    complex_results: tuple[int, ...] = ()


@dataclass(frozen=True)
class Matrix:
    """A small matrix in a buffer: its first element, and how many elements there are from one row (or group of rows) to the next."""

    buffer: int
    index: tuple[Expr, ...]
    row: Expr


@dataclass(frozen=True)
class StartFragments:
    """Every fragment, which is what an instruction adds to, is 0."""

    intrinsic: str
    fragments: int
    count: int


@dataclass(frozen=True)
class MultiplyFragments:
    """fragment[p] += a[p] x b[p] by one instruction for every point p of the grid, in row-major order."""

    intrinsic: str
    fragments: int
    grid: tuple[tuple[Axis, int], ...]
    a: Matrix
    b: Matrix


@dataclass(frozen=True)
class StoreFragments:
    """to[p] = fragment[p] for every point p of the grid."""

    intrinsic: str
    fragments: int
    grid: tuple[tuple[Axis, int], ...]
    to: Matrix


Synchronisation = Barrier | Exchange | AsyncCopy | CommitGroup | WaitGroup
"""What only the threads of a GPU do."""

Tensors = StartFragments | MultiplyFragments | StoreFragments
"""What the instructions of `schedule.intrinsics` do."""

Statement = Call | Store | Fetch | If | For | While | Sequence | Allocate | Marked | Deal | Weave | Comb | Synchronisation | Tensors


@dataclass(frozen=True)
class Kernel:
    """One compiled function: arguments in order, then the symbols that it needs."""

    name: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    symbols: tuple[str, ...]
    body: Statement
    stages: tuple[str, ...]
    again: frozenset[int] = frozenset()  # outputs of which some elements are computed and stored twice

    @property
    def arguments(self) -> tuple[Buffer, ...]:
        return (*self.inputs, *self.outputs)

    @property
    def call(self) -> Call | None:
        """What is called in the kernel's place, where no code is made for it."""
        return self.body if isinstance(self.body, Call) else None

    def text(self) -> str:
        names: dict[int, str] = {}
        for b in dict.fromkeys((*self.arguments, *allocations(self.body))):
            names.setdefault(b.id, b.name if b.name not in names.values() else f"{b.name}@{b.id}")
        return self._text(self.name, names)

    @cached_property
    def nameless(self) -> str:
        """The text with numbers for the names of the kernel and its buffers: the same for kernels that do the same."""
        found = dict.fromkeys(b.id for b in (*self.arguments, *allocations(self.body)))
        return self._text("", {i: f"%{n}" for n, i in enumerate(found)})

    def _text(self, name: str, names: Mapping[int, str]) -> str:
        from .statement_text import lines

        head = ", ".join(
            f"{names[b.id]}: {b.dtype}[{', '.join(map(str, b.shape))}]{' past the caches' * b.streamed}" for b in self.arguments
        )
        return f"kernel {name}({head})\n" + "\n".join(lines(self.body, 1, names, {}))


def sequence(*parts: Statement) -> Statement:
    flat: list[Statement] = []
    for p in parts:
        flat += p.body if isinstance(p, Sequence) else [p]
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def walk(s: Statement) -> Iterator[Statement]:
    yield s
    match s:
        case If(then=a, otherwise=b):
            yield from walk(a)
            if b is not None:
                yield from walk(b)
        case For(body=b) | While(body=b) | Allocate(body=b) | Marked(body=b):
            yield from walk(b)
        case Sequence(body=parts):
            for p in parts:
                yield from walk(p)


def allocations(s: Statement) -> list[Buffer]:
    return [n.buffer for n in walk(s) if isinstance(n, Allocate)]


def transform(s: Statement, rule: Callable[[Statement], Statement | None]) -> Statement:
    """Bottom-up; `rule` returns a replacement or None."""
    match s:
        case If():
            new: Statement = If(s.condition, transform(s.then, rule), None if s.otherwise is None else transform(s.otherwise, rule))
        case For():
            new = For(s.var, s.name, s.low, s.extent, s.kind, s.lane, transform(s.body, rule))
        case While():
            new = While(s.condition, transform(s.body, rule))
        case Allocate():
            new = Allocate(s.buffer, transform(s.body, rule))
        case Marked():
            new = Marked(s.stage, transform(s.body, rule))
        case Sequence():
            new = sequence(*(transform(p, rule) for p in s.body))
        case _:
            new = s
    changed = rule(new)
    return new if changed is None else changed
