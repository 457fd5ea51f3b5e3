"""What a caller gives, made into arrays of exactly the declared dtype, rank and extents, or refused in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .complexes import NAMES, parts_of
from .errors import Problem, run_problem
from .extents import evaluate, solve, text
from .manifest import MethodSpec, TensorSpec
from .tensors import adopt

_WEAK = (bool, int, float, complex, list, tuple)
_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}  # dtype kinds by what a weak value of them may become
_CPU = 1
LARGEST_EXTENT = 1 << 48


class Refused(Exception):
    """Carries the problem from where it is found to where problems are gathered."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


def as_array(label: str, spec: TensorSpec, value: Any) -> np.ndarray[Any, Any]:
    """`value` as an array of the declared dtype, of complex numbers their parts; of any byte order, strides and alignment. Raises Refused.
    """
    if spec.complex:
        return _parts(label, spec, value)
    kind = type(value)
    if kind is np.ndarray and value.dtype == spec.numpy and value.ndim == len(spec.shape):
        return value  # type: ignore[no-any-return]
    if kind is float and not spec.shape and spec.numpy.kind == "f":
        return np.array(value, spec.numpy)
    if spec.counts:
        return _count(label, spec, value)
    expected = f"expected {spec.text()}"
    if kind in _WEAK:
        array = _weak(label, spec, value, expected)
    elif isinstance(value, np.ma.MaskedArray):
        raise Refused(run_problem("R104", f"{label}: {spec.name} is a masked array, {expected}", f"{spec.name}.filled(0)"))
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
    elif hasattr(value, "__dlpack__"):
        array = _adopted(label, spec, value, expected)
    elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        array = _converted(label, spec, value, expected)
    else:
        raise Refused(run_problem("R104", f"{label}: {spec.name} is of type {type(value).__name__}, {expected}"))
    if array.dtype.newbyteorder("=") != spec.numpy:
        raise Refused(run_problem("R104", f"{label}: {spec.name} is {array.dtype.name}, {expected}", *_cast(spec, array)))
    return array


def _count(label: str, spec: TensorSpec, value: Any) -> np.ndarray[Any, Any]:
    """A number as an array of no elements that has this extent."""
    whole = isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iu")
    if whole and not isinstance(value, bool) and int(value) >= LARGEST_EXTENT:
        raise Refused(run_problem("R104", f"{label}: {spec.name} is {int(value)}, expected an extent", "at most 2**48"))
    if isinstance(value, bool) or not whole or int(value) < 0:
        asked = f"{label}: {spec.name} is {value!r}" if np.ndim(value) == 0 else f"{label}: {spec.name} is of type {type(value).__name__}"
        raise Refused(run_problem("R104", f"{asked}, expected an extent", "a whole number from 0 on"))
    return np.empty((int(value), 0), spec.numpy)


def _parts(label: str, spec: TensorSpec, value: Any) -> np.ndarray[Any, Any]:
    """Complex numbers, or those of a type that they are made from without a word, as [..., 2]. The parts themselves are taken too."""
    if type(value) is np.ndarray and value.dtype == NAMES[spec.dtype] and value.ndim == len(spec.shape) - 1:
        return value[..., None].view(spec.numpy)
    whole = replace(spec, dtype=NAMES[spec.dtype], shape=spec.shape[:-1], complex=False)
    if isinstance(value, np.ndarray) and value.dtype == spec.numpy and value.ndim == len(spec.shape) and value.shape[-1] == 2:
        return value
    return parts_of(as_array(label, whole, value))


def rank_problem(label: str, spec: TensorSpec, array: np.ndarray[Any, Any]) -> Problem | None:
    """What is wrong with the number of its axes."""
    if array.ndim == len(spec.shape):
        return None
    return run_problem("R105", f"{label}: {spec.name} has shape {spec.seen(array.shape)}, expected {spec.text()}")


