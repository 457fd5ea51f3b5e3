"""From lowered kernels to a compiled library and a manifest: what an artefact holds and what a model in this process runs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fluorite.algo.extent_json import to_json
from fluorite.algo.extent_names import most_of
from fluorite.algo.graph import Graph, Method
from fluorite.algo.requirements import requirements
from fluorite.algo.stages import Leaf
from fluorite.schedule.plan import ExecutionPlan

from .buckets import range_of
from .cache import cached_file, key_of
from .lowered import Lowered, extents_of, structure_hash
from .runtime.manifest import FORMAT as MANIFEST_FORMAT
from .statements import Call, Kernel, While, allocations, walk
from .target import CodeTarget
from .twins import code_names
from .workspace import workspace

VERSION = "0.1.0"
TVM, TVM_FFI = "0.27.0.post1", "0.1.14.post0"
EMISSION = (
    "casting",
    "device_c",
    "emit",
    "exact_constants",
    "float_operations",
    "fragments",
    "functions/angles",
    "functions/dot_products",
    "functions/exponentials",
    "functions/lanes",
    "functions/logarithms",
    "functions/narrow_floats",
    "functions/transcendental",
    "functions/whole_numbers",
    "gathers",
    "index_operations",
    "intrinsics",
    "invariants",
    "lean_tvm",
    "lookups",
    "objects",
    "positive_divisors",
    "real_functions",
    "statement_text",
    "statements",
    "streaming",
    "synchronising",
    "tvm_adapter",
    "warps",
)
"""The files that decide what code a kernel's statements become: their contents are part of the cache's keys."""


@dataclass(frozen=True, eq=False)
class Compiled:
    """variants of one model (the generic one last), linked into one library."""

    graph: Graph
    plan: ExecutionPlan
    variants: tuple[Lowered, ...]
    library: Path
    target: CodeTarget
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """The kernels of every bucket."""
        return "\n\n".join(v.text() for v in self.variants)

    def run(self, *inputs: Any, method: str | None = None, **named: Any) -> Any:
        """A call of a method, from the initial parameters on. Raises RunError."""
        from .levels import run_compiled

        return run_compiled(self, inputs, method, named)

    def manifest(self, name: str) -> dict[str, Any]:
        return manifest(self, name)


@cache
def emission_hash() -> str:
    """Changes with the code generator."""
    folder = Path(__file__).parent
    return key_of(*((folder / name).read_text(encoding="utf-8") for name in (*(f"{name}.py" for name in EMISSION), "entry.c")))


def compile_kernels(variants: Sequence[Lowered], target: CodeTarget, use_cache: bool = True) -> Path:
    """The shared library of all kernels. TVM is imported only if the cache does not have it."""
    kernels = [k for v in variants for k in v.kernels if k.call is None]
    texts = {k.name: k.text() for k in kernels}
    key = key_of(emission_hash(), TVM, TVM_FFI, repr(target.config), *(f"{texts[k.name]}\n{k.symbols}" for k in kernels))
    sizes = {name: len(text) for name, text in texts.items()}
    return cached_file(key, ".so", lambda path: _link(kernels, sizes, target, path), use_cache)


def _link(kernels: Sequence[Kernel], sizes: Mapping[str, int], target: CodeTarget, path: Path) -> None:
    from .emit import emit
    from .entry_object import c_compiler, entry_object
    from .objects import object_files
    from .tvm_adapter import link

    compiler = c_compiler()
    code = code_names(kernels)
    unique = [k for k in kernels if code[k.name] == k.name]
    with tempfile.TemporaryDirectory(prefix="fluorite-") as folder:
        files = object_files({k.name: emit(k) for k in unique}, sizes, target.dict(), Path(folder))
        link([*files, entry_object()], path, compiler)


def manifest(compiled: Compiled, name: str) -> dict[str, Any]:
    """The artefact's manifest (without `files`)."""
    g = compiled.graph
    parameters = [t for t in g.leaves if t.kind != "input"]
    stored = {t.id: t.dtype for t in compiled.variants[-1].graph.leaves}
    return {
        "format": MANIFEST_FORMAT,
        "fluorite": VERSION,
        "name": name,
        "toolchain": {"tvm": TVM, "tvm_ffi": TVM_FFI},
        "target": {**compiled.target.manifest(), **({"tiles": True} if _uses_tiles(compiled) else {})},
        "threads": compiled.plan.runtime.threads,
        "program": {"name": g.name, "structure": structure_hash(g)},
        "numerics": {"class": max((v.numerics for v in compiled.variants), key=("exact", "reassociates", "precision", "relaxed").index)},
        "plan": compiled.plan.to_yaml(),
        "notes": list(compiled.notes),
        **({"memory": {"limit": most}} if (most := compiled.plan.limit) is not None else {}),
        "parameters": [_parameter(t, stored[t.id]) for t in parameters],
        "methods": {m.name: _method(compiled, m) for m in g.methods},
        **({"externs": called} if (called := _externs(compiled)) else {}),
    }


def _uses_tiles(compiled: Compiled) -> bool:
    """Whether kernels use registers that the system has to be asked for."""
    return any(b.memory == "tiles" for v in compiled.variants for k in v.kernels for b in allocations(k.body))


def _externs(compiled: Compiled) -> dict[str, Any]:
    """What is called in the place of which kernel."""
    kernels = {k.name: (k, k.call) for v in compiled.variants for k in v.kernels}
    return {name: _extern(k, call) for name, (k, call) in kernels.items() if call is not None}


