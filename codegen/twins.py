"""Kernels that differ in names only, as the blocks of a network do: their code is compiled once."""

from __future__ import annotations

from collections.abc import Iterable

from .statements import Kernel


def code_names(kernels: Iterable[Kernel]) -> dict[str, str]:
    """Of every kernel, the name of the first one of the same code: itself, mostly."""
    first: dict[tuple[str, tuple[str, ...]], str] = {}
    return {k.name: k.name if k.call else first.setdefault((k.nameless, k.symbols), k.name) for k in kernels}


__all__ = ["code_names"]
