"""Lowering: the loops that plans become (golden texts), and what they compute on awkward extents."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import fluorite as fl
import model_zoo
import numpy as np
import pytest
from fluorite.codegen import driver
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.nest import UNROLLED, VECTOR
from fluorite.schedule.sections import Target
from lowering import AWKWARD, Zoo, agrees, lowered, product, total, twice

BLUR = {"image": fl.f32("h", "w")}
GOLDEN: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "blur_root": (model_zoo.blur, BLUR, "schedule: {'blur/*': [{vectorize: {axis: x, width: 8}}]}\nfusion: {rest: none}"),
    "blur_strips": (
        model_zoo.blur,
        BLUR,
        """
schedule:
  out: [{split: {axis: y, factor: 32}}, {parallel: y_outer}, {vectorize: {axis: x, width: 16}}]
  rows: [{compute_at: {stage: out, axis: y_outer}}, {vectorize: {axis: x, width: 16}}]
""",
    ),
    "product_tile": (
        product,
        {"x": fl.f32("n", 32), "w": fl.f32(32, "m")},
        """
schedule:
  product: [{cache: acc}, {tile: {i: 4, j: 16}}, {parallel: i_outer}, {unroll: i_inner}, {vectorize: j_inner}]
  product/acc: [{compute_at: {stage: product, axis: j_outer}}, {store_in: registers}, {reorder: [k, i, j]}, {unroll: i}, {vectorize: j}]
""",
    ),
    "softmax_rows": (
        model_zoo.softmax,
        {"x": fl.f32("n", 40)},
        """
schedule:
  /softmax/softmax: [{parallel: n}, {vectorize: {axis: i1, width: 8}}]
  max: [{compute_at: {stage: /softmax/softmax, axis: n}}]
  exp: [{compute_at: {stage: /softmax/softmax, axis: n}}, {vectorize: {axis: i1, width: 8}}]
  sum: [{compute_at: {stage: /softmax/softmax, axis: n}}]
""",
    ),
    "tail_guarded": (twice, {"x": fl.f32("n")}, "schedule: {out: [{vectorize: {axis: i, width: 8, tail: guard}}]}"),
    "tail_shifted": (twice, {"x": fl.f32(37)}, "schedule: {out: [{vectorize: {axis: i, width: 8, tail: shift}}]}"),
    "total_in_parts": (
        total,
        {"x": fl.f32("n")},
        """
schedule:
  total: [{rfactor: {axis: k, factor: 8}}]
  total/partial: [{compute_root: }, {reorder: [k_outer, k_inner]}, {vectorize: k_inner}]
""",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str, golden: Callable[[str], None]) -> None:
    model, inputs, plan = GOLDEN[name]
    golden(lowered(model, plan, **inputs).text())


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_kernels_compute_the_algorithm(name: str) -> None:
    model, inputs, plan = GOLDEN[name]
    g = fl.trace(model, None, inputs=inputs)
    compiled = driver.compile_graph(g, ExecutionPlan.from_yaml(plan), cache=False)
    made = driver.assemble(compiled.manifest("m"), compiled.library, {})
    symbols = g.symbols()
    for pair in AWKWARD if symbols else AWKWARD[:1]:
        agrees(g, made, g.methods[0], dict(zip(symbols, pair, strict=False)))


def test_lowering_twice_gives_one_text() -> None:
    """The cache goes by it, so it may not depend on anything but graph, plan and target."""
    for name in ("attention", "harris"):
        assert lowered(model_zoo.graph(name)).text() == lowered(model_zoo.graph(name)).text()


@pytest.mark.parametrize("name", ["layer 64x128x96", "transposed_product 33x17x130", "sums 7x1000", "convolution 14x30", "attention 17"])
@pytest.mark.parametrize("cpu", ["skylake-avx512", "haswell", "nehalem"])
def test_default_tiles_fit_the_registers(name: str, cpu: str) -> None:
    target = resolve_target(Target(cpu=cpu), threads=2)
    made = lowered(model_zoo.graph(name), target=target)
    for s in made.graph.stages:
        tile = [loop for loop in made.nests[s.id].loops if not loop.reduction and loop.kind in (UNROLLED, VECTOR)]
        vectors = [loop.extent for loop in tile if loop.kind == VECTOR]
        copies = np.prod([loop.extent for loop in tile if loop.kind == UNROLLED], dtype=int)
        assert copies <= target.machine.registers, s.path
        assert all(isinstance(v, int) and v <= target.machine.lanes(s.dtype) for v in vectors), s.path


# ---------------------------------------------------------------- compiled against the oracle: default schedules
SYMBOLIC = [
    name for name, (_, inputs) in model_zoo.MODELS.items() if any(not isinstance(n, int) for spec in inputs.values() for n in spec.shape)
]


@pytest.fixture(scope="module")
def zoo() -> Iterator[Zoo]:
    yield Zoo({name: model_zoo.MODELS[name] for name in SYMBOLIC})


@pytest.mark.parametrize("name", SYMBOLIC)
def test_default_schedules_on_awkward_extents(zoo: Zoo, name: str) -> None:
    for n, m in AWKWARD:
        if name == "pooled" and min(n, m) < 3:
            continue
        zoo.agrees(name, {"n": n, "m": m, "k": m})


@pytest.mark.parametrize("tail", ["auto", "shift", "guard"])
def test_the_last_vector_of_a_part_that_ends_early_is_not_moved_beyond_it(tail: str) -> None:
    """A part of the reader may be shorter than the memory that is kept for it, down to nothing."""

    def model(x: Any) -> Any:
        a = fl.stage(lambda i: x[i] + 1, name="a")
        return fl.stage(lambda i: a[i] * 2, name="out")

    g = fl.trace(model, None, inputs={"x": fl.f32("n")})
    plan = f"schedule: {{a: [{{compute_at: {{stage: out, axis: p}}}}, {{vectorize: {{axis: i, width: 2, tail: {tail}}}}}], out: [{{split: {{axis: i, factors: [4, ~], into: [p, q]}}}}]}}"
    compiled = driver.compile_graph(g, ExecutionPlan.from_yaml(plan, "p.yaml"), cache=False)
    model_ = driver.assemble(compiled.manifest("parts"), compiled.library, {})
    for n in range(1, 30):
        agrees(g, model_, g.methods[0], {"n": n})


def test_a_part_whose_vectors_do_not_fill_it_is_not_moved_back() -> None:
    """Its last elements are computed one by one, where they are."""
    g = fl.trace(lambda x: fl.stage(lambda i: x[i] * 2, name="out"), None, inputs={"x": fl.f32("n")})
    plan = "schedule: {out: [{split: {axis: i, factor: 3}}, {vectorize: {axis: i_inner, width: 2, tail: guard}}]}"
    compiled = driver.compile_graph(g, ExecutionPlan.from_yaml(plan, "p.yaml"), cache=False)
    model_ = driver.assemble(compiled.manifest("parts"), compiled.library, {})
    for n in range(1, 22):
        x, out = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
        getattr(model_, g.methods[0].name)(x, out=out)
        np.testing.assert_array_equal(out, x * 2)
