"""What a plan calls the operands of a stage and their axes."""

from __future__ import annotations

from fluorite.algo.expr import Axis
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Leaf, Stage

from ..notation.places import Place
from ..notation.yaml_reader import nearest
from .common import of_recurrence, refused


def operand(g: Graph, s: Stage, name: str, place: Place, verb: str) -> Leaf | Stage:
    """The one operand of s that a plan calls `name`. Raises PlanError P223."""
    found = {
        r.source: g[r.source]
        for r in s.reads
        if g[r.source].name == name or g[r.source].path == name or g[r.source].path.endswith("/" + name)
    }
    if len(found) != 1:
        names = sorted({g[i].name for i in s.sources})
        raise refused(
            place,
            "P223",
            s,
            f"{verb}: {s.name} {'does not read' if not found else 'reads several'} {name}",
            f"it reads {', '.join(names) or 'nothing'}",
            *nearest(name, names),
        )
    chosen = next(iter(found.values()))
    if isinstance(chosen, Stage) and s.clock and chosen.clock and chosen.clock.group == s.clock.group:
        raise of_recurrence(s, place, f"{verb} {name}")
    return chosen


def operand_name(g: Graph, s: Stage, t: Leaf | Stage) -> str:
    """The shortest end of the path of t that no other operand of s has: what a plan calls it."""
    others, parts = [g[i].path for i in s.sources if i != t.id], t.path.split("/")
    for length in range(1, len(parts)):
        end = "/".join(parts[-length:])
        if not any(path == end or path.endswith(f"/{end}") for path in others):
            return end
    return t.path


def operand_axes(s: Stage, t: Leaf | Stage) -> list[str]:
    """What a plan calls the axes of operand t of stage s: the reader's names where it reads them bare, else t's own, else numbers."""
    reads = [r for r in s.reads if r.source == t.id]
    names: list[str] = []
    for d, own in enumerate(t.axis_names):
        here = reads[0].index[d]
        bare = here.name if isinstance(here, Axis) and all(r.index[d] is here for r in reads) else None
        name = bare or own or str(d)
        names.append(name if name not in names else str(d))
    return names
