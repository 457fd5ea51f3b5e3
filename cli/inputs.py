"""The inputs of a call: from --set, or random ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from .arrays import Declared, read
from .refusals import usage
from .values import pairs

if TYPE_CHECKING:
    from fluorite.algo.graph import Graph
    from fluorite.algo.stages import Leaf
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

    chosen = [m for m in graph.methods if method in (None, m.name)]
    leaves: dict[str, Any] = {graph[i].path.rsplit("/", 1)[-1]: graph[i] for m in chosen for i in m.inputs}
    counts = {graph[i].path.rsplit("/", 1)[-1] for m in chosen for i in m.counts}
    return {
        name: value if isinstance(value, np.ndarray) else np.asarray(value, None if name in counts else _dtype(leaves[name]))
        for name, value in read_inputs(given, leaves.values()).items()
    }


def _dtype(leaf: Leaf) -> str:
    from fluorite.algo.dtypes import paired

    return paired(leaf.dtype) if leaf.complex else leaf.dtype


def method_of(model: Model, name: str | None) -> MethodSpec:
    """Signature of the method asked for, or of the only one. Raises UsageError."""
    spec: MethodSpec = getattr(model, method_named(list(model.manifest["methods"]), name)).spec
    return spec


def method_named(methods: Sequence[str], name: str | None) -> str:
    """The method asked for, or the only one. Raises UsageError."""
    if len(methods) == 1 and (name is None or name == "run"):
        return methods[0]
    if name is None or name not in methods:
        said = "the model has several methods" if name is None else f"there is no method {name}"
        raise usage("--method" if name is None else f"--method {name}", said, *(f"--method {n}" for n in methods))
    return name
