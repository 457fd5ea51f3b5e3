"""`fluorite build`."""

from __future__ import annotations

from pathlib import Path

from ..command import Outcome
from ..plans import request
from ..refusals import usage
from ..terminal import Terminal
from ..values import extents as read_extents
from ..values import known_extents


def build(
    terminal: Terminal,
    model: str | None,
    plan: str | None,
    extents: list[str] | None,
    output: Path | None,
    name: str | None,
    weights: Path | None,
    seed: int,
    strict: bool,
    force: bool,
    cache: bool,
    wheel: bool,
) -> Outcome:
    if output is None:
        raise usage("build", "-o DIR is missing", "-o build/photo_tuned")
    if name is not None and (not name.strip(".") or Path(name).name != name):
        raise usage(f"--name {name}", "it is the name to import, not a path", "-o DIR --name NAME writes DIR/NAME")
    from fluorite.codegen import driver
    from fluorite.codegen.diagnosis import every_problem

    sizes = read_extents(extents)
    asked = request(terminal, model, [plan] if plan else None, "build")
    known_extents(sizes, asked.graph.symbols(), asked.algorithm.shown)
    if not strict:
        with every_problem(asked.graph, asked.plan):
            terminal.notes(driver.prepared(asked.plan, asked.graph)[1])
    random = [leaf.path for leaf in asked.graph.leaves if leaf.kind == "parameter" and (leaf.value is None or callable(leaf.value))]
    if weights is None and random:
        terminal.note(f"note: without --weights parameters are random (--seed {seed}): {', '.join(random)}")
    folder = output / name if name and name != output.name else output
    made = driver.build(
        asked.graph,
        asked.plan,
        folder,
        weights=weights,
        seed=seed,
        extents=sizes or None,
        strict=strict,
        force=force,
        cache=cache,
        model_file=asked.algorithm.file,
    )
    shown = str(folder) if folder.resolve() == made.resolve() else str(made)
    value = {"folder": shown, "import": made.name, "methods": [m.name for m in asked.graph.methods]}
    if wheel:
        from fluorite.codegen.wheel import write_wheel

        shown = str(folder.parent / write_wheel(made).name)
        value["wheel"] = shown
    return Outcome(value, shown)
