"""The verbs and their options. What each does is in its own file, imported when it is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from . import later_verbs
from .command import DONE, REFUSED, USAGE, Outcome, command, interrupted
from .options import (
    CacheOption,
    ExtentsOption,
    ForceOption,
    MethodOption,
    ModelArgument,
    OutputOption,
    PlanOption,
    SeedOption,
    SetOption,
    WeightsOption,
    one,
)  # fmt: skip
from .plan_app import plan_app
from .terminal import Terminal

app = typer.Typer(
    name="fluorite",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""A compiler for whole models: an algorithm, a plan, a tuned module.

MODEL is file.py:Name, package.module:Name, file.py if it holds one model, or the folder of a built model (run, bench, explain).
Running a model file executes it: it is Python. A plan may name such a file (program:), and it is said on stderr which one is run.

PLAN is file.yaml, fluorite:PRESET, or file.py:NAME (an ExecutionPlan, or a function that returns one).

Exit codes: 0 done, 1 refused or different, 2 wrong usage, 70 a bug of fluorite, 130 interrupted
(143 by SIGTERM, 129 by SIGHUP).""",
)
app.add_typer(plan_app, name="plan", help="Look at plans: init, resolve, diff, schema, directives.")


@command(app, "check", "Nothing was built.")
def check(
    terminal: Terminal,
    model: ModelArgument = None,
    plan: PlanOption = None,
    extents: ExtentsOption = None,
    set_: SetOption = None,
    method: MethodOption = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only whether the plan is legal; nothing is run.")] = False,
    gradients: Annotated[bool, typer.Option("--gradients/--no-gradients", help="Derivatives too.")] = True,
    seed: SeedOption = 0,
    bisect: Annotated[bool, typer.Option("--bisect", help="Not built yet.")] = False,
    against: Annotated[str | None, typer.Option("--against", metavar="FILE", help="Not built yet.", show_default=False)] = None,
) -> Outcome:
    """Is the plan legal (all problems at once), and does what is compiled compute what the algorithm says?"""
    from .verbs.check import check as run

    return run(terminal, model, one(plan), extents, set_, method, quick, gradients, seed, bisect, against)


@command(app, "show")
def show(
    terminal: Terminal,
    model: ModelArgument = None,
    plan: PlanOption = None,
    extents: ExtentsOption = None,
    method: MethodOption = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="LEVEL",
            help="graph, plan, loops, lowered, source (LLVM IR or GPU code), asm or ptx; without one the loops. After a pass: graph, or "
            "else lowered, source or asm.",
            show_default=False,
        ),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option("--select", metavar="SELECTOR", help="Only these stages, and the kernels that they are in.", show_default=False),
    ] = None,
    output: OutputOption = None,
    force: ForceOption = False,
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            metavar="PASS",
            help="After one pass: trace, precision, specialise, memory, rewrites, default, inline, loops, partition, allocation, masks, "
            "common, phases, sharing.",
            show_default=False,
        ),
    ] = None,
    verify_each: Annotated[
        bool, typer.Option("--verify-each", help="Run the interpreter between passes and name the first that is wrong.")
    ] = False,
    role: Annotated[str | None, typer.Option("--role", help="Not built yet.", show_default=False)] = None,
    rank: Annotated[int | None, typer.Option("--rank", help="Not built yet.", show_default=False)] = None,
) -> Outcome:
    """Print the model at one level of its compilation."""
    from .verbs.show import show as run

    later = {"--role": role, "--rank": rank}
    return run(terminal, model, one(plan), extents, method, at, select, output, force, later, after, verify_each)


@command(app, "explain")
def explain(
    terminal: Terminal,
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL|CODE", help="A model, a built model, or the code of an error such as P203.", show_default=False),
    ] = None,
    plan: PlanOption = None,
    extents: ExtentsOption = None,
    method: MethodOption = None,
) -> Outcome:
    """Why it is as fast as it is: per kernel the stages, operations, bytes, copies and the predicted bound. Or what an error code means."""
    from .verbs.explain import explain as run

    return run(terminal, model, one(plan), extents, method)


