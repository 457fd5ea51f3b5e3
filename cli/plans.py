"""PLAN on the command line, and whether it was made for MODEL."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .models import Algorithm, Artifact, find_algorithm, find_model
from .refusals import usage
from .terminal import Terminal
from .user_code import run_file, run_guarded

if TYPE_CHECKING:
    from fluorite.algo.errors import PlanError
    from fluorite.algo.graph import Graph
    from fluorite.schedule import ExecutionPlan
    from fluorite.schedule.plan import Misread


@dataclass(frozen=True, eq=False)
class Request:
    """A model, its graph and the resolved plans to run it under, each with its name on the command line."""

    algorithm: Algorithm
    graph: Graph
    plans: tuple[tuple[str, ExecutionPlan], ...]

    @property
    def plan(self) -> ExecutionPlan:
        return self.plans[0][1]


def load_plan(text: str | None) -> ExecutionPlan:
    """FILE.yaml, fluorite:PRESET or FILE.py:NAME (a plan or a function that returns one), parents merged in.

    Raises PlanError, UsageError.
    """
    from fluorite.schedule import ExecutionPlan

    if text is None:
        return ExecutionPlan()
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(".py"):
        return _from_python(Path(path), name).resolve()
    if text.endswith(".py"):
        return _from_python(Path(text), None).resolve()
    return ExecutionPlan.load(text).resolve()


def _from_python(file: Path, name: str | None) -> ExecutionPlan:
    from fluorite.schedule import ExecutionPlan

    if not file.is_file():
        raise usage(f"--plan {file}", "there is no such file")
    module = run_file(file, str(file))
    names = [k for k, v in vars(module).items() if isinstance(v, ExecutionPlan) and not k.startswith("_")]
    if name is None:
        if len(names) != 1:
            raise usage(f"--plan {file}", f"it holds {len(names) or 'no'} plans", *(f"{file}:{n}" for n in names))
        name = names[0]
    if not hasattr(module, name):
        raise usage(f"--plan {file}:{name}", f"{file} has no {name}", *(f"{file}:{n}" for n in names))
    found: Any = getattr(module, name)
    if callable(found):
        found = run_guarded(found, file.parent, f"{file}:{name}")
    if not isinstance(found, ExecutionPlan):
        raise usage(f"--plan {file}:{name}", f"it is of type {type(found).__name__}, not an ExecutionPlan")
    return found


def request(terminal: Terminal, model: str | None, plans: list[str] | None, need: str) -> Request:
    """MODEL and its plans. MODEL may be left out where a plan names its program. `need` is the verb, for messages."""
    from fluorite.schedule.plan import Misread

    try:
        loaded = [(text, load_plan(text)) for text in plans or ()] or [("no plan", load_plan(None))]
    except Misread as error:
        raise _all_of(error, model, need) from None
    algorithm = find_algorithm(model, need) if model is not None else _named_by(terminal, loaded)
    graph = algorithm.graph()
    for text, plan in loaded:
        check_program(plan, text, algorithm, graph)
    return Request(algorithm, graph, tuple(loaded))


def _all_of(error: Misread, model: str | None, need: str) -> PlanError:
    """What is wrong in the lines that can be read as well, where MODEL says what these are about."""
    from fluorite.algo.errors import FluoriteError, PlanError
    from fluorite.codegen.diagnosis import misread_problems

    if model is None or error.rest is None:
        return error
    try:
        return PlanError(misread_problems(find_algorithm(model, need).graph(), error))
    except FluoriteError:
        return error


def _named_by(terminal: Terminal, plans: list[tuple[str, ExecutionPlan]]) -> Algorithm:
    for text, plan in plans:
        if plan.program is None:
            continue
        home = _home(plan, text)
        path = plan.program.rpartition(":")[0] or plan.program
        file = home / path
        place = plan.place_of("program")
        if path.endswith(".py") and not file.resolve().is_relative_to(home.resolve()):
            from fluorite.algo.errors import PlanError

            raise PlanError(
                place.problem(
                    "P110",
                    f"program: {plan.program}",
                    "a plan may only have files of its own folder run",
                    (f"name it on the command line: {os.path.normpath(file)}:{plan.program.rpartition(':')[2]}",),
                )
            )
        terminal.note(f"running {os.path.normpath(file) if path.endswith('.py') else path}, which {text} names")
        found = find_model(plan.program, home, home)
        if isinstance(found, Artifact):
            break
        return found
    raise usage("MODEL is missing", "no plan says which program it is for", "file.py:Name", "package.module:Name")


def _home(plan: ExecutionPlan, text: str) -> Path:
    file = plan.place_of("program").file or plan.place.file
    if not os.path.isfile(file):
        file = text.rpartition(":")[0] if text.endswith(".py") or ".py:" in text else text
    return Path(os.path.dirname(file) or ".")


def check_program(plan: ExecutionPlan, text: str, algorithm: Algorithm, graph: Graph) -> None:
    """Refuses a plan that was made for another program: by what the program computes where the plan knows that, else by its name. P110."""
    from fluorite.algo.errors import PlanError
    from fluorite.codegen.lowered import structure_hash

    built_for = plan.provenance.get("structure")
    place = plan.place_of("provenance", "structure") if built_for else plan.place_of("program")
    if built_for:
        here = structure_hash(graph)
        if built_for != here:
            was = f"{plan.program or 'a program'} (structure {built_for})"
            raise PlanError(
                place.problem(
                    "P110",
                    f"this plan was made for {was}, and {algorithm.shown} has the structure {here}",
                    "it is another program, or it has changed since",
                    ("tune it again, or take the provenance section out to use the plan as it is",),
                )
            )
        return
    if plan.program is not None and not _same(plan.program, _home(plan, text), algorithm):
        raise PlanError(
            place.problem(
                "P110",
                f"this plan was made for {plan.program}, not for {algorithm.shown}",
                "",
                (f"name {plan.program} on the command line, or change program:",),
            )
        )


def _same(program: str, home: Path, algorithm: Algorithm) -> bool:
    """Whether `program:` of a plan means the model of the command line. A file that has moved counts by its name."""
    path, colon, name = program.rpartition(":")
    path, name = (path, name) if colon and len(path) > 1 else (program, "")
    if name and name != algorithm.name:
        return False
    named = home / path
    if path.endswith(".py") and algorithm.file is not None:
        return named.samefile(algorithm.file) if named.is_file() else named.name == algorithm.file.name
    last = algorithm.file.stem if algorithm.file is not None else algorithm.shown.rpartition(":")[0].rpartition(".")[2]
    return (named.stem if path.endswith(".py") else path.rpartition(".")[2]) == last


def program_from(algorithm: Algorithm, folder: Path) -> str:
    """What `program:` says of the model in a plan that lies in `folder`."""
    path, _, name = algorithm.shown.rpartition(":")
    if algorithm.file is None or not path.endswith(".py"):
        return algorithm.shown
    return f"{relative(algorithm.file, folder)}:{name}"


def relative(file: Path, folder: Path) -> str:
    """The file as a plan in `folder` writes it."""
    try:
        return Path(os.path.relpath(file, folder)).as_posix()
    except ValueError:  # another drive
        return Path(os.path.abspath(file)).as_posix()
