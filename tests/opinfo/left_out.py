"""What of PyTorch is not asked of the language, said where it is met."""

from __future__ import annotations

from typing import Any


class NotOffered(Exception):
    """An argument that the operator does not have here."""


def without(**given: Any) -> None:
    """Raises NotOffered where one of these options is given."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise NotOffered(f"{name}=")


def unless(offered: bool, why: str) -> None:
    """Raises NotOffered unless."""
    if not offered:
        raise NotOffered(why)


def axes(dim: Any) -> Any:
    """PyTorch's dim= as an axis=: no axes mean all."""
    return None if dim is None or (isinstance(dim, list | tuple) and not dim) else tuple(dim) if isinstance(dim, list | tuple) else dim
