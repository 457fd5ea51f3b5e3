"""The losses that a program is trained by: their adjoints, who reads these, and which new values of parameters and state come of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from fluorite.algo.graph import Graph, Method
from fluorite.algo.stages import Stage


@dataclass(frozen=True, eq=False)
class Loss:
    """A tensor `label` of a method, whose derivative moves parameters. `adjoints` are linear in the seed of its sweep; `ends` are those
    that others than adjoints of the loss read, or that the method returns; `moved` the paths whose new values hang on them."""

    graph: Graph
    method: Method
    label: str
    adjoints: Mapping[int, Stage]

    @property
    def path(self) -> str:
        return f"{self.method.name}/{self.label}"

    @cached_property
    def ends(self) -> tuple[Stage, ...]:
        returned = frozenset(self.method.ends)
        readers = self.graph.consumers
        return tuple(s for s in self.adjoints.values() if s.id in returned or any(c.id not in self.adjoints for c in readers[s.id]))

    @cached_property
    def moved(self) -> frozenset[str]:
        """An optimiser that reads an end moves all that it keeps. What is computed of its parameters afterwards hangs on other losses."""
        homes, found, seen = homes_of(self.graph, self.method), set[str](), set[int]()
        path_of = {i: path for path, i in self.method.updates.items()}
        pending = [s for s in self.ends if s.id in path_of]
        pending += [c for s in self.ends for c in self.graph.consumers[s.id] if c.id not in self.adjoints]
        while pending:
            s = pending.pop()
            if s.id in seen:
                continue
            seen.add(s.id)
            home = next((h for h in homes if s.path.startswith(f"{self.method.name}/update/{h}/")), None)
            if s.id in path_of:
                found |= homes[home] if home is not None else {path_of[s.id]}
            if s.id not in path_of or home is None:
                pending += self.graph.consumers[s.id]
        return frozenset(found)

    @cached_property
    def gradients(self) -> tuple[Stage, ...]:
        """The ends on which new values hang."""
        seen: set[int] = set()
        pending = [self.method.updates[path] for path in self.moved]
        while pending:
            i = pending.pop()
            if i not in seen:
                seen.add(i)
                if i not in self.adjoints and (s := self.graph.stage(i)) is not None:
                    pending += s.sources
        return tuple(s for s in self.ends if s.id in seen)


def losses_of(graph: Graph) -> tuple[Loss, ...]:
    """The losses of all methods, in the order of their stages."""
    return tuple(loss for m in graph.methods for loss in _losses(graph, m) if loss.moved)


def _losses(graph: Graph, method: Method) -> Iterator[Loss]:
    found: dict[str, dict[int, Stage]] = {}
    for s in graph.stages_of(method.name):
        if s.loss:
            found.setdefault(s.loss, {})[s.id] = s
    for label, adjoints in found.items():
        yield Loss(graph, method, label, adjoints)


def homes_of(graph: Graph, method: Method) -> dict[str, frozenset[str]]:
    """By the path of each optimiser that makes a step in the method: the paths of what it moves, its own state among them."""
    stages = {path: graph.path_of(i) for path, i in method.updates.items()}
    homes = [path.removesuffix("/step") for path, s in stages.items() if path.endswith("/step") and s == f"{method.name}/update/{path}"]
    return {h: frozenset(path for path, s in stages.items() if s.startswith(f"{method.name}/update/{h}/")) for h in homes}


__all__ = ["Loss", "homes_of", "losses_of"]
