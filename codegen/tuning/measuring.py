"""Measurements of candidates: built and run in a process apart, compared with the oracle, then timed in turns with the untuned plan."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from fluorite.algo.errors import BuildError, Problem
from fluorite.algo.graph import Graph, Method, flatten
from fluorite.algo.numerics import NO_CASTS, Enclosure, bounds, compare_array, tolerated
from fluorite.schedule import ExecutionPlan, Precision

from ..driver import in_types
from ..runtime import weights
from ..sampling import Array, as_stored, extents_text
from .graph_text import graph_data
from .processes import Worker, WorkerLost
from .records import Outcome
from .workplace import Folder

BASELINE, CANDIDATE = "baseline", "candidate"
BUILD_SECONDS, RUN_SECONDS = 120.0, 10.0
RUN_FACTOR, SLOW_FACTOR = 50.0, 4.0
"""A call may take so many times the baseline's; beyond the second factor it is not timed again."""
_INTERRUPTED = 0.02  # seconds that a call may take because its thread did not get a core
ROUNDS, FINAL_ROUNDS = 5, 15
SLICE_SECONDS = 0.01

Truth = tuple[str, str, Enclosure]
"""Path and type of a tensor, and what it may be."""


@dataclass(frozen=True, eq=False)
class TuningCase:
    """One call that counts: `weight` of its seconds in the objective."""

    method: str
    extents: Mapping[str, int]
    inputs: tuple[Array, ...]
    weight: float


class Measurer(Protocol):
    """Whatever can say how fast a candidate is."""

    def baseline(self) -> Outcome:
        """Of the untuned plan itself."""
        ...

    def measure(self, plan: ExecutionPlan) -> Outcome:
        """Of one candidate."""
        ...

    def compare(self, plans: Sequence[ExecutionPlan]) -> list[Outcome]:
        """Of the best candidates again, more carefully, and on awkward extents too."""
        ...

    def close(self) -> None: ...


