"""A fixed slice of random programs under random plans, and of plans with random mistakes; ``python -m tests.fuzz`` goes on from there."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from fluorite.algo.errors import Problem
from fluorite.codegen.runtime import memory, native
from fluorite.schedule import ExecutionPlan
from fuzz import pool, sources
from fuzz.guarded import poison
from fuzz.models import model
from fuzz.mutations import mutated, mutation
from fuzz.repair import repaired
from fuzz.run import trial

count: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def _poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_raw", memory._raw)  # both are put back when the test is done
    monkeypatch.setattr(native, "_FROM_NUMPY", native._FROM_NUMPY)
    poison()


ONCE_WRONG = (216, 246, 1171, 1630, 1996, 571, 1143, 2871)
"""A refusal of what a plan leaves open that said no place; a read of what another nest of a loop holds; scatters that added their tails
twice; stages inside one another; remainders of a vector that falls; a loop that a refused directive would have made; rows of a sort that
are written out."""
SEEDS = (*range(4000, 4040), *ONCE_WRONG)
MODELS = (*range(4, 12, 2), 32, 109)
"""Of the last two, the default scheduler met an owner without axes of its own in whose loops a plan computes something, and a call was
refused for what a loop of no turns would read."""
SOURCES = range(10, 16)
MISTAKES = range(0, 120, 6)


@pytest.mark.parametrize("seed", SEEDS)
def test_compiled_programs_agree_with_the_oracle(seed: int) -> None:
    count[trial(seed)] += 1


@pytest.mark.parametrize("seed", MODELS)
def test_models_of_other_kinds_agree_with_the_oracle(seed: int) -> None:
    model(seed)


def test_python_means_what_it_means_with_arrays_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "COMPILED", 3)
    said = Counter(sources.source(seed) for seed in SOURCES)
    assert said["agrees"] + said["agrees once repaired"] >= len(SOURCES) // 2, said


def test_most_plans_were_legal() -> None:
    """What is refused tests nothing but the refusal. Of the seeds that this process ran: tests are shared out among several."""
    ran = sum(count.values())
    if ran < 8:
        pytest.skip(f"only {ran} of the programs ran in this process")
    assert count["agrees"] + count["agrees once repaired"] >= ran * 3 // 4, count


@pytest.mark.parametrize("seed", MISTAKES)
def test_plans_with_mistakes_are_refused_in_words_or_mean_the_same(seed: int) -> None:
    for one in range(seed, seed + MISTAKES.step):
        mutation(one)


def test_mistakes_are_made() -> None:
    text = "version: 1\nschedule:\n  a: [{parallel: x}, {vectorize: {axis: y, width: 8}}]\n"
    made = {mutated(random.Random(seed), text) for seed in range(200)}
    assert len(made) > 100, len(made)


def test_what_is_refused_is_taken_out() -> None:
    text = "version: 1\nschedule:\n  /a:\n    - parallel: x\n    - unroll: y\n  /b: [compute_inline]\n  /c:\n    - cache: acc\n"
    ExecutionPlan.from_yaml(text)
    wrong = [Problem("P203", line=4, asked="x"), Problem("P203", line=5, asked="y"), Problem("P203", line=8, asked="acc")]
    assert repaired(text, wrong) == "version: 1\nschedule:\n  /a:\n    - unroll: y\n  /b: [compute_inline]\n"
    assert (
        repaired(text, [Problem("P101", line=3, asked="a")]) == "version: 1\nschedule:\n  /b: [compute_inline]\n  /c:\n    - cache: acc\n"
    )
    assert repaired(text, [Problem("P101", asked="a")]) is None


def test_a_trial_that_ends_its_process_is_one_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "tests" / "fuzz"
    program.mkdir(parents=True)
    (program / "pool.py").write_text(
        "import os, sys, time\nfor line in sys.stdin:\n    n = int(line)\n    if n == 1: os.abort()\n    if n == 2: time.sleep(60)\n"
        "    print('agrees', flush=True)\n"
    )
    monkeypatch.setattr(pool, "_ROOT", tmp_path)
    monkeypatch.setattr(pool, "SECONDS", 3.0)
    monkeypatch.setattr(pool, "WAITS", 1)
    said = {seed: what for seed, what, _ in pool.outcomes("plans", iter(range(4)), 2)}
    assert said == {0: "agrees", 1: "failed: its process ended with SIGABRT", 2: "failed: it takes longer than 3 s", 3: "agrees"}
