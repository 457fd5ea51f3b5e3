"""What runs in place of Python's control flow: it looks at the value, and means what Python means where that is no tensor."""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ..branching import choose
from ..building import current, tracing
from ..errors import AlgorithmError
from ..expr import refuse
from ..extent import Dim
from ..tensor import Tensor, in_body
from .state import UNSET, Missing, Reader, Unset, Writer, value
from .steps import Steps, steps_of, walk_tensor, while_tensor

Thunk = Callable[[], Any]
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq, "NotEq": operator.ne,
}  # fmt: skip


_ENDLESS = 10_000
"""Items of an iterator after which a loop that only a tensor leaves counts as endless."""


# ---------------------------------------------------------------- statements
def branch(test: Any, then: Thunk, otherwise: Thunk, read: Reader, write: Writer, names: Sequence[str], place: str) -> None:
    """An if statement. `read` and `write` are of the names that the branches assign."""
    if not _decides(test):
        (then if test else otherwise)()
        return
    before = read()

    def side(run: Thunk) -> Callable[[], tuple[Any, ...]]:
        def call() -> tuple[Any, ...]:
            write(before)
            run()
            return read()

        return call

    try:
        with _at(place):
            after = choose(_bool(test, "if"), side(then), side(otherwise), lambda n, values: _joined(names[n], values, place), Unset)
    except AlgorithmError:
        write(before)
        raise
    write(after)


def returned(test: Any, then: Thunk, otherwise: Thunk, read: Reader, write: Writer, place: str) -> Any:
    """An if statement both of whose branches return. `read` and `write` are of the names that they assign before that."""
    if not _decides(test):
        return (then if test else otherwise)()
    before = read()

    def side(run: Thunk) -> Callable[[], tuple[Any, ...]]:
        def call() -> tuple[Any, ...]:
            write(before)
            return (run(),)

        return call

    try:
        with _at(place):
            made = choose(_bool(test, "if"), side(then), side(otherwise), lambda _, values: _joined("the result", values, place))
    finally:
        write(before)
    return made[0]


def repeat(test: Thunk, body: Thunk, read: Reader, write: Writer, names: Sequence[str], place: str) -> None:
    """A while statement."""
    while True:
        asked = test()
        if _decides(asked):
            with _at(place):
                while_tensor(lambda: _bool(test(), "while"), body, read, write, names, place)
            return
        if not asked:
            return
        body()


def walk(
    over: Any,
    body: Callable[[Any], None],
    read: Reader,
    write: Writer,
    names: Sequence[str],
    own: Sequence[str],
    stop: Thunk | None,
    place: str,
) -> None:
    """A for statement. `own` are the names that only its head assigns, `stop` says whether the loop has been left."""
    if isinstance(over, Steps) or (isinstance(over, Tensor) and not in_body()):
        with _at(place):
            walk_tensor(steps_of(over), body, read, write, names, own, place)
        return
    for n, x in enumerate(over):
        body(x)
        left = stop() if stop is not None else False
        if _decides(left):
            if n >= _ENDLESS and not hasattr(over, "__len__"):
                why = "a step for each of its items is written out, since only the kernel knows when it is left"
                with _at(place):
                    raise refuse("A411", f"break under an if on a tensor, in a loop over more than {_ENDLESS} items", why, "while True:")
        elif left:
            break


def walked(maker: Any, *args: Any) -> Any:
    """range, enumerate and zip of what may be tensors or symbolic extents."""
    if maker is builtins.range and any(isinstance(a, Dim | Tensor) for a in args):
        return Steps.range(args)
    if maker is builtins.enumerate and isinstance(args[0], Tensor | Steps) and not in_body():
        return Steps.enumerate(args)
    if maker is builtins.zip and any(isinstance(a, Tensor | Steps) for a in args) and not in_body():
        return Steps.zip(args)
    return maker(*args)


