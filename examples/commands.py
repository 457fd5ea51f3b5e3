"""Running fluorite's command line from an example, with the command shown first."""

from __future__ import annotations

import importlib
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parent


def fluorite(*arguments: str | Path) -> None:
    """Ends the example with the command's exit code if it fails."""
    words = [str(a) for a in arguments]
    print(f"$ fluorite {shlex.join(words)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "fluorite", *words]).returncode
    if code:
        sys.exit(code)


def built_module(folder: Path) -> ModuleType:
    """`import NAME` for an artefact in `folder`, whose last part is NAME."""
    sys.path.insert(0, str(folder.resolve().parent))
    try:
        return importlib.import_module(folder.name)
    finally:
        sys.path.pop(0)


def relative(path: Path) -> Path:
    """Shorter to read where the path is below the current folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
