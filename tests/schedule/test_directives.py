"""Directives: short forms, Python constructors, contradictions, help, schema."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

import re
from pathlib import Path

import fluorite.schedule as schedule
import jsonschema
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.schedule import (
    AUTO,
    CODES,
    DIRECTIVES,
    Cache,
    Choose,
    ComputeAt,
    ComputeInline,
    Directive,
    Divides,
    ExecutionPlan,
    Fetch,
    FindBest,
    Fuse,
    GpuBlocks,
    GpuThreads,
    Pack,
    Pad,
    Parallel,
    Range,
    Ref,
    Reorder,
    Rfactor,
    SoftwarePipeline,
    Split,
    StageIn,
    StoreIn,
    Stream,
    Tile,
    Unroll,
    Vectorize,
    describe,
    plan_schema,
    summary,
)  # fmt: skip
from random_plans import plan_of


def read(text: str) -> object:
    steps = ExecutionPlan.from_yaml(f"schedule: {{s: [{text}]}}", "p.yaml").schedule["s"]
    return steps[0]


@pytest.mark.parametrize(
    ("text", "directive"),
    [
        ("parallel: x", Parallel("x")),
        ("{parallel: {axis: x}}", Parallel("x")),
        ("parallel: $ax", Parallel(Ref("ax"))),
        ("parallel: {choose: [x, y]}", Parallel(Choose("x", "y"))),
        ("{parallel: x, note: why}", Parallel("x", note="why")),
        ("vectorize: {axis: x, width: native}", Vectorize("x", width="native")),
        ("vectorize: {axis: x, width: 16, tail: shift}", Vectorize("x", 16, "shift")),
        ("vectorize: {axis: x, width: auto}", Vectorize("x", AUTO)),
        ("tile: {y: 32, x: 64}", Tile(y=32, x=64)),
        ("tile: {sizes: {y: 32, x: 64}, tail: guard}", Tile(y=32, x=64, tail="guard")),
        ("tile: {sizes: 8}", Tile({"sizes": 8})),
        ("tile: {tail: 8}", Tile({"tail": 8})),
        ("tile: {y: $ty, x: \"$tx * 2\"}", Tile(y=Ref("ty"), x=Ref("tx") * 2)),
        ("split: {axis: k, factors: [~, 4, 16], into: [ko, km, ki]}", Split("k", factors=(None, 4, 16), into=("ko", "km", "ki"))),
        ("split: {axis: x, factor: {divides: x}}", Split("x", Divides("x"))),
        ("unroll: {axis: x, factor: {range: [1, 8], step: 2}}", Unroll("x", Range(1, 8, 2))),
        ("reorder: [i, k, j]", Reorder("i", "k", "j")),
        ("fuse: [a, b]", Fuse("a", "b")),
        ("fuse: {axes: [a, b], into: t}", Fuse(["a", "b"], into="t")),
        ("compute_inline", ComputeInline()),
        ("compute_inline: {note: cheap}", ComputeInline(note="cheap")),
        ("compute_inline: ", ComputeInline()),
        ("compute_at: {stage: layers.*/relu, axis: y}", ComputeAt("layers.*/relu", "y")),
        ("store_in: registers", StoreIn("registers")),
        ("fetch", Fetch()),
        ("fetch: 4", Fetch(4)),
        ("fetch: {vector: 4}", Fetch(vector=4)),
        ("cache: acc", Cache("acc")),
        ("stage_in: {read: image, into: tile}", StageIn("image", "tile")),
        ("pack: {tensor: w, sizes: {j: 32}, order: [j, k], into: w_packed}", Pack("w", {"j": 32}, ("j", "k"), "w_packed")),
        ("rfactor: {axis: k, factor: 8}", Rfactor("k", 8)),
        ("rfactor: {axis: k, block: 8}", Rfactor("k", block=8)),
        ("stream", Stream()),
        ("find_best", FindBest()),
        ("find_best: top", FindBest("top")),
        ("gpu_blocks: [y, x]", GpuBlocks("y", "x")),
        ("gpu_threads: x", GpuThreads("x")),
        ("software_pipeline: k", SoftwarePipeline("k")),
        ("pad: {x: 16}", Pad({"x": 16})),
    ],
)  # fmt: skip
def test_the_forms_of_a_directive(text: str, directive: Directive) -> None:
    if text == "gpu_threads: x":
        with pytest.raises(PlanError, match="expected a list"):
            read(text)
        return
    assert read(text) == directive
    assert ExecutionPlan.from_yaml(ExecutionPlan(schedule={"s": [directive]}).to_yaml()).schedule["s"] == (directive,)


def test_the_order_of_a_tile_means_something() -> None:
    assert Tile(y=1, x=2) != Tile(x=2, y=1)
    assert repr(Tile(y=64, x=512)) == "Tile(sizes={'y': 64, 'x': 512})"
    assert Split("x", 8).parts == (None, 8) and Split("x", 8).names() == ("x_outer", "x_inner")
    assert Fuse("y", "x").name() == "y_x" and len({Tile(y=1), Tile(y=1)}) == 1


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("split: {axis: x}", "1:16", "it needs a factor"),
        ("rfactor: {axis: k, factor: 8, block: 8}", "1:53", "block how many neighbours"),
        ("split: {axis: x, factor: 2, factors: [~, 2]}", "1:53", "exclude each other"),
        ("split: {axis: x, factors: [~, 2, 4]}", "1:42", "3 parts need names"),
        ("split: {axis: x, factors: [~, ~], into: [a, b]}", "1:42", "of which one may be null"),
        ("split: {axis: x, factor: 4, into: [a, b, c]}", "1:50", "3 names to 2 parts"),
        ("split: {axis: x, factor: 4, into: [a, a]}", "1:50", "one name twice"),
        ("split: {axis: x, factor: 0}", "1:41", "an integer of at least 1"),
        ("split: {axis: x, factor: \"8\"}", "1:41", "an integer of at least 1"),
        ("split: {axis: x, factor: 8.0}", "1:41", "an integer of at least 1"),
        ("split: {axis: x, factr: 8}", "1:33", 'split has no key "factr"'),
        ("split: {factor: 8}", "1:16", "split needs axis"),
        ("vectorize: {axis: x, tail: guard}", "1:43", "tail without a width means nothing"),
        ("vectorize: {axis: x, tail: gard, width: 8}", "1:43", "auto, guard, shift or pad"),
        ("reorder: [a, a]", "1:25", "a is named twice"),
        ("fuse: [a]", "1:22", "expected a list"),
        ("gpu_blocks: [a, b, c, d]", "1:28", "4 loops for three block dimensions"),
        ("store_in: register", "1:26", "registers, stack, shared or global"),
        ("tile: {}", "1:22", "tile/sizes is empty"),
        ("tile", "1:16", "tile needs sizes"),
        ("paralel: x", "1:16", 'there is no directive "paralel"'),
        ("{parallel: x, unroll: y}", "1:16", "a list element holds 2 directives"),
        ("auto, fetch", "1:16", "auto stands among directives"),
        ("[fetch]", "1:16", "a list stands where a directive should"),
        ("unroll: {axis: x, factor: {pow2: [9, 15]}}", "1:42", "no power of two between"),
        ("unroll: {axis: x, factor: {choose: []}}", "1:51", "chooses from nothing"),
        ("parallel: \"$tx * 2\"", "1:26", "that is an integer"),
        ("unroll: {axis: x, factor: \"$tx ** 2\"}", "1:42", "is no hole"),
    ],
)  # fmt: skip
def test_contradictions_have_their_place(text: str, place: str, words: str) -> None:
    with pytest.raises(PlanError) as caught:
        read(text)
    assert str(caught.value).startswith(f"p.yaml:{place}: error[P0"), str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Split("x"), lambda: Split("x", 0), lambda: Split("x", "8"), lambda: Tile(), lambda: StoreIn("register"), lambda: Reorder("a", "a"),
        lambda: Vectorize("x", tail="shift"), lambda: Parallel(None), lambda: ExecutionPlan(schedule={"s": [Split]}), lambda: Split("x", True),
        lambda: ExecutionPlan(schedule={"s": ["paralel"]}), lambda: ExecutionPlan(version=2), lambda: ExecutionPlan(target={"kind": "cuda"}),
    ],
)  # fmt: skip
def test_python_is_held_to_the_same_rules(make: object) -> None:
    assert callable(make)
    with pytest.raises(PlanError):
        make()


def test_numbers_of_numpy_are_numbers() -> None:
    assert Tile(y=np.int64(8)) == Tile(y=8) and type(Tile(y=np.int32(8)).sizes["y"]) is int


def test_the_fields_of_the_examples() -> None:
    plan = ExecutionPlan(
        schedule={"u": [Tile(y=64, x=512), Parallel("y_outer"), Vectorize("x_inner", width="native")], "blur": [ComputeInline()]}
    )
    big = plan.with_schedule("u", [Tile(y=128, x=1024), Parallel("y_outer")])
    assert ExecutionPlan.from_yaml(big.to_yaml()) == big != plan
    assert big.schedule["blur"] == (ComputeInline(),)
    assert "    - tile: {y: 128, x: 1024}\n    - parallel: y_outer\n" in big.to_yaml()


@pytest.mark.parametrize("key", DIRECTIVES)
def test_every_directive_explains_itself(key: str) -> None:
    text = describe(key)
    assert text.startswith(key)
    assert all(word in text for word in ("egal", "Gains:", "Costs:", "before", "after"))
    (line,) = [line for line in summary().splitlines() if line.split()[0] == key]
    assert line.rstrip(" `").endswith((".", ")"))


def test_the_schema_takes_what_the_reader_takes() -> None:
    schema = plan_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = {
        "version": 1,
        "schedule": {"s": ["fetch", {"tile": {"y": 8, "x": "$tx"}}, {"vectorize": {"axis": "x", "width": "native"}}], "t": "auto"},
    }
    assert not list(validator.iter_errors(good))
    for bad in (
        {"schedul": {}},
        {"schedule": {"s": [{"tile": {"y": 0}}]}},
        {"schedule": {"s": [{"splt": "x"}]}},
        {"numerics": {"allow": "some"}},
    ):
        assert list(validator.iter_errors(bad)), bad


def test_the_schema_takes_random_plans() -> None:
    from fluorite.schedule import plain

    validator = jsonschema.Draft202012Validator(plan_schema())
    for seed in range(60):
        plan = plan_of(seed)
        assert not list(validator.iter_errors(plain(plan))), plan.to_yaml()


def test_every_code_is_explained() -> None:
    folder = Path(schedule.__file__).parent
    used = {
        code
        for file in folder.rglob("*.py")
        if file.name != "codes.py"
        for code in re.findall(r'"(P[0-9]{3})"', file.read_text(encoding="utf-8"))
    }
    assert used - set(CODES) == set()
