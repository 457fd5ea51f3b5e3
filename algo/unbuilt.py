"""Names of the language that are promised and not built yet: they exist, and using one is a sentence."""

from __future__ import annotations

from typing import Any

from .errors import AlgorithmError, Problem

UNBUILT: dict[str, tuple[str, str]] = {
    "dist": ("distributed programs", ""),
    "from_onnx": ("import from ONNX", ""),
    "from_torch": ("import from PyTorch", ""),
    "launch": ("distributed programs", ""),
}
"""name -> (what it belongs to, what would do instead)."""


class Unbuilt:
    """Stands for a promised name. Reading it is harmless; calling it or taking an attribute of it raises AlgorithmError A900."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.__doc__ = f"Not built yet: {UNBUILT[name][0]}."

    def refusal(self, asked: str) -> AlgorithmError:
        what, instead = UNBUILT[self.__name__]
        return AlgorithmError(Problem("A900", asked=asked, why=f"{what}: not built yet", try_=(instead,) if instead else ()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise self.refusal(f"fl.{self.__name__}(...)")

    def __getitem__(self, key: Any) -> Any:
        raise self.refusal(f"fl.{self.__name__}[...]")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # Python looks such names up to find out what an object is
        raise self.refusal(f"fl.{self.__name__}.{name}")

    def __repr__(self) -> str:
        return f"<fl.{self.__name__}: not built yet>"
