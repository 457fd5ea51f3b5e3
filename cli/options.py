"""Options that several verbs have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelArgument = Annotated[
    str | None, typer.Argument(metavar="MODEL", help="The model; may be left out if the plan says program:.", show_default=False)
]
PlanOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plan", "-p", metavar="PLAN", help="How it is computed; without one the default scheduler decides everything.", show_default=False
    ),
]
ExtentsOption = Annotated[
    list[str] | None, typer.Option("--extents", metavar="h=640,w=480", help="Fix symbolic extents.", show_default=False)
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="An input: .npy .npz .png .json, a number or a list.", show_default=False),
]
MethodOption = Annotated[
    str | None, typer.Option("--method", metavar="NAME", help="The method, where the model has several.", show_default=False)
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here instead of to stdout.", show_default=False)
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a file that fluorite did not write.")]
CacheOption = Annotated[bool, typer.Option("--no-cache", help="Compile again, whatever the build cache holds.")]
WeightsOption = Annotated[
    Path | None, typer.Option("--weights", metavar="FILE", help="Parameters, a safetensors file.", show_default=False)
]
SeedOption = Annotated[int, typer.Option("--seed", help="For initial parameters and random inputs.")]


def one(plans: list[str] | None) -> str | None:
    """The plan of a verb that takes one. Raises UsageError."""
    if plans and len(plans) > 1:
        from .refusals import usage

        raise usage(f"{len(plans)} plans", "only bench and plan diff compare plans", "merge them with  extends: [a.yaml, b.yaml]")
    return plans[0] if plans else None
