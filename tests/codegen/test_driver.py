"""From a model and a plan to a model that runs: specialised variants, holes, ceilings on numerics, contraction."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError, RunError
from fluorite.algo.graph import Graph
from fluorite.codegen import compiled, driver, tvm_adapter
from fluorite.codegen.compiled import Compiled
from fluorite.schedule import Cache, ExecutionPlan, Rfactor, holes_of
from fluorite.schedule.divisors import extent_lookup


def rows(x: Any, w: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * w[k, j]), name="rows")


INPUTS = {"x": fl.f32("n", "k"), "w": fl.f32("k", 8)}
ROWS = fl.trace(rows, None, inputs=INPUTS)


def compile_(plan: str, g: Graph = ROWS) -> Compiled:
    return driver.compile_graph(g, ExecutionPlan.from_yaml(plan, "p.yaml"), cache=False)


def model_of(c: Compiled, edit: Callable[[dict[str, Any]], None] = lambda _: None) -> Any:
    manifest = c.manifest("m")
    for method in manifest["methods"].values():
        edit(method)
    return driver.assemble(manifest, c.library, driver.parameter_arrays(c.graph))


def right(model: Any, n: int, k: int) -> None:
    rng = np.random.default_rng(n)
    x, w = rng.random((n, k), dtype=np.float32), rng.random((k, 8), dtype=np.float32)
    np.testing.assert_allclose(model(x, w), x @ w, rtol=1e-5)


def whens(c: Compiled) -> list[dict[str, int]]:
    return [variant["when"] for variant in c.manifest("m")["methods"]["rows"]["variants"]]


# ---------------------------------------------------------------- variants
def test_buckets_get_code_of_their_own_and_the_rest_the_generic() -> None:
    c = compile_("extents: {n: {buckets: [1, 8]}}")
    assert whens(c) == [{"n": 1}, {"n": 8}, {}]
    model = model_of(c)
    for n, k in ((1, 5), (8, 5), (3, 5), (8, 1)):
        right(model, n, k)
    only = model_of(c, lambda method: method["variants"].pop())
    right(only, 8, 5)
    with pytest.raises(RunError, match=r"built for n = 1 or n = 8"):
        right(only, 3, 5)
    assert not any("n" in k.symbols for k in c.variants[1].kernels), "the extent is a number there"


def test_without_a_fallback_other_extents_are_refused() -> None:
    c = compile_("extents: {n: {buckets: [1, 8], fallback: false}}")
    assert whens(c) == [{"n": 1}, {"n": 8}]
    right(model_of(c), 8, 3)
    with pytest.raises(RunError) as caught:
        right(model_of(c), 3, 3)
    assert caught.value.problems[0].code == "R107" and "n = 3" in str(caught.value)


def test_a_fixed_extent_is_the_only_one() -> None:
    c = compile_("extents: {n: 4, k: 6}")
    assert whens(c) == [{"n": 4, "k": 6}]
    right(model_of(c), 4, 6)
    with pytest.raises(RunError):
        right(model_of(c), 5, 6)


def test_buckets_of_several_extents_are_combined() -> None:
    c = compile_("extents: {n: {buckets: [1]}, k: {buckets: [4], fallback: false}}")
    assert whens(c) == [{"n": 1, "k": 4}, {"k": 4}]
    for n in (1, 3):
        right(model_of(c), n, 4)


def test_an_extent_of_one_method_leaves_the_others_alone() -> None:
    class Two(fl.Program):
        @fl.method
        def first(self, x: fl.f32[fl.Tensor, "n"]) -> Any:
            return x * 2

        @fl.method
        def second(self, x: fl.f32[fl.Tensor, "n"]) -> Any:
            return x * 3

    model = model_of(compile_("extents: {first/n: 4}", fl.trace(Two())))
    four, five = np.ones(4, np.float32), np.ones(5, np.float32)
    np.testing.assert_array_equal(model.first(four), four * 2)
    np.testing.assert_array_equal(model.second(five), five * 3)
    with pytest.raises(RunError):
        model.first(five)


def test_a_variant_has_a_schedule_of_its_own() -> None:
    c = compile_("schedule: {rows: [compute_root]}\nvariants: [{when: {n: 2}, schedule: {rows: [{cache: acc}]}}]")
    assert whens(c) == [{"n": 2}, {}]
    special, generic = c.variants
    assert special.scheduled.chosen["rows/rows"] == (Cache("acc"),) and "rows/rows/acc" not in generic.scheduled.chosen
    for n in (2, 3):
        right(model_of(c), n, 5)


def test_bounds_of_a_variant_hold_for_the_buckets_within() -> None:
    c = compile_("extents: {n: {buckets: [2, 64]}}\nvariants: [{when: {n: [1, 8]}, schedule: {rows: [{cache: acc}]}}]")
    assert ["rows/rows/acc" in v.scheduled.chosen and v.scheduled.decided_by["rows/rows"] == "plan" for v in c.variants] == [
        True,
        False,
        False,
    ]


def test_fixed_extents_of_the_call_beat_the_plans() -> None:
    model = driver.compile(rows, "fluorite:cpu", extents={"n": 3}, inputs=INPUTS, cache=False)
    right(model, 3, 5)
    with pytest.raises(RunError):
        right(model, 4, 5)


def test_an_extent_that_is_not_there() -> None:
    with pytest.raises(PlanError) as caught:
        compile_("extents:\n  m: 3\n")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("P111", 2) and "it has k, n" in problem.why


def test_a_variant_for_an_extent_that_is_not_there() -> None:
    with pytest.raises(PlanError) as caught:
        compile_("variants:\n  - when: {q: 3}\n    schedule: {rows: [compute_root]}\n")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("P111", 2) and "it has k, n" in problem.why


@pytest.mark.parametrize(
    ("extents", "when", "why"),
    [
        ("{}", "{n: [1, 8]}", "n has no buckets, and bounds make none"),
        ("{n: {buckets: [16, 64]}}", "{n: [1, 8]}", "the buckets of n are 16, 64"),
        ("{n: 64}", "{n: [1, 8]}", "n is fixed at 64"),
        ("{n: 64}", "{n: 1}", "it is fixed at 64"),
        ("{n: 64}", "{rows/n: 1}", "it is fixed at 64"),
        ("{n: {between: [8, 64], multiple: 8}}", "{n: 4}", "it lies between 8 and 64 and is a multiple of 8"),
        ("{n: {between: [8, 64], multiple: 8}}", "{n: 12}", "it lies between 8 and 64 and is a multiple of 8"),
        ("{n: {max: 30}}", "{n: 31}", "it is at most 30"),
    ],
)
def test_a_variant_that_nothing_meets(extents: str, when: str, why: str) -> None:
    with pytest.raises(PlanError) as caught:
        compile_(f"extents: {extents}\nvariants:\n  - when: {when}\n    schedule: {{rows: [{{cache: acc}}]}}\n")
    (problem,) = caught.value.problems
    assert (problem.code, problem.line, problem.why) == ("P112", 3, why) and problem.try_


@pytest.mark.parametrize(
    ("extents", "when", "made"),
    [
        ("{n: {buckets: [1, 8]}}", "{n: 8}", [{"n": 1}, {"n": 8}, {}]),
        ("{n: {buckets: [1, 8]}}", "{n: 3}", [{"n": 3}, {"n": 1}, {"n": 8}, {}]),
        ("{n: {buckets: [1, 8]}}", "{rows/n: 8}", [{"n": 1}, {"n": 8}, {}]),
        ("{n: {buckets: [1, 8]}, k: 4}", "{n: 3}", [{"n": 3, "k": 4}, {"n": 1, "k": 4}, {"n": 8, "k": 4}, {"k": 4}]),
        ("{n: {buckets: [1, 8]}}", "{n: [2, 9], k: 4}", [{"n": 8, "k": 4}, {"n": 1}, {"n": 8}, {}]),
        ("{n: {between: [8, 64], multiple: 8}}", "{n: 16}", [{"n": 16}, {}]),
    ],
)
def test_code_is_made_where_a_variant_needs_it(extents: str, when: str, made: list[dict[str, int]]) -> None:
    c = compile_(f"extents: {extents}\nvariants: [{{when: {when}, schedule: {{rows: [{{cache: acc}}]}}}}]\n")
    assert whens(c) == made
    assert sum(v.scheduled.decided_by["rows/rows"] == "plan" for v in c.variants) == 1


def test_extents_of_the_call_leave_out_variants_for_others() -> None:
    plan = ExecutionPlan.from_yaml("variants: [{when: {n: 2}, schedule: {rows: [{cache: acc}]}}]")
    for n in (2, 3):
        right(driver.compile(rows, plan, extents={"n": n}, inputs=INPUTS, cache=False), n, 5)


# ---------------------------------------------------------------- holes
HOLES = "holes: {f: {choose: [4, 8]}}\nschedule: {rows: [{split: {axis: i, factor: $f}}, {unroll: {axis: k, factor: {choose: [8, 4]}}}]}"


def test_open_holes_take_their_first_alternative_and_are_noted() -> None:
    c = compile_(HOLES)
    assert len(c.notes) == 2 and all("is open; its first alternative is used" in note for note in c.notes)
    assert c.manifest("m")["notes"] == list(c.notes)
    assert [d.factor for d in c.variants[0].scheduled.chosen["rows/rows"]] == [4, 8]
    right(model_of(c), 7, 3)


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ("schedule: {rows: [{split: {axis: i, factor: {divides: zz}}}]}", "rows has no axis zz; it has i, j, k"),
        ("schedule: [{select: [rows], do: [{split: {axis: i, factor: {divides: z}}}]}]", "rows has no axis z; it has i, j, k"),
        ("schedule: {rows: [{split: {axis: i, factor: {divides: i}}}]}", "i has n in rows, and that is no one number"),
        ("holes: {t: {divides: j}}\nschedule: {rows: [{tile: {j: $t}}]}", "a named hole is of no stage"),
        ("variants: [{when: {n: 2}, schedule: {rows: [{tile: {j: {divides: q}}}]}}]", "rows has no axis q; it has i, j, k"),
    ],
)
def test_what_divides_nothing_is_refused(plan: str, why: str) -> None:
    with pytest.raises(PlanError) as caught:
        compile_(plan)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line, problem.column) == ("P014", 1, plan.index("{divides") + 1) and why in problem.why


@pytest.mark.parametrize(
    "plan",
    [
        "schedule: {rows: [{split: {axis: j, factor: {divides: j}}}]}",
        "schedule: [{select: [rows], do: [{split: {axis: j, factor: {divides: j}}}]}]",
        "schedule: {rows: {choose: [[{split: {axis: j, factor: {divides: j}}}], []]}}",
        "extents: {n: 8}\nschedule: {rows: [{split: {axis: i, factor: {divides: i}}}]}",
        "variants: [{when: {n: 2}, schedule: {rows: [{split: {axis: j, factor: {divides: j}}}]}}]",
    ],
)
def test_divisors_are_the_candidates(plan: str) -> None:
    read = ExecutionPlan.from_yaml(plan)
    (hole,) = (h for name, h in holes_of(read, extent_lookup(ROWS, read)).items() if name.endswith("factor"))
    assert list(hole.candidates) == [1, 2, 4, 8]
    driver.prepared(read, ROWS)


def test_strict_refuses_open_holes() -> None:
    with pytest.raises(PlanError) as caught:
        driver.compile_graph(ROWS, ExecutionPlan.from_yaml(HOLES), strict=True)
    assert [p.code for p in caught.value.problems] == ["P017", "P017"]
    pinned = HOLES.replace("$f", "4").replace("{choose: [8, 4]}", "8").replace("holes: {f: {choose: [4, 8]}}\n", "")
    assert driver.compile_graph(ROWS, ExecutionPlan.from_yaml(pinned), strict=True).notes == ()


# ---------------------------------------------------------------- numerics
def total(x: Any) -> Any:
    return fl.stage(lambda i: fl.sum(lambda k: x[i, k]), name="total")


TOTAL = fl.trace(total, None, inputs={"x": fl.f32("n", 4096)})


def test_exact_refuses_what_reassociates_and_the_default_keeps_to_it() -> None:
    with pytest.raises(PlanError) as caught:
        compile_("numerics: {allow: exact}\nschedule:\n  total: [{rfactor: {axis: k, factor: 16}}]\n", TOTAL)
    (problem,) = caught.value.problems
    assert (problem.code, problem.line) == ("P301", 3) and "numerics: {allow: reassociates}" in problem.try_
    exact, free = compile_("numerics: {allow: exact}", TOTAL), compile_("", TOTAL)
    assert exact.manifest("m")["numerics"] == {"class": "exact"} and free.manifest("m")["numerics"] == {"class": "reassociates"}
    assert any(isinstance(d, Rfactor) for ds in free.variants[0].scheduled.chosen.values() for d in ds)
    x = np.random.default_rng(0).random((3, 4096), dtype=np.float32)
    serial = np.array([np.cumsum(row, dtype=np.float32)[-1] for row in x])
    np.testing.assert_array_equal(model_of(exact)(x), serial)


def muladd(x: Any, y: Any, z: Any) -> Any:
    return fl.stage(lambda i: x[i] * y[i] + z[i], name="out")


def test_contraction_can_be_switched_off() -> None:
    """A product that is rounded before it is added to, and no instruction that does both."""
    g = fl.trace(muladd, None, inputs={"x": fl.f32("n"), "y": fl.f32("n"), "z": fl.f32("n")})
    one = np.float32(1) + np.float32(2**-12)
    x = np.full(40, one, np.float32)
    z = -np.full(40, one * one, np.float32)
    apart = compile_("numerics: {contract: false}", g)
    np.testing.assert_array_equal(model_of(apart)(x, x, z), x * x + z)
    for c, fused in ((apart, False), (compile_("", g), True)):
        kernels = {k.name: driver_emit(k) for k in c.variants[0].kernels}
        text = str(tvm_adapter.compile_functions(kernels, c.target.dict()).mod.inspect_source("asm"))
        assert bool(re.search(r"\bv?fn?m(add|sub)\d*[ps]s\b", text)) == (fused and "fma" in c.target.features), (
            "fused" if fused else "apart"
        )


def driver_emit(kernel: Any) -> Any:
    from fluorite.codegen.emit import emit

    return emit(kernel)


def test_versions_are_said_once() -> None:
    assert fl.__version__ == compiled.VERSION
    assert (tvm_adapter.VERSION, tvm_adapter.FFI_VERSION) == (compiled.TVM, compiled.TVM_FFI)
