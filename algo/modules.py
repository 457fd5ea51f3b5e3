"""Programs and modules: objects whose attributes hold parameters, state, and each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from .building import RESERVED, call_site, current, placed, scope, tracing
from .complex import ComplexTensor
from .expr import refuse
from .held import ComplexHeld, Parameter
from .tensor import Tensor


class Holder:
    """What Programs and Modules have in common. While a method is traced, an attribute that holds a parameter or state gives its value at
    that point, and assigning to it is a transition of state; no other attribute can take a tensor."""

    if not TYPE_CHECKING:  # a checker is to know the attributes as they are declared

        def __getattribute__(self, name: str) -> Any:
            found = object.__getattribute__(self, name)
            return found.now() if isinstance(found, Parameter | ComplexHeld) and tracing() is not None else found

        def __setattr__(self, name: str, value: Any) -> None:
            held = vars(self).get(name)
            kept = isinstance(held, Parameter | ComplexHeld) and value is not None
            if kept and (tracing() is not None or not isinstance(value, Parameter | ComplexHeld)):
                held.assign(value)
                return
            if tracing() is not None and (what := _lost(held, value)):
                asked = f"self.{name} = {what}"
                why = "a method changes parameters and state, and nothing else of its Program"
                try_ = f"self.{name} = fl.state(...) in __init__ for what the next call is to see"
                raise placed(refuse("A183", asked, why, try_, "a local variable"), call_site(), current().method)
            object.__setattr__(self, name, value)


def _lost(held: Any, value: Any) -> str:
    """What kind of value an attribute that is no state would take, which the next call would not see."""
    if isinstance(value, list | tuple):
        return next((what for v in value if (what := _lost(None, v))), "")
    if isinstance(value, dict):
        return next((what for v in value.values() if (what := _lost(None, v))), "")
    if isinstance(value, Tensor | ComplexTensor) and not isinstance(value, Parameter):
        return "a tensor"
    if isinstance(held, int | float) and not isinstance(held, bool) and isinstance(value, int | float) and value != held:
        return "another number"
    return "an array" if isinstance(held, np.ndarray) and isinstance(value, np.ndarray) and value is not held else ""


class Module(Holder):
    """A reusable part of a Program; `forward` or `__call__` says what it computes. Calling it opens a scope of its attribute path."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__call__" in vars(cls):
            cls.__call__ = _scoped(vars(cls)["__call__"])  # type: ignore[method-assign]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        forward = getattr(self, "forward", None)
        if forward is None:
            raise refuse("A123", f"{type(self).__name__}(...)", "a module needs a method forward")
        with _entered(self):
            return forward(*args, **kwargs)


def _scoped(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def call(self: Module, *args: Any, **kwargs: Any) -> Any:
        with _entered(self):
            return fn(self, *args, **kwargs)

    return call


@contextmanager
def _entered(module: Module) -> Iterator[None]:
    """The scope of a module: its attribute path, from that of the module which calls it if that holds it."""
    builder = current()
    caller = builder.modules[-1] if builder.modules else None
    if caller is module:  # its __call__ went on to the inherited one
        yield
        return
    path = builder.homes.get(id(module), type(module).__name__.lower())
    outer = f"{builder.homes.get(id(caller), '')}/"
    builder.modules.append(module)
    try:
        with scope(path.removeprefix(outer)):
            yield
    finally:
        builder.modules.pop()


class Program(Holder):
    """A model with state. Attributes hold parameters, modules, and lists or dicts of them; ``@fl.method`` marks what is compiled."""

    def compile(self, plan: Any = None, **options: Any) -> Any:
        """The compiled model: see fluorite.compile."""
        import fluorite

        return fluorite.compile(self, plan, **options)


def members(root: Any) -> Iterator[tuple[str, Any]]:
    """(path, object) for every parameter and module below a Program or module: attributes in order, lists as name.0, dicts as name.key."""
    seen: set[int] = set()

    def visit(value: Any, path: str) -> Iterator[tuple[str, Any]]:
        value = value.stored if isinstance(value, ComplexHeld) else value
        if isinstance(value, Parameter | Module | Program | list | tuple | dict):
            if id(value) in seen:
                return
            seen.add(id(value))
        if isinstance(value, Parameter | Module):
            yield path, value
        if isinstance(value, Module | Program):
            for k, v in vars(value).items():
                if isinstance(v, Parameter | ComplexHeld | Module | list | tuple | dict):
                    if k in RESERVED:
                        raise refuse("A110", f"an attribute called {k!r}", "fluorite uses that name in paths", f"{k}_")
                    yield from visit(v, f"{path}/{k}" if path else k)
        elif isinstance(value, list | tuple):
            for n, v in enumerate(value):
                yield from visit(v, f"{path}.{n}")
        elif isinstance(value, dict):
            for k, v in value.items():
                yield from visit(v, f"{path}.{k}")

    yield from visit(root, "")


__all__ = ["Holder", "Module", "Program", "members"]
