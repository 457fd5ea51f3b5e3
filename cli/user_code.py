"""Python files that a user names: run from their own folder, their errors told as sentences."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from fluorite.algo.errors import AlgorithmError, FluoriteError, InternalError, Problem

T = TypeVar("T")
_ROOT = Path(__file__).resolve().parent.parent
_ROOMS = tuple(f"{_ROOT / room}{os.sep}" for room in ("algo", "schedule", "codegen", "cli"))
_INSTALLED = tuple(os.path.realpath(p) + os.sep for p in dict.fromkeys((sys.prefix, sys.base_prefix)))
_loaded: dict[str, ModuleType] = {}


@contextmanager
def importing_from(folder: Path | None) -> Iterator[None]:
    """Modules beside the file can be imported while this lasts."""
    if folder is None:
        yield
        return
    entry, before = str(folder), list(sys.path)
    sys.path.insert(0, entry)
    try:
        yield
    finally:  # what the file has added stays, what it has taken away comes back
        added = [p for p in sys.path if p not in before and p != entry] if isinstance(sys.path, list) else []
        sys.path = [*added, *before]


def run_file(path: Path, shown: str) -> ModuleType:
    """The module of a Python file; it is run once. `shown` is its name in messages. Raises AlgorithmError."""
    real = os.path.realpath(path)
    if real in _loaded:
        return _loaded[real]
    try:
        code = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except OSError as error:
        raise AlgorithmError(
            Problem("A151", "algorithm", asked=f"{shown} cannot be read", why=(error.strerror or str(error)).lower())
        ) from None
    except (SyntaxError, ValueError) as error:
        raise _not_python(error, shown) from None
    name = f"__model_{len(_loaded)}_{path.stem}"  # a name of its own: a file called random.py must not become `random`
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        run_guarded(lambda: exec(code, module.__dict__), path.parent, shown)
    except BaseException:
        del sys.modules[name]
        raise
    _loaded[real] = module
    return module


def import_module(name: str, folder: Path | None, shown: str) -> ModuleType:
    """A module by its dotted name, from the folder or installed. Raises AlgorithmError."""
    return run_guarded(lambda: importlib.import_module(name), folder, shown)


def run_guarded(action: Callable[[], T], folder: Path | None, shown: str) -> T:
    """Run the user's code; whatever it raises becomes one AlgorithmError with the line of the user's that led there."""
    try:
        with importing_from(folder):
            return action()
    except FluoriteError as error:
        error.problems = tuple(_placed(p, error, folder) for p in error.problems)
        raise
    except InternalError:
        raise
    except BaseException as error:
        if type(error) is KeyboardInterrupt:
            raise
        raise _raised(error, folder, shown) from error


def _raised(error: BaseException, folder: Path | None, shown: str) -> AlgorithmError:
    line = user_line(error, folder)
    if isinstance(error, SyntaxError) and error.filename:
        return _not_python(error, as_shown(error.filename))
    what = traceback.format_exception_only(error)[-1].strip() or type(error).__name__
    if isinstance(error, SystemExit):
        what = f'SystemExit ({error.code}); put what only a program should do under  if __name__ == "__main__":'
    if line is None:
        return AlgorithmError(Problem("A150", "algorithm", asked=f"{shown} raised {what}"))
    file, number = line
    return AlgorithmError(
        Problem(
            "A150", "algorithm", file, number, asked=f"the file raised {what}", why=linecache.getline(os.path.abspath(file), number).strip()
        )
    )


def _not_python(error: SyntaxError | ValueError, shown: str) -> AlgorithmError:
    if isinstance(error, SyntaxError):
        text = (error.text or "").strip()
        return AlgorithmError(
            Problem("A152", "algorithm", shown, error.lineno, error.offset, asked=f"the file is not valid Python: {error.msg}", why=text)
        )
    return AlgorithmError(Problem("A152", "algorithm", shown, asked=f"the file is not valid Python: {error}"))


def _placed(problem: Problem, error: BaseException, folder: Path | None) -> Problem:
    """The problem with the user's line, where nothing else says where it comes from."""
    if problem.place() or (line := user_line(error, folder)) is None:
        return problem
    return problem.with_(file=line[0], line=line[1])


def user_line(error: BaseException, folder: Path | None) -> tuple[str, int] | None:
    """File and line of the innermost frame that is the user's own code."""
    found = None
    inside = None if folder is None else os.path.realpath(folder) + os.sep
    for frame in traceback.extract_tb(error.__traceback__):
        real = os.path.realpath(frame.filename)
        installed = real.startswith(_INSTALLED) and not (inside is not None and real.startswith(inside))
        ours = real.startswith(_ROOMS) or os.path.dirname(real) == str(_ROOT)
        if frame.lineno and os.path.isfile(real) and not installed and not ours:
            found = (as_shown(frame.filename), frame.lineno)
    return found


def as_shown(file: str) -> str:
    """A path as messages have it: from here, where that is shorter."""
    try:
        return min(os.path.relpath(file), file, key=len)
    except ValueError:  # another drive
        return file
