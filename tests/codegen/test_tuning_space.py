"""What is open in a plan, and the candidates that it makes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.codegen.driver import lower_variants
from fluorite.codegen.target import CodeTarget, resolve_target
from fluorite.codegen.tuning.edits import neighbours
from fluorite.codegen.tuning.flat import flattened
from fluorite.codegen.tuning.points import tuning_cases
from fluorite.codegen.tuning.space import Candidate, Space
from fluorite.schedule import AUTO, ExecutionPlan, Parallel, Split, Vectorize, holes_of
from fluorite.schedule.sections import Target


def blur(image: fl.f32[fl.Tensor, "h", "w"]) -> object:
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x: image[y, x - 1] + image[y, x] + image[y, x + 1], name="rows"))
    return fl.stage(lambda y, x: rows[y - 1, x] + rows[y, x] + rows[y + 1, x], name="blur")


def dense(a: fl.f32[fl.Tensor, "i=64", "k=32"], b: fl.f32[fl.Tensor, "k=32", "j=64"]) -> object:
    return fl.relu(fl.matmul(a, b))


def product(a: fl.f32[fl.Tensor, "i=256", "k=256"], b: fl.f32[fl.Tensor, "k=256", "j=256"]) -> object:
    return fl.matmul(a, b)


HOLES = """
holes: {ty: {choose: [8, 16, 32]}, tx: {pow2: [16, 64]}}
schedule:
  /blur/blur: [{tile: {y: $ty, x: $tx}}, {parallel: y_outer}, {vectorize: {axis: x_inner, width: {choose: [8, 16]}}}]
  /blur/rows:
    choose:
      - [{compute_at: {stage: blur, axis: x_outer}}, {unroll: {axis: x, factor: {choose: [2, 4]}}}]
      - [compute_root]
