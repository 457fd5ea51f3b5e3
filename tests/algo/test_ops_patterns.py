"""einops patterns and einsum: what they make, and what they say about mistakes. Their values against NumPy: test_conformance too."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.ops.contraction_order import order
from operator_running import graph_of, near, numbers, refusal, run, same

X = numbers(2, 12, 5)

PATTERNS: list[tuple[Any, Any]] = [
    (lambda x: fl.rearrange(x, "b (h p) c -> b h p c", p=4), X.reshape(2, 3, 4, 5)),
    (lambda x: fl.rearrange(x, "b (h p) c -> b h p c", h=3), X.reshape(2, 3, 4, 5)),
    (lambda x: fl.rearrange(x, "b (h p) ... -> (p b) ... h", p=4), X.reshape(2, 3, 4, 5).transpose(2, 0, 3, 1).reshape(8, 5, 3)),
    (lambda x: fl.rearrange(x, "... c -> c (...)"), X.transpose(2, 0, 1).reshape(5, 24)),
    (lambda x: fl.rearrange(x, "b h c -> 1 (b h c) 1"), X.reshape(1, -1, 1)),
    (lambda x: fl.rearrange(x, "b (h p 1) c -> c b h () p", p=2), X.reshape(2, 6, 2, 5).transpose(3, 0, 1, 2)[:, :, :, None]),
    (lambda x: fl.rearrange(x, "b h c -> b h c"), X),
    (lambda x: fl.repeat(x, "b h c -> b (h r) 1 c", r=2), X.repeat(2, 1)[:, :, None]),
    (lambda x: fl.repeat(x, "... -> r ...", r=3), np.broadcast_to(X, (3, 2, 12, 5))),
    (lambda x: fl.repeat(x, "b h c -> (r b) h c", r=2), np.concatenate([X, X])),
    (lambda x: fl.reduce_(x, "b (h p) c -> b h c", "max", p=4), X.reshape(2, 3, 4, 5).max(2)),
    (lambda x: fl.reduce_(x, "b (h p) c -> c h", "min", p=4), X.reshape(2, 3, 4, 5).min((0, 2)).T),
    (lambda x: fl.reduce_(x, "... -> ", "max"), X.max()),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(PATTERNS)))
def test_patterns(k: int) -> None:
    fn, want = PATTERNS[k]
    same(run(fn, X), want)


def test_patterns_reduce_with_the_usual_reductions() -> None:
    near(run(lambda x: fl.reduce_(x, "b h c -> b c", "mean"), X), X.mean(1))
    near(run(lambda x: fl.reduce_(x, "b h c -> b", "sum"), X), X.sum((1, 2)), 1e-5)
    same(run(lambda x: fl.reduce_(x > 0, "b h c -> b", "any"), X), (X > 0).any((1, 2)))


def test_patterns_are_views_whose_axes_bear_their_names() -> None:
    graph = graph_of(lambda x: fl.exp(fl.rearrange(x, "b (h p) c -> h b p c", p=4)), X)
    (stage,) = graph.stages
    assert stage.axis_names == ("h", "b", "p", "c")
    free = fl.trace(lambda x: fl.exp(fl.rearrange(x, "n (h d) -> h n d", h=4)), inputs={"x": fl.f32("n", 20)})
    assert [str(e) for e in free.stages[0].extents] == ["4", "n", "5"]


MISTAKES: list[tuple[Any, str]] = [
    (lambda x: fl.rearrange(x, "b h c -> b h"), "c stands on its left side alone"),
    (lambda x: fl.rearrange(x, "b h c -> b h c d"), "d stands on its right side alone"),
    (lambda x: fl.rearrange(x, "b (h p) c -> b h p c"), "can be split in many ways"),
    (lambda x: fl.rearrange(x, "b (h p) c -> b h p c", p=5), "not a multiple of 5"),
    (lambda x: fl.rearrange(x, "b (h p) c -> b h p c", h=5, p=2), "which is not 5 * 2"),
    (lambda x: fl.rearrange(x, "b h 1 -> b h"), "extent 5"),
    (lambda x: fl.rearrange(x, "b (h c -> b h c"), "a ( has no )"),
    (lambda x: fl.rearrange(x, "b h) c -> b h c"), "parentheses"),
    (lambda x: fl.rearrange(x, "b h c"), "two sides"),
    (lambda x: fl.rearrange(x, "b c -> c b"), "has 2 axes, and x [2, 12, 5] has 3"),
    (lambda x: fl.rearrange(x, "b b c -> b c"), "b stands twice"),
    (lambda x: fl.rearrange(x, "b h-c -> b h"), "is not an axis"),
    (lambda x: fl.rearrange(x, "b h c -> b h c ..."), "needs ... on the left"),
    (lambda x: fl.rearrange(x, "(b ...) c -> b c"), "outside parentheses"),
    (lambda x: fl.rearrange(x, "b h c -> c h b", q=3), "no axis q"),
    (lambda x: fl.repeat(x, "b h c -> b h c r"), "its length is not given"),
    (lambda x: fl.repeat(x, "b h c -> b h", r=2), "no axis r"),
    (lambda x: fl.repeat(x, 2, 0, r=2), "lengths belong to a pattern"),
    (lambda x: fl.reduce_(x, "b h c -> b", "median"), "no such reduction"),
    (lambda x: fl.einsum("ij->i", x), "has 3 axes, and its subscripts 'ij' name 2"),
    (lambda x: fl.einsum("ijk->ix", x), "no operand has the label x"),
    (lambda x: fl.einsum("ijk->ii", x), "i stands twice in the result"),
    (lambda x: fl.einsum("ijk,k->i", x), "speaks of 2 operands, and 1 are given"),
    (lambda x: fl.einsum("iik->i", x), "i is 2 and 12"),
    (lambda x: fl.einsum("i...->i", x), "the axes of ... are not in the result"),
    (lambda x: fl.einsum("i1k->i", x), "'1' is not a label"),
    (lambda x: fl.einsum(x), "names the axes"),
    (lambda x: fl.einsum(x, [0, 99, 1]), "from 0 to 51"),
    (lambda x: fl.empty((2, 3)), "would have none"),
    (lambda x: fl.matrix_norm(x, ord=3), "no such order"),
    (lambda x: fl.diagonal(x, 0, 1, 1), "given twice"),
    (lambda x: fl.roll(x, (1, 2, 3), (0, 1)), "3 shifts for 2 axes"),
    (lambda x: fl.repeat(x, [1, 2, 3], 0), "its extent is 2"),
    (lambda x: fl.tensordot(x, x, 4), "the operands have 3 and 3"),
    (lambda x: fl.cross(x, x), "must be 3"),
    (lambda x: fl.linspace(0, x[0, 0], 3), "both ends are numbers"),
    (lambda x: fl.meshgrid(x[0, 0], indexing="yx"), "one of NumPy's"),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(MISTAKES)))
def test_mistakes_are_told(k: int) -> None:
    fn, why = MISTAKES[k]
    problem = refusal(fn, X)
    assert why in problem.why and problem.code.startswith("A30")


def test_einsum_names_its_axes_by_their_labels() -> None:
    a, b, c = numbers(3, 40), numbers(40, 5, seed=1), numbers(5, 2, seed=2)
    graph = graph_of(lambda x, y, z: fl.einsum("ij,jk,kl->il", x, y, z), a, b, c)
    assert [(s.axis_names, tuple(r.name for r in s.reduce_axes)) for s in graph.stages] == [(("i", "k"), ("j",)), (("i", "l"), ("k",))]
    near(graph.run(a, b, c), np.linalg.multi_dot([a, b, c]), 1e-5)
    near(run(lambda x, y: fl.einsum(x, [0, 1], y, [1, 2], [2, 0]), a, b), (a @ b).T, 1e-5)
    near(run(lambda x, y: fl.einsum(x, [..., 1], y, [1, 2]), a, b), a @ b, 1e-5)


def test_einsum_of_one_operand_is_a_view() -> None:
    graph = graph_of(lambda x: fl.exp(fl.einsum("iji->ji", x)), numbers(3, 2, 3))
    assert [s.axis_names for s in graph.stages] == [("j", "i")]


def test_narrow_integers_are_summed_in_32_bits() -> None:
    x = np.full((2, 300), 100, np.int8)
    same(run(lambda x: fl.einsum("ij,ij->i", x, x), x), np.array([3_000_000] * 2, np.int32))


def test_contraction_orders_cost_least() -> None:
    sizes = dict(zip("ijklm", (10, 1000, 5, 500, 50), strict=True))
    chain = [frozenset(p) for p in ("ij", "jk", "kl", "lm")]
    assert order(chain, frozenset("im"), sizes) == [(0, 1), (1, 2), (0, 1)]  # (ij,jk), (kl,lm), then both
    many = [frozenset((f"a{k}", f"a{k + 1}")) for k in range(12)]
    steps = order(many, frozenset(("a0", "a12")), {f"a{k}": 2 + k % 3 for k in range(13)})
    assert len(steps) == 11 and all(len(s) == 2 for s in steps)


def test_signs_and_neighbours() -> None:
    for dtype in ("float32", "float64"):
        info = np.finfo(dtype)
        few = [0.0, 1, 2, 3.3, info.max, np.inf, info.tiny, info.smallest_subnormal, info.tiny / info.eps, info.tiny * (1 - info.eps)]
        v = np.array([*few, *[-x for x in few], np.nan], dtype)
        a, b = map(np.ravel, np.meshgrid(v, v))
        with np.errstate(all="ignore"):
            same(run(lambda x, y: fl.nextafter(x, y), a, b), np.nextafter(a, b))
        same(run(lambda x, y: fl.copysign(x, y), a, b), np.copysign(a, b))
        same(run(lambda x: fl.signbit(x), v), np.signbit(v))
    same(run(lambda k: fl.signbit(k), np.array([-1, 0, 1])), np.array([True, False, False]))
