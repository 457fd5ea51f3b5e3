"""`fluorite bench`: plans against each other, turn by turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import Array, leaves
from ..command import DONE, REFUSED, Outcome
from ..files import writable, write
from ..inputs import method_named, method_of, read_inputs
from ..loading import artifact_named, compiled, load_artifact, requested
from ..refusals import not_built, usage
from ..table import seconds, table
from ..terminal import Terminal
from ..values import extents as read_extents

TURN = 0.005
"""Seconds that a turn takes at least, so that the clock's own cost vanishes."""
MOST = 60.0
"""Seconds after which no round starts, once there are three."""


@dataclass(frozen=True)
class Contender:
    """One way to compute the model. `numerics` is the class of its results."""

    label: str
    call: Callable[..., Any]
    numerics: str


def bench(
    terminal: Terminal,
    model: str | None,
    plans: list[str] | None,
    extents: list[str] | None,
    given: list[str] | None,
    method: str | None,
    rounds: int,
    weights: Path | None,
    seed: int,
    output: Path | None,
    force: bool,
    cache: bool,
    peer: str | None,
) -> Outcome:
    if peer:
        raise not_built("--peer")
    if output is not None:
        writable(output, force)
    sizes = read_extents(extents)
    folder = artifact_named(model)
    if folder is not None:
        made = load_artifact(folder, "bench", plans, {}, weights)
        spec = method_of(made, method)
        contenders = [Contender(str(folder), getattr(made, spec.name), made.manifest["numerics"]["class"])]
    else:
        asked = requested(terminal, model, plans, sizes, "bench")
        method = method_named([m.name for m in asked.graph.methods], method)
        contenders = []
        for text, plan in asked.plans:
            terminal.note(f"compiling under {text}")
            made = compiled(asked.graph, plan, {}, weights, seed, cache)
            spec = method_of(made, method)
            contenders.append(Contender(text, getattr(made, spec.name), made.manifest["numerics"]["class"]))
        sizes = sizes or _tuned_for(asked.plans)
    inputs = read_inputs(given, spec.inputs)
    arrays = [inputs[i.name] if i.name in inputs else random(i, _shape(i, sizes, spec), seed) for i in spec.inputs]
    differences = compare(contenders, arrays)
    times = measure(terminal, contenders, arrays, rounds)
    return _outcome(spec.name, arrays, contenders, times, differences, output, force)


def _tuned_for(plans: Sequence[tuple[str, Any]]) -> dict[str, int]:
    return next((dict(plan.tune.at[0]) for _, plan in plans if plan.tune.at), {})


def _shape(declared: Any, sizes: Mapping[str, int], spec: Any) -> tuple[int, ...]:
    from fluorite.codegen.runtime.extents import shape_of

    try:
        return tuple(shape_of(declared.shape, sizes))
    except KeyError:
        missing = [s for s in spec.symbols if s not in sizes]
        example = ",".join(f"{s}=1024" for s in missing)
        raise usage(
            "bench",
            f"the extents {', '.join(missing)} are not given, and neither is the input {declared.name}",
            f"--extents {example}",
            f"--set {declared.name}=FILE",
        ) from None


def random(declared: Any, shape: tuple[int, ...], seed: int) -> Array:
    """Values between 0 and 1, small integers, or truth values."""
    if int(np.prod(shape, dtype=object)) * declared.numpy.itemsize >= 1 << 62:
        raise MemoryError(f"{declared.name} would have the shape {list(shape)}")
    generator = np.random.default_rng([seed, *map(ord, declared.name)])
    match declared.numpy.kind:
        case "b":
            return generator.integers(0, 2, shape).astype(bool)
        case "i" | "u":
            return generator.integers(0, 2, shape).astype(declared.numpy)
    return np.asarray(generator.random(shape), dtype=declared.numpy)


def compare(contenders: Sequence[Contender], arrays: Sequence[Any]) -> list[str]:
    """For each contender what is different from the first one's results: "" is the same, or within what its numerics class allows."""
    results = [leaves(c.call(*arrays)) for c in contenders]
    return [_different(results[0], found) for found in results]


def _different(wanted: Mapping[str, Array], found: Mapping[str, Array]) -> str:
    for name, a in wanted.items():
        b = found[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{name} is {b.dtype.name}{list(b.shape)}"
        if np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            continue
        if a.dtype.kind != "f":
            return f"{name} differs in {int((a != b).sum())} of {a.size}"
        with np.errstate(all="ignore"):
            scale = np.nanmax(np.abs(np.where(np.isfinite(a), a, 0)))
            off = float(np.nanmax(np.abs(np.where(a == b, 0, a - b))))
        if not off <= 64 * np.finfo(a.dtype).eps * float(scale) * max(1.0, a.ndim):
            return f"{name} is off by {off:.3g}"
    return ""


def measure(terminal: Terminal, contenders: Sequence[Contender], arrays: Sequence[Any], rounds: int) -> list[list[float]]:
    """Seconds a call, for every contender and round. The order of turns rotates, so that none is always first."""
    repeats = [_repeats(c.call, arrays) for c in contenders]
    times: list[list[float]] = [[] for _ in contenders]
    started = time.monotonic()
    for n in range(rounds):
        if n >= 3 and time.monotonic() - started > MOST:
            terminal.note(f"note: {n} of {rounds} rounds in {MOST:.0f} s")
            break
        for k in range(len(contenders)):
            c = (k + n) % len(contenders)
            times[c].append(_turn(contenders[c].call, arrays, repeats[c]))
    return times


def _repeats(call: Callable[..., Any], arrays: Sequence[Any]) -> int:
    once = min(_turn(call, arrays, 1) for _ in range(3))
    return max(1, min(100_000, round(TURN / max(once, 1e-7))))


def _turn(call: Callable[..., Any], arrays: Sequence[Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call(*arrays)
    return (time.perf_counter() - start) / repeats


def _outcome(
    method: str,
    arrays: Sequence[Any],
    contenders: Sequence[Contender],
    times: Sequence[Sequence[float]],
    differences: Sequence[str],
    output: Path | None,
    force: bool,
) -> Outcome:
    medians = [statistics.median(t) for t in times]
    rows = [
        {
            "plan": c.label,
            "median": m,
            "fastest": min(t),
            "rounds": len(t),
            "ratio": m / medians[0],
            "numerics": c.numerics,
            "difference": d,
        }
        for c, m, t, d in zip(contenders, medians, times, differences, strict=True)
    ]
    cells = [
        [c.label, seconds(m), seconds(min(t)), f"{m / medians[0]:.3f}", d or ("" if n == 0 else "same results")]
        for n, (c, m, t, d) in enumerate(zip(contenders, medians, times, differences, strict=True))
    ]
    shapes = ", ".join(f"{a.dtype.name}{list(a.shape)}" if isinstance(a, np.ndarray) else str(a) for a in arrays)
    text = f"{method}({shapes}), {len(times[0])} rounds\n" + table(("plan", "median", "fastest", "of the first", ""), cells)
    value = {"method": method, "inputs": shapes, "rows": rows}
    if output is not None:
        import json

        data = json.dumps(value, indent=1).encode() if output.suffix == ".json" else text.encode()
        write(output, data + b"\n", force)
    return Outcome(value, text, REFUSED if any(differences) else DONE)
