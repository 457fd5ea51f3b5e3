"""The search with a measurer that only pretends: what is tried, what wins, what is told, and that it resumes exactly."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import fluorite as fl
import pytest
from fluorite.algo.errors import PlanError
from fluorite.codegen.target import resolve_target
from fluorite.codegen.tuning import merge
from fluorite.codegen.tuning.journal import Journal, read
from fluorite.codegen.tuning.records import Outcome, Progress, Trial
from fluorite.codegen.tuning.search import Budget, Found, search
from fluorite.codegen.tuning.space import Candidate, Space
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

HEADER = {
    "plan": "p",
    "structure": "s",
    "target": {"kind": "llvm"},
    "toolchain": {"tvm": "1"},
    "seed": 0,
    "objective": {},
    "at": [],
    "inputs": "random",
}
TEXT = """
holes: {f: {range: [1, 40]}, g: {range: [1, 40]}}
schedule: {scale: [{split: {axis: i, factor: $f, into: [a, b]}}, {split: {axis: b, factor: $g, into: [c, d]}}]}
tune: {where: ["$f * $g <= 1200"]}
"""


def scale(x: fl.f32[fl.Tensor, "n"]) -> object:
    return fl.stage(lambda i: x[i] * 2, name="scale")


class Pretending:
    """Seconds are a function of the two factors."""

    def __init__(self, seconds: Callable[[int, int], float | Outcome], again: Callable[[int, int], float] | None = None) -> None:
        self.seconds, self.again = seconds, again or seconds
        self.asked: list[tuple[int, int]] = []

    def _factors(self, plan: ExecutionPlan) -> tuple[int, int]:
        first, second = plan.schedule["scale"]
        return first.factor, second.factor

    def baseline(self) -> Outcome:
        return Outcome(seconds=1.0, baseline=1.0)

    def measure(self, plan: ExecutionPlan) -> Outcome:
        self.asked.append(self._factors(plan))
        found = self.seconds(*self.asked[-1])
        return found if isinstance(found, Outcome) else Outcome(seconds=found, baseline=1.0)

    def compare(self, plans: Sequence[ExecutionPlan]) -> list[Outcome]:
        found = [self.again(*self._factors(p)) for p in plans]
        return [f if isinstance(f, Outcome) else Outcome(seconds=f, baseline=1.0) for f in found]

    def close(self) -> None: ...


def space(text: str = TEXT) -> Space:
    return Space(ExecutionPlan.from_yaml(text), fl.trace(scale), resolve_target(Target()))


def bowl(f: int, g: int) -> float:
    return 0.2 + ((f - 23) ** 2 + (g - 9) ** 2) / 500


def run(measurer: Pretending, trials: int = 60, journal: Journal | None = None, **options: object) -> Found:
    return search(space(), measurer, journal or Journal.start(None, HEADER), Budget(trials, options.pop("limit", None)), 0, **options)  # type: ignore[arg-type]


def factors(found: Candidate | None) -> tuple[int, int]:
    assert found is not None
    return found.choice["$f"], found.choice["$g"]


def test_it_finds_the_bottom_of_a_bowl() -> None:
    measurer = Pretending(bowl)
    found = run(measurer, 150)
    f, g = factors(found.winner)
    assert abs(f - 23) <= 3 and abs(g - 9) <= 3
    assert found.seconds < 0.23 and found.baseline == 1.0
    drawn = sorted(bowl(f, g) for f, g in measurer.asked[:30])
    assert found.seconds < drawn[0], "steps from the best must do better than the random start"


def test_nothing_is_tried_twice_and_conditions_hold() -> None:
    measurer = Pretending(bowl)
    run(measurer, 120)
    assert len(set(measurer.asked)) == len(measurer.asked) == 120
    assert all(f * g <= 1200 for f, g in measurer.asked)
    assert (1, 1) not in measurer.asked, "the defaults are the baseline"


def test_a_small_space_is_tried_whole() -> None:
    text = TEXT.replace("[1, 40]", "[1, 4]")
    measurer = Pretending(lambda f, g: 1.0 if (f, g) != (3, 2) else 0.5)
    found = search(space(text), measurer, Journal.start(None, HEADER), Budget(50), 0)
    assert len(measurer.asked) == 15 and factors(found.winner) == (3, 2)


@pytest.mark.parametrize("again", [1.0, 0.995, 1.2])
def test_it_is_never_slower_than_the_untuned_plan(again: float) -> None:
    """A candidate that looked fast in its trial, and is not when measured again, does not win; nor does a tie."""
    found = run(Pretending(bowl, lambda f, g: again), 40)
    assert found.winner is None and found.seconds == found.baseline == 1.0


def test_all_slower_keeps_the_untuned_plan_without_a_last_comparison() -> None:
    measurer = Pretending(lambda f, g: 1.5, lambda f, g: pytest.fail("compared"))
    assert run(measurer, 20).winner is None


def test_finalists_that_fail_on_awkward_extents_do_not_win() -> None:
    fastest: list[tuple[int, int]] = []

    def again(f: int, g: int) -> float | Outcome:
        fastest.append((f, g))
        return Outcome("wrong", why="scale(n=1) is wrong") if len(fastest) == 1 else bowl(f, g)

    found = run(Pretending(bowl, again), 60)  # type: ignore[arg-type]
    assert found.winner is not None and factors(found.winner) != fastest[0]


def test_failures_are_counted_by_reason_and_illegal_ones_cost_no_trial() -> None:
    reasons = ("illegal", "build", "crash", "time-out", "wrong", "slow")

    def seconds(f: int, g: int) -> float | Outcome:
        return Outcome(reasons[f % 8], why="planted") if f % 8 < 6 else bowl(f, g)  # type: ignore[arg-type]

    told: list[Progress] = []
    found = run(Pretending(seconds), 40, watch=told.append)
    last = told[-1]
    assert last.phase == "final" and set(last.failures) == set(reasons)
    assert sum(t.outcome.failure != "illegal" for t in found.trials) == 40
    assert last.failures["illegal"] == len(found.trials) - 40 > 0
    assert [p.done for p in told] == sorted(p.done for p in told)
    assert factors(found.winner)[0] % 8 >= 6


def test_progress_says_the_best_and_what_is_left() -> None:
    told: list[Progress] = []
    now = iter(range(10**6))
    run(Pretending(bowl), 30, watch=told.append, clock=lambda: float(next(now)))
    trials = [p for p in told if p.phase == "trials"]
    assert [p.best for p in trials] == sorted((p.best for p in trials), reverse=True)  # type: ignore[type-var]
    assert trials[0].left > trials[-1].left == 0  # type: ignore[operator]
    assert "best" in trials[-1].text() and "30 of 30" in trials[-1].text()


def test_minutes_end_it() -> None:
    now = iter(range(10**6))
    found = run(Pretending(bowl), 1000, limit=200.0, clock=lambda: float(next(now)))
    assert 10 < len(found.trials) < 200


class Killed(BaseException):
    pass


@pytest.mark.parametrize("after", [1, 7, 33])
def test_a_killed_search_goes_on_as_it_would_have(tmp_path: Path, after: int) -> None:
    whole, first, second = Pretending(bowl), Pretending(bowl), Pretending(bowl)
    uninterrupted = run(whole, 50)
    path = tmp_path / "j.jsonl"

    def die(f: int, g: int) -> float:
        if len(first.asked) > after:
            raise Killed
        return bowl(f, g)

    first.seconds = die
    with pytest.raises(Killed):
        run(first, 50, Journal.start(path, HEADER))
    with path.open("ab") as file:
        file.write(b'{"trial":99,"key":"torn')
    resumed = run(second, 50, Journal.resume(path, HEADER))
    assert first.asked[:after] + second.asked == whole.asked
    assert resumed.resumed == after
    assert factors(resumed.winner) == factors(uninterrupted.winner)
    header, trials, length = read(path)
    assert header == HEADER and len(trials) == 50 and length == path.stat().st_size


def test_a_finished_search_resumed_with_more_trials_goes_on(tmp_path: Path) -> None:
    path, whole, more = tmp_path / "j.jsonl", Pretending(bowl), Pretending(bowl)
    run(Pretending(bowl), 30, Journal.start(path, HEADER))
    run(more, 90, Journal.resume(path, HEADER))
    run(whole, 90)
    assert more.asked == whole.asked[30:]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("plan", "q", "another plan"),
        ("structure", "t", "another program"),
        ("target", {"kind": "cuda"}, "another target"),
        ("toolchain", {"tvm": "2"}, "another version of the compiler"),
        ("seed", 1, "another seed"),
        ("at", [["scale", {"n": 5}]], "other extents"),
    ],
)
def test_a_journal_of_another_search_is_refused(tmp_path: Path, key: str, value: object, says: str) -> None:
    path = tmp_path / "j.jsonl"
    Journal.start(path, HEADER)
    with pytest.raises(PlanError) as refused:
        Journal.resume(path, {**HEADER, key: value})
    assert says in str(refused.value) and "j.jsonl" in str(refused.value)


@pytest.mark.parametrize("text", ["hello\n", '{"journal": 2}\n', '{"journal": 1}\n{"trial": 1}\n', "[]\n", '{"journal": 1}\n\xff\n'])
def test_what_is_no_journal_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(PlanError, match="P122"):
        Journal.resume(path, HEADER)
    assert path.read_bytes() == text.encode("latin-1")


def test_resuming_before_the_first_line_starts_anew(tmp_path: Path) -> None:
    for left in (None, b"", b'{"journal":1,"pl'):
        path = tmp_path / "j.jsonl"
        if left is not None:
            path.write_bytes(left)
        Journal.resume(path, HEADER)
        assert read(path)[0] == HEADER


def test_a_new_search_keeps_the_old_journal_beside_its_own(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    run(Pretending(bowl), 5, Journal.start(path, HEADER))
    before = path.read_bytes()
    Journal.start(path, HEADER)
    assert (tmp_path / "j.jsonl.old").read_bytes() == before and not read(path)[1]


def test_journals_merge_as_sets(tmp_path: Path) -> None:
    one, two, both, back = (tmp_path / f"{n}.jsonl" for n in ("one", "two", "both", "back"))
    run(Pretending(bowl), 20, Journal.start(one, HEADER))
    search(space(), Pretending(bowl), Journal.start(two, HEADER), Budget(20), 5)
    count = merge(both, [one, two])
    assert merge(back, [two, one]) == count == len({*read(one)[1], *read(two)[1]}) > 20
    assert read(both)[1].keys() == read(back)[1].keys()
    measurer = Pretending(bowl)
    run(measurer, 20, Journal.resume(both, HEADER))
    assert measurer.asked == []
    Journal.start(two, {**HEADER, "target": {"kind": "cuda"}})
    with pytest.raises(PlanError, match="another target"):
        merge(both, [one, two])


def test_trials_survive_json() -> None:
    for outcome in (Outcome(seconds=0.1 + 0.2, baseline=1 / 3), Outcome("crash", why="SIGSEGV")):
        trial = Trial(3, "k", outcome, {"$f": 3}, {"{}": {"a": [{"split": {"axis": "i", "factor": 2}}]}}, 1.5, "2026-01-01T00:00:00+00:00")
        assert Trial.of(json.loads(json.dumps(trial.data()))) == trial


def test_a_read_only_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanError, match="cannot be written"):
        Journal.start(tmp_path / "file" / "j.jsonl", HEADER)
