"""The section `precision`: which tensors get narrower copies, what the rest of the graph then reads, and what is refused."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.graph import Graph
from fluorite.algo.stages import kind_of
from fluorite.schedule import ExecutionPlan, Precision, PrecisionOverride
from fluorite.schedule.narrowing import Narrowed, narrowed
from fluorite.schedule.precision import stored_types, types_of


def network(x: Any, w: Any, b: Any, v: Any) -> Any:
    h = fl.relu(x @ w + b)
    return fl.softmax(h @ v, axis=-1)


def graph() -> Graph:
    inputs = {"x": fl.f32("n", 6), "w": fl.f32(6, 5), "b": fl.f32(5), "v": fl.f32(5, 3)}
    return fl.trace(network, None, inputs=inputs)


def after(g: Graph, **keys: Any) -> Narrowed:
    types, problems = types_of(Precision(**keys), g)
    assert problems == []
    return narrowed(g, types)


def dtypes(g: Graph) -> dict[str, str]:
    return {s.path.removeprefix("network/"): s.dtype for s in g.stages}


def test_what_is_moved_through_memory_is_narrow_and_what_is_passed_on_keeps_its_bits() -> None:
    found = dtypes(after(graph(), compute="bf16").graph)
    assert {name for name, dtype in found.items() if dtype == "bfloat16"} == {
        "x/cast", "w/cast", "relu/cast", "v/cast", "matmul_2/cast", "softmax/exp/cast",
    }  # fmt: skip
    assert found["matmul"] == found["add"] == found["relu"] == found["softmax"] == "float32"


def test_products_of_narrow_operands_stay_products_that_add_up_in_float32() -> None:
    g = after(graph(), compute="bf16").graph
    product = next(s for s in g.stages if s.path == "network/matmul")
    assert product.dtype == "float32" and kind_of(product) == "matmul"
    assert product.text(g.path_of).startswith(
        "network/matmul(i:n, j:5): float32 = sum(k:6 | float32(network/x/cast[i, k]) * float32(network/w/cast[k, j]))"
    )


def test_nothing_wider_is_there_to_narrow() -> None:
    g = graph()
    assert after(g, compute="f32").graph is g


def test_kept_stages_and_overrides_by_selector() -> None:
    g = after(graph(), compute="bf16", keep=("softmax",)).graph
    assert not any(path.startswith("softmax") or path == "matmul_2/cast" for path, dtype in dtypes(g).items() if dtype == "bfloat16")
    g = after(graph(), overrides={"matmul_2": PrecisionOverride(compute="f16")}).graph
    assert {p: d for p, d in dtypes(g).items() if d != "float32"} == {"relu/cast": "float16", "v/cast": "float16"}


def test_the_longer_selector_wins() -> None:
    g = graph()
    types, problems = types_of(Precision(compute="bf16", keep=("softmax",), overrides={"softmax/exp": {"compute": "f16"}}), g)
    assert problems == []
    assert {g.path_of(i).removeprefix("network/"): to for i, to in types.items()} == {
        "matmul": "bfloat16", "add": "bfloat16", "relu": "bfloat16", "matmul_2": "bfloat16", "softmax/exp": "float16",
    }  # fmt: skip


def test_two_types_of_one_tensor_are_two_stages() -> None:
    def both(x: Any, w: Any) -> Any:
        return fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * w[k, j]), name="a"), fl.stage(
            lambda i, j: fl.sum(lambda k: x[i, k] * w[j, k]), name="b"
        )

    g = fl.trace(both, None, inputs={"x": fl.f32("n", 4), "w": fl.f32(4, 4)})
    found = after(g, overrides={"a": {"compute": "bf16"}, "b": {"compute": "f16"}}).graph
    assert {s.path: s.dtype for s in found.stages if "cast" in s.path} == {
        "both/x/cast": "bfloat16", "both/w/cast": "bfloat16", "both/x/cast_2": "float16", "both/w/cast_2": "float16",
    }  # fmt: skip


class Shared(fl.Program):
    def __init__(self) -> None:
        self.up = fl.nn.Linear(4, 3)

    @fl.method
    def predict(self, x: fl.f32[fl.Tensor, "n", 4]) -> Any:
        return self.up(x)

    @fl.method
    def score(self, x: fl.f32[fl.Tensor, "n", 4]) -> Any:
        return fl.sum(self.up(x), axis=1)


def test_parameters_are_cast_once_in_each_method() -> None:
    g = after(fl.trace(Shared()), compute="bf16").graph
    made = {s.path for s in g.stages if s.op == "cast"}
    assert {"predict/up/w/cast", "predict/up/b/cast", "score/up/w/cast", "score/up/b/cast"} <= made
    assert {t.path: t.dtype for t in g.leaves if t.kind == "parameter"} == {"up/w": "float32", "up/b": "float32"}


def test_parameters_can_be_stored_in_fewer_bits() -> None:
    g = fl.trace(Shared())
    found = narrowed(g, {}, stored_types(Precision(parameters="bf16"), g))
    assert {t.dtype for t in found.graph.leaves if t.kind == "parameter"} == {"bfloat16"}
    assert not any(s.op == "cast" for s in found.graph.stages)
    assert set(found.casts.reads.values()) == {"bfloat16"}


def test_a_program_of_float64_is_computed_in_float32_and_returns_float64() -> None:
    def wide(x: Any, y: Any) -> Any:
        z = fl.exp(x)
        return {"total": fl.sum(z, axis=1), "product": fl.sum(z @ y), "best": fl.argmax(z, axis=1)}

    g = fl.trace(wide, None, inputs={"x": fl.f64("n", 5), "y": fl.f64(5, 3)})
    found = after(g, compute="f32").graph
    outputs = {found.path_of(i): found[i].dtype for i in found.methods[0].outputs}
    assert outputs == {"wide/sum": "float64", "wide/sum_2": "float64", "wide/argmax": "int32"}
    assert {s.dtype for s in found.stages if s.id not in found.outputs} == {"float32"}
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 5)), rng.normal(size=(5, 3))
    for name, value in found.run(x, y).items():
        assert value.dtype == g.run(x, y)[name].dtype
        np.testing.assert_allclose(value, g.run(x, y)[name], rtol=1e-5)


def test_the_steps_of_a_recurrence_keep_their_type() -> None:
    def running(x: Any, w: Any) -> Any:
        return fl.scan(lambda h, xt: (h * 0.5 + xt, h * 0.5 + xt), fl.stage(lambda j: w[0, j]), x @ w)[1]

    g = fl.trace(running, None, inputs={"x": fl.f32("t", 4), "w": fl.f32(4, 4)})
    found = after(g, compute="bf16").graph
    assert all(s.dtype == "float32" for s in found.stages if s.clock is not None)
    assert any(s.path.endswith("x/cast") for s in found.stages)


def test_sorting_and_boundaries_stay_what_they_are() -> None:
    def model(x: Any, w: Any) -> Any:
        return fl.sort(x, axis=1), fl.conv2d(fl.reshape(x, (1, 1, 6, 8)), w, padding=1)

    g = fl.trace(model, None, inputs={"x": fl.f32(6, 8), "w": fl.f32(2, 1, 3, 3)})
    kinds = sorted(kind_of(s) for s in g.stages)
    found = after(g, compute="bf16").graph
    assert sorted(kind_of(s) for s in found.stages if s.op != "cast") == kinds


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("section", "code", "says"),
    [
        ("{compute: int8}", "P903", "precision: compute: int8 is not built yet"),
        ("{compute: tf32}", "P903", "processors have none of it"),
        ("{parameters: f8e4m3}", "P903", "precision: parameters: f8e4m3 is not built yet"),
        ("{accumulate: bf16}", "P903", "taken in float32"),
        ("{overrides: {out: {compute: int8}}}", "P903", "overrides: out: compute: int8"),
        ("{overrides: {out: {accumulate: f16}}}", "P903", "overrides: out: accumulate: f16"),
        ("{gradients: int8}", "P903", "gradients: int8 is not built yet"),
        ("{optimizer: f8e4m3}", "P903", "optimizer: f8e4m3 is not built yet"),
        ("{reduce: bf16}", "P903", "nothing is sent between devices yet"),
        ("{loss_scale: 0}", "P009", "loss_scale: 0 is no scale"),
        ("{loss_scale: 1e40}", "P009", "loss_scale: 1e+40 is no scale"),
        ("{loss_scale: -2}", "P009", "loss_scale: -2 is no scale"),
        ("{loss_scale: dynamik}", "P008", "dynamic"),
        ("{calibrate: x.npz}", "P903", "it is for int8"),
        ("{compute: f64}", "P008", "f32, tf32, bf16, f16"),
        ("{overrides: {out: {types: bf16}}}", "P006", 'no key "types"'),
    ],
)
def test_what_is_refused(section: str, code: str, says: str) -> None:
    with pytest.raises(PlanError) as caught:
        plan = ExecutionPlan.from_yaml(f"precision: {section}\n", "p.yaml")
        raise PlanError(plan.problems())
    (problem,) = caught.value.problems
    assert problem.code == code and problem.line == 1 and says in problem.text()
    assert problem.try_


def test_selectors_that_match_nothing_or_disagree() -> None:
    precision = Precision(compute="bf16", keep=("softmx", "relu"), overrides={"relu": {"compute": "f16"}})
    problems = types_of(precision, graph())[1]
    assert [p.code for p in problems] == ["P101", "P103"]
    assert "softmax" in problems[0].text() and "network/relu" in problems[1].text()


@pytest.mark.parametrize("allow", ["exact", "reassociates"])
def test_an_explicit_ceiling_below_precision_refuses_it(allow: str) -> None:
    plan = ExecutionPlan.from_yaml(f"numerics: {{allow: {allow}}}\nprecision: {{compute: bf16}}\n", "p.yaml")
    (problem,) = plan.problems()
    assert (problem.code, problem.line) == ("P301", 2) and f"allows {allow}" in problem.text()


@pytest.mark.parametrize("text", ["precision: {compute: bf16}\n", "numerics: {allow: precision}\nprecision: {compute: bf16}\n"])
def test_the_class_need_not_be_said(text: str) -> None:
    assert ExecutionPlan.from_yaml(text).problems() == []
