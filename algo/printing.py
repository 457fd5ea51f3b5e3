"""Expressions as text. What is large or deep is written in parts with names, so that no text is longer than the expression it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from .expr import SYMBOL, Access, Axis, Const, Expr, Op, Read, Reduce, Scalar, Size
from .rewriting import landings, walk

_LARGE = 500
"""Nodes of a tree that is written in one piece."""
_PART = 8
"""Nodes of a shared part that gets a name."""


def show(e: Expr, name: Callable[[int], str] = lambda i: f"%{i}", labels: Mapping[Axis, str] | None = None) -> str:
    """The expression as one would write it: of a large or deep one first the parts that it uses, then what it is of these.

    `labels` are what axes are called here, where not by their own names.
    """
    named: dict[Expr, str] = {}
    labels = labels or {}
    lines: list[str] = []
    for n, part in enumerate(_parts(e)):
        lines.append(f"${n} = {_Writer(name, labels, named).text(part)}")
        named[part] = f"${n}"
    return "; ".join([*lines, _Writer(name, labels, named).text(e)])


def _parts(e: Expr) -> list[Expr]:
    """The parts that get names, each after those inside it: what is used more than once, and some of what is deep."""
    sizes: dict[Expr, int] = {}
    for n in walk(e):
        sizes[n] = 1 + sum([sizes[c] for c in n.operands])
    if sizes[e] <= _LARGE and e.depth <= _LARGE // 10:
        return []
    uses = Counter(c for n in sizes for c in n.operands)
    deep = set(landings(e))
    return [n for n in sizes if n is not e and (n in deep or (uses[n] > 1 and sizes[n] >= _PART))]


_LEVEL = {
    "or": 1,
    "xor": 2,
    "and": 3,
    "lt": 4,
    "le": 4,
    "eq": 4,
    "ne": 4,
    "shl": 5,
    "shr": 5,
    "add": 6,
    "sub": 6,
    "mul": 7,
    "div": 7,
    "floordiv": 7,
    "mod": 7,
}


class _Writer:
    """Writes expressions over named tensors, axes and parts."""

    def __init__(self, tensor: Callable[[int], str], labels: Mapping[Axis, str], parts: Mapping[Expr, str]) -> None:
        self.tensor, self.labels, self.parts = tensor, labels, parts

    def text(self, e: Expr, level: int = 0) -> str:
        if (part := self.parts.get(e)) is not None:
            return part
        match e:
            case Const(value=v):
                return repr(v)
            case Axis():
                return self.labels.get(e, e.name)
            case Scalar():
                return e.name
            case Size():
                return str(e.extent) if e.extent.is_atom else f"({e.extent})"
            case Read():
                return f"{self.tensor(e.source)}[{', '.join(map(self.text, e.index))}]"
            case Access():
                return f"{e.tensor.label}[{', '.join(map(self.text, e.index))}]"
            case Reduce():
                return f"{e.kind}({', '.join(a.name for a in e.axes)} | {self.text(e.body)})"
            case Op(op="tuple"):
                return f"({', '.join(map(self.text, e.args[1:]))})[{self.text(e.args[0])}]"
            case Op(op="cast"):
                return f"{e.dtype}({self.text(e.args[0])})"
            case Op(op=op) if op in _LEVEL:
                mine = _LEVEL[op]
                text = f"{self.text(e.args[0], mine)} {SYMBOL[op]} {self.text(e.args[1], mine + 1)}"
                return f"({text})" if mine < level else text
            case Op():
                return f"{e.op}({', '.join(map(self.text, e.args))})"
        raise TypeError(type(e))
