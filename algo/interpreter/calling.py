"""Externs: the call of a function that the user gave, and what is asked of its result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import Problem, RunError
from ..stages import Stage
from .elementary import Array


def called(s: Stage, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """What the function of an extern gives for inputs of their declared types, which it cannot write to. Raises RunError."""
    assert s.extern is not None
    given = [_readable(x) for x in inputs]
    try:
        found = np.asarray(s.extern.function(*given))
    except Exception as error:
        raise _refused(s, f"the function of {s.path} raised {type(error).__name__}: {error}", f"it is {s.extern.label}") from error
    if found.shape != shape or found.dtype.name != s.dtype:
        asked = f"the function of {s.path} returned {found.dtype.name}{list(found.shape)}"
        raise _refused(s, asked, f"the stage is {s.dtype}{list(shape)}", f"np.asarray(..., np.{s.dtype}) of that shape in {s.extern.label}")
    return np.array(found, order="C")  # the function may keep what it returned


def _readable(x: Array) -> Array:
    view = np.ascontiguousarray(x).reshape(x.shape).view()
    view.flags.writeable = False
    return view


def _refused(s: Stage, asked: str, why: str, *instead: str) -> RunError:
    return RunError(Problem("R123", "run", path=s.path, source=s.source or None, asked=asked, why=why, try_=instead))


__all__ = ["called"]
