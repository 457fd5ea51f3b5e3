"""Plans with `precision`, compiled: within the tolerance that follows from the types, on random graphs too, and with less memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import AlgorithmError, RunError
from fluorite.codegen.checking import check
from fluorite.codegen.driver import build, in_types
from fluorite.codegen.explaining import explain
from fluorite.schedule import ExecutionPlan, Numerics, Precision
from fuzz.programs import program


class Net(fl.Program):
    def __init__(self, width: int = 40) -> None:
        self.up, self.norm, self.down = fl.nn.Linear(24, width), fl.nn.LayerNorm(width), fl.nn.Linear(width, 7)

    @fl.method
    def predict(self, x: fl.f32[fl.Tensor, "n", 24]) -> Any:
        return fl.softmax(self.down(self.norm(fl.gelu(self.up(x)))), axis=-1)


PRECISIONS = [
    Precision(compute="bf16"),
    Precision(compute="f16"),
    Precision(parameters="bf16"),
    Precision(compute="bf16", parameters="f16"),
    Precision(compute="bf16", keep=("softmax", "norm")),
    Precision(overrides={"up": {"compute": "f16"}}),
]


@pytest.mark.parametrize("precision", PRECISIONS, ids=repr)
def test_a_network_in_narrow_types(precision: Precision) -> None:
    report = check(Net(), ExecutionPlan(precision=precision), extents={"n": 5})
    assert report.ok, report.text()
    assert report.numerics == "precision"
    assert {c.result.path for c in report.cases} == {"predict/softmax", "predict/softmax as rounded"}


def products(x: fl.f32[fl.Tensor, "n", 33], w: fl.f32[fl.Tensor, 33, 17]) -> Any:
    return x @ w


def test_the_tolerance_follows_from_the_type_and_is_not_empty() -> None:
    """A product in bfloat16 is allowed what two roundings of its operands do, and no more: one in float8 would be refused."""
    graph = fl.trace(products)
    casts = in_types(ExecutionPlan(precision=Precision(compute="bf16")), graph).casts
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(6, 33)).astype("float32"), rng.normal(size=(33, 17)).astype("float32")

    def off(dtype: Any) -> Any:
        return np.float32(x.astype(dtype)) @ np.float32(w.astype(dtype))

    import ml_dtypes

    assert all(c.ok for c in fl.algo.numerics.compare(graph, None, (x, w), off(ml_dtypes.bfloat16), casts=casts))
    assert not any(c.ok for c in fl.algo.numerics.compare(graph, None, (x, w), off(ml_dtypes.bfloat16)))
    assert not any(c.ok for c in fl.algo.numerics.compare(graph, None, (x, w), off(ml_dtypes.float8_e4m3fn), casts=casts))


@pytest.mark.parametrize("seed", range(24))
def test_random_graphs_stay_within_the_derived_tolerance(seed: int) -> None:
    rng = random.Random(seed)
    try:
        graph, sizes = program(rng)
    except AlgorithmError:
        pytest.skip("a program that the language refuses")
    keep = tuple(s.path for s in rng.sample(graph.stages, 1)) if rng.random() < 0.3 else ()
    precision = Precision(compute=rng.choice(["bf16", "bf16", "f32"]), keep=keep)
    try:
        report = check(graph, ExecutionPlan(precision=precision), extents=sizes)
    except RunError:
        pytest.skip("extents that the program refuses")
    assert report.ok, report.text()


def test_a_position_cast_to_a_type_stays_of_that_type() -> None:
    """Positions have no type of their own: the cast that gives them one is no step between two numbers of one type."""

    def model(x: fl.f32[fl.Tensor, 5, "n"]) -> Any:
        at = fl.stage(lambda j: fl.cast(j // 2, fl.i32), name="at", extents={"j": x.shape[1]})
        half = fl.stage(lambda i, j: x[i, j] * (fl.cast(j * 0.5, fl.f32) + fl.cast(at[j], fl.f32)), name="half")
        return {"at": at, "half": half, "out": fl.stage(lambda i, j: half[i, at[j]] + half[0, j], name="out")}

    report = check(fl.trace(model), ExecutionPlan(precision=Precision(compute="bf16")), extents={"n": 7})
    assert report.ok, report.text()


def test_an_overflow_of_float16_is_found() -> None:
    def squares(x: fl.f32[fl.Tensor, "n"]) -> Any:
        big = fl.stage(lambda i: x[i] * x[i] * 1e4, name="big")
        return fl.stage(lambda i: big[i] + big[0], name="out")

    graph = fl.trace(squares)
    x = np.arange(8, dtype="float32")
    plan = ExecutionPlan(precision=Precision(compute="f16"))
    report = check(graph, plan, inputs={"x": x})
    assert not report.ok and any("off by inf" in c.result.text() for c in report.cases if not c.ok)
    assert check(graph, plan.replace(precision=Precision(compute="bf16")), inputs={"x": x}).ok


def test_parameters_in_fewer_bits_take_less_memory_and_are_given_in_either_type(tmp_path: Path) -> None:
    usual, narrow = (fl.compile(Net(640), ExecutionPlan(precision=p)) for p in (None, Precision(compute="bf16", parameters="bf16")))
    bytes_of = {m: sum(a.nbytes for a in m.parameters.values()) for m in (usual, narrow)}
    assert bytes_of[narrow] * 2 == bytes_of[usual]
    assert usual.memory({"n": 8}) - narrow.memory({"n": 8}) >= bytes_of[usual] // 2
    value = np.full((24, 640), 1 + 2.0**-12, "float32")
    narrow.parameters["up/w"] = value
    assert narrow.parameters["up/w"].dtype.name == "bfloat16" and (narrow.parameters["up/w"] == 1).all()
    with pytest.raises(fl.RunError, match="up/w is float64, expected bfloat16"):
        narrow.parameters["up/w"] = value.astype("float64")
    usual.save(tmp_path / "weights.safetensors")
    narrow.load(tmp_path / "weights.safetensors")
    x = np.random.default_rng(0).normal(size=(8, 24)).astype("float32")
    assert narrow.predict(x).dtype == np.float32
    np.testing.assert_allclose(narrow.predict(x), usual.predict(x), atol=0.02)


def test_the_artefact_stores_what_the_plan_says(tmp_path: Path) -> None:
    for name, precision in (("usual", None), ("narrow", Precision(parameters="bf16"))):
        build(Net(), ExecutionPlan(precision=precision), tmp_path / name)
    sizes = {name: (tmp_path / name / "weights.safetensors").stat().st_size for name in ("usual", "narrow")}
    assert sizes["narrow"] < 0.7 * sizes["usual"]
    model = fl.load(tmp_path / "narrow")
    assert model.manifest["numerics"]["class"] == "precision"
    x = np.ones((3, 24), "float32")
    np.testing.assert_allclose(model.predict(x), fl.load(tmp_path / "usual").predict(x), atol=0.02)


def test_casts_are_stages_that_a_plan_can_name() -> None:
    plan = ExecutionPlan(precision=Precision(compute="bf16"), schedule={"x/cast": ["compute_inline"], "w/cast": [{"vectorize": "i1"}]})
    graph = fl.trace(products)
    assert check(graph, plan.replace(schedule={"x/cast": plan.schedule["x/cast"]}), extents={"n": 5}).ok
    found = explain(graph, ExecutionPlan(precision=Precision(compute="bf16")), {"n": 8})
    assert {"products/x/cast", "products/w/cast"} <= set(found.decided_by) and found.numerics == "precision"


def test_a_plan_of_another_ceiling_is_refused_by_check() -> None:
    report = check(products, ExecutionPlan(precision=Precision(compute="bf16"), numerics=Numerics(allow="exact")))
    assert [p.code for p in report.problems] == ["P301"]


@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("precision", [Precision(compute="bf16"), Precision(compute="bf16", keep=("**/while/carry",))], ids=repr)
def test_what_a_loop_carries_is_rounded_after_the_loop_for_its_readers_there(turns: int, dtype: str, precision: Precision) -> None:
    """Also what is read inside at every turn, and in a loop around; a type of its own that the body does not have would be no carry."""

    def f(x: fl.Tensor, w: fl.Tensor) -> Any:
        def body(c: Any) -> Any:
            inner = fl.while_loop(lambda d: d[0] < c[0], lambda d: (d[0] + 1, d[1] * 0.5 + fl.roll(d[1], 1, axis=1)), (0, c[1]))
            return c[0] + 1, fl.tanh(inner[1] @ w[:, :6] + c[1])

        last = fl.while_loop(lambda c: c[0] < turns, body, (0, x))[1]
        return last, last @ w

    given = {"x": fl.Spec(dtype, ("n", "m"), (4, 6)), "w": fl.Spec(dtype, ("m", "k"), (6, 7))}
    graph = fl.trace(f, inputs=given)
    rng = np.random.default_rng(2)
    args = [rng.normal(size=s.shape).astype(dtype) for s in given.values()]
    found, meant = fl.compile(graph, ExecutionPlan(precision=precision))(*args), graph.run(*args)
    for a, b in zip(found, meant, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, atol=0.06)
