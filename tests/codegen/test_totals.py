"""Reductions of much to little, by the default scheduler: shared out among the threads, and still what the algorithm says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.codegen import driver
from fluorite.schedule.default import totals

F = fl.f32
N = totals.LEAST + 1019  # a prime number of elements, no multiple of anything
TAPS = 5


def by_weights(x: Any, g: Any) -> fl.Tensor:
    """What the weights of a stencil get of its gradient."""
    source = fl.edge(x)
    return fl.stage(lambda k: fl.sum(lambda y, x: g[y, x] * source[y, x + k - TAPS // 2]), name="weights", extents={"k": TAPS})


def by_windows(x: Any, g: Any) -> fl.Tensor:
    """Of each window of rows and columns the largest: the reduction's last axes are short."""
    source = fl.edge(x)


    def value(y: Any, x: Any, j: Any, i: Any) -> Any:
        return fl.where(i <= j + 1, source[y + j - 1, x + i - 1] * g[y, x], 0.0)

    return fl.stage(lambda: fl.max(value, over={"j": 3, "i": 3}), name="windows")


Case = tuple[Callable[..., Any], dict[str, Any]]
CASES: dict[str, Case] = {
    "sum": (lambda x: fl.sum(x), {"x": F(N)}),
    "sum_exactly_divided": (lambda x: fl.sum(x), {"x": F(1 << 18)}),
    "sum_doubles": (lambda x: fl.sum(x), {"x": fl.f64(N)}),
    "sum_halves": (lambda x: fl.max(x), {"x": fl.f16(N)}),
    "sum_integers": (lambda x: fl.sum(x), {"x": fl.i64(N)}),
    "sum_bytes": (lambda x: fl.sum(x), {"x": fl.i8(N)}),
    "sum_of_one_row": (lambda x: fl.sum(x, axis=1), {"x": F(1, N)}),
    "sum_by_rows": (lambda x: fl.sum(x), {"x": F(523, 601)}),
    "sum_by_rows_of_one_image": (lambda x: fl.sum(x, axis=(1, 2)), {"x": F(1, 523, 601)}),
    "sum_of_few_rows": (lambda x: fl.sum(x), {"x": F(3, 7, 20011)}),
    "sum_of_symbolic_rows": (lambda x: fl.sum(x), {"x": F("n", "m")}),
    "weights": (by_weights, {"x": F(211, 331), "g": F(211, 331)}),
    "weights_of_symbolic_rows": (by_weights, {"x": F("n", "m"), "g": F("n", "m")}),
    "weights_integers": (by_weights, {"x": fl.i32(211, 331), "g": fl.i32(211, 331)}),
    "weights_halves": (by_weights, {"x": fl.bf16(211, 331), "g": fl.bf16(211, 331)}),
    "windows": (by_windows, {"x": F(211, 331), "g": F(211, 331)}),
    "windows_of_symbolic_rows": (by_windows, {"x": F("n", "m"), "g": F("n", "m")}),
    "planes": (lambda x: fl.sum(x * x, axis=(1, 2)), {"x": F(1, 523, 601)}),
    "product": (lambda x: fl.prod(1 + x / 1000000), {"x": fl.f64(N)}),
    "mean": (lambda x: fl.mean(x), {"x": F(N)}),
    "dot": (lambda x, y: fl.matmul(x, y), {"x": F(N), "y": F(N)}),
    "largest": (lambda x: (fl.max(x), fl.min(x)), {"x": F(N)}),
    "largest_bytes": (lambda x: (fl.max(x), fl.min(x)), {"x": fl.u8(N)}),
    "largest_by_rows": (lambda x: fl.max(x), {"x": fl.i32(523, 601)}),
    "truth": (lambda x: (fl.any(x), fl.all(x)), {"x": fl.boolean(4 * N)}),
    "truth_by_rows": (lambda x: (fl.any(x), fl.all(x)), {"x": fl.boolean(1031, 1021)}),
    "best": (lambda x: (fl.argmax(x), fl.argmin(x)), {"x": F(N)}),
    "best_by_rows": (lambda x: fl.argmax(x), {"x": F(523, 601)}),
}
AWKWARD = [{"n": n, "m": m} for n, m in ((1, 1), (9, 5), (7, 300), (523, 601))]
SIZES: dict[str, list[dict[str, int]]] = dict.fromkeys(
    ("sum_of_symbolic_rows", "weights_of_symbolic_rows", "windows_of_symbolic_rows"), AWKWARD
)


def as_method(name: str, model: Callable[..., Any], inputs: dict[str, Any]) -> Callable[..., Any]:
    made: dict[str, Any] = {"model": model}
    exec(f"def {name}(self, {', '.join(inputs)}): return model({', '.join(inputs)})", made)
    made[name].__annotations__ = inputs
    return made[name]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def built() -> Iterator[tuple[Any, Any, Any]]:
    methods = {name: fl.method(as_method(name, model, inputs)) for name, (model, inputs) in CASES.items()}
    graph = fl.trace(type("Totals", (fl.Program,), methods)())
    compiled = driver.compile_graph(graph, driver.as_plan(None), cache=False)
    yield graph, compiled, driver.assemble(compiled.manifest("totals"), compiled.library, driver.parameter_arrays(graph))


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if "int" in dtype:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("name", CASES)
def test_it_is_shared_out_and_computes_the_algorithm(built: tuple[Any, Any, Any], name: str) -> None:
    graph, compiled, model = built
    kernels = [k.text() for k in compiled.variants[0].kernels if k.name.startswith(f"{name}_") and k.name[len(name) + 1].isdigit()]
    assert any("parallel for" in text for text in kernels)
    rng = np.random.default_rng(len(name))
    for sizes in SIZES.get(name, [{}]):
        shapes = [tuple(sizes.get(str(n), n) for n in graph[i].shape) for i in graph.method(name).inputs]
        inputs = [numbers(rng, graph[i].dtype, shape) for i, shape in zip(graph.method(name).inputs, shapes, strict=True)]
        wrong = [c for c in compare(graph, name, inputs, getattr(model, name)(*inputs)) if not c.ok]
        assert not wrong, f"{name} {sizes}: {wrong}"


@pytest.mark.parametrize("at", [0, 1, N // 2, N - 1])
def test_one_that_differs_is_found_wherever_it_is(built: tuple[Any, Any, Any], at: int) -> None:
    _, _, model = built
    x = np.zeros(N, np.float32)
    x[at] = 3
    assert model.largest(x)[0] == 3 and model.sum(x) == 3 and model.best(x)[0] == at
    x[at] = np.nan
    assert all(np.isnan(found) for found in (*model.largest(x), model.sum(x))) and model.best(x) == (at, at)
    t = np.zeros(4 * N, bool)
    t[at] = True
    assert model.truth(t) == (True, False) and model.truth(~t) == (True, False)
