"""Cross-built kernels as a folder: source, a cubin an architecture, and what is needed to launch them. Whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fluorite.algo.errors import BuildError, Problem
from fluorite.algo.extent_json import to_json
from fluorite.algo.printing import show

from ..emit import argument_names
from ..output_folder import folder_problems
from ..statements import For, Kernel, walk
from .building import CrossBuilt

FACTS = "kernels.json"
FORMAT = "fluorite GPU kernels"


def write(built: CrossBuilt, output: str | Path, *, force: bool = False) -> Path:
    """Write the folder `output` and return its path: kernels.cu or kernels.cl, ARCH.cubin, kernels.json.

    An existing folder is replaced if fluorite wrote it, or with `force`. Raises BuildError, and then leaves nothing behind.
    """
    output = Path(os.path.abspath(output))
    if wrong := list(folder_problems(output, _ours, force)):
        raise BuildError(wrong)
    temporary: Path | None = None
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
        made = temporary / output.name
        made.mkdir()
        (made / ("kernels.cu" if built.target.kind == "cuda" else "kernels.cl")).write_text(built.source, encoding="utf-8")
        for arch, cubin in built.cubins.items():
            (made / f"{arch}.cubin").write_bytes(cubin)
        (made / FACTS).write_text(json.dumps(facts(built), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        if output.exists():
            output.rename(temporary / "old")
        made.rename(output)
    except OSError as error:
        raise BuildError(_problem("B006", f"{output} cannot be written", error.strerror or str(error))) from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return output


def facts(built: CrossBuilt) -> dict[str, Any]:
    """What the folder's kernels.json holds: kernels in running order, their arguments, blocks and threads, and what ptxas says."""
    return {
        "format": FORMAT,
        "target": {"kind": built.target.kind, "arches": list(built.arches)},
        "plan": built.variants[0].scheduled.plan.to_yaml() if built.variants else "",
        "kernels": [
            {"name": k.name, "method": method, "when": dict(v.when), "stages": list(k.stages), **_launch(k)}
            for v in built.variants
            for k, method in zip(v.kernels, v.methods, strict=True)
        ],
        "ptxas": [asdict(f) for f in built.stats],
    }


def _launch(k: Kernel) -> dict[str, Any]:
    loops = [s for s in walk(k.body) if isinstance(s, For) and s.kind in ("block", "thread")]
    return {
        "arguments": [
            {"name": name, "dtype": b.dtype, "shape": [to_json(e) for e in b.shape]}
            for b, name in zip(k.arguments, argument_names(k), strict=True)
        ],
        "symbols": list(k.symbols),
        "blocks": {loop.lane: show(loop.extent) for loop in loops if loop.kind == "block"},
        "threads": {loop.lane: int(show(loop.extent)) for loop in loops if loop.kind == "thread"},
    }


def _ours(folder: Path) -> bool:
    try:
        found = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def _problem(code: str, asked: str, why: str, *try_: str) -> Problem:
    return Problem(code=code, kind="build", asked=asked, why=why, try_=try_)


__all__ = ["FACTS", "facts", "write"]
