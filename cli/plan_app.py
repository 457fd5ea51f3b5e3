"""The verbs below `fluorite plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from . import later_verbs
from .command import Outcome, command
from .options import ExtentsOption, ForceOption, OutputOption
from .terminal import Terminal

plan_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@command(plan_app, "init", prefix="plan ")
def plan_init(
    terminal: Terminal, model: Annotated[str, typer.Argument(metavar="MODEL")], output: OutputOption = None, force: ForceOption = False
) -> Outcome:
    """A plan to start from: every stage with its axes, extents and kind."""
    from .verbs.plan import init

    return init(terminal, model, output, force)


@command(plan_app, "resolve", prefix="plan ")
def plan_resolve(
    terminal: Terminal,
    plan: Annotated[str, typer.Argument(metavar="PLAN")],
    holes: Annotated[bool, typer.Option("--holes", help="Leave holes open instead of giving them their first alternatives.")] = False,
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Show what recompute: auto chooses for it.", show_default=False)
    ] = None,
    extents: ExtentsOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> Outcome:
    """The plan with its parents merged in and its holes filled, each value with the file and line that it comes from."""
    from .verbs.plan import resolve

    return resolve(terminal, plan, holes, model, extents, output, force)


@command(plan_app, "diff", prefix="plan ")
def plan_diff(
    terminal: Terminal,
    old: Annotated[str, typer.Argument(metavar="A")],
    new: Annotated[str, typer.Argument(metavar="B")],
    model: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="Say also what changes in bytes and in numerics.", show_default=False)
    ] = None,
    extents: ExtentsOption = None,
) -> Outcome:
    """What differs between two plans, by path, and what that makes of a model. Exit code 0 if nothing does, 1 otherwise."""
    from .verbs.plan import diff

    return diff(terminal, old, new, model, extents)


@command(plan_app, "schema", prefix="plan ")
def plan_schema(terminal: Terminal, output: OutputOption = None, force: ForceOption = False) -> Outcome:
    """The JSON schema of a plan, for editors."""
    from .verbs.plan import schema

    return schema(terminal, output, force)


@command(plan_app, "directives", prefix="plan ")
def plan_directives(
    terminal: Terminal, name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False)] = None
) -> Outcome:
    """Every directive in a line; or one with its fields, and a nest before and after; or the section precision or memory."""
    from .verbs.plan import directives

    return directives(terminal, name)


for _name, _about in later_verbs.PLANS.items():
    later_verbs.add(plan_app, _name, _about, "plan ")
