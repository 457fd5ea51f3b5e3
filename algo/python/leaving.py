"""break, continue and return in loops as variables that say whether a loop goes on, so that conditions on tensors may decide it.

    while test:                     left = False
        a                           while not left and test:
        if done:        becomes         a
            break                       if done: left = True
        b                               else: b
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence

from .names import FLOW, leaves_loop, returns

Loop = ast.For | ast.While


def can_be_told(body: Sequence[ast.stmt]) -> bool:
    """Whether all that leaves a loop stands in its body itself, in ifs or in withs."""
    for s in body:
        match s:
            case ast.If(body=then, orelse=otherwise):
                if not (can_be_told(then) and can_be_told(otherwise)):
                    return False
            case ast.With(body=inner):
                if not can_be_told(inner):
                    return False
            case ast.For(body=inner, orelse=[]) | ast.While(body=inner, orelse=[]):
                if returns([s]) and not can_be_told(inner):
                    return False
            case ast.Break() | ast.Continue() | ast.Return():
                pass
            case _ if leaves_loop([s]) or returns([s]):
                return False
    return True


def without_else(s: Loop, fresh: Callable[[str], str]) -> list[ast.stmt]:
    """A loop and what its else does, unless a break left it."""
    made = copy.copy(s)
    made.orelse = []
    if not _has(s.body, ast.Break):
        return [made, *s.orelse]
    broken = fresh("broken")
    made.body = _marked(s.body, broken)
    after = ast.copy_location(ast.If(_not(broken), s.orelse, []), s)
    return [ast.fix_missing_locations(x) for x in (_set(broken, False, s), made, after)]


def _marked(body: Sequence[ast.stmt], broken: str) -> list[ast.stmt]:
    """Statements of a loop in which each break says so before."""
    out: list[ast.stmt] = []
    for s in body:
        match s:
            case ast.Break():
                out.append(_set(broken, True, s))
            case ast.If():
                s = ast.copy_location(ast.If(s.test, _marked(s.body, broken), _marked(s.orelse, broken)), s)
            case ast.With():
                s = ast.copy_location(ast.With(s.items, _marked(s.body, broken)), s)
        out.append(s)
    return out


def left_by_return(s: Loop, fresh: Callable[[str], str]) -> list[ast.stmt]:
    """A loop that returns as one that breaks, what comes before it, and the return after it.

    for x in xs:                    done, result = False, UNSET
        if found:       becomes     for x in xs:
            return x                    if found: done, result = True, x; break
                                    if done: return result
    """
    done, result = fresh("done"), fresh("result")
    unset = ast.copy_location(ast.Attribute(ast.Name(FLOW, ast.Load()), "UNSET", ast.Load()), s)
    before = [_set(done, False, s), ast.copy_location(ast.Assign([ast.Name(result, ast.Store())], unset), s)]
    made = _breaking(s, done, result)
    after: ast.stmt = ast.Return(ast.Name(result, ast.Load()))
    if not (isinstance(s, ast.While) and isinstance(s.test, ast.Constant) and s.test.value and not _has(s.body, ast.Break)):
        after = ast.If(ast.Name(done, ast.Load()), [after], [])  # or else there is no other way out
    return [ast.fix_missing_locations(ast.copy_location(x, s)) for x in (*before, made, after)]


def _breaking(s: Loop, done: str, result: str) -> Loop:
    """The loop with a break in the place of each return, also of those in loops inside it."""
    made = copy.copy(s)
    made.body = _broken(s.body, done, result)
    return made


def _broken(body: Sequence[ast.stmt], done: str, result: str) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for s in body:
        match s:
            case ast.Return(value=value):
                given = ast.copy_location(ast.Constant(None), s) if value is None else value
                kept = ast.copy_location(ast.Assign([ast.Name(result, ast.Store())], given), s)
                return [*out, _set(done, True, s), kept, ast.copy_location(ast.Break(), s)]
            case ast.If() if returns([s]):
                parts = [_broken(part, done, result) for part in (s.body, s.orelse)]
                out.append(ast.copy_location(ast.If(s.test, parts[0], parts[1]), s))
            case ast.With() if returns([s]):
                out.append(ast.copy_location(ast.With(s.items, _broken(s.body, done, result)), s))
            case ast.For() | ast.While() if returns([s]):
                leave = ast.If(ast.Name(done, ast.Load()), [ast.Break()], [])
                out += [_breaking(s, done, result), ast.copy_location(leave, s)]
            case _:
                out.append(s)
    return [ast.fix_missing_locations(x) for x in out]


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
    return any(isinstance(s, kind) or any(_has(part, kind) for part in _parts(s)) for s in body)


def _parts(s: ast.stmt) -> list[list[ast.stmt]]:
    """The statements inside one that is no loop."""
    return [s.body, s.orelse] if isinstance(s, ast.If) else [s.body] if isinstance(s, ast.With) else []


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
            case ast.With() if leaves_loop([s]):
                inner = ast.copy_location(ast.With(s.items, _told(s.body, left, skipped)), s)
                return [*out, inner, *_unless([s], left, skipped, _told(body[n + 1 :], left, skipped))]
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


__all__ = ["can_be_told", "left_by_return", "told", "without_else"]