@command(app, "tune", "Nothing was written.")
def tune(
    terminal: Terminal,
    model: ModelArgument = None,
    plan: PlanOption = None,
    extents: ExtentsOption = None,
    method: MethodOption = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The tuned plan (required); its journal lies beside it.", show_default=False),
    ] = None,
    trials: Annotated[
        int | None, typer.Option("--trials", min=1, help="How many candidates at most; as the plan says, else 200.", show_default=False)
    ] = None,
    minutes: Annotated[float | None, typer.Option("--minutes", min=0, help="How long at most.", show_default=False)] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the journal of a run that was cut short.")] = False,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--inputs", metavar="FILE", help="Inputs to measure with: an .npz file or a folder of .npy files.", show_default=False
        ),
    ] = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
    build_only: Annotated[Path | None, typer.Option("--build-only", metavar="DIR", help="Not built yet.", show_default=False)] = None,
    measure: Annotated[Path | None, typer.Option("--measure", metavar="DIR", help="Not built yet.", show_default=False)] = None,
) -> Outcome:
    """Fill what the plan leaves open by measurement, and write the plan that comes out."""
    from .verbs.tune import tune as run

    later = {"--build-only": build_only, "--measure": measure}
    return run(terminal, model, one(plan), extents, method, output, trials, minutes, resume, inputs, seed, force, later)


@command(app, "build", "Nothing was built.")
def build(
    terminal: Terminal,
    model: ModelArgument = None,
    plan: PlanOption = None,
    extents: ExtentsOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="The folder to write (required); its name is the name to import.", show_default=False
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The name to import, where it is not the folder's: then DIR/NAME is written.", show_default=False),
    ] = None,
    weights: WeightsOption = None,
    seed: SeedOption = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a plan with open holes.")] = False,
    force: ForceOption = False,
    no_cache: CacheOption = False,
    wheel: Annotated[bool, typer.Option("--wheel", help="Pack the folder into a wheel beside it, for pip install.")] = False,
) -> Outcome:
    """Write the model as a Python package to import. Prints its path."""
    from .verbs.build import build as run

    return run(terminal, model, one(plan), extents, output, name, weights, seed, strict, force, not no_cache, wheel)


@command(app, "run", "Nothing was run.")
def run(
    terminal: Terminal,
    model: ModelArgument = None,
    plan: PlanOption = None,
    extents: ExtentsOption = None,
    set_: SetOption = None,
    method: MethodOption = None,
    output: Annotated[
        list[str] | None, typer.Option("--output", "-o", metavar="[NAME=]FILE", help="A result: .npy .npz .png .json.", show_default=False)
    ] = None,
    weights: WeightsOption = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
    no_cache: CacheOption = False,
    trace: Annotated[Path | None, typer.Option("--trace", metavar="FILE", help="Not built yet.", show_default=False)] = None,
    distributed: Annotated[str | None, typer.Option("--distributed", metavar="METHOD", help="Not built yet.", show_default=False)] = None,
) -> Outcome:
    """Call one method once, and print its results in short."""
    from .verbs.run import run as call

    later = {"--trace": trace, "--distributed": distributed}
    return call(terminal, model, one(plan), extents, set_, method, output, weights, seed, force, not no_cache, later)


@command(app, "bench", "Nothing was measured.")
def bench(
    terminal: Terminal,
    model: ModelArgument = None,
    plan: Annotated[
        list[str] | None,
        typer.Option(
            "--plan", "-p", metavar="PLAN", help="May be given several times; the first is what ratios refer to.", show_default=False
        ),
    ] = None,
    extents: ExtentsOption = None,
    set_: SetOption = None,
    method: MethodOption = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How many times each plan has its turn.")] = 15,
    weights: WeightsOption = None,
    seed: SeedOption = 0,
    output: OutputOption = None,
    force: ForceOption = False,
    no_cache: CacheOption = False,
    peer: Annotated[str | None, typer.Option("--peer", metavar="torch,ort", help="Not built yet.", show_default=False)] = None,
) -> Outcome:
    """Time the model under one or several plans, turn by turn, and compare their results."""
    from .verbs.bench import bench as run

    return run(terminal, model, plan, extents, set_, method, rounds, weights, seed, output, force, not no_cache, peer)


