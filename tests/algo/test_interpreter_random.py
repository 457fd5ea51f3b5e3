"""Random small stages against loops in plain Python, whole and cut into tiny boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fluorite.algo.graph import Graph
from fluorite.algo.interpreter import evaluate_stages, method_symbols, stages
from hypothesis import HealthCheck, given, settings
from random_stages import Call, random_call
from scalar_reference import evaluate_stage

RELAXED = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=150)


def agrees(graph: Graph, inputs: tuple[np.ndarray[Any, Any], ...]) -> None:
    held = evaluate_stages(graph, inputs)
    symbols = method_symbols(graph, None, inputs)
    for s in graph.stages:
        expected = evaluate_stage(graph, s, held, symbols)
        found = held[s.id]
        assert found.dtype == expected.dtype and found.shape == expected.shape
        if s.reduction is not None and s.reduction.kind in ("sum", "prod") and found.dtype.kind == "f":
            size = np.abs(np.where(np.isfinite(expected), expected, 0)).max(initial=1)
            with np.errstate(all="ignore"):
                close = np.isclose(found, expected, rtol=1e-4, atol=1e-4 * size, equal_nan=True)
            overflows = any(np.abs(a.astype(np.float64)).max(initial=0) > 1e6 for a in inputs)
            assert (close | (overflows & ~np.isfinite(found))).all() or (overflows and size > 1e12), s.text()
        else:
            np.testing.assert_array_equal(found, expected, err_msg=s.text())


@RELAXED
@given(random_call())
def test_random_stages(call: Call) -> None:
    agrees(*call)


@RELAXED
@given(random_call(dtypes=("float32", "float64"), product=True))
def test_random_sums_of_products(call: Call) -> None:
    agrees(*call)


@RELAXED
@given(random_call())
def test_random_stages_in_tiny_boxes(call: Call) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "SLAB", 3)
        agrees(*call)


@RELAXED
@given(random_call(dtypes=("float32", "float64"), product=True))
def test_random_products_in_tiny_boxes(call: Call) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "SLAB", 3)
        agrees(*call)


def test_the_reference_tells_a_wrong_value() -> None:
    """The comparison above can fail."""
    from fluorite.algo.program import trace
    from fluorite.algo.trace import stage
    from fluorite.algo.types import i8

    graph = trace(lambda x: stage(lambda i: x[i] + 1), inputs={"x": i8("n")})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(stages.OPERATORS, "add", np.subtract)
        with pytest.raises(AssertionError):
            agrees(graph, (np.array([127, 3], np.int8),))
    agrees(graph, (np.array([127, 3], np.int8),))
