"""Holes: which there are, what they may become, the plan that a choice makes."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pytest
from fluorite.algo.errors import PlanError
from fluorite.schedule import (
    AUTO,
    Choose,
    ComputeAt,
    ComputeRoot,
    Divides,
    ExecutionPlan,
    Hole,
    Parallel,
    Pow2,
    Ref,
    Split,
    Tile,
    Tune,
    Unroll,
    Vectorize,
    autos_of,
    defaults,
    fill,
    holes_of,
    label,
    plain,
    satisfies,
)  # fmt: skip
from fluorite.schedule.notation.constraint import ConstraintError, evaluate, parse
from fluorite.schedule.notation.records import Record, kinds
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import plan_of

HOLES = """
holes:
  ty: {choose: [16, 32]}
  tx: {pow2: [100, 300]}
  where: {choose: [y_outer, x_outer]}
schedule:
  unsharp:
    - tile: {y: $ty, x: "$tx * 2"}
    - vectorize: {axis: x_inner, width: {choose: [8, 16]}}
    - unroll: {axis: dy, factor: {range: [2, 6], step: 2}}
  rows:
    choose:
      - [compute_root]
      - [{compute_at: {stage: unsharp, axis: $where}}, {unroll: {axis: y, factor: {choose: [1, 2]}}}]
  corners: auto
tune: {where: ["$ty * $tx * 4 <= 16KiB"]}
"""


def test_the_holes_of_a_plan() -> None:
    plan = ExecutionPlan.from_yaml(HOLES, "h.yaml")
    holes = holes_of(plan)
    assert {name: list(hole.candidates) for name, hole in holes.items() if name != "schedule/rows"} == {
        "$ty": [16, 32],
        "$tx": [128, 256],
        "$where": ["y_outer", "x_outer"],
        "schedule/unsharp/1/vectorize/width": [8, 16],
        "schedule/unsharp/2/unroll/factor": [2, 4, 6],
        "schedule/rows/choose/1/1/unroll/factor": [1, 2],
    }
    assert [label(one) for one in holes["schedule/rows"].candidates] == [
        "[compute_root]",
        "[{compute_at: {stage: unsharp, axis: $where}}, {unroll: {axis: y, factor: {choose: [1, 2]}}}]",
    ]
    assert str(holes["schedule/unsharp/1/vectorize/width"].place) == "h.yaml:9:41"
    inner = holes["schedule/rows/choose/1/1/unroll/factor"]
    assert not inner.counts({}, holes)
    assert inner.counts({"schedule/rows": holes["schedule/rows"].candidates[1]}, holes)
    assert autos_of(plan) == ("corners",)


def test_defaults_are_the_first_alternatives() -> None:
    plan = ExecutionPlan.from_yaml(HOLES)
    filled = fill(plan, {})
    assert filled == fill(plan, defaults(plan))
    assert filled.schedule["unsharp"] == (Tile(y=16, x=256), Vectorize("x_inner", 8), Unroll("dy", 2))
    assert filled.schedule["rows"] == (ComputeRoot(),)
    assert filled.schedule["corners"] == AUTO
    assert not filled.holes and not holes_of(filled)


def test_a_choice_makes_a_plan_also_from_plain_data() -> None:
    plan = ExecutionPlan.from_yaml(HOLES)
    second = holes_of(plan)["schedule/rows"].candidates[1]
    choice = {"$tx": 256, "$where": "x_outer", "schedule/rows": second, "schedule/rows/choose/1/1/unroll/factor": 2}
    filled = fill(plan, choice)
    assert filled.schedule["rows"] == (ComputeAt("unsharp", "x_outer"), Unroll("y", 2))
    assert fill(plan, {name: plain(value) for name, value in choice.items()}) == filled
    assert satisfies(plan, {"$tx": 128, "$ty": 16}) and not satisfies(plan, {"$tx": 256, "$ty": 32})


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"$tx": 64}, "$tx cannot become 64"),
        ({"$tz": 64}, "the plan has no hole $tz"),
        ({"schedule/unsharp/1/vectorize/width": True}, "cannot become true"),
    ],
)
def test_a_choice_that_the_plan_does_not_allow(choice: Mapping[str, object], words: str) -> None:
    with pytest.raises(PlanError) as caught:
        fill(ExecutionPlan.from_yaml(HOLES), choice)
    assert "error[P016]" in str(caught.value) and words in str(caught.value)


def test_named_holes_choose_whole_lists_and_sections() -> None:
    text = "holes: {how: {choose: [[{parallel: y}], [{parallel: no}, fetch]]}, f: {choose: [{groups: [[a, b]]}, {rest: none}]}}\nschedule: {s: $how}\nfusion: $f\n"
    plan = ExecutionPlan.from_yaml(text)
    first, second = holes_of(plan)["$how"].candidates
    assert fill(plan, {"$how": first}).schedule["s"] == (Parallel("y"),)
    assert fill(plan, {"$how": second}).schedule["s"][0] == Parallel("no")
    assert fill(plan, {}).fusion.groups == (("a", "b"),) and fill(plan, {"$f": {"rest": "none"}}).fusion.rest == "none"


def test_names_inside_the_plan_pins_and_derived_names() -> None:
    plan = ExecutionPlan(
        holes={"w": 8, "v": Ref("w") * 2},
        schedule={"a": [Split("x", Choose(4, 8, name="t")), Vectorize("y", Ref("v"))], "b": [Split("x", Ref("t"))]},
        tune=Tune(where=("$t < $v",)),
    )
    assert list(holes_of(plan)) == ["$t"]
    filled = fill(plan, {"$t": 8})
    assert filled.schedule["a"] == (Split("x", 8), Vectorize("y", 16)) and filled.schedule["b"] == (Split("x", 8),)
    assert satisfies(plan, {"$t": 8})
    assert ExecutionPlan.from_yaml(plan.to_yaml()) == plan


def test_holes_inside_named_holes() -> None:
    text = """
