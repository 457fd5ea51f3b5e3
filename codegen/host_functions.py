"""Functions of the user's, fl.extern, that another process has to find again."""

from __future__ import annotations

from fluorite.algo.errors import Problem
from fluorite.algo.externs import found_again
from fluorite.algo.stages import Stage


def lost(s: Stage) -> Problem | None:
    """B007: neither who loads a built model nor a process of the tuner would find the function of an extern."""
    if s.extern is None or found_again(s.extern.function) is not None:
        return None
    asked = f"{s.path} is computed by {s.extern.label}"
    why = "another process finds a function by its module and name, and this one is at the top of no module that can be imported"
    instead = ("a file of its own for it, imported",)
    return Problem("B007", "build", path=s.path, source=s.source or None, asked=asked, why=why, try_=instead)


__all__ = ["lost"]
