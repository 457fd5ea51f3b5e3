"""Arrays in files that are mapped into memory: only the rows that are read leave the disk."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .dataset import Dataset, FromFile, Table
from .examples import Array, Example, each
from .order import Numbers
from .refusals import refused, unreadable
from .sources import arranged, require_rows

_TYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip


class MappedRows(Table):
    """Rows of arrays that are mapped when the first is asked for."""

    @abstractmethod
    def mapped(self) -> dict[str, Array]:
        """The arrays, by the name of the input."""

    @cached_property
    def opened(self) -> dict[str, Array]:
        found: dict[str, Array] = require_rows(self.mapped(), "the data")
        return found

    @property
    def size(self) -> int:
        return len(next(iter(self.opened.values())))

    def rows(self, numbers: Numbers) -> Example:
        return each(lambda a: np.asarray(a[numbers]), self.opened)


@dataclass(frozen=True, eq=False)
class Npy(MappedRows):
    """One .npy file for each input."""

    paths: Mapping[str, Path]

    def mapped(self) -> dict[str, Array]:
        return {name: _npy(path) for name, path in self.paths.items()}


def _npy(path: Path) -> Array:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, EOFError) as error:
        raise refused("R202", f"{path} is no .npy file of numbers", str(error)) from None
    if not isinstance(found, np.ndarray):
        raise refused("R202", f"{path} is an archive of arrays", "archives cannot be mapped", "a .npy file for each array")
    return found


@dataclass(frozen=True, eq=False)
class Safetensors(FromFile, MappedRows):
    """The tensors of one safetensors file, or some of them under other names."""

    path: Path
    columns: Mapping[str, str] | None = None

    def mapped(self) -> dict[str, Array]:
        found = self._tensors()
        if self.columns is None:
            return found
        if missing := [t for t in self.columns.values() if t not in found]:
            raise refused("R201", f"{self.path} has no tensor {missing[0]!r}", f"it has {', '.join(found)}")
        return {name: found[tensor] for name, tensor in self.columns.items()}

    def _tensors(self) -> dict[str, Array]:
        from safetensors import SafetensorError, safe_open

        try:
            # safe_open checks the header, and that all tensors are there
            with safe_open(self.path, framework="numpy"), self.path.open("rb") as file:
                length = int.from_bytes(file.read(8), "little")
                header = json.loads(file.read(length))
        except OSError as error:
            raise unreadable(self.path, error) from None
        except SafetensorError as error:
            raise refused("R202", f"{self.path} is no whole safetensors file", str(error)) from None
        header.pop("__metadata__", None)
        return {name: self._mapped(entry, 8 + length) for name, entry in header.items()}

    def _mapped(self, entry: Mapping[str, Any], begin: int) -> Array:
        if entry["dtype"] not in _TYPES:
            raise refused("R202", f"{self.path} has a tensor of {entry['dtype']}", "there is no such type here")
        shape, dtype = tuple(entry["shape"]), np.dtype(_TYPES[entry["dtype"]])
        if 0 in shape:
            return np.empty(shape, dtype)
        return np.memmap(self.path, dtype, "r", begin + entry["data_offsets"][0], shape)


def npy(batch_size: int | None = None, shuffle: int | None = None, drop_last: bool = False, **paths: str | Path) -> Dataset:
    """The rows of .npy files, one for each input, mapped into memory: ``fl.data.npy(x="x.npy", y="y.npy", batch_size=64, shuffle=0)``.

    They are opened when the first row is asked for. Raises RunError then, if one is no such file or they are not equally long.
    """
    if not paths:
        raise refused("R201", "npy(...)", "it takes a file for each input", 'fl.data.npy(x="x.npy")')
    return arranged(Npy({name: Path(path) for name, path in paths.items()}), batch_size, shuffle, drop_last)


def safetensors(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    *,
    batch_size: int | None = None,
    shuffle: int | None = None,
    drop_last: bool = False,
) -> Dataset:
    """The rows of the tensors of a safetensors file, mapped into memory. `columns` has the tensor for each input; without it all of them,
    under their names. It is opened when the first row is asked for; then RunError says what is wrong with it."""
    return arranged(Safetensors(Path(path), columns), batch_size, shuffle, drop_last)


__all__ = ["Npy", "Safetensors", "npy", "safetensors"]
