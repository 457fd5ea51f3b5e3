"""Keys that nobody has to hand around: a new one wherever it is asked for, from state of the Program that moves on with every call."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..building import Builder, current
from ..expr import refuse
from ..held import Parameter, State, updating
from ..tensor import Tensor
from ..trace import build_stage
from .keys import fold_in

KEY, CALLS = "random/key", "random/calls"


def next_key() -> Tensor:
    """A key for this place in the method and this call: uint32 [2].

    It is made of the Program's `random/key`, which is drawn from the seed of the model, of `random/calls`, which counts the calls of
    methods that draw, and of how many keys the method has asked for before; in a step of fl.scan and for an example of fl.vmap also of
    which one it is. So a call draws other numbers than the last one, a model that is saved and loaded goes on with those that would have
    come, and no plan changes any. Raises AlgorithmError outside a Program, and in an fl.while_loop, whose turns have no number.
    """
    builder = current()
    if not builder.stateful:
        why = "a call would draw the numbers of the last one again: only a Program has state that moves on"
        raise refuse("A199", "random numbers without a key in a function", why, "fl.random.key(7)", "a method of an fl.Program")
    steps = [number() for number in builder.steps]
    if builder.call_key is None:
        key = _slot(builder, KEY, (2,), "uint32", _drawn).now()
        calls = _slot(builder, CALLS, (), "int32", 0)
        before = calls.now()

        def count() -> None:
            with updating():
                calls.assign(build_stage([], lambda: before.as_scalar() + 1, name=CALLS, origin="derived"))

        builder.endings.append(count)  # whichever branches were taken
        with builder.at_root(), builder.branch(None):
            builder.call_key = fold_in(key, before, name="random")
    builder.keys += 1
    with builder.at_root():
        found: Tensor = fold_in(builder.call_key, builder.keys - 1, name="random")
        for n in steps:
            found = fold_in(found, n, name="random")
    return found


def _drawn(generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return generator.integers(0, 2**32, shape, dtype=np.uint32)


def _slot(builder: Builder, path: str, shape: tuple[int, ...], dtype: str, init: Any) -> Parameter:
    if path not in builder.slots:
        if any(leaf.path == path for leaf in builder.leaves.values()):
            raise refuse("A110", f"an attribute called {path.split('/')[0]!r}", f"the Program's own {path} has this path", "another name")
        builder.slots[path] = State(shape, dtype, ("word",) * len(shape), init, False)
        builder.slots[path].hold(builder, path)
    found: Parameter = builder.slots[path]
    return found
