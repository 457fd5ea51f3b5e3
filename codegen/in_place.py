"""New values of parameters and state written over the old ones: where that is right, and the kernels that do it.

It is right where the kernel that makes the new value reads each element of the old one for the new element at the same place alone, or
before it is written (see reads_ahead), each is written once, and no later kernel reads the old value. The kernel then has one argument
for both, so that no two arguments share memory. What is not right stays a copy: the new value goes to memory of its own, and over the
old one when the call has done all else. So it is in methods that call functions of the user's, which may fail: a call changes all of
the state or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fluorite.algo.expr import Expr, Read
from fluorite.algo.graph import Graph
from fluorite.algo.rewriting import reads, rewrite
from fluorite.algo.stages import Stage

from .reads_ahead import reading_ahead
from .statements import (
    Allocate,
    Call,
    Comb,
    Deal,
    Fetch,
    For,
    If,
    Kernel,
    MultiplyFragments,
    Statement,
    Store,
    StoreFragments,
    Weave,
    While,
    sequence,
)  # fmt: skip
from .statements import Sequence as Several
from .statements import walk as statements


def overwriting(
    g: Graph, kernels: Sequence[Kernel], methods: Sequence[str], done: Mapping[int, int]
) -> tuple[tuple[Kernel, ...], Mapping[int, int]]:
    """The kernels, some of which write new values over old ones, and by each such new value (a stage) the old one (a leaf). Those that are
    `done` are left as they are."""
    out, found = list(kernels), dict[int, int]()
    calling = {method for k, method in zip(kernels, methods, strict=True) if k.call is not None}
    for new, leaf in g.updates.items():
        stage = g.stage(new)
        assert stage is not None
        if stage.method in calling or new in done:
            continue
        mine = [n for n, method in enumerate(methods) if method == stage.method]
        at = next(n for n in mine if any(b.id == new for b in out[n].outputs))
        if any(b.id == leaf.id for n in mine if n > at for b in out[n].inputs):
            continue
        made = _merged(out[at], stage, leaf.id)
        if made is not None:
            out[at], found[new] = made, leaf.id
    return tuple(out), found


def _merged(kernel: Kernel, stage: Stage, old: int) -> Kernel | None:
    """The kernel with the new value in the place of the old one; None where some element of the old one may be read after it is gone."""
    if all(b.id != old for b in kernel.inputs):
        return kernel
    once = stage.reduction is None and stage.clock is None and stage.turn is None and stage.id not in kernel.again
    ahead = reading_ahead(kernel.body, stage.id, old) if once else frozenset()
    if not once or not all(id(s) in ahead or _is_safe(s, stage.id, old) for s in statements(kernel.body)):
        return None
    body = _renamed(kernel.body, old, stage.id)
    return replace(kernel, inputs=tuple(b for b in kernel.inputs if b.id != old), body=body)


def _is_safe(s: Statement, new: int, old: int) -> bool:
    """Whether the statement reads the old value only to store the new one at the same place."""
    match s:
        case Store(buffer=b, index=index, value=value):
            if any(r.source == old for i in index for r in reads(i)):
                return False
            mine = [r for r in reads(value) if r.source == old]
            return not mine or (b == new and all(_same(r.index, index) for r in mine))
        case Fetch():
            return not any(r.source == old for i in s.index for r in reads(i))
        case Call():
            return False
        case If():
            return not any(r.source == old for r in reads(s.condition))
        case While():
            return not any(r.source in (old, new) for r in reads(s.condition))
        case For():
            return not any(r.source == old for e in (s.low, s.extent) for r in reads(e))
        case Deal() | Comb():
            return s.source != old and new not in ((s.part,) if isinstance(s, Comb) else s.parts)
        case Weave():
            return s.target != new and old not in s.parts
        case MultiplyFragments():
            return old not in (s.a.buffer, s.b.buffer)
        case StoreFragments():
            return s.to.buffer != new
    return True


def _same(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    return all(i is j for i, j in zip(a, b, strict=True))


def _renamed(s: Statement, old: int, new: int) -> Statement:
    """The statements with the new value's memory for the old one's."""

    def expression(e: Expr) -> Expr:
        return rewrite(e, lambda n: Read(new, n.index, n.dtype) if isinstance(n, Read) and n.source == old else None)

    match s:
        case Store():
            return replace(s, value=expression(s.value)) if any(r.source == old for r in reads(s.value)) else s
        case Fetch():
            return replace(s, buffer=new) if s.buffer == old else s
        case If():
            return If(s.condition, _renamed(s.then, old, new), None if s.otherwise is None else _renamed(s.otherwise, old, new))
        case For() | While() | Allocate():
            return replace(s, body=_renamed(s.body, old, new))
        case Several():
            return sequence(*(_renamed(p, old, new) for p in s.body))
    return s


__all__ = ["overwriting"]
