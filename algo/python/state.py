"""The variables of a function while its control flow runs on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ..expr import refuse

Reader = Callable[[], tuple[Any, ...]]
Writer = Callable[[tuple[Any, ...]], None]


class Missing:
    """The value of a name that has none. All that can be done with it is a sentence."""

    def __init__(self, name: str, why: str = "nothing was assigned to it before") -> None:
        self.__dict__["missing"] = (name, why)

    def refuse(self, *_: Any, **__: Any) -> NoReturn:
        name, why = self.__dict__["missing"]
        raise refuse("A413", f"{name} is used without a value", why, f"assign {name} before")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        self.refuse()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = refuse
    __floordiv__ = __mod__ = __pow__ = __neg__ = __abs__ = __invert__ = __and__ = __or__ = __lt__ = __le__ = __gt__ = __ge__ = refuse
    __getitem__ = __setitem__ = __call__ = __iter__ = __len__ = __bool__ = __index__ = __float__ = __int__ = refuse
    __eq__ = __ne__ = refuse
    __hash__ = object.__hash__


class Unset:
    """The value of what a loop returns, as long as it has not. It is never read: a flag says whether there is one."""


UNSET = Unset()


def value(read: Callable[[], Any], name: str) -> Any:
    """What a variable holds."""
    try:
        return read()
    except NameError:
        return Missing(name)


__all__ = ["UNSET", "Missing", "Reader", "Unset", "Writer", "value"]