@command(app, "train")
def train(
    terminal: Terminal,
    model: ModelArgument = None,
    plan: PlanOption = None,
    extents: ExtentsOption = None,
    method: Annotated[
        str | None,
        typer.Option("--method", metavar="NAME", help="The method; else the only one that reads and changes state.", show_default=False),
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", min=1, help="How many passes in all.", show_default=False)] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="How many calls in all.", show_default=False)] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", min=1, help="Instead of the Program's.", show_default=False)] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", metavar="NAME=FILE", help="What a reader reads instead: a file or folder like its own.", show_default=False),
    ] = None,
    every: Annotated[
        int | None,
        typer.Option("--every", min=1, help="Report and checkpoint every so many calls; else after each pass.", show_default=False),
    ] = None,
    evaluate: Annotated[
        str | None, typer.Option("--evaluate", metavar="METHOD", help="One pass of this method with each report.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--checkpoint", "-o", metavar="DIR", help="Checkpoints and metrics.csv go here.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the last checkpoint, if there is one.")] = False,
    keep: Annotated[int, typer.Option("--keep", min=1, help="How many checkpoints to keep.")] = 1,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Metrics go here.", show_default=False)] = None,
    tensorboard: Annotated[
        Path | None, typer.Option("--tensorboard", metavar="DIR", help="Metrics for TensorBoard.", show_default=False)
    ] = None,
    weights: WeightsOption = None,
    seed: SeedOption = 0,
    force: ForceOption = False,
    no_cache: CacheOption = False,
    restarts: Annotated[
        int | None, typer.Option("--restarts", min=0, help="Go on so many times when the process dies.", show_default=False)
    ] = None,
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> Outcome:
    """Call one method over and over on what it reads. Ctrl-C stops after the call under way, and leaves a checkpoint."""
    from .verbs.train import Request
    from .verbs.train import train as run

    given = Request(
        method, epochs, steps, every, evaluate, batch_size, data or [], out, resume, keep, csv, tensorboard, weights, seed, force,
        not no_cache, restarts, supervised,
    )  # fmt: skip
    return run(terminal, model, one(plan), extents, given)


for _name, _about in later_verbs.VERBS.items():
    later_verbs.add(app, _name, _about)


def _version(asked: bool) -> None:
    if asked:
        import fluorite

        print(f"fluorite {fluorite.__version__}")
        raise typer.Exit


@app.callback()
def _root(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False) -> None:
    pass


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    words = [a for a in given if not a.startswith("-")]
    terminal = Terminal(" ".join(words[:2] if words[:1] == ["plan"] else words[:1]), "--json" in given)
    try:
        return int(typer.main.get_command(app).main(given or ["--help"], prog_name="fluorite", standalone_mode=False) or DONE)
    except typer.Abort:
        return interrupted(terminal)
    except KeyboardInterrupt:
        return interrupted(terminal)
    except typer.Exit as error:
        return error.exit_code
    except _REFUSAL as error:
        return _misused(terminal, error)


# typer carries its own copy of click, or needs the package, depending on its version
_REFUSAL: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def _misused(terminal: Terminal, error: Any) -> int:
    from fluorite.algo.errors import Problem

    context = getattr(error, "ctx", None)
    found = Problem("R400", "usage", asked=error.format_message(), try_=(f"{context.command_path} --help",) if context else ())
    terminal.error(found.text())
    if terminal.json:
        terminal.document(False, [found.as_dict()], None)
    return USAGE if isinstance(error, typer.BadParameter.__mro__[1]) else REFUSED


__all__ = ["app", "main"]
