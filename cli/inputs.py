"""The inputs of a call: from --set, or random ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from .arrays import Declared, read
from .refusals import usage
from .values import pairs

if TYPE_CHECKING:
    from fluorite.algo.graph import Graph
    from fluorite.codegen.runtime.manifest import MethodSpec
    from fluorite.codegen.runtime.model import Model


def read_inputs(given: Iterable[str] | None, declared: Iterable[Declared]) -> dict[str, Any]:
    """The values of `--set NAME=VALUE` options by name. Raises UsageError for a name that is none, RunError for a file."""
    known = {d.name: d for d in declared}
    found = {}
    for name, text in pairs("--set", given or ()).items():
        if name not in known:
            raise usage(f"--set {name}", f"the inputs are {', '.join(known) or 'none'}", *get_close_matches(name, known, 1))
        found[name] = read(text, known[name])
    return found


def of_graph(graph: Graph, given: Iterable[str], method: str | None) -> dict[str, Any]:
    """The same for a traced model, as arrays of the declared types."""
    import numpy as np

    leaves: dict[str, Any] = {
        graph[i].path.rsplit("/", 1)[-1]: graph[i] for m in graph.methods if method in (None, m.name) for i in m.inputs
    }
    return {
        name: value if isinstance(value, np.ndarray) else np.asarray(value, leaves[name].dtype)
        for name, value in read_inputs(given, leaves.values()).items()
    }


def method_of(model: Model, name: str | None) -> MethodSpec:
    """Signature of the method asked for, or of the only one. Raises UsageError."""
    methods: Mapping[str, Any] = model.manifest["methods"]
    if name is None and len(methods) == 1:
        name = next(iter(methods))
    if name == "run" and "run" not in methods and len(methods) == 1:
        name = next(iter(methods))
    if name is None or name not in methods:
        said = "the model has several methods" if name is None else f"there is no method {name}"
        raise usage("--method" if name is None else f"--method {name}", said, *(f"--method {n}" for n in methods))
    spec: MethodSpec = getattr(model, name).spec
    return spec
