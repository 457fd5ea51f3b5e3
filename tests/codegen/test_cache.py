"""The build cache: a second build neither imports TVM nor compiles, two at once are safe, and what matters is in the key."""

from __future__ import annotations

import ast
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.errors import BuildError
from fluorite.cli.files import write
from fluorite.codegen import cache, compiled, driver
from fluorite.codegen.cache import cached_file, key_of
from fluorite.codegen.compiled import compile_kernels
from fluorite.codegen.roofline import roofline
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

PROGRAM = """
import sys
import fluorite as fl
import numpy as np
def out(x):
    return fl.stage(lambda i: x[i] * 2 + 1)
made = fl.compile(out, inputs={"x": fl.f32("n")})
assert (made(np.ones(5, np.float32)) == 3).all()
print("tvm" in sys.modules)
"""
TOGETHER = """
import sys, time
from pathlib import Path
from fluorite.codegen import compiled
link = compiled._link
def both_then_link(*given):
    Path(sys.argv[1], sys.argv[2]).touch()
    deadline = time.monotonic() + 200
    while len(list(Path(sys.argv[1]).iterdir())) < 2:
        assert time.monotonic() < deadline, "the other one does not build"
        time.sleep(0.01)
    link(*given)
compiled._link = both_then_link
"""
"""Neither makes its library before both have found that there is none."""


def start(folder: Path, before: str = "", *given: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "FLUORITE_CACHE": str(folder)}
    command = [sys.executable, "-c", before + PROGRAM, *map(str, given)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.strip()


def test_two_builds_at_once_and_a_third_that_finds_all_ready(tmp_path: Path) -> None:
    cache, meeting = tmp_path / "cache", tmp_path / "meeting"
    meeting.mkdir()
    both = [start(cache, TOGETHER, meeting, name) for name in "ab"]
    assert [ended(p) for p in both] == ["True", "True"]
    libraries = list(cache.rglob("*.so"))
    assert len(libraries) == 1 and not [f for f in cache.rglob(".*") if f.is_file()], "no half-written file is left"
    written = libraries[0].read_bytes()
    assert ended(start(cache)) == "False"
    assert libraries[0].read_bytes() == written


def test_what_is_in_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLUORITE_CACHE", str(tmp_path))
    linked: list[object] = []

    def link(kernels: object, sizes: object, target: object, path: Path) -> None:
        linked.append(target)
        path.write_bytes(b"library")

    monkeypatch.setattr(compiled, "_link", link)

    def path(factor: float = 2, plan: str = "", cpu: str = "haswell", contract: bool = True, threads: int = 2) -> Path:
        def out(x: Any) -> Any:
            return fl.stage(lambda i: x[i] * factor)

        g = fl.trace(out, None, inputs={"x": fl.f32("n")})
        target = resolve_target(Target(cpu=cpu), contract, threads)
        chosen, _ = driver.prepared(ExecutionPlan.from_yaml(plan), g)
        return compile_kernels(driver.lower_variants(g, chosen, target), target)

    first = path()
    assert path() == first and len(linked) == 1
    others = [path(factor=3), path(plan="schedule: {out: [compute_root]}"), path(cpu="nehalem"), path(contract=False)]
    assert len({first, *others}) == 5 and len(linked) == 5
    monkeypatch.setattr(compiled, "TVM", "0.0.0")
    assert path() != first


def test_a_library_that_could_not_be_made_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLUORITE_CACHE", str(tmp_path))

    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cached_file(key_of("a"), ".so", fail)
    assert not [f for f in tmp_path.rglob("*") if f.is_file()]
    made = cached_file(key_of("a"), ".so", lambda p: p.write_bytes(b"whole") and None)
    assert made.read_bytes() == b"whole"
    assert stat.S_IMODE(made.parent.stat().st_mode) == 0o700


def test_a_file_that_is_there_is_not_made_again_unless_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLUORITE_CACHE", str(tmp_path))
    key = key_of("b")
    cached_file(key, ".so", lambda p: p.write_bytes(b"1") and None)
    assert cached_file(key, ".so", lambda p: pytest.fail("made again")).read_bytes() == b"1"
    assert cached_file(key, ".so", lambda p: p.write_bytes(b"2") and None, use=False).read_bytes() == b"2"


def test_a_cache_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLUORITE_CACHE", str(tmp_path / "file"))
    with pytest.raises(BuildError) as caught:
        cached_file(key_of("c"), ".so", lambda p: None)
    assert caught.value.problems[0].code == "B010" and "FLUORITE_CACHE" in str(caught.value)


def test_keys_do_not_run_together() -> None:
    assert key_of("ab", "c") != key_of("a", "bc") and len(key_of("x")) == 64


@pytest.mark.parametrize(
    ("environment", "folder"),
    [({"FLUORITE_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"), ({"XDG_CACHE_HOME": "/b"}, "/b/fluorite"), ({}, "~/.cache/fluorite")],
)
def test_where_it_is(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], folder: str) -> None:
    for name in ("FLUORITE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache.cache_folder() == Path(folder).expanduser()


def test_without_a_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("FLUORITE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    with pytest.raises(BuildError, match="no home folder"):
        cached_file(key_of("c"), ".so", lambda p: None)
    write(tmp_path / "out.txt", b"what needs no cache goes on")
    assert roofline().flops > 0


def test_keys_change_with_every_file_that_code_comes_from() -> None:
    """What `emit` imports of its own room, and what that imports in turn."""
    folder = Path(compiled.__file__).parent
    found, pending = set(), ["emit", "objects"]
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            around = "".join(f"{part}/" for part in Path(name).parent.parts)
            for node in ast.walk(ast.parse((folder / f"{name}.py").read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.level == 1:
                    modules = [node.module.replace(".", "/")] if node.module else [alias.name for alias in node.names]
                    pending += [around + m for m in modules]
    assert sorted(found) == sorted(compiled.EMISSION)
