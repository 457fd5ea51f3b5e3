"""Sliding windows: store_at and fold compute each row once, keep few of them, agree with the oracle, and are refused in sentences."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.extent import evaluate
from fluorite.algo.graph import Graph
from fluorite.codegen import driver
from fluorite.codegen.explaining import explain
from fluorite.codegen.statements import Allocate, For, If, Sequence, Statement, Store, walk
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target
from index_values import index_value

SIZES = [(1, 1), (1, 17), (2, 3), (7, 8), (13, 5), (16, 16), (17, 33), (33, 7), (50, 41)]
Algorithm = Callable[..., Any]


def two(view: Algorithm) -> Algorithm:
    def chain(image: Any) -> Any:
        image = view(image)
        rows = view(fl.stage(lambda y, x: (image[y, x - 1] + image[y, x] * 2 + image[y, x + 1]) / 4, name="rows"))
        return fl.stage(lambda y, x: (rows[y - 1, x] + rows[y, x] + rows[y + 1, x]) / 3, name="out")

    return chain


def three(view: Algorithm) -> Algorithm:
    def chain(image: Any) -> Any:
        image = view(image)
        one = view(fl.stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3, name="one"))
        two = view(fl.stage(lambda y, x: (one[y - 1, x] + one[y, x] + one[y + 1, x]) / 3, name="two"))
        return fl.stage(lambda y, x: (two[y - 1, x - 1] + two[y, x] + two[y + 1, x + 1]) / 3 + one[y, x], name="out")

    return chain


def traced(f: Algorithm) -> Graph:
    return fl.trace(f, None, inputs={"image": fl.f32("h", "w")})


def plan_of(text: str) -> ExecutionPlan:
    return ExecutionPlan.from_yaml(text, "p.yaml")


def agrees(f: Algorithm, plan: str) -> None:
    g = traced(f)
    compiled = driver.compile_graph(g, plan_of(plan), cache=False)
    model = driver.assemble(compiled.manifest("sliding"), compiled.library, {})
    for h, w in SIZES:
        image = np.random.default_rng(h * 100 + w).random((h, w), dtype=np.float32)
        np.testing.assert_allclose(getattr(model, g.methods[0].name)(image), g.run(image), rtol=2e-6, atol=2e-6, err_msg=f"{h} x {w}")


def kernel_of(f: Algorithm, plan: str) -> Any:
    g = traced(f)
    chosen, _ = driver.prepared(plan_of(plan), g)
    (lowered,) = driver.lower_variants(g, chosen, resolve_target(Target(cpu="skylake-avx512"), threads=2))
    (kernel,) = lowered.kernels
    return kernel


OUT = "out: [{split: {axis: y, factor: 8}}, {parallel: y_outer}, {vectorize: {axis: x, width: 8}}]"
ROWS = "rows: [{compute_at: {stage: out, axis: y_inner}}, {store_at: {stage: out, axis: y_outer}}, {vectorize: {axis: x, width: 8}}"
CHAIN = "{0}: [{{compute_at: {{stage: out, axis: y_inner}}}}, {{store_at: {{stage: out, axis: y_outer}}}}, {{vectorize: {{axis: x, width: 8}}}}{1}]"
TILED = "out: [{tile: {y: 8, x: 8}}, {parallel: y_outer}]"


@pytest.mark.parametrize(
    ("f", "plan"),
    [
        (two(fl.edge), f"schedule: {{{ROWS}], {OUT}}}"),
        (two(fl.edge), f"schedule: {{{ROWS}, {{fold: {{axis: y, extent: 4}}}}], {OUT}}}"),
        (two(fl.edge), f"schedule: {{{ROWS}, {{fold: {{axis: y, extent: 3}}}}], {OUT}}}"),
        (two(fl.constant), f"schedule: {{{ROWS}, {{fold: {{axis: y, extent: 4}}}}], {OUT}}}"),
        (three(fl.edge), f"schedule: {{{CHAIN.format('one', '')}, {CHAIN.format('two', '')}, {OUT}}}"),
        (three(fl.edge), f"schedule: {{{CHAIN.format('one', ', {fold: {axis: y, extent: 5}}')}, {CHAIN.format('two', ', {fold: {axis: y, extent: 4}}')}, {OUT}}}"),
        (three(fl.constant), f"schedule: {{{CHAIN.format('one', '')}, {CHAIN.format('two', '')}, {OUT}}}"),
        # a stage in between that is computed anew, for what is new
        (three(fl.edge), f"schedule: {{one: [{{compute_at: {{stage: out, axis: y_inner}}}}], {CHAIN.format('two', ', {fold: {axis: y, extent: 4}}')}, {OUT}}}"),
        # windows in both dimensions, and in the inner one alone
        (two(fl.edge), f"schedule: {{rows: [{{compute_at: {{stage: out, axis: x_inner}}}}, {{store_at: {{stage: out, axis: x_outer}}}}], {TILED}}}"),
        (three(fl.edge), f"schedule: {{one: [{{compute_at: {{stage: out, axis: x_inner}}}}, {{store_at: {{stage: out, axis: x_outer}}}}], two: [{{compute_at: {{stage: out, axis: x_inner}}}}, {{store_at: {{stage: out, axis: x_outer}}}}], {TILED}}}"),
        (three(fl.edge), f"schedule: {{one: [compute_inline], two: [{{compute_at: {{stage: out, axis: x_inner}}}}, {{store_at: {{stage: out, axis: x_outer}}}}, {{fold: {{axis: y, extent: 3}}}}], {TILED}}}"),
        (three(fl.edge), f"schedule: {{one: [compute_inline], two: [{{compute_at: {{stage: out, axis: x_inner}}}}, {{store_at: {{stage: out, axis: x_outer}}}}, {{fold: {{axis: x, extent: 3}}}}], {TILED}}}"),
        (three(fl.edge), f"schedule: {{one: [compute_inline], two: [{{compute_at: {{stage: out, axis: x_inner}}}}, {{store_at: {{stage: out, axis: y_inner}}}}, {{fold: {{axis: x, extent: 4}}}}], {TILED}}}"),
    ],
)  # fmt: skip
def test_sliding_windows_agree_with_the_oracle(f: Algorithm, plan: str) -> None:
    agrees(f, plan)


def chain_in_strips(image: Any) -> Any:
    image = fl.edge(image)
    one = fl.edge(fl.stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3, name="one"))
    two = fl.edge(fl.stage(lambda y, x: (one[y - 1, x] + one[y, x] + one[y + 1, x]) / 3, name="two"))
    return fl.stage(lambda y, x: (two[y, x - 1] + two[y, x] + two[y + 1, x]) / 3, name="out")


def test_a_window_inside_a_strip_of_its_reader() -> None:
    agrees(
        chain_in_strips,
        """
        schedule:
          one: [{compute_at: {stage: two, axis: y}}, {store_at: {stage: out, axis: y_outer}}, {fold: {axis: y, extent: 4}}]
          two: [{compute_at: {stage: out, axis: y_outer}}]
          out: [{split: {axis: y, factor: 8}}, {parallel: y_outer}]
        """,
    )


def test_a_reader_whose_tile_sticks_out_keeps_to_the_window() -> None:
    """Tiles of 16 at every second position: they cover far more than the strip of 16 needs, and that is not kept."""

    def chain(image: Any) -> Any:
        rows = fl.stage(lambda y, x: image[y, x] * 3, name="rows")
        tile = fl.stage(lambda y, x: rows[y, x] + 1, name="tile")
        return fl.stage(lambda y, x: tile[y, x] * 2, name="out")

    agrees(
        chain,
        """
        schedule:
          rows: [{compute_at: {stage: out, axis: y_outer_inner}}, {store_at: {stage: out, axis: y_outer_outer}}]
          tile: [{compute_at: {stage: out, axis: y_outer_inner}}, {split: {axis: y, factor: 16}}, {reorder: [y_outer, x, y_inner]}, {vectorize: y_inner}]
          out: [{split: {axis: y, factor: 2}}, {split: {axis: y_outer, factor: 8}}]
        """,
    )


def pooled(image: Any) -> Any:
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x: image[y, x - 1] + image[y, x + 1], extents=dict(zip("yx", image.shape, strict=True)), name="rows"))
    return fl.stage(lambda y, x: rows[y * 3 - 1, x] + rows[y * 3, x], extents=dict(zip("yx", image.shape, strict=True)), name="out")


def enlarged(image: Any) -> Any:
    rows = fl.edge(fl.stage(lambda y, x: image[y, x] * 2, name="rows"))
    return fl.stage(lambda y, x: rows[y // 2, x] + rows[y // 2 + 1, x], extents=dict(zip("yx", image.shape, strict=True)), name="out")


def backwards(image: Any) -> Any:
    rows = fl.flip(fl.stage(lambda y, x: image[y, x] * 2, name="rows"), axis=0)
    return fl.stage(lambda y, x: rows[y, x] + 1, name="out")


def test_windows_that_jump_and_windows_that_rest() -> None:
    """Reads with a stride leave rows out, reads of y // 2 need nothing new in every other iteration."""
    for f in (pooled, enlarged):
        agrees(f, f"schedule: {{{ROWS}, {{fold: {{axis: y, extent: 4}}}}], {OUT}}}")


