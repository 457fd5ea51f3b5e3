"""Streams, exit codes, --json, colour, and how fast --help is."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import fluorite

VERBS = ("check", "show", "explain", "tune", "build", "run", "bench")
LATER = ("launch", "import", "report", "simulate", "calibrate")


def test_help_names_every_verb_and_says_that_models_are_executed() -> None:
    ran = fluorite("--help")
    assert ran.code == 0 and "Running a model file" in ran.out and "executes it" in ran.out
    assert all(f"\n  {verb} " in ran.out for verb in (*VERBS, *LATER, "plan"))
    assert fluorite().out == ran.out


@pytest.mark.parametrize("words", [(v,) for v in VERBS] + [("plan", v) for v in ("init", "resolve", "diff", "schema", "directives")])
def test_every_verb_has_help(words: tuple[str, ...]) -> None:
    ran = fluorite(*words, "--help")
    assert ran.code == 0 and "--json" in ran.out and "-q, --quiet" in ran.out and "--color" in ran.out


SECONDS = """
import resource, sys
from fluorite.cli.app import main
main(["--help"])
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, file=sys.stderr)
sys.exit(any(name in sys.modules for name in ("numpy", "tvm", "yaml", "rich.progress")))
"""


def test_help_is_quick() -> None:
    """Processor seconds of the process, which other jobs on the machine do not change much; and nothing heavy was imported."""
    runs = [subprocess.run([sys.executable, "-c", SECONDS], capture_output=True, text=True, check=True) for _ in range(3)]
    assert min(float(one.stderr) for one in runs) < 0.3


@pytest.mark.parametrize("words", [(v,) for v in LATER] + [("plan", "auto"), ("plan", "rebase")])
def test_verbs_of_later_versions_are_refused_with_a_sentence(words: tuple[str, ...]) -> None:
    ran = fluorite(*words, "something", "--option", "3", "--json")
    assert ran.code == 1 and "is not built yet" in ran.err
    assert ran.document["errors"][0]["code"] == "R490" and ran.document["verb"] == " ".join(words)


@pytest.mark.parametrize(
    "words",
    [
        "nonsense",
        "check double.py --bogus",
        "check double.py --seed x",
        "plan diff a.yaml",
        "check double.py --plan a.yaml --plan b.yaml",
        "tune double.py",
        "build double.py",
        "check double.py --color blue",
        "check double.py --extents n",
        "check double.py --extents n=-3",
        "check double.py --extents m=3",
        "show double.py --at nowhere",
        "explain P999",
        "plan directives tilo",
        "run double.py --set y=3",
        "run double.py --set x",
        "run double.py --set x=wat",
    ],
)
def test_wrong_usage_is_2(words: str) -> None:
    ran = fluorite(*words.split(), "--json")
    assert ran.code == 2 and ran.err and "Traceback" not in ran.err
    document = ran.document
    assert not document["ok"] and [e["kind"] for e in document["errors"]] == ["usage"]


def test_a_bug_of_ours_is_70_and_leaves_a_report(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    import fluorite.cli.verbs.plan as verb

    def broken(*_: object) -> None:
        raise KeyError("a thing that should be there")

    monkeypatch.setattr(verb, "diff", broken)
    ran = fluorite("plan", "diff", "a.yaml", "b.yaml", "--json")
    assert ran.code == 70 and "Traceback" not in ran.err
    assert ran.document["errors"][0]["kind"] == "internal"
    (report,) = (cache / "reports").iterdir()
    assert str(report) in ran.err and "a thing that should be there" in report.read_text()
    report.unlink()


def test_an_internal_error_is_a_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    import fluorite.cli.verbs.plan as verb
    from fluorite.algo.errors import InternalError

    def broken(*_: object) -> None:
        raise InternalError("impossible")

    monkeypatch.setattr(verb, "diff", broken)
    assert fluorite("plan", "diff", "a.yaml", "b.yaml").code == 70


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_is_130(here: Path, number: signal.Signals, code: int) -> None:
    (here / "slow.py").write_text("import time\nopen('started', 'w').close()\ntime.sleep(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "fluorite", "check", "slow.py", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for _ in range(300):
        if (here / "started").exists():
            break
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code and "interrupted" in err and "Traceback" not in err
    assert json.loads(out)["ok"] is False


def test_a_reader_that_leaves_early_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-m", "fluorite", "plan", "schema"], stdout=write, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(write)
    assert process.returncode == 0 and process.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is full")
@pytest.mark.parametrize(("streams", "code", "said"), [(">/dev/full", 1, "stdout cannot be written"), (">&- 2>&- <&-", 0, "")])
def test_streams_that_are_full_or_closed(streams: str, code: int, said: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m fluorite plan directives split {streams}"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert ran.returncode == code and said in ran.stderr and bool(said) == bool(ran.stderr)


def test_quiet_says_nothing_but_errors(here: Path) -> None:
    (here / "p.yaml").write_text("version: 1\nprogram: double.py:double\n")
    assert fluorite("check", "--plan", "p.yaml", "--quick").err != ""
    assert fluorite("check", "--plan", "p.yaml", "--quick", "-q").err == ""
    assert fluorite("check", "nowhere.py", "-q").err != ""


def test_colour_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in fluorite("check", "nowhere.py").err
    assert "\x1b[31" in fluorite("check", "nowhere.py", "--color", "always").err
    assert "\x1b[" not in fluorite("check", "nowhere.py", "--color", "never").err


def test_devices_that_are_not_there_yet() -> None:
    assert fluorite("check", "double.py", "--device", "cuda:0").code == 1
    assert fluorite("check", "double.py", "--bind", "gpu0=cuda:1").code == 1


def test_version() -> None:
    import fluorite as package

    assert fluorite("--version").out == f"fluorite {package.__version__}\n"
