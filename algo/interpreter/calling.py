"""Externs: the call of a function that the user gave, and what is asked of its result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..complex.arrays import complex_of, parts_of
from ..dtypes import paired
from ..errors import Problem, RunError
from ..stages import Stage
from .elementary import Array


def called(s: Stage, inputs: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """What the function of an extern gives for inputs of their declared types, which it cannot write to. Raises RunError."""
    assert s.extern is not None
    ranks, handed = s.extern.ranks, inputs[:-1] if s.extern.ranks else inputs
    pairs, results = s.extern.complex_inputs, s.extern.complex_results
    given = [_readable(complex_of(x) if k in pairs else x) for k, x in enumerate(handed)]
    try:
        found = s.extern.function(*given)
        arrays = [np.asarray(x) for x in found] if ranks else [np.asarray(found)]
    except Exception as error:
        raise _refused(s, f"the function of {s.path} raised {type(error).__name__}: {error}", f"it is {s.extern.label}") from error
    shapes = parted(inputs[-1], ranks) if ranks else [shape]
    wanted = [(paired(s.dtype), n[:-1]) if k in results else (s.dtype, n) for k, n in enumerate(shapes)]
    if [(x.dtype.name, x.shape) for x in arrays] != wanted:
        asked = f"the function of {s.path} returned {', '.join(f'{x.dtype.name}{list(x.shape)}' for x in arrays)}"
        why = f"the stage is {', '.join(f'{dtype}{list(n)}' for dtype, n in wanted)}"
        raise _refused(s, asked, why, f"np.asarray(..., np.{wanted[0][0]}) of that shape in {s.extern.label}")
    arrays = [parts_of(x) for x in arrays]
    return np.concatenate([x.ravel() for x in arrays]) if ranks else np.array(arrays[0], order="C")  # the function may keep its array


def parted(extents: Array, ranks: Sequence[int]) -> list[tuple[int, ...]]:
    """The shapes of these ranks whose extents stand in a row."""
    rest = iter(extents.tolist())
    return [tuple(next(rest) for _ in range(rank)) for rank in ranks]


def _readable(x: Array) -> Array:
    view = np.ascontiguousarray(x).reshape(x.shape).view()
    view.flags.writeable = False
    return view


def _refused(s: Stage, asked: str, why: str, *instead: str) -> RunError:
    return RunError(Problem("R123", "run", path=s.path, source=s.source or None, asked=asked, why=why, try_=instead))


__all__ = ["called"]
