"""Why a model takes the time that it takes: kernel by kernel, what is computed, what is moved, and what this machine could do at best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from fluorite.algo.cost import cost, operations, span, total
from fluorite.algo.expr import Const, Read
from fluorite.algo.extent import Extent, maximum, symbols_of, volume
from fluorite.algo.graph import Graph
from fluorite.algo.program import trace
from fluorite.algo.specialise import specialise
from fluorite.algo.stages import Stage
from fluorite.schedule import label
from fluorite.schedule.companions import common_parts
from fluorite.schedule.grouping import Group

from .compiled import Compiled
from .diagnosis import every_problem
from .driver import Plan, as_plan, lower_variants, prepared, with_scales
from .given_extents import require_known
from .lowered import Lowered
from .peaks import peaks
from .recomputing import chosen_again
from .roofline import Roofline, roofline
from .runtime.peak import Peak, size
from .sampling import number
from .statements import For, Kernel, walk
from .target import resolve_target
from .workspace import workspace


@dataclass(frozen=True)
class KernelFacts:
    """One kernel. Counts are extents in the symbols that are not given; `seconds` and `bound` are there once they are numbers.

    Bytes read and written are what must be moved between the kernel and memory if each tensor moves once; `bytes_kept` is the memory that
    each thread takes for stages that are computed inside others. `copies` names stages that only move data.
    """

    name: str
    method: str
    stages: tuple[str, ...]
    flops: Extent
    integer_ops: Extent
    bytes_read: Extent
    bytes_written: Extent
    bytes_kept: Extent
    parallel: tuple[str, ...]
    vectors: tuple[int, ...]
    copies: tuple[str, ...]
    once: bool
    seconds: float | None = None
    bound: str = ""

    def as_dict(self) -> dict[str, object]:
        return {
            "kernel": self.name,
            "method": self.method,
            "stages": list(self.stages),
            "flops": _json(self.flops),
            "integer_ops": _json(self.integer_ops),
            "bytes_read": _json(self.bytes_read),
            "bytes_written": _json(self.bytes_written),
            "bytes_kept": _json(self.bytes_kept),
            "parallel": list(self.parallel),
            "vectors": list(self.vectors),
            "copies": list(self.copies),
            "once": self.once,
            "seconds": self.seconds,
            "bound": self.bound or None,
        }


@dataclass(frozen=True)
class Explanation:
    """`peaks`: what a call takes by method, beside its inputs. `decided_by`: "plan" or "default" by stage path. `recomputed`: what
    `memory: recompute: auto` chose, where the plan says so."""

    program: str
    numerics: str
    kernels: tuple[KernelFacts, ...]
    decided_by: Mapping[str, str]
    directives: Mapping[str, tuple[str, ...]]
    peaks: Mapping[str, Peak]
    machine: Roofline | None
    extents: Mapping[str, int]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    recomputed: tuple[str, ...] | None = None

    @property
    def memory(self) -> dict[str, int]:
        """Peak bytes of a call by method, beside its inputs."""
        return {method: peak.total for method, peak in self.peaks.items()}

    @property
    def seconds(self) -> dict[str, float]:
        """The predicted least time of a call, by method; methods of which extents are missing are left out."""
        found: dict[str, float] = {}
        for k in self.kernels:
            if k.seconds is not None and not k.once:
                found[k.method] = found.get(k.method, 0.0) + k.seconds
        return found

    def of_method(self, name: str) -> Explanation:
        """What concerns one method."""
        mine = {path: by for path, by in self.decided_by.items() if path.split("/")[0] == name}
        peaks = {m: peak for m, peak in self.peaks.items() if m == name}
        return replace(self, kernels=tuple(k for k in self.kernels if k.method == name), decided_by=mine, peaks=peaks)

    def text(self) -> str:
        rows: list[tuple[str, ...]] = [("kernel", "stages", "flops", "read", "written", "kept", "parallel", "vector", "at best", "limit")]
        rows += [_row(k) for k in self.kernels]
        lines = _aligned(rows)
        lines += [f"  {k.name} only moves data: {', '.join(k.copies)}" for k in self.kernels if k.copies]
        lines += [f"  {k.name} runs on one thread" for k in self.kernels if not k.parallel and not k.once and (k.seconds or 0) > 2e-5]
        lines.append("")
        lines += _aligned(
            [
                ("stage", "decided by", "directives"),
                *((path, by, "; ".join(self.directives.get(path, ())) or "-") for path, by in self.decided_by.items()),
            ]
        )
        lines.append("")
        if self.machine is not None:
            lines.append(
                f"this machine: {self.machine.flops / 1e9:.0f} GFLOP/s, {self.machine.bytes / 1e9:.0f} GB/s; numerics class {self.numerics}"
            )
        lines += [
            f"{method}: at best {_time(seconds)} a call" + (f", {size(peak.total)} of memory" if (peak := self.peaks.get(method)) else "")
            for method, seconds in self.seconds.items()
        ]
        lines += [f"{method}: memory {peak.text()}" for method, peak in self.peaks.items()]
        if self.recomputed is not None:
            lines.append(f"memory: recompute: auto computes {', '.join(self.recomputed) or 'nothing'} again in the backward pass")
        if self.missing:
            lines.append(f"give --extents {','.join(f'{s}=1024' for s in self.missing)} to see times and memory")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        machine = {"flops": self.machine.flops, "bytes": self.machine.bytes} if self.machine else None
        return {
            "program": self.program,
            "numerics": self.numerics,
            "extents": dict(self.extents),
            "kernels": [k.as_dict() for k in self.kernels],
            "seconds": self.seconds,
            "memory": self.memory,
            "peak": {m: {**asdict(p), "alive": dict(p.alive)} for m, p in self.peaks.items()},
            "decided_by": dict(self.decided_by),
            "directives": {k: list(v) for k, v in self.directives.items()},
            "machine": machine,
            "missing": list(self.missing),
            "notes": list(self.notes),
            "recomputed": None if self.recomputed is None else list(self.recomputed),
        }


def explain(
    model: Any, plan: Plan = None, extents: Mapping[str, int] | None = None, *, method: str | None = None, machine: Roofline | None = None
) -> Explanation:
    """Costs and decisions of every kernel of a model under a plan; nothing is compiled or run, but this machine is measured once.

    `extents` gives sizes to symbols; those that the plan fixes need not be given. Raises AlgorithmError, PlanError, RunError.
    """
    graph = model if isinstance(model, Graph) else trace(model, method)
    require_known(graph, extents or {})
    sizes = dict(extents or {})
    resolved = as_plan(plan, graph)
    with every_problem(graph, resolved):
        chosen, notes = prepared(resolved, graph)
        target = resolve_target(chosen.target, chosen.numerics.contract, chosen.runtime.threads)
        variants = lower_variants(graph, chosen, target)
    lowered = next(
        (
            v
            for v in variants
            if all(sizes.get(k, n) == n for k, n in v.when.items()) and (v.when.keys() <= sizes.keys() or len(variants) == 1)
        ),
        variants[-1],
    )
    sizes = {**lowered.when, **sizes}
    best = (machine or roofline()) if not target.machine.is_gpu else None
    known = _specialised(lowered.graph, sizes)
    facts = tuple(
        _facts(lowered, known, group, kernel, m, sizes, best)
        for group, kernel, m in zip(lowered.scheduled.groups, lowered.kernels, lowered.methods, strict=True)
    )
    compiled = Compiled(with_scales(chosen, graph), chosen, variants, Path(), target, notes)
    scheduled = lowered.scheduled
    decided = {s.path: scheduled.decided_by.get(s.path, "default") for s in (*scheduled.source.stages, *scheduled.graph.stages)}
    said = {path: tuple(map(label, ds)) for path, ds in scheduled.chosen.items()}
    missing = tuple(s for s in graph.symbols() if s not in sizes)
    return Explanation(
        graph.name,
        lowered.numerics,
        facts,
        decided,
        said,
        {} if target.machine.is_gpu else peaks(compiled, sizes),
        best,
        sizes,
        missing,
        notes,
        chosen_again(resolved, chosen),
    )


def _specialised(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The graph with the sizes that are known: which part of a tensor a stage reads may be provable only then."""
    return specialise(graph, {name: sizes[name] for name in graph.symbols() if name in sizes})


