"""Which parameters an optimiser means: a module, parameters, names with wildcards, or a list of these."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any, TypeAlias

from ..building import Builder, current
from ..expr import refuse
from ..held import ComplexHeld, Held, Parameter, stored_of
from ..modules import Module, members

Selection: TypeAlias = Any  # None | Module | Parameter | str | list of these


def trainable(builder: Builder) -> list[Parameter]:
    """Every parameter of the Program that optimisers may move, in its order."""
    return [p for p in builder.kept if isinstance(p, Parameter) and p.trainable and id(p) in builder.homes]


def selected(given: Selection) -> list[Parameter]:
    """The parameters that are meant, each once; all of the Program for None. Raises AlgorithmError: names or modules without any."""
    everything = trainable(current())
    found = everything if given is None else list(_each(given, everything))
    if not found:
        raise refuse("A192", "an optimiser of no parameters", "nothing that it was given has a trainable one", "fl.param(...) in __init__")
    return list({id(p): p for p in found}.values())


def matcher(given: Selection) -> Callable[[Parameter], bool]:
    """Whether a parameter is meant. None means all."""
    if given is None:
        return lambda _: True
    chosen = {id(p) for p in selected(given)}
    return lambda p: id(p) in chosen


def _each(given: Selection, everything: list[Parameter]) -> Iterator[Parameter]:
    match given:
        case Held() | ComplexHeld() | Parameter():
            yield stored_of(given)
        case Module():
            yield from (p for _, p in members(given) if isinstance(p, Parameter) and p.trainable)
        case str():
            yield from _named(given, everything)
        case list() | tuple():
            for part in given:
                yield from _each(part, everything)
        case dict():
            yield from _each(list(given.values()), everything)
        case _:
            raise refuse("A192", f"params={given!r}", "it is a module, a parameter, a name such as layers.*/w, or a list of these")


def _named(text: str, everything: list[Parameter]) -> list[Parameter]:
    """As in plans: the end of a path, or a module around it; `*` within a part, `**` over parts, a leading / for the whole path."""
    homes = current().homes
    pieces = [{"**": ".+", "*": "[^/]*"}.get(piece, re.escape(piece)) for piece in re.split(r"(\*\*|\*)", text.lstrip("/"))]
    pattern = re.compile(("" if text.startswith("/") else "(?:.*/)?") + "".join(pieces) + "(?:/.*)?")
    found = [p for p in everything if pattern.fullmatch(homes[id(p)])]
    if not found:
        names = [homes[id(p)] for p in everything]
        near = get_close_matches(text.lstrip("/"), names, 3, 0.4) or names[:3]
        raise refuse("A192", f"params={text!r}", "no trainable parameter is called so", *near)
    return found


__all__ = ["Selection", "matcher", "selected", "trainable"]
