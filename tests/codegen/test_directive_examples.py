"""The example of every directive: its kernels before and after as golden texts, and the same values from both."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fluorite.algo.program import trace
from fluorite.codegen import driver
from fluorite.codegen.directive_examples import EXAMPLES, example_text, kernels
from fluorite.codegen.runtime.host import cpu_features
from fluorite.schedule import DIRECTIVES, ExecutionPlan


def test_every_directive_has_one() -> None:
    assert set(EXAMPLES) == set(DIRECTIVES)


@pytest.mark.parametrize("key", EXAMPLES)
def test_golden_directive(key: str, golden: Callable[[str], None]) -> None:
    golden(example_text(key))


@pytest.mark.parametrize("key", EXAMPLES)
def test_the_directive_changes_the_kernels_and_not_the_values(key: str) -> None:
    e = EXAMPLES[key]
    assert kernels(e, e.before) != kernels(e, e.after) and f"{key}" in e.after
    if "cuda" in e.target:
        return
    if key == "tensorize" and "avx512_vnni" not in (cpu_features() or ()):
        pytest.skip("this processor has no avx512_vnni")
    graph = trace(e.program, None, inputs=e.inputs)
    arrays = [(np.random.default_rng(0).random(graph[i].shape) * 9).astype(graph[i].dtype) for i in graph.methods[0].inputs]
    plan = ExecutionPlan.from_yaml(f"fusion: {{rest: none}}\nschedule: {{{e.after}}}")
    compiled = driver.compile_graph(graph, plan, cache=False)
    model = driver.assemble(compiled.manifest("example"), compiled.library, {})
    np.testing.assert_allclose(getattr(model, graph.methods[0].name)(*arrays), graph.run(*arrays), rtol=1e-5)
