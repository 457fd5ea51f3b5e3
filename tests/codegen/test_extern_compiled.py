"""fl.extern in compiled models: functions called between kernels, in this process and from a folder; plans, state, failures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.codegen import driver
from fluorite.codegen.tuning.graph_text import graph_data, graph_of
from fluorite.codegen.tuning.space import open_stages
from fluorite.schedule import ExecutionPlan

Array = np.ndarray[Any, Any]


def sorted_rows(x: Array) -> Array:
    return np.sort(x, axis=-1)


def ranks(x: Array, shift: Array) -> Array:
    return np.argsort(np.argsort(x, axis=-1), axis=-1) + shift


def model(x: Any, p: Any) -> Any:
    """Externs between kernels, after one another, twice on one tensor, in a branch that is taken or not, and differentiated."""

    def pull(inputs: tuple[Any, ...], g: Any) -> Any:
        order = fl.extern(ranks, x.shape, fl.i64, inputs[0], 0, name="order")
        return (fl.take_along_axis(g, order, axis=1),)

    def loss(x: Any) -> Any:
        return fl.sum(fl.extern(sorted_rows, x.shape, x.dtype, x * x, vjp=pull, name="rows") * fl.cast(fl.arange(x.shape[1]), fl.f32))

    y = (fl.exp(x) + 1).named("more")
    s = fl.extern(sorted_rows, x.shape, x.dtype, y, name="once")
    t = fl.extern(sorted_rows, x.shape, x.dtype, s - y, name="twice")
    r = fl.extern(ranks, x.shape, fl.i64, y, 3, name="ranks")
    c = fl.cond(p, lambda: fl.extern(np.negative, x.shape, x.dtype, t, name="minus") + 1, lambda: t * 2)
    return {"t": t, "r": r, "c": c, "g": fl.grad(loss)(x), "s": s}


GIVEN = {"x": fl.f32("h", "w"), "p": fl.boolean()}


@pytest.fixture(scope="module")
def traced() -> fl.Graph:
    return fl.trace(model, inputs=GIVEN)


@pytest.fixture(scope="module")
def compiled(traced: fl.Graph) -> Any:
    return fl.compile(traced)


def data(h: int, w: int) -> Array:
    return np.random.default_rng(h * w).standard_normal((h, w)).astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (4, 64), (1, 19), (130, 131)])
def test_agrees_with_the_oracle(traced: fl.Graph, compiled: Any, shape: tuple[int, int]) -> None:
    for p in (False, True):
        args = (data(*shape), np.array(p))
        for found in compare(traced, None, args, compiled(*args)):
            assert found.ok, found.text()
    out = {k: np.zeros_like(v) for k, v in compiled(*args).items()}
    compiled.run(*args, out=out)
    np.testing.assert_array_equal(out["r"], compiled(*args)["r"])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float64"])
def test_every_type(dtype: str) -> None:
    g = fl.trace(
        lambda x: fl.extern(lambda x: x[::-1], x.shape, x.dtype, x, name="turned"), inputs={"x": fl.Spec(dtype, ("n",), (fl.extent("n"),))}
    )
    x = np.asarray(data(1, 9)[0] * 3).astype(np.dtype(g.leaves[0].dtype) if dtype != "bfloat16" else __import__("ml_dtypes").bfloat16)
    np.testing.assert_array_equal(np.asarray(fl.compile(g)(x)), x[::-1])


def test_what_is_called_of_parameters_alone_is_called_once() -> None:
    calls: list[int] = []

    def inverse(w: Array) -> Array:
        calls.append(1)
        return np.linalg.inv(w)

    class Net(fl.Program):
        def __init__(self) -> None:
            self.w = fl.param(init=np.diag([1.0, 2, 4]).astype(np.float32), i=3, j=3)

        @fl.method
        def run(self, x: fl.f32[fl.Tensor, "n", 3]) -> Any:
            return x @ fl.extern(inverse, (3, 3), fl.f32, self.w, name="inverse")

    made = fl.compile(Net())
    x = data(2, 3)
    for _ in range(3):
        np.testing.assert_allclose(made.run(x), x / np.array([1, 2, 4]), rtol=1e-6)
    assert len(calls) == 1
    made.parameters["w"] = np.eye(3, dtype=np.float32)
    np.testing.assert_allclose(made.run(x), x, rtol=1e-6)
    assert len(calls) == 2


def test_a_failing_function_leaves_the_state_as_it_was() -> None:
    fail: list[int] = []

    def careful(x: Array) -> Array:
        if fail:
            raise ValueError("no")
        return x * 2

    class Counter(fl.Program):
        def __init__(self) -> None:
            self.a = fl.state(init=0, k=4)
            self.b = fl.state(init=0, k=4)

        @fl.method
        def step(self, x: fl.f32[fl.Tensor, 4]) -> Any:
            self.a = self.a + x
            self.b = self.b + fl.extern(careful, (4,), fl.f32, x, name="double")
            return self.a + self.b

    made, x = fl.compile(Counter()), np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(made.step(x), 3 * x)
    fail.append(1)
    with pytest.raises(fl.RunError, match=r"the function of step/double raised ValueError: no"):
        made.step(x)
    np.testing.assert_array_equal(made.parameters["a"], x)
    np.testing.assert_array_equal(made.parameters["b"], 2 * x)
    fail.clear()
    np.testing.assert_array_equal(made.step(x), 6 * x)


def test_a_result_of_another_shape_is_refused() -> None:
    made = fl.compile(fl.trace(lambda x: fl.extern(lambda x: x[:2], x.shape, x.dtype, x, name="short"), inputs={"x": fl.f32("n")}))
    np.testing.assert_array_equal(made(np.ones(2, np.float32)), [1, 1])
    with pytest.raises(fl.RunError, match=r"the function of lambda/short returned float32\[2\]"):
        made(np.ones(3, np.float32))
    np.testing.assert_array_equal(made(np.ones(2, np.float32)), [1, 1])


def eigen(x: Any) -> Any:
    n = x.shape[0]
    values, vectors = fl.extern(np.linalg.eigh, [(n,), (n, n)], fl.f32, x + fl.matrix_transpose(x), name="eigh")
    return {"restored": (vectors * values) @ fl.matrix_transpose(vectors), "inverse": fl.linalg.inv(x), "largest": fl.max(values)}


def test_several_results(tmp_path: Path) -> None:
    g = fl.trace(eigen, inputs={"x": fl.f32("n", "n")})
    again = graph_of(json.loads(json.dumps(graph_data(g))), {})
    made = fl.compile(g)
    driver.build(g, None, tmp_path / "made")
    loaded = fl.load(tmp_path / "made")
    for n in (1, 2, 17):
        x = data(n, n) + 3 * np.eye(n, dtype=np.float32)
        for got in (made(x), loaded(x), again.run(x)):
            np.testing.assert_allclose(got["restored"], x + x.T, atol=1e-4)
            np.testing.assert_allclose(got["inverse"] @ x, np.eye(n), atol=1e-4)
        for found in compare(g, None, (x,), made(x)):
            assert found.ok, found.text()
    turned = fl.trace(lambda x: fl.extern(np.linalg.eigh, [x.shape, x.shape[:1]], fl.f32, x, name="eigh"), inputs={"x": fl.f32("n", "n")})
    for call in (turned.run, fl.compile(turned)):
        with pytest.raises(fl.RunError) as error:
            call(np.eye(2, dtype=np.float32))
        text = str(error.value)
        assert "eigh returned float32[2], float32[2, 2]" in text and "the stage is float32[2, 2], float32[2]" in text


def test_a_built_model_finds_its_functions_by_name(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import numpy as np\ndef backwards(x):\n    return x[::-1]\n", encoding="utf-8")
    (tmp_path / "m.py").write_text(
        "import fluorite as fl\nfrom shop import backwards\n\n"
        "def turned(x: fl.f32[fl.Tensor, 'n']):\n    return fl.extern(backwards, x.shape, fl.f32, x + 1, name='back')\n",
        encoding="utf-8",
    )
    fluorite = [sys.executable, "-m", "fluorite"]
    done = subprocess.run([*fluorite, "build", "m.py:turned", "-o", "made"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    called = json.loads((tmp_path / "made" / "manifest.json").read_text(encoding="utf-8"))["externs"]
    assert [e["function"] for e in called.values()] == ["shop:backwards"]
    use = "import numpy as np, made; print(made.turned(np.arange(3, dtype=np.float32)).tolist())"
    run = subprocess.run([sys.executable, "-c", use], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "[3.0, 2.0, 1.0]", run.stderr
    (tmp_path / "shop.py").unlink()
    lost = subprocess.run([sys.executable, "-B", "-c", use], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "turned/back is computed by backwards of the module shop, which is not there" in lost.stderr


def test_a_function_without_a_name_is_refused_at_build_and_by_tuning(tmp_path: Path) -> None:
    g = fl.trace(lambda x: fl.extern(lambda x: x, x.shape, x.dtype, x, name="same"), inputs={"x": fl.f32(3)})
    with pytest.raises(fl.BuildError) as error:
        driver.build(g, None, tmp_path / "made")
    assert error.value.problems[0].code == "B007"
    with pytest.raises(fl.BuildError) as error:
        graph_data(g)
    assert error.value.problems[0].code == "B007"


def test_tuning_and_another_process_see_the_same_graph(traced: fl.Graph) -> None:
    again = graph_of(json.loads(json.dumps(graph_data(traced))), {t.path: t.value for t in traced.leaves})
    assert again.text() == traced.text()
    args = (data(3, 4), np.array(True))
    for a, b in zip(again.run(*args).values(), traced.run(*args).values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_tuning_leaves_externs_alone(traced: fl.Graph) -> None:
    plan, _ = driver.prepared(None, traced)
    found = open_stages(driver.schedule(traced, plan, driver.host_target(plan)))
    assert "model/more" in found and not found.keys() & traced.functions.keys()


def test_fixed_extents_precision_and_other_plans(traced: fl.Graph) -> None:
    args = (data(3, 16), np.array(True))
    plans = (
        "extents: {h: 3, w: 16}",
        "fusion: {rest: none}",
        "schedule: {once: [compute_root], more: [compute_root]}",
        "schedule: {more: [{cache: {into: acc}}]}",
    )
    for plan in plans:
        made = fl.compile(traced, ExecutionPlan.from_yaml(plan, "p.yaml"))
        for found in compare(traced, None, args, made(*args)):
            assert found.ok, (plan, found.text())
    assert fl.check(traced, ExecutionPlan(), quick=True).ok


REFUSED = [
    ("schedule: {once: [{parallel: h}]}", "P274"),
    ("schedule: {once: [{cache: {into: acc}}]}", "P274"),
    ("schedule: {once: [compute_inline]}", "P274"),
    ("schedule: {more: [compute_inline]}", "P225"),
    ("schedule: {more: [{layout: [w, h]}]}", "P274"),
    ("schedule: {more: [{pad: {w: 8}}]}", "P274"),
    ("schedule: {more: [{compute_at: {stage: once, axis: h}}]}", "P274"),
    ("fusion: {groups: [[once, more]]}", "P274"),
    ("target: {kind: cuda, arch: sm_90}", "P275"),
]


@pytest.mark.parametrize(("plan", "code"), REFUSED)
def test_what_plans_may_not_ask(traced: fl.Graph, plan: str, code: str) -> None:
    from fluorite.codegen.target import resolve_target

    chosen = ExecutionPlan.from_yaml(plan, "p.yaml")
    made, _ = driver.prepared(chosen, traced)
    found = driver.schedule(traced, made, resolve_target(made.target, threads=2)).check()
    assert code in {p.code for p in found}, [p.text() for p in found]
