"""What each rule of the default scheduler makes, compiled and compared with the oracle on extents that no tile or vector divides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import RunError
from fluorite.algo.extent import evaluate
from fluorite.algo.numerics import compare
from fluorite.codegen import driver

F = fl.f32
Case = tuple[Callable[..., Any], dict[str, Any], list[dict[str, int]]]
HERE: list[dict[str, int]] = [{}]


def matrix_vector(a: Any, x: Any) -> Any:
    return fl.stage(lambda i: fl.sum(lambda k: a[i, k] * x[k]), name="y")


def transposed(a: Any, b: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[j, k]), name="c")


def straight(a: Any, b: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[k, j]), name="c")


def from_columns(a: Any, b: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: a[k, i] * b[k, j]), name="c")


def widened(a: Any, b: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: fl.cast(a[i, k], "float32") * fl.cast(b[k, j], "float32")), name="c")


def scores(q: Any, k: Any) -> Any:
    product = fl.stage(lambda h, i, j: fl.sum(lambda d: q[h, i, d] * k[h, j, d]), name="product")
    return fl.stage(lambda h, i, j: fl.maximum(product[h, i, j] * 0.5, 0), name="out")


def convolution(**given: Any) -> Callable[..., Any]:
    return lambda x, w: fl.conv2d(x, w, **given)


def layer(x: Any, w: Any, b: Any) -> Any:
    return fl.relu(fl.conv2d(x, w, b, padding=1, stride=2))


SIZES = [{"n": n, "k": k} for n, k in ((1, 1), (3, 32), (17, 33), (32, 31), (65, 130))]
CASES: dict[str, Case] = {
    "matrix_vector": (matrix_vector, {"a": F("n", "k"), "x": F("k")}, SIZES),
    "matrix_vector_fixed": (matrix_vector, {"a": F(37, 100), "x": F(100)}, HERE),
    "matrix_vector_doubles": (matrix_vector, {"a": fl.f64(19, 64), "x": fl.f64(64)}, HERE),
    "matrix_vector_integers": (matrix_vector, {"a": fl.i32(19, 70), "x": fl.i32(70)}, HERE),
    "one_row": (transposed, {"a": F(1, 97), "b": F(53, 97)}, HERE),
    "five_rows": (transposed, {"a": F(5, 64), "b": F(30, 64)}, HERE),
    "eight_rows": (transposed, {"a": F(8, "k"), "b": F("n", "k")}, SIZES),
    "long_row": (straight, {"a": F(1, 300), "b": F(300, 1030)}, HERE),
    "seven_rows": (straight, {"a": F(7, 33), "b": F(33, 40)}, HERE),
    "deep": (straight, {"a": F(16, 300), "b": F(300, 16)}, HERE),
    "wide": (straight, {"a": F(16, 5), "b": F(5, 700)}, HERE),
    "thirteen_rows": (straight, {"a": F(13, 2), "b": F(2, 17)}, HERE),
    "one_column": (straight, {"a": F(70, 45), "b": F(45, 1)}, HERE),
    "one_column_across": (from_columns, {"a": F(45, 1100), "b": F(45, 1)}, HERE),
    "of_halves": (widened, {"a": fl.f16("n", "k"), "b": fl.f16("k", 33)}, SIZES),
    "of_bfloat16": (widened, {"a": fl.bf16(9, 40), "b": fl.bf16(40, 70)}, HERE),
    "scores": (scores, {"q": F(3, 2, 40), "k": F(3, 11, 40)}, HERE),
    "conv_7": (convolution(padding=1), {"x": F(1, 40, 7, 7), "w": F(50, 40, 3, 3)}, HERE),
    "conv_stride": (convolution(padding=3, stride=2), {"x": F(2, 3, 41, 39), "w": F(33, 3, 7, 7)}, HERE),
    "conv_1x1_stride": (convolution(stride=2), {"x": F(1, 70, 15, 15), "w": F(16, 70, 1, 1)}, HERE),
    "conv_symbolic": (convolution(padding=1, stride=2), {"x": F("n", 20, 19, 13), "w": F(32, 20, 3, 3)}, [{"n": 1}, {"n": 3}]),
    "conv_layer": (layer, {"x": F(1, 40, 13, 13), "w": F(34, 40, 3, 3), "b": F(34)}, HERE),
}


def best_rows(x: Any) -> Any:
    return fl.argmax(x, axis=1), fl.argmin(x, axis=1)


def best_of_all(x: Any) -> Any:
    return fl.argmax(x)


BEST: dict[str, Case] = {
    "best_rows": (best_rows, {"x": F("n", "k")}, SIZES),
    "best_rows_integers": (best_rows, {"x": fl.i8(5, 200)}, HERE),
    "best_rows_doubles": (best_rows, {"x": fl.f64(3, 50)}, HERE),
    "best_rows_truth": (best_rows, {"x": fl.boolean(4, 300)}, HERE),
    "best_of_all": (best_of_all, {"x": F(7, "k")}, [{"k": 1}, {"k": 64}, {"k": 100}]),
}
CASES |= BEST
TURNS: dict[str, Case] = {
    "turned": (lambda x: fl.transpose(x, (1, 0)), {"x": F("n", "k")}, SIZES),
    "turned_doubles": (lambda x: fl.transpose(x, (1, 0)), {"x": fl.f64(37, 21)}, HERE),
    "turned_bytes": (lambda x: fl.transpose(x, (1, 0)), {"x": fl.u8(131, 70)}, HERE),
    "channels_first": (lambda x: fl.transpose(x, (0, 3, 1, 2)), {"x": F(2, 5, 19, 7)}, HERE),
    "channels_last": (lambda x: fl.transpose(x, (0, 2, 3, 1)), {"x": F(2, 18, 5, 9)}, HERE),
    "both_ways": (lambda x, y: fl.stage(lambda i, j: x[i, j] + y[j, i]), {"x": F("n", "n"), "y": F("n", "n")}, [{"n": 1}, {"n": 37}]),
}
CASES |= TURNS
WINDOWS: dict[str, Case] = {
    "max_pool": (
        lambda x: fl.max_pool2d(x, 3, stride=2, padding=1),
        {"x": F(1, 2, "n", "k")},
        [{"n": 3, "k": 5}, {"n": 9, "k": 33}, {"n": 8, "k": 70}],
    ),
    "average_pool": (lambda x: fl.avg_pool2d(x, 2), {"x": fl.f64(2, 3, 10, 67)}, HERE),
    "average_pool_integers": (lambda x: fl.avg_pool2d(x, 2, stride=3), {"x": fl.i32(1, 3, 11, 50)}, HERE),
    "depthwise": (convolution(padding=1, stride=2, groups=6), {"x": F(1, 6, 15, 69), "w": F(6, 1, 3, 3)}, HERE),
}
CASES |= WINDOWS


@pytest.fixture(scope="module")
def built() -> Iterator[tuple[Any, Any]]:
    methods = {name: fl.method(as_method(name, model, inputs)) for name, (model, inputs, _) in CASES.items()}
    graph = fl.trace(type("Kernels", (fl.Program,), methods)())
    compiled = driver.compile_graph(graph, driver.as_plan(None), cache=False)
    yield graph, driver.assemble(compiled.manifest("kernels"), compiled.library, driver.parameter_arrays(graph))


def as_method(name: str, model: Callable[..., Any], inputs: dict[str, Any]) -> Callable[..., Any]:
    made: dict[str, Any] = {"model": model}
    exec(f"def {name}(self, {', '.join(inputs)}): return model({', '.join(inputs)})", made)
    made[name].__annotations__ = inputs
    return made[name]  # type: ignore[no-any-return]


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if dtype == "bool":
        return rng.random(shape) < 0.05
    if "int" in dtype:
        return rng.integers(-9, 10, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("name", CASES)
def test_it_computes_the_algorithm(built: tuple[Any, Any], name: str) -> None:
    graph, model = built
    rng = np.random.default_rng(len(name))
    for sizes in CASES[name][2]:
        inputs = tuple(numbers(rng, graph[i].dtype, tuple(evaluate(n, sizes) for n in graph[i].shape)) for i in graph.method(name).inputs)
        wrong = [c for c in compare(graph, name, inputs, getattr(model, name)(*inputs)) if not c.ok]
        assert not wrong, f"{name} {sizes}: {wrong}"


@pytest.mark.parametrize("name", ["best_rows", "best_of_all"])
@pytest.mark.parametrize("fill", ["ties", "nan", "lowest", "zeros"])
def test_the_first_of_equals_and_the_first_nan(built: tuple[Any, Any], name: str, fill: str) -> None:
    graph, model = built
    rng = np.random.default_rng(3)
    x = {
        "ties": rng.integers(0, 3, (7, 100)).astype(np.float32),
        "nan": np.where(rng.random((7, 100)) < 0.05, np.nan, rng.random((7, 100))).astype(np.float32),
        "lowest": np.where(rng.random((7, 100)) < 0.5, -np.inf, np.inf).astype(np.float32),
        "zeros": np.where(rng.random((7, 100)) < 0.5, -0.0, 0.0).astype(np.float32),
    }[fill]
    x[2] = -np.inf
    np.testing.assert_equal(getattr(model, name)(x), graph.run(x, method=name))


def test_there_is_no_best_of_nothing(built: tuple[Any, Any]) -> None:
    with pytest.raises(RunError, match="k is 0"):
        built[1].best_rows(np.zeros((3, 0), np.float32))
