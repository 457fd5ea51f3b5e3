"""The project's own benchmark suite: `python -m benchmarks`. It measures the checkout that it stands in."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).resolve().parent.parent


class _ThisCheckout:
    """fluorite is the folder around this one, whatever the environment has installed."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        found = name == "fluorite" and path is None
        return spec_from_file_location(name, _ROOT / "__init__.py", submodule_search_locations=[str(_ROOT)]) if found else None


sys.meta_path.insert(0, _ThisCheckout)
