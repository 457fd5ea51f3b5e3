"""`fluorite tune`: a plan with holes becomes one without, by measurement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fluorite.algo.errors import BuildError, PlanError, Problem, RunError
from fluorite.algo.graph import Graph
from fluorite.algo.program import trace
from fluorite.schedule import ExecutionPlan, Tune, plain

from ..buckets import buckets_of
from ..compiled import TVM, TVM_FFI, VERSION
from ..diagnosis import every_problem
from ..driver import Plan, as_plan, lower_variants, prepared, schedule, with_scales
from ..given_extents import require_whole
from ..lowered import structure_hash
from ..recomputing import saying
from ..sampling import Array, extents_text, sample_parameters
from ..target import CodeTarget, resolve_target
from .edits import Chosen
from .flat import flattened
from .journal import Journal
from .measuring import ProcessMeasurer, TuningCase
from .points import awkward_cases, inputs_for, nothing_open, objective, places_of, tuning_cases
from .records import Trial, Watch, failures_in, in_words
from .search import Budget, Found, search
from .space import Candidate, Space, open_stages, with_directives


@dataclass(frozen=True)
class TuneResult:
    """`plan` has no holes. `seconds` and `baseline` are weighted sums over methods, tuned and untuned, measured in turns at the end."""

    plan: ExecutionPlan
    improved: bool
    seconds: float
    baseline: float
    trials: tuple[Trial, ...]
    elapsed: float
    resumed: int
    journal: Path | None = None

    @property
    def failures(self) -> dict[str, int]:
        """Trials that failed, by reason: illegal, build, crash, time-out, wrong, slow."""
        return failures_in(self.trials)

    def text(self) -> str:
        """A summary of three lines or four."""
        before, after = in_words(self.baseline), in_words(self.seconds)
        first = (
            f"{after}, untuned {before}: {self.baseline / self.seconds:.2f} times as fast"
            if self.improved
            else f"{before}: nothing was faster than the untuned plan, which is kept"
        )
        earlier = f" ({self.resumed} of an earlier run)" if self.resumed else ""
        lines = [first, f"{len(self.trials)} candidate{'s' if len(self.trials) != 1 else ''}{earlier} in {self.elapsed:.0f} s"]
        if self.failures:
            lines.append("failed: " + ", ".join(f"{n} {reason}" for reason, n in self.failures.items()))
        filled = self.plan.provenance.get("filled", {})
        chosen = [f"{name} = {json.dumps(plain(entry['value']))}" for name, entry in filled.items() if "value" in entry]
        if chosen and self.improved:
            lines.append("chosen: " + ", ".join(chosen))
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        return {
            "improved": self.improved,
            "seconds": self.seconds,
            "baseline": self.baseline,
            "trials": len(self.trials),
            "resumed": self.resumed,
            "elapsed": self.elapsed,
            "failures": self.failures,
            "journal": str(self.journal) if self.journal else None,
            "plan": self.plan.to_yaml(),
            "provenance": plain(self.plan.provenance),
        }


def tune(
    model: Any,
    plan: Plan = None,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    inputs: str | Path | Mapping[str, Any] | None = None,
    extents: Mapping[str, int] | None = None,
    progress: Watch | None = None,
    seed: int = 0,
    method: str | None = None,
) -> ExecutionPlan:
    """The plan with its holes, and what it leaves to the default scheduler, filled by measurement at the `extents`.

    `trials` and `minutes` end the search. `journal` is a file that keeps every trial; with `resume` a search that was stopped goes on from
    it. `inputs` (a mapping by name, an .npz file, a folder of .npy files) stand in for random ones. The result is never slower than the
    plan was. Raises AlgorithmError, PlanError, BuildError, RunError.
    """
    return tuned(
        model,
        plan,
        trials=trials,
        minutes=minutes,
        journal=journal,
        resume=resume,
        inputs=inputs,
        extents=extents,
        progress=progress,
        seed=seed,
        method=method,
    ).plan


def tuned(
    model: Any,
    plan: Plan = None,
    *,
    trials: int | None = None,
    minutes: float | None = None,
    journal: str | Path | None = None,
    resume: bool = False,
    inputs: str | Path | Mapping[str, Any] | None = None,
    extents: Mapping[str, int] | None = None,
    progress: Watch | None = None,
    seed: int = 0,
    method: str | None = None,
) -> TuneResult:
    """Fill what the plan leaves open by building, checking and timing candidates, each in a process apart from this one.

    Holes take one of their values; stages that are `auto` (all that the plan does not mention, if it says so anywhere or has no holes) move
    from the default scheduler's directives to their neighbours. Measured are whole calls at the extents of the plan's `tune: at:`, or at
    `extents`, on random inputs, or on `inputs` (a mapping by name, an .npz file, a folder of .npy files). `trials` and `minutes` end the
    search; the plan's own are taken where they are left out. `journal` keeps every trial as it is made; with `resume` a search that was
    stopped goes on. The result is never slower than the untuned plan, which is measured along and wins ties.

    Raises AlgorithmError, PlanError (the plan is illegal, leaves nothing open, lacks extents; a journal of another search), BuildError,
    RunError.
    """
    for name, limit, least in (("trials", trials, 1), ("minutes", minutes, 0)):
        if limit is not None and not limit >= least:
            raise RunError(Problem("R133", asked=f"{name}={limit!r}", why=f"a search has at least {least}", try_=("leave it out",)))
    require_whole(extents or {})
    graph = model if isinstance(model, Graph) else trace(model, method)
    given = as_plan(plan, graph)
    with every_problem(graph, given):
        untuned, _ = prepared(given, graph)
        target = resolve_target(untuned.target, untuned.numerics.contract, untuned.runtime.threads)
    if given.memory is not None and untuned.memory is not None and given.memory.recompute == "auto":
        given = saying(given, untuned.memory.recompute)
    if target.machine.is_gpu:
        raise BuildError(
            [
                Problem(
                    "B020",
                    "build",
                    asked=f"tuning for {target.kind}",
                    why="candidates are run on this machine's CPU",
                    try_=("target: {kind: llvm}",),
                )
            ]
        )
    with every_problem(graph, given):
        lowered = lower_variants(graph, untuned, target)
    arrays = inputs_for(given, inputs)
    cases = tuning_cases(given, graph, extents or {}, arrays, seed)
    flat = flattened(given, graph, target)
    space = Space(flat, graph, target, places_of(untuned, cases))
    if not space.is_open:
        raise PlanError([nothing_open(given)])
    if resume and journal is None:
        raise PlanError(
            [Problem("P122", "plan", asked="resume without a journal", why="there is nothing to go on from", try_=("journal=PATH",))]
        )
    header = _header(graph, flat, target, cases, arrays, seed)
    graph = with_scales(space.plan_of(Candidate()), graph)
    parameters = sample_parameters(graph, seed)
    scheduled = [(s, v.scheduled.directives.get(s.id, ())) for v in lowered for s in v.graph.stages]
    path = Path(journal) if journal is not None else None
    book = Journal.resume(path, header) if resume and path is not None else Journal.start(path, header)
    measurer = ProcessMeasurer(
        graph, space.plan_of(Candidate()), cases, awkward_cases(untuned, graph, cases, scheduled, parameters, seed), parameters
    )
    limit = minutes if minutes is not None else given.tune.minutes
    try:
        found = search(space, measurer, book, Budget(trials or given.tune.trials, None if limit is None else limit * 60), seed, progress)
    finally:
        measurer.close()
    made = _provenance(_without_holes(space, found.winner or Candidate()), space, found, header, path)
    return TuneResult(made, found.winner is not None, found.seconds, found.baseline, found.trials, found.elapsed, found.resumed, path)


def _header(
    graph: Graph, plan: ExecutionPlan, target: CodeTarget, cases: list[TuningCase], arrays: Mapping[str, Array], seed: int
) -> dict[str, Any]:
    """What a journal must agree with. The budget does not count: a search may be resumed with another."""
    fixed = plan.replace(tune=Tune(objective=plan.tune.objective, where=plan.tune.where), provenance={}, program=None)
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return {
        "program": graph.name,
        "plan": hashlib.sha256(fixed.to_yaml().encode()).hexdigest()[:16],
        "structure": structure_hash(graph),
        "target": _target(target),
        "toolchain": {"fluorite": VERSION, "tvm": TVM, "tvm_ffi": TVM_FFI},
        "seed": seed,
        "objective": objective(plan, graph),
        "at": [[c.method, dict(c.extents)] for c in cases],
        "inputs": digest.hexdigest()[:16] if arrays else "random",
    }


def _target(target: CodeTarget) -> dict[str, Any]:
    return {"kind": target.kind, "cpu": target.cpu, "threads": target.machine.cores, "features": list(target.features)}


def _without_holes(space: Space, candidate: Candidate) -> ExecutionPlan:
    """The candidate's plan, and what is left to the default scheduler said in directives, as far as the search was about that."""
    plan = space.plan_of(candidate)
    if not space.searches_schedules:
        return plan
    edits: dict[str, Chosen] = {}
    for when in buckets_of(plan)[0]:
        place = json.dumps(when)
        edits[place] = candidate.edits.get(place) or open_stages(schedule(space.graph, plan, space.target, when))
    spelled = with_directives(space.plan_of(Candidate(candidate.choice)), edits, space.graph)
    try:
        same = _code(space, spelled) == _code(space, plan)
    except PlanError:
        same = False
    return spelled if same else plan