def _facts(
    lowered: Lowered, graph: Graph, group: Group, kernel: Kernel, method: str, sizes: Mapping[str, int], machine: Roofline | None
) -> KernelFacts:
    stages = [s for s in graph.stages if s.id in set(group.stages)]
    whole = total(cost(graph, s) for s in stages)
    read = _read(graph, stages)
    written: Extent = 0
    for s in stages:
        if s.id in group.outputs:
            written = written + volume(s.extents) * np.dtype(s.dtype).itemsize
    loops = [n for n in walk(kernel.body) if isinstance(n, For)]
    parallel = tuple(dict.fromkeys(n.name for n in loops if n.kind in ("parallel", "block", "thread")))
    vectors = tuple(sorted({int(n.extent.value) for n in loops if n.kind == "vectorized" and isinstance(n.extent, Const)}))
    floats, integers = _shared(lowered, graph, group)
    flops, ops, read, written = (_known(e, sizes) for e in (whole.flops - floats, whole.integer_ops - integers, read, written))
    copies = tuple(s.path for s in stages if isinstance(s.value, Read) and s.reduction is None)
    made = KernelFacts(
        kernel.name,
        method,
        tuple(s.path for s in stages),
        flops,
        ops,
        read,
        written,
        _known(sum(workspace(kernel), start=0), sizes),
        parallel,
        vectors,
        copies if len(copies) == len(stages) else (),
        kernel.name in lowered.setup,
    )
    return _timed(made, machine)


