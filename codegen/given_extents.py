"""Extents that a caller gives by name."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral

from fluorite.algo.errors import Problem, RunError
from fluorite.algo.graph import Graph


def require_whole(extents: Mapping[str, int]) -> None:
    """Raises RunError where they are no whole numbers by name."""
    wrong = repr(extents)
    if isinstance(extents, Mapping):
        wrong = next((f"{{{k!r}: {n!r}}}" for k, n in extents.items() if not isinstance(n, Integral) or isinstance(n, bool) or n < 0), "")
    if wrong:
        why = "extents are whole numbers from 0 on, by name"
        raise RunError(Problem("R131", asked=f"extents={wrong}", why=why, try_=('extents={"n": 64}',)))


def require_known(graph: Graph, extents: Mapping[str, int]) -> None:
    """Raises RunError where the program has no extent of a name, or one is no whole number."""
    require_whole(extents)
    unknown = [name for name in extents if name not in graph.symbols()]
    if unknown:
        why = f"{graph.name} has {', '.join(graph.symbols()) or 'no symbolic extents'}"
        raise RunError(Problem("R131", asked=f"extent {unknown[0]}", why=why))


__all__ = ["require_known", "require_whole"]
