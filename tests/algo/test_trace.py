"""Names, scopes, hoisted reductions, constants and result trees of a trace."""

from __future__ import annotations

import functools
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.building import constant, function, operator, scope
from fluorite.algo.errors import AlgorithmError
from fluorite.algo.expr import unary
from fluorite.algo.ordering import ordered
from fluorite.algo.program import Module, Program, method, param, trace
from fluorite.algo.reducing import reduce
from fluorite.algo.stages import Stage, redirect
from fluorite.algo.tensor import Bounded, Tensor
from fluorite.algo.trace import stage
from fluorite.algo.types import boolean, f32, i32, spec

X = {"x": f32("n")}


def double(x: Any, name: str | None = None) -> Any:
    return stage(lambda i: x[i] * 2, name=name)


def paths(fn: Any, **inputs: Any) -> list[str]:
    return [s.path for s in trace(fn, inputs=inputs or X).stages]


# ---------------------------------------------------------------- names
def test_a_stage_is_called_what_it_says_else_after_its_function() -> None:
    def model(x: Any) -> Any:
        return double(double(x, "first"))

    assert paths(model) == ["model/first", "model/model"]


def test_repeated_names_are_numbered() -> None:
    assert paths(lambda x: double(double(double(x, "a"), "a"), "a")) == ["lambda/a", "lambda/a_2", "lambda/a_3"]


def test_scopes_functions_and_operators() -> None:
    @function
    def inner(x: Any) -> Any:
        return double(x, "d")

    @operator
    def once(x: Any) -> Any:
        return double(x)

    @operator
    def twice(x: Any) -> Any:
        return double(double(x, "one"), "two")

    def model(x: Any) -> Any:
        with scope("block"):
            x = inner(x)
        return twice(once(once(inner(x)), name="named"))

    assert paths(model) == ["model/block/inner/d", "model/inner/d", "model/once", "model/named", "model/twice/one", "model/twice/two"]


def test_an_operator_without_a_stage_leaves_no_name() -> None:
    @operator
    def view(x: Any) -> Any:
        return Bounded(x, "edge")

    @operator
    def view_(x: Any) -> Any:
        return double(x)

    assert paths(lambda x: view_(view(x))) == ["lambda/view"]


def test_named_renames_the_stage() -> None:
    assert paths(lambda x: double(double(x, "a").named("half"), "b")) == ["lambda/half", "lambda/b"]
    graph = trace(lambda x: double(x).named("out"), inputs=X)
    assert [s.path for s in graph.stages] == ["lambda/out"]
    with pytest.raises(AlgorithmError) as caught:
        trace(lambda x: x.named("y"), inputs=X)
    assert caught.value.problems[0].code == "A114"


@pytest.mark.parametrize("name", ["grad", "update", "scan"])
def test_reserved_scopes_are_refused(name: str) -> None:
    def model(x: Any) -> Any:
        with scope(name):
            return double(x)

    with pytest.raises(AlgorithmError) as caught:
        trace(model, inputs=X)
    assert caught.value.problems[0].code == "A110"


def test_stages_know_their_line_and_operator() -> None:
    s = trace(double, inputs=X).stages[0]
    assert s.source.startswith("test_trace.py:") and s.op == "double" and s.role == "forward" and s.facts["kind"] == "elementwise"


# ---------------------------------------------------------------- stages
def test_reductions_inside_expressions_become_stages_shared_when_equal() -> None:
    def softmax(x: Any) -> Any:
        return stage(
            lambda i, j: (
                unary("exp", x[i, j] - reduce("max", lambda k: x[i, k]))
                / reduce("sum", lambda n: unary("exp", x[i, n] - reduce("max", lambda m: x[i, m])))
            )
        )

    graph = trace(softmax, inputs={"x": f32("n", "m")})
    assert [(s.path, s.reduction.kind if s.reduction else None, s.axis_names) for s in graph.stages] == [
        ("softmax/softmax/max", "max", ("i",)),
        ("softmax/softmax/sum", "sum", ("i",)),
        ("softmax/softmax", None, ("i", "j")),
    ]


def test_a_reduction_at_the_root_belongs_to_the_stage() -> None:
    (s,) = trace(
        lambda a, b: stage(lambda i, j: reduce("sum", lambda k: a[i, k] * b[k, j])), inputs={"a": f32("m", "n"), "b": f32("n", "p")}
    ).stages
    assert s.reduction is not None and [a.name for a in s.reduce_axes] == ["k"] and s.facts["kind"] == "matmul"


@pytest.mark.parametrize(
    ("kind", "given", "result"),
    [
        ("sum", i32("n"), "int32"),
        ("sum", boolean("n"), "int32"),
        ("prod", f32("n"), "float32"),
        ("any", f32("n"), "bool"),
        ("argmax", f32("n"), "int32"),
        ("max", boolean("n"), "bool"),
    ],
)
def test_types_of_reductions(kind: str, given: Any, result: str) -> None:
    assert trace(lambda x: stage(lambda: reduce(kind, lambda k: x[k])), inputs={"x": given}).stages[-1].dtype == result


