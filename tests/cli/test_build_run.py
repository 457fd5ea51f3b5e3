"""check, build, run, bench and tune on a small model, from the file and from what was built."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import fluorite

HOLES = """version: 1
program: photo.py:sharpen
schedule:
  sharp: [{vectorize: {axis: x, width: {choose: [8, 16]}}}]
tune: {at: [{h: 16, w: 32}]}
"""


ALONE = """
import sys
sys.path.insert(0, "build")
import numpy, sharp_tuned
print(sharp_tuned.run(numpy.ones((2, 3), "float32"), 1.0)["sharp"].shape)
"""
TUNABLE = """version: 1
program: double.py:double
schedule:
  twice: [{vectorize: {axis: i, width: {choose: [8, 16]}}}]
tune: {at: [{n: 256}]}
"""


@pytest.fixture
def image(here: Path) -> np.ndarray:
    array = np.random.default_rng(0).random((9, 11), np.float32)
    np.save(here / "in.npy", array)
    return array


def test_check_compares_with_the_oracle() -> None:
    ran = fluorite("check", "double.py", "--extents", "n=5", "--json")
    result = ran.document["result"]
    assert ran.code == 0 and result["ok"] and {"n": 5} in [c["extents"] for c in result["cases"]]
    text = fluorite("check", "double.py").out
    assert "max error" in text and "tolerance" in text and "class" in text


def test_check_with_inputs_of_ones_own(image: np.ndarray) -> None:
    ran = fluorite("check", "photo.py:sharpen", "--set", "image=in.npy", "--set", "amount=2", "--json")
    assert ran.code == 0 and "given" in {c["inputs"] for c in ran.document["result"]["cases"]}


@pytest.mark.parametrize("option", [("--bisect",), ("--against", "x.onnx")])
def test_parts_of_check_that_come_later(option: tuple[str, ...]) -> None:
    assert fluorite("check", "double.py", *option).code == 1


def test_a_kernel_that_computes_something_else_is_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from fluorite.codegen.runtime.method import Method

    right = Method.__call__
    monkeypatch.setattr(Method, "__call__", lambda self, *a, **k: right(self, *a, **k) * np.float32(1.001))
    ran = fluorite("check", "double.py", "--no-gradients", "--json")
    assert ran.code == 1 and ran.document["ok"] is False and ran.document["result"]["ok"] is False
    assert "wrong" in fluorite("check", "double.py", "--no-gradients").out


def test_run_from_the_file_and_from_what_was_built(here: Path, image: np.ndarray) -> None:
    given = ("--set", "image=in.npy", "--set", "amount=1.5")
    assert fluorite("build", "photo.py:sharpen", "-o", "build/sharp_tuned").out == "build/sharp_tuned\n"
    for model in ("photo.py:sharpen", "build/sharp_tuned"):
        ran = fluorite("run", model, *given, "-o", "sharp=s.npy", "-o", "soft=soft.png")
        assert ran.code == 0, ran.err
        assert ran.out.startswith("sharp: float32[9, 11]  min ")
        assert np.load("s.npy").shape == image.shape and (here / "soft.png").read_bytes().startswith(b"\x89PNG")
    assert fluorite("run", "build/sharp_tuned", *given, "-o", "all.npz").code == 0
    with np.load("all.npz") as all_of_it:
        assert set(all_of_it.files) == {"sharp", "soft"}
    alone = subprocess.run(
        [
            sys.executable,
            "-c",
            ALONE,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert alone.stdout == "(2, 3)\n"
    explained = fluorite("explain", "build/sharp_tuned", "--extents", "h=9,w=11")
    assert explained.code == 0 and "kernel calls" in explained.out and "memory of a call: " in explained.out
    timed = fluorite("bench", "build/sharp_tuned", *given, "--rounds", "2", "-q", "--json")
    assert timed.code == 0 and timed.document["result"]["rows"][0]["median"] > 0
    for verb in ("check", "show", "tune"):
        refused = fluorite(verb, "build/sharp_tuned", *(("-o", "t.yaml") if verb == "tune" else ()))
        assert refused.code == 2 and "built model" in refused.err
    assert fluorite("run", "build/sharp_tuned", "--plan", "p.yaml").code == 2


def test_an_artefact_that_was_changed_is_refused(here: Path) -> None:
    assert fluorite("build", "double.py", "-o", "twice").code == 0
    with (here / "twice" / "kernels.so").open("ab") as file:
        file.write(b"x")
    ran = fluorite("run", "twice", "--set", "x=[1]", "--json")
    assert ran.code == 1 and ran.document["errors"][0]["code"] == "R004"


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        ((), 2, "--set image=FILE"),
        (("--set", "image=3", "--set", "amount=1"), 1, "R105"),
        (("--set", "image=wide.npy", "--set", "amount=1"), 1, "float64"),
        (("--set", "image=absent.npy", "--set", "amount=1"), 1, "no such file"),
        (("--set", "imag=in.npy"), 2, "image"),
        (("--set", "image=in.npy", "--set", "image=in.npy"), 2, "given twice"),
        (("--set", "image=in.npy", "--set", "amount=1", "-o", "out.npy"), 2, "say which"),
        (("--set", "image=in.npy", "--set", "amount=1", "-o", "sarp=out.npy"), 2, "there is no result sarp"),
        (("--set", "image=in.npy", "--set", "amount=1", "-o", "sharp=out.tiff"), 2, ".npy"),
        (
            (
                "--method",
                "sharp",
            ),
            2,
            "no method sharp",
        ),
        (("--trace", "t.json"), 1, "not built yet"),
        (("--distributed", "m"), 1, "not built yet"),
    ],
)
def test_calls_that_cannot_be(here: Path, image: np.ndarray, given: tuple[str, ...], code: int, said: str) -> None:
    np.save(here / "wide.npy", image.astype(np.float64))
    before = sorted(p.name for p in here.iterdir())
    ran = fluorite("run", "photo.py:sharpen", *given)
    assert ran.code == code and said in ran.err and ran.out == "" and "Traceback" not in ran.err
    assert sorted(p.name for p in here.iterdir()) == before


def test_short_results_are_printed_whole() -> None:
    ran = fluorite("run", "double.py", "--set", "x=[1, 2.5]")
    assert ran.out == "out: float32[2]  [2.0, 5.0]\n"
    document = fluorite("run", "double.py", "--set", "x=[1, NaN]", "--json").document
    assert document["result"]["outputs"]["out"]["value"] == [2.0, "nan"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-o", "build/json"), "B002"),
        (("-o", "double"), "B002"),
        (("-o", "build/not-a-name"), "B001"),
        (("-o", "build/tvm"), "B002"),
        (("-o", "double.py"), "B00"),
        (("-o", "mine"), "B004"),
        (("-o", "build/x", "--weights", "absent.safetensors"), "R010"),
    ],
)
def test_builds_that_are_refused_leave_nothing(here: Path, arguments: tuple[str, ...], said: str) -> None:
    (here / "mine").mkdir()
    (here / "mine" / "thesis.txt").write_text("years of work")
    ran = fluorite("build", "double.py", *arguments)
    assert ran.code == 1 and said in ran.err and ran.out == ""
    assert (here / "mine" / "thesis.txt").exists() and not list(here.glob("build/*")) and not list(here.glob(".*"))


def test_what_the_user_works_in_is_never_replaced(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "models").mkdir()
    (here / "models" / "other.py").write_text((here / "double.py").read_text())
    monkeypatch.setattr("fluorite.codegen.artifact._name_problems", lambda *_: [])
    for output, name, held in ((f"../{here.name}", "double.py", "model's own file"), ("models", "models/other.py", "model's own file")):
        ran = fluorite("build", name, "-o", output, "--force")
        assert ran.code == 1 and f"it is, or holds, the {held}" in ran.err and (here / "models" / "other.py").exists()
    monkeypatch.chdir(here / "models")
    assert "it is, or holds, the current folder" in fluorite("build", "../double.py", "-o", ".", "--force").err
    monkeypatch.chdir(here)
    for name in ("x/y", "..", ""):
        assert fluorite("build", "double.py", "-o", "build", "--name", name).code == 2


def test_open_holes_are_said_in_one_line_and_refused_with_strict(here: Path) -> None:
    (here / "p.yaml").write_text(HOLES)
    ran = fluorite("build", "--plan", "p.yaml", "-o", "build", "--name", "sharp_built")
    assert ran.code == 0 and ran.out == "build/sharp_built\n"
    assert [line for line in ran.err.splitlines() if line.startswith("note:")] == [
        "note: schedule/sharp/0/vectorize/width is open; its first alternative is used"
    ]
    assert (here / "build" / "sharp_built" / "manifest.json").exists()
    strict = fluorite("build", "--plan", "p.yaml", "-o", "build/other", "--strict")
    assert strict.code == 1 and "--strict" in strict.err and not (here / "build" / "other").exists()


def test_bench_compares_plans_and_their_results(here: Path) -> None:
    (here / "p.yaml").write_text(HOLES)
    ran = fluorite("bench", "photo.py:sharpen", "--plan", "p.yaml", "--plan", "plans.py:empty", "--rounds", "3", "-o", "times.json")
    assert ran.code == 2  # plans.py is not there
    (here / "plans.py").write_text("from fluorite.schedule import ExecutionPlan\nempty = ExecutionPlan()\n")
    ran = fluorite("bench", "photo.py:sharpen", "--plan", "p.yaml", "--plan", "plans.py:empty", "--rounds", "3", "-o", "times.json")
    assert ran.code == 0 and "of the first" in ran.out and "same results" in ran.out, ran.err
    rows = json.loads((here / "times.json").read_text())["rows"]
    assert [r["rounds"] for r in rows] == [3, 3] and rows[0]["ratio"] == 1


def test_bench_asks_for_extents_that_it_cannot_know() -> None:
    ran = fluorite("bench", "double.py", "-q")
    assert ran.code == 2 and "--extents n=1024" in ran.err
    assert fluorite("bench", "double.py", "--peer", "torch").code == 1


def test_bench_sees_results_that_differ() -> None:
    from fluorite.cli.verbs.bench import Contender, compare

    def times(k: float) -> Contender:
        return Contender(str(k), lambda x: x * np.float32(k), "exact")

    x = np.ones((4, 4), np.float32)
    assert compare([times(1), times(1 + 1e-7), times(1.01)], [x])[:2] == ["", ""]
    assert "off by" in compare([times(1), times(1.01)], [x])[1]
    whole = [Contender("a", lambda x: x.astype(int), "exact"), Contender("b", lambda x: x.astype(int) + 1, "exact")]
    assert compare(whole, [x])[1] == "out differs in 16 of 16"


def test_tune_writes_a_plan_without_holes(here: Path) -> None:
    (here / "p.yaml").write_text(TUNABLE)
    (here / "tuned").mkdir()
    ran = fluorite("tune", "--plan", "p.yaml", "-o", "tuned/t.yaml", "--trials", "1")
    assert ran.code == 0 and "written to tuned/t.yaml" in ran.out, ran.err
    from fluorite.schedule import ExecutionPlan, holes_of

    tuned = ExecutionPlan.load("tuned/t.yaml")
    assert tuned.program == "../double.py:double" and not holes_of(tuned) and tuned.provenance["structure"]
    assert (here / "tuned" / "t.journal.jsonl").exists()
    assert fluorite("check", "double.py", "--plan", "tuned/t.yaml", "--quick").code == 0
    again = fluorite("tune", "--plan", "p.yaml", "-o", "tuned/t.yaml", "--trials", "1", "--resume", "--json")
    assert again.code == 0 and again.document["result"]["resumed"] >= 1


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "-o FILE is missing"),
        (("-o", "t.txt"), 2, "t.yaml"),
        (("-o", "photo.yaml"), 1, "R401"),
        (("-o", "t.yaml", "--build-only", "d"), 1, "not built yet"),
        (("-o", "t.yaml", "--measure", "d"), 1, "not built yet"),
        (("-o", "t.yaml", "--trials", "0"), 2, "--trials"),
        (("-o", "t.yaml", "--inputs", "absent.npz"), 1, "absent.npz"),
        (("-o", "absent/t.yaml"), 1, "R402"),
    ],
)
def test_tuning_that_is_refused(here: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    (here / "photo.yaml").write_text("mine")
    (here / "p.yaml").write_text(HOLES)
    ran = fluorite("tune", "--plan", "p.yaml", *arguments)
    assert ran.code == code and said in ran.err and not (here / "t.yaml").exists()


def test_progress_in_lines_and_as_a_bar() -> None:
    import io

    from fluorite.cli.progress import Bar, Lines, progress
    from fluorite.cli.terminal import Terminal
    from fluorite.codegen.tuning import Progress

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    now = Progress("trials", 3, 10, {"crash": 1}, 5.0, 12.0, 0.001, 0.002)
    log, screen = io.StringIO(), Screen()
    with progress(Terminal("tune", stderr=log)) as watch:
        assert isinstance(watch, Lines)
        for _ in range(5):
            watch(now)
    assert log.getvalue().count("\n") == 1 and "1 crash" in log.getvalue()
    with progress(Terminal("tune", stderr=screen)) as watch:
        assert isinstance(watch, Bar)
        watch(now)
        watch.bar.refresh()
    assert "3/10" in screen.getvalue() and "best 1 ms, 2.00 times" in screen.getvalue() and "12 s left" in screen.getvalue()
    with progress(Terminal("tune", quiet=True, stderr=screen)) as watch:
        assert isinstance(watch, Lines)


def test_an_extent_is_set_as_a_number(here: Path) -> None:
    (here / "ramp.py").write_text(
        'import fluorite as fl\n\n\ndef ramp(n: fl.extent, x: fl.f32[fl.Tensor]):\n    return fl.stage(lambda i: x * i, extents={"i": n})\n'
    )
    for given in (("--set", "n=4"), ("--extents", "n=4")):
        ran = fluorite("run", "ramp.py", *given, "--set", "x=0.5", "--json")
        assert ran.document["result"]["outputs"]["out"]["value"] == [0, 0.5, 1, 1.5], ran.err
    assert fluorite("check", "ramp.py", "--set", "n=5", "--set", "x=2").code == 0
    wrong = fluorite("run", "ramp.py", "--set", "n=2.5", "--set", "x=1")
    assert wrong.code == 1 and "n is 2.5, expected an extent" in wrong.err
    assert "# ramp(n: extent, x: float32[])" in fluorite("plan", "init", "ramp.py").out


RANKED = """
import fluorite as fl
import numpy as np


