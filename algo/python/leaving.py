"""break and continue as variables that say whether a loop goes on, so that conditions on tensors may decide it.

    while test:                     left = False
        a                           while not left and test:
        if done:        becomes         a
            break                       if done: left = True
        b                               else: b
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from .names import leaves_loop

Loop = ast.For | ast.While


def can_be_told(body: Sequence[ast.stmt]) -> bool:
    """Whether all that leaves a loop stands in its body itself or in ifs."""
    for s in body:
        match s:
            case ast.If(body=then, orelse=otherwise):
                if not (can_be_told(then) and can_be_told(otherwise)):
                    return False
            case ast.Break() | ast.Continue():
                pass
            case _ if leaves_loop([s]):
                return False
    return True


def told(s: Loop, fresh: Callable[[str], str]) -> tuple[list[ast.stmt], Loop, str | None]:
    """What comes before the loop, the loop, and the name of the variable that is true once it is left (None where only steps are)."""
    left = fresh("left") if _has(s.body, ast.Break) else None
    skipped = fresh("skipped") if _has(s.body, ast.Continue) else None
    body = _told(s.body, left, skipped)
    if skipped is not None:
        body = [_set(skipped, False, s), *body]
    made: Loop
    if isinstance(s, ast.While):
        made = ast.While(s.test if left is None else ast.BoolOp(ast.And(), [_not(left), s.test]), body, [])
    else:
        made = ast.For(s.target, s.iter, body if left is None else [ast.If(_not(left), body, [])], [])
    before = [] if left is None else [_set(left, False, s)]
    for x in (*before, made):
        ast.copy_location(x, s)
        for inner in ast.walk(x):
            if isinstance(inner, ast.stmt | ast.expr) and not hasattr(inner, "lineno"):
                ast.copy_location(inner, s)
    return before, made, left


def _has(body: Sequence[ast.stmt], kind: type[ast.stmt]) -> bool:
    """Whether a statement of this kind leaves the loop of this body, or a step of it."""
    return any(isinstance(s, kind) or (isinstance(s, ast.If) and (_has(s.body, kind) or _has(s.orelse, kind))) for s in body)


def _told(body: Sequence[ast.stmt], left: str | None, skipped: str | None) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for n, s in enumerate(body):
        match s:
            case ast.Break():
                assert left is not None
                return [*out, _set(left, True, s)]
            case ast.Continue():
                assert skipped is not None
                return [*out, _set(skipped, True, s)]
            case ast.If() if leaves_loop([s]):
                rest = body[n + 1 :]
                then, otherwise = (_told(part, left, skipped) or [ast.Pass()] for part in (s.body, s.orelse))
                after = _told(rest, left, skipped)
                if after and not _goes_on(s.body):
                    otherwise, after = [*(otherwise if s.orelse else []), *_unless(s.orelse, left, skipped, after)], []
                elif after and not _goes_on(s.orelse):
                    then, after = [*then, *_unless(s.body, left, skipped, after)], []
                made = ast.copy_location(ast.If(s.test, then, otherwise), s)
                return [*out, made, *_unless([s], left, skipped, after)]
            case _:
                out.append(s)
    return out


def _goes_on(body: Sequence[ast.stmt]) -> bool:
    """Whether what follows these statements may run."""
    match body[-1] if body else None:
        case ast.Break() | ast.Continue() | ast.Raise():
            return False
        case ast.If(body=then, orelse=otherwise):
            return _goes_on(then) or _goes_on(otherwise)
    return True


def _unless(body: Sequence[ast.stmt], left: str | None, skipped: str | None, after: list[ast.stmt]) -> list[ast.stmt]:
    """What comes after these statements, if they did not leave the loop or the step."""
    flags = [name for name, kind in ((left, ast.Break), (skipped, ast.Continue)) if name is not None and _has(body, kind)]
    if not flags or not after:
        return after
    return [ast.If(_not(flags[0]) if len(flags) == 1 else ast.BoolOp(ast.And(), [_not(f) for f in flags]), after, [])]


def _set(name: str, value: bool, s: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value)), s)


def _not(name: str) -> ast.expr:
    return ast.UnaryOp(ast.Not(), ast.Name(name, ast.Load()))


__all__ = ["can_be_told", "told"]
