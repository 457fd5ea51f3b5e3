"""What a piece of source does with names, and whether it leaves by ``return``, ``break`` or ``continue``. Inner functions are apart."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

FLOW = "__fluorite_flow__"
"""What rewritten functions call the module of what runs in place of their control flow."""
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def within(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of one scope: functions, lambdas and classes inside it are seen, what is in them is not."""
    pending = list(nodes)
    while pending:
        n = pending.pop(0)
        yield n
        if not isinstance(n, Scope):
            pending += ast.iter_child_nodes(n)


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that statements bind, in order. Those of comprehensions are their own."""
    found: dict[str, None] = {}
    own: set[int] = set()
    for n in within(nodes):
        if isinstance(n, COMPREHENSIONS):
            own |= {id(x) for g in n.generators for x in ast.walk(g.target)}
        match n:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if id(n) not in own:
                found[name] = None
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                found[name] = None
            case ast.ExceptHandler(name=str(name)):
                found[name] = None
            case ast.alias(name=name, asname=other):
                found[(other or name).split(".")[0]] = None
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found[name] = None
    return list(found)


def declared(nodes: Iterable[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]) -> set[str]:
    """The names in global or nonlocal statements of a scope."""
    return {name for n in within(nodes) if isinstance(n, kind) for name in n.names}


def returns(nodes: Iterable[ast.AST]) -> bool:
    return any(isinstance(n, ast.Return) for n in within(nodes))


def leaves_loop(nodes: Iterable[ast.AST]) -> bool:
    """Whether statements of a loop's body break or continue that loop."""
    pending = list(nodes)
    while pending:
        n = pending.pop()
        if isinstance(n, ast.Break | ast.Continue):
            return True
        if isinstance(n, ast.For | ast.While):
            pending += n.orelse
        elif not isinstance(n, Scope):
            pending += ast.iter_child_nodes(n)
    return False


def falls_through(body: list[ast.stmt]) -> bool:
    """Whether control may reach the end of statements."""
    match body[-1] if body else None:
        case ast.Return() | ast.Raise():
            return False
        case ast.If(body=a, orelse=b):
            return not b or falls_through(a) or falls_through(b)
        case ast.With(body=a):
            return falls_through(a)
    return True


def lazy(e: ast.expr) -> bool:
    """Whether an expression means the same in a function of its own."""
    return not any(isinstance(n, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for n in ast.walk(e))


def needs_rewriting(f: ast.FunctionDef) -> bool:
    """Whether a function, or one inside it, has control flow."""
    kinds = (ast.If, ast.For, ast.While, ast.IfExp, ast.BoolOp)
    pending: list[ast.AST] = [*f.body]
    while pending:
        n = pending.pop()
        if isinstance(n, kinds) or (isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.Not)):
            return True
        if isinstance(n, ast.Compare) and len(n.ops) > 1:
            return True
        if not isinstance(n, ast.Lambda | ast.ClassDef | ast.AsyncFunctionDef):
            pending += ast.iter_child_nodes(n)
    return False


__all__ = ["FLOW", "assigned", "declared", "falls_through", "lazy", "leaves_loop", "needs_rewriting", "returns", "within"]
