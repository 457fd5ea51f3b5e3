"""What decides which code a call takes: class, element type and shape of every input, as the key of a table.

Making the key is most of what the choice costs, so for few inputs it is written out: half the time of a loop over them.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias

Form: TypeAlias = tuple[Any, ...]
_facts = attrgetter("__class__", "dtype", "shape")


def form_of(count: int) -> Callable[..., Form]:
    """The key of a call with so many inputs. Of anything but arrays it raises AttributeError, of another number TypeError."""
    match count:
        case 1:
            return lambda a: (a.__class__, a.dtype, a.shape)
        case 2:
            return lambda a, b: (a.__class__, a.dtype, a.shape, b.__class__, b.dtype, b.shape)
        case 3:
            return lambda a, b, c: (a.__class__, a.dtype, a.shape, b.__class__, b.dtype, b.shape, c.__class__, c.dtype, c.shape)
    return lambda *inputs: tuple(map(_facts, inputs))


__all__ = ["Form", "form_of"]
