"""Values made of several tensors, which count as a nest of them: what is said of tensors in nests then holds for them too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Compound:
    """Nests are taken apart at it, and put together again as another of its kind."""

    what = "several tensors"

    def parts(self) -> tuple[Any, ...]:
        """The tensors, in order."""
        raise NotImplementedError

    def mapped(self, fn: Callable[[Any], Any]) -> Any:
        """Another of its kind of what `fn` makes of each tensor."""
        raise NotImplementedError


__all__ = ["Compound"]
