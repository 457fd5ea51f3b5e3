"""The inputs that a function declares, by annotations or by what it is traced with."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .building import placed
from .errors import AlgorithmError
from .expr import refuse
from .modules import Module
from .types import SHORT, Spec, spec


def as_function(model: Any) -> tuple[str, Callable[..., Any]]:
    """The name and the function of a model that is no Program: a function, one with some arguments given, or an object to call.

    Raises AlgorithmError for what holds no Python code to trace.
    """
    inner = getattr(model, "__fluorite_function__", model)
    if isinstance(inner, functools.partial):
        return as_function(inner.func)[0], inner
    if isinstance(model, type):
        why = "it is a class, and a model is a function or a fl.Program"
        raise refuse("A128", model.__name__, why, f"class {model.__name__}(fl.Program), with @fl.method over what is to be compiled")
    if isinstance(model, Module):
        kind = type(model).__name__
        why = "a layer has parameters, which get their names from the Program that holds it"
        raise refuse("A128", f"the layer {kind}", why, f"self.layer = {kind}(...) in a fl.Program, and @fl.method over what calls it")
    written = inspect.unwrap(inner) if callable(inner) else None
    if inspect.isfunction(written) or inspect.ismethod(written):
        return inner.__name__.strip("<>"), inner
    if callable(model):
        if inspect.ismethod(called := model.__call__):
            return type(model).__name__, called
        why = "it is no Python function, so there is nothing to trace"
        name = getattr(model, "__name__", repr(model))
        raise refuse("A128", name, why, "a function of tensors that does the same with fl's operators", f"fl.extern({name}, ...) in one")
    raise refuse("A128", repr(model), "a model is a function or a fl.Program")


def inputs_of(fn: Callable[..., Any], given: Mapping[str, Spec] | None = None) -> dict[str, Spec]:
    """The declared inputs of a function, in order.

    Raises AlgorithmError for a parameter that is neither declared nor has a default.
    """
    inner = getattr(fn, "__fluorite_function__", fn)
    written = _written(inner)  # fl.grad(f) has the annotations of f, which mean what they do where f is
    given = _declarations(given)
    hints = _annotations(inner, written, given)
    found: dict[str, Spec] = {}
    for name, p in inspect.signature(inner).parameters.items():
        declared = given.get(name) or spec(hints.get(name), name)
        if declared is not None and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            found[name] = declared
        elif declared is not None or (p.default is p.empty and p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)):
            asked, why = f"parameter {str(p).split(':')[0]!r}", "an input is one tensor that can be given by position and by name"
            raise placed(refuse("A125", asked, why), first_line(written), written.__name__)
        elif p.default is p.empty and name != "self":
            tries = f'{name}: fl.f32[fl.Tensor, "h", "w"]', "a default value"
            raise placed(refuse("A125", f"parameter {name!r}", "its type is not declared", *tries), first_line(written), written.__name__)
    unknown = [k for k in given if k not in found]
    if unknown:
        raise refuse("A126", f"inputs {', '.join(unknown)}", f"{written.__name__} has {', '.join(found) or 'no inputs'}")
    return found


def first_line(fn: Callable[..., Any]) -> str:
    """file:line of a function."""
    code = getattr(_written(fn), "__code__", None)
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else ""


def _written(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function that somebody wrote, inside others and arguments that are given already."""
    inner: Callable[..., Any] = inspect.unwrap(fn.func if isinstance(fn, functools.partial) else fn)
    return fn if inner is fn else _written(inner)


def _declarations(given: Mapping[str, Any] | None) -> dict[str, Spec]:
    """What `inputs` declares. Raises AlgorithmError for values where declarations belong."""
    if given is not None and not isinstance(given, Mapping):
        raise refuse("A137", f"inputs= a {type(given).__name__}", "it declares each input by its name", 'inputs={"x": fl.f32("h", "w")}')
    found = {}
    for name, value in (given or {}).items():
        declared = spec(value, name)
        if declared is None:
            shown, instead = _instead(value)
            why = "it says what an input is, and holds none"
            raise refuse("A137", f"inputs={{{name!r}: {shown}}}", why, f"inputs={{{name!r}: {instead}}}")
        found[name] = declared
    return found


def _instead(value: Any) -> tuple[str, str]:
    """A value in short, and how an input like it is declared."""
    if isinstance(value, np.ndarray | np.generic):
        short = SHORT.get(value.dtype.name, "f32")
        return f"an array of {value.dtype}", f"fl.{short}({', '.join(map(str, value.shape))})"
    short = {bool: "boolean", int: "i32"}.get(type(value), "f32")
    return type(value).__name__ if value is not None else "None", f"fl.{short}" if isinstance(value, int | float) else 'fl.f32("h", "w")'


def _annotations(inner: Callable[..., Any], written: Callable[..., Any], given: Mapping[str, Spec]) -> dict[str, Any]:
    """The annotations of parameters. Raises AlgorithmError where they cannot be evaluated."""
    try:
        hints = inspect.get_annotations(written if isinstance(inner, functools.partial) else inner, eval_str=False)
        home = getattr(inner, "__module__", written.__module__)
        space = dict(vars(sys.modules[home])) if home in sys.modules else {}
        closure = inspect.getclosurevars(written).nonlocals if inspect.isfunction(written) or inspect.ismethod(written) else {}
        space = {**getattr(written, "__globals__", space), **closure}
        # operators are models by the inputs given: their own annotations are for type checkers alone
        wanted = [k for k in hints if k != "return" and not (given and (k in given or home.startswith("fluorite.algo.ops.")))]
        return {k: eval(v, space) if isinstance(v := hints[k], str) else v for k in wanted}  # the module's own, as typing does
    except AlgorithmError:
        raise
    except Exception as e:
        raise refuse("A124", f"the annotations of {written.__name__}", f"{type(e).__name__}: {e}") from None


__all__ = ["as_function", "first_line", "inputs_of"]
