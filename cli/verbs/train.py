"""`fluorite train`: one method over what it reads, with checkpoints."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fluorite.algo.errors import Problem, RunError

from ..command import Outcome
from ..inputs import method_named
from ..loading import artifact_named, requested
from ..metrics import Csv, TensorBoard, said
from ..refusals import usage
from ..restarting import NO_MEMORY, supervised
from ..terminal import Terminal
from ..user_code import run_guarded
from ..values import extents as read_extents
from ..values import pairs

if TYPE_CHECKING:
    from fluorite.algo.graph import Graph
    from fluorite.codegen.runtime.model import Model
    from fluorite.codegen.training import Goal, Report


@dataclass(frozen=True)
class Request:
    """The options of the verb beside MODEL, PLAN and --extents."""

    method: str | None
    epochs: int | None
    steps: int | None
    every: int | None
    evaluate: str | None
    batch_size: int | None
    data: list[str]
    out: Path | None
    resume: bool
    keep: int
    csv: Path | None
    tensorboard: Path | None
    weights: Path | None
    seed: int
    force: bool
    cache: bool
    restarts: int | None
    supervised: bool = False


def train(terminal: Terminal, model: str | None, plan: str | None, extents: list[str] | None, given: Request) -> Outcome:
    if given.epochs is None and given.steps is None:
        raise usage("train", "nothing says when it is done", "--epochs 10", "--steps 1000")
    if given.resume and given.out is None:
        raise usage("--resume", "nothing says where the checkpoints are", "--out DIR --resume")
    if artifact_named(model) is not None:
        raise usage(f"train {model}", "a built model has no readers, and the algorithm is needed", "file.py:Name")
    if given.restarts is not None:
        return _restarted(terminal, model, plan, extents, given, given.restarts)
    if given.supervised:
        return _dying_without_memory(terminal, lambda: _trained(terminal, model, plan, extents, given))
    return _trained(terminal, model, plan, extents, given)


def _trained(terminal: Terminal, model: str | None, plan: str | None, extents: list[str] | None, given: Request) -> Outcome:
    from fluorite.codegen import training

    sizes = read_extents(extents)
    asked = requested(terminal, model, [plan] if plan else None, sizes, "train")
    goal = _goal(asked.graph, given)
    begins_anew = _begins_anew(given)
    made = _compiled(asked, sizes, given)
    if (wrong := training.refusal(made, goal)) is not None:
        raise wrong
    resumed = None if begins_anew or given.out is None else made.resume(given.out)
    if resumed is not None:
        terminal.note(f"goes on after step {made.steps[goal.method]}")
    return _run(terminal, made, goal, given, resumed)


def _restarted(
    terminal: Terminal, model: str | None, plan: str | None, extents: list[str] | None, given: Request, restarts: int
) -> Outcome:
    """The same in a process of its own, which goes on from its last checkpoint when it dies."""
    if given.out is None:
        raise usage("--restarts", "nothing says where the checkpoints are from which it goes on", "--out DIR --restarts 3")
    _begins_anew(given)
    ended = supervised(terminal, ["train", *_words(terminal, model, plan, extents, given)], given.out, given.force, restarts)
    return Outcome(None, "", ended.code, ended.out)


def _words(terminal: Terminal, model: str | None, plan: str | None, extents: list[str] | None, given: Request) -> list[str]:
    """The command line again, but for --restarts and --force."""
    words = [] if model is None else [model]
    options: list[tuple[str, object]] = [
        ("--plan", plan), *(("--extents", e) for e in extents or ()), ("--method", given.method), ("--epochs", given.epochs),
        ("--steps", given.steps), ("--every", given.every), ("--evaluate", given.evaluate), ("--batch-size", given.batch_size),
        *(("--data", d) for d in given.data), ("--out", given.out), ("--keep", given.keep), ("--csv", given.csv),
        ("--tensorboard", given.tensorboard), ("--weights", given.weights), ("--seed", given.seed), ("--color", terminal.color),
    ]  # fmt: skip
    for name, value in options:
        words += [] if value is None else [name, str(value)]
    switches = (
        ("--resume", given.resume), ("--no-cache", not given.cache), ("--json", terminal.json), ("--quiet", terminal.quiet),
        ("--verbose", terminal.verbose),
    )  # fmt: skip
    return [*words, *(name for name, there in switches if there)]


def _dying_without_memory(terminal: Terminal, run: Callable[[], Outcome]) -> Outcome:
    """What `run` gives; without memory the process ends as the system would end it."""
    try:
        return run()
    except (MemoryError, RunError) as error:
        if isinstance(error, RunError) and all(p.code != "R109" for p in error.problems):
            raise
        terminal.error(str(error))
        os._exit(NO_MEMORY)


def _goal(graph: Graph, given: Request) -> Goal:
    from fluorite.codegen.training import Goal

    changing = [m.name for m in graph.methods if m.updates and m.reader is not None]
    names = [m.name for m in graph.methods]
    method = changing[0] if given.method is None and len(changing) == 1 else method_named(names, given.method)
    if given.evaluate is not None and given.evaluate not in names:
        raise usage(f"--evaluate {given.evaluate}", f"there is no method {given.evaluate}", *(f"--evaluate {n}" for n in names))
    return Goal(method, given.epochs, given.steps, given.every, given.evaluate)


def _begins_anew(given: Request) -> bool:
    """Whether there is no checkpoint to go on with. Raises RunError rather than write beside those of another run."""
    from fluorite.codegen.runtime import checkpoints

    if given.out is None:
        return True
    if given.out.exists() and not given.out.is_dir():
        raise RunError(Problem("R402", asked=f"{given.out} is no folder", why="checkpoints are written into it"))
    there = checkpoints.exists(given.out)
    if there and not given.resume and not given.force:
        tries = ("--resume goes on with it", "--force begins anew beside it", "--out with another folder")
        raise RunError(Problem("R401", asked=f"{given.out} has a checkpoint", why="it may be of another run", try_=tries))
    return not (there and given.resume)


def _compiled(asked: Any, sizes: dict[str, int], given: Request) -> Model:
    from fluorite.codegen import driver

    algorithm = asked.algorithm
    program = run_guarded(algorithm.model, algorithm.folder, algorithm.shown) if isinstance(algorithm.model, type) else algorithm.model
    data = pairs("--data", given.data) or None
    return driver.compile(
        program, asked.plan, seed=given.seed, weights=given.weights, extents=sizes or None, cache=given.cache,
        batch_size=given.batch_size, data=data,
    )  # fmt: skip


def _run(terminal: Terminal, model: Model, goal: Goal, given: Request, resumed: int | None) -> Outcome:
    from fluorite.codegen.training import train as reports

    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
    path = given.csv or (given.out / "metrics.csv" if given.out is not None else None)
    writers: list[Any] = [] if path is None else [Csv(path, given.force, resumed)]
    writers += [TensorBoard(given.tensorboard)] if given.tensorboard is not None else []
    last: Report | None = None
    saved: Path | None = None
    with ExitStack() as ending, _stoppable(terminal) as stopped, said(terminal, _total(model, goal)) as told:
        for writer in writers:
            ending.callback(writer.close)
        for last in reports(model, goal, told, stopped):
            saved = model.checkpoint(given.out, given.keep) if given.out is not None else None
            for writer in writers:
                writer.write(last)
            told.report(last)
        if stopped():
            if saved is not None:
                terminal.note(f"{saved} is the state after step {model.steps[goal.method]}; --resume goes on with it")
            raise KeyboardInterrupt
    if last is None:
        terminal.note(f"nothing is left to do after step {model.steps[goal.method]}")
    step, epoch = (last.step, last.epoch) if last is not None else (model.steps[goal.method], model.position(goal.method)[0])
    value = {
        "method": goal.method, "step": step, "epoch": epoch, "seconds": 0.0 if last is None else last.seconds,
        "metrics": {} if last is None else dict(last.metrics),
        "checkpoint": None if saved is None else str(saved), "csv": None if path is None else str(path),
    }  # fmt: skip
    return Outcome(value, "" if saved is None else str(saved))


def _total(model: Model, goal: Goal) -> int | None:
    """How many calls there will be in all, where that is known."""
    count = model.passes(goal.method)
    by_epochs = None if goal.epochs is None or count is None else goal.epochs * count
    return min((n for n in (by_epochs, goal.steps) if n is not None), default=None)


@contextmanager
def _stoppable(terminal: Terminal) -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed; the call under way is finished first. Pressed again, it ends at once."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return

    def press(*_: Any) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()
        terminal.note("stops after this step")

    before = signal.signal(signal.SIGINT, press)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)


__all__ = ["Request", "train"]
