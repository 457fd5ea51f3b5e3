"""Every problem of a plan at once: mistakes of all phases in different lines show up together, exactly as each does alone."""

from __future__ import annotations

import random
from pathlib import Path

import fluorite as fl
import pytest
from fluorite.algo.errors import PlanError, Problem
from fluorite.codegen.checking import check
from fluorite.codegen.driver import as_plan, compile

HEIGHT, WIDTH = 24, 33
PAIRS = 6


def pairs(src: fl.f32[fl.Tensor, "h=24", "w=33"]) -> dict[str, fl.Tensor]:
    """Six producers, each with one reader of its own."""
    out = {}
    for n in range(PAIRS):
        soft = fl.edge(fl.stage(lambda y, x, n=n: src[y, x] * (n + 2), name=f"soft{n}"))
        out[f"sharp{n}"] = fl.stage(lambda y, x, soft=soft: soft[y, x - 1] + soft[y, x + 1], name=f"sharp{n}")
    out["best"] = fl.stage(lambda y: fl.argmax(lambda x: src[y, x]), name="best")
    return out


SOUND = {
    "soft": ["compute_at: {stage: sharpN, axis: y}", "vectorize: {axis: x, width: 4}"],
    "sharp": ["parallel: y"],
}
MISTAKES = {  # where: lines of soft, lines of sharp, lines under the plan itself
    "no such directive": ({"sharp": ["splat: y"]}, "P006"),
    "no such key": ({"sharp": ["split: {axes: y, factor: 4}"]}, "P006"),
    "not a number": ({"sharp": ["split: {axis: y, factor: many}"]}, "P008"),
    "no such hole": ({"sharp": ["split: {axis: y, factor: $none}"]}, "P014"),
    "of another machine": ({"sharp": ["gpu_lanes: y"]}, "P250"),
    "no such stage": ({"shap": ["parallel: y"]}, "P101"),
    "no selector": ({"sh{arp": ["parallel: y"]}, "P106"),
    "no such loop": ({"soft": ["parallel: z"]}, "P203"),
    "no such loop of the reader": ({"soft": ["compute_at: {stage: sharpN, axis: z}"]}, "P204"),
    "no such reader": ({"soft": ["compute_at: {stage: shrpN, axis: y}"]}, "P101"),
    "inside a vector": ({"sharp": ["vectorize: y"]}, "P204"),
    "too wide": ({"sharp": ["tile: {y: 3000}", "vectorize: y_inner"]}, "P211"),
    "a result": ({"sharp": ["compute_inline"]}, "P225"),
}


def lines(n: int, mistake: str | None) -> str:
    """The schedule of one pair, with one mistake in it or none."""
    said = {**SOUND, **(MISTAKES[mistake][0] if mistake else {})}
    out = []
    for name, directives in said.items():
        out.append(f'  "{name}{n}":')
        out += [f"    - {d.replace('N', str(n))}" for d in directives]
    return "\n".join(out)


def problems(folder: Path, mistakes: dict[int, str]) -> list[Problem]:
    """The plan has the same lines at the same places whichever of the mistakes are in it."""
    blocks = [lines(n, mistakes.get(n)) for n in range(PAIRS)]
    file = folder / "plan.yaml"
    file.write_text("version: 1\nschedule:\n" + "\n".join(blocks) + "\n")
    return list(check(pairs, str(file), quick=True).problems)


def facts(found: list[Problem], shift: int = 0) -> set[tuple[str, str]]:
    return {(p.code, p.asked) for p in found}


def test_the_sound_plan_is_sound(tmp_path: Path) -> None:
    assert problems(tmp_path, {}) == []


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_alone(tmp_path: Path, mistake: str) -> None:
    found = problems(tmp_path, {2: mistake})
    assert MISTAKES[mistake][1] in {p.code for p in found}
    assert all(p.file and p.line and p.column for p in found)


