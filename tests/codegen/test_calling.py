"""How methods are called: with one sample instead of a batch, and with nothing, where they read."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import AlgorithmError, RunError
from fluorite.algo.program import TAKEN
from fluorite.codegen import driver

F32 = np.float32


def rows(n: int = 10, seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((n, 13)).astype(F32)
    return {"x": x, "y": (x @ np.arange(13, dtype=F32)[:, None] / 13 + 1).astype(F32)}


class FitALine(fl.Program):
    """The shape of Paddle's example: one class that reads, trains and predicts."""

    def __init__(self, data: Any = None, batch_size: int = 4) -> None:
        self.data = data if isinstance(data, list) else fl.data.arrays(**rows(), batch_size=batch_size, shuffle=1)
        self.prediction = fl.nn.Linear(13, 1)
        self.optimizer = fl.optim.Adam(0.05)
        self.steps = fl.state(init=0, dtype=fl.i32)

    @fl.method(batch="n", reader="data")
    def train_step(self, x: fl.f32("n", 13), y: fl.f32("n", 1)) -> Any:  # type: ignore[valid-type]
        cost = fl.mean(fl.square(self.prediction(x) - y), name="avg_cost")
        self.optimizer.minimize(cost)
        self.steps += 1
        return {"avg_cost": cost, "rows": fl.sum(y * 0 + 1, axis=0)}

    @fl.method(batch="n")
    def infer(self, x: fl.f32("n", 13)) -> Any:  # type: ignore[valid-type]
        return self.prediction(x)


class Nothing(FitALine):
    """Its data comes later."""

    def __init__(self) -> None:
        super().__init__()
        self.data = None


class Shapes(fl.Program):
    """Batches in other places."""

    def __init__(self) -> None:
        self.data = fl.data.arrays(np.arange(6, dtype=F32), batch_size=4)
        self.pairs = fl.data.dataset([{"a": np.ones((2, 3), F32), "b": np.ones(3, F32)}])

    @fl.method(batch="n")
    def last(self, a: fl.f32("k", "n"), b: fl.f32("n"), c: fl.f32("k")) -> Any:  # type: ignore[valid-type]
        out = fl.stage(lambda k, n: a[k, n] * b[n] + c[k], name="out")
        return {"out": out, "both": (fl.sum(out, axis=0), [fl.sum(out, axis=1)]), "one": fl.sum(out)}

    @fl.method(batch="n", reader="data")
    def doubled(self, x: fl.f32("n")) -> Any:  # type: ignore[valid-type]
        return x * 2

    @fl.method(batch="n", reader="pairs")
    def product(self, a: fl.f32("m", "n"), b: fl.f32("n")) -> Any:  # type: ignore[valid-type]
        return fl.stage(lambda m, n: a[m, n] * b[n], name="out")

    @fl.method(batch="n")
    def gram(self, x: fl.f32("n", 3), w: fl.f32("n", "n")) -> Any:  # type: ignore[valid-type]
        return w @ x

    @fl.method
    def plain(self, x: fl.f32("n", 3)) -> Any:  # type: ignore[valid-type]
        return x + 1


@pytest.fixture(scope="module")
def line() -> Any:
    return FitALine().compile()


@pytest.fixture(scope="module")
def shapes() -> Any:
    return Shapes().compile()


# ---------------------------------------------------------------- one sample
def test_one_sample_as_a_list(line: Any) -> None:
    sample = [3, 4, 6, 3, 5, 7, 8, 6, 5, 4, 1, 5, 8]
    found = line.infer(sample)
    assert found.shape == (1,) and found.dtype == F32
    batch = np.array([sample, sample], F32)
    assert found.tobytes() == line.infer(batch)[0].tobytes() == line.infer(batch[0]).tobytes() == line.infer(x=tuple(sample)).tobytes()
    assert line.infer([[*map(float, sample)]]).shape == (1, 1)
    out = np.zeros(1, F32)
    assert line.infer(batch[0], out=out) is out and out.tobytes() == found.tobytes()
    assert line.infer(np.asfortranarray(batch)[1]).tobytes() == found.tobytes()


