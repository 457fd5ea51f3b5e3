"""Operators of real tensors made operators of complex ones too: part by part, or as products of parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import product
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..building import scope
from ..tensor import Tensor
from .elements import is_complex
from .tensors import ComplexTensor, complex_tensor, is_interleaved

P = ParamSpec("P")
R = TypeVar("R")


def holds_complex(value: Any) -> bool:
    """Whether an argument is complex, or a list that has something complex in it."""
    return any(map(holds_complex, value)) if isinstance(value, list | tuple) else is_complex(value)


def by_parts(*operands: str, scoped: bool = True) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """For what moves or adds elements: it is done with the real parts and with the imaginary parts.

    `operands` are the parameters that hold elements (`tensors` a list of them), the first by default. All others are the same for both
    parts. If `scoped`, the stages are those of NAME/real and NAME/imag.
    """

    def lift(fn: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(fn)
        chosen = operands or (next(iter(signature.parameters)),)

        @wraps(fn)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            if not any(map(holds_complex, (*args, *kwargs.values()))):
                return fn(*args, **kwargs)
            name = kwargs.pop("name", None)
            given = signature.bind(*args, **kwargs).arguments
            split = {k: _split(v, k in _LISTS, fn.__name__) for k, v in given.items() if k in chosen}

            def part(n: int, label: str) -> Any:
                positional, named = _arguments(signature, given | {k: v[n] for k, v in split.items()})
                return fn(*positional, **named, **({"name": label} if scoped else {}))  # type: ignore[arg-type]

            if not scoped:
                return _paired(part(0, ""), part(1, ""), split)
            with scope(str(name or fn.__name__.rstrip("_"))):
                return _paired(part(0, "real"), part(1, "imag"), split)

        return call

    return lift


_LISTS = ("tensors", "vectors")
"""Parameters that hold several tensors."""


def _arguments(signature: inspect.Signature, given: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    bound = inspect.BoundArguments(signature, given)
    return bound.args, bound.kwargs


def _split(value: Any, several: bool, what: str) -> tuple[Any, Any]:
    """The parts of an operand; those of a real one with 0."""
    if several:
        pairs = [_split(v, False, what) for v in value]
        return [a for a, _ in pairs], [b for _, b in pairs]
    if value is None:
        return None, None
    if isinstance(value, complex):
        return value.real, value.imag
    if holds_complex(value):
        return complex_tensor(value, what).parts()
    if isinstance(value, bool | int | float):
        return value, 0
    if isinstance(value, Tensor):
        return complex_tensor(value, what).parts()
    return value, np.zeros_like(value)


def _paired(real: Any, imag: Any, split: dict[str, Any]) -> Any:
    if isinstance(real, Tensor):
        return ComplexTensor(real, imag)
    return type(real)(_paired(a, b, split) for a, b in zip(real, imag, strict=True))


def multilinear(*operands: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """For products, which are linear in each of these operands (a variadic one: in each of its tensors): the sum over the parts of all
    complex ones, with i² = -1. Stages `real_imag` and so on for the products of parts, and `real` and `imag`."""

    def lift(fn: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(fn)

        @wraps(fn)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            if not any(map(holds_complex, (*args, *kwargs.values()))):
                return fn(*args, **kwargs)
            name = kwargs.pop("name", None)
            bound = signature.bind(*args, **kwargs)
            places = list(_places(bound, operands))
            with scope(str(name or fn.__name__.rstrip("_"))):
                split = {p: _apart(complex_tensor(_at(bound, p), fn.__name__)) for p in places}
                terms: tuple[list[Any], list[Any]] = [], []
                for choice in product((0, 1), repeat=len(places)):
                    chosen = {p: split[p][n] for p, n in zip(places, choice, strict=True)}
                    positional, named = _replaced(bound, chosen)
                    label = "_".join(("real", "imag")[n] for n in choice)
                    made = fn(*positional, **named, name=label)  # type: ignore[arg-type]
                    turns = sum(choice)
                    terms[turns % 2].append((made, turns % 4 > 1))
                return ComplexTensor(*(_total(t, n) for t, n in zip(terms, ("real", "imag"), strict=True)))

        return call

    return lift


def _apart(z: ComplexTensor) -> tuple[Any, Any]:
    """The parts, each in memory of its own where they lie side by side and are read many times: vectors of them are then loaded whole."""
    from ..trace import copied

    def apart(part: Tensor, name: str) -> Tensor:
        return copied(part, name, "derived") if part.ndim > 1 and is_interleaved(part) else part

    return apart(z.real, "real_part"), apart(z.imag, "imag_part")


Place = tuple[str, int | None]


def _places(bound: inspect.BoundArguments, operands: Sequence[str]) -> Iterator[Place]:
    """Where the complex operands are."""
    for name in operands:
        value = bound.arguments.get(name)
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            yield from ((name, k) for k, v in enumerate(value or ()) if holds_complex(v))
        elif holds_complex(value):
            yield name, None


def _at(bound: inspect.BoundArguments, place: Place) -> Any:
    value = bound.arguments[place[0]]
    return value if place[1] is None else value[place[1]]


def _replaced(bound: inspect.BoundArguments, chosen: dict[Place, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    given = dict(bound.arguments)
    for (name, k), value in chosen.items():
        given[name] = value if k is None else (*given[name][:k], value, *given[name][k + 1 :])
    return _arguments(bound.signature, given)


def _total(terms: Sequence[tuple[Tensor, bool]], name: str) -> Tensor:
    """The sum of the terms, those with a mark taken off."""
    from ..ops.arithmetic import add, subtract

    total, _ = terms[0]
    for n, (t, minus) in enumerate(terms[1:], 2):
        total = (subtract if minus else add)(total, t, name=name if n == len(terms) else None)
    return total


__all__ = ["by_parts", "holds_complex", "multilinear"]
