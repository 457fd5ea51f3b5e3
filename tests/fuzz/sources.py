"""Random Python: functions whose `if`, `for` and `while` are decided by tensors, against what the same source does with NumPy's arrays.

All numbers are whole and small, so that nothing rounds and every decision is the same.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import fluorite as fl
import numpy as np
from fluorite.algo.errors import FluoriteError
from fluorite.algo.graph import Graph

from .plans import plan
from .run import Failure, agrees_on, legal, sentences

Array = np.ndarray[Any, Any]
COLUMNS = 3
COMPILED = 2
"""Of so many seeds one is compiled; the others only ask what the program means."""
_HEAD = '''def small(e, xp):
    return xp.minimum(xp.maximum(e, -9), 9)


def program(m, x, n, xp):
    v, w = m[0], small(x * 3 + 1, xp)
    s, t = xp.sum(x) * 0, xp.max(x)
    k = n + 1
'''


class Source:
    """The lines of one function, drawn statement by statement."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.lines, self.counters = rng, _HEAD.splitlines(), 0
        self.block(1, 0, rng.choice([2, 3, 4]), False)
        self.lines.append("    return v, w, s, t, k")

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    # ---------------------------------------------------------------- statements
    def block(self, depth: int, loops: int, count: int, rows: bool) -> None:
        """Statements at this depth, in so many loops; `rows` says whether there is a `row`."""
        rng = self.rng
        for _ in range(count):
            kinds = [self.assign, self.assign, self.assign]
            if depth < 4:
                kinds += [self.branch, self.branch]
            if loops < 2 and depth < 4:
                kinds += [self.over_rows, self.over_values, self.over_numbers, self.turns]
            rng.choice(kinds)(depth, loops, rows)
        if loops and rng.random() < 0.35:
            self.put(depth, f"if {self.truth(rows)}:")
            self.put(depth + 1, rng.choice(["break", "continue"]))
            self.assign(depth, loops, rows)

    def assign(self, depth: int, loops: int, rows: bool) -> None:
        rng = self.rng
        match rng.randrange(6):
            case 0 | 1:
                self.put(depth, f"{rng.choice('vw')} = small({self.vector(rows)}, xp)")
            case 2 | 3:
                self.put(depth, f"{rng.choice('st')} = small({self.number(rows)}, xp)")
            case 4:
                self.put(depth, f"k = ({self.count()}) % 7")
            case _:
                a, b = rng.sample(["v", "w"], 2) if rng.random() < 0.5 else rng.sample(["s", "t"], 2)
                self.put(depth, f"{a} = {b} if {self.truth(rows)} else {a}")

    def branch(self, depth: int, loops: int, rows: bool) -> None:
        self.put(depth, f"if {self.truth(rows)}:")
        self.block(depth + 1, loops, self.rng.choice([1, 2]), rows)
        if self.rng.random() < 0.4:
            self.put(depth, f"elif {self.truth(rows)}:")
            self.block(depth + 1, loops, 1, rows)
        if self.rng.random() < 0.6:
            self.put(depth, "else:")
            self.block(depth + 1, loops, 1, rows)

    def over_rows(self, depth: int, loops: int, rows: bool) -> None:
        heads = ["for row in m:", "for row in m:", "for row, _ in zip(m, m):", "for _, row in enumerate(m):"]
        self.put(depth, "row = v")
        self.put(depth, self.rng.choice(heads))
        self.block(depth + 1, loops + 1, self.rng.choice([1, 2]), True)

    def over_values(self, depth: int, loops: int, rows: bool) -> None:
        name = f"a{self.counter()}"
        self.put(depth, f"for {name} in {self.rng.choice(['v', 'x', 'm[0]'])}:")
        self.put(depth + 1, f"s = small({self.rng.choice([f's + {name}', f'{name} - s', f'xp.maximum(s, {name})'])}, xp)")
        self.block(depth + 1, loops + 1, 1, rows)

    def over_numbers(self, depth: int, loops: int, rows: bool) -> None:
        name = f"i{self.counter()}"
        limit = self.rng.choice(["3", "m.shape[0]", "1, 4", "x.shape[0]", "0"])
        self.put(depth, f"for {name} in range({limit}):")
        if limit == "m.shape[0]":
            self.put(depth + 1, f"v = small(v - m[{name}], xp)")
        self.block(depth + 1, loops + 1, self.rng.choice([1, 2]), rows)

    def turns(self, depth: int, loops: int, rows: bool) -> None:
        name = f"c{self.counter()}"
        end = self.rng.choice(["3", "k", "5", "n"])
        more = self.rng.choice(["", "", f" and {self.truth(rows)}"])
        self.put(depth, f"{name} = n * 0")
        self.put(depth, f"while {name} < {end}{more}:")
        self.put(depth + 1, f"{name} = {name} + 1")
        if end == "k":
            self.put(depth + 1, "k = k - 1")
        self.block(depth + 1, loops + 1, self.rng.choice([1, 2]), rows)

    def counter(self) -> int:
        self.counters += 1
        return self.counters

    # ---------------------------------------------------------------- expressions
    def vector(self, rows: bool) -> str:
        a, b = (self.rng.choice(["v", "w", "x", *(["row", "row"] if rows else [])]) for _ in range(2))
        return self.rng.choice([f"{a} + {b}", f"{a} - s", f"xp.maximum({a}, t)", f"xp.where({a} > s, {a}, {b})", f"3 - {a}", f"{a} * {b}"])

    def number(self, rows: bool) -> str:
        a = self.rng.choice(["v", "w", *(["row"] if rows else [])])
        return self.rng.choice([f"xp.sum({a})", f"xp.max({a}) - t", "s + t", "1 - s", f"xp.min({a}) + s", f"{a}[0] - {a}[2]"])

    def count(self) -> str:
        return self.rng.choice(["k + 1", "k * 2", "k - n", "n + 3", "k // 2 + k"])

    def truth(self, rows: bool, deep: bool = True) -> str:
        a = self.rng.choice(["v", "w", *(["row"] if rows else [])])
        found = [f"xp.sum({a}) > s", f"xp.max({a}) < 2", f"xp.any({a} > 1)", f"-1 < xp.min({a}) <= t", f"xp.all({a} < s)"]
        found += ["s > t", "k % 3 == 1", "k < n"]
        if deep and self.rng.random() < 0.3:
            parts = self.truth(rows, False), self.truth(rows, False)
            return self.rng.choice(["{} and {}", "{} or {}", "not {} or {}", "not ({} and {})"]).format(*parts)
        return self.rng.choice(found)


