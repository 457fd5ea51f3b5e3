"""Counts of operations, bytes and reduction lengths."""

from __future__ import annotations

from typing import Any

import pytest
from fluorite.algo.cost import FUNCTION_FLOPS, Cost, cost, costs, total
from fluorite.algo.expr import cast, unary, where
from fluorite.algo.extent import evaluate, symbol
from fluorite.algo.program import trace
from fluorite.algo.reducing import reduce
from fluorite.algo.tensor import Bounded
from fluorite.algo.trace import stage
from fluorite.algo.types import f32, i32, u8


def only(fn: Any, **inputs: Any) -> Cost:
    graph = trace(fn, inputs=inputs)
    return cost(graph, graph.stages[-1])


def test_a_matrix_product() -> None:
    c = only(lambda a, b: stage(lambda i, j: reduce("sum", lambda k: a[i, k] * b[k, j])), a=f32("m", "n"), b=f32("n", "p"))
    m, n, p = map(symbol, "mnp")
    assert (c.points, c.iterations, c.flops, c.reduction_length) == (m * p, m * n * p, m * n * p * 2, n)
    assert (c.loads, c.bytes_read, c.bytes_written, c.bytes) == (m * n * p * 2, (m * n + n * p) * 4, m * p * 4, (m * n + n * p + m * p) * 4)


@pytest.mark.parametrize(
    ("read", "fn"),
    [
        (10 * 20, lambda x: stage(lambda y, i: Bounded(x, "edge")[y, i - 1] + Bounded(x, "edge")[y, i + 1])),
        (10 * 20, lambda x: stage(lambda y, i: x[y, i] + x[y, i + 3])),
        (4 * 6, lambda x: stage(lambda y, i: x[y, i] + x[y + 1, i + 2], extents={"y": 3, "i": 4})),
        (20, lambda x: stage(lambda i: x[3, i])),
        (1, lambda x: stage(lambda i: x[3, 4], extents={"i": 100})),
        (7 * 20, lambda x: stage(lambda y, i: x[y * 2, i], extents={"y": 4})),
        (6, lambda x: stage(lambda i: x[cast(x[0, i], "int32"), 0], extents={"i": 3})),
    ],
)
def test_bytes_of_what_is_spanned(read: int, fn: Any) -> None:
    assert only(fn, x=f32(10, 20)).bytes_read == read * 4


def test_kinds_of_operations() -> None:
    c = only(lambda x: stage(lambda i: unary("exp", x[i]) * 2 + 1), x=f32(10))
    assert (c.flops, c.integer_ops) == (10 * (FUNCTION_FLOPS + 2), 0)
    c = only(lambda x: stage(lambda i: x[i] * 3 + i), x=i32(10))
    assert (c.flops, c.integer_ops) == (0, 20)
    c = only(lambda x: stage(lambda i: where((i > 2) & (i < 5), x[i], 0)), x=u8(10))
    assert (c.flops, c.integer_ops, c.bytes_read, c.bytes_written) == (0, 0, 10, 10)
    c = only(lambda x: stage(lambda i: (x[i] + 1) * (x[i] + 1)), x=f32(10))
    assert (c.flops, c.loads) == (20, 10), "a shared subexpression is computed once"


def test_totals() -> None:
    graph = trace(lambda x: stage(lambda i: x[i] + reduce("sum", lambda k: x[k])), inputs={"x": f32("n")})
    parts = costs(graph)
    assert set(parts) == {s.id for s in graph.stages}
    whole = total(parts.values())
    assert evaluate(whole.flops, {"n": 7}) == 7 + 7 and whole.reduction_length == symbol("n")
    assert total([]) == Cost()
