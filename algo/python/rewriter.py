"""The rewriting of one function's source.

    if test:                        def then(): nonlocal y; y = f(x)
        y = f(x)                    def otherwise(): nonlocal y; y = g(x)
    else:               becomes     def read(): return flow.value(lambda: y, "y"),
        y = g(x)                    def write(values): nonlocal y; (y,) = values
                                    flow.branch(test, then, otherwise, read, write, ("y",), place)

and loops likewise. A return in a branch takes what follows the branch into the other one, so that both end in a return.
"""

from __future__ import annotations

import ast
import copy
import os
from collections.abc import Sequence

from .leaving import can_be_told, left_by_return, told, without_else
from .names import FLOW, assigned, declared, falls_through, lazy, leaves_loop, returns

_COMPARED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def rewritten(f: ast.FunctionDef, owner: str, file: str) -> ast.FunctionDef:
    """The function with its control flow rewritten, without decorators and annotations. `owner` is the class that it is a method of."""
    return _Function(f, owner, os.path.basename(file), True).made()


def _name(n: str, store: bool = False) -> ast.Name:
    return ast.Name(n, ast.Store() if store else ast.Load())


def _thunk(e: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), e)


def _texts(parts: Sequence[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(p) for p in parts], ast.Load())


class _Function(ast.NodeTransformer):
    """One function of the source; those inside it are rewritten by their own."""

    def __init__(self, f: ast.FunctionDef, owner: str, file: str, outermost: bool) -> None:
        self.f, self.owner, self.file, self.outermost = f, owner, file, outermost
        self.globals = declared(f.body, ast.Global)
        self.nonlocals = declared(f.body, ast.Nonlocal)
        self.arguments = [a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs)]
        self.shared: dict[str, None] = {}  # names that inner functions assign
        self.number = 0

    def made(self) -> ast.FunctionDef:
        f = self.f
        body = self.block(f.body, tail=True)
        keep = dict.fromkeys(n for n in self.shared if n not in self.globals | self.nonlocals)
        if keep:  # never runs: it says that these are names of this function
            targets: list[ast.expr] = [_name(n, True) for n in keep]
            body = [ast.copy_location(ast.If(ast.Constant(False), [ast.Assign(targets, ast.Constant(None))], []), f.body[0]), *body]
        made = ast.FunctionDef(f.name, f.args, body, [] if self.outermost else f.decorator_list)
        if self.outermost:
            made.args = copy.deepcopy(f.args)
            made.args.defaults = [ast.Constant(None) for _ in f.args.defaults]  # the function's own are put back
            made.args.kw_defaults = [None if d is None else ast.Constant(None) for d in f.args.kw_defaults]
            for a in (*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs, made.args.vararg, made.args.kwarg):
                if a is not None:
                    a.annotation = None
        return ast.fix_missing_locations(ast.copy_location(made, f))

    # ------------------------------------------------------------ statements
    def block(self, body: Sequence[ast.stmt], tail: bool, looping: bool = False) -> list[ast.stmt]:
        """Statements. At the `tail` of a function their end is its end; `looping` ones may break or continue a loop of Python's."""
        out: list[ast.stmt] = []
        for n, s in enumerate(body):
            rest = list(body[n + 1 :])
            match s:
                case ast.If() if returns([s]) and tail and not looping and not leaves_loop([s]):
                    out += self.returning(s, rest)
                    return out
                case ast.If() if returns([s]) or leaves_loop([s]):
                    out.append(self.plain_if(s, looping))
                case ast.If():
                    out += self.branch(s)
                case ast.While() | ast.For() if not can_be_told(s.body) or leaves_loop(s.orelse):
                    out.append(self.plain_loop(s))
                case ast.While() | ast.For() if s.orelse:
                    return [*out, *self.block([*without_else(s, self.fresh), *rest], tail, looping)]
                case ast.While() | ast.For() if returns([s]):
                    return [*out, *self.block([*left_by_return(s, self.fresh), *rest], tail, looping)]
                case ast.While() | ast.For():
                    out += self.loop(s)
                case ast.With():
                    items = [self.visit(i) for i in s.items]
                    inner = self.block(s.body, tail and (not rest or not falls_through(s.body)), looping)
                    out.append(ast.copy_location(ast.With(items, inner), s))
                case ast.Try():
                    parts = [self.block(p, False, looping) for p in (s.body, s.orelse, s.finalbody)]
                    handlers = [
                        ast.copy_location(ast.ExceptHandler(h.type and self.visit(h.type), h.name, self.block(h.body, False, looping)), h)
                        for h in s.handlers
                    ]
                    out.append(ast.copy_location(ast.Try(parts[0], handlers, parts[1], parts[2]), s))
                case ast.FunctionDef():
                    out.append(self.visit_FunctionDef(s))
                case _:
                    out.append(self.visit(s))
        return out

    def returning(self, s: ast.If, rest: list[ast.stmt]) -> list[ast.stmt]:
        """An if with a return, and what follows it: both branches go on to the end of the function."""
        before: list[ast.stmt] = []
        follow = [copy.deepcopy(rest) if falls_through(part) else [] for part in (s.body, s.orelse or [ast.Pass()])]
        if rest and all(follow):
            name = self.fresh("rest")
            before = [self.inner(name, [], rest, self.block(rest, tail=True), s)]
            follow = [[ast.copy_location(ast.Return(ast.Call(_name(name), [], [])), s)] for _ in range(2)]
        names = [self.fresh(n) for n in ("then", "otherwise")]
        bodies = [[*s.body, *follow[0]], [*s.orelse, *follow[1]] or [ast.copy_location(ast.Pass(), s)]]
        made = [self.inner(n, [], b, self.block(b, tail=True), s) for n, b in zip(names, bodies, strict=True)]
        state, access = self.access(assigned([*s.body, *s.orelse, *rest]), s)
        call = self.flow("returned", self.visit(s.test), *map(_name, names), *access[:2], self.place(s))
        return [*before, *made, *state, ast.copy_location(ast.Return(call), s)]

    def branch(self, s: ast.If) -> list[ast.stmt]:
        names = assigned([*s.body, *s.orelse])
        then, otherwise = self.fresh("then"), self.fresh("otherwise")
        made: list[ast.stmt] = [
            self.inner(then, [], s.body, self.block(s.body, tail=False), s),
            self.inner(otherwise, [], s.orelse, self.block(s.orelse, tail=False), s),
        ]
        state, access = self.access(names, s)
        call = self.flow("branch", self.visit(s.test), _name(then), _name(otherwise), *access, self.place(s))
        return [*made, *state, ast.copy_location(ast.Expr(call), s)]

    def loop(self, s: ast.While | ast.For) -> list[ast.stmt]:
        left = None
        before: list[ast.stmt] = []
        if leaves_loop(s.body):
            before, s, left = told(s, self.fresh)
        self.shared |= dict.fromkeys(assigned(before))
        return [*before, *(self.while_loop(s) if isinstance(s, ast.While) else self.for_loop(s, left))]

    def while_loop(self, s: ast.While) -> list[ast.stmt]:
        names = assigned([*s.body, ast.Expr(s.test)])
        test, body = self.fresh("test"), self.fresh("body")
        asked = ast.copy_location(ast.Return(self.visit(s.test)), s)
        made: list[ast.stmt] = [
            self.inner(test, [], [ast.Expr(s.test)], [asked], s),
            self.inner(body, [], s.body, self.block(s.body, tail=False), s),
        ]
        state, access = self.access(names, s)
        return [*made, *state, ast.copy_location(ast.Expr(self.flow("repeat", _name(test), _name(body), *access, self.place(s))), s)]

    def for_loop(self, s: ast.For, left: str | None = None) -> list[ast.stmt]:
        names, targets = assigned(s.body), assigned([s.target])
        body, item = self.fresh("body"), self.fresh("item")
        take = ast.copy_location(ast.Assign([s.target], _name(item)), s)
        everything: list[ast.stmt] = [take, *s.body]
        made = self.inner(body, [item], everything, [take, *self.block(s.body, tail=False)], s)
        state, access = self.access([*names, *(t for t in targets if t not in names)], s)
        over = self.walked(s.iter)
        stop = ast.Constant(None) if left is None else _thunk(_name(left))
        call = self.flow("walk", over, _name(body), *access, _texts([t for t in targets if t not in names]), stop, self.place(s))
        return [made, *state, ast.copy_location(ast.Expr(call), s)]

    def walked(self, e: ast.expr) -> ast.expr:
        """What a for loop walks over: of a tensor, range and enumerate make something else than of a number or a list."""
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in ("range", "enumerate", "zip") and not e.keywords:
            return ast.copy_location(self.flow("walked", e.func, *(self.walked(a) for a in e.args)), e)
        visited = self.visit(e)
        assert isinstance(visited, ast.expr)
        return visited

    def plain_if(self, s: ast.If, looping: bool) -> ast.If:
        """An if that stays one: only Python values decide it."""
        test = self.flow("python", self.visit(s.test), ast.Constant("if" if looping else "return"), self.place(s))
        inner = [self.block(part, False, looping=True) for part in (s.body, s.orelse)]
        return ast.copy_location(ast.If(test, inner[0], inner[1]), s)

    def plain_loop(self, s: ast.For | ast.While) -> ast.stmt:
        """A loop that stays one, because it is left in the middle."""
        body, orelse = self.block(s.body, False, looping=True), self.block(s.orelse, False)
        if isinstance(s, ast.While):
            test = self.flow("python", self.visit(s.test), ast.Constant("loop"), self.place(s))
            return ast.copy_location(ast.While(test, body, orelse), s)
        over = self.flow("python", self.walked(s.iter), ast.Constant("loop"), self.place(s))
        return ast.copy_location(ast.For(s.target, over, body, orelse), s)

    # ------------------------------------------------------------ parts
    def fresh(self, name: str) -> str:
        self.number += 1
        return f"{name}_{self.f.name}_{self.number}"

    def place(self, s: ast.stmt) -> ast.Constant:
        return ast.Constant(f"{self.file}:{s.lineno}")

    def flow(self, name: str, *args: ast.expr) -> ast.Call:
        return ast.Call(ast.Attribute(_name(FLOW), name, ast.Load()), list(args), [])

    def inner(self, name: str, arguments: list[str], source: Sequence[ast.AST], body: list[ast.stmt], s: ast.stmt) -> ast.FunctionDef:
        """A function of statements, which assigns to the names of this one."""
        args = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
        made = ast.FunctionDef(name, args, [*self.sharing(assigned(source)), *body] or [ast.Pass()], [])
        return ast.fix_missing_locations(ast.copy_location(made, s))

    def sharing(self, names: Sequence[str]) -> list[ast.stmt]:
        """The statements that let an inner function assign to names of this one."""
        outside = [n for n in names if n in self.globals]
        mine = [n for n in names if n not in self.globals]
        self.shared |= dict.fromkeys(n for n in mine if n not in self.arguments)
        return [*([ast.Global(outside)] if outside else []), *([ast.Nonlocal(mine)] if mine else [])]

    def access(self, names: list[str], s: ast.stmt) -> tuple[list[ast.stmt], tuple[ast.expr, ...]]:
        """Functions that read and write the names, and what to hand over to use them."""
        read, write = self.fresh("read"), self.fresh("write")
        values = ast.Tuple([self.flow("value", _thunk(_name(n)), ast.Constant(n)) for n in names], ast.Load())
        getter = self.inner(read, [], [], [ast.Return(values)], s)
        stores: list[ast.stmt] = [ast.Pass()]
        if names:
            target = ast.Tuple([_name(n, True) for n in names], ast.Store())
            stores = [ast.Assign([target], _name("values"))]
        setter = self.inner(write, ["values"], [_name(n, True) for n in names], stores, s)
        return [getter, setter], (_name(read), _name(write), _texts(names))

    # ------------------------------------------------------------ expressions
    def visit_FunctionDef(self, f: ast.FunctionDef) -> ast.FunctionDef:
        args = self.visit(f.args)
        decorators = [self.visit(d) for d in f.decorator_list]
        made = _Function(f, self.owner, self.file, False).made()
        made.args, made.decorator_list, made.returns = args, decorators, None
        return made

    def visit_AsyncFunctionDef(self, f: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return f

    def visit_ClassDef(self, c: ast.ClassDef) -> ast.ClassDef:
        return c

    def visit_Lambda(self, e: ast.Lambda) -> ast.AST:
        """Lambdas are left alone, those of stages above all; only names of the class are as Python has them."""
        made: ast.AST = _Mangled(self.owner).visit(e)
        return made

    def visit_IfExp(self, e: ast.IfExp) -> ast.AST:
        self.generic_visit(e)
        if not lazy(e.body) or not lazy(e.orelse):
            return e
        return ast.copy_location(self.flow("either", e.test, _thunk(e.body), _thunk(e.orelse), ast.Constant(f"{self.file}:{e.lineno}")), e)

    def visit_BoolOp(self, e: ast.BoolOp) -> ast.AST:
        self.generic_visit(e)
        if not all(map(lazy, e.values)):
            return e
        name = "all_of" if isinstance(e.op, ast.And) else "any_of"
        return ast.copy_location(self.flow(name, ast.Constant(f"{self.file}:{e.lineno}"), *map(_thunk, e.values)), e)

    def visit_UnaryOp(self, e: ast.UnaryOp) -> ast.AST:
        self.generic_visit(e)
        if not isinstance(e.op, ast.Not):
            return e
        return ast.copy_location(self.flow("negated", e.operand, ast.Constant(f"{self.file}:{e.lineno}")), e)

    def visit_Compare(self, e: ast.Compare) -> ast.AST:
        self.generic_visit(e)
        if len(e.ops) == 1 or not all(isinstance(o, _COMPARED) for o in e.ops) or not all(map(lazy, e.comparators)):
            return e
        names = _texts([type(o).__name__ for o in e.ops])
        place = ast.Constant(f"{self.file}:{e.lineno}")
        return ast.copy_location(self.flow("compared", place, names, e.left, *map(_thunk, e.comparators)), e)

    def visit_Call(self, e: ast.Call) -> ast.AST:
        self.generic_visit(e)
        if isinstance(e.func, ast.Name) and e.func.id == "super" and not e.args and self.arguments:
            e.args = [_name("__class__"), _name(self.arguments[0])]
        return e

    def visit_Attribute(self, e: ast.Attribute) -> ast.AST:
        self.generic_visit(e)
        return _mangled(e, self.owner)

    def visit_AnnAssign(self, s: ast.AnnAssign) -> ast.stmt:
        """Without the annotation: a name that inner functions assign must have none."""
        if s.value is None:
            return ast.copy_location(ast.Pass(), s)
        return ast.copy_location(ast.Assign([self.visit(s.target)], self.visit(s.value)), s)


class _Mangled(ast.NodeTransformer):
    def __init__(self, owner: str) -> None:
        self.owner = owner

    def visit_Attribute(self, e: ast.Attribute) -> ast.AST:
        self.generic_visit(e)
        return _mangled(e, self.owner)


def _mangled(e: ast.Attribute, owner: str) -> ast.Attribute:
    """Private names of a class as Python has them outside of it."""
    if owner and e.attr.startswith("__") and not e.attr.endswith("__"):
        e.attr = f"_{owner.lstrip('_')}{e.attr}"
    return e


__all__ = ["FLOW", "rewritten"]
