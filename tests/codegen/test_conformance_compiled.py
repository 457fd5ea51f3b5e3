"""The operators compiled, many in one graph, against the interpreter's meaning within the derived bound."""

from __future__ import annotations

import inspect
import random
import zlib
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from operator_case import Case, Seeded, Shape, values
from operator_cases import CASES


def drawn(case: Case, dtype: str) -> tuple[tuple[Shape, ...], dict[str, Any]]:
    """Shapes and options of a case that stay the same from run to run."""
    choices = Seeded(random.Random(zlib.crc32(f"{case.name} {dtype}".encode())))
    shapes = case.shapes(choices)
    return shapes, case.options(choices, shapes)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_operators_compiled_are_what_they_mean(dtype: str) -> None:
    cases = [c for c in CASES.values() if dtype in c.dtypes]
    inputs: dict[str, fl.Spec] = {}
    arrays: list[np.ndarray[Any, Any]] = []
    calls: list[tuple[Case, list[str], dict[str, Any]]] = []
    for k, case in enumerate(cases):
        shapes, options = drawn(case, dtype)
        names = [f"x{k}_{n}" for n in range(len(shapes))]
        inputs |= {n: fl.Spec(dtype, (None,) * len(s), s) for n, s in zip(names, shapes, strict=True)}
        arrays += [values(dtype, s, case.values, k + n) for n, s in enumerate(shapes)]
        calls.append((case, names, options))

    def everything(**given: Any) -> list[Any]:
        return [case.call(*(given[n] for n in names), **options) for case, names, options in calls]

    everything.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in inputs]
    )
    graph = fl.trace(everything, inputs=inputs)
    found = compare(graph, None, tuple(arrays), fl.compile(graph)(*arrays))
    wrong = [f"{c.name} {o}: {r.text()}" for (c, _, o), r in zip(calls, found, strict=True) if not r.ok]
    assert not wrong, "\n".join(wrong)
