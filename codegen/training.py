"""The loop of training: one method over what it reads, with means of what it returns now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fluorite.algo.errors import Problem, RunError

from .runtime.model import Model


@dataclass(frozen=True)
class Goal:
    """What is to be run: `method` until so many passes or calls are done in all, those before a checkpoint included; a report every so
    many calls, or at the end of each pass; with each report a pass of the method `evaluate`."""

    method: str
    epochs: int | None = None
    steps: int | None = None
    every: int | None = None
    evaluate: str | None = None


@dataclass(frozen=True)
class Progress:
    """After a call: how many there were in all, whole passes, and the numbers that the call returned."""

    step: int
    epoch: int
    metrics: Mapping[str, float]


@dataclass(frozen=True)
class Report(Progress):
    """Means since the last report, weighted by the sizes of the batches; `seconds` since the loop began."""

    seconds: float = 0.0


@dataclass
class Means:
    """Weighted means by name."""

    sums: dict[str, float] = field(default_factory=dict)
    weight: float = 0.0

    def add(self, numbers: Mapping[str, float], weight: float) -> None:
        for name, value in numbers.items():
            self.sums[name] = self.sums.get(name, 0.0) + weight * value
        self.weight += weight

    def taken(self) -> dict[str, float]:
        """The means so far; from here on they begin anew."""
        found = {name: total / self.weight for name, total in self.sums.items()} if self.weight else {}
        self.sums, self.weight = {}, 0.0
        return found


def numbers(result: Any, prefix: str = "") -> dict[str, float]:
    """The numbers of a method's result by their path in it; larger tensors are left out."""
    match result:
        case dict():
            return {k: v for name, part in result.items() for k, v in numbers(part, f"{prefix}{name}/").items()}
        case list() | tuple():
            return {k: v for n, part in enumerate(result) for k, v in numbers(part, f"{prefix}{n}/").items()}
        case None:
            return {}
    array = np.asarray(result)
    return {prefix.rstrip("/") or "result": float(array.reshape(()).astype(np.float64))} if array.size == 1 else {}


def refusal(model: Model, goal: Goal) -> RunError | None:
    """Why a model cannot be trained so."""
    spec = model.manifest["methods"][goal.method]
    if not spec.get("updates"):
        return _refused("R310", f"{goal.method} changes no state, so calling it again would do nothing", "optimizer.minimize(loss) in it")
    if spec["inputs"] and "reader" not in spec:
        return _refused("R119", f"{goal.method} reads nothing", '@fl.method(reader="data") in the algorithm')
    if goal.epochs is not None and not spec["inputs"]:
        return _refused("R310", f"{goal.method} has no inputs, so there are no passes to count", "--steps")
    if goal.evaluate is not None and "reader" not in model.manifest["methods"][goal.evaluate]:
        return _refused("R119", f"{goal.evaluate} reads nothing", '@fl.method(reader="test") in the algorithm')
    if goal.evaluate is not None and model.manifest["methods"][goal.evaluate].get("updates"):
        return _refused("R310", f"{goal.evaluate} changes state, and evaluation must not", "a method without training=True")
    return None


def _refused(code: str, asked: str, *try_: str) -> RunError:
    return RunError(Problem(code, asked=asked, try_=try_))


def train(
    model: Model, goal: Goal, told: Callable[[Progress], None] = lambda _: None, stopped: Callable[[], bool] = lambda: False
) -> Iterator[Report]:
    """Reports, between which the model is trained; when one comes, the model stands between two calls and can be saved. None, where all is
    done already.

    `told` hears of every call; once `stopped` says so, a last report ends the loop. Raises what the method and its reader raise.
    """
    begun, means = time.perf_counter(), Means()
    step, epoch = model.steps[goal.method], _epoch(model, goal)
    done = stopped() or _reached(goal, step, epoch)
    while not done:
        result = getattr(model, goal.method)()
        before, step, epoch = epoch, model.steps[goal.method], _epoch(model, goal)
        found = numbers(result)
        means.add(found, model.batch_rows(goal.method))
        told(Progress(step, epoch, found))
        done = stopped() or _reached(goal, step, epoch)
        if done or (epoch != before if goal.every is None else step % goal.every == 0):
            measured = means.taken()
            if goal.evaluate is not None and not stopped():
                measured |= {f"{goal.evaluate}/{name}": value for name, value in evaluated(model, goal.evaluate).items()}
            yield Report(step, epoch, measured, time.perf_counter() - begun)


def evaluated(model: Model, method: str) -> dict[str, float]:
    """The means of what a method returns over one pass."""
    means = Means()
    for result in model.epoch(method):
        means.add(numbers(result), model.batch_rows(method))
    return means.taken()


def _epoch(model: Model, goal: Goal) -> int:
    return model.position(goal.method)[0] if model.manifest["methods"][goal.method]["inputs"] else 0


def _reached(goal: Goal, step: int, epoch: int) -> bool:
    return (goal.steps is not None and step >= goal.steps) or (goal.epochs is not None and epoch >= goal.epochs)


__all__ = ["Goal", "Progress", "Report", "evaluated", "numbers", "refusal", "train"]
