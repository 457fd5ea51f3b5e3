"""The plan that a person starts from: it decides nothing yet, and its comments say what there is to decide about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fluorite.algo.errors import PlanError
from fluorite.algo.extent import Extent
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage
from fluorite.schedule import label, select

from ..models import Algorithm
from ..plans import program_from


def skeleton(graph: Graph, algorithm: Algorithm, folder: Path) -> str:
    """YAML for `graph`, to be saved in `folder`."""
    lines = ["version: 1", f"program: {label(program_from(algorithm, folder))}", "target: {kind: llvm, cpu: native}"]
    if symbols := graph.symbols():
        lines.append(f"# extents: {{{', '.join(f'{s}: {{between: [1, 4096]}}' for s in symbols)}}}")
    for m in graph.methods:
        inputs = ", ".join(f"{graph[i].path.rsplit('/', 1)[-1]}: {graph.declared(m, i)}" for i in m.inputs)
        lines.append(f"# {m.name}({inputs})")
    lines.append("# precision: {compute: bf16, keep: []}   # narrower types than the algorithm's; stages PATH/cast hold what is rounded")
    lines.append("# memory: {limit: 2GiB, recompute: []}   # what a call may take; stages computed again for late readers (or auto)")
    lines.append("# every stage is left to the default scheduler: put a list of directives in the place of auto (fluorite plan directives)")
    if not graph.stages:
        return "\n".join([*lines, "schedule: {}"]) + "\n"
    lines.append("schedule:")
    entries = _entries(graph)
    keys = {name: label(name) for name in entries}
    width = max(len(key) for key in keys.values())
    for name, some in entries.items():
        lines.append(f"  {keys[name]}: auto{' ' * (width - len(keys[name]))}   # {_about(some)}")
    return "\n".join(lines) + "\n"


def _entries(graph: Graph) -> dict[str, list[Stage]]:
    """The shortest selector of every stage, and the stages that it means: one in each method that has it."""
    found: dict[str, list[Stage]] = {}
    covered: set[str] = set()
    for s in graph.stages:
        if s.path in covered:
            continue
        name, meant = _shortest(s, graph.stages, covered)
        found[name] = meant
        covered |= {m.path for m in meant}
    return found


def _shortest(s: Stage, stages: Sequence[Stage], covered: set[str]) -> tuple[str, list[Stage]]:
    parts = s.path.split("/")
    for length in range(1, len(parts) + 1):
        text = "/".join(parts[-length:])
        try:
            meant = select(text, stages, scopes=False)
        except PlanError:
            continue
        if s in meant and not covered & {m.path for m in meant}:
            return text, meant
    return f"/{s.path}", [s]


def _about(stages: Sequence[Stage]) -> str:
    s = stages[0]
    axes = _axes(s.axis_names, s.extents)
    over = f" over {_axes([a.name for a in s.reduction.axes], s.reduction.extents)}" if s.reduction else ""
    where = f"   {s.source}" if s.source else ""
    methods = f"   in {', '.join(m.method for m in stages)}" if len(stages) > 1 else ""
    return f"{axes or 'a single value'}{over}   {s.facts['kind']}, {s.dtype}{where}{methods}"


def _axes(names: Sequence[str], extents: Sequence[Extent]) -> str:
    return " ".join(f"{name}={extent}".replace(" ", "") for name, extent in zip(names, extents, strict=True))
