"""Every operator against NumPy: types, ranks 0 to 5, broadcasting, no elements, extents of 1 and primes, axes and steps of either sign.

What NumPy gives has to lie within the bound that `numerics` derives for the operator's own stages, and so has what the interpreter gives.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import fluorite as fl
import pytest
from fluorite.algo import ops
from fluorite.algo.numerics import compare
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from operator_case import NAMES, algorithm, values, wanted
from operator_cases import CASES, TRIED_ELSEWHERE
from operator_names import ATTENTION, NETWORKS
from operator_running import declared


class Drawn:
    """Choices of hypothesis."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def of(self, options: Any) -> Any:
        return options[self.data.draw(st.integers(0, len(options) - 1))]

    def number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))


@pytest.mark.parametrize("name", CASES)
@given(st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_operator_is_numpys(name: str, data: st.DataObject) -> None:
    case, c = CASES[name], Drawn(data)
    dtype, seed = c.of(case.dtypes), c.number(0, 99)
    shapes = case.shapes(c)
    options = case.options(c, shapes)
    arrays = [values(dtype, s, case.values, seed + k) for k, s in enumerate(shapes)]
    inputs = {n: declared(a) for n, a in zip(NAMES, arrays, strict=False)}
    graph = fl.trace(algorithm(case, len(arrays), options), inputs=inputs)
    got = graph.run(*arrays)
    want = wanted(case, arrays, options, got.dtype.name)
    assert got.shape == want.shape
    for found in (want, got):
        (compared,) = compare(graph, None, tuple(arrays), found)
        assert compared.ok, f"{compared.text()}\n{dtype} {shapes} {options}\n{arrays}\ngot {got!r}\nwant {want!r}"


def test_every_operator_is_tried() -> None:
    """By a case here, or by name in a file of this folder that has its formula."""
    texts = [path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    elsewhere = {name for text in texts for name in re.findall(r'(?:\bfl\.|")(\w+)', text)}
    tried = {n.split()[0] for n in CASES} - {"getitem"} | {*TRIED_ELSEWHERE, *ops.ALIASES, *ATTENTION, *NETWORKS} | elsewhere
    assert sorted(set(ops.__all__) - tried) == []
