"""`fluorite tune`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..command import Outcome
from ..files import writable, write
from ..loading import requested
from ..models import Algorithm
from ..plans import program_from, relative
from ..progress import progress
from ..refusals import not_built, usage
from ..terminal import Terminal
from ..values import extents as read_extents

if TYPE_CHECKING:
    from fluorite.schedule import ExecutionPlan

JOURNAL = ".journal.jsonl"


def tune(
    terminal: Terminal,
    model: str | None,
    plan: str | None,
    extents: list[str] | None,
    method: str | None,
    output: Path | None,
    trials: int | None,
    minutes: float | None,
    resume: bool,
    inputs: Path | None,
    seed: int,
    force: bool,
    later: Mapping[str, Any],
) -> Outcome:
    unbuilt = next((name for name, value in later.items() if value), None)
    if unbuilt:
        raise not_built(unbuilt)
    if output is None:
        raise usage("tune", "-o FILE is missing", "-o tuned.yaml")
    if output.suffix not in (".yaml", ".yml"):
        raise usage(f"tune -o {output}", "a plan is a .yaml file", f"-o {output.with_suffix('.yaml')}")
    writable(output, force)
    from fluorite.algo.interpreter.arguments import choose
    from fluorite.codegen.tuning import tuned

    sizes = read_extents(extents)
    asked = requested(terminal, model, [plan] if plan else None, sizes, "tune")
    chosen = asked.plan
    if method is not None:
        chosen = chosen.replace(tune=chosen.tune.replace(objective={choose(asked.graph, method).name: 1.0}))
    journal = output.with_name(output.stem + JOURNAL)
    try:
        with progress(terminal) as watch:
            found = tuned(
                asked.graph,
                chosen,
                trials=trials,
                minutes=minutes,
                journal=journal,
                resume=resume,
                inputs=inputs,
                extents=sizes or None,
                progress=watch,
                seed=seed,
            )
    except KeyboardInterrupt:
        terminal.error(f"what was measured is in {journal}; --resume goes on from there")
        raise
    kept = moved(found.plan, asked.plan, asked.algorithm, output.parent)
    write(output, kept.to_yaml().encode(), force)
    result = replace(found, plan=kept)
    return Outcome({**result.as_dict(), "file": str(output)}, f"{result.text()}\nwritten to {output}")


def moved(plan: ExecutionPlan, origin: ExecutionPlan, algorithm: Algorithm, folder: Path) -> ExecutionPlan:
    """The plan with its paths as they are from `folder`, where it will lie; `origin` knows where they are from now."""
    plan = plan.replace(program=program_from(algorithm, folder))
    if plan.tune.inputs is not None:
        home = Path(os.path.dirname(origin.tune.place_of("inputs").file))
        plan = plan.replace(tune=plan.tune.replace(inputs=relative(home / plan.tune.inputs, folder)))
    return plan
