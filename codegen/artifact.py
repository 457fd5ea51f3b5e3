"""Writing of an artefact: a folder to import, whole or not at all."""

from __future__ import annotations

import errno
import json
import keyword
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from fluorite.algo.errors import BuildError, Problem

from .output_folder import folder_problems
from .package_text import MARK, MODULE_NAMES, functions, module_text, stub_text
from .runtime import Model, weights
from .runtime.library import RUNTIME, installed_runtime
from .runtime.load import KERNELS, MANIFEST, WEIGHTS
from .runtime.manifest import SEAL, Manifest, digest, parse

_LONGEST_NAME = 200
_NEEDED_BY_ARTIFACTS = ("numpy", "tvm_ffi", "safetensors", "ml_dtypes", "tvm", "torch", "fluorite")


def write(
    manifest: Mapping[str, Any],
    kernels: Path | bytes,
    parameters: Mapping[str, np.ndarray[Any, Any]],
    output: str | Path,
    *,
    model_file: Path | None = None,
    force: bool = False,
) -> Path:
    """Write the importable folder `output` and return its path. The folder's name is the name to import it by.

    `manifest` is the compiler's, without `files`; `kernels` the linked library; `parameters` are the tensors that it lists.
    An existing folder is replaced if fluorite wrote it, or with `force`. Raises BuildError, and then leaves nothing behind.
    """
    output = Path(os.path.abspath(output))
    parsed = parse(manifest)
    if wrong := [*_name_problems(output.name, model_file), *_signature_problems(parsed)]:
        raise BuildError(wrong)
    require_place(output, model_file=model_file, force=force)
    runtime = installed_runtime()
    if runtime is None:
        raise BuildError(_problem("B005", f"{RUNTIME} is not installed", "an artefact carries it along", "pip install apache-tvm"))
    temporary: Path | None = None
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
        _fill(temporary, parsed, dict(manifest), kernels, parameters, runtime)
        _put(temporary, output)
    except OSError as error:
        raise BuildError(_problem("B006", f"{output} cannot be written", _reason(error))) from None
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
    return output


def require_place(output: str | Path, *, model_file: Path | None = None, force: bool = False) -> None:
    """Raises BuildError where `write` would refuse the folder, so that nothing is compiled in vain."""
    output = Path(os.path.abspath(output))
    if wrong := [*_name_problems(output.name, model_file)] or [*folder_problems(output, is_artifact, force, model_file)]:
        raise BuildError(wrong)


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with the digest by which the runtime knows that nobody changed it."""
    return {**manifest, SEAL: digest(manifest)}


def is_artifact(folder: Path) -> bool:
    """Whether fluorite wrote this folder."""
    try:
        return (folder / MANIFEST).is_file() and MARK in (folder / "__init__.py").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def _fill(
    folder: Path,
    parsed: Manifest,
    manifest: dict[str, Any],
    kernels: Path | bytes,
    parameters: Mapping[str, np.ndarray[Any, Any]],
    runtime: Path,
) -> None:
    (folder / KERNELS).write_bytes(kernels if isinstance(kernels, bytes) else kernels.read_bytes())
    shutil.copyfile(runtime, folder / RUNTIME)
    if parsed.parameters:
        weights.write(folder / WEIGHTS, {spec.name: parameters[spec.name].astype(spec.numpy, copy=False) for spec in parsed.parameters})
    (folder / "__init__.py").write_text(module_text(parsed), encoding="utf-8")
    (folder / "__init__.pyi").write_text(stub_text(parsed), encoding="utf-8")
    (folder / "py.typed").touch()
    (folder / "_runtime").mkdir()
    for source in sorted((Path(__file__).parent / "runtime").glob("*.py")):
        shutil.copyfile(source, folder / "_runtime" / source.name)
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    manifest = sealed({**manifest, "files": {name: _facts(folder / name) for name in files}})
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    folder.chmod(0o755)


def _put(folder: Path, output: Path) -> None:
    if not output.exists():
        folder.rename(output)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
    try:
        output.rename(old / output.name)
        try:
            folder.rename(output)
        except OSError:
            (old / output.name).rename(output)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _facts(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    return {"sha256": sha256(data).hexdigest(), "bytes": len(data)}


def _name_problems(name: str, model_file: Path | None) -> Iterable[Problem]:
    asked = f'"{name}" cannot be the name of an artefact'
    if not name.isidentifier() or keyword.iskeyword(name):
        yield _problem("B001", asked, "Python could not import it", "a name of letters, digits and _")
    elif len(name.encode()) > _LONGEST_NAME:
        yield _problem(
            "B001", f"a name of {len(name)} letters cannot be the name of an artefact", "file systems allow no such file", "a short name"
        )
    elif name in sys.stdlib_module_names:
        yield _problem("B002", asked, "it would hide a module of Python's own library", f"{name}_model")
    elif name in _NEEDED_BY_ARTIFACTS:
        yield _problem("B002", asked, "it would hide a package that it needs itself", f"{name}_model")
    elif model_file is not None and model_file.stem == name:
        yield _problem("B002", asked, f"the model's own file is called {model_file.name}", f"{name}_built")


def _signature_problems(manifest: Manifest) -> Iterable[Problem]:
    taken = {n for n in dir(Model) if not n.startswith("__")} | set(MODULE_NAMES)
    for name, spec in functions(manifest).items():
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            yield _problem("B003", f'"{name}" cannot be the name of a method', "it must be a public Python name", "rename the method")
        elif name in taken:
            yield _problem(
                "B003", f'"{name}" cannot be the name of a method', "every model has something of this name", "rename the method"
            )
        for i in spec.arguments:
            if not i.name.isidentifier() or keyword.iskeyword(i.name):
                yield _problem("B003", f'{name}: "{i.name}" cannot be the name of an input', "it is no Python name", "rename the input")


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return "there is no room for it"
        case errno.EROFS | errno.EACCES | errno.EPERM:
            return "the folder above it is read-only"
    return error.strerror or str(error)


def _problem(code: str, asked: str, why: str, *try_: str) -> Problem:
    return Problem(code=code, kind="build", asked=asked, why=why, try_=try_)
