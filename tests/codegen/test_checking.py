"""`check`: legality in full, then compiled against the oracle where things go wrong: tails, ends, ones and primes."""

from __future__ import annotations

import json
from pathlib import Path

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import AlgorithmError, RunError
from fluorite.codegen import checking, comparing, driver
from fluorite.codegen.checking import check
from fluorite.codegen.compiled import compile_kernels
from fluorite.codegen.sampling import index_limits, random_inputs, read_inputs, sample_parameters
from fluorite.schedule import ExecutionPlan


def three(x: fl.f32[fl.Tensor, "n"]) -> object:
    x = fl.edge(x)
    return fl.stage(lambda i: x[i - 1] + 2 * x[i] + x[i + 1], name="out")


def valid(x: fl.f32[fl.Tensor, "n"]) -> object:
    return fl.stage(lambda i: x[i] + x[i + 4], name="out")


PLAN = "schedule: {out: [{split: {axis: i, factor: 24}}, {parallel: i_outer}, {vectorize: {axis: i_inner, width: 8}}]}"


def sizes(report: checking.Report) -> set[int]:
    return {c.extents["n"] for c in report.cases}


def test_a_right_plan_passes_on_awkward_extents() -> None:
    report = check(three, ExecutionPlan.from_yaml(PLAN))
    assert report.ok and report.executed and report.numerics == "exact"
    assert sizes(report) >= {1, 2, 3, 7, 23, 24, 25, 37}
    assert "all within tolerance" in report.text() and "three/out" in report.text()
    assert json.loads(json.dumps(report.as_dict()))["ok"] is True


@pytest.mark.parametrize(
    "fault",
    [
        lambda x, i: x[i - 1] + 2 * x[i] + x[i + 2],
        lambda x, i: x[i - 1] + 2 * x[i],
        lambda x, i: x[i - 1] + 2.0001 * x[i] + x[i + 1],
        lambda x, i: fl.where(i == 1, x[i] * 3, x[i - 1] + 2 * x[i] + x[i + 1]),
    ],
)
def test_a_planted_fault_in_the_code_is_found(monkeypatch: pytest.MonkeyPatch, fault: object) -> None:
    def twin(x: fl.f32[fl.Tensor, "n"]) -> object:
        x = fl.edge(x)
        return fl.stage(lambda i: fault(x, i), name="out")  # type: ignore[operator]

    twin.__name__ = "three"
    plan = ExecutionPlan.from_yaml(PLAN)

    def faulty(variants: object, target: object) -> Path:
        chosen, _ = driver.prepared(plan, fl.trace(twin))
        return compile_kernels(driver.lower_variants(fl.trace(twin), chosen, target), target)  # type: ignore[arg-type]

    monkeypatch.setattr(comparing, "compile_kernels", faulty)
    report = check(three, plan)
    assert not report.ok and not report.problems
    assert "wrong: three(n=" in report.text()
    assert report.as_dict()["ok"] is False


def test_illegal_plans_are_reported_in_full_and_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "compile_kernels", lambda *_: pytest.fail("compiled"))

    def two(x: fl.f32[fl.Tensor, "n"]) -> object:
        return fl.stage(lambda i: x[i] + 1, name="a"), fl.stage(lambda i: x[i] + 2, name="b")

    report = check(two, ExecutionPlan.from_yaml("schedule:\n  a: [{parallel: q}]\n  b: [{unroll: i}]\n", "p.yaml"))
    assert not report.ok and not report.executed
    assert [(p.code, p.line) for p in report.problems] == [("P203", 2), ("P211", 3)]
    assert "p.yaml:2" in report.text() and "2 errors. Nothing was run." in report.text()
    assert check(two, "missing.yaml").problems[0].code == "P010"


def test_quick_looks_at_legality_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "compile_kernels", lambda *_: pytest.fail("compiled"))
    report = check(three, ExecutionPlan.from_yaml(PLAN), quick=True)
    assert report.ok and not report.executed and not report.cases
    assert "legal" in report.text()


