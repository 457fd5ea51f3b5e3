"""Inputs and results in files: .npy .npz .png .json, and literals."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from fluorite.algo.errors import FluoriteError, Problem, RunError

from .refusals import usage

Array = np.ndarray[Any, Any]
SUFFIXES = (".npy", ".npz", ".png", ".json")
_LARGEST_PICTURE = 1 << 28


class Declared(Protocol):
    """What a method says of one of its inputs."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[Any, ...]: ...


def read(text: str, declared: Declared) -> Any:
    """The value of `--set NAME=TEXT`: an array for .npy, .npz (also FILE.npz:KEY) and .png, else plain numbers and lists.

    Raises RunError for a file that cannot be read, UsageError for text that is no value.
    """
    file, key = (text.rpartition(":")[0], text.rpartition(":")[2]) if ".npz:" in text else (text, None)
    path = Path(file)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        return _literal(text, declared)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _unreadable(declared.name, path, (error.strerror or str(error)).lower()) from None
    try:
        match suffix:
            case ".npy":
                return np.load(io.BytesIO(data), allow_pickle=False)
            case ".npz":
                return _of_npz(data, key, declared.name)
            case ".png":
                return _of_picture(data, declared)
        return json.loads(data)
    except FluoriteError:
        raise
    except MemoryError:
        raise _unreadable(declared.name, path, "there is not enough memory for it") from None
    except Exception as error:  # decoders of foreign files raise what they like
        raise _unreadable(declared.name, path, str(error.args[0] if error.args else type(error).__name__)) from None


def _literal(text: str, declared: Declared) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, bool | int | float | list):
        word = text.strip().lower()
        if word in ("inf", "+inf", "-inf", "nan"):
            return float(word)
        if word.endswith("j"):
            with suppress(ValueError):
                return complex(word.replace(" ", ""))
        raise usage(
            f"--set {declared.name}={text}",
            "is neither a number, a list of numbers, true or false, nor a file",
            *(f"{declared.name}=FILE{s}" for s in SUFFIXES),
        )
    return value


def _of_npz(data: bytes, key: str | None, name: str) -> Array:
    with np.load(io.BytesIO(data), allow_pickle=False) as found:
        keys = list(found.files)
        chosen = key if key is not None else name if name in keys else keys[0] if len(keys) == 1 else None
        if chosen not in keys:
            raise ValueError(f"it has no array {chosen or name}; it has {', '.join(keys) or 'none'}")
        return np.asarray(found[chosen])