# ---------------------------------------------------------------- what is saved
def stores(s: Statement, buffer: int, values: dict[Any, int], symbols: dict[str, int]) -> int:
    """How often a kernel stores into one buffer."""
    match s:
        case Store():
            return int(s.buffer == buffer)
        case If():
            branch = s.then if index_value(s.condition, values, symbols) else s.otherwise
            return 0 if branch is None else stores(branch, buffer, values, symbols)
        case For():
            low, n = index_value(s.low, values, symbols), index_value(s.extent, values, symbols)
            return sum(stores(s.body, buffer, {**values, s.var: v}, symbols) for v in range(low, low + n))
        case Sequence():
            return sum(stores(x, buffer, values, symbols) for x in s.body)
        case Allocate():
            return stores(s.body, buffer, values, symbols)


@pytest.mark.parametrize(("plan", "rows"), [("", 3 * 32 - 2), (", {store_at: {stage: out, axis: y_outer}}", 4 * 10 - 2)])
def test_each_row_of_a_strip_is_computed_once(plan: str, rows: int) -> None:
    text = f"schedule: {{rows: [{{compute_at: {{stage: out, axis: y_inner}}}}{plan}], out: [{{split: {{axis: y, factor: 8}}}}]}}"
    kernel = kernel_of(two(fl.edge), text)
    buffer = next(n.buffer.id for n in walk(kernel.body) if isinstance(n, Allocate) and n.buffer.name == "rows")
    assert stores(kernel.body, buffer, {}, {"h": 32, "w": 5}) == rows * 5


