"""What every verb has in common: its options, its streams, its errors and its exit code."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

import typer

from .ending import INTERRUPTED
from .terminal import Terminal

DONE, REFUSED, USAGE, BUG = 0, 1, 2, 70
_COMMON: dict[str, tuple[Any, Any]] = {
    "as_json": (Annotated[bool, typer.Option("--json", help="One JSON document on stdout, also on failure.")], False),
    "quiet": (Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks on stderr.")], False),
    "verbose": (Annotated[bool, typer.Option("--verbose", "-v", help="More on stderr; the trace of an error in your file.")], False),
    "color": (Annotated[str, typer.Option(metavar="auto|always|never", help="Colour on stderr. NO_COLOR counts too.")], "auto"),
    "device": (Annotated[str, typer.Option(metavar="cpu|cuda:0", help="The device to run on.")], "cpu"),
    "bind": (Annotated[list[str] | None, typer.Option(metavar="NAME=DEVICE", help="A device of the plan, and the real one.")], None),
}


@dataclass(frozen=True)
class Outcome:
    """The answer of a verb: `value` for --json, `text` for people. A code other than 0 is a difference found, not an error. `document` is
    the whole answer for --json, where another process has made it."""

    value: Any
    text: str = ""
    code: int = DONE
    document: str = ""


def command(
    app: typer.Typer, name: str, failed: str = "", prefix: str = "", lenient: bool = False
) -> Callable[[Callable[..., Outcome]], Callable[..., Outcome]]:
    """Makes a function of (terminal, options) a verb. `failed` follows its errors ("Nothing was built."); `lenient` takes any option."""
    settings = {"ignore_unknown_options": True, "allow_extra_args": True} if lenient else None

    def register(verb: Callable[..., Outcome]) -> Callable[..., Outcome]:
        hints = get_type_hints(verb, include_extras=True)
        own = [p.replace(annotation=hints[n]) for n, p in list(inspect.signature(verb).parameters.items())[1:]]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        common = [inspect.Parameter(n, kind, default=default, annotation=hint) for n, (hint, default) in _COMMON.items()]

        def call(*, as_json: bool, quiet: bool, verbose: bool, color: str, device: str, bind: list[str] | None, **given: Any) -> int:
            terminal = Terminal(prefix + name, as_json, quiet, verbose, color)

            def run() -> Outcome:
                refuse_others(color, device, bind)
                return verb(terminal, **given)

            return carry_out(terminal, run, failed)

        call.__signature__ = inspect.Signature([*own, *common])  # type: ignore[attr-defined]
        call.__annotations__ = {p.name: p.annotation for p in (*own, *common)}
        call.__doc__ = verb.__doc__
        first = (verb.__doc__ or "").strip().split("\n")[0]
        app.command(name, context_settings=settings, short_help=first)(call)
        return verb

    return register


def refuse_others(color: str, device: str, bind: list[str] | None) -> None:
    """What every verb accepts and this build cannot do."""
    from .refusals import not_built, usage

    if color not in ("auto", "always", "never"):
        raise usage(f"--color {color}", "", "auto", "always", "never")
    if device != "cpu":
        raise not_built(f"running on {device}", "--device cpu")
    if bind:
        raise not_built("--bind", "a plan without a devices section")


def carry_out(terminal: Terminal, run: Callable[[], Outcome], failed: str = "") -> int:
    """Run a verb, say what came of it, and return the exit code."""
    from fluorite.algo.errors import FluoriteError

    try:
        with terminal.reserved():
            outcome = run()
        if terminal.json and outcome.document:
            terminal.result(outcome.document.rstrip("\n"))
        elif terminal.json:
            terminal.document(outcome.code == DONE, (), outcome.value)
        elif outcome.text:
            terminal.result(outcome.text)
        return outcome.code
    except FluoriteError as error:
        return _refused(terminal, error, failed)
    except BrokenPipeError:  # the reader, such as head, has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except KeyboardInterrupt:
        return interrupted(terminal)
    except MemoryError as error:
        return _refused(terminal, _no_memory(error), failed)
    except Exception as error:
        return _bug(terminal, error)


def _no_memory(error: MemoryError) -> Any:
    from fluorite.algo.errors import Problem, RunError

    return RunError(Problem("R109", "run", asked="there is not enough memory", why=str(error)))


def _refused(terminal: Terminal, error: Any, failed: str) -> int:
    from fluorite.algo.errors import FluoriteError

    from .refusals import UsageError

    is_usage = isinstance(error, UsageError)
    terminal.error(FluoriteError.text(error, "" if is_usage else failed))
    if terminal.verbose and error.__cause__ is not None:
        terminal.error("".join(traceback.format_exception(error.__cause__)))
    if terminal.json:
        terminal.document(False, [p.as_dict() for p in error.problems], None)
    return USAGE if is_usage else REFUSED


def interrupted(terminal: Terminal) -> int:
    from fluorite.algo.errors import Problem

    terminal.error("interrupted")
    if terminal.json:
        terminal.document(False, [Problem("R499", "run", asked="interrupted").as_dict()], None)
    return INTERRUPTED


def _bug(terminal: Terminal, error: Exception) -> int:
    from . import crash

    found = crash.problem(error, crash.report(error, sys.argv[1:]))
    terminal.error(found.text())
    if terminal.verbose:
        terminal.error("".join(traceback.format_exception(error)))
    if terminal.json:
        terminal.document(False, [found.as_dict()], None)
    return BUG


__all__ = ["BUG", "DONE", "INTERRUPTED", "REFUSED", "USAGE", "Outcome", "carry_out", "command", "interrupted"]