tune: {where: ["$ty * $tx <= 1024"]}
"""
TARGET: CodeTarget = resolve_target(Target())


def space(text: str, model: object = blur) -> Space:
    return Space(ExecutionPlan.from_yaml(text), fl.trace(model), TARGET)


def test_every_choice_is_listed_once_and_keeps_the_conditions() -> None:
    made = space(HOLES)
    found = list(made.all())
    keys = [made.key(c) for c in found]
    assert len(set(keys)) == len(keys) == made.count(1000)
    assert found[0].choice == {}
    pairs = [(c.choice.get("$ty", 8), c.choice.get("$tx", 16)) for c in found]
    assert set(pairs) == {(y, x) for y in (8, 16, 32) for x in (16, 32, 64) if y * x <= 1024}
    assert len(found) == 8 * 2 * 3  # widths; two factors inside the first alternative of rows, and the second
    assert made.count(len(found) - 1) is None or made.count(len(found) - 1) == len(found)


def test_candidates_are_plans_without_holes() -> None:
    made = space(HOLES)
    for candidate in list(made.all())[::7]:
        plan = made.plan_of(candidate)
        assert not holes_of(plan) and not plan.problems()
        assert ExecutionPlan.from_yaml(plan.to_yaml()) == plan


def test_steps_stay_inside_and_depend_on_the_seed_alone() -> None:
    made = space(HOLES)
    allowed = {made.key(c) for c in made.all()}

    def walk(seed: int) -> list[str]:
        rng, at, keys = random.Random(seed), Candidate(), []
        for _ in range(25):
            at = made.step(rng, at) or at
            keys.append(made.key(at))
        return [*keys, made.key(made.draw(rng) or at)]

    assert walk(1) == walk(1) != walk(2)
    assert set(walk(1)) <= allowed and len(set(walk(1))) > 5


def test_holes_alone_leave_other_stages_to_the_scheduler() -> None:
    made = space("schedule: {/blur/blur: [{split: {axis: y, factor: {choose: [8, 16]}}}, {parallel: y_outer}]}")
    assert not made.searches_schedules and made.count(10) == 2
    assert "/blur/rows" not in made.plan_of(Candidate({"schedule//blur/blur/0/split/factor": 16})).schedule


@pytest.mark.parametrize("model", [blur, dense])
def test_what_the_scheduler_decides_written_out_is_the_same_code(model: object) -> None:
    made = space("", model)
    plain, spelled = (made.plan_of(c) for c in (Candidate(), made.written_out(Candidate())))
    assert plain != spelled
    assert [v.text() for v in lower_variants(made.graph, plain, TARGET)] == [
        v.text() for v in lower_variants(made.graph, ExecutionPlan.from_yaml(spelled.to_yaml()), TARGET)
    ]


@pytest.mark.parametrize("model", [blur, dense])
def test_neighbours_of_the_default_schedule_differ_and_many_are_legal(model: object) -> None:
    made = space("", model)
    start = made.base["{}"]
    found = neighbours(start, made._around["{}"])
    assert len(found) > 15
    assert all(n != start for n in found) and len({repr(n) for n in found}) == len(found)
    legal = 0
    for chosen in found[::4]:
        plan = made.plan_of(Candidate({}, {"{}": chosen}))
        try:
            lower_variants(made.graph, ExecutionPlan.from_yaml(plan.to_yaml()), TARGET)
            legal += 1
        except PlanError as error:
            assert all(p.asked for p in error.problems)
    assert legal >= len(found[::4]) // 2


def test_linked_sizes_move_together() -> None:
    made = space("", product)
    packed = {d.sizes["j"] for ds in made.base["{}"].values() for d in ds if d.key == "pack" and "j" in d.sizes}
    size = packed.pop()
    moved = [
        n
        for n in neighbours(made.base["{}"], made._around["{}"])
        if any(d.key == "pack" and d.sizes.get("j") == 2 * size for ds in n.values() for d in ds)
    ]
    assert moved
    assert all(not any(isinstance(d, Split) and d.axis == "j" and d.factor == size for ds in n.values() for d in ds) for n in moved)


def test_pins_never_move() -> None:
    made = space("schedule: {/blur/rows: [compute_root, {parallel: y}], /blur/blur: auto}")
    rng, at = random.Random(0), Candidate()
    for _ in range(10):
        at = made.step(rng, at) or at
        plan = made.plan_of(at)
        assert (
            plan.schedule["/blur/rows"]
            == ExecutionPlan.from_yaml("schedule: {/blur/rows: [compute_root, {parallel: y}]}").schedule["/blur/rows"]
        )
        assert plan.schedule["/blur/blur"] != AUTO


def test_buckets_are_tuned_in_their_own_variants() -> None:
    def rows(x: fl.f32[fl.Tensor, "n", 64]) -> object:
        return fl.softmax(x)

    plan = ExecutionPlan.from_yaml("extents: {n: {buckets: [2, 64]}}")
    made = Space(plan, fl.trace(rows), TARGET, ('{"n": 64}',))
    assert made.measured == ('{"n": 64}',)
    rng = random.Random(3)
    for _ in range(5):
        candidate = made.step(rng, Candidate())
        assert candidate is not None
        filled = made.plan_of(candidate)
        assert [dict(v.when) for v in filled.variants] == [{"n": 64}] and not filled.schedule


def test_a_variant_overrides_the_plan() -> None:
    text = """
    extents: {h: {buckets: [64]}}
    schedule: {/blur/blur: [{parallel: y}]}
    variants: [{when: {h: 64}, schedule: {/blur/blur: [{vectorize: {axis: x, width: 8}}]}}]
    """
    special, general = lower_variants(fl.trace(blur), ExecutionPlan.from_yaml(text), TARGET)
    directives = [[v.scheduled.chosen["blur/blur"] for v in (special, general)]]
    assert directives == [[(Vectorize(axis="x", width=8),), (Parallel(axis="y"),)]]


def test_parents_keep_their_place_when_written_into_one_file(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("schedule: {/blur/blur: [{parallel: y}], /blur/rows: [compute_root, {parallel: y}]}\n")
    (tmp_path / "near.yaml").write_text("extends: base.yaml\nschedule: {'**': [{vectorize: {axis: x, width: {choose: [8, 16]}}}]}\n")
    graph, plan = fl.trace(blur), ExecutionPlan.load(tmp_path / "near.yaml").resolve()
    flat = flattened(plan, graph, TARGET)
    made = Space(flat, graph, TARGET)
    text = made.plan_of(Candidate()).to_yaml()
    chosen = lower_variants(graph, ExecutionPlan.from_yaml(text), TARGET)[0].scheduled.chosen
    assert set(chosen.values()) == {(Vectorize(axis="x", width=8),)}, "the nearer file wins although its selector is less specific"


def test_methods_whose_time_depends_on_data_are_measured_on_given_inputs() -> None:
    class Halving(fl.Program):
        @fl.method(data_dependent=True)
        def small(self, x: fl.f32[fl.Tensor, 3]) -> Any:
            return fl.while_loop(lambda c: fl.max(c) > 1, lambda c: c / 2, x)

    graph = fl.trace(Halving)
    with pytest.raises(PlanError) as caught:
        tuning_cases(ExecutionPlan(), graph, {}, {}, 0)
    assert caught.value.problems[0].code == "P125" and "--inputs" in caught.value.problems[0].text()
    (case,) = tuning_cases(ExecutionPlan(), graph, {}, {"x": np.ones(3, np.float32)}, 0)
    assert case.method == "small"
