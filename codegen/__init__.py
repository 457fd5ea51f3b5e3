"""DO: lowering, code generation, tuning, artefacts and their runtime. Names are found when they are first used, since some need TVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_HOMES = {
    "build": "driver", "compile": "driver", "compile_graph": "driver", "check": "checking", "Report": "checking", "explain": "explaining",
    "Explanation": "explaining", "tune": "tuning", "tuned": "tuning", "TuneResult": "tuning", "load": "runtime", "Model": "runtime",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'fluorite.codegen' has no attribute {name!r}")
    found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


if TYPE_CHECKING:
    from .checking import Report, check
    from .driver import build, compile, compile_graph
    from .explaining import Explanation, explain
    from .runtime import Model, load
    from .tuning import TuneResult, tune, tuned

    __all__ = [
        "Explanation", "Model", "Report", "TuneResult", "build", "check", "compile", "compile_graph", "explain", "load", "tune", "tuned",
    ]  # fmt: skip
