"""The strict reader: what is refused, where, and in which words."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

import pytest
from fluorite.algo.errors import PlanError
from fluorite.schedule import ExecutionPlan, Parallel, Split, Vectorize
from fluorite.schedule.notation.tree import Leaf, core_value
from fluorite.schedule.notation.yaml_reader import MAX_BYTES, MAX_DEPTH, read_tree
from hypothesis import given, settings
from hypothesis import strategies as st


def refusal(text: str | bytes) -> str:
    with pytest.raises(PlanError) as caught:
        ExecutionPlan.from_yaml(text, "p.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("precision: {keep: [*/softmax/*]}", 'p.yaml:1:20: error[P001]: "*" starts a YAML alias here, so the file cannot be read'),
        ("precision:\n  keep: [*softmax]", 'p.yaml:2:10: error[P001]: "*" starts a YAML alias here'),
        ("schedule:\n  */gelu: auto", 'p.yaml:2:3: error[P001]: "*" starts a YAML alias here'),
        ("schedule: }", "p.yaml:1:11: error[P001]: this is not YAML"),
        ("schedule:\n\tx: auto", "p.yaml:2:1: error[P001]: this is not YAML"),
        ("schedule:\n  blur: auto\n  blur: auto", 'p.yaml:3:3: error[P002]: key "blur" is given twice (first at line 2)'),
        ("version: 1\nversion: 1", 'p.yaml:2:1: error[P002]: key "version" is given twice'),
        ("? [a, b]\n: c", "p.yaml:1:3: error[P003]: a list or mapping stands where a key should be"),
        ("version: !!int 1", "p.yaml:1:10: error[P004]: 'tag:yaml.org,2002:int' is a YAML tag"),
        ("version: !python/object:os.system 1", "p.yaml:1:10: error[P004]"),
        ("schedule: &s {a: auto}", 'p.yaml:1:11: error[P004]: "&s" names a YAML anchor'),
        ("version: 1\n---\nversion: 1", "p.yaml:2:1: error[P004]: a second document starts here"),
        ("- version", "p.yaml:1:1: error[P008]: a plan is a mapping of sections, this is a list"),
        ("hello", "p.yaml:1:1: error[P008]: a plan is a mapping of sections, this is 'hello'"),
        ("schedul: {}", 'p.yaml:1:1: error[P006]: a plan has no key "schedul"\n  try: schedule'),
        ("version: 2", "p.yaml:1:10: error[P013]: the plan is of version 2"),
        ("version: one", "p.yaml:1:10: error[P008]: version is 'one'\n  expected an integer of at least 1"),
        ("version: '1'", "p.yaml:1:10: error[P008]: version is the text '1'\n  expected an integer of at least 1\n  try: 1"),
        ("extents: {n: 99999999999999999999}", "p.yaml:1:14: error[P008]: extents/n is '99999999999999999999'\n  expected an integer of at least 0, at most 9,223,372,036,854,775,807"),
        ("extents: {n: {buckets: []}}", "p.yaml:1:24: error[P008]: extents/n/buckets is a list of nothing\n  expected a list of an integer of at least 0, at least 1"),
        ("schedule: {a: [fuse: [y]]}", "p.yaml:1:22: error[P008]: schedule/a/0/fuse/axes is a list of 1\n  expected a list of a name, at least 2"),
        ("target: {kind: llvm, cpu: {a: b}}", "p.yaml:1:27: error[P008]: target/cpu is a mapping\n  expected text"),
        ("numerics: {allow: exakt}", "p.yaml:1:19: error[P008]: numerics/allow is 'exakt'\n  expected exact, reassociates, precision or relaxed\n  try: exact"),
        ("numerics: {contract: no}", "p.yaml:1:22: error[P008]: numerics/contract is 'no'\n  expected true or false"),
        ("numerics: {fast_math: true}", "p.yaml:1:23: error[P009]: numerics: fast_math changes values, which the plan does not allow"),
        ("target: {kind: cuda}", "p.yaml:1:16: error[P009]: target: cuda needs an arch"),
        ("extents: {n: {between: [3, 1]}}", "p.yaml:1:24: error[P009]: an extent: between takes two bounds"),
        ("extents: {n: {bucket: [1]}}", "p.yaml:1:14: error[P008]: extents/n is a mapping with bucket"),
        ("tune: {where: [\"tx < 3\"]}", "p.yaml:1:16: error[P015]: 'tx < 3' cannot be understood\n  'tx' is no number; a named hole is written $tx"),
        ("tune: {where: [\"$tx\"]}", "p.yaml:1:16: error[P015]: '$tx' is no condition"),
        ("version: \x07", "p.yaml:1:10: error[P005]: character U+0007 may not stand in a plan"),
    ],
)  # fmt: skip
def test_refusals(text: str, start: str) -> None:
    assert refusal(text).startswith(start)


def test_bytes_that_are_not_text() -> None:
    assert refusal(b"version: 1\nprogram: \xff").startswith("p.yaml:2:10: error[P005]: byte 0xff is not UTF-8 text")
    assert ExecutionPlan.from_yaml("\ufeffversion: 1".encode()) == ExecutionPlan()


def test_size_is_bounded() -> None:
    assert "error[P005]: the plan is 1,048,577 bytes long" in refusal(b" " * (MAX_BYTES + 1))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_depth_is_bounded_before_anything_recurses(opening: str) -> None:
    assert "error[P005]: lists and mappings are nested too deeply here" in refusal("note: " + "\n" * (opening == "- ") + opening * 100_000)
    tree, problems = read_tree("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert tree is not None and not problems


def test_all_problems_at_once_in_the_order_of_the_file() -> None:
    text = "numerics: {allow: none}\nschedule:\n  a: [{splt: x}, {split: {axis: x, factor: 0}}]\n  a: auto\n  b: [{tile: {y: -3}}]\n"
    with pytest.raises(PlanError) as caught:
        ExecutionPlan.from_yaml(text, "p.yaml")
    assert [(one.code, one.line, one.column) for one in caught.value.problems] == [
        ("P008", 1, 19), ("P006", 3, 8), ("P008", 3, 44), ("P002", 4, 3), ("P008", 5, 18),
    ]  # fmt: skip
    assert caught.value.text("Nothing was built.").endswith("5 errors. Nothing was built.")


@pytest.mark.parametrize("text", ["", "# nothing\n", "~", "{}", "---\n"])
def test_an_empty_file_is_the_empty_plan(text: str) -> None:
    assert ExecutionPlan.from_yaml(text) == ExecutionPlan()


def test_axes_are_text_whatever_yaml_1_1_makes_of_them() -> None:
    plan = ExecutionPlan.from_yaml(
        "schedule: {a: [{parallel: no}, {split: {axis: on, factor: 0x10}}, {vectorize: y}, {unroll: 1e-3}, {parallel: 0}]}"
    )
    steps = plan.schedule["a"]
    assert steps[:3] == (Parallel("no"), Split("on", 16), Vectorize("y"))
    assert [step.axis for step in steps[3:]] == ["1e-3", "0"]
    assert ExecutionPlan.from_yaml("tune: {minutes: 1e-3}").tune.minutes == 0.001


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("-3", -3), ("0o17", 15), ("0x1F", 31), ("1e-3", 1e-3), (".5", 0.5), ("true", True), ("no", "no"), ("yes", "yes"), ("~", None), ("1_000", "1_000"), ("0b1", "0b1"), ("1:30", "1:30"), ("2024-01-01", "2024-01-01")],
)  # fmt: skip
def test_the_core_schema(text: str, value: object) -> None:
    assert core_value(Leaf(text)) == value and type(core_value(Leaf(text))) is type(value)
    assert core_value(Leaf(text, plain=False)) == text


def test_every_value_has_its_place() -> None:
    text = "schedule:\n  unsharp:\n    - tile: {y: 64, x: 512}\n    - split: {axis: x, factor: 8}\n    - parallel: y\n  rows:\n    - compute_at: {stage: unsharp, axis: z}\n    - reorder: [a, bb]\n"
    plan = ExecutionPlan.from_yaml(text, "2.yaml")
    tile, split, parallel = plan.schedule["unsharp"]
    places = [
        tile.at("y"),
        tile.at("sizes", "x"),
        split.at("axis"),
        split.at("factor"),
        split.place,
        parallel.at("axis"),
        plan.schedule["rows"][0].at("axis"),
    ]
    assert [str(place) for place in places] == [
        "2.yaml:3:17",
        "2.yaml:3:24",
        "2.yaml:4:21",
        "2.yaml:4:32",
        "2.yaml:4:7",
        "2.yaml:5:17",
        "2.yaml:7:42",
    ]
    assert str(plan.schedule["rows"][1].at("loops", 1)) == "2.yaml:8:20"
    assert [str(entry.place) for entry in plan.entries()] == ["2.yaml:2:3", "2.yaml:6:3"]


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.text("{}[]:,-*&!|>'\"#%@ \n\tab1$", max_size=60) | st.binary(max_size=40))
def test_no_text_makes_anything_but_a_plan_or_a_plan_error(text: str | bytes) -> None:
    try:
        plan = ExecutionPlan.from_yaml(text)
    except PlanError as error:
        assert error.problems and all(one.code in str(error) for one in error.problems)
    else:
        assert ExecutionPlan.from_yaml(plan.to_yaml()) == plan
