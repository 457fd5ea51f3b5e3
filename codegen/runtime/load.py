"""From an artefact's folder to a model: everything is checked before anything of it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import file_digest
from pathlib import Path
from typing import Any

from . import host, library, threads, weights
from .calling import externs, with_externs
from .errors import Problem, artifact_error, artifact_problem
from .feeding import Stream
from .ffi import Function
from .manifest import SEAL, Manifest, digest, parse
from .memory import aligned
from .model import Initial, Model, Slopes, read_manifest
from .parameters import Array

MANIFEST, KERNELS, WEIGHTS = "manifest.json", "kernels.so", "weights.safetensors"


def load(folder: str | Path) -> Model:
    """The model in an artefact's folder.

    Raises ArtifactError, one sentence for each thing that is wrong: not an artefact, another format, a changed or missing
    file, another kind of machine, a processor without the features that it needs, another version of the FFI library.
    """
    return Model(*open_folder(folder))


def open_folder(folder: str | Path) -> tuple[Manifest, Callable[[str], Function], Mapping[str, Array], int, Initial]:
    """The arguments of `Model` for an artefact's folder. Raises ArtifactError."""
    folder = Path(folder).absolute()  # the loader would search a bare file name elsewhere
    raw = read_manifest(folder / MANIFEST)
    manifest = parse(raw)
    if wrong := _problems(folder, manifest, raw):
        raise artifact_error(*wrong)
    arrays = _parameters(folder, manifest)
    count = threads.chosen(raw.get("threads", "all"))
    if wrong := list(host.refused_tiles(manifest.name, raw.get("target", {}))):
        raise artifact_error(*wrong)
    library.load_runtime(folder / library.RUNTIME)
    called = externs(raw)
    function, parallel = _functions(folder / KERNELS)
    function = with_externs(function, called)
    return manifest, function, arrays, count if parallel else 0, lambda seed: _parameters(folder, manifest) if seed is None else None


def _problems(folder: Path, manifest: Manifest, raw: Mapping[str, Any]) -> list[Problem]:
    try:
        wrong = [
            *host.problems(manifest.name, raw.get("target", {}), raw.get("toolchain", {}), host.cpu_features()),
            *_changed_files(folder, raw.get("files", {})),
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return [artifact_problem("R002", f"{folder / MANIFEST} is not one that fluorite writes ({type(error).__name__}: {error})")]
    if not wrong and raw.get(SEAL) != digest(raw):
        wrong.append(artifact_problem("R004", f"{folder / MANIFEST} was changed after it was built", "build or copy it again"))
    return wrong


def assemble(
    manifest: Mapping[str, Any],
    kernels: Path,
    parameters: Mapping[str, Array],
    initial: Initial | None = None,
    streams: Mapping[str, Stream] | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    slopes: Slopes | None = None,
) -> Model:
    """A model from what the compiler made, without a folder in between; for the machine and process that compiled it.

    Copies the parameters, in the types in which the model stores them. `functions` are those of the externs, by path. Raises ArtifactError.
    """
    count = threads.chosen(manifest.get("threads", "all"))
    if wrong := list(host.refused_tiles(manifest["name"], manifest["target"])):
        raise artifact_error(*wrong)
    library.load_runtime(library.installed_runtime() or Path(library.RUNTIME))
    found, parallel = _functions(kernels.absolute())
    function = with_externs(found, externs(manifest, functions or {}))
    parsed = parse(manifest)
    stored = {name: array.dtype for name, array in parameters.items()} | {spec.name: spec.numpy for spec in parsed.parameters}
    arrays = {name: aligned(array.shape, stored[name]) for name, array in parameters.items()}
    for name, array in arrays.items():
        array[...] = parameters[name]
    return Model(parsed, function, arrays, count if parallel else 0, initial, streams, slopes)


def _functions(kernels: Path) -> tuple[Callable[[str], Function], bool]:
    """The functions of a library by name, and whether any of them starts threads."""
    module = library.load_kernels(kernels)

    def function(name: str) -> Function:
        try:
            return module[name]
        except (AttributeError, RuntimeError):
            raise artifact_error(artifact_problem("R004", f"{kernels} has no kernel {name}")) from None

    return function, library.PARALLEL_LAUNCH in kernels.read_bytes()


def _parameters(folder: Path, manifest: Manifest) -> dict[str, Array]:
    if not manifest.parameters:
        return {}
    arrays = weights.read(folder / WEIGHTS)
    wrong = [
        artifact_problem("R010", f"{folder / WEIGHTS}: {spec.name} is not there as {spec.text()}")
        for spec in manifest.parameters
        if (a := arrays.get(spec.name)) is None or (a.shape, a.dtype) != (spec.shape, spec.numpy)
    ]
    if wrong:
        raise artifact_error(*wrong)
    return arrays


def _changed_files(folder: Path, files: Mapping[str, Any]) -> Iterator[Problem]:
    for name, facts in files.items():
        path = folder / name
        try:
            size = path.stat().st_size
            if size != facts["bytes"]:
                yield artifact_problem("R004", f"{path} has {size} bytes, it was built with {facts['bytes']}", "build or copy it again")
                continue
            with path.open("rb") as file:
                if file_digest(file, "sha256").hexdigest() != facts["sha256"]:
                    yield artifact_problem("R004", f"{path} was changed after it was built", "build or copy it again")
        except OSError as error:
            yield artifact_problem("R004", f"{path} cannot be read: {error.strerror}", "build or copy it again")
