"""MODEL: what it may be, and what is said of what it is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import fluorite

NET = """
import fluorite as fl


class Net(fl.Program):
    def __init__(self, size{default}):
        self.w = fl.param(in_=size, out=2, init=1.0)

    @fl.method
    def forward(self, x: fl.f32[fl.Tensor, "n", 3]):
        return x @ self.w


def loose(x: fl.f32[fl.Tensor, "n"]):
    return x + 1


small = Net(3)
"""


def test_a_file_with_one_model_is_enough() -> None:
    ran = fluorite("show", "double.py", "--at", "graph")
    assert ran.code == 0 and ran.out.startswith("graph double") and ran.err == ""


def test_a_file_with_several_models_is_refused_with_their_names() -> None:
    ran = fluorite("show", "photo.py", "--at", "graph")
    assert ran.code == 2 and ran.out == ""
    assert "photo.py:blur" in ran.err and "photo.py:sharpen" in ran.err and "helper" not in ran.err


def test_a_program_comes_before_functions(here: Path) -> None:
    (here / "net.py").write_text(NET.format(default="=3"))
    assert fluorite("show", "net.py", "--at", "graph").out.startswith("graph Net")


def test_an_instance_can_be_named_where_the_class_needs_arguments(here: Path) -> None:
    (here / "net.py").write_text(NET.format(default=""))
    refused = fluorite("show", "net.py", "--at", "graph")
    assert refused.code == 2 and "cannot be made without size" in refused.err
    assert fluorite("show", "net.py:small", "--at", "graph").out.startswith("graph Net")


def test_a_module_is_found_from_here(here: Path) -> None:
    (here / "package_of_models").mkdir()
    (here / "package_of_models" / "__init__.py").write_text("")
    (here / "package_of_models" / "inner.py").write_text((here / "double.py").read_text())
    before = list(sys.path)
    assert fluorite("show", "package_of_models.inner:double", "--at", "graph").code == 0
    assert sys.path == before


def test_a_file_imports_its_neighbours_and_leaves_the_path_alone(here: Path) -> None:
    folder = here / "deep"
    folder.mkdir()
    (folder / "neighbour_of_model.py").write_text("factor = 3\n")
    (folder / "scaled.py").write_text(
        (here / "double.py").read_text().replace("x[i] * 2", "x[i] * neighbour_of_model.factor") + "\nimport neighbour_of_model\n"
    )
    before = list(sys.path)
    ran = fluorite("show", "deep/scaled.py", "--at", "graph")
    assert ran.code == 0 and "* 3.0" in ran.out, ran.err
    assert sys.path == before


def test_a_model_may_have_the_name_of_a_standard_module(here: Path) -> None:
    (here / "random.py").write_text((here / "double.py").read_text())
    assert fluorite("show", "random.py", "--at", "graph").code == 0
    import random

    assert hasattr(random, "randint")


@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        ("nowhere.py:f", 2, "there is no file nowhere.py"),
        ("doubel.py", 2, "double.py"),
        ("photo.py:blurr", 2, "photo.py:blur"),
        ("photo.py:Gray", 2, "a model is a function or a fl.Program"),
        ("photo.py:fl", 2, "a model is a function or a fl.Program"),
        (".", 2, "no artefact of fluorite"),
        ("notes.txt", 2, "no Python file"),
        ("photo.py:", 2, "photo.py"),
        ("net.onnx", 1, "not built yet"),
        ("no such thing", 2, "there is no such file or folder"),
        ("missing_module_here:f", 1, "ModuleNotFoundError"),
        ("photo.py:helper", 1, "A125"),
    ],
)
def test_what_is_no_model_is_told_in_a_sentence(here: Path, model: str, code: int, said: str) -> None:
    (here / "notes.txt").touch()
    ran = fluorite("show", model, "--at", "graph")
    assert ran.code == code and ran.out == ""
    assert said in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import fluorite as fl\nx = 1 / 0\n", "bad.py:2: error[A150]: the file raised ZeroDivisionError: division by zero\n  x = 1 / 0"),
        ("def f(:\n    pass\n", "bad.py:1:7: error[A152]: the file is not valid Python: "),
        ("import sys\nsys.exit(3)\n", "bad.py:2: error[A150]: the file raised SystemExit (3)"),
        ("import nothing_of_this_name\n", "bad.py:1: error[A150]: the file raised ModuleNotFoundError"),
        ("\0\n", "error[A152]"),
        ("import fluorite as fl\ndef f(x: fl.f32[fl.Tensor, 'n']):\n    return x.nonsense\n", "bad.py:3: error[A150]"),
        ("import fluorite as fl\ndef f(x: fl.f32[fl.Tensor, 'n']):\n    if x:\n        return x\n", "bad.py:3: error[A401]"),
        ("import fluorite as fl\nclass P(fl.Program):\n    optimizer = fl.optim.SGD(0.1, accumulate=0)\n", "bad.py:3: error[A191]"),
    ],
)
def test_an_error_in_the_users_file_has_the_users_line(here: Path, text: str, said: str) -> None:
    (here / "bad.py").write_text(text)
    ran = fluorite("show", "bad.py", "--at", "graph")
    assert ran.code == 1 and said in ran.err and "Traceback" not in ran.err


def test_the_trace_is_there_with_v(here: Path) -> None:
    (here / "bad.py").write_text("x = 1 / 0\n")
    ran = fluorite("show", "bad.py", "-v")
    assert ran.code == 1 and "Traceback" in ran.err


def test_what_a_model_file_prints_does_not_reach_stdout(here: Path) -> None:
    (here / "loud.py").write_text('print("hello")\n' + (here / "double.py").read_text())
    ran = fluorite("show", "loud.py", "--at", "graph", "--json")
    assert ran.document["ok"] and "hello" in ran.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("raise SystemExit(3)", "SystemExit (3)"),
        ("class Stop(BaseException): pass\nraise Stop('no')", "Stop: no"),
        ("class Stop(KeyboardInterrupt): pass\nraise Stop('no')", "Stop: no"),
        ("raise GeneratorExit", "GeneratorExit"),
    ],
)
def test_whatever_a_file_raises_is_a_sentence(here: Path, line: str, said: str) -> None:
    (here / "odd.py").write_text(line + "\n")
    ran = fluorite("check", "odd.py:f")
    assert ran.code == 1 and said in ran.err and "Traceback" not in ran.err, ran


def test_a_file_that_takes_the_search_path_away(here: Path) -> None:
    (here / "odd.py").write_text("import sys\ndel sys.path[:]\n" + NET.format(default="=3"))
    before = list(sys.path)
    ran = fluorite("check", "odd.py:loose", "--quick")
    assert ran.code == 0, ran
    assert sys.path == before


INTERRUPTED = """
import sys
class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == "fluorite.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupted())
from fluorite.__main__ import main
main()
"""


def test_an_interrupt_while_modules_are_imported() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
