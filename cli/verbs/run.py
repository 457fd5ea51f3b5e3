"""`fluorite run`: one call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..arrays import Array, encode, encode_all, leaves, listed, short
from ..command import Outcome
from ..files import writable, write
from ..inputs import method_named, method_of, read_inputs
from ..loading import artifact_named, compiled, load_artifact, requested
from ..refusals import not_built, usage
from ..terminal import Terminal
from ..values import extents as read_extents


def run(
    terminal: Terminal,
    model: str | None,
    plan: str | None,
    extents: list[str] | None,
    given: list[str] | None,
    method: str | None,
    output: list[str] | None,
    weights: Path | None,
    seed: int,
    force: bool,
    cache: bool,
    later: Mapping[str, Any],
) -> Outcome:
    unbuilt = next((name for name, value in later.items() if value), None)
    if unbuilt:
        raise not_built(unbuilt)
    sizes = read_extents(extents)
    targets = _targets(output or ())
    for path in targets.values():
        writable(path, force)
    folder = artifact_named(model)
    if folder is not None:
        made = load_artifact(folder, "run", plan, sizes, weights)
    else:
        asked = requested(terminal, model, [plan] if plan else None, sizes, "run")
        method = method_named([m.name for m in asked.graph.methods], method)
        made = compiled(asked.graph, asked.plan, sizes, weights, seed, cache)
    spec = method_of(made, method)
    counted = {i.name: sizes[i.name] for i in spec.inputs if i.counts and i.name in sizes}
    inputs = {**counted, **read_inputs(given, spec.inputs)}
    if missing := [i.name for i in spec.inputs if i.name not in inputs]:
        raise usage(
            "run",
            f"the inputs are {', '.join(i.name for i in spec.inputs)}; {', '.join(missing)} is not given",
            *(f"--set {name}=FILE" for name in missing),
        )
    results = leaves(getattr(made, spec.name)(**inputs))
    files = _write(terminal, results, targets, force)
    held = {name: made.parameters[name] for name in spec.updates}
    lines = [f"{name}: {short(array)}" for name, array in results.items()]
    lines += [f"{name} is now {short(array)}" for name, array in held.items()]
    value = {"method": spec.name, "outputs": {name: _facts(array) for name, array in results.items()}, "files": files}
    value |= {"state": {name: _facts(array) for name, array in held.items()}} if held else {}
    return Outcome(value, "\n".join(lines))


def _facts(array: Array) -> dict[str, Any]:
    """Small results whole, large ones in numbers about them."""
    facts: dict[str, Any] = {"dtype": array.dtype.name, "shape": list(array.shape)}
    if array.size <= 1000:
        return {**facts, "value": listed(array)}
    wide = abs(array) if array.dtype.kind == "c" else array.astype("float64")
    return {**facts, "min": float(wide.min()), "max": float(wide.max()), "mean": float(wide.mean())}


def _targets(given: Any) -> dict[str, Path]:
    """Files by output name; "" for a file without one."""
    found: dict[str, Path] = {}
    for text in given:
        name, equals, file = text.partition("=")
        name, file = (name.strip(), file) if equals else ("", text)
        if not file:
            raise usage(f"-o {text}", "names no file")
        if name in found:
            raise usage(f"-o {text}", f"{name or 'a file without a name'} is given twice")
        found[name] = Path(file)
    return found


def _write(terminal: Terminal, results: Mapping[str, Array], targets: Mapping[str, Path], force: bool) -> dict[str, str]:
    """Every target is encoded before the first is written."""
    ready: list[tuple[str, Path, bytes]] = []
    for name, path in targets.items():
        if not name and path.suffix.lower() == ".npz":
            ready.append((name, path, encode_all(results)))
            continue
        chosen = name if name in results else next(iter(results)) if len(results) == 1 and name in ("", "out") else None
        if chosen is None:
            said = f"there is no result {name}" if name else "there are several results: say which" if results else "there is no result"
            raise usage(f"-o {name + '=' if name else ''}{path}", said, *(f"-o {n}={path}" for n in results))
        data, remark = encode(results[chosen], path)
        if remark:
            terminal.note(f"note: {remark}")
        ready.append((chosen, path, data))
    for _, path, data in ready:
        write(path, data, force)
    return {name or "all": str(path) for name, path, _ in ready}
