"""Tensors under another identity, for the time of a trace.

The argument of a function that is differentiated must be told from the same tensor reached otherwise. It is made an alias: a stage that
copies it and bears its name, and that is put in place of its reads when the trace ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..building import Builder, current
from ..expr import Axis, Expr, Read
from ..graph import Stage, rewritten
from ..held import Parameter
from ..linear import simplify
from ..rewriting import rewrite
from ..tensor import Direct, Tensor
from ..trace import build_stage


def alias(t: Tensor, name: str = "") -> Direct:
    """The tensor as one that nothing but the caller knows."""
    builder = current()
    t = bound(t)
    path = path_of(t, builder) or f"{builder.method}/{name or t.label}"
    names = axis_names(t)
    paths = set(builder.paths)
    made = build_stage(
        names,
        lambda *i: t[i] if i else t.as_scalar(),
        name="alias",
        extents=dict(zip(names, t.shape, strict=True)),
        dtype=t.dtype,
        origin="derived",
    )
    assert isinstance(made, Direct)
    builder.paths = paths
    builder.stages[made.source] = replace(builder.stages[made.source], path=path)
    builder.aliases.add(made.source)
    return Direct(made.source, t.shape, t.dtype, names, name or t.label, builder)


def bound(t: Tensor) -> Tensor:
    """A parameter as the tensor that it is at this point of the trace."""
    return t.now() if isinstance(t, Parameter) else t


def path_of(t: Tensor, builder: Builder) -> str:
    """The path of a stage or leaf; empty for a view."""
    if not isinstance(t, Direct):
        return ""
    found = builder.stages.get(t.source) or builder.leaves.get(t.source)
    return found.path if found is not None else ""


def axis_names(t: Tensor) -> list[str]:
    """Names for the axes of a copy: the tensor's own where they differ, else numbered ones."""
    out: list[str] = []
    for n, name in enumerate(t.axis_names):
        out.append(name if name and name not in out else f"i{n}")
    return out


def without_aliases(stages: Sequence[Stage], aliases: set[int], results: set[int]) -> list[Stage]:
    """The stages, reading what the aliases copy. An alias that is a result stays, under a name of its own."""
    copied = {s.id: s for s in stages if s.id in aliases}
    if not copied:
        return list(stages)

    def rule(e: Expr) -> Expr | None:
        if not isinstance(e, Read) or (found := copied.get(e.source)) is None:
            return None
        to = dict(zip(found.axes, e.index, strict=True))
        return rewrite(rewrite(found.value, lambda n: to.get(n) if isinstance(n, Axis) else None), rule)

    out: list[Stage] = []
    for s in stages:
        if s.id in copied:
            if s.id not in results:
                continue
            s = replace(s, path=f"{s.path}/copy") if s.origin == "derived" and s.role == "forward" else s
        if any(i in copied for i in s.sources):
            s = rewritten(s, rule)
            s = replace(s, value=simplify(s.value, s.ranges))
        out.append(s)
    return out


__all__ = ["alias", "axis_names", "bound", "path_of", "without_aliases"]