def _extern(k: Kernel, call: Call) -> dict[str, Any]:
    place = {b.id: n for n, b in enumerate(k.arguments)}
    taken = {} if call.taken is None else {"taken": place[call.taken]}
    marks = {"ranks": call.ranks, "complex_inputs": call.complex_inputs, "complex_results": call.complex_results}
    marked = {what: list(numbers) for what, numbers in marks.items() if numbers}
    dtypes, operands = [b.dtype for b in k.arguments], [place[i] for i in call.operands]
    return {"stage": call.path, "function": call.function, "dtypes": dtypes, "operands": operands, **taken, **marked}


def _parameter(t: Leaf, stored: str) -> dict[str, Any]:
    """The parameter as it is stored, which a plan's precision decides."""
    spec = {"name": t.path, "dtype": stored, "shape": list(t.shape), **_marked(t.complex)}
    return spec if stored == t.dtype else {**spec, "given": t.dtype}


def _method(compiled: Compiled, m: Method) -> dict[str, Any]:
    g = compiled.graph
    code = code_names(k for v in compiled.variants for k in v.kernels)
    variants = [_code(v, m, g.symbols(m.name), code) for v in compiled.variants]
    numbers = {i: n for n, i in enumerate(m.inputs)}
    ranges = {s: range_of(compiled.plan, m.name, s) for s in g.symbols(m.name)}
    return {
        "doc": m.doc,
        "inputs": [
            {
                "name": g[i].name,
                "dtype": g[i].dtype,
                "shape": [to_json(e) for e in g[i].shape],
                "buffer": numbers[i],
                **({"lengths": g[m.ragged[i]].name} if i in m.ragged else {}),
                **({"counts": True} if i in m.counts else {}),
                **_marked(isinstance(t := g[i], Leaf) and t.complex),
            }
            for i in m.inputs
        ],
        "symbols": ranges,
        "requires": [
            {"code": r.code, "what": r.what, "within": [to_json(e) for e in r.within], "filled": [to_json(e) for e in r.filled]}
            for r in requirements(g, m.name, {s: r["min"] for s, r in ranges.items()})
        ],
        "variants": [code for code, _ in variants],
        "result": _tree(m.result, variants[0][1], m.complex),
        **({"updates": list(m.updates)} if m.updates else {}),
        **{key: value for key, value in (("batch", m.batch), ("reader", m.reader)) if value is not None},
    }


def _code(v: Lowered, m: Method, symbols: Sequence[str], code: Mapping[str, str]) -> tuple[dict[str, Any], dict[int, int]]:
    """Buffers and steps of one method in one variant, and the buffer number of each result. Numbers 0.. are the inputs; results follow.

    `code` names the function that computes each kernel. A result that is a new value of state is what that state holds after the call.
    """
    g = v.graph
    mine = g.method(m.name)
    held = {i: g.updates[i].id for i in mine.updates.values()}
    numbers: dict[int, int] = {}
    buffers: list[dict[str, Any]] = []

    def buffer(i: int, kind: str) -> None:
        if i in numbers:
            return
        t = g[i]
        numbers[i] = len(buffers)
        entry: dict[str, Any] = {"kind": kind, "name": t.path, "dtype": t.dtype, "shape": [to_json(e) for e in t.shape]}
        if kind in ("input", "output"):
            entry["alignment"] = int(np.dtype(t.dtype).itemsize)
        buffers.append(entry)

    for i in mine.inputs:
        buffer(i, "input")
    results = {i: held.get(i, i) for i in mine.outputs}
    for i in results.values():
        found = g[i]
        buffer(i, ("parameter" if found.kind != "input" else "input") if isinstance(found, Leaf) else "output")
    steps: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for k, method in zip(v.kernels, v.methods, strict=True):
        if method != m.name:
            continue
        at_setup = k.name in v.setup and not any(b.id in set(mine.outputs) for b in k.outputs)
        for b in k.arguments:
            found = g[b.id]
            if (old := v.in_place.get(b.id)) is not None:
                buffer(old, "parameter")
                numbers[b.id] = numbers[old]
            buffer(
                b.id,
                ("parameter" if found.kind != "input" else "input") if isinstance(found, Leaf) else "constant" if at_setup else "temporary",
            )
        step: dict[str, Any] = {"kernel": code[k.name], "arguments": [numbers[b.id] for b in k.arguments], "symbols": list(k.symbols)}
        if (kept := [to_json(n) for n in workspace(k)]) != [0, 0]:
            step["workspace"] = kept
        if any(isinstance(s, While) for s in walk(k.body)):
            step["unbounded"] = True
        steps[at_setup].append(step)
        for i in (b.id for b in k.outputs if b.id in g.counts):
            found_ = [{"kernel": f"extent {n}", "arguments": [numbers[i]], "count": [n, most_of(n)]} for n in g.counts[i]]
            steps[False][:] = [*found_, *steps[False]] if at_setup else [*steps[False], *found_]
    for old in held.values():
        buffer(old, "parameter")
    copies = [[numbers[new], numbers[old]] for new, old in held.items() if new not in v.in_place]
    return {
        "when": extents_of(v.when, m.name, symbols),
        "buffers": buffers,
        "setup": steps[True],
        "steps": steps[False],
        **({"copies": copies} if copies else {}),
    }, {i: numbers[shown] for i, shown in results.items()}


def _tree(result: Any, numbers: Mapping[int, int], pairs: frozenset[int]) -> dict[str, Any]:
    match result:
        case dict():
            return {"dict": [[str(k), _tree(x, numbers, pairs)] for k, x in result.items()]}
        case list():
            return {"list": [_tree(x, numbers, pairs) for x in result]}
        case tuple():
            return {"tuple": [_tree(x, numbers, pairs) for x in result]}
        case None:
            return {"none": True}
    return {"buffer": numbers[result], **_marked(result in pairs)}


def _marked(pair: bool) -> dict[str, Any]:
    """What a manifest says of tensors that have the parts of complex numbers along their last axis."""
    return {"complex": True} if pair else {}
