"""``fl.extent``: extents that are called by a name, inputs that are nothing but an extent, and extents that are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dtypes import kind
from .errors import AlgorithmError
from .extent import Dim, symbol
from .extent_names import counted_name

if TYPE_CHECKING:
    from .tensor import Tensor


class extent(Dim):
    """``fl.extent("n")`` is the extent called n, wherever one may stand: ``extents={"i": fl.extent("n")}``.

    As the annotation of an input it says that a call gives a number, which the algorithm has as the extent of that name:

        def sample(self, n: fl.extent):
            return self.generator(fl.random.normal((n, 16)))        # model.sample(n=8)

    One build takes all numbers; a plan bounds them under `extents:` as it does those of tensors. An input of tensors with an extent of
    the same name has to agree with it.

    With `of`, an integer without axes, the extent is computed while the program runs, and is `most` at most:

        (at,), total = fl.nonzero(x > 0, size=100)
        n = fl.extent("found", of=total, most=100, beyond="cut")
        values = fl.stage(lambda k: x[at[k]], extents={"k": n})        # as many as there are

    Nothing is padded as far as the algorithm can see: loops run so far and no further, and a result comes back with its true length, which
    may be 0. Memory is that of `most`. What is beyond is refused when the program runs, or with beyond="cut" taken for `most`. It is one
    number for all steps of a loop and all examples of a batch.
    """

    def __new__(cls, name: str, *, of: Tensor | None = None, most: int | None = None, beyond: str = "refuse") -> Dim:  # type: ignore[misc]
        if of is None and most is None:
            return symbol(name)
        from .building import call_site, placed

        source = call_site()
        try:
            return _counted(name, of, most, beyond)
        except AlgorithmError as error:
            raise placed(error, source, str(name)) from None


def _counted(name: str, of: Tensor | None, most: int | None, beyond: str) -> Dim:
    from .building import current
    from .expr import Expr, as_expr, binary, cast, refuse
    from .ops.shapes import tensor
    from .tensor import Direct
    from .trace import build_stage
    from .wellformed import LARGEST, name_of

    builder, _ = current(), name_of(name, "an extent")
    if isinstance(most, bool) or not isinstance(most, int) or not 0 <= most <= LARGEST or beyond not in ("refuse", "cut"):
        asked = f"fl.extent({name!r}, most={most!r}, beyond={beyond!r})"
        raise refuse("A209", asked, "how many there may be is an integer, and what is beyond is refused or cut", "most=100", "beyond='cut'")
    t = tensor(of, "extent")
    if t.shape or kind(t.dtype) != "int":
        raise refuse("A209", f"fl.extent({name!r}, of={t.label}), which is {t.dtype} of {t.ndim} axes", "it is one whole number", "fl.sum")
    if builder.when is not None:
        why = "what has that extent would have none where the branch is not taken"
        raise refuse("A209", f"fl.extent({name!r}, of={t.label}) inside a branch", why, "fl.extent outside of it")

    def value() -> Expr:
        n = binary("max", cast(t.as_scalar(), "int64"), as_expr(0))
        return binary("min", n, as_expr(most)) if beyond == "cut" else n

    made = build_stage([], value, name=f"{name}/extent")
    assert isinstance(made, Direct)
    known, n = counted_name(name, most), 1
    while known in builder.counts:
        n += 1
        known = counted_name(f"{name}_{n}", most)
    builder.counts[known] = made.source
    return symbol(known)


def cut(t: Tensor, n: Dim, name: str) -> Tensor:
    """The first n elements along the first axis."""
    from .ops.shapes import labels
    from .trace import build_stage

    names = labels(t.axis_names)
    return build_stage(names, lambda *i: t[i], name=name, extents=dict(zip(names, (n, *t.shape[1:]), strict=True)))


__all__ = ["cut", "extent"]
