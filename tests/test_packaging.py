"""What an installation holds: one package, all of its rooms, and nothing else at the top of site-packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("algo", "schedule", "codegen", "cli", "schedules")


def sources() -> set[str]:
    """Python files that belong to the package, from its top."""
    inside = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.py"), *inside)}


def test_every_folder_of_the_package_is_listed() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    folders = {Path(name).parent for name in sources()}
    assert sorted(listed) == sorted("fluorite" if f == Path() else f"fluorite.{'.'.join(f.parts)}" for f in folders)


@pytest.mark.slow
def test_the_wheel_holds_one_package(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in (*ROOMS, "tests", "examples", "benchmarks"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (*ROOT.glob("*.py"), ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "py.typed"):
        shutil.copy(path, tree)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path / "made", tree]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "made").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"fluorite"}
    held = {name.removeprefix("fluorite/") for name in names if name.startswith("fluorite/")}
    assert {name for name in held if name.endswith(".py")} == sources()
    assert {"py.typed", *(f"schedules/{p.name}" for p in (ROOT / "schedules").glob("*.yaml"))} <= held
