"""align, prefetch and stream: values stay, rows begin where they are asked to, lines are asked for, stores go past the caches, and what
cannot be is refused."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.extent import evaluate
from fluorite.algo.graph import Graph
from fluorite.codegen import driver
from fluorite.codegen.emit import emit
from fluorite.codegen.statements import Allocate, Fetch, walk
from fluorite.codegen.target import resolve_target
from fluorite.codegen.tvm_adapter import compile_functions
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target


def blur(image: Any) -> Any:
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x: image[y, x - 1] + image[y, x + 1], name="rows"))
    return fl.stage(lambda y, x: rows[y - 1, x] + rows[y + 1, x], name="out")


def product(a: Any, b: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[k, j]), name="out")


BLUR, PRODUCT = {"image": fl.f32("h", "w")}, {"a": fl.f32("n", "m"), "b": fl.f32("m", "p")}
ROWS = "rows: [{compute_at: {stage: out, axis: y_outer}}, {vectorize: {axis: x, width: 8}}"
OUT = "out: [{split: {axis: y, factor: 8}}, {vectorize: {axis: x, width: 8}}"


def lowered(f: Any, inputs: Any, plan: str) -> Any:
    g = fl.trace(f, None, inputs=inputs)
    chosen, _ = driver.prepared(ExecutionPlan.from_yaml(plan, "p.yaml"), g)
    (made,) = driver.lower_variants(g, chosen, resolve_target(chosen.target))
    return made


@pytest.mark.parametrize(
    ("f", "inputs", "plan", "prefetches"),
    [
        (blur, BLUR, f"schedule: {{{ROWS}, {{align: {{axis: x, bytes: 64}}}}], {OUT}]}}", 0),
        (blur, BLUR, f"schedule: {{{ROWS}, {{align: {{axis: x, bytes: 32}}}}, {{store_in: stack}}, {{prefetch: {{read: image, axis: y, ahead: 2}}}}], out: [{{tile: {{y: 8, x: 8}}}}]}}".replace("axis: y_outer", "axis: x_outer"), 1),
        (blur, BLUR, f"schedule: {{{ROWS}, {{prefetch: {{read: image, axis: y, ahead: 3}}}}], {OUT}]}}", 1),
        (product, PRODUCT, "schedule: {out: [{reorder: [i, k, j]}, {prefetch: {read: b, axis: k, ahead: 4}}, {prefetch: {read: a, axis: i, ahead: 1}}, {vectorize: {axis: j, width: 8}}]}", 2),
    ],
)  # fmt: skip
def test_they_change_no_value(f: Any, inputs: Any, plan: str, prefetches: int) -> None:
    g: Graph = fl.trace(f, None, inputs=inputs)
    compiled = driver.compile_graph(g, ExecutionPlan.from_yaml(plan, "p.yaml"), cache=False)
    model = driver.assemble(compiled.manifest("memory"), compiled.library, {})
    (kernel,) = compiled.variants[0].kernels
    assert len({n.buffer for n in walk(kernel.body) if isinstance(n, Fetch)} | ({0} if not prefetches else set())) == max(1, prefetches)
    for h, w in [(1, 1), (3, 17), (16, 16), (17, 33), (33, 7)]:
        sizes = {"h": h, "w": w, "n": h, "m": w, "p": h + 3}
        arrays = [np.random.default_rng(h).random([evaluate(n, sizes) for n in g[i].shape], dtype=np.float32) for i in g.methods[0].inputs]
        np.testing.assert_allclose(getattr(model, g.methods[0].name)(*arrays), g.run(*arrays), rtol=1e-5)


def test_rows_begin_at_multiples_of_the_bytes() -> None:
    (kernel,) = lowered(blur, BLUR, f"schedule: {{{ROWS}, {{align: {{axis: x, bytes: 64}}}}], {OUT}]}}").kernels
    (rows,) = {n.buffer for n in walk(kernel.body) if isinstance(n, Allocate)}
    assert [evaluate(n, {"h": 100, "w": 33}) for n in rows.shape] == [10, 48]


def test_the_text_says_what_is_asked_for() -> None:
    (kernel,) = lowered(product, PRODUCT, "schedule: {out: [{reorder: [i, k, j]}, {prefetch: {read: b, axis: k, ahead: 4}}]}").kernels
    assert "prefetch b[edge(k + 4, m), edge(b_1 * 16, p)]" in kernel.text()
    module = compile_functions({kernel.name: emit(kernel)}, resolve_target(Target(cpu="skylake-avx512")).dict()).mod
    assert "prefetcht0" in module.inspect_source("s")


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (f"schedule: {{{ROWS}], {OUT}, {{align: {{axis: x, bytes: 64}}}}]}}", "P263]: align: {axis: x, bytes: 64} of out"),
        (f"schedule: {{{ROWS}, {{align: {{axis: y, bytes: 64}}}}], {OUT}]}}", "rows of rows run along x"),
        (f"schedule: {{{ROWS}, {{align: {{axis: x, bytes: 24}}}}], {OUT}]}}", "a power of two from 4"),
        (f"schedule: {{{ROWS}, {{align: {{axis: x, bytes: 128}}}}], {OUT}]}}", "to 64"),
        (f"schedule: {{{ROWS}, {{prefetch: {{read: picture, axis: y, ahead: 1}}}}], {OUT}]}}", "P223]: prefetch: rows does not read picture"),
        (f"schedule: {{{ROWS}, {{prefetch: {{read: image, axis: z, ahead: 1}}}}], {OUT}]}}", 'P203]: prefetch: rows has no loop "z"'),
        (f"schedule: {{{ROWS}, {{prefetch: {{read: image, axis: x_inner, ahead: 1}}}}], {OUT}]}}", "part of the innermost tile; loops outside that: y, x_outer"),
        (f"schedule: {{{ROWS}], {OUT}, {{prefetch: {{read: rows, axis: y_outer, ahead: 1}}}}]}}", "rows is computed in the same kernel"),
    ],
)  # fmt: skip
def test_refusals(plan: str, words: str) -> None:
    with pytest.raises(PlanError) as refused:
        lowered(blur, BLUR, plan)
    assert words in str(refused.value)


WIDE = "schedule: {out: [{vectorize: {axis: x, width: 16}}, stream]}"


@pytest.mark.parametrize(("dtype", "past"), [(fl.f32, True), (fl.f64, True), (fl.u8, False), (fl.boolean, False)])
def test_vectors_of_whole_lines_go_past_the_caches(dtype: Any, past: bool) -> None:
    """Into rows that begin anywhere, in parallel, from any address."""
    g = fl.trace(lambda a: fl.stage(lambda y, x: a[y, x] if dtype is fl.boolean else a[y, x] + a[y, x], name="out"), None, inputs={"a": dtype("h", "w")})
    plan = ExecutionPlan.from_yaml(WIDE.replace("[{", "[{parallel: y}, {"))
    made = driver.lower_variants(g, driver.prepared(plan, g)[0], resolve_target(Target(cpu="skylake-avx512")))[0]
    module = compile_functions({k.name: emit(k) for k in made.kernels}, resolve_target(Target(cpu="skylake-avx512")).dict()).mod
    code = module.inspect_source("s")
    assert ("vmovnt" in code) == past and "sfence" in code
    model = fl.compile(g, plan)
    for h, w in [(1, 1), (3, 16), (16, 17), (7, 64), (2, 333)]:
        a = (np.random.default_rng(w).random((h, w)) * 100).astype(dtype.dtype_name)
        np.testing.assert_array_equal(model(a), g.run(a))


def twice(image: Any) -> Any:
    return fl.stage(lambda y, x: image[y, x] * 2, name="rows"), fl.stage(lambda y: fl.sum(lambda x: image[y, x]), name="out")


@pytest.mark.parametrize(
    ("f", "inputs", "plan", "words"),
    [
        (blur, BLUR, f"schedule: {{{ROWS}, stream], {OUT}]}}", "its readers are in the same kernel"),
        (twice, BLUR, "schedule: {out: [stream]}", "a reduction adds up in the place"),
        (lambda a: fl.bincount(a, 8, name="out"), {"a": fl.i32("n")}, "schedule: {out: [stream]}", "it reads again what it has stored"),
        (twice, BLUR, "{target: {kind: cuda, arch: sm_90}, schedule: {rows: [{gpu_blocks: [y]}, {gpu_threads: [x]}, stream]}}", "P250]: stream on a GPU"),
    ],
)  # fmt: skip
def test_streams_that_are_refused(f: Any, inputs: Any, plan: str, words: str) -> None:
    with pytest.raises(PlanError) as refused:
        lowered(f, inputs, plan)
    assert words in str(refused.value) and ("P267" in str(refused.value) or "P250" in words)


def test_a_prefetch_that_never_moves_is_refused() -> None:
    with pytest.raises(PlanError, match="what out reads of b does not depend on i"):
        lowered(product, PRODUCT, "schedule: {out: [{prefetch: {read: b, axis: i, ahead: 1}}]}")
