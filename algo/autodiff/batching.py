"""``fl.vmap``: a function of one example, for all of a batch at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ..building import call_site, current, placed
from ..errors import AlgorithmError
from ..expr import refuse
from ..graph import map_tree
from ..passing import positional
from ..scanning import Scan


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """fn for a batch: `in_axes` says along which axis of each argument the examples lie (None: the argument is the same for all), and
    `out_axes` where that axis goes in the results.

    `in_axes` is one of these for all arguments, or a list or tuple of one for each; an argument that is a nest has it for all its tensors.
    Each stage of fn that depends on the example gets the batch's axis in front, and nothing runs example by example.
    """

    @wraps(fn, updated=())
    def call(*given: Any, **named: Any) -> Any:
        from ..ops.views import moveaxis
        from ..python import converted

        source = call_site()
        try:
            args = positional(fn, given, named)
            axes = list(in_axes) if isinstance(in_axes, list | tuple) else [in_axes] * len(args)
            if len(axes) != len(args):
                raise refuse(
                    "A173", f"in_axes={in_axes!r}", f"{fn.__name__} was called with {len(args)} arguments", "one axis for each, or None"
                )
            if all(a is None for a in axes):
                raise refuse("A173", f"in_axes={in_axes!r}", "no argument has an axis of examples", "an axis for at least one")
            batched = [map_tree(lambda t, a=a: moveaxis(t, a, 0), x) for x, a in zip(args, axes, strict=True) if a is not None]

            def one(carry: Any, given: list[Any]) -> tuple[Any, Any]:
                each = iter(given)
                return carry, converted(fn)(*(x if a is None else next(each) for x, a in zip(args, axes, strict=True)))

            _, stacked = Scan(current(), one, (), batched, 0, False, None, None).result()
            return map_tree(lambda t: moveaxis(t, 0, out_axes), stacked)
        except AlgorithmError as error:
            raise placed(error, source, current().method) from None

    return call


__all__ = ["vmap"]
