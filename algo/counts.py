"""``fl.extent``: extents that are called by a name, and inputs that are nothing but an extent."""

from __future__ import annotations

from .extent import Dim, symbol


class extent(Dim):
    """``fl.extent("n")`` is the extent called n, wherever one may stand: ``extents={"i": fl.extent("n")}``.

    As the annotation of an input it says that a call gives a number, which the algorithm has as the extent of that name:

        def sample(self, n: fl.extent):
            return self.generator(fl.random.normal((n, 16)))        # model.sample(n=8)

    One build takes all numbers; a plan bounds them under `extents:` as it does those of tensors. An input of tensors with an extent of
    the same name has to agree with it.
    """

    def __new__(cls, name: str) -> Dim:  # type: ignore[misc]
        return symbol(name)


__all__ = ["extent"]
