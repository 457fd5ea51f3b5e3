"""From a function to the same function with its control flow rewritten, compiled under the lines of its own source."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any

from . import flow
from .names import needs_rewriting
from .rewriter import FLOW, rewritten

_MADE = "__fluorite_made__"
_codes: dict[types.CodeType, types.CodeType | None] = {}
"""By the code of a function, that of the rewritten one; None where there is nothing to rewrite, or no source."""


def converted(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn, or a function that means the same and also branches and loops on tensors. Bound methods stay bound.

    Left as they are: functions without source, lambdas, generators, and those that have no control flow.
    """
    if isinstance(fn, types.MethodType):
        inner = converted(fn.__func__)
        return fn if inner is fn.__func__ else types.MethodType(inner, fn.__self__)
    if isinstance(fn, functools.partial):
        return functools.partial(converted(fn.func), *fn.args, **fn.keywords)
    if not isinstance(fn, types.FunctionType):
        return fn
    code = fn.__code__
    if code not in _codes:
        _codes[code] = _compiled(fn)
    if (made := _codes[code]) is None:
        return fn
    cells = dict(zip(code.co_freevars, fn.__closure__ or (), strict=True)) | {FLOW: types.CellType(flow)}
    out = types.FunctionType(made, fn.__globals__, fn.__name__, fn.__defaults__, tuple(cells[n] for n in made.co_freevars))
    out.__kwdefaults__, out.__qualname__, out.__doc__ = fn.__kwdefaults__, fn.__qualname__, fn.__doc__
    return out


def _compiled(fn: types.FunctionType) -> types.CodeType | None:
    code = fn.__code__
    if fn.__name__ == "<lambda>" or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    found = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name or not needs_rewriting(found):
        return None
    ast.increment_lineno(tree, first - 1)
    owner = fn.__qualname__.split(".")[-2] if "." in fn.__qualname__ and not fn.__qualname__.split(".")[-2].startswith("<") else ""
    outside = (*code.co_freevars, FLOW)
    made = rewritten(found, owner, code.co_filename)
    made.name = _MADE  # so that a function that calls itself means what its module calls so
    factory = ast.FunctionDef(
        name="factory",
        args=ast.arguments([], [ast.arg(n) for n in dict.fromkeys((*outside, "__class__"))], None, [], [], None, []),
        body=[made, ast.Return(ast.Name(made.name, ast.Load()))],
        decorator_list=[],
    )
    module = ast.Module([ast.fix_missing_locations(ast.copy_location(factory, found))], [])
    ast.fix_missing_locations(module)
    for n in ast.walk(module):
        if isinstance(n, ast.FunctionDef) and not hasattr(n, "type_params"):
            setattr(n, "type_params", [])  # noqa: B010    # Python 3.12 wants them, and 3.11 knows none
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and isinstance(n.func.value, ast.Name) and n.func.value.id == FLOW:
            for part in (n, n.func, n.func.value):  # a call of several lines would count as one of its last
                part.end_lineno, part.end_col_offset = part.lineno, part.col_offset
    inner = _inner(_inner(compile(module, code.co_filename, "exec"), "factory"), _MADE)
    return inner.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name)


__all__ = ["converted"]
