"""The arguments by which a function is differentiated: nests of tensors, parameters, modules and Programs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from ..building import current
from ..complex import from_pair
from ..dtypes import FLOATS
from ..expr import refuse
from ..graph import map_tree
from ..held import ComplexHeld, Held, Parameter
from ..modules import Module, Program, members
from ..tensor import Direct, Tensor
from ..trees import leaves, refilled
from .aliases import alias

Place: TypeAlias = int | str
"""Which argument: its position or its name."""


def require_float(t: Tensor) -> None:
    if t.dtype not in FLOATS:
        why = "only floats have derivatives"
        raise refuse("A172", f"the derivative by {t!r}", why, "argnums= with the float arguments", "fl.cast(x, fl.f32)")


def arguments_of(given: Mapping[Place, tuple[Any, str]]) -> dict[Place, Argument]:
    """Of each of some values, with what they are called."""
    rebound: dict[int, Direct] = {}
    return {k: Argument(value, name, rebound) for k, (value, name) in given.items()}


class Argument:
    """One argument, with aliases in place of its tensors: `inside` are those, `outer` what the function is called with."""

    def __init__(self, value: Any, name: str, rebound: dict[int, Direct]) -> None:
        self.rebound = rebound  # what stands for parameters, whichever of the arguments has them
        self.inside: list[Direct] = []
        self.pairs: list[bool] = []  # which of them are complex parameters
        self.name = name
        self.outer, self.tree = self._of(value)

    def _of(self, value: Any) -> tuple[Any, Any]:
        """What the function gets for a part of the argument, and how the derivative by it is built."""
        if isinstance(value, list | tuple):
            parts = [self._of(v) for v in value]
            outer, tree = ([p[k] for p in parts] for k in (0, 1))
            return (outer, tree) if isinstance(value, list) else (tuple(outer), tuple(tree))
        if isinstance(value, dict):
            found = {k: self._of(v) for k, v in value.items()}
            return {k: outer for k, (outer, _) in found.items()}, {k: tree for k, (_, tree) in found.items()}
        if (parameter := _own(value)) is not None:
            of_it = self._bound({"": parameter})[""]
            return (from_pair(self.inside[-1]) if parameter.complex else parameter), of_it
        if isinstance(value, Module | Program):
            if not (named := _trainable(value)):
                raise refuse("A172", f"the derivative by {self.name}", "it has no trainable parameter")
            return value, self._bound(named)
        outer = map_tree(lambda t: _aliased(t, self.name), value)
        self.inside += leaves(outer)
        self.pairs += [False] * len(leaves(outer))
        return outer, outer

    def _bound(self, named: dict[str, Parameter]) -> dict[str, int]:
        """Parameters, which the function may also reach by itself."""
        for p in named.values():
            if id(p) not in self.rebound:
                self.rebound[id(p)] = alias(p)
            self.inside.append(self.rebound[id(p)])
            self.pairs.append(p.complex)
        return dict.fromkeys(named, 0)

    def filled(self, parts: Iterator[Tensor]) -> Any:
        found: list[Any] = [next(parts) for _ in self.inside]
        return refilled(self.tree, [from_pair(t) if pair else t for t, pair in zip(found, self.pairs, strict=True)])


def _own(value: Any) -> Parameter | None:
    """The parameter or state that is meant by one, or by what an attribute that holds it gives."""
    if isinstance(value, ComplexHeld):
        return value.stored if value.joined is value.stored or _is_now(value.joined, value.stored) else None
    if isinstance(value, Held):
        return value.parameter if _is_now(value, value.parameter) else None
    return value if isinstance(value, Parameter) else None


def _is_now(value: Any, parameter: Parameter) -> bool:
    """Whether a tensor is what the parameter holds at this point, not what it held before."""
    return isinstance(value, Direct) and value.source == parameter.now().source


def _aliased(t: Any, name: str) -> Direct:
    from ..ops.shapes import tensor

    found = tensor(t, name)
    require_float(found)
    return alias(found, name)


def _trainable(value: Module | Program) -> dict[str, Parameter]:
    return {path: p for path, p in members(value) if isinstance(p, Parameter) and p.trainable}


def called(fn: Callable[..., Any], held: Mapping[Place, Argument], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """What the function returns with these in place of its arguments."""
    from ..python import converted

    given = [held[k].outer if k in held else a for k, a in enumerate(args)]
    named = {k: held[k].outer if k in held else a for k, a in kwargs.items()}
    with _rebound(next(iter(held.values())).rebound if held else {}):
        return converted(fn)(*given, **named)


@contextmanager
def _rebound(to: dict[int, Direct]) -> Iterator[None]:
    """Inside, parameters are other tensors, whatever the method has made of them."""
    builder = current()
    bound_before = {k: builder.bound[k] for k in to}
    made_before = {k: builder.assigned.pop(k) for k in to if k in builder.assigned}
    builder.bound.update(to)
    try:
        yield
    finally:
        builder.bound.update(bound_before)
        builder.assigned = made_before | builder.assigned


def places_of(fn: Callable[..., Any], argnums: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Place]:
    """The arguments by which is differentiated, as positions or, where given by name, names."""
    names = list(inspect.signature(fn).parameters)
    out: list[Place] = []
    for n in argnums if isinstance(argnums, list | tuple) else [argnums]:
        if isinstance(n, str) and n in names:
            n = n if n in kwargs else names.index(n)
        elif isinstance(n, int) and not isinstance(n, bool) and -len(names) <= n < len(names):
            n = n % len(names) if n < 0 else n
            if n >= len(args) and names[n] in kwargs:
                n = names[n]
        else:
            raise refuse("A173", f"argnums={n!r}", f"{fn.__name__} has {', '.join(names) or 'no arguments'}", "a position or a name of one")
        if isinstance(n, int) and n >= len(args):
            raise refuse("A173", f"argnums={argnums!r}", f"{fn.__name__} was called without {names[n]}")
        out.append(n)
    return out


def argument_name(fn: Callable[..., Any], place: Place) -> str:
    if isinstance(place, str):
        return place
    names = list(inspect.signature(fn).parameters)
    return names[place] if place < len(names) else f"argument{place}"


__all__ = ["Argument", "Place", "argument_name", "arguments_of", "called", "places_of", "require_float"]