def _shared(lowered: Lowered, graph: Graph, group: Group) -> tuple[Extent, Extent]:
    """The operations on floats and on integers that stages leave to those in whose loops they run."""
    floats: Extent = 0
    integers: Extent = 0
    for i, c in group.companions.items():
        s, leader = graph.stage(i), graph.stage(c.leader)
        assert s is not None and leader is not None
        some = operations(common_parts(leader, lowered.nests[c.leader], s, lowered.nests[i]))
        times = cost(graph, s).iterations
        floats, integers = floats + times * some[0], integers + times * some[1]
    return floats, integers


def _timed(k: KernelFacts, machine: Roofline | None) -> KernelFacts:
    counts = (k.flops, k.integer_ops, k.bytes_read, k.bytes_written)
    if machine is None or not all(isinstance(n, int) for n in counts):
        return k
    flops, ops, read, written = (n for n in counts if isinstance(n, int))
    seconds = machine.seconds(flops + ops, read + written) + (machine.kernel_seconds if k.parallel else 0.0)
    return replace(k, seconds=seconds, bound=machine.bound(flops + ops, read + written))


def _read(graph: Graph, stages: Sequence[Stage]) -> Extent:
    """Bytes that come from outside the kernel: of every tensor the largest box that a stage reads."""
    inside = {s.id for s in stages}
    boxes: dict[int, Extent] = {}
    for s in stages:
        for source in s.sources:
            if source not in inside:
                box = span(graph, s, source)
                boxes[source] = maximum(boxes[source], box) if source in boxes else box
    whole: Extent = 0
    for source, box in boxes.items():
        whole = whole + box * np.dtype(graph[source].dtype).itemsize
    return whole


def _known(e: Extent, sizes: Mapping[str, int]) -> Extent:
    return number(e, sizes) if all(s in sizes for s in symbols_of(e)) else e


def _json(e: Extent) -> int | str:
    return e if isinstance(e, int) else str(e)


def _row(k: KernelFacts) -> tuple[str, ...]:
    names = ", ".join(path.removeprefix(f"{k.method}/") for path in k.stages)
    shown = names if len(names) <= 60 else f"{names[:57]}..."
    when = "once, at load" if k.once else _time(k.seconds) if k.seconds is not None else "-"
    return (
        k.name,
        shown,
        _count(k.flops),
        _size(k.bytes_read),
        _size(k.bytes_written),
        _size(k.bytes_kept) if k.bytes_kept != 0 else "-",
        ", ".join(k.parallel) or "-",
        ", ".join(map(str, k.vectors)) or "-",
        when,
        k.bound or "-",
    )


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _count(e: Extent) -> str:
    if not isinstance(e, int):
        return str(e)
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if e >= scale:
            return f"{e / scale:.3g} {unit}"
    return str(e)


def _size(e: Extent) -> str:
    return size(e) if isinstance(e, int) else f"{e} B"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


__all__ = ["Explanation", "KernelFacts", "explain"]