def test_one_sample_of_several_inputs(shapes: Any) -> None:
    a, b, c = np.arange(6, dtype=F32).reshape(2, 3), np.array([1, 2, 3], F32), np.array([10, 20], F32)
    batch = shapes.last(a, b, c)
    for n in range(3):
        one = shapes.last(a[:, n], b[n], c)
        assert one["out"].shape == (2,) and one["both"][0].shape == () and one["both"][1][0].shape == (2,) and one["one"].shape == ()
        assert np.array_equal(one["out"], batch["out"][:, n]) and one["both"][0] == batch["both"][0][n]
    assert np.array_equal(shapes.last([0, 3], 1, [10, 20])["out"], batch["out"][:, 0])
    given = {"out": np.zeros(2, F32), "both": (np.zeros((), F32), [np.zeros(2, F32)]), "one": np.zeros((), F32)}
    assert np.array_equal(shapes.last(a[:, 1], b[1], c, out=given)["out"], batch["out"][:, 1]) and given["both"][0] == batch["both"][0][1]
    assert shapes.doubled(3).tolist() == 6 and shapes.doubled(3.5).shape == ()


def test_a_training_step_with_one_sample() -> None:
    a, b = FitALine().compile(), FitALine().compile()
    r = rows(1)
    one, batch = a.train_step(r["x"][0], r["y"][0]), b.train_step(r["x"], r["y"])
    assert one["avg_cost"] == batch["avg_cost"] and a.parameters["prediction/w"].tobytes() == b.parameters["prediction/w"].tobytes()


REFUSED: list[tuple[str, tuple[Any, ...], str, str]] = [
    ("infer", (np.zeros((2, 13)),), "R104", "x is float64, expected float32[n, 13]; x.astype(np.float32)"),
    ("infer", (np.zeros(13),), "R104", "x.astype(np.float32)"),
    ("infer", ([1.0] * 12,), "R105", "13"),
    ("infer", (np.zeros((1, 2, 13), F32),), "R105", "expected float32[n, 13]"),
    ("infer", (1.0,), "R105", "expected float32[n, 13]"),
    ("infer", (["a"] * 13,), "R104", "expected float32[n, 13]"),
    ("train_step", (np.zeros(13, F32), np.zeros((1, 1), F32)), "R105", "x has shape (13,)"),
    ("train_step", (np.zeros((1, 13), F32), np.zeros(1, F32)), "R105", "y has shape (1,)"),
]


@pytest.mark.parametrize(("method", "args", "code", "words"), REFUSED)
def test_what_is_neither_batch_nor_sample(line: Any, method: str, args: tuple[Any, ...], code: str, words: str) -> None:
    with pytest.raises(RunError) as refused:
        getattr(line, method)(*args)
    assert refused.value.problems[0].code == code and words in str(refused.value)


def test_no_sample_where_the_axis_is_not_said_or_there_twice(shapes: Any) -> None:
    with pytest.raises(RunError, match=r"x has shape \(3,\), expected float32\[n, 3\]"):
        shapes.plain(np.zeros(3, F32))
    with pytest.raises(RunError, match="x has shape"):
        shapes.gram(np.zeros(3, F32), np.zeros((), F32))


def test_samples_in_a_built_model(tmp_path: Path) -> None:
    driver.build(FitALine(), None, tmp_path / "line", seed=3)
    built, fresh = fl.load(tmp_path / "line"), FitALine().compile(seed=3)
    sample = [float(n) for n in range(13)]
    assert built.infer(sample).shape == (1,) and built.infer(sample) == fresh.infer(sample)
    with pytest.raises(RunError, match="its reader data has no data in this model") as refused:
        built.train_step()
    assert [p.code for p in refused.value.problems] == ["R101"] * 3
    with pytest.raises(RunError, match="reads nothing"):
        built.epoch("train_step")


# ---------------------------------------------------------------- reading
def batches(model: Any, count: int) -> list[float]:
    return [float(model.train_step()["rows"][0]) for _ in range(count)]