def _of_picture(data: bytes, declared: Declared) -> Array:
    """Grey for two axes, colours for three; floats run from 0 to 1, integers are the picture's own."""
    pillow = _pillow()
    try:
        image = pillow.open(io.BytesIO(data), formats=("PNG",))
    except pillow.UnidentifiedImageError:
        raise ValueError("it is no PNG picture") from None
    if image.width * image.height > _LARGEST_PICTURE:
        raise ValueError("the picture is too large")
    deep = image.mode.startswith("I")
    rank, dtype = len(declared.shape), np.dtype(declared.dtype)
    if rank == 2:
        pixels: Array = np.asarray(image if deep else image.convert("L")).astype(np.uint16 if deep else np.uint8)
    elif rank == 3:
        wanted = declared.shape[-1]
        pixels = np.asarray(image.convert({1: "L", 4: "RGBA"}.get(wanted if isinstance(wanted, int) else 3, "RGB")))
        pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    else:
        raise ValueError(f"a picture has 2 axes, or 3 with colours; {declared.name} has {rank}")
    most = 65535 if deep and rank == 2 else 255
    if dtype.kind == "f":
        return np.asarray(pixels / dtype.type(most), dtype)
    return np.asarray(pixels > most // 2 if dtype.kind == "b" else pixels, dtype)


def encode(array: Array, path: Path) -> tuple[bytes, str]:
    """The bytes of one result in the form that the file's name says, and a remark ("" if there is nothing to remark)."""
    buffer = io.BytesIO()
    if path.suffix.lower() in (".npy", ".npz"):
        _require_numpys(path.name, array)
    match path.suffix.lower():
        case ".npy":
            np.save(buffer, array, allow_pickle=False)
        case ".npz":
            np.savez(buffer, out=array)
        case ".json":
            from .terminal import json_data

            buffer.write(json.dumps(json_data(listed(array))).encode() + b"\n")
        case ".png":
            return _as_picture(array, path)
        case _:
            raise usage(f"-o {path}", "the form of the file is not known by its name", *SUFFIXES)
    return buffer.getvalue(), ""


def _require_numpys(name: str, array: Array) -> None:
    if array.dtype.kind == "V":
        raise RunError(
            Problem(
                "R404",
                "run",
                asked=f"{name}: NumPy's files cannot say {array.dtype.name}",
                why="they would hold its bits without their meaning",
                try_=("a result cast to float32 in the algorithm: fl.cast(x, fl.f32)", "-o out.json"),
            )
        )


def encode_all(arrays: Mapping[str, Array]) -> bytes:
    """All results in one .npz file."""
    buffer = io.BytesIO()
    for name, array in arrays.items():
        _require_numpys(name, array)
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _as_picture(array: Array, path: Path) -> tuple[bytes, str]:
    if array.dtype.kind == "c" or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (1, 3, 4)) or not array.size:
        raise RunError(
            Problem(
                "R404",
                "run",
                asked=f"{path}: a result {array.dtype.name}{list(array.shape)} is no picture",
                why="a picture is [h, w], or [h, w, c] with 1, 3 or 4 colours, of real numbers",
                try_=(str(path.with_suffix(".npy")),),
            )
        )
    remark = ""
    if array.dtype.kind == "f":
        outside = int(np.count_nonzero(~((array >= 0) & (array <= 1))))
        remark = f"{path}: {outside} of {array.size} values lie outside 0..1 and were clipped" if outside else ""
        pixels = (np.clip(np.nan_to_num(array.astype(np.float64)), 0, 1) * 255).round().astype(np.uint8)
    elif array.dtype.kind == "b":
        pixels = array.astype(np.uint8) * 255
    else:
        most = 65535 if array.dtype == np.uint16 and array.ndim == 2 else 255
        outside = int(np.count_nonzero((array < 0) | (array > most)))
        remark = f"{path}: {outside} of {array.size} values lie outside 0..{most} and were clipped" if outside else ""
        pixels = np.clip(array, 0, most).astype(np.uint16 if most > 255 else np.uint8)
    buffer = io.BytesIO()
    _pillow().fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels).save(buffer, format="PNG")
    return buffer.getvalue(), remark


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise RunError(
            Problem("R405", "run", asked="pictures need the package pillow", why="it is not installed", try_=("pip install pillow",))
        ) from None
    return Image


def _unreadable(name: str, path: Path, why: str) -> RunError:
    return RunError(Problem("R403", "run", asked=f"--set {name}={path} cannot be read", why=why))


def leaves(result: Any, path: str = "") -> dict[str, Array]:
    """The arrays of a result by name: keys and positions joined with `/`; a single array is called `out`."""
    match result:
        case Mapping():
            parts = [(str(k), v) for k, v in result.items()]
        case list() | tuple():
            parts = [(str(n), v) for n, v in enumerate(result)]
        case None:
            return {}
        case _:
            return {path or "out": np.asarray(result)}
    found: dict[str, Array] = {}
    for key, value in parts:
        found |= leaves(value, f"{path}/{key}" if path else key)
    return found


def listed(array: Array) -> Any:
    """The elements as Python numbers, complex ones as pairs of them."""
    return array.tolist() if array.dtype.kind != "c" else np.stack([array.real, array.imag], -1).tolist()


def short(array: Array) -> str:
    """`float32[512, 512]  min 0, max 1, mean 0.5`, of complex numbers their magnitudes; small ones in full."""
    head = f"{array.dtype.name}[{', '.join(map(str, array.shape))}]"
    if array.size <= 12:
        return f"{head}  {json.dumps(_rounded(listed(array)))}"
    if array.dtype.kind == "c":
        head, array = f"{head}  magnitude", np.abs(array)
    if array.dtype.kind == "b":
        return f"{head}  {int(array.sum())} of {array.size} true"
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        facts = f"min {wide.min():.6g}, max {wide.max():.6g}, mean {wide.mean():.6g}"
    bad = int(np.count_nonzero(~np.isfinite(wide)))
    return f"{head}  {facts}" + (f", {bad} not finite" if bad else "")


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(v) for v in value]
    return float(f"{value:.7g}") if isinstance(value, float) else value
