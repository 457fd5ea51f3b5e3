"""From a function to the same function with its control flow rewritten, compiled under the lines of its own source."""

from __future__ import annotations

import ast
import copy
import dis
import functools
import inspect
import os
import types
from collections.abc import Callable
from typing import Any

from . import flow
from .names import needs_rewriting
from .rewriter import FLOW, rewritten

_MADE = "__fluorite_made__"
_LIBRARY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_codes: dict[types.CodeType, types.CodeType | None] = {}
"""By the code of a function, that of the rewritten one; None where there is nothing to rewrite, or no source."""
_Found = tuple[ast.FunctionDef | ast.Lambda, str]
_files: dict[str, tuple[str, dict[int, list[_Found]]]] = {}
"""Files that functions were found in: their text, and the functions by line, each with the innermost class around it."""
_BRANCHES = frozenset((*dis.hasjrel, *dis.hasjabs, dis.opmap["UNARY_NOT"]))


def converted(fn: Callable[..., Any]) -> Callable[..., Any]:
    """fn, or a function that means the same and also branches and loops on tensors. Bound methods stay bound.

    Left as they are: functions without source, generators, fluorite's own, and those that have no control flow.
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
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return None
    if FLOW in code.co_freevars or code.co_filename.startswith(_LIBRARY) or not _branches(code):
        return None
    found, owner = _found(code) or (None, "")
    if found is None or not needs_rewriting(found):
        return None
    made = rewritten(found, owner, code.co_filename)
    made.name = _MADE  # so that a function that calls itself means what its module calls so
    factory = ast.FunctionDef(
        name="factory",
        args=ast.arguments([], [ast.arg(n) for n in dict.fromkeys((*code.co_freevars, FLOW, "__class__"))], None, [], [], None, []),
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


def _branches(code: types.CodeType) -> bool:
    """Whether a function, or one inside it, may have control flow, as far as its instructions say."""
    inside = (c for c in code.co_consts if isinstance(c, types.CodeType))
    return not _BRANCHES.isdisjoint(code.co_code[::2]) or any(map(_branches, inside))


# ---------------------------------------------------------------- the source
def _found(code: types.CodeType) -> tuple[ast.FunctionDef, str] | None:
    """The source of a function, and the class around it. A lambda is a function that returns."""
    try:
        text = "".join(inspect.findsource(code)[0])
        if _files.get(code.co_filename, ("",))[0] != text:
            _files[code.co_filename] = text, _by_line(ast.parse(text))
    except (OSError, TypeError, SyntaxError, IndexError):
        return None
    here = _files[code.co_filename][1].get(code.co_firstlineno, [])
    if code.co_name != "<lambda>":
        return next(((copy.deepcopy(f), owner) for f, owner in here if isinstance(f, ast.FunctionDef) and f.name == code.co_name), None)
    fitting = [(f, owner) for f, owner in here if isinstance(f, ast.Lambda) and _holds(f, code)]
    if not fitting:
        return None
    f, owner = max(fitting, key=lambda found: (found[0].lineno, found[0].col_offset))  # the innermost of those around it
    made = ast.FunctionDef("function", f.args, [ast.copy_location(ast.Return(f.body), f.body)], [])
    return copy.deepcopy(ast.copy_location(made, f)), owner


def _by_line(tree: ast.Module) -> dict[int, list[_Found]]:
    """The functions of a file by their first lines."""
    found: dict[int, list[_Found]] = {}
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        n, owner = pending.pop()
        if isinstance(n, ast.FunctionDef | ast.Lambda):
            decorators = n.decorator_list if isinstance(n, ast.FunctionDef) else []
            found.setdefault(min([n.lineno, *(d.lineno for d in decorators)]), []).append((n, owner))
        inner = n.name if isinstance(n, ast.ClassDef) else owner
        pending += ((child, inner) for child in ast.iter_child_nodes(n))
    return found


def _holds(f: ast.Lambda, code: types.CodeType) -> bool:
    """Whether the code lies where a lambda does."""
    start, end = (f.lineno, f.col_offset), (f.end_lineno or 0, f.end_col_offset or 0)
    for line, last, column, stop in code.co_positions():
        if line and last and column is not None and stop is not None and stop > 0 and not (start <= (line, column) and (last, stop) <= end):
            return False
    return True


__all__ = ["converted"]
