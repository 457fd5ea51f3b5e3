"""What a rebuild of an unchanged model finds ready: manifest and library by the hash of graph, plan, target and fluorite's own files."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from fluorite.algo.graph import Graph
from fluorite.schedule.plan import ExecutionPlan

from .cache import cache_folder, cached_file, key_of
from .compiled import TVM, TVM_FFI, Compiled
from .lowered import structure_hash
from .target import CodeTarget

ROOMS = ("algo", "schedule", "codegen")


@cache
def compiler_hash() -> str:
    """Changes with any file of the compiler."""
    root = Path(__file__).resolve().parent.parent
    files = sorted(f for room in ROOMS for f in (root / room).rglob("*.[pc]*") if f.suffix in (".py", ".c"))
    return key_of(*(f"{f.relative_to(root)}\n{f.read_text(encoding='utf-8')}" for f in files))


def prebuilt(
    graph: Graph, plan: ExecutionPlan, notes: tuple[str, ...], target: CodeTarget, make: Callable[[], Compiled], use: bool = True
) -> tuple[dict[str, Any], Path]:
    """The manifest and the library of a model; `make` compiles it if they are not there. Raises what `make` raises."""
    docs = [
        f"{m.name}({m.inputs} {dict(m.ragged)} {sorted(m.counts)}) {m.result} {dict(m.updates)} {m.batch} {m.reader} {m.doc}"
        for m in graph.methods
    ]
    docs += [str(sorted(m.complex)) for m in graph.methods] + [t.path for t in graph.leaves if t.complex]
    key = key_of(compiler_hash(), TVM, TVM_FFI, repr(target), graph.name, structure_hash(graph), *docs, plan.to_yaml(), *notes)
    if use and (found := _read(cached_path(key))) is not None:
        return found
    compiled = make()
    manifest = compiled.manifest(graph.name)

    def write(path: Path) -> None:
        path.write_text(json.dumps({"library": compiled.library.name, "manifest": manifest}), encoding="utf-8")

    cached_file(key, ".json", write, use)
    return manifest, compiled.library


def cached_path(key: str) -> Path:
    return cache_folder() / "kernels" / key[:2] / f"{key}.json"


def _read(path: Path) -> tuple[dict[str, Any], Path] | None:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        library = cache_folder() / "kernels" / entry["library"][:2] / entry["library"]
        return (entry["manifest"], library) if library.is_file() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