@pytest.mark.parametrize("seed", range(12))
def test_together_as_each_alone(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    chosen = dict(zip(draw.sample(range(PAIRS), 4), draw.sample(list(MISTAKES), 4), strict=True))
    alone = set().union(*(facts(problems(tmp_path, {n: m})) for n, m in chosen.items()))
    found = problems(tmp_path, chosen)
    assert facts(found) == alone, chosen
    places = [(p.line or 0, p.column or 0) for p in found]
    assert places == sorted(places)


def test_sections_and_loops(tmp_path: Path) -> None:
    """A section that is wrong does not hide loops that are, and what it would have named is no mistake of the others."""
    file = tmp_path / "plan.yaml"
    file.write_text(
        "version: 1\nextents: {q: 3}\nruntime: {threads: many}\n"
        "schedule:\n  sharp1: [{parallel: zz}]\n  best: [{split: {axis: x, factor: 4}}, {reorder: [x_inner, x_outer]}]\n"
        "variants:\n  - when: {g: 3}\n"
    )
    found = check(pairs, str(file), quick=True).problems
    assert [(p.line, p.code) for p in found] == [(2, "P111"), (3, "P008"), (5, "P203"), (6, "P214"), (8, "P111")]


def test_names_that_a_wrong_line_would_have_made(tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(
        "version: 1\nschedule:\n  sharp1: [{cache: {into: acc, orders: [y, x]}}]\n  sharp1/acc: [{parallel: y}]\n"
        "  sharp2: [{cache: {into: acc}}, {parallel: zz}]\n  sharp2/acc: [{vectorize: x}, {parallel: y}, {parallel: q}]\n"
    )
    found = check(pairs, str(file), quick=True).problems
    assert [(p.line, p.code) for p in found] == [(3, "P006"), (5, "P203"), (6, "P203")]


def test_loops_that_a_misspelt_line_would_have_made(tmp_path: Path) -> None:
    """What is computed at them is no mistake of its own."""

    def f(x: fl.f32[fl.Tensor, 24, 33]) -> fl.Tensor:
        rows = fl.stage(lambda y, x_: x[y, x_] + 1, name="rows")
        return fl.stage(lambda y, x_: rows[y, x_] * 2, name="out")

    file = tmp_path / "plan.yaml"
    file.write_text(
        "version: 1\nschedule:\n  out:\n    - split: {axis: y, factor: 4}\n    - paralell: y_outer\n"
        "  rows: [{compute_at: {stage: out, axis: y_outer}}]\n"
    )
    assert [(p.line, p.code) for p in check(f, str(file), quick=True).problems] == [(5, "P006")]


def test_a_plan_made_in_python() -> None:
    """Without places it cannot be told which line a problem is about: then what is found first is told."""
    from fluorite.schedule import ExecutionPlan, Parallel

    plan = ExecutionPlan(schedule={"sharp1": [Parallel(axis="z")], "nothing": [Parallel(axis="y")]})
    with pytest.raises(PlanError) as refused:
        compile(pairs, plan)
    assert {p.code for p in refused.value.problems} == {"P101", "P203"}


def test_a_plan_of_several_files(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("version: 1\nschedule:\n  sharp1: [{parallel: zz}]\n  sharp2: [{split: {axis: y, factor: $q}}]\n")
    (tmp_path / "own.yaml").write_text("version: 1\nextends: base.yaml\nschedule:\n  sharp3: [{unroll: u}]\n  sharp4: [{vectorise: x}]\n")
    found = check(pairs, str(tmp_path / "own.yaml"), quick=True).problems
    assert [(Path(p.file or "").name, p.line, p.code) for p in found] == [
        ("base.yaml", 3, "P203"),
        ("base.yaml", 4, "P014"),
        ("own.yaml", 4, "P203"),
        ("own.yaml", 5, "P006"),
    ]
    with pytest.raises(PlanError) as alone:
        as_plan(str(tmp_path / "own.yaml"))
    assert {p.code for p in alone.value.problems} == {"P006"}
