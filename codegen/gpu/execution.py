"""Running the kernels of a lowered method one after the other, to compare them with the oracle. No memory planning, no speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from fluorite.algo.extent import evaluate
from fluorite.algo.graph import Transition, map_tree
from fluorite.algo.interpreter import leaf_arrays, parameter_arrays
from fluorite.algo.interpreter.arguments import choose, take

from ..lowered import Lowered

Function = Callable[..., object]


class Host:
    """Where tensors live: for NumPy itself, nothing needs to be done."""

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        return np.array(array, order="C")

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        # what a kernel forgets to write must not look right by chance
        made = np.empty(shape, dtype)
        made.view(np.uint8 if made.ndim else made.dtype).fill(0x5A if made.ndim else 1)
        return made

    def get(self, tensor: Any) -> np.ndarray[Any, Any]:
        return np.asarray(tensor)


def run(
    lowered: Lowered,
    functions: Mapping[str, Function],
    *inputs: Any,
    method: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    host: Host | None = None,
    **named: Any,
) -> Any:
    """The result of `step`."""
    return step(lowered, functions, *inputs, method=method, parameters=parameters, host=host, **named).result


def step(
    lowered: Lowered,
    functions: Mapping[str, Function],
    *inputs: Any,
    method: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    host: Host | None = None,
    **named: Any,
) -> Transition:
    """The method's result and all parameters and state after it, as the oracle gives them. `functions` are the compiled kernels by name.

    Raises RunError for wrong inputs.
    """
    g, at = lowered.graph, host or Host()
    chosen = choose(g, method)
    given, symbols = take(g, chosen, inputs, named)
    symbols = {**lowered.when, **symbols}
    held = {i: at.put(a) for i, a in leaf_arrays(g, given, parameters).items()}
    for kernel, owner in zip(lowered.kernels, lowered.methods, strict=True):
        if owner != chosen.name:
            continue
        for b in kernel.outputs:
            held[b.id] = at.empty(tuple(evaluate(n, symbols) for n in b.shape), b.dtype)
        functions[kernel.name](*(held[b.id] for b in kernel.arguments), *(symbols[s] for s in kernel.symbols))
    after = {path: at.get(held[i]) for path, i in chosen.updates.items()}
    return Transition(map_tree(lambda i: at.get(held[i]), chosen.result), {**parameter_arrays(g, parameters), **after})


__all__ = ["Host", "run", "step"]