def test_explain_says_what_is_kept() -> None:
    """Whole rows of a strip, or four of them."""
    for fold, rows in (("", 10), (", {fold: {axis: y, extent: 4}}", 4)):
        (k,) = explain(traced(two(fl.edge)), plan_of(f"schedule: {{{ROWS}{fold}], {OUT}}}"), {"h": 100, "w": 64}).kernels
        assert k.bytes_kept == rows * 64 * 4
        allocated = [n.buffer for n in walk(kernel_of(two(fl.edge), f"schedule: {{{ROWS}{fold}], {OUT}}}").body) if isinstance(n, Allocate)]
        assert {b.id: [evaluate(n, {"h": 100, "w": 64}) for n in b.shape] for b in allocated} == {allocated[0].id: [rows, 64]}


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("f", "plan", "words"),
    [
        (two(fl.edge), "schedule: {rows: [{store_at: {stage: out, axis: y}}]}", 'P260]: store_at of rows without compute_at'),
        (two(fl.edge), "schedule: {rows: [{compute_at: {stage: out, axis: y}}, {fold: {axis: y, extent: 4}}]}", "P261]: fold of rows without store_at"),
        (two(fl.edge), "schedule: {rows: [{compute_at: {stage: out, axis: x}}, {store_at: {stage: out, axis: y}}, {fold: {axis: z, extent: 4}}]}", "P261]: fold: rows has no axis z"),
        (two(fl.edge), f"schedule: {{{ROWS}, {{fold: {{axis: y, extent: 2}}}}], {OUT}}}", "one iteration needs 3 positions of rows\n  f/rows"),
        (two(fl.edge), "schedule: {rows: [{compute_at: {stage: out, axis: y}}, {store_at: {stage: out, axis: y}}]}", "compute_at computes it at that loop or further out"),
        (two(fl.edge), "schedule: {rows: [{compute_at: {stage: out, axis: x}}, {store_at: {stage: out, axis: q}}]}", 'P204]: rows cannot be kept at out\'s "q"'),
        (two(fl.edge), "schedule: {rows: [{compute_at: {stage: out, axis: y_inner}}, {store_at: {stage: out, axis: y_outer}}], out: [{split: {axis: y, factor: 8}}, {parallel: y_inner}]}", "y_inner of out lies between that and compute_at and is parallel"),
        (two(fl.reflect), f"schedule: {{{ROWS}], {OUT}}}", "every iteration needs all of y"),
        (two(fl.wrap), f"schedule: {{{ROWS}], {OUT}}}", "every iteration needs all of y"),
        (backwards, f"schedule: {{{ROWS}], {OUT}}}", "does not move forwards along one axis"),
        (three(fl.edge), f"schedule: {{one: [{{compute_at: {{stage: out, axis: y_inner}}}}, {{store_at: {{stage: two, axis: y}}}}], {OUT}}}", 'P260]: one cannot be kept at two\'s "y"'),
        (two(fl.edge), "target: {kind: cuda, arch: sm_80}\nschedule: {rows: [{compute_at: {stage: out, axis: x}}, {store_at: {stage: out, axis: y}}]}", "P250]: store_at on a GPU"),
    ],
)  # fmt: skip
def test_what_cannot_slide_is_refused(f: Algorithm, plan: str, words: str) -> None:
    g = traced(f)
    with pytest.raises(PlanError) as refused:
        chosen, _ = driver.prepared(plan_of(plan), g)
        driver.lower_variants(g, chosen, resolve_target(chosen.target))
    assert words.split("\n")[0] in str(refused.value)
