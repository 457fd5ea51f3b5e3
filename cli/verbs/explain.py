"""`fluorite explain`: a model's costs, or the meaning of an error code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..command import Outcome
from ..inputs import method_named
from ..loading import artifact_named, requested
from ..refusals import usage
from ..table import size
from ..terminal import Terminal
from ..values import extents as read_extents
from ..values import known_extents

_CODE = re.compile(r"[A-Za-z]\d{3}")


def explain(terminal: Terminal, model: str | None, plan: str | None, extents: list[str] | None, method: str | None) -> Outcome:
    if model is not None and _CODE.fullmatch(model) and not Path(model).exists():
        return _code(model.upper())
    sizes = read_extents(extents)
    folder = artifact_named(model)
    if folder is not None:
        if plan:
            raise usage(f"explain {folder}", "a built model has its plan already", "leave --plan out")
        return _artifact(folder, sizes, method)
    from fluorite.algo.interpreter.arguments import choose
    from fluorite.codegen.explaining import explain as explain_model

    asked = requested(terminal, model, [plan] if plan else None, sizes, "explain")
    found = explain_model(asked.graph, asked.plan, sizes)
    if method is not None:
        found = found.of_method(choose(asked.graph, method).name)
    return Outcome(found.as_dict(), found.text())


def _code(code: str) -> Outcome:
    from difflib import get_close_matches

    from ..codes import all_codes

    known = all_codes()
    if code not in known:
        raise usage(f"explain {code}", "there is no such code", *get_close_matches(code, known, 3))
    return Outcome({"code": code, "text": known[code]}, f"{code}: {known[code]}")


def _artifact(folder: Path, sizes: dict[str, int], method: str | None) -> Outcome:
    """What a built model is, as far as it knows itself."""
    from fluorite.codegen.runtime.load import load

    made = load(folder)
    known_extents(sizes, {s for name in made.signatures for s in getattr(made, name).spec.symbols}, str(folder))
    if method is not None:
        method_named(list(made.signatures), method)
    about = made.manifest
    target, tools = about.get("target", {}), about.get("toolchain", {})
    lines = [
        f"{about['name']}: built by fluorite {about.get('fluorite', '?')} with TVM {tools.get('tvm', '?')}",
        f"for: {target.get('kind')} {target.get('cpu')}, {target.get('system')} {target.get('machine')}",
        f"results: class {about.get('numerics', {}).get('class')}; threads: {about.get('threads')}",
        *(f"note: {note}" for note in about.get("notes", ())),
    ]
    methods: dict[str, Any] = {}
    for name, signature in made.signatures.items():
        if method not in (None, name):
            continue
        spec = getattr(made, name).spec
        memory = made.memory(sizes, name) if all(s in sizes for s in spec.symbols) else None
        variants: list[dict[str, Any]] = [
            {"when": dict(v.when), "kernels": [s.kernel for s in v.steps], "at load": [s.kernel for s in v.setup]} for v in spec.variants
        ]
        methods[name] = {"signature": signature, "memory": memory, "variants": variants}
        lines += [
            "",
            signature,
            f"  memory of a call: {size(memory)}"
            if memory is not None
            else f"  memory of a call: give --extents {','.join(f'{s}=1024' for s in spec.symbols)}",
        ]
        for v in variants:
            when = ", ".join(f"{k} = {n}" for k, n in v["when"].items())
            lines.append(
                f"  {when or 'any extents'}: {len(v['kernels'])} kernel calls"
                + (f", {len(v['at load'])} once when it is loaded" if v["at load"] else "")
            )
            lines += [f"    {kernel}" for kernel in v["kernels"]]
    files = {f.name: f.stat().st_size for f in sorted(folder.iterdir()) if f.is_file()}
    lines += [
        "",
        "files: " + ", ".join(f"{name} {size(n)}" for name, n in files.items()),
        "",
        "plan:",
        *(f"  {line}" for line in str(made.plan).splitlines()),
    ]
    return Outcome(
        {"manifest": {k: v for k, v in about.items() if k not in ("methods", "files")}, "methods": methods, "files": files},
        "\n".join(lines),
    )
