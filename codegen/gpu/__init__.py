"""GPU kernels: nests, legality, cross-building. `cross_build(graph, plan)` makes cubins where no GPU is."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("CrossBuilt", "KernelFacts", "cross_build"):
        from .building import CrossBuilt, KernelFacts, cross_build

        return {"CrossBuilt": CrossBuilt, "KernelFacts": KernelFacts, "cross_build": cross_build}[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
