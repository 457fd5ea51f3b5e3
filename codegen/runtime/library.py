"""Loading of the shared libraries: the small TVM runtime once a process, then the kernels."""

from __future__ import annotations

import ctypes
import importlib.util
import tempfile
import threading
from hashlib import sha256
from pathlib import Path

from .errors import artifact_error, artifact_problem
from .ffi import Module, get_global_func, load_module

RUNTIME = "libtvm_runtime.so"
PARALLEL_LAUNCH = b"TVMBackendParallelLaunch"
_lock = threading.Lock()
_loaded: dict[Path, int] = {}


def installed_runtime() -> Path | None:
    """The runtime library of an installed TVM, found without importing it."""
    spec = importlib.util.find_spec("tvm")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(place) / "lib" / RUNTIME).is_file():
            return path
    return None


def load_runtime(own: Path) -> None:
    """Load the TVM runtime unless the process has one. Raises ArtifactError.

    A second copy under another path would end the process. So where TVM itself is installed with the same library,
    its file is taken: a later `import tvm` then finds it loaded.
    """
    with _lock:
        if get_global_func("runtime.config_threadpool", allow_missing=True) is not None:
            return
        installed = installed_runtime()
        path = installed if installed and _same(installed, own) else own
        try:
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise artifact_error(artifact_problem("R009", f"{path} cannot be loaded: {error}")) from None


def load_kernels(path: Path) -> Module:
    """The compiled kernels. Raises ArtifactError.

    The system's loader knows libraries by their path: one that was built again since it was loaded needs another.
    """
    try:
        with _lock:
            identity = path.stat().st_ino
            if _loaded.setdefault(path, identity) == identity:
                return load_module(str(path))
        with tempfile.TemporaryDirectory() as folder:
            link = Path(folder) / path.name
            link.symlink_to(path)
            return load_module(str(link))
    except (RuntimeError, OSError) as error:
        raise artifact_error(artifact_problem("R009", f"{path} cannot be loaded: {_first_line(error)}")) from None


def _same(a: Path, b: Path) -> bool:
    return not b.exists() or (a.stat().st_size == b.stat().st_size and sha256(a.read_bytes()).digest() == sha256(b.read_bytes()).digest())


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