def test_a_dtype_casts_the_result() -> None:
    assert trace(lambda x: stage(lambda i: x[i], dtype="int8"), inputs=X).stages[0].dtype == "int8"
    s = trace(lambda x: stage(lambda: reduce("sum", lambda k: x[k]), dtype="float64"), inputs=X).stages[0]
    assert s.dtype == "float64" and s.text().count("float64(") == 1


def test_a_keyword_axis_drops_its_underscore() -> None:
    assert trace(lambda x: stage(lambda in_: x[in_]), inputs=X).stages[0].axis_names == ("in",)


def test_constants_are_leaves_once() -> None:
    table = np.float32([1, 2, 3])

    def model(x: Any) -> Any:
        return stage(lambda i: x[i] + constant(table)[i] * constant(table)[i], extents={"i": 3})

    graph = trace(model, inputs={"x": f32(3)})
    assert [leaf.kind for leaf in graph.leaves] == ["input", "constant"] and graph.run(np.float32([0, 0, 0])).tolist() == [1, 4, 9]


def test_dead_stages_and_constants_are_dropped() -> None:
    def model(x: Any) -> Any:
        double(x, "unused")
        constant(np.zeros(3))
        return double(x, "used")

    graph = trace(model, inputs=X)
    assert [s.path for s in graph.stages] == ["model/used"] and [leaf.kind for leaf in graph.leaves] == ["input"]


@pytest.mark.parametrize(
    ("code", "fn"),
    [
        ("A102", lambda x: stage(lambda i: x[i] if x[i] > 0 else 0.0)),
        ("A103", lambda x: stage(lambda i: "text")),
        ("A105", lambda x: stage(lambda i: x + 1, extents={"i": 2})),
        ("A115", lambda x: reduce("sum", lambda k: x[k])),
        ("A130", lambda x: None),
        ("A130", lambda x: object()),
        ("A131", lambda x: Bounded(x, "edge")),
        ("A111", lambda x: stage(lambda i, i_: x[i])),
    ],
)
def test_refused(code: str, fn: Any) -> None:
    with pytest.raises(AlgorithmError) as caught:
        trace(fn, inputs=X)
    assert caught.value.problems[0].code == code


def test_outside_a_trace_nothing_is_made() -> None:
    @function
    def algorithm(x: Any) -> Any:
        return double(x)

    for wrong in (lambda: stage(lambda: 1), lambda: algorithm(None)):
        with pytest.raises(AlgorithmError) as caught:
            wrong()
        assert caught.value.problems[0].code == "A109"


# ---------------------------------------------------------------- graphs
def test_producers_come_first_whatever_the_order() -> None:
    graph = trace(lambda x: double(double(double(x, "a"), "b"), "c"), inputs=X)
    assert [s.name for s in ordered(reversed(graph.stages))] == ["a", "b", "c"]
    assert graph.with_stages(reversed(graph.stages)).text() == graph.text()


def test_redirected_stages_read_elsewhere() -> None:
    graph = trace(lambda x: double(double(x, "a"), "b"), inputs=X)
    a, b = graph.stages
    moved: Stage = redirect(b, {a.id: graph.leaves[0].id})
    assert moved.sources == (graph.leaves[0].id,) and redirect(b, {}) is b
    assert graph.with_stages([moved]).run([1.0, 2.0]).tolist() == [2, 4]


def test_the_graph_prints_its_program() -> None:
    text = trace(double, inputs=X).text()
    assert text.splitlines()[:3] == ["graph double", "  input double/x: float32[n]", "  method double(x)"]
    assert "double/double(i:n): float32 = double/x[i] * 2.0" in text and text.splitlines()[-1] == "    return double/double"


# ---------------------------------------------------------------- programs
class Layer(Module):
    def __init__(self, n: int) -> None:
        self.scale = param(init=2.0, n=n)

    def forward(self, x: Any) -> Any:
        return stage(lambda i: x[i] * self.scale[i], name="scaled")


class Net(Program):
    def __init__(self) -> None:
        self.layers = [Layer(3), Layer(3)]
        self.heads = {"a": Layer(3)}
        self.shared = self.layers[0]

    @method
    def predict(self, x: f32(3)) -> Any:  # type: ignore[valid-type]
        for layer in self.layers:
            x = layer(x)
        return {"head": self.heads["a"](x), "again": self.shared(x)}

    @method
    def other(self, x: f32(3)) -> Any:  # type: ignore[valid-type]
        return self.layers[1](x)


