"""One command line in this process, with what it printed."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from fluorite.cli.app import main

PHOTO = """
import fluorite as fl

Gray = fl.f32[fl.Tensor, "h", "w"]


@fl.function
def blur(image: Gray):
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x: image[y, x - 1] + image[y, x] + image[y, x + 1], name="rows"))
    return fl.stage(lambda y, x: (rows[y - 1, x] + rows[y, x] + rows[y + 1, x]) / 9, name="blur")


def sharpen(image: Gray, amount: fl.f32[fl.Tensor]):
    soft = blur(image)
    return {"sharp": fl.stage(lambda y, x: image[y, x] + amount[()] * (image[y, x] - soft[y, x]), name="sharp"), "soft": soft}


def helper(x):
    return x
"""
DOUBLE = """
import fluorite as fl


def double(x: fl.f32[fl.Tensor, "n"]):
    return fl.stage(lambda i: x[i] * 2, name="twice")
"""


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document of stdout."""
        found: dict[str, Any] = json.loads(self.out)
        assert set(found) == {"ok", "verb", "version", "errors", "result"}
        return found


def fluorite(*arguments: str) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    return Ran(code, out.getvalue(), err.getvalue())