def _weak(label: str, spec: TensorSpec, value: Any, expected: str) -> np.ndarray[Any, Any]:
    """A Python number or list takes the declared dtype, as long as no part of its value is lost."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise Refused(run_problem("R104", f"{label}: {spec.name} is a list of unequal rows, {expected}")) from None
    except OverflowError:
        array = np.asarray(value, object)
    dtype = spec.numpy
    kind = "f" if np.issubdtype(dtype, np.floating) else dtype.kind
    if array.size and _RANK.get(array.dtype.kind, 9) > _RANK.get(kind, 0):
        found = "an integer too large" if array.dtype.kind == "O" and isinstance(value, int) else f"{_kind_name(array)}"
        raise Refused(run_problem("R104", f"{label}: {spec.name} is {found}, {expected}"))
    if kind in "iu" and array.size and not (np.iinfo(dtype).min <= int(array.min()) and int(array.max()) <= np.iinfo(dtype).max):
        raise Refused(run_problem("R104", f"{label}: {spec.name} holds a number outside {dtype.name}, {expected}"))
    return array.astype(dtype)


def _kind_name(array: np.ndarray[Any, Any]) -> str:
    names = {"b": "a truth value", "i": "an integer", "u": "an integer", "f": "a float", "c": "a complex number"}
    return names.get(array.dtype.kind, f"{array.dtype.name} values")


def _converted(label: str, spec: TensorSpec, value: Any, expected: str) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(value)
    except Exception as error:  # the object's own code
        raise Refused(run_problem("R104", f"{label}: {spec.name} gives no array ({error}), {expected}")) from None


def _adopted(label: str, spec: TensorSpec, value: Any, expected: str) -> np.ndarray[Any, Any]:
    try:
        if getattr(value, "__dlpack_device__", lambda: (_CPU, 0))()[0] == _CPU:
            return adopt(_resolved(value))
    except Exception as error:
        raise Refused(run_problem("R106", f"{label}: {spec.name} cannot be shared ({error}), {expected}")) from None
    raise Refused(run_problem("R106", f"{label}: {spec.name} is on another device than the CPU, {expected}", f"{spec.name}.cpu()"))


def _resolved(value: Any) -> Any:
    """The tensor, its elements computed where PyTorch put off a minus or a conjugate: what is shared is the memory without."""
    for asked, resolve in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        if callable(waiting := getattr(value, asked, None)) and waiting():
            value = getattr(value, resolve)()
    return value


def _cast(spec: TensorSpec, array: np.ndarray[Any, Any]) -> Sequence[str]:
    if array.dtype.kind not in _RANK:
        return ()
    module = "ml_dtypes" if spec.numpy.isbuiltin == 2 else "np"
    return (f"{spec.name}.astype({module}.{spec.dtype})",)


def bind(label: str, method: MethodSpec, shapes: Sequence[tuple[int, ...]]) -> tuple[dict[str, int], list[Problem]]:
    """The value of every symbol, and what is wrong with the inputs' shapes."""
    symbols: dict[str, int] = {}
    source: dict[str, str] = {}
    wrong: list[Problem] = []
    pending = [(i, axis) for i, spec in enumerate(method.inputs) for axis in range(len(spec.shape))]
    pending.sort(key=lambda place: not isinstance(method.inputs[place[0]].shape[place[1]], str))  # plain symbols bind first
    for i, axis in pending:
        spec, found = method.inputs[i], shapes[i][axis]
        extent = spec.shape[axis]
        solved = solve(extent, found, symbols)
        if solved and solved[1] >= 0:
            symbols[solved[0]], source[solved[0]] = solved[1], spec.name
        elif not _agrees(extent, found, symbols):
            wrong.append(_disagreement(label, spec, axis, shapes[i], symbols, source))
    for name, value in symbols.items():
        if name in method.symbols and (why := method.symbols[name].refusal(value)):
            where = f" in {source[name]}" if source[name] != name else ""
            instead = () if value else (f"a plan with extents: {{{name}: {{between: [0, 512]}}}}",)
            wrong.append(run_problem("R107", f"{label}: {name} is {value}{where}, {why}", *instead))
    return symbols, wrong


def _agrees(extent: Any, found: int, symbols: Mapping[str, int]) -> bool:
    try:
        return evaluate(extent, symbols) == found
    except KeyError:
        return False


def _disagreement(
    label: str, spec: TensorSpec, axis: int, shape: tuple[int, ...], symbols: Mapping[str, int], source: Mapping[str, str]
) -> Problem:
    extent = spec.shape[axis]
    if spec.counts and not isinstance(extent, str):
        return run_problem("R105", f"{label}: {spec.name} is {shape[axis]}, expected {text(extent)}")
    if isinstance(extent, str):
        return run_problem("R105", f"{label}: {extent} is {symbols[extent]} in {source[extent]}, but {shape[axis]} in {spec.name}")
    known = "" if isinstance(extent, int) or not _known(extent, symbols) else f", and {text(extent)} is {evaluate(extent, symbols)} here"
    return run_problem("R105", f"{label}: {spec.name} has shape {spec.seen(shape)}, expected {spec.text()}{known}")


def _known(extent: Any, symbols: Mapping[str, int]) -> bool:
    try:
        evaluate(extent, symbols)
    except KeyError:
        return False
    return True
