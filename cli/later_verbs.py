"""Verbs of the contract that this version does not build yet: they are known, and refused with a sentence."""

from __future__ import annotations

from typing import Annotated

import typer

from .command import Outcome, command
from .terminal import Terminal

VERBS = {
    "launch": "Start the ranks of a plan on this machine.",
    "import": "ONNX or torch.export to an algorithm file.",
    "report": "One HTML page about a model.",
    "simulate": "Predicted step time, memory and scaling.",
    "calibrate": "Measure this machine for the cost model.",
}
PLANS = {"auto": "A whole plan from the cost model.", "rebase": "Map the selectors of a plan after its algorithm changed."}


def add(home: typer.Typer, name: str, about: str, prefix: str = "") -> None:
    def refuse(terminal: Terminal, given: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> Outcome:
        from .refusals import not_built

        raise not_built(f"fluorite {prefix}{name}")

    refuse.__doc__ = f"(not built yet) {about}"
    command(home, name, prefix=prefix, lenient=True)(refuse)