def python(test: Any, what: str, place: str) -> Any:
    """The test of an if, or what a loop walks over, where only Python values will do."""
    if isinstance(test, Steps) or _decides(test) or (what == "loop" and isinstance(test, Tensor) and not in_body()):
        with _at(place):
            shown = repr(test) if isinstance(test, Tensor) else "symbolic extents"
            match what:
                case "loop":
                    why = "how often it runs is known only when the kernel runs, and all its steps are one: it cannot be left in the middle"
                    asked = f"return, break or continue inside a try, a match or the else of a loop, in a loop over {shown}"
                    instead = "a variable that says whether it is done"
                case "if":
                    why = "whether the loop goes on would be known only when the kernel runs"
                    asked, instead = (
                        f"return, break or continue under an if on {shown}, inside a try, a match or the else of a loop",
                        "fl.where, or a variable that says whether it is done",
                    )
                case _:
                    why = "what follows depends on whether it was taken"
                    asked, instead = f"return under an if on {shown}, inside a with, try or loop", "a return in both branches, at the end"
            raise refuse("A411", asked, why, instead)
    return test


# ---------------------------------------------------------------- expressions
def either(test: Any, then: Thunk, otherwise: Thunk, place: str) -> Any:
    """then if test else otherwise"""
    if not _decides(test):
        return then() if test else otherwise()
    return returned(test, then, otherwise, lambda: (), lambda _: None, place)


def all_of(place: str, *parts: Thunk) -> Any:
    """a and b and ..."""
    return _logical(place, parts, "and")


def any_of(place: str, *parts: Thunk) -> Any:
    """a or b or ..."""
    return _logical(place, parts, "or")


def _logical(place: str, parts: Sequence[Thunk], word: str) -> Any:
    from ..ops.arithmetic import logical_and, logical_or

    join = logical_and if word == "and" else logical_or
    found: Any = None  # what tensors say so far
    for n, part in enumerate(parts):
        x = part()
        if found is None and n == len(parts) - 1:
            return x
        if _decides(x):
            with _at(place):
                x = _bool(x, word)
                found = x if found is None else join(found, x)
        elif found is None:
            if bool(x) is (word == "or"):
                return x
        elif bool(x) is (word == "or"):
            with _at(place):
                return join(found, bool(x))
    return found


def negated(x: Any, place: str) -> Any:
    """not x"""
    if not _decides(x):
        return not x
    from ..ops.arithmetic import logical_not

    with _at(place):
        return logical_not(_bool(x, "not"))


def compared(place: str, names: Sequence[str], first: Any, *others: Thunk) -> Any:
    """a < b < c"""
    values = [first]

    def one(k: int) -> Any:
        if len(values) == k + 1:
            values.append(others[k]())
        return _OPERATORS[names[k]](values[k], values[k + 1])

    return all_of(place, *((lambda k=k: one(k)) for k in range(len(names))))


# ---------------------------------------------------------------- tests
def _decides(test: Any) -> bool:
    """Whether a value is known only when the kernel runs. (An element of a stage is refused as before: fl.where goes there.)"""
    if isinstance(test, Missing):
        test.refuse()
    return isinstance(test, Tensor) and tracing() is not None and not in_body()


def _bool(test: Any, word: str) -> Any:
    """A test of one element. Numbers are true where they are not 0, as in Python."""
    if isinstance(test, Tensor) and test.shape == ():
        return test if test.dtype == "bool" else test != 0
    if isinstance(test, Tensor):
        instead = "fl.any(x) or fl.all(x)", "fl.where(condition, a, b), element by element"
        raise refuse("A401", f"{word} on {test!r}", "it decides by one value, and this has several", *instead)
    return test


def _joined(name: str, values: Sequence[Any], place: str) -> Any:
    """What a name is after branches that leave different things in it, none of which is a tensor or a nest of them."""
    if any(isinstance(v, Missing) for v in values):
        why = f"only one branch of the if at {place} assigns it, and which one is taken is known only when the kernel runs"
        return Missing(name, why)
    kinds = " and ".join(type(v).__name__ for v in values)
    why = "which branch is taken is known only when the kernel runs, so both leave tensors or numbers, or one and the same object"
    raise refuse("A412", f"{name}, which branches make {kinds}", why, f"assign {name} before the if" if name != "the result" else "fl.cond")


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Refusals say the line of the statement, where they have none of their own."""
    try:
        yield
    except AlgorithmError as error:
        path = current().method
        raise AlgorithmError([p if p.source else replace(p, source=place, path=p.path or path) for p in error.problems]) from None


__all__ = [
    "UNSET", "all_of", "any_of", "branch", "compared", "either", "negated", "python", "repeat", "returned", "value", "walk", "walked",
]  # fmt: skip
