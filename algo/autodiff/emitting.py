"""Stages of a gradient: their names, roles and places, and axes that a plan can tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..building import Builder
from ..dtypes import NARROW, held
from ..expr import Axis, Expr, Op, Read, axis, cast
from ..extent import Extent
from ..rewriting import substitute
from ..stages import Leaf, Reduction, Stage
from ..tensor import Direct
from .reach import Adjoint


@dataclass(frozen=True)
class Emitter:
    """Makes stages called METHOD/grad/LABEL/..., which stand for derivatives of what is called LABEL."""

    builder: Builder
    label: str
    kind: str = "grad"

    def relative(self, t: Stage | Leaf) -> str:
        return t.path.removeprefix(f"{self.builder.method}/")

    def name_of(self, t: Stage | Leaf) -> str:
        """Where the gradient of a tensor goes."""
        return f"{self.kind}/{self.label}/{self.relative(t)}"

    def emit(
        self,
        name: str,
        axes: Sequence[Axis],
        extents: Sequence[Extent],
        value: Expr,
        reduction: Reduction | None,
        source: str,
        number: int | None = None,
        dtype: str | None = None,
        when: Expr | None = None,
        linear: bool = True,
    ) -> Stage:
        """The stage in the trace, for where `when` holds, or else for where what is being made is asked for.

        A sum of narrow floats is taken in float32 and rounded once, by a stage of its own. What is not `linear` in the seed is a factor
        that adjoints are made with, such as a count.
        """
        builder = self.builder
        to = dtype or value.dtype
        if reduction is not None and reduction.kind in ("sum", "prod") and to in NARROW:
            wide = self.emit(f"{name}/{reduction.kind}", axes, extents, _wide(value), reduction, source, when=when, linear=linear)
            fresh = {a: axis(a.name) for a in axes}
            read = Read(wide.id, tuple(fresh.values()), wide.dtype)
            narrow = None if when is None else substitute(when, dict(fresh))
            return self.emit(name, tuple(fresh.values()), extents, cast(read, to), None, source, number, when=narrow, linear=linear)
        own = _own([*axes, *(reduction.axes if reduction else ())])
        position = reduction is not None and reduction.kind.startswith("arg")  # its type is not that of what is compared
        value = substitute(value if value.dtype == to or position else cast(value, to), dict(own))
        made = Stage(
            number or builder.fresh(),
            self._unique(name),
            builder.method,
            tuple(own[a] for a in axes),
            tuple(extents),
            to,
            value,
            reduction and replace(reduction, axes=tuple(own[a] for a in reduction.axes)),
            op="grad",
            role="gradient",
            origin="derived",
            source=source,
            when=builder.when if when is None else substitute(when, dict(own)),
            loss=self.label if linear and self.kind == "grad" else "",
        )
        builder.add(made)
        return made

    def materialised(self, of: Adjoint, t: Direct, dtype: str) -> Direct:
        """What is known of a tensor's elements as a tensor: the stage that holds it, if one does."""
        builder = self.builder
        found = builder.stages.get(t.source) or builder.leaves[t.source]
        axes = tuple(axis(n or f"i{d}") for d, n in enumerate(t.axis_names))
        value = of(axes)
        made = builder.stages.get(value.source) if isinstance(value, Read) and is_bare(value, axes) else None
        if made is None or made.id in builder.aliases or made.extents != tuple(t.shape) or made.dtype != dtype:
            made = self.emit(self.name_of(found), axes, t.shape, value, None, found.source, None, dtype)
        return Direct(made.id, made.extents, made.dtype, made.axis_names, made.name, builder)

    def _unique(self, name: str) -> str:
        """A path below the method, whatever scope is open."""
        saved, self.builder.scopes = self.builder.scopes, []
        try:
            return self.builder.unique(name)
        finally:
            self.builder.scopes = saved


def is_bare(r: Read, axes: Sequence[Axis]) -> bool:
    """Whether a read is of the whole tensor as it is."""
    return len(r.index) == len(axes) and all(a is b for a, b in zip(r.index, axes, strict=True))


def _wide(e: Expr) -> Expr:
    """A narrow float as float32; a product, and what stands under a mask, without rounding it first."""
    match e:
        case Op(op="where", args=(c, a, b)):
            return Op("where", (c, _wide(a), _wide(b)), held(e.dtype), False)
        case Op(op="mul", args=(a, b)):
            return cast(a, "float32") * cast(b, "float32")
    return cast(e, "float32")


def _own(axes: Sequence[Axis]) -> Mapping[Axis, Axis]:
    """An axis of the stage's own for each, with names that differ."""
    taken: set[str] = set()
    out: dict[Axis, Axis] = {}
    for a in axes:
        name, n = a.name, 1
        while name in taken:
            n += 1
            name = f"{a.name}_{n}"
        taken.add(name)
        out[a] = axis(name)
    return out


__all__ = ["Emitter", "is_bare"]
