"""Eight dense 5 x 5 stencils, one after the other, in wrapping 16-bit arithmetic: nothing but locality to win."""

from __future__ import annotations

from typing import Any

import fluorite as fl

STAGES = 8


def stencil_chain(image: fl.u16[fl.Tensor, "h", "w"]) -> fl.Tensor:
    """The result is 4 * STAGES smaller than the image on both axes."""
    for n in range(STAGES):
        image = _stencil(image, f"stage{n}")
    return image


def _stencil(image: fl.Tensor, name: str) -> fl.Tensor:
    def weighted(y: Any, x: Any) -> Any:
        terms = [(i + 1) * (j + 1) * image[y + j, x + i] for i in range(5) for j in range(5)]
        return sum(terms[1:], terms[0])

    return fl.stage(weighted, name=name)