class ProcessMeasurer:
    """Measures in a worker process. `cases` count, `awkward` ones with weight 0 only have to be right, for finalists."""

    def __init__(
        self,
        graph: Graph,
        untuned: ExecutionPlan,
        cases: Sequence[TuningCase],
        awkward: Sequence[TuningCase],
        parameters: Mapping[str, Array],
    ) -> None:
        self.graph, self.untuned, self.parameters = graph, untuned, parameters
        self.cases = [*cases, *awkward]
        self.counted, self.checked = list(range(len(cases))), list(range(len(cases), len(self.cases)))
        self.allowed = untuned.numerics.allow
        self.plans: dict[str, ExecutionPlan] = {}  # what each slot was last built for
        self._place = Folder()
        self.folder = self._place.path
        self.worker = Worker(self.folder)
        self.truths: dict[tuple[int, Precision | None], list[Truth]] = {}
        self.usual: list[float] = []  # seconds of a call of the baseline, by case
        self.served = 0  # candidates that the present process has seen
        self._hand_over()

    def _hand_over(self) -> None:
        constants = {t.path: np.asarray(t.value) for t in self.graph.leaves if t.kind == "constant"}
        weights.write(self.folder / "constants", constants)
        weights.write(self.folder / "parameters", self.parameters)
        (self.folder / "graph.json").write_text(json.dumps(graph_data(self.graph)), encoding="utf-8")
        (self.folder / "cases.json").write_text(
            json.dumps([{"method": c.method, "extents": dict(c.extents)} for c in self.cases]), encoding="utf-8"
        )
        for n, case in enumerate(self.cases):
            weights.write(self.folder / f"inputs-{n}", {str(k): array for k, array in enumerate(case.inputs)})

    # ------------------------------------------------------------ what tuning asks for
    def baseline(self) -> Outcome:
        """Raises BuildError if the untuned plan itself does not build, run or compute the right thing."""
        try:
            failed = self._built(BASELINE, self.untuned) or self._right(BASELINE, self.counted)
        except WorkerLost as lost:
            failed = Outcome("crash" if lost.failure == "crash" else "time-out", why=lost.why)
        if failed is not None:
            raise BuildError(
                [
                    Problem(
                        "B030",
                        "build",
                        asked=f"the untuned plan cannot be measured: {failed.failure}",
                        why=failed.why,
                        try_=("fluorite check",),
                    )
                ]
            )
        times = self._times([BASELINE], ROUNDS)
        self.usual = [min(rounds) for rounds in times[0]]
        return self._outcome(times, 0, 0)

    def measure(self, plan: ExecutionPlan) -> Outcome:
        fresh = not self.worker.running or self.served == 0
        outcome = self._measured(plan)
        if outcome.failure in ("crash", "wrong") and not fresh:  # perhaps of what an earlier one did to the memory of the process
            self.worker.stop()
            outcome = self._measured(plan)
        return outcome

    def _measured(self, plan: ExecutionPlan) -> Outcome:
        try:
            self._prepare()
            self.served += 1
            failed = self._built(CANDIDATE, plan) or self._right(CANDIDATE, self.counted)
            if failed is not None:
                if failed.failure == "wrong":
                    self.worker.stop()  # it may have written where it should not
                return failed
            return self._outcome(self._times([BASELINE, CANDIDATE], ROUNDS), 1, 0)
        except WorkerLost as lost:
            return Outcome("crash" if lost.failure == "crash" else "time-out", why=lost.why)

    def compare(self, plans: Sequence[ExecutionPlan]) -> list[Outcome]:
        found: list[Outcome] = []
        for plan in plans:
            try:
                self._prepare()
                failed = self._built(CANDIDATE, plan) or self._right(CANDIDATE, [*self.counted, *self.checked])
                found.append(failed or self._paired(*self._times([BASELINE, CANDIDATE], FINAL_ROUNDS)))
                if failed is not None and failed.failure == "wrong":
                    self.worker.stop()
            except WorkerLost as lost:
                found.append(Outcome("crash" if lost.failure == "crash" else "time-out", why=lost.why))
        return found

    def close(self) -> None:
        self.worker.stop()
        self._place.remove()

    # ------------------------------------------------------------ steps
    def _prepare(self) -> None:
        """A running worker with the baseline in it."""
        if not self.worker.running:
            self.served = 0
            self._built(BASELINE, self.untuned)
            self.worker.ask(self._limit(self.counted), do="run", slot=BASELINE, cases=self.counted)

    def _built(self, slot: str, plan: ExecutionPlan) -> Outcome | None:
        self.plans[slot] = plan
        answer = self.worker.ask(BUILD_SECONDS, do="build", slot=slot, plan=plan.to_yaml())
        return None if answer["ok"] else Outcome(answer["failure"], why=answer["why"])

    def _right(self, slot: str, cases: Sequence[int]) -> Outcome | None:
        """Why the slot's results do not count, or that it is hopelessly slow."""
        answer = self.worker.ask(self._limit(cases), do="run", slot=slot, cases=list(cases))
        if not answer["ok"]:
            return Outcome(answer["failure"], why=answer["why"])
        for case, files in zip(cases, answer["outputs"], strict=True):
            method = self.graph.method(self.cases[case].method)
            for (name, dtype, truth), file in zip(self._truth(case, self.plans[slot]), files, strict=True):
                path = self.folder / file
                found = compare_array(name, truth, np.load(path, allow_pickle=False), dtype)
                path.unlink()
                if not found.ok:
                    return Outcome("wrong", why=f"{method.name}({extents_text(self.cases[case].extents)}) {found.text()}")
        if self.usual and slot != BASELINE:
            first = sum(self.cases[c].weight * s for c, s in zip(cases, answer["seconds"], strict=True))
            usual = sum(self.cases[c].weight * self.usual[c] for c in self.counted)
            if first > max(SLOW_FACTOR * usual, _INTERRUPTED):
                again = self.worker.ask(
                    self._limit(cases), do="run", slot=slot, cases=list(self.counted)
                )  # the first call may have been unlucky
                second = sum(self.cases[c].weight * s for c, s in zip(self.counted, again["seconds"], strict=True))
                if second > max(SLOW_FACTOR * usual, _INTERRUPTED):
                    return Outcome("slow", why=f"{second / usual:.3g} times as long as the untuned plan")
        return None

    def _truth(self, case: int, plan: ExecutionPlan) -> list[Truth]:
        """What results and new values of state may be, in this order: within the class that the plan allows, and what it rounds."""
        key = (case, plan.precision)
        if key not in self.truths:
            c, rounds = self.cases[case], in_types(plan, self.graph)
            class_ = tolerated(self.allowed) if rounds.casts else self.allowed
            graph, casts, given = self.graph, rounds.casts, dict(self.parameters)
            if casts.state:  # it does not come about as the algorithm says
                graph, casts, given = rounds.graph, NO_CASTS, as_stored(rounds.graph, self.parameters)
            found = bounds(graph, c.inputs, class_, method=c.method, parameters=given, casts=casts)
            self.truths[key] = [(graph.path_of(i), graph[i].dtype, found[i]) for i in _compared(graph.method(c.method))]
        return self.truths[key]

    def _times(self, slots: Sequence[str], rounds: int) -> list[list[list[float]]]:
        limit = len(slots) * rounds * sum(max(4 * SLICE_SECONDS, 2 * SLOW_FACTOR * self._usual(c)) for c in self.counted) + RUN_SECONDS
        answer = self.worker.ask(limit, do="time", slots=list(slots), cases=self.counted, rounds=rounds, slice_seconds=SLICE_SECONDS)
        times: list[list[list[float]]] = answer["seconds"]
        return times

    def _outcome(self, times: Sequence[Sequence[Sequence[float]]], slot: int, baseline: int) -> Outcome:
        """Weighted sums of the least of the rounds, since noise only ever adds."""

        def total(k: int) -> float:
            return sum(self.cases[c].weight * min(rounds) for c, rounds in zip(self.counted, times[k], strict=True))

        return Outcome(seconds=total(slot), baseline=total(baseline))

    def _paired(self, usual: Sequence[Sequence[float]], found: Sequence[Sequence[float]]) -> Outcome:
        """Weighted sums by the median ratio of neighbouring turns, which a drift of the machine leaves alone."""
        seconds = baseline = 0.0
        for c, before, after in zip(self.counted, usual, found, strict=True):
            weight = self.cases[c].weight
            baseline += weight * statistics.median(before)
            seconds += weight * statistics.median(before) * statistics.median(a / b for a, b in zip(after, before, strict=True))
        return Outcome(seconds=seconds, baseline=baseline)

    def _usual(self, case: int) -> float:
        return self.usual[case] if case < len(self.usual) else RUN_SECONDS

    def _limit(self, cases: Sequence[int]) -> float:
        """Seconds that one call on each of these cases may take, loading and the first touch of memory included."""
        if not self.usual:
            return 600.0
        return RUN_SECONDS + RUN_FACTOR * sum(self.usual[c] for c in cases if c < len(self.usual))


def _compared(method: Method) -> list[int]:
    """The arrays that a worker writes after a call."""
    return [*flatten(method.result), *method.updates.values()]


__all__ = ["Measurer", "ProcessMeasurer", "TuningCase"]