@contextmanager
def function(text: str, name: str) -> Iterator[Callable[..., Any]]:
    """The function `program` of a source, which has lines to be read."""
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)
    try:
        yield space["program"]
    finally:
        linecache.cache.pop(name, None)


def meant(fn: Callable[..., Any], given: tuple[Array, ...]) -> list[Array]:
    return [np.asarray(r) for r in fn(*given, np)]


def drawn(rng: random.Random, rows: int) -> tuple[Array, Array, Array]:
    """A matrix, a vector and a number."""
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    m, x = (numbers.integers(-3, 4, shape).astype(np.float64) for shape in ((rows, COLUMNS), (COLUMNS,)))
    return m, x, np.asarray(numbers.integers(0, 5), np.int32)


def traced(fn: Callable[..., Any], rows: int | str) -> Graph:
    def with_tensors(m: Any, x: Any, n: Any) -> Any:
        return fl.function(fn)(m, x, n, fl)

    return fl.trace(with_tensors, None, inputs={"m": fl.f64(rows, COLUMNS), "x": fl.f64(COLUMNS), "n": fl.i32()})


def source(seed: int, verbose: bool = False) -> str:
    """ "agrees" or why there is no program. Raises Failure."""
    rng = random.Random(seed)
    text = Source(rng).text
    if verbose:
        print(text)
    rows, open_ = rng.choice([1, 2, 4, 5]), rng.random() < 0.5
    with function(text, f"<source {seed}>") as fn:
        try:
            g = traced(fn, "rows" if open_ else rows)
        except FluoriteError as error:
            sentences(error)
            if verbose:
                print(error)
            return f"no program ({error.problems[0].code})"
        except Exception as error:
            raise Failure(f"{type(error).__name__} when traced: {str(error)[:300]}") from error
        if verbose:
            print(g.text())
        cases = [drawn(rng, rows) for _ in range(3)]
        for given in cases:
            _same(meant(fn, given), g.run(*given), "interpreted")
        if seed % COMPILED:
            return "agrees"
        asked = plan(rng, g) if rng.random() < 0.5 else fl.ExecutionPlan()
        compiled, outcome = legal(g, asked.to_yaml(), seed, verbose)
        if compiled is not None:
            agrees_on(g, compiled, [(g.methods[0].name, given, f" with {given}") for given in cases])
    return outcome


def _same(wanted: list[Array], found: Any, how: str) -> None:
    for name, a, b in zip("vwstk", wanted, found, strict=True):
        if not np.array_equal(a, np.asarray(b)):
            raise Failure(f"{how}, {name} is {np.asarray(b).tolist()}, and in Python {a.tolist()}")


__all__ = ["Source", "function", "source"]
