"""Loop nests as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fluorite.algo.expr import Axis, Expr
from fluorite.algo.printing import show

from .statements import (
    Allocate,
    AsyncCopy,
    Barrier,
    Call,
    Comb,
    CommitGroup,
    Deal,
    Exchange,
    Fetch,
    For,
    If,
    Matrix,
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


def lines(s: Statement, depth: int, names: Mapping[int, str], axes: Mapping[Axis, str]) -> Iterator[str]:
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
            yield from lines(s.then, depth + 1, names, axes)
            if s.otherwise is not None:
                yield f"{pad}else:"
                yield from lines(s.otherwise, depth + 1, names, axes)
        case For():
            kind = "" if s.kind == "serial" else f"{s.kind}{'.' + s.lane if s.lane else ''} "
            low = text(s.low)
            label = _unlike(s.name, s.var, axes)
            yield f"{pad}{kind}for {label} in {low}..{text(s.extent) if low == '0' else f'{low} + ({text(s.extent)})'}:"
            yield from lines(s.body, depth + 1, names, {**axes, s.var: label})
        case While():
            yield f"{pad}while {text(s.condition)}:"
            yield from lines(s.body, depth + 1, names, axes)
        case Allocate(buffer=b):
            yield f"{pad}{names.get(b.id, b.name)}: {b.dtype}[{', '.join(map(str, b.shape))}] in {b.memory}"
            yield from lines(s.body, depth, names, axes)
        case Sequence():
            for p in s.body:
                yield from lines(p, depth, names, axes)
