"""Graphs lowered, and compiled kernels beside the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
from fluorite.algo.extent import evaluate
from fluorite.algo.graph import Graph, Method
from fluorite.codegen import driver
from fluorite.codegen.lowered import Lowered
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

TARGET = resolve_target(Target(cpu="skylake-avx512"), threads=2)
AWKWARD = [(1, 1), (1, 33), (7, 16), (16, 7), (17, 17), (33, 1), (16, 33)]


def lowered(model: Callable[..., Any] | Graph, plan: str = "", target: Any = TARGET, **inputs: Any) -> Lowered:
    g = model if isinstance(model, Graph) else fl.trace(model, None, inputs=inputs)
    chosen, _ = driver.prepared(ExecutionPlan.from_yaml(plan, "p.yaml"), g)
    (made,) = driver.lower_variants(g, chosen, target)
    return made


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if dtype == "bool":
        return rng.random(shape) < 0.6
    if "int" in dtype:
        return rng.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(dtype)
    return (rng.random(shape) * 4 - 2).astype(dtype)


def same(got: Any, wanted: Any, where: str) -> None:
    if isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for key in wanted:
            same(got[key], wanted[key], f"{where}/{key}")
    elif isinstance(wanted, tuple):
        for n, (a, b) in enumerate(zip(got, wanted, strict=True)):
            same(a, b, f"{where}/{n}")
    elif wanted.dtype.kind == "f":
        tolerance = 2e-5 if wanted.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=where)
        assert got.dtype == wanted.dtype
    else:
        np.testing.assert_array_equal(got, wanted, err_msg=where)
        assert got.dtype == wanted.dtype


def agrees(g: Graph, model: Any, method: Method, sizes: dict[str, int], seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    inputs = [numbers(rng, g[i].dtype, tuple(evaluate(n, sizes) for n in g[i].shape)) for i in method.inputs]
    same(getattr(model, method.name)(*inputs), g.run(*inputs, method=method.name), f"{method.name} {sizes}")


def product(x: Any, w: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * w[k, j]), name="product")


def twice(x: Any) -> Any:
    return fl.stage(lambda i: x[i] * 2, name="out")


def total(x: Any) -> Any:
    return fl.stage(lambda: fl.sum(lambda k: x[k]), name="total")


class Zoo:
    """Methods compiled as one library, since linking takes longest."""

    def __init__(self, methods: dict[str, tuple[Callable[..., Any], dict[str, Any]]], plan: str = "") -> None:
        made = {name: fl.method(_as_method(name, model, inputs)) for name, (model, inputs) in methods.items()}
        self.graph = fl.trace(type("Zoo", (fl.Program,), made)())
        compiled = driver.compile_graph(self.graph, ExecutionPlan.from_yaml(plan), cache=False)
        self.model = driver.assemble(compiled.manifest("zoo"), compiled.library, driver.parameter_arrays(self.graph))

    def agrees(self, name: str, sizes: dict[str, int]) -> None:
        agrees(self.graph, self.model, self.graph.method(name), sizes)


def _as_method(name: str, model: Callable[..., Any], inputs: dict[str, Any]) -> Callable[..., Any]:
    arguments = ", ".join(inputs)
    made: dict[str, Any] = {"model": model}
    exec(f"def {name}(self, {arguments}): return model({arguments})", made)
    made[name].__annotations__ = inputs
    return made[name]  # type: ignore[no-any-return]