def test_programs_name_parameters_and_scopes_by_attribute() -> None:
    graph = trace(Net)
    assert [leaf.path for leaf in graph.leaves if leaf.kind == "parameter"] == ["layers.0/scale", "layers.1/scale", "heads.a/scale"]
    assert [s.path for s in graph.stages] == [
        "predict/layers.0/scaled",
        "predict/layers.1/scaled",
        "predict/heads.a/scaled",
        "predict/layers.0_2/scaled",
        "other/layers.1/scaled",
    ]
    found = graph.run(np.ones(3, np.float32), method="predict")
    assert found["head"].tolist() == [8] * 3 and found["again"].tolist() == [8] * 3
    assert [m.name for m in trace(Net, method="other").methods] == ["other"]


def test_declarations() -> None:
    assert spec(f32[Tensor, "n", 13]) == f32("n", 13) and str(f32("batch=n", "features=13")) == "float32[n, 13]"
    assert f32("batch=n").axis_names == ("batch",) and f32(3).axis_names == (None,)
    for wrong in (-1, "1n", "a=b=c", ""):
        with pytest.raises(AlgorithmError) as caught:
            f32(wrong)
        assert caught.value.problems[0].code == "A116"
    with pytest.raises(AlgorithmError, match=r"fl.f32\[fl.Tensor, 'h', 13\]"):
        f32["h", 13]  # the first word would be lost


class Empty(Program):
    pass


async def waiting() -> Any: ...


@function
def endless(x: Any) -> Any:
    return x if fl.sum(x) > 3 else endless(x + 1)


def yielding(x: Any) -> Any:
    yield x


@pytest.mark.parametrize(
    ("code", "fn"),
    [
        ("A125", lambda: trace(double)),
        ("A126", lambda: trace(lambda x: double(x), inputs={"x": f32("n"), "y": f32("n")})),
        ("A127", lambda: trace(Empty)),
        ("A128", lambda: trace(3)),
        ("A128", lambda: trace(len)),
        ("A128", lambda: trace(dict)),
        ("A128", lambda: trace(fl.nn.Linear(2, 3))),
        ("A130", lambda: trace(waiting)),
        ("A130", lambda: trace(yielding, inputs={"x": f32(2)})),
        ("A136", lambda: fl.method(staticmethod(waiting))),
        ("A137", lambda: trace(double, inputs={"x": np.ones((2, 3), np.float32)})),
        ("A137", lambda: trace(double, inputs={"x": None})),
        ("A138", lambda: trace(endless, inputs={"x": f32(2)})),
        ("A137", lambda: trace(double, inputs=[f32(2)])),
        ("A129", lambda: trace(Net, method="learn")),
        ("A121", lambda: param(shape=(2,), n=2)),
        ("A122", lambda: param(init=np.zeros(3), n=2)),
    ],
)
def test_models_that_are_refused(code: str, fn: Any) -> None:
    with pytest.raises(AlgorithmError) as caught:
        fn()
    assert caught.value.problems[0].code == code


def test_a_value_in_the_place_of_a_declaration_is_told_as_one() -> None:
    with pytest.raises(AlgorithmError, match=r"an array of int32\}\n(.|\n)*inputs=\{'x': fl.i32\(2, 3\)\}"):
        trace(double, inputs={"x": np.ones((2, 3), np.int32)})  # type: ignore[dict-item]
    with pytest.raises(AlgorithmError, match=r"test_trace.py:\d+: error\[A125\]: parameter 'x'"):
        trace(fl.grad(double))


def test_what_can_be_called_is_a_model() -> None:
    class Scaled:
        def __call__(self, x: f32("n")) -> Any:  # type: ignore[valid-type]
            return x * 3 if fl.sum(x) > 0 else x

    def power(n: int, x: f32("n"), y: float) -> Any:  # type: ignore[valid-type]
        return x**n + y if fl.sum(x) > 0 else x

    for model, name, result in ((Scaled(), "Scaled", [3, 6]), (functools.partial(power, 2, y=1.0), "power", [2, 5])):
        graph = trace(model)
        assert graph.name == name
        np.testing.assert_array_equal(graph.run(np.float32([1, 2])), np.float32(result))


def test_a_function_of_functions_is_a_model() -> None:
    doubled = fl.trace(fl.vmap(lambda x: x * 2), inputs={"x": fl.f32("n")})
    np.testing.assert_array_equal(doubled.run(np.float32([1, 2])), np.float32([2, 4]))
    ruled = fl.trace(fl.custom_vjp(lambda x: x, lambda x: (x * 3, None), lambda _, g: (g,)), inputs={"x": fl.f32("n")})
    np.testing.assert_array_equal(ruled.run(np.float32([1, 2])), np.float32([3, 6]))
    with pytest.raises(fl.AlgorithmError, match="for it"):
        fl.trace(lambda x: fl.vmap(lambda x, *, k: x * k)(x, k=2), inputs={"x": fl.f32("n")})
