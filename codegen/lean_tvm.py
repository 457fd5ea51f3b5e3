"""TVM's import, without what no kernel needs: three quarters of its time.

Its operators of models are loaded when something of them is first asked for, its back ends for devices by `load_device_backends`,
and its sessions of many processes, which TVM itself can do without, not at all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

_LATER = "tvm.relax"
_NEVER = "tvm.runtime.disco"
_AUTOLOAD = "TVM_DEVICE_BACKEND_AUTOLOAD"


@contextmanager
def lean_import() -> Iterator[None]:
    """Inside, `import tvm` leaves these parts out; once they have been imported, nothing changes."""
    if "tvm" in sys.modules:
        yield
        return
    before = os.environ.get(_AUTOLOAD)
    os.environ[_AUTOLOAD] = "0"
    sys.modules[_LATER] = _stand_in()
    sys.modules[_NEVER] = None  # type: ignore[assignment]  # to import it is an error, which TVM allows
    try:
        yield
    finally:
        del sys.modules[_LATER], sys.modules[_NEVER]
        if before is None:
            del os.environ[_AUTOLOAD]
        else:
            os.environ[_AUTOLOAD] = before


def load_device_backends() -> None:
    """The instructions of every kind of device that TVM knows."""
    import_module("tvm.backend._autoload_backends")._load_builtin_backends()


def _stand_in() -> ModuleType:
    """The module that imports the one of its name when it is asked for something."""
    module = ModuleType(_LATER)

    def attribute(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(_LATER), name)

    module.__dict__["__getattr__"] = attribute
    return module
