"""``fl.Ragged``: inputs that are lists of unequal length, as the algorithm sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .expr import refuse

if TYPE_CHECKING:
    from .tensor import Tensor


@dataclass(frozen=True, eq=False)
class Ragged:
    """An input declared as ``fl.f32[fl.Ragged, "n", "t*", 32]``: n arrays of shape [their own length, 32].

    padded    [n, t, 32], with t the length of the longest; 0 behind the end of each
    lengths   int32 [n]
    mask      bool [n, t], whether a place is before the end

    A call gives a list of arrays; one build takes all lengths. Inputs that share t (``"t*"``) and n have the same lengths, example by
    example. How the elements are stored, padded or otherwise, is not the algorithm's business.
    """

    padded: Tensor
    lengths: Tensor
    mask: Tensor

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise refuse("A197", f"{self.padded.label}.{name}", "a ragged input is no tensor", ".padded", ".lengths", ".mask")

    def _refused(self, *others: Any) -> Any:
        asked = f"{self.padded.label} as an operand, or indexed"
        raise refuse("A197", asked, "a ragged input is no tensor", ".padded", ".lengths", ".mask")

    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = _refused
    __rmatmul__ = __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __invert__ = __neg__ = __pow__ = _refused


def mask_of(padded: Tensor, lengths: Tensor, name: str) -> Tensor:
    """Whether a place is before the end of its example."""
    from .trace import build_stage

    n, t = padded.axis_names[0] or "n", padded.axis_names[1] or "t"
    return build_stage([n, t], lambda i, j: j < lengths[i], name=name, extents={n: padded.shape[0], t: padded.shape[1]}, origin="derived")


def ragged_dimensions(dims: Sequence[Any]) -> tuple[Any, ...]:
    """The dimensions of the padded tensor. Raises AlgorithmError where not exactly the second one has a star."""
    stars = [d for d, dim in enumerate(dims) if isinstance(dim, str) and dim.rstrip().endswith("*")]
    if stars != [1]:
        shown = ", ".join(map(repr, dims))
        why = "the second dimension, and no other, has a star: the length that each example has for itself"
        raise refuse("A116", f"fl.Ragged, {shown}", why, 'fl.f32[fl.Ragged, "n", "t*", 32]')
    name = dims[1].rstrip().removesuffix("*").strip()
    if not name.isidentifier():
        raise refuse("A116", f"dimension {dims[1]!r}", "a ragged dimension is a name and a star", '"t*"')
    return (dims[0], name, *dims[2:])


__all__ = ["Ragged", "mask_of", "ragged_dimensions"]