def test_a_call_without_inputs_reads_and_wraps_round() -> None:
    model = FitALine().compile()
    assert batches(model, 7) == [4, 4, 2, 4, 4, 2, 4] and model.parameters["steps"] == 7
    assert [float(out["rows"][0]) for out in model.epoch("train_step")] == [4, 2]  # the rest of the pass
    assert [float(out["rows"][0]) for out in model.epoch("train_step")] == [4, 4, 2]
    costs = [float(model.train_step()["avg_cost"]) for _ in range(300)]
    assert costs[-1] < 0.05 * costs[0]


def test_what_is_read_is_what_could_be_given() -> None:
    model, by_hand = FitALine().compile(), FitALine().compile()
    stream = FitALine().data.stream()
    for _ in range(8):
        out = model.train_step()
        batch = next(stream)
        assert out["avg_cost"] == by_hand.train_step(**batch)["avg_cost"]
    for name in model.parameters:
        assert model.parameters[name].tobytes() == by_hand.parameters[name].tobytes()


def test_batches_and_sources_at_compile_time(tmp_path: Path) -> None:
    assert batches(FitALine(batch_size=10).compile(), 2) == [10, 10]
    assert batches(fl.compile(FitALine, batch_size=5), 3) == [5, 5, 5]
    other = fl.data.arrays(**rows(3), batch_size=2)
    assert batches(FitALine().compile(data=other), 3) == [2, 1, 2]
    assert batches(FitALine().compile(data={"data": other}, batch_size=3), 2) == [3, 3]
    assert batches(FitALine().compile(data=[tuple(rows(n).values()) for n in (1, 5)]), 3) == [1, 5, 1]
    assert batches(FitALine([rows(2), rows(7)]).compile(), 3) == [2, 7, 2]
    whole = Shapes().compile(data={"data": np.arange(6, dtype=F32).reshape(3, 2)})
    assert [whole.doubled().tolist() for _ in range(2)] == [[0, 2], [4, 6]]  # the rows of an array
    table = np.concatenate([*rows(6).values()], axis=1)
    np.savetxt(tmp_path / "a.csv", table, delimiter=",")
    np.savetxt(tmp_path / "b.csv", table[:2], delimiter=",")

    class Csv(FitALine):
        def __init__(self) -> None:
            super().__init__()
            self.data = fl.data.csv(tmp_path / "absent.csv", columns={"x": range(13), "y": [13]}, batch_size=4)

    assert batches(Csv().compile(data=tmp_path / "a.csv"), 3) == [4, 2, 4]
    assert batches(Csv().compile(data=str(tmp_path / "b.csv"), batch_size=1), 3) == [1, 1, 1]
    model = Csv().compile()  # nothing is opened before the first step
    with pytest.raises(RunError, match=r"absent.csv cannot be read"):
        model.train_step()


def test_methods_read_for_themselves(shapes: Any) -> None:
    model = shapes.copy()
    assert model.doubled().tolist() == [0, 2, 4, 6] and model.product().shape == (2, 3) and model.doubled().tolist() == [8, 10]
    assert [r.tolist() for r in model.epoch("doubled")] == [[0, 2, 4, 6], [8, 10]]
    out = np.zeros(4, F32)
    assert model.doubled(out=out) is out and out.tolist() == [0, 2, 4, 6]
    assert model.copy().doubled().tolist() == [8, 10] == model.doubled().tolist()  # a copy goes on where the model is
    model.doubled()
    model.reset()
    assert model.doubled().tolist() == [0, 2, 4, 6]


def test_a_batch_that_failed_is_met_again() -> None:
    bad = rows(2) | {"x": np.zeros((2, 12), F32)}
    given = [rows(1), bad, rows(3)]
    model = FitALine().compile(data=given)
    assert batches(model, 1) == [1]
    for _ in range(2):
        with pytest.raises(RunError, match=r"x has shape \(2, 12\)"):
            model.train_step()
    given[1] = rows(2)
    with pytest.raises(RunError, match=r"x has shape \(2, 12\)"):
        model.train_step()  # it was read already
    assert model.parameters["steps"] == 1