def ranks(x):
    return np.argsort(np.argsort(x)).astype(np.float32)


def ranked(x: fl.f32[fl.Tensor, "n"]):
    return 2 * fl.extern(ranks, x.shape, fl.f32, x, name="ranks")
"""


def test_a_function_of_the_file_itself_is_found_by_what_was_built_and_by_tuning(here: Path) -> None:
    (here / "sub").mkdir()
    (here / "sub" / "ranked_here.py").write_text(RANKED)
    (here / "sub" / "plan.yaml").write_text(
        "version: 1\nprogram: ranked_here.py:ranked\nschedule: {multiply: [{vectorize: {axis: n, width: {choose: [8, 16]}}}]}\n"
        "tune: {at: [{n: 64}]}\n"
    )
    tuned = fluorite("tune", "sub/ranked_here.py:ranked", "--plan", "sub/plan.yaml", "--trials", "2", "-o", "tuned.yaml")
    assert tuned.code == 0, tuned.err
    built = fluorite("build", "sub/ranked_here.py:ranked", "-o", "sub/ranked_built")
    assert built.code == 0, built.err
    manifest = json.loads((here / "sub" / "ranked_built" / "manifest.json").read_text())
    assert [e["function"] for e in manifest["externs"].values()] == ["ranked_here:ranks"]
    use = "import ranked_built; print(ranked_built.ranked([3.0, 1.0, 2.0]).tolist())"
    done = subprocess.run([sys.executable, "-c", use], cwd=here / "sub", capture_output=True, text=True, timeout=60)
    assert done.stdout == "[4.0, 0.0, 2.0]\n", done.stderr
    lost = fluorite("run", "sub/ranked_built", "--set", "x=[3,1,2]")
    assert lost.code == 1 and "R011" in lost.err and "put ranked_here where Python finds it" in lost.err


def test_a_function_of_a_file_that_has_the_name_of_a_module_of_pythons_is_refused(here: Path) -> None:
    (here / "wave.py").write_text(RANKED)
    assert fluorite("run", "wave.py:ranked", "--set", "x=[3,1,2]").code == 0
    refused = fluorite("build", "wave.py:ranked", "-o", "made")
    assert refused.code == 1 and "B007" in refused.err and "a file of its own for it, imported" in refused.err
