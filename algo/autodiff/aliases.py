"""Tensors under another identity, for the time of a trace.

The argument of a function that is differentiated must be told from the same tensor reached otherwise. It is made an alias: a stage that
copies it and bears its name, and that is put in place of its reads when the trace ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..building import Builder, current
from ..expr import Expr, Read
from ..linear import simplify
from ..passing import bound
from ..rewriting import rewrite, substitute
from ..stages import Stage, rewritten
from ..tensor import Direct, Tensor
from ..trace import copied


def alias(t: Tensor, name: str = "") -> Direct:
    """The tensor as one that nothing but the caller knows."""
    builder = current()
    t = bound(t)
    path = path_of(t, builder) or f"{builder.method}/{name or t.label}"
    paths = set(builder.paths)
    made = copied(t, "alias", "derived")
    builder.paths = paths
    builder.stages[made.source] = replace(builder.stages[made.source], path=path)
    builder.aliases.add(made.source)
    return Direct(made.source, t.shape, t.dtype, made.axis_names, name or t.label, builder)


def path_of(t: Tensor, builder: Builder) -> str:
    """The path of a stage or leaf; empty for a view."""
    if not isinstance(t, Direct):
        return ""
    found = builder.stages.get(t.source) or builder.leaves.get(t.source)
    return found.path if found is not None else ""


def without_aliases(stages: Sequence[Stage], aliases: set[int], results: set[int]) -> list[Stage]:
    """The stages, reading what the aliases copy. An alias that is a result stays, under a name of its own."""
    copied = {s.id: s for s in stages if s.id in aliases}
    if not copied:
        return list(stages)

    def rule(e: Expr) -> Expr | None:
        if not isinstance(e, Read) or (found := copied.get(e.source)) is None:
            return None
        return rewrite(substitute(found.value, dict(zip(found.axes, e.index, strict=True))), rule)

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


__all__ = ["alias", "path_of", "without_aliases"]
