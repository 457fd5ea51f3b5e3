"""From MODEL and PLAN to a model that can be called."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .models import Artifact, find_model
from .plans import Request, request
from .refusals import usage
from .terminal import Terminal
from .user_code import importing_from
from .values import known_extents

if TYPE_CHECKING:
    from fluorite.algo.graph import Graph
    from fluorite.codegen.runtime.model import Model


def artifact_named(model: str | None) -> Path | None:
    """The folder, if MODEL is a built model. Does not run anything that is none."""
    if model is None or not Path(model).is_dir():
        return None
    found = find_model(model)
    return found.folder if isinstance(found, Artifact) else None


def load_artifact(folder: Path, verb: str, plan: Any, extents: Mapping[str, int], weights: Path | None) -> Model:
    """Raises ArtifactError, UsageError."""
    from fluorite.codegen.runtime.load import load

    if plan or extents:
        raise usage(f"{verb} {folder}", "a built model has its plan and its extents already", "leave --plan and --extents out")
    with importing_from(Path.cwd()):  # functions that the model calls may be of a file here
        made = load(folder)
    if weights is not None:
        made.load(weights)
    return made


def compiled(graph: Graph, plan: Any, extents: Mapping[str, int], weights: Path | None, seed: int, cache: bool) -> Model:
    """Raises PlanError, BuildError, ArtifactError."""
    from fluorite.codegen import driver

    return driver.compile(graph, plan, seed=seed, weights=weights, extents=extents or None, cache=cache)


def requested(terminal: Terminal, model: str | None, plans: list[str] | None, extents: Mapping[str, int], verb: str) -> Request:
    """MODEL and its plans, with extents that it has."""
    asked = request(terminal, model, plans, verb)
    known_extents(extents, asked.graph.symbols(), asked.algorithm.shown)
    return asked