def _code(space: Space, plan: ExecutionPlan) -> list[str]:
    return [v.text() for v in lower_variants(space.graph, plan, space.target)]


def _provenance(plan: ExecutionPlan, space: Space, found: Found, header: Mapping[str, Any], journal: Path | None) -> ExecutionPlan:
    """The plan with the record of how it came about. Conditions between holes go, since the holes are gone."""
    choice = found.winner.choice if found.winner else {}
    by = "tuned" if found.winner else "default"
    filled: dict[str, Any] = {
        name: {"value": plain(choice.get(name, hole.default)), "by": by} for name, hole in space.active(choice).items()
    }
    if space.searches_schedules:
        edited = found.winner.edits if found.winner else {}
        for place, chosen in space.base.items():
            for path, ds in chosen.items():
                changed = edited.get(place, chosen).get(path) != ds
                filled.setdefault(
                    f"/{path}" if place == "{}" else f"/{path} ({extents_text(json.loads(place))})",
                    {"by": "tuned" if changed else "default"},
                )
    facts: dict[str, Any] = {
        "tool": f"fluorite {VERSION}",
        "program": header["program"],
        "structure": header["structure"],
        "plan": header["plan"],
        "at": header["at"],
        "target": {k: v for k, v in header["target"].items() if k != "features"},
        "toolchain": header["toolchain"],
        "trials": len(found.trials),
        "failures": failures_in(found.trials),
        "seconds": round(found.elapsed, 1),
        "seed": header["seed"],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "journal": journal.name if journal else "none",
        "untuned": f"{found.baseline:.6g} s",
        "tuned": f"{found.seconds:.6g} s",
        "filled": filled,
    }
    said = space.plan.tune
    kept = said.replace(where=()) if said.where else said
    return plan.replace(tune=kept, provenance=facts, holes={})


__all__ = ["TuneResult", "tune", "tuned"]
