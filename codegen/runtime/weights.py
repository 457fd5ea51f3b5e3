"""Named tensors in a safetensors file: a length, a JSON header, the bytes.

Read here straight into aligned memory, with the dtypes that NumPy alone does not have. Nothing in such a file is executed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .errors import artifact_error, artifact_problem
from .memory import aligned
from .tensors import ALIGNMENT, bits_of, numpy_dtype
from .whole_files import whole

_NAMES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
_CODES = {name: code for code, name in _NAMES.items()}
_LARGEST_HEADER = 100_000_000


def read(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """All tensors of a file, each in aligned memory of its own. Raises ArtifactError."""
    try:
        with path.open("rb") as file:
            return _read(file, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise artifact_error(artifact_problem("R010", f"{path} cannot be read: {error.strerror}")) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise artifact_error(artifact_problem("R010", f"{path} is not a whole safetensors file ({error})")) from None


def _read(file: Any, size: int) -> dict[str, np.ndarray[Any, Any]]:
    length = int.from_bytes(file.read(8), "little")
    if length > min(size - 8, _LARGEST_HEADER):
        raise ValueError("its header is cut off")
    try:
        header: dict[str, Any] = json.loads(file.read(length))
    except RecursionError:
        raise ValueError("its header is nested too deeply") from None
    if not isinstance(header, dict):
        raise ValueError("its header is no JSON object")
    header.pop("__metadata__", None)
    tensors: dict[str, np.ndarray[Any, Any]] = {}
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        if entry["dtype"] not in _NAMES:
            raise ValueError(f"{name} is of the type {entry['dtype']}, which there is not here")
        dtype, shape = numpy_dtype(_NAMES[entry["dtype"]]), tuple(entry["shape"])
        begin, stop = entry["data_offsets"]
        if any(type(n) is not int or n < 0 for n in shape) or begin != end or stop - begin != dtype.itemsize * prod(shape):
            raise ValueError(f"{name} does not fill its place")
        if 8 + length + stop > size:
            raise ValueError(f"{name} is cut off")
        tensors[name] = array = aligned(shape, dtype)
        file.readinto(_bytes(array))
        end = stop
    if 8 + length + end != size:
        raise ValueError("bytes follow its last tensor")
    return tensors


def _bytes(array: np.ndarray[Any, Any]) -> memoryview:
    return bits_of(array).reshape(-1).view(np.uint8).data


def write(path: Path, tensors: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Write all tensors; the file is there whole or not at all. Raises OSError."""
    # wide elements first, so that every tensor stays aligned to its elements
    items = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, Any] = {}
    end = 0
    for name, array in items:
        header[name] = {"dtype": _CODES[array.dtype.name], "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-(8 + len(encoded)) % ALIGNMENT)
    with whole(path, 0o644) as file:
        file.write(len(encoded).to_bytes(8, "little") + encoded)
        for _, array in items:
            file.write(_bytes(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))))
