"""The search itself: which candidate is tried next, when it ends, and which one wins. Knows nothing of processes or files."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from fluorite.algo.errors import PlanError
from fluorite.schedule import ExecutionPlan, plain

from .edits import plain_edits
from .journal import Journal
from .measuring import Measurer
from .records import Outcome, Progress, Trial, Watch, failures_in
from .space import Candidate, Space

PARENTS, FINALISTS, OPENING = 5, 3, 24
MARGIN = 0.99
"""What is not at least one per cent faster than the untuned plan does not replace it."""
ILLEGAL_PER_TRIAL = 20
_ATTEMPTS = 60


@dataclass(frozen=True)
class Budget:
    """Trials (those that legality refuses do not count), and seconds if they are limited."""

    trials: int
    seconds: float | None = None


@dataclass
class Strategy:
    """Defaults first; all candidates if they are few; else random ones for a start, then steps from the best, never one twice.

    What is proposed depends on the seed and on the results so far alone, so that a search that is resumed goes on as it would have, with
    more trials too.
    """

    space: Space
    seed: int
    trials: int
    history: list[tuple[Candidate, Trial]] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        count = self.space.count(self.trials)
        self.everything: Iterator[Candidate] | None = self.space.all() if count is not None and count <= self.trials else None

    def propose(self) -> Candidate | None:
        """The next candidate, or None if nothing new is found."""
        if self.everything is not None:
            return next((c for c in self.everything if self._new(c)), None)
        rng = random.Random(f"{self.seed}:{len(self.history)}")
        for _ in range(_ATTEMPTS):
            made = self._draw(rng)
            if made is not None and self._new(made):
                return made
        return None

    def learn(self, candidate: Candidate, trial: Trial) -> None:
        self.history.append((candidate, trial))
        self.seen.add(trial.key)

    def best(self, count: int) -> list[tuple[Candidate, Trial]]:
        """The fastest so far, the fastest first."""
        good = [(c, t) for c, t in self.history if t.outcome.ok]
        return sorted(good, key=lambda pair: (pair[1].outcome.ratio, pair[1].number))[:count]

    def _draw(self, rng: random.Random) -> Candidate | None:
        parents = self.best(PARENTS)
        # of holes nothing is known at first; of schedules, the default one is a good start
        wild = 0.1 if self.space.measured else max(0.1, 1 - len(self.history) / OPENING)
        if not parents or rng.random() < wild:
            return self.space.draw(rng)
        at = min(int(rng.expovariate(1.0)), len(parents) - 1)
        made = self.space.step(rng, parents[at][0])
        return made if made is None or rng.random() < 0.7 else self.space.step(rng, made) or made

    def _new(self, candidate: Candidate) -> bool:
        return self.space.key(candidate) not in self.seen


@dataclass(frozen=True)
class Found:
    """What a search came to. `winner` None: the untuned plan was not beaten. `seconds` and `baseline` as measured last, in turns."""

    winner: Candidate | None
    seconds: float
    baseline: float
    trials: tuple[Trial, ...]
    elapsed: float
    resumed: int


def search(
    space: Space,
    measurer: Measurer,
    journal: Journal,
    budget: Budget,
    seed: int,
    watch: Watch | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Found:
    """Try candidates until the budget is spent or there are none left. Trials in the journal are not measured again."""
    strategy = Strategy(space, seed, budget.trials)
    begun, known = clock(), len(journal.trials)
    trials: list[Trial] = []
    earlier: list[float] = []  # seconds of trials that the journal had
    tell = _Teller(watch, budget, lambda: clock() - begun + sum(earlier), trials, strategy)
    tell("baseline")
    baseline = measurer.baseline()
    first = Trial(0, space.key(Candidate()), baseline)
    strategy.learn(Candidate(), first)
    if space.measured:
        strategy.seen.add(space.key(space.written_out(Candidate())))  # the same in other words
    tell.baseline = baseline.seconds
    while _counted(trials) < budget.trials and len(trials) < budget.trials * ILLEGAL_PER_TRIAL:
        candidate = strategy.propose()
        if candidate is None:
            break
        key = space.key(candidate)
        trial = journal.trials.get(key)
        if trial is None:
            if budget.seconds is not None and tell.elapsed() >= budget.seconds:
                break
            started = clock()
            outcome = _tried(space, candidate, measurer)
            trial = Trial(
                len(trials) + 1,
                key,
                outcome,
                {k: plain(v) for k, v in candidate.choice.items()},
                plain_edits(candidate.edits),
                clock() - started,
                _now(),
            )
            journal.add(trial)
        else:
            earlier.append(trial.elapsed)
        trials.append(trial)
        strategy.learn(candidate, trial)
        tell("trials", trial)
    tell("final")
    winner, seconds, usual = _decided(space, strategy, measurer, baseline)
    journal.note(winner=space.key(winner) if winner else None, seconds=seconds, baseline=usual, date=_now())
    return Found(winner, seconds, usual, tuple(trials), tell.elapsed(), known)


def _tried(space: Space, candidate: Candidate, measurer: Measurer) -> Outcome:
    try:
        plan = space.plan_of(candidate)
    except PlanError as error:
        return Outcome("illegal", why=error.problems[0].asked)
    return measurer.measure(plan)


def _decided(space: Space, strategy: Strategy, measurer: Measurer, baseline: Outcome) -> tuple[Candidate | None, float, float]:
    """The winner of a last comparison of the best with the untuned plan, which wins ties."""
    untuned = space.key(Candidate())
    finalists = [c for c, t in strategy.best(FINALISTS + 1) if t.key != untuned and t.outcome.ratio < 1][:FINALISTS]
    if not finalists:
        return None, baseline.seconds, baseline.seconds
    plans: list[ExecutionPlan] = [space.plan_of(c) for c in finalists]
    outcomes = measurer.compare(plans)
    ranked: Sequence[tuple[Candidate, Outcome]] = sorted(zip(finalists, outcomes, strict=True), key=lambda pair: pair[1].ratio)
    candidate, outcome = ranked[0]
    if outcome.ratio >= MARGIN:
        usual = outcome.baseline or baseline.seconds
        return None, usual, usual
    return candidate, outcome.seconds, outcome.baseline


def _counted(trials: Sequence[Trial]) -> int:
    return sum(t.outcome.failure != "illegal" for t in trials)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class _Teller:
    """Reports progress, and guesses what is left of it."""

    def __init__(
        self, watch: Watch | None, budget: Budget, elapsed: Callable[[], float], trials: Sequence[Trial], strategy: Strategy
    ) -> None:
        self.watch, self.budget, self.elapsed, self.trials, self.strategy = watch, budget, elapsed, trials, strategy
        self.baseline: float | None = None

    def __call__(self, phase: str, last: Trial | None = None) -> None:
        if self.watch is None:
            return
        done, elapsed = _counted(self.trials), self.elapsed()
        best = self.strategy.best(1)
        left = None
        if phase == "trials" and done:
            left = (self.budget.trials - done) * sum(t.elapsed for t in self.trials) / done
            if self.budget.seconds is not None:
                left = min(left, max(0.0, self.budget.seconds - elapsed))
        # the baseline drifts with the machine, so ratios are what is compared
        fastest = best[0][1].outcome.ratio * self.baseline if best and self.baseline else None
        words = "" if last is None else last.outcome.failure or f"{last.outcome.ratio:.3f}"
        self.watch(Progress(phase, done, self.budget.trials, failures_in(self.trials), elapsed, left, fastest, self.baseline, words))  # type: ignore[arg-type]


__all__ = ["Budget", "Found", "Strategy", "search"]