holes:
  size: {choose: [4, 8]}
  how: {choose: [[{split: {axis: x, factor: $size}}, {unroll: {axis: y, factor: {choose: [2, 3]}}}], [compute_root]]}
  pinned: [{split: {axis: z, factor: "$size * 2"}}]
  unused: {choose: [1, 2]}
schedule: {s: $how, t: $pinned}
"""
    plan = ExecutionPlan.from_yaml(text)
    holes = holes_of(plan)
    inner = "$how/choose/0/1/unroll/factor"
    assert set(holes) == {"$size", "$how", inner} and holes[inner].within == (("$how", 0),)
    filled = fill(plan, {"$size": 8, inner: 3})
    assert filled.schedule == {"s": (Split("x", 8), Unroll("y", 3)), "t": (Split("z", 16),)}
    assert fill(plan, {"$how": ["compute_root"]}).schedule["s"] == (ComputeRoot(),)
    cycle = ExecutionPlan.from_yaml("holes: {a: {choose: [[$b]]}, b: {choose: [[$a]]}}\nschedule: {s: $a}")
    with pytest.raises(PlanError, match="contains itself"):
        fill(cycle, {})


def test_divisors_ask_for_the_extent() -> None:
    plan = ExecutionPlan(schedule={"s": [Split("x", Divides("x"))]})
    asked = []

    def extents(selector: str | None, axis: str) -> int | None:
        asked.append((selector, axis))
        return 12

    hole = holes_of(plan, extents)["schedule/s/0/split/factor"]
    assert (list(hole.candidates), asked) == ([1, 2, 3, 4, 6, 12], [("s", "x")])
    assert list(holes_of(plan)["schedule/s/0/split/factor"].candidates) == [1]
    assert fill(plan, {"schedule/s/0/split/factor": 6}, extents).schedule["s"] == (Split("x", 6),)


def test_auto_in_a_number_is_a_hole_and_a_stage_left_to_the_scheduler_is_none() -> None:
    plan = ExecutionPlan(schedule={"s": [Vectorize("x", AUTO), Split("y", AUTO)], "t": "auto"})
    holes = holes_of(plan)
    assert [hole.default for hole in holes.values()] == ["native", 32]
    assert fill(plan, {}).schedule["s"] == (Vectorize("x", "native"), Split("y", 32))
    everything = ExecutionPlan(schedule=AUTO)
    assert autos_of(everything) == ("**",) and everything.entries() == ()
    assert everything.with_schedule("s", [Parallel("x")]).schedule == {"s": (Parallel("x"),)}
    listed = ExecutionPlan.from_yaml("schedule: [{select: [a, b], do: auto}]").with_schedule("c", [Parallel("x")])
    assert [entry.select for entry in listed.entries()] == [("a", "b"), ("c",)] and autos_of(listed) == ("a", "b")
    with pytest.raises(PlanError, match="which has to be filled first"):
        ExecutionPlan(schedule=Choose({}, AUTO)).with_schedule("s", [Parallel("x")])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schedule: {s: [{parallel: $tz}]}\nholes: {tx: {choose: [1]}}", "1:27: error[P014]: $tz is no hole of this plan\n  try: $tx"),
        ("tune: {where: [\"$t < 4\"]}", "1:16: error[P014]: $t is no hole of this plan"),
        ("schedule: {s: [{split: {axis: x, factor: {choose: [1], name: t}}}, {split: {axis: y, factor: {choose: [2], name: t}}}]}", "$t is defined twice"),
        ("memory: {limit: 2GiB}\nmesh: {data: 2}", "2:1: error[P901]: the section mesh is not built yet"),
        ("holes: {t: {chose: [1, 2]}}", "1:12: error[P014]: $t is {chose: ...}, which is no hole\n  try: choose"),
        ("mesh: {d: 2}\nroles: {main: {}}", "2:8: error[P009]: mesh and roles exclude each other"),
        ("schedule: {a//b: auto}", '1:12: error[P106]: "a//b" is no selector'),
    ],
)  # fmt: skip
def test_problems_of_a_plan(text: str, words: str) -> None:
    found = ExecutionPlan.from_yaml(text, "p.yaml").problems()
    assert any(words in one.text() for one in found), found


def test_a_named_hole_without_an_integer_has_no_arithmetic() -> None:
    plan = ExecutionPlan.from_yaml('holes: {t: {choose: [a]}}\nschedule: {s: [{split: {axis: x, factor: "$t * 2"}}]}', "p.yaml")
    with pytest.raises(PlanError, match=r"p.yaml:2:42: error\[P014\]: \$t \* 2 has no value"):
        fill(plan, {})


def test_a_named_hole_of_the_wrong_type_is_refused_where_it_is_used() -> None:
    plan = ExecutionPlan.from_yaml(
        "holes: {t: {choose: [a]}}\nschedule: {s: [fetch, {split: {axis: x, factor: $t}}]}\nfusion: $t", "p.yaml"
    )
    with pytest.raises(PlanError, match=r"p.yaml:2:24: error\[P008\]: split/factor is 'a'"):
        fill(plan, {})
    with pytest.raises(PlanError, match=r"p.yaml:3:9: error\[P008\]"):
        fill(plan.with_section("schedule", None), {})


def left_open(value: object) -> bool:
    match value:
        case Hole():
            return value != AUTO
        case Record():
            return any(left_open(getattr(value, name)) for name in kinds(type(value)))
        case tuple():
            return any(left_open(inner) for inner in value)
        case Mapping():
            return any(left_open(inner) for inner in value.values())
    return False


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 48), st.integers(0, 100))
def test_filling_leaves_nothing_open(seed: int, pick: int) -> None:
    plan = plan_of(seed, numbers_only=True).replace(holes={"tx": Choose(3, 4), "ty": Pow2(2, 4)})
    try:
        holes = holes_of(plan)
        choice = {name: hole.candidates[pick % len(hole.candidates)] for name, hole in holes.items()}
        filled = fill(plan, choice)
    except PlanError as error:
        assert {one.code for one in error.problems} <= {"P006", "P008", "P009", "P014"}
        return
    assert not any(left_open(getattr(filled, name)) for name in kinds(ExecutionPlan) if name not in ("tune", "provenance"))
    assert ExecutionPlan.from_yaml(filled.to_yaml()) == filled
    assert fill(plan, {name: plain(value) for name, value in choice.items()}) == filled


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7), ("(1 + 2) * 3", 9), ("7 // 2 * 2", 6), ("-7 // 2", -4), ("7 % 4 - 1", 2), ("2KiB", 2048), ("1 < 2 < 3", 1), ("1 < 3 < 2", 0),
        ("1 == 1 and 2 == 3 or 4 == 4", 1), ("not 1 == 1", 0), ("$a * $b <= 12", 1), ("10 - 3 - 2", 5), ("not not 1 == 1", 1), ("1 != 2", 1),
    ],
)  # fmt: skip
def test_the_constraint_language(text: str, value: int) -> None:
    assert evaluate(parse(text), {"a": 3, "b": 4}) == value


@pytest.mark.parametrize(
    "text", ["", "1 +", "(1", "a < 3", "2 ** 3", "1 / 2", "3KB", "__import__('os')", "1" * 30, "(" * 50, "$", "1 2", "x" * 2000]
)
def test_what_is_no_constraint(text: str) -> None:
    with pytest.raises(ConstraintError):
        parse(text)


def test_a_constraint_without_a_value() -> None:
    for text in ("1 // 0", "1 % ($a - 3)", "$c", "$s + 1"):
        with pytest.raises(ConstraintError):
            evaluate(parse(text), {"a": 3, "s": "text"})


@given(st.text("0123456789$ab+-*/%<>=()KiB andortx ", max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    with suppress(ConstraintError):
        assert isinstance(evaluate(parse(text), {"a": 1, "b": 2, "t": 3}), int)
