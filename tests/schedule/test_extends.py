"""Parents, deletions, notes, places after merging, differences."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from fluorite.algo.errors import PlanError
from fluorite.schedule import ComputeInline, ExecutionPlan, Parallel, Range, Ref, Tile, Unroll, assign, fill, presets
from random_plans import plan_of
from test_selectors import stage


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def refusal(path: Path) -> str:
    with pytest.raises(PlanError) as caught:
        ExecutionPlan.load(path).resolve()
    return str(caught.value)


def test_mappings_merge_lists_replace_null_deletes(tmp_path: Path) -> None:
    write(
        tmp_path,
        a="extents: {n: {buckets: [1, 8]}, t: {max: 5}}\nruntime: {threads: 4}\nfusion: {never: [[a, b]], rest: none}\n"
        "schedule:\n  x: [{tile: {i: 8}}, {parallel: i_outer}]\n  y: auto\n  z: [fetch]\n",
        b="schedule: {x: [compute_inline]}\nruntime: {huge_pages: false}\n",
        c="extends: [a.yaml, b.yaml]\nextents: {n: {between: [1, 9]}, t: ~}\nfusion: {rest: ~, never: [[c, d], [e, f]]}\n"
        "schedule: {y: ~, w: [{unroll: i}]}\nnote: mine\n",
    )
    plan = ExecutionPlan.load(tmp_path / "c.yaml")
    assert set(plan.removed) == {("extents", "t"), ("fusion", "rest"), ("schedule", "y")}
    assert ExecutionPlan.from_yaml(plan.to_yaml(), str(tmp_path / "c.yaml")).resolve() == plan.resolve()
    whole = plan.resolve()
    assert dict(whole.extents).keys() == {"n"} and whole.extents["n"].between == (1, 9)
    assert (whole.runtime.threads, whole.runtime.huge_pages) == (4, False)
    assert whole.fusion.never == (("c", "d"), ("e", "f")) and whole.fusion.rest == "auto"
    assert dict(whole.schedule) == {"x": (ComputeInline(),), "z": whole.schedule["z"], "w": (Unroll("i"),)}
    assert (whole.extends, whole.removed, whole.note) == ((), (), "mine")
    assert ExecutionPlan.from_yaml(whole.to_yaml()) == whole == whole.resolve()


def test_places_and_nearness_survive_merging(tmp_path: Path) -> None:
    write(
        tmp_path,
        base="schedule:\n  layers.0/gelu: [{parallel: x}]\n  head: [fetch]\n",
        child="extends: base.yaml\nschedule:\n  layers.*/gelu: [{unroll: y}]\n",
    )
    plan = ExecutionPlan.load(tmp_path / "child.yaml").resolve()
    assert {entry.select[0]: (Path(entry.place.file).name, entry.place.line, entry.place.nearness) for entry in plan.entries()} == {
        "layers.0/gelu": ("base.yaml", 2, 1), "head": ("base.yaml", 3, 1), "layers.*/gelu": ("child.yaml", 3, 0),
    }  # fmt: skip
    assert str(plan.schedule["layers.0/gelu"][0].at("axis")).endswith("base.yaml:2:30")
    stages = [stage("m/layers.0/gelu"), stage("m/layers.1/gelu"), stage("m/head")]
    assert [match.selector for match in assign(plan.entries(), stages).values()] == ["layers.*/gelu", "layers.*/gelu", "head"]
    lines = plan.annotated().splitlines()
    assert [line.rsplit("/", 1)[-1] for line in lines if "gelu" in line or "head" in line] == ["base.yaml:2", "base.yaml:3", "child.yaml:3"]
    assert ExecutionPlan.from_yaml(plan.annotated()) == plan


def test_a_child_repeats_a_default_to_overrule_its_parent(tmp_path: Path) -> None:
    write(tmp_path, base="numerics: {allow: relaxed, contract: false}\n", child="extends: base.yaml\nnumerics: {allow: reassociates}\n")
    plan = ExecutionPlan.load(tmp_path / "child.yaml")
    assert plan.resolve().numerics.allow == "reassociates" and plan.resolve().numerics.contract is False
    again = ExecutionPlan.from_yaml(plan.to_yaml(), str(tmp_path / "child.yaml"))
    assert again == plan and again.resolve() == plan.resolve()


def test_a_plan_made_in_python_has_parents_too(tmp_path: Path) -> None:
    write(tmp_path, base="schedule: {a: auto, b: [{parallel: x}]}\nholes: {t: {choose: [1, 2]}}\n")
    plan = ExecutionPlan(extends=str(tmp_path / "base.yaml"), schedule={"a": [Parallel("y")]}, holes={"t": 7, "u": Range(1, 3)})
    whole = plan.resolve()
    assert dict(whole.schedule) == {"a": (Parallel("y"),), "b": (Parallel("x"),)} and dict(whole.holes) == {"t": 7, "u": Range(1, 3)}
    without = plan.with_section("schedule", None)
    assert not without.resolve().schedule and ExecutionPlan.from_yaml(without.to_yaml()) == without
    assert fill(whole.with_schedule("c", [Unroll("x", Ref("u"))]), {"$u": 2}).schedule["c"] == (Unroll("x", 2),)


def test_changing_one_line_leaves_the_places_and_deletions_of_the_others(tmp_path: Path) -> None:
    write(
        tmp_path,
        base="schedule: {a: auto, b: auto, c: auto}\n",
        child="extends: base.yaml\nschedule:\n  a: ~\n  d: [fetch]\n  note: kept\n",
    )
    plan = ExecutionPlan.load(tmp_path / "child.yaml").with_schedule("b", [Parallel("x")])
    assert plan.removed == (("schedule", "a"),) and "note: kept" in plan.to_yaml()
    whole = plan.resolve()
    assert dict(whole.schedule).keys() == {"b", "c", "d"} and whole.schedule["b"] == (Parallel("x"),)
    assert str(next(entry for entry in whole.entries() if entry.select == ("d",)).place).endswith("child.yaml:4:3")
    assert str(next(entry for entry in plan.entries() if entry.select == ("d",)).place).endswith("child.yaml:4:3")
    assert plan.with_schedule("a", [Parallel("y")]).resolve().schedule["a"] == (Parallel("y"),)
    assert ExecutionPlan.from_yaml(plan.to_yaml(), str(tmp_path / "child.yaml")).resolve() == whole


def test_paths_follow_their_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        plans__base="program: ../model.py:Net\ntune: {inputs: data.npz}\n",
        child="extends: plans/base.yaml\n",
        plans__other="program: package.module:Net\n",
    )
    whole = ExecutionPlan.load(tmp_path / "child.yaml").resolve()
    assert (whole.program, whole.tune.inputs) == ("model.py:Net", "plans/data.npz")
    (tmp_path / "child.yaml").write_text("extends: plans/other.yaml\n")
    assert ExecutionPlan.load(tmp_path / "child.yaml").resolve().program == "package.module:Net"


def test_what_extends_refuses(tmp_path: Path) -> None:
    write(
        tmp_path,
        a="extends: b.yaml\n", b="extends: [c.yaml]\n", c="extends: a.yaml\n", me="extends: me.yaml\n", lost="extends: nowhere.yaml\n", near="extends: aa.yaml\n",
        preset="extends: fluorite:cqu\n", delete="extends: good.yaml\nschedule: {b: ~}\n", good="schedule: {a: auto}\n", alone="schedule: {b: ~}\n",
        bad="schedule: {a: [fetsh]}\n", under="extends: bad.yaml\n", twice="extends: [good.yaml, good.yaml]\n",
    )  # fmt: skip
    assert 'c.yaml:1:10: error[P011]: "a.yaml" extends itself\n  a.yaml -> b.yaml -> c.yaml -> ' in refusal(tmp_path / "a.yaml")
    assert "error[P011]" in refusal(tmp_path / "me.yaml")
    assert "lost.yaml:1:10: error[P010]" in refusal(tmp_path / "lost.yaml") and "no such file" in refusal(tmp_path / "lost.yaml")
    assert 'error[P010]: there is no preset "fluorite:cqu"\n  try: fluorite:cpu' in refusal(tmp_path / "preset.yaml")
    assert "delete.yaml:2:15: error[P012]: schedule/b is null" in refusal(tmp_path / "delete.yaml")
    assert "alone.yaml:1:15: error[P012]: schedule/b is null" in refusal(tmp_path / "alone.yaml")
    assert "bad.yaml:1:16: error[P006]" in refusal(tmp_path / "under.yaml")
    assert ExecutionPlan.load(tmp_path / "twice.yaml").resolve().schedule
    with pytest.raises(PlanError, match="error\\[P010\\]"):
        ExecutionPlan.load(tmp_path)


def test_presets_are_plans_without_problems() -> None:
    assert "cpu" in presets()
    for name in presets():
        plan = ExecutionPlan.load(f"fluorite:{name}").resolve()
        assert plan.problems() == []
    assert ExecutionPlan(extends="fluorite:cpu").resolve() == ExecutionPlan.load("fluorite:cpu")


def test_notes_may_stand_in_any_mapping_and_survive() -> None:
    text = (
        "version: 1\nnote: whole\nnumerics: {allow: exact, note: a}\nschedule:\n  note: b\n  s:\n    - tile: {y: 8, note: c}\n"
        "    - {parallel: y_outer, note: d}\nholes: {t: {choose: [1], note: e}, note: f}\n"
    )
    plan = ExecutionPlan.from_yaml(text)
    again = ExecutionPlan.from_yaml(plan.to_yaml())
    assert again == plan and sorted(word for word in "abcdef" if f"note: {word}" in plan.to_yaml()) == list("abcdef")
    assert (plan.note, plan.numerics.note, plan.schedule["s"][1].note, plan.holes["t"].note) == ("whole", "a", "d", "e")


def test_differences_by_path() -> None:
    old = ExecutionPlan(schedule={"s": [Tile(y=64, x=8), Parallel("y_outer")], "t": [ComputeInline()]})
    new = (
        old.with_schedule("s", [Tile(y=32, x=8), Parallel("y_outer")])
        .with_schedule("t", [Unroll("x")])
        .with_section("runtime", {"threads": 2})
    )
    assert [one.text() for one in old.diff(new)] == [
        "schedule/s/0/tile/y: 64 -> 32", "schedule/t: [compute_inline] -> [{unroll: x}]", "runtime: (nothing) -> {threads: 2}",
    ]  # fmt: skip
    assert old.diff(old) == ()


def test_plans_are_values() -> None:
    plan = plan_of(7)
    text = plan.to_yaml()
    changed = plan.with_schedule("s", [Parallel("x")]).with_section("runtime", None)
    assert plan.to_yaml() == text and changed != plan
    assert yaml.safe_load(ExecutionPlan().to_yaml()) == {"version": 1}
    with pytest.raises(PlanError, match='no section "schedul"'):
        plan.with_section("schedul", {})
