"""pad, layout and tail: pad, alone and together with compute_at, agree with the oracle; results take none of them."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.codegen import driver
from fluorite.codegen.statements import If, walk
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan

SIZES = [(1, 1), (1, 17), (2, 3), (7, 8), (16, 16), (17, 33), (33, 7)]


def chain(image: Any) -> Any:
    a = fl.stage(lambda y, x: image[y, x] * 2 + 1, name="a")
    b = fl.edge(fl.stage(lambda y, x: a[y, x] * a[y, x], name="b"))
    return fl.stage(lambda y, x: b[y, x - 1] + b[y, x + 1] + b[y - 1, x], name="c")


def guarded(image: Any) -> Any:
    """The condition of the choice keeps the read inside: a stage that is padded must not read past it."""
    n = image.shape[1]
    a = fl.stage(lambda y, x: fl.where(x + 2 < n, image[y, x + 2], 0) + x, extents=dict(zip("yx", image.shape, strict=True)), name="a")
    return fl.stage(lambda y, x: a[y, x] * 2, name="c")


def gathered(image: Any) -> Any:
    """An index that depends on data and on the padded axis."""
    at = fl.stage(lambda x: fl.cast(image[0, x] * 0, "int32"), name="at")
    a = fl.stage(lambda y, x: image[y, x + at[x]], extents=dict(zip("yx", image.shape, strict=True)), name="a")
    return fl.stage(lambda y, x: a[y, x] * 2, name="c")


def reduced(image: Any) -> Any:
    a = fl.stage(lambda y: fl.sum(lambda x: image[y, x]), name="a")
    return fl.stage(lambda y, x: image[y, x] / (a[y] + 1), name="c")


def traced(f: Any) -> Graph:
    return fl.trace(f, None, inputs={"image": fl.f32("h", "w")})


def compiled(f: Any, plan: str) -> Any:
    return driver.compile_graph(traced(f), ExecutionPlan.from_yaml(plan, "p.yaml"), cache=False)


@pytest.mark.parametrize(
    ("f", "plan"),
    [
        (chain, "schedule: {a: [{vectorize: {axis: x, width: 8, tail: pad}}], b: [{vectorize: {axis: x, width: 8, tail: pad}}]}\nfusion: {rest: none}"),
        (chain, "schedule: {a: [{split: {axis: x, factor: 8, tail: pad}}, {vectorize: x_inner}], b: [{layout: [x, y]}, {pad: {y: 4}}]}"),
        (chain, "schedule: {a: [{compute_at: {stage: c, axis: x_outer}}, {vectorize: {axis: x, width: 8, tail: pad}}], b: [{compute_at: {stage: c, axis: x_outer}}, {layout: [x, y]}, {tile: {sizes: {y: 4, x: 8}, tail: pad}}], c: [{split: {axis: x, factor: 16}}]}"),
        (chain, "schedule: {a: [compute_inline], b: [{compute_at: {stage: c, axis: y_outer}}, {split: {axis: y, factor: 4, tail: pad}}, {unroll: y_inner}], c: [{split: {axis: y, factor: 8}}]}"),
        (guarded, "schedule: {a: [{vectorize: {axis: x, width: 8, tail: pad}}]}\nfusion: {rest: none}"),
        (guarded, "schedule: {a: [{compute_at: {stage: c, axis: y}}, {vectorize: {axis: x, width: 8, tail: pad}}]}"),
        (gathered, "schedule: {a: [{pad: {x: 16, y: 3}}], at: [{pad: {x: 16}}]}\nfusion: {rest: none}"),
        (reduced, "schedule: {a: [{vectorize: {axis: y, width: 4, tail: pad}}, {reorder: [y_outer, x, y_inner]}]}\nfusion: {rest: none}"),
        (chain, "schedule: {c: [{cache: {into: acc}}], c/acc: [{vectorize: {axis: x, width: 8, tail: pad}}]}"),
    ],
)  # fmt: skip
def test_they_agree_with_the_oracle(f: Any, plan: str) -> None:
    made = compiled(f, plan)
    g, model = traced(f), driver.assemble(made.manifest("storage"), made.library, {})
    for h, w in SIZES:
        image = np.random.default_rng(h * 100 + w).random((h, w), dtype=np.float32)
        np.testing.assert_allclose(getattr(model, g.methods[0].name)(image), g.run(image), rtol=1e-6, atol=1e-6, err_msg=f"{h} x {w}")


def test_a_padded_reader_of_a_padded_stage_tests_nothing() -> None:
    """b reads a at its own position, and both are multiples of 8 long: every vector of b is whole."""
    plan = "schedule: {a: [{pad: {x: 8}}], b: [{vectorize: {axis: x, width: 8, tail: pad}}]}\nfusion: {rest: none}"
    chosen, _ = driver.prepared(ExecutionPlan.from_yaml(plan, "p.yaml"), traced(chain))
    (lowered,) = driver.lower_variants(traced(chain), chosen, resolve_target(chosen.target))
    kernel = next(k for k in lowered.kernels if k.stages == ("chain/b",))
    assert not any(isinstance(n, If) for n in walk(kernel.body)) and "edge" not in kernel.text()
    assert str(kernel.outputs[0].shape[1]) == "8*(w+7)//8"


@pytest.mark.parametrize(
    ("f", "plan", "words"),
    [
        (chain, "schedule: {c: [{pad: {x: 8}}]}", "P226]: pad pads c\n  chain/c"),
        (chain, "schedule: {c: [{vectorize: {axis: x, width: 8, tail: pad}}]}", "P226]: vectorize pads c"),
        (chain, "schedule: {c: [{layout: [x, y]}]}", "P226]: layout: [x, y] of c"),
        (chain, "schedule: {b: [{layout: [x]}]}", "P226]: layout: [x]"),
        (chain, "schedule: {b: [{pad: {q: 8}}]}", "P226]: pad: q is no axis of b"),
        (reduced, "schedule: {a: [{pad: {x: 8}}]}", "what lies beyond the end of a reduction would be added"),
        (reduced, "schedule: {a: [{split: {axis: x, factor: 8, tail: pad}}]}", "iterations of x are no multiple of 8"),
        (reduced, "schedule: {a: [{split: {axis: x, factor: 8, tail: shift}}]}", "tail: shift on x, a reduction loop"),
        (chain, "schedule: {b: [{split: {axis: x, factor: 8}}, {split: {axis: x_inner, factor: 3, tail: pad}}]}", "only an axis of a stage can be made longer"),
    ],
)  # fmt: skip
def test_refusals(f: Any, plan: str, words: str) -> None:
    with pytest.raises(PlanError) as refused:
        compiled(f, plan)
    assert words.split("\n")[0] in str(refused.value)
