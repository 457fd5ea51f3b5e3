"""The lowered level: loop nests as statements, in the plan's loop names, before any TVM object exists.

Expressions are those of the algorithm; a Read names a buffer by id. Buffer ids of whole tensors are their graph ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fluorite.algo.expr import Axis, Expr
from fluorite.algo.extent import Extent
from fluorite.algo.printing import show


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
        head = ", ".join(
            f"{names[b.id]}: {b.dtype}[{', '.join(map(str, b.shape))}]{' past the caches' * b.streamed}" for b in self.arguments
        )
        return f"kernel {name}({head})\n" + "\n".join(_lines(self.body, 1, names, {}))


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


def _unlike(label: str, var: Axis, axes: Mapping[Axis, str]) -> str:
    """The label of a loop inside these, with a prime for each that has the same."""
    while any(a == label and v is not var for v, a in axes.items()):
        label += "'"
    return label


def _picked(offsets: tuple[int, ...]) -> str:
    first, step = offsets[0], offsets[1] - offsets[0]
    if list(offsets) != [first + step * k for k in range(len(offsets))]:
        return f"elements {' '.join(map(str, offsets))}"
    return f"every {step} from {first}" if first else f"every {step}"


def _lines(s: Statement, depth: int, names: Mapping[int, str], axes: Mapping[Axis, str]) -> Iterator[str]:
    """Text of a statement. A loop inside one of the same name gets a prime, so that the text says all there is to say."""
    pad = "  " * depth

    def text(e: Expr) -> str:
        return show(e, lambda i: names.get(i, f"%{i}"), axes)

    def matrix(x: Matrix, known: Mapping[Axis, str]) -> str:
        *index, row = (show(e, lambda i: names.get(i, f"%{i}"), known) for e in (*x.index, x.row))
        return f"{names.get(x.buffer, x.buffer)}[{', '.join(index)} ...{f', rows {row} apart' if row != '0' else ''}]"

    def points(grid: tuple[tuple[Axis, int], ...]) -> tuple[str, str, Mapping[Axis, str]]:
        known = dict(axes)
        for a, _ in grid:
            known[a] = _unlike(a.name, a, known)
        return f"[{', '.join(known[a] for a, _ in grid)}]" if grid else "", "".join(f" for {known[a]} in 0..{n}" for a, n in grid), known

    match s:
        case StartFragments():
            yield f"{pad}{names[s.fragments]} = 0, of {s.intrinsic}"
        case MultiplyFragments():
            at, loops, known = points(s.grid)
            yield f"{pad}{names[s.fragments]}{at} += {s.intrinsic}({matrix(s.a, known)}, {matrix(s.b, known)}){loops}"
        case StoreFragments():
            at, loops, known = points(s.grid)
            yield f"{pad}{matrix(s.to, known)} = {names[s.fragments]}{at}{loops}"
        case Store():
            yield f"{pad}{names.get(s.buffer, s.buffer)}[{', '.join(map(text, s.index))}] = {text(s.value)}"
        case Call():
            given = ", ".join(names[i] for i in s.operands)
            asked = "" if s.taken is None else f"if {names[s.taken]}: "
            yield f"{pad}{asked}{names[s.target]} = {s.function}({given}) of NumPy, for {s.path}"
        case Fetch():
            yield f"{pad}prefetch {names.get(s.buffer, s.buffer)}[{', '.join(map(text, s.index))}]"
        case Barrier():
            yield f"{pad}barrier{' for all memory' if s.everywhere else ''}"
        case Exchange():
            at = ", ".join(f"{text(i)} ^ {s.distance}" if i is s.lane else text(i) for i in s.index)
            yield f"{pad}{names[s.target]}[{', '.join(map(text, s.index))}] = {names[s.source]}[{at}], shuffled"
        case AsyncCopy():
            to, source = (f"{names.get(b, b)}[{', '.join(map(text, i))}" for b, i in ((s.buffer, s.index), (s.source, s.at)))
            more = " ..." if s.elements > 1 else ""
            yield f"{pad}{to}{more}] = copy of {f'{s.elements} of ' if more else ''}{source}{more}], asynchronously"
        case CommitGroup():
            yield f"{pad}these copies are a group"
        case WaitGroup():
            yield f"{pad}wait for all groups of copies{f' but the last {s.groups}' if s.groups else ''}"
        case Deal():
            yield f"{pad}{', '.join(names[p] for p in s.parts)} = every {len(s.parts)} lanes of {names[s.source]}"
        case Comb():
            at = ", ".join(map(text, s.index))
            yield f"{pad}{names[s.part]} = {_picked(s.offsets)} of {names.get(s.source, s.source)}[{at} ...]"
        case Weave():
            at = ", ".join(map(text, s.index))
            yield f"{pad}{names.get(s.target, s.target)}[{at} ...] = {', '.join(names[p] for p in s.parts)} in turn"
        case If():
            yield f"{pad}if {text(s.condition)}:"
            yield from _lines(s.then, depth + 1, names, axes)
            if s.otherwise is not None:
                yield f"{pad}else:"
                yield from _lines(s.otherwise, depth + 1, names, axes)
        case For():
            kind = "" if s.kind == "serial" else f"{s.kind}{'.' + s.lane if s.lane else ''} "
            low = text(s.low)
            label = _unlike(s.name, s.var, axes)
            yield f"{pad}{kind}for {label} in {low}..{text(s.extent) if low == '0' else f'{low} + ({text(s.extent)})'}:"
            yield from _lines(s.body, depth + 1, names, {**axes, s.var: label})
        case While():
            yield f"{pad}while {text(s.condition)}:"
            yield from _lines(s.body, depth + 1, names, axes)
        case Allocate(buffer=b):
            yield f"{pad}{names.get(b.id, b.name)}: {b.dtype}[{', '.join(map(str, b.shape))}] in {b.memory}"
            yield from _lines(s.body, depth, names, axes)
        case Sequence():
            for p in s.body:
                yield from _lines(p, depth, names, axes)