def test_several_threads_read_every_batch_once() -> None:
    seen: list[float] = []
    model = FitALine().compile(data=[rows(n) for n in range(1, 41)])

    def work() -> None:
        for _ in range(10):
            seen.append(float(model.train_step()["rows"][0]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(seen) == list(range(1, 41)) and model.parameters["steps"] == 40


def test_a_smaller_last_batch_where_the_plan_fixes_its_size() -> None:
    model = FitALine().compile(extents={"n": 4})
    model.train_step(), model.train_step()
    with pytest.raises(RunError, match=r"n is 2.*drop_last=True"):
        model.train_step()


REFUSALS: dict[str, tuple[Callable[[], Any], str]] = {
    "dict with other names": (lambda: FitALine().compile(data=[{"x": rows()["x"], "z": rows()["y"]}]).train_step(), "R103"),
    "dict with too few": (lambda: FitALine().compile(data=[{"x": rows()["x"]}]).train_step(), "R101"),
    "tuple with too many": (lambda: FitALine().compile(data=[(1, 2, 3)]).train_step(), "R101"),
    "empty tuple": (lambda: FitALine().compile(data=[()]).train_step(), "R101"),
    "nothing to read": (lambda: FitALine().compile(data=[]).train_step(), "R205"),
    "nothing to pass over": (lambda: list(FitALine().compile(data=[]).epoch("train_step")), "R205"),
    "no data": (lambda: FitALine().compile(data=3), "R201"),
    "no data yet": (lambda: Nothing().compile().train_step(), "R101"),
    "no file for it": (lambda: Nothing().compile(data="a.csv"), "R207"),
    "no such reader": (lambda: FitALine().compile(data={"date": []}), "R207"),
    "no file": (lambda: FitALine().compile(data="a.csv"), "R201"),
    "which reader": (lambda: Shapes().compile(data=[]), "R207"),
    "no such method": (lambda: FitALine().compile().epoch("train"), "R114"),
    "a method that reads nothing": (lambda: FitALine().compile().epoch("infer"), "R119"),
    "a batch of nothing": (lambda: FitALine().compile(batch_size=0), "R201"),
    "a function that reads nothing": (lambda: fl.compile(lambda x: x + 1, inputs={"x": fl.f32("n")}, batch_size=3), "R207"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(case: str) -> None:
    act, code = REFUSALS[case]
    with pytest.raises(RunError) as refused:
        act()
    assert refused.value.problems[0].code == code


def test_decorators_that_mean_nothing() -> None:
    class Wrong(fl.Program):
        @fl.method(batch="m")
        def f(self, x: fl.f32("n", "k")) -> Any:  # type: ignore[valid-type]
            return x + 1

    class NoData(fl.Program):
        @fl.method(reader="data")
        def f(self, x: fl.f32("n")) -> Any:  # type: ignore[valid-type]
            return x + 1

    class NoInputs(fl.Program):
        def __init__(self) -> None:
            self.data, self.w = [], fl.param(k=3)

        @fl.method(reader="data")
        def f(self) -> Any:
            return self.w + 1

    for program, code, words in (
        (Wrong, "A195", "batch='k', batch='n'"), (NoData, "A196", "no attribute data"), (NoInputs, "A196", "f has no inputs")
    ):  # fmt: skip
        with pytest.raises(AlgorithmError) as refused:
            fl.trace(program)
        assert refused.value.problems[0].code == code and words in str(refused.value)
        assert "test_calling.py" in (refused.value.problems[0].source or "")


def test_methods_that_a_model_would_hide_are_refused_where_they_are_defined() -> None:
    model = fl.compile(Named)
    assert {"compile"} | {n for n in {*dir(type(model)), *vars(model)} if not n.startswith("_")} - {"run"} == TAKEN
    assert model.total(np.ones(3, np.float32)) == 3
    for name in ("steps", "grad", "parameters"):
        with pytest.raises(AlgorithmError) as refused:
            exec(f"@fl.method(batch='n')\ndef {name}(self, x): ...", {"fl": fl})
        (problem,) = refused.value.problems
        assert problem.code == "A135" and f"model.{name}" in problem.why and f"{name}_" in problem.try_ and problem.source == "<string>:1"


class Named(fl.Program):
    @fl.method
    def total(self, x: fl.f32("n")) -> Any:  # type: ignore[valid-type]
        return fl.sum(x)
