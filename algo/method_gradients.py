"""The derivative of what a method computes, by a parameter, an input or a stage of it: what ``model.grad`` runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from .autodiff import gradients
from .autodiff.stepwise import whole
from .building import Builder, building, placed
from .dtypes import FLOATS
from .errors import AlgorithmError
from .expr import refuse
from .graph import Graph, Method
from .passing import bound
from .program import traced
from .tensor import Direct, Tensor
from .types import Spec


def gradient_of(model: Any, method: str, path: str, of: str | None = None, inputs: Mapping[str, Spec] | None = None) -> Graph:
    """The graph of a method that gives the derivative of its loss by the tensor called `path`, and changes nothing.

    The loss is the scalar called `of`, as a result (``loss``, ``0``, ``parts/0``) or as a stage; left out, what the method's optimisers go
    down, or else its only result. `path` is that of a parameter, as it is when the call begins, of an input or of a stage. Raises
    AlgorithmError.
    """
    made = traced(model, method, inputs)
    builder, (told,) = made.builder, made.methods
    builder.assigned = {}
    with building(builder):
        loss, target = _loss(builder, told, of), _tensor(builder, path)
        try:
            (found,) = gradients(loss, [target])
            if found is None:
                raise refuse("A200", f"the derivative of {loss.label} by {path}", "it does not depend on it")
        except AlgorithmError as error:
            raise placed(error, "", method) from None
        slope = bound(found)
    assert isinstance(slope, Direct)
    return replace(made, methods=(replace(told, result=slope.source, updates={}, reader=None),)).graph()


def _loss(builder: Builder, told: Method, of: str | None) -> Tensor:
    results = {name: whole(builder, i) for name, i in _named(told.result).items()}
    given = {name: t for name, t in results.items() if t.shape == () and t.dtype in FLOATS}
    lowered = {t.source: t for t in builder.losses if isinstance(t, Direct)}
    if of is not None:
        stages = {k.removeprefix(f"{told.name}/"): t for k, t in _stages(builder).items() if t.shape == () and t.dtype in FLOATS}
        known = {**stages, **given}
        if of in known:
            return known[of]
        raise refuse("A200", f"the derivative of {of!r}", f"{told.name} has no scalar of this name", *_near(of, known))
    found = list(lowered.values()) or list(given.values())
    if len(found) == 1:
        return found[0]
    what = "several losses" if lowered else "several scalars as results" if given else "no scalar as a result, and goes down no loss"
    names = [t.label for t in lowered.values()] or list(given)
    raise refuse("A200", f"the derivative of {told.name}", f"it has {what}", *(f"of={n!r}" for n in names[:4]))


def _named(result: Any, path: str = "") -> dict[str, int]:
    """The tensors of a result by their keys and positions, joined with `/`."""
    match result:
        case None:
            return {}
        case dict():
            parts = {str(k): v for k, v in result.items()}
        case list() | tuple():
            parts = {str(n): v for n, v in enumerate(result)}
        case _:
            return {path: result}
    return {name: v for k, part in parts.items() for name, v in _named(part, f"{path}/{k}" if path else k).items()}


def _tensor(builder: Builder, path: str) -> Tensor:
    mine = (t for t in builder.leaves.values() if t.kind in ("parameter", "state") or t.path.startswith(f"{builder.method}/"))
    known = {**_stages(builder), **{t.path: whole(builder, t.id) for t in mine}}
    found = known.get(path, known.get(f"{builder.method}/{path}"))
    if found is None:
        names = {**known, **{k.removeprefix(f"{builder.method}/"): t for k, t in known.items()}}
        why = f"{builder.method} has no parameter, input or stage of this name"
        raise refuse("A200", f"the derivative by {path!r}", why, *_near(path, names))
    return found


def _stages(builder: Builder) -> dict[str, Tensor]:
    """What the method computes going forward, by path."""
    mine = (s for s in builder.stages.values() if s.method == builder.method and s.role == "forward" and s.id not in builder.aliases)
    return {s.path: whole(builder, s.id) for s in mine}


def _near(name: str, known: Mapping[str, Any]) -> list[str]:
    ends = [k for k in known if k.rsplit("/", 1)[-1] == name.rsplit("/", 1)[-1]]
    return list(dict.fromkeys([*get_close_matches(name, known, 3, 0.5), *ends]))[:3]


__all__ = ["gradient_of"]
