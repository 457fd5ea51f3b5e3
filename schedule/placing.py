"""Where the plan computes and keeps each stage: compute_at and store_at with their selectors resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Leaf, Stage

from .directives import ComputeAt, ComputeWith, Directive, Fold, StoreAt
from .grouping import Keeping, Placement
from .pool import Pool
from .selectors import bound, select


def placements_of(
    g: Graph, chosen: Mapping[str, Sequence[Directive]], key_of: Mapping[str, str]
) -> tuple[dict[int, Placement], list[Problem]]:
    """The placements, and what is wrong with them. `key_of` is the selector by which the plan named each path."""
    out: dict[int, Placement] = {}
    problems: list[Problem] = []
    peers = {m.name: Pool(g.stages_of(m.name)) for m in g.methods}
    for s in g.stages:
        places = [d for d in chosen.get(s.path, ()) if isinstance(d, ComputeAt)]
        if not places:
            continue
        d = places[-1]
        try:
            owner = _owner(g, s, d, key_of.get(s.path), peers[s.method])
        except PlanError as error:
            problems += error.problems
            continue
        later = g.positions[owner.id] < g.positions[s.id]  # round a loop each comes after the other, in a turn only one does
        out[s.id] = Placement(owner.id, d.axis, d, after=later and reaches(g, owner.id, s.id))
    for s in g.stages:
        for kept in (d for d in chosen.get(s.path, ()) if isinstance(d, StoreAt | Fold)):
            try:
                if isinstance(kept, StoreAt):
                    out[s.id] = replace(_placed(s, kept, out), kept=_keeping(g, s, kept, out, key_of.get(s.path), peers[s.method]))
                elif not any(isinstance(x, StoreAt) for x in chosen[s.path]):
                    why = "what is computed anew each time has no window"
                    raise _refused(s, kept, "P261", f"fold of {s.name} without store_at", why, "store_at")
                else:
                    _known_axis(s, kept)
            except PlanError as error:
                problems += error.problems
    return out, problems


def _owner(g: Graph, s: Stage, d: ComputeAt, key: str | None, peers: Pool[Stage]) -> Stage:
    owner = named(g, s, d, key, peers)
    place = d.at("stage")
    if owner.id == s.id:
        asked, why = f"{s.name} cannot be computed at itself", "compute_at names a reader of the stage"
        raise PlanError([place.problem("P204", asked, why, path=s.path, source=s.source)])
    if not reaches(g, s.id, owner.id):
        readers = tuple(t.name for t in g.consumers[s.id])[:3]
        if reaches(g, owner.id, s.id):
            return owner
        asked, why = f"{s.name} cannot be computed at {owner.name}", f"{owner.name} does not need it"
        raise PlanError([place.problem("P204", asked, why, readers, path=s.path, source=s.source)])
    return owner


def named(g: Graph, s: Stage, d: ComputeAt | ComputeWith | StoreAt, key: str | None, peers: Pool[Stage]) -> Stage:
    """The stage that a directive of s names; `key` is the selector by which the plan named s."""
    text = bound(d.stage, key, s, d.at("stage")) if key else d.stage
    return select(text, peers, d.at("stage"), g.name, scopes=False)[0]


def _keeping(
    g: Graph, s: Stage, d: StoreAt, placements: Mapping[int, Placement], key: str | None, peers: Pool[Stage]
) -> Keeping:
    """store_at names the stage that compute_at names, or the one at whose loop that stage is computed."""
    at, home = placements[s.id], named(g, s, d, key, peers)
    outer = placements.get(at.owner)
    if at.after:
        why = f"it follows {g.path_of(at.owner)}, which it reads, so all of it is stored anyway"
        raise _refused(s, d, "P260", f"{s.name} cannot be kept at {home.name}", why, "leave store_at out")
    if home.id == at.owner or (outer is not None and (home.id, d.axis) == (outer.owner, outer.loop)):
        return Keeping(home.id, d.axis, d)
    owner = g[at.owner].name
    legal = [f"{{stage: {owner}, axis: ...}}"]
    if outer is not None and not outer.after:
        legal.append(f"{{stage: {g[outer.owner].name}, axis: {outer.loop}}}, where {owner} is computed")
    why = f"it is computed at {owner}, so it is kept at a loop of that, or at the one around it"
    raise _refused(s, d, "P260", f'{s.name} cannot be kept at {home.name}\'s "{d.axis}"', why, *legal)


def _placed(s: Stage, d: StoreAt, placements: Mapping[int, Placement]) -> Placement:
    if s.id not in placements:
        try_ = f"compute_at: {{stage: {d.stage}, axis: ...}}"
        raise _refused(s, d, "P260", f"store_at of {s.name} without compute_at", "a whole stage is kept whole", try_)
    return placements[s.id]


def _known_axis(s: Stage, d: Fold) -> None:
    if d.axis not in s.axis_names:
        why = f"it has {', '.join(s.axis_names) or 'none'}"
        raise _refused(s, d, "P261", f"fold: {s.name} has no axis {d.axis}", why, *s.axis_names[:1])


def _refused(s: Stage, d: Directive, code: str, asked: str, why: str, *try_: str) -> PlanError:
    return PlanError([d.at().problem(code, asked, why, try_, path=s.path, source=s.source)])


def between(g: Graph, start: int, end: int) -> set[int]:
    """Stages that read `start` and are read by `end`, directly or not."""
    forward = _reached(start, lambda i: (c.id for c in g.consumers[i]), _within(g, start, end))
    backward = _reached(end, lambda i: s.sources if (s := g.stage(i)) is not None else (), _within(g, start, end))
    return (forward & backward) - {start, end}


def reaches(g: Graph, start: int, goal: int) -> bool:
    """Whether goal reads start, directly or not."""
    return start == goal or goal in _reached(start, lambda i: (c.id for c in g.consumers[i]), _within(g, start, goal))


def _within(g: Graph, start: int, end: int) -> Callable[[int], bool]:
    """Whether something may lie on a way from `start` to `end`: outside loops, stages read only what stands before them."""
    first, last = g.by_id[start], g.by_id[end]
    low = -1 if isinstance(first, Leaf) or first.clock or first.turn else g.positions[start]
    high = len(g.stages) if isinstance(last, Leaf) or last.clock or last.turn else g.positions[end]
    return lambda i: low <= g.positions.get(i, -2) <= high


def _reached(start: int, neighbours: Callable[[int], Iterable[int]], within: Callable[[int], bool]) -> set[int]:
    seen: set[int] = set()
    pending = [start]
    while pending:
        new = {i for i in neighbours(pending.pop()) if i not in seen and within(i)}
        seen |= new
        pending += new
    return seen