def test_declared_ranges_and_buckets_are_kept_to() -> None:
    between = check(three, ExecutionPlan.from_yaml("extents: {n: {between: [8, 64], multiple: 4}}"))
    assert between.ok and {8, 64} & sizes(between) and all(8 <= n <= 64 and n % 4 == 0 for n in sizes(between))
    buckets = check(three, ExecutionPlan.from_yaml("extents: {n: {buckets: [5, 48]}}"))
    assert buckets.ok and {5, 48, 1, 37} <= sizes(buckets)
    only = check(three, ExecutionPlan.from_yaml("extents: {n: {buckets: [5, 48], fallback: false}}"))
    assert only.ok and sizes(only) == {5, 48}
    assert sizes(check(three, ExecutionPlan.from_yaml("extents: {n: 12}"))) == {12}


def test_extents_and_inputs_given_come_first() -> None:
    x = np.array([np.inf, 1, 2, np.nan, 5], np.float32)
    report = check(three, extents={"n": 200}, inputs={"x": x})
    assert report.ok
    assert [(c.inputs, c.extents["n"]) for c in report.cases[:2]] == [("given", 5), ("random", 200)]
    with pytest.raises(RunError, match="m"):
        check(three, extents={"m": 3})
    with pytest.raises(RunError):
        check(three, inputs={"x": x.astype(np.float64)})


def test_extents_that_the_algorithm_refuses_are_left_out() -> None:
    report = check(valid)
    assert report.ok and report.skipped and min(sizes(report)) >= 4
    assert "not tried: valid(n=1)" in report.text()


def test_every_method_is_checked_and_no_parameter_is_a_zero_that_hides_a_fault() -> None:
    class Net(fl.Program):
        def __init__(self) -> None:
            self.layer = fl.nn.Linear(8, 4)

        @fl.method
        def infer(self, x: fl.f32[fl.Tensor, "n", 8]) -> object:
            return self.layer(x)

        @fl.method
        def best(self, x: fl.f32[fl.Tensor, "n", 8]) -> object:
            return fl.argmax(self.layer(x), axis=1)

    graph = fl.trace(Net())
    report = check(graph)
    assert report.ok and {c.method for c in report.cases} == {"infer", "best"}
    drawn = sample_parameters(graph)
    assert all(len(np.unique(a)) == a.size for a in drawn.values())
    assert all((a == b).all() for a, b in zip(drawn.values(), sample_parameters(graph).values(), strict=True))


def test_gpu_kernels_are_checked_as_loops() -> None:
    directives = "[{split: {axis: i, factor: 32}}, {gpu_blocks: [i_outer]}, {gpu_threads: [i_inner]}]"
    text = f"target: {{kind: cuda, arch: sm_90}}\nschedule: {{out: {directives}}}"
    report = check(three, ExecutionPlan.from_yaml(text))
    assert report.ok and sizes(report) >= {1, 31, 33} and "as loops on this CPU" in report.notes[0]


def test_algorithms_that_mean_nothing_raise() -> None:
    with pytest.raises(AlgorithmError):
        check(lambda x: x)


def test_random_indices_stay_inside_what_they_index() -> None:
    def pick(table: fl.f32[fl.Tensor, "v", 4], ids: fl.i32[fl.Tensor, "n"], free: fl.u8[fl.Tensor, "n"]) -> object:
        return fl.take(table, ids, axis=0) + fl.expand_dims(fl.cast(free, "float32"), 1)

    graph = fl.trace(pick)
    extents = {"v": 3, "n": 400}
    assert list(index_limits(graph, graph.method("pick"), extents).values()) == [3]
    _, ids, free = random_inputs(graph, "pick", extents)
    assert set(ids.tolist()) == {0, 1, 2} and free.max() > 200
    assert check(graph).ok


def test_inputs_from_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.ones(3, np.float32))
    np.save(tmp_path / "x.npy", np.zeros(2, np.float32))
    assert read_inputs(tmp_path / "in.npz")["x"].tolist() == [1, 1, 1]
    assert read_inputs(tmp_path)["x"].tolist() == [0, 0]
    (tmp_path / "bad.npz").write_bytes(b"PK nothing")
    np.savez(tmp_path / "pickled.npz", x=np.array([{}], dtype=object))
    for wrong in ("absent.npz", "bad.npz", "pickled.npz"):
        with pytest.raises(RunError, match="R130"):
            read_inputs(tmp_path / wrong)
