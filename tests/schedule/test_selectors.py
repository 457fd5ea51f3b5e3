"""Selectors: what they match, what they refuse, which of several entries a stage takes."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest
from fluorite.algo.errors import PlanError
from fluorite.schedule import ExecutionPlan, Parallel, Place, assign, bind, bound, parse_selector, select
from fluorite.schedule.pool import Pool
from fluorite.schedule.selectors import generalised
from hypothesis import given, settings
from hypothesis import strategies as st

PLACE = Place("p.yaml", 3, 21)


@dataclass(frozen=True)
class Stage:
    path: str
    facts: dict[str, str] = field(default_factory=dict)
    source: str = "gpt.py:33"

    @property
    def method(self) -> str:
        return self.path.split("/")[0]


def stage(path: str) -> Stage:
    role = "gradient" if "/grad/" in path else "update" if "/update/" in path else "forward"
    return Stage(path, {"kind": "matmul" if path.endswith("matmul") else "elementwise", "role": role, "dtype": "f32"})


NAMES = ("up/matmul", "gelu", "softmax/exp", "softmax/sum")
STAGES = [stage(f"{method}/layers.{i}/{name}") for method in ("train_step", "predict") for i in range(12) for name in NAMES]
STAGES += [stage("train_step/blur/blur"), stage("train_step/blur/rows"), stage("predict/head"), stage("train_step/head")]
STAGES += [stage(f"train_step/grad/loss/layers.{i}/up/w") for i in range(12)] + [stage("train_step/grad/loss/head")]
STAGES += [stage("train_step/update/optimizer/layers.0/up/w")]


def paths(selector: str, scopes: bool = True) -> list[str]:
    return [one.path for one in select(selector, STAGES, PLACE, "GPT", scopes)]


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ("layers.*/up/matmul", 24), ("layers.3/gelu", 2), ("train_step/layers.3/gelu", 1), ("/train_step/layers.3/gelu", 1), ("layers.<2-10>/gelu", 18),
        ("/train_step/layers.*/gelu", 12), ("head", 2), ("grad/loss/head", 1), ("grad/**", 13), ("grad/loss/layers.*/up/w", 12), ("blur", 1),
        ("layers.1", 8), ("layers.1/softmax", 4), ("kind=matmul", 24), ("role=gradient", 13), ("layers.1/kind=matmul", 2), ("update/**", 1),
        ("/train_step/**/gelu", 12), ("**", len(STAGES)), ("*/head", 2), ("softmax/*", 48), ("layers.1*/gelu", 6), ("kind=elementwise/dtype=f32", len(STAGES) - 24),
        ("/train_step/*/gelu", 12), ("gr*/loss/head", 1),
    ],
)  # fmt: skip
def test_what_a_selector_matches(selector: str, count: int) -> None:
    assert len(paths(selector)) == count


def test_a_suffix_never_enters_gradients_or_updates() -> None:
    for selector in ("head", "*/head", "layers.0/**", "layers.0"):
        assert not any("/grad/" in path or "/update/" in path for path in paths(selector)), selector
    assert paths("grad/loss/head") == ["train_step/grad/loss/head"]


def test_a_stage_comes_before_a_scope_of_its_name() -> None:
    assert paths("blur") == ["train_step/blur/blur"]


@pytest.mark.parametrize(
    ("selector", "scopes", "text"),
    [
        ("layer.*/gelu", True, 'p.yaml:3:21: error[P101]: selector "layer.*/gelu" matches nothing in GPT\n  nearest: layers.*/gelu (12 stages in train_step, 12 in predict)'),
        ("unsharp", True, 'error[P101]: selector "unsharp" matches nothing in GPT\n  there are: train_step/layers.0/up/matmul, '),
        ("haed", True, "\n  try: head"),
        ("kind=matmull", True, "kind is one of: elementwise, matmul"),
        ("up/matmul", True, 'error[P102]: selector "up/matmul" matches 12 stages of train_step; without a wildcard it may match one per method\n'
         "  train_step/layers.0/up/matmul ... train_step/layers.11/up/matmul   (gpt.py:33)\n  for all of them write: layers.*/up/matmul\n  for one of them write: layers.0/up/matmul"),
        ("layers.1/softmax", False, 'error[P104]: "layers.1/softmax" is a module or operator of 4 stages; a key of schedule names stages\n  its stages: train_step/layers.1/softmax/exp,'),
        ("a//b", True, "error[P106]"), ("", True, "error[P106]"), ("/", True, "error[P106]"), ("{x}", True, "error[P106]"), ("x**", True, "error[P106]"),
        ("*a*a*a*a*", True, "error[P106]"),
        ("knd=matmul", True, "error[P106]: \"knd=matmul\" is no selector\n  'knd' is not known"), ("/".join(["**"] * 9), True, "error[P106]"),
    ],
)  # fmt: skip
def test_refusals(selector: str, scopes: bool, text: str) -> None:
    with pytest.raises(PlanError) as caught:
        paths(selector, scopes)
    assert text in str(caught.value)


@pytest.mark.parametrize("selector", ["layers.0/up/w", "up/w", "layers.0/up/ww", "optimizer/layers.0", "haed", "layers.1/gel"])
def test_what_is_tried_instead_matches(selector: str) -> None:
    """A name that stands inside gradients or updates alone is given with the part by which a selector enters them."""
    with pytest.raises(PlanError) as caught:
        paths(selector)
    (problem,) = caught.value.problems
    assert problem.try_ and selector not in problem.try_
    for hint in problem.try_:
        assert paths(hint)


def test_wildcards_bind_together() -> None:
    groups = bind(["layers.*/up/matmul", "layers.*/gelu"], STAGES)
    assert len(groups) == 24
    assert [one.path for one in groups[1]] == ["train_step/layers.1/up/matmul", "train_step/layers.1/gelu"]
    assert [one.path for one in bind(["head", "layers.<0-0>/gelu"], STAGES)[0]] == ["train_step/head", "train_step/layers.0/gelu"]
    with pytest.raises(PlanError, match=r'error\[P105\]: "layers.<0-1>/gelu" matches nothing in train_step with 2 for its wildcards'):
        bind(["layers.<0-2>/up/matmul", "layers.<0-1>/gelu"], STAGES)


def test_the_target_of_compute_at_binds_with_its_entry() -> None:
    one = next(each for each in STAGES if each.path == "predict/layers.7/up/matmul")
    assert bound("layers.*/gelu", "layers.*/up/matmul", one) == "layers.7/gelu"
    assert bound("/predict/layers.<0-9>/gelu", "layers.*/up/matmul", one) == "/predict/layers.7/gelu"
    assert bound("head", "layers.*/up/matmul", one) == "head"


def test_specificity() -> None:
    order = [
        "/train_step/layers.0/gelu",
        "layers.0/gelu",
        "layers.<0-3>/gelu",
        "layers.*/gelu",
        "gelu",
        "layers.<0-3>/*",
        "*",
        "kind=elementwise",
        "**",
    ]
    ranks = [parse_selector(text).specificity for text in order]
    assert ranks == sorted(ranks, reverse=True) and len(set(ranks)) == len(ranks)


def test_the_most_specific_entry_wins() -> None:
    plan = ExecutionPlan.from_yaml(
        "schedule: {layers.*/gelu: [fetch], layers.<0-1>/gelu: auto, layers.0/gelu: [compute_root], kind=elementwise: auto}"
    )
    taken = {path: match.selector for path, match in assign(plan.entries(), STAGES).items()}
    assert [taken[f"predict/layers.{i}/gelu"] for i in range(3)] == ["layers.0/gelu", "layers.<0-1>/gelu", "layers.*/gelu"]
    assert taken["train_step/head"] == "kind=elementwise"
    assert list(taken) == [one.path for one in STAGES if one.path in taken]


def test_equally_specific_entries_are_refused_with_both_lines() -> None:
    plan = ExecutionPlan.from_yaml("schedule:\n  layers.*/gelu: auto\n  layers.1*/gelu: auto\n  nothing: auto\n", "p.yaml")
    with pytest.raises(PlanError) as caught:
        assign(plan.entries(), STAGES, "GPT")
    assert {one.code for one in caught.value.problems} == {"P101", "P103"}
    assert 'p.yaml:3:3: error[P103]: "layers.1*/gelu" and "layers.*/gelu" both mean train_step/layers.1/gelu' in str(caught.value)
    assert "the other one is at p.yaml:2:3" in str(caught.value)


def test_entries_that_match_nothing() -> None:
    text = "schedule:\n  - {select: [nothing], optional: true, do: [fetch]}\n  - {select: [head, rows], do: auto}\n"
    plan = ExecutionPlan.from_yaml(text, "p.yaml")
    assert list(assign(plan.entries(), STAGES)) == ["train_step/blur/rows", "predict/head", "train_step/head"]
    made = ExecutionPlan.from_yaml("schedule: {made_later: auto, head: auto}")
    assert list(assign(made.entries(), STAGES, missing_ok=True)) == ["predict/head", "train_step/head"]
    with pytest.raises(PlanError, match="made_later"):
        assign(made.entries(), STAGES)
    wrong = ExecutionPlan.from_yaml("schedule:\n  - select: [head, haed]\n    do: auto\n", "p.yaml")
    with pytest.raises(PlanError, match=r"p\.yaml:2:20: error\[P101\]"):
        assign(wrong.entries(), STAGES)


parts = st.sampled_from(["a", "b", "layers.0", "layers.12", "grad", "w"])
some_paths = st.lists(parts, min_size=2, max_size=6).map("/".join)


@settings(max_examples=200, deadline=None)
@given(some_paths, st.integers(1, 6))
def test_every_end_of_a_path_matches_unless_it_leaves_out_grad(path: str, length: int) -> None:
    whole = path.split("/")
    rest, end = whole[:-length], whole[-length:]
    assert (parse_selector("/".join(end)).captures(path) is not None) is ("grad" not in rest)
    assert parse_selector("/" + path).captures(path) == ()
    assert parse_selector("**").captures(path) == (path,)


@settings(max_examples=200, deadline=None)
@given(st.lists(some_paths, min_size=2, max_size=5, unique=True))
def test_the_proposed_wildcard_matches_all_of_them(some: list[str]) -> None:
    selector = parse_selector(generalised(some))
    assert all(selector.captures(path) is not None for path in some if "grad" not in path)


wild_parts = st.sampled_from(["a", "b", "layers.0", "layers.12", "grad", "update", "w", "*", "**", "layers.*", "layers.<0-5>", "l*.1*", "q", "q*"])
wild_selectors = st.tuples(st.sampled_from(["", "/"]), st.lists(wild_parts, min_size=1, max_size=5).map("/".join)).map("".join)


@settings(max_examples=600, deadline=None)
@given(wild_selectors, st.lists(some_paths, min_size=1, max_size=8))
def test_the_index_finds_what_the_pattern_matches(text: str, some: list[str]) -> None:
    try:
        selector = parse_selector(text)
    except PlanError:
        return
    pool = Pool([stage(path) for path in some])
    assert pool.matching(selector) == [one for one in pool.all if selector.match(one) is not None]
    assert pool.below(selector) == [one for one in pool.all if selector.inside(one.path) is not None]


@pytest.mark.parametrize("name", ["layers.{}/gelu", "q{}", "layers.{}*/gelu", "*/q{}"])
def test_many_selectors_take_no_longer_each_than_few(name: str) -> None:
    """Ratios of processor time in one run: five times the selectors, about five times the time."""

    def seconds(count: int) -> float:
        entries = ExecutionPlan(schedule={name.format(i): [Parallel(axis="y")] for i in range(count)}).entries()
        started = time.process_time()
        with pytest.raises(PlanError):
            assign(entries, STAGES)
        return time.process_time() - started

    few = min(seconds(400) for _ in range(3))
    assert min(seconds(2000) for _ in range(3)) < 15 * few + 0.05
