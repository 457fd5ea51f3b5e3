"""Whether a folder may be written, which is replaced as a whole where it is there already."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from fluorite.algo.errors import Problem


def folder_problems(output: Path, ours: Callable[[Path], bool], force: bool, model_file: Path | None = None) -> Iterator[Problem]:
    """B004 where something would be lost: what fluorite did not write (`ours`) is replaced with `force` alone, and what the user works in
    is not replaced at all."""
    if output.is_symlink() or (output.exists() and not output.is_dir()):
        yield _problem(f"{output} exists and is no folder", "", "another name")
    elif held := next((what for what, path in _lived_in(model_file) if path.resolve().is_relative_to(output.resolve())), ""):
        yield _problem(f"{output} would be replaced as a whole", f"it is, or holds, {held}", "a folder of its own: -o build/NAME")
    elif output.exists() and not force and not ours(output) and any(output.iterdir()):
        yield _problem(f"{output} exists", "and fluorite did not write it", "another name", "--force replaces it")


def _lived_in(model_file: Path | None) -> Iterator[tuple[str, Path]]:
    if model_file is not None:
        yield "the model's own file", model_file
    yield "the current folder", Path.cwd()
    try:
        yield "the home folder", Path.home()
    except RuntimeError:  # there is none
        return


def _problem(asked: str, why: str, *try_: str) -> Problem:
    return Problem("B004", "build", asked=asked, why=why, try_=try_)


__all__ = ["folder_problems"]
