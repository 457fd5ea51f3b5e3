"""MODEL on the command line: a function or a Program in a Python file or module, or the folder of a built artefact."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .refusals import UsageError, not_built, usage
from .user_code import import_module, run_file, run_guarded

if TYPE_CHECKING:
    from fluorite.algo.graph import Graph

MANIFEST = "manifest.json"


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A model as its author wrote it. `shown` is MODEL with the name that was found; `folder` is where its imports are looked for."""

    model: Any
    name: str
    shown: str
    file: Path | None
    folder: Path | None

    def graph(self, method: str | None = None) -> Graph:
        """Traced; what goes wrong in the user's code is told with the user's line. Raises AlgorithmError."""
        from fluorite.algo.program import trace

        return run_guarded(lambda: trace(self.model, method), self.folder, self.shown)


@dataclass(frozen=True)
class Artifact:
    """The folder of a built model."""

    folder: Path


def find_model(text: str, folder: Path | None = None, near: Path | None = None) -> Algorithm | Artifact:
    """What MODEL names: paths from `near` (else from here), modules from `folder` (else from here). Raises UsageError, AlgorithmError."""
    path, name = _split(text)
    file = (near or Path()) / path
    if file.suffix == ".onnx":
        raise not_built("reading ONNX files", "an algorithm file in Python")
    if name is None and file.is_dir():
        if (file / MANIFEST).is_file():
            return Artifact(file)
        raise usage(f"MODEL {text}", f"the folder has no {MANIFEST}, so it is no artefact of fluorite", "file.py:Name")
    if file.suffix == ".py" or file.is_file():
        if not file.is_file():
            raise usage(f"MODEL {text}", f"there is no file {file}", *_similar(file))
        if file.suffix != ".py":
            raise usage(f"MODEL {text}", "it is no Python file", "file.py:Name", "the folder of a built model")
        return _member(run_file(file, str(file)), name, str(file), file, file.parent)
    if name is None or not all(part.isidentifier() for part in path.split(".")):
        raise usage(
            f"MODEL {text}",
            "there is no such file or folder",
            "file.py:Name",
            "package.module:Name",
            "the folder of a built model",
            *_similar(file),
        )
    home = folder or Path()
    module = import_module(path, home, path)
    origin = Path(module.__file__) if module.__file__ else None
    return _member(module, name, path, origin, home)


def find_algorithm(text: str, verb: str) -> Algorithm:
    found = find_model(text)
    if isinstance(found, Artifact):
        raise usage(
            f"{verb} {text}",
            "this is a built model, and the algorithm is needed",
            "file.py:Name",
            "run, bench and explain take built models",
        )
    return found


def _split(text: str) -> tuple[str, str | None]:
    """PATH:NAME; a drive letter's colon is no separator."""
    path, colon, name = text.rpartition(":")
    if colon and len(path) > 1 and all(part.isidentifier() for part in name.split(".")):
        return path, name
    return text, None


def _similar(file: Path) -> list[str]:
    from difflib import get_close_matches

    try:
        names = [entry.name for entry in file.parent.iterdir() if entry.suffix == ".py" or (entry / MANIFEST).is_file()]
    except OSError:
        return []
    return [str(file.parent / near) for near in get_close_matches(file.name, names, 2)]


def _member(module: ModuleType, name: str | None, shown: str, file: Path | None, folder: Path) -> Algorithm:
    if name is None:
        name = _only_model(module, shown)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise usage(f"MODEL {shown}:{name}", f"{shown} has no {part}", *_names(shown, models_of(module), part))
        found = getattr(found, part)
    _refuse_others(found, f"{shown}:{name}", module, shown)
    return Algorithm(found, name, f"{shown}:{name}", file, folder)


def _refuse_others(found: Any, text: str, module: ModuleType, shown: str) -> None:
    from fluorite.algo.program import Module, Program

    if isinstance(found, type) and issubclass(found, Program):
        missing = [
            p.name
            for p in inspect.signature(found).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if missing:
            raise usage(
                f"MODEL {text}",
                f"{found.__name__} cannot be made without {', '.join(missing)}",
                "give its __init__ default values",
                f"make one in the file, model = {found.__name__}(...), and name that",
            )
    elif not isinstance(found, Program) and (
        isinstance(found, type | Module) or not (inspect.isroutine(found) or hasattr(found, "__fluorite_function__"))
    ):
        raise usage(
            f"MODEL {text}",
            f"it is {_article(type(found).__name__)}, and a model is a function or a fl.Program",
            *_names(shown, models_of(module), ""),
        )


def models_of(module: ModuleType) -> list[str]:
    """The Programs of a module's own, else its public functions that declare their inputs."""
    from fluorite.algo.program import Program

    own = {k: v for k, v in vars(module).items() if not k.startswith("_") and getattr(v, "__module__", None) == module.__name__}
    programs = [k for k, v in own.items() if isinstance(v, type) and issubclass(v, Program)]
    return programs or [k for k, v in own.items() if not isinstance(v, type) and _declares_inputs(v)]


def _declares_inputs(value: Any) -> bool:
    from fluorite.algo.errors import FluoriteError
    from fluorite.algo.program import inputs_of

    inner = getattr(value, "__fluorite_function__", value)
    if not inspect.isfunction(inner):
        return False
    try:
        return bool(inputs_of(inner))
    except FluoriteError:
        return False


def _only_model(module: ModuleType, shown: str) -> str:
    names = models_of(module)
    if len(names) == 1:
        return names[0]
    if not names:
        raise usage(
            f"MODEL {shown}",
            "it holds no fl.Program and no function whose inputs are declared",
            'def blur(image: fl.f32[fl.Tensor, "h", "w"]): ...',
        )
    raise usage(f"MODEL {shown}", f"it holds {len(names)} models: say which", *_names(shown, names, ""))


def _names(shown: str, names: list[str], wanted: str) -> list[str]:
    from difflib import get_close_matches

    return [f"{shown}:{n}" for n in get_close_matches(wanted, names, 2) or names]


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


__all__ = ["Algorithm", "Artifact", "UsageError", "find_algorithm", "find_model"]
