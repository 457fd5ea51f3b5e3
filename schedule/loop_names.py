"""Loops of a nest by their names: which there are, and what to say where there is none."""

from __future__ import annotations

from collections.abc import Sequence

from fluorite.algo.errors import Problem

from .directives import Directive
from .nest import Loop, Nest
from .notation.places import Place
from .notation.yaml_reader import nearest


class Refused(Exception):
    """What a directive asks of a nest cannot be. `missing` is the loop that it names and that is not there."""

    def __init__(self, problem: Problem, missing: str = "") -> None:
        self.problem, self.missing = problem, missing


def missing_loop(nest: Nest, name: str, place: Place, verb: str = "") -> Problem:
    """P203: the nest has no such loop (any more)."""
    what = f'{nest.path.rsplit("/", 1)[-1]} has no loop "{name}"'
    why = ""
    if name in nest.gone:
        what, why = what + " any more", nest.gone[name]
        if verb in ("parallel", "vectorize", "unroll"):
            why += f" ({verb} applies after every split, tile, reorder and fuse)"
    near = [n for n in nest.names if n.startswith(name + "_")] or list(nearest(name, nest.names))
    return place.problem(
        "P203",
        f"{verb + ': ' if verb else ''}{what}",
        f"{why + '; ' if why else ''}loops here, outermost first: {', '.join(nest.names) or 'none'}",
        tuple(near[:3]),
    )


def take(nest: Nest, name: str, d: Directive, place: Place) -> Loop:
    loop = nest.loop(name)
    if loop is None:
        raise Refused(missing_loop(nest, name, place, d.label()), name)
    return loop


def took(d: Directive, *made: str) -> str:
    place = d.at()
    line = f"line {place.line} " if place.line else ""
    return f"{line}({d.label()}) made it {', '.join(made)}"


def names_free(nest: Nest, old: Sequence[str], new: Sequence[str], d: Directive, place: Place) -> None:
    clash = [n for n in new if n in nest.names and n not in old]
    if clash:
        raise Refused(
            place.problem(
                "P206",
                f'{d.label()}: {nest.path.rsplit("/", 1)[-1]} already has a loop "{clash[0]}"',
                "loop names of one nest differ",
                ("into: other names",),
            )
        )


__all__ = ["Refused", "missing_loop", "names_free", "take", "took"]
