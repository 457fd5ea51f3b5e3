"""Families of reductions put into the loops of their leaders, where each would have loops of the same form by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fluorite.algo.stages import Stage

from ..companions import common_parts
from ..directives import ComputeAt, ComputeWith
from ..loop_checks import SHAPING
from ..nest import VECTOR, Loop, Nest
from ..rewrites import rewrite_stage
from ..scheduled import in_order
from ..shaping import shape
from ..unscheduled import unscheduled
from .analysis import price
from .chosen import Chosen
from .kernels import Directives
from .siblings import WORTH, Family, worth


def run_together(chosen: Chosen, families: Sequence[Family]) -> None:
    """compute_with for every member of a family that goes as its leader goes and stands where it does, in a kernel that needs not wait."""
    for family in families:
        leader = family.leader
        for s in family.others:
            found = _in_loops_of(chosen, leader, s)
            if found and not _wait(chosen, leader, s):
                for end, loop in found.items():
                    own = chosen.directives.get(s.path + end, ())
                    chosen.directives[s.path + end] = (*own, ComputeWith(stage=f"/{leader.path}{end}", axis=loop))


def _in_loops_of(chosen: Chosen, leader: Stage, s: Stage) -> dict[str, str]:
    """How s, and the stages that its directives make of it, run in the loops of the leader's: by what their paths end in, the innermost
    loop that is shared. Nothing where the loops differ, or hold nothing in common."""
    its, mine = _made_of(chosen, leader), _made_of(chosen, s)
    for end in (e for e in its if e in mine):
        one, other = _nest(chosen, its[end]), _nest(chosen, mine[end])
        outside = [x.name for x in one.loops if x.kind != VECTOR]
        if _forms(one.loops) != _forms(other.loops) or not outside:
            continue
        common = common_parts(its[end], one, mine[end], other)
        streamed = _place(chosen, leader.path) is None  # else what is read is in the caches, of what is computed around it
        if (worth(chosen, leader, common) if streamed else sum(map(price, common))) >= WORTH:
            return _with_owners(chosen, leader, s, its, mine, end, outside[-1])
    return {}


def _with_owners(
    chosen: Chosen, leader: Stage, s: Stage, its: Mapping[str, Stage], mine: Mapping[str, Stage], end: str, loop: str
) -> dict[str, str]:
    """The same with those in whose loops these are computed, as far as the directives have made them too."""
    found = {end: loop}
    while True:
        one, other = _place(chosen, leader.path + end), _place(chosen, s.path + end)
        if one is None or other is None or (one.stage, one.axis) == (other.stage, other.axis):
            return found if (one is None) == (other is None) else {}
        end = one.stage.removeprefix(f"/{leader.path}")
        if end not in its or end not in mine or other.stage != f"/{s.path}{end}" or end in found:
            return {}
        a, b = _nest(chosen, its[end]), _nest(chosen, mine[end])
        if a.loop(one.axis) is None or b.loop(other.axis) is None:
            return {}
        depth = a.position(one.axis) + 1
        if b.position(other.axis) + 1 != depth or _forms(a.loops[:depth]) != _forms(b.loops[:depth]):
            return {}
        found[end] = one.axis


def _made_of(chosen: Chosen, s: Stage) -> dict[str, Stage]:
    """By what their paths end in: s as its directives leave it, and the stages that they make of it."""
    g, paths = chosen.graph, [s.path]
    for path in paths:
        for _, d in in_order(chosen.directives.get(path, ())):
            before = g.paths
            stage = next(t for t in g.stages if t.path == path)
            g, _ = rewrite_stage(g, stage, d, chosen.machine.lanes)
            paths += sorted(g.paths - before)
    return {t.path.removeprefix(s.path): t for t in g.stages if t.path in set(paths)}


def _nest(chosen: Chosen, s: Stage) -> Nest:
    ds = [d for d in chosen.directives.get(s.path, ()) if isinstance(d, SHAPING)]
    return shape(unscheduled(s, False), ds, chosen.machine.lanes, s.dtype)[0]


def _place(chosen: Chosen, path: str) -> ComputeAt | None:
    return next((d for d in chosen.directives.get(path, ()) if isinstance(d, ComputeAt)), None)


def _forms(loops: Sequence[Loop]) -> list[tuple[str, str]]:
    return [(str(x.extent), x.kind) for x in loops]


# ---------------------------------------------------------------- kernels
def _wait(chosen: Chosen, a: Stage, b: Stage) -> bool:
    """Whether one of the kernels of two stages has to wait for the other."""
    home = {s.id: _home(chosen, s.path) for s in chosen.graph.stages}
    first, second = home[a.id], home[b.id]
    if first == second:
        return False
    return _reached(chosen, home, first, second) or _reached(chosen, home, second, first)


def _home(chosen: Chosen, path: str) -> str:
    """The path of the stage whose loops are the outermost of a stage's kernel."""
    seen = {path}
    while (owner := next(_owners(chosen.directives.get(path, ())), None)) is not None and owner not in seen:
        path = owner
        seen.add(path)
    return path


def _owners(ds: Directives) -> Iterator[str]:
    yield from (d.stage.removeprefix("/") for d in ds if isinstance(d, ComputeAt | ComputeWith))


def _reached(chosen: Chosen, home: dict[int, str], start: str, goal: str) -> bool:
    """Whether kernel `goal` needs what kernel `start` makes."""
    members: dict[str, list[int]] = {}
    for i, h in home.items():
        members.setdefault(h, []).append(i)
    seen, pending = {start}, [start]
    while pending:
        for i in members.get(pending.pop(), ()):
            for c in chosen.graph.consumers[i]:
                if (h := home[c.id]) == goal:
                    return True
                if h not in seen:
                    seen.add(h)
                    pending.append(h)
    return False


__all__ = ["run_together"]
