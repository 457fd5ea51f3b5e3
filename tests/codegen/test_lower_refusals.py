"""What lowering refuses, and where plans change how numbers are computed."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.errors import PlanError, Problem
from lowering import lowered, product


def refusals(model: Callable[..., Any], plan: str, **inputs: Any) -> tuple[Problem, ...]:
    with pytest.raises(PlanError) as caught:
        lowered(model, plan, **inputs)
    return caught.value.problems


def four(x: Any) -> Any:
    a = fl.stage(lambda i, j: x[i, j] + 1, name="a")
    b = fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * a[k, j]), name="b")
    c = fl.stage(lambda i, j: a[i, j] + b[i, j], name="c")
    return fl.stage(lambda i, j: c[i, j] * 2, name="d")


def best(x: Any) -> Any:
    return fl.stage(lambda i: fl.argmax(lambda p, q: x[i, p, q]), name="best")


FOUR, BEST = {"x": fl.f32("n", "n")}, {"x": fl.f32("n", 4, 8)}
ROOTS = "schedule:\n  'four/*': [compute_root]\n"


@pytest.mark.parametrize(
    ("model", "inputs", "plan", "line", "code", "says"),
    [
        (four, FOUR, ROOTS + "  four/a: [{compute_at: {stage: b, axis: i}}]\n", 3, "P205", "c reads it in another kernel"),
        (four, FOUR, ROOTS + "  four/a: [{compute_at: {stage: b, axis: i}}]\nfusion: {groups: [[b, c]]}\n", 3, "P204", "computed outside that loop"),
        (
            four,
            FOUR,
            ROOTS + "  four/c: [{compute_at: {stage: d, axis: j_inner}}]\n  four/d: [{vectorize: {axis: j, width: 4}}]\n",
            3,
            "P204",
            "legal: i, j_outer",
        ),
        (
            four,
            FOUR,
            ROOTS + "  four/c: [{compute_at: {stage: d, axis: i}}, {parallel: j}]\n  four/d: [{parallel: i}]\n",
            3,
            "P212",
            "i of d, which is parallel already",
        ),
        (four, FOUR, ROOTS + "  four/c: [{compute_at: {stage: d, axis: i}}, {store_in: registers}]\n", 3, "P213", "a constant number"),
        (
            four,
            {"x": fl.f32(20, 20)},
            ROOTS + "  four/c: [{compute_at: {stage: d, axis: i}}, {split: {axis: j, factors: [2, 4], into: [p, q]}}]\n",
            3,
            "P207",
            "2 x 4 = 8 iterations",
        ),
        (four, FOUR, ROOTS + "  four/c: [{compute_at: {stage: d, axis: i}}, {vectorize: j}]\n", 3, "P211", "known only when the kernel runs"),
        (four, {"x": fl.f32(8, 8)}, ROOTS + "  four/d: [{vectorize: i}, {parallel: j}]\n", 3, "P215", "j, inside i, is parallel"),
        (four, FOUR, ROOTS + "  four/d: [{split: {axis: i, factor: 4}}, {vectorize: i_inner}]\n", 3, "P215", "j, inside i_inner, has n iterations"),
        (best, BEST, "schedule:\n  best: [{reorder: [p, i, q]}]\n", 2, "P214", "loop i lies inside a loop of argmax"),
        (best, BEST, "schedule:\n  best: [{vectorize: {axis: i, width: 4}}]\n", 2, "P214", "loop i_inner is vectorised"),
        (best, BEST, "schedule:\n  best: [{tile: {p: 2, q: 2}}]\n", 2, "P214", "order of p, q"),
        (best, BEST, "schedule:\n  best:\n    - split: {axis: q, factors: [~, 2, 4], into: [a, b, c]}\n    - fuse: [b, c]\n", 3, "P214", "order of p, q"),
        (
            product,
            {"x": fl.f32("n", 32), "w": fl.f32(32, "m")},
            "numerics: {allow: exact}\nschedule:\n  product: [{rfactor: {axis: k, factor: 4}}]\n",
            3,
            "P301",
            "the plan allows exact",
        ),
        (
            product,
            {"x": fl.f32("n", 32), "w": fl.f32(32, "m")},
            "numerics: {allow: exact}\nschedule:\n  product: [{split: {axis: k, factor: 4}}, {reorder: [k_inner, k_outer]}]\n",
            3,
            "P301",
            "reorder adds the parts of product up in another order",
        ),
    ],
)  # fmt: skip
def test_refusals(model: Callable[..., Any], inputs: dict[str, Any], plan: str, line: int, code: str, says: str) -> None:
    (problem,) = refusals(model, plan, **inputs)
    assert problem.code == code, problem.text()
    assert says in problem.text() and problem.file == "p.yaml" and problem.line == line, problem.text()


def test_integers_may_be_added_in_any_order() -> None:
    plan = "numerics: {allow: exact}\nschedule: {product: [{rfactor: {axis: k, factor: 4}}]}"
    assert lowered(product, plan, x=fl.i32("n", 32), w=fl.i32(32, "m")).numerics == "exact"
    assert lowered(product, plan.replace("exact", "reassociates"), x=fl.f32("n", 32), w=fl.f32(32, "m")).numerics == "reassociates"


@pytest.mark.parametrize(
    ("directives", "why"),
    [
        ("compute_inline, {split: {axis: i, factor: 4}}", "no loops and no memory of its own"),
        ("{store_in: stack}, compute_inline", "no loops and no memory of its own"),
        ("compute_inline, stream", "no loops and no memory of its own"),
        ("compute_inline, compute_root", "compute_inline says it already"),
        ("compute_root, {compute_at: {stage: d, axis: i}}", "compute_root says it already"),
        ("{compute_at: {stage: d, axis: i}}, {compute_at: {stage: d, axis: j}}", "it is said twice"),
        ("{store_in: stack}, {store_in: registers}", "it is said twice"),
        ("stream, stream", "it is said twice"),
    ],
)
def test_directives_that_leave_one_another_no_room(directives: str, why: str) -> None:
    (problem,) = refusals(four, f"schedule:\n  four/c: [{directives}]\n", **FOUR)
    assert (problem.code, problem.line) == ("P219", 2) and why in problem.why, problem
