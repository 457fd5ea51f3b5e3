"""Functions of NumPy arrays that a model calls between its kernels: the manifest's `externs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from .complexes import complex_of, parts_of
from .errors import artifact_error, artifact_problem, run_error, run_problem
from .tensors import bits_of, numpy_dtype

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Extern:
    """One call in a kernel's place. It has the arguments of a kernel: tensors of `dtypes`, the result last. The function is given those at
    the positions `operands`, if the bool at position `taken` says so or there is none; `stage` is the path of what it makes.

    Of a function that returns arrays of several `ranks` the result is all of their elements in a row, and the last operand, which the
    function is not given, holds their extents. Inputs and results at the positions `complex_inputs` and `complex_results` are complex."""

    stage: str
    function: Callable[..., Any]
    dtypes: tuple[np.dtype[Any], ...]
    operands: tuple[int, ...]
    taken: int | None = None
    ranks: tuple[int, ...] = ()
    complex_inputs: tuple[int, ...] = ()
    complex_results: tuple[int, ...] = ()

    def __call__(self, *tensors: Any) -> None:
        """Raises RunError: the function raises, or returns another shape or type than the stage has."""
        if self.taken is not None and not _array(tensors[self.taken], self.dtypes[self.taken], False).item():
            return
        target = _array(tensors[len(self.dtypes) - 1], self.dtypes[-1], True)
        given = [_array(tensors[k], self.dtypes[k], False) for k in self.operands]
        shapes = _parted(given.pop(), self.ranks) if self.ranks else [target.shape]
        given = [complex_of(x) if k in self.complex_inputs else x for k, x in enumerate(given)]
        try:
            found = self.function(*given)
            arrays = [np.asarray(x) for x in found] if self.ranks else [np.asarray(found)]
        except Exception as error:
            asked = f"the function of {self.stage} raised {type(error).__name__}: {error}"
            raise run_error(run_problem("R123", asked)) from error
        wide = np.result_type(target.dtype, np.complex64) if self.complex_results else target.dtype
        wanted = [(wide, n[:-1]) if k in self.complex_results else (target.dtype, n) for k, n in enumerate(shapes)]
        if [(x.dtype, x.shape) for x in arrays] != wanted:
            asked = f"the function of {self.stage} returned {', '.join(f'{x.dtype.name}{list(x.shape)}' for x in arrays)}"
            raise run_error(run_problem("R123", asked, f"the stage is {', '.join(f'{dtype.name}{list(n)}' for dtype, n in wanted)}"))
        arrays = [parts_of(x) for x in arrays]
        if self.ranks:
            np.concatenate([x.ravel() for x in arrays], out=target)
        else:
            target[...] = arrays[0]


def _parted(extents: Array, ranks: Sequence[int]) -> list[tuple[int, ...]]:
    """The shapes of these ranks whose extents stand in a row."""
    rest = iter(extents.tolist())
    return [tuple(next(rest) for _ in range(rank)) for rank in ranks]


class _Memory:
    """The memory of a tensor as NumPy takes it."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], writeable: bool) -> None:
        self.__array_interface__ = {"version": 3, "data": (address, not writeable), "shape": shape, "typestr": dtype.str}


def _array(tensor: Any, dtype: np.dtype[Any], writeable: bool) -> Array:
    """The tensor's memory as an array, which lives no longer than the call."""
    stored = bits_of(np.empty(0, dtype)).dtype
    return np.asarray(_Memory(tensor.data_ptr(), tuple(tensor.shape), stored, writeable)).view(dtype)


def externs(manifest: Mapping[str, Any], given: Mapping[str, Callable[..., Any]] | None = None) -> dict[str, Extern]:
    """What a model calls, by the name of the kernel that it stands for; the functions from `given`, by path, else from their modules.

    Raises ArtifactError where a function is not found.
    """
    return {
        name: Extern(
            e["stage"],
            given[e["stage"]] if given is not None and e["stage"] in given else imported(e["stage"], e["function"]),
            tuple(map(numpy_dtype, e["dtypes"])),
            tuple(e["operands"]),
            e.get("taken"),
            tuple(e.get("ranks", ())),
            tuple(e.get("complex_inputs", ())),
            tuple(e.get("complex_results", ())),
        )
        for name, e in manifest.get("externs", {}).items()
    }


def imported(stage: str, function: str) -> Callable[..., Any]:
    """The function called module:name. Raises ArtifactError."""
    module, _, name = function.partition(":")
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        asked = f"{stage} is computed by {name} of the module {module}, which is not there ({error})"
        raise artifact_error(artifact_problem("R011", asked, f"put {module} where Python finds it")) from None
    if not callable(found):
        raise artifact_error(artifact_problem("R011", f"{stage} is computed by {function}, which is no function"))
    return found  # type: ignore[no-any-return]


def with_externs(kernels: Callable[[str], Any], called: Mapping[str, Extern]) -> Callable[[str], Any]:
    """The functions of a model by name: its kernels, and what is called in the place of some."""
    return (lambda name: called[name] if name in called else kernels(name)) if called else kernels


__all__ = ["Extern", "externs", "imported", "with_externs"]
