"""Random models of kinds that a chain of stages has little of: training with state, slopes of everything, scans that are loops, lists of
unequal length, extents that are computed, given or derived, products of narrow types."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import fluorite as fl
import numpy as np
from fluorite.algo.errors import FluoriteError
from fluorite.algo.graph import Graph
from fluorite.schedule.sections import AtMost, Between, Buckets, Extent

from .plans import plan
from .programs import chained
from .run import agrees_on, extremes, legal, values
from .steps import STEPS

Calls = list[tuple[str, Sequence[Any], str]]


@dataclass(frozen=True)
class Model:
    """A graph, the sizes of its symbols, and calls to compare at sizes."""

    graph: Graph
    sizes: dict[str, int]
    calls: Callable[[dict[str, int]], Calls]


def model(seed: int, verbose: bool = False) -> str:
    """ "agrees", "agrees once repaired" or why not. Raises Failure."""
    rng = random.Random(seed)
    try:
        made = rng.choice(MODELS)(rng, seed)
    except FluoriteError as error:
        return f"no program ({error.problems[0].code})"
    g = made.graph
    asked = plan(rng, g, bold=True) if rng.random() < 0.75 else fl.ExecutionPlan()
    if made.sizes and rng.random() < 0.5:
        names = rng.sample(sorted(made.sizes), rng.randint(1, len(made.sizes)))
        asked = asked.replace(extents={n: _extent(rng, made.sizes[n]) for n in names})
    if rng.random() < 0.3:
        asked = asked.replace(numerics=asked.numerics.replace(allow="precision"))
    compiled, outcome = legal(g, asked.to_yaml(), seed, verbose)
    if compiled is not None:
        sizes = extremes(compiled.plan, made.sizes)
        agrees_on(g, compiled, [(m, given, f"{about} with {s}") for s in sizes for m, given, about in made.calls(s)])
    return outcome


def _extent(rng: random.Random, size: int) -> Extent:
    return rng.choice([AtMost(64), Between((0, 64)), Between((min(size, 2), 64)), Buckets((size, 9))])


def _sizes(rng: random.Random) -> dict[str, int]:
    return {"h": rng.choice([1, 2, 5, 7, 17, 33]), "w": rng.choice([1, 3, 8, 16, 19, 35])}


def _shape(rng: random.Random, sizes: dict[str, int]) -> tuple[tuple[Any, ...], dict[str, int]]:
    """A shape, some of it symbols, and the sizes of these."""
    symbolic = rng.choice([(), ("h", "w"), ("h", "w"), ("h",), ("w",)])
    return tuple(n if n in symbolic else sizes[n] for n in sizes), {n: sizes[n] for n in symbolic}


def _drawn(rng: random.Random, most: int = 2) -> tuple[list[Any], list[int]]:
    steps = [rng.choice(STEPS) for _ in range(rng.randint(0 if most < 2 else 1, most))]
    return steps, [rng.randrange(1 << 30) for _ in steps]


def _function(fn: Callable[..., Any], inputs: dict[str, Any], sizes: dict[str, int], seed: int) -> Model:
    g = fl.trace(fn, None, inputs=inputs)
    method = g.methods[0]

    def calls(at: dict[str, int]) -> Calls:
        return [(method.name, [values(seed, spec.dtype, [at.get(n, n) if isinstance(n, str) else int(n) for n in _names(spec)])
                               for spec in inputs.values()], "")]  # fmt: skip

    return Model(g, sizes, calls)


def _names(spec: Any) -> list[Any]:
    return [str(n) if not isinstance(n, int) else n for n in spec.shape]


# ---------------------------------------------------------------- slopes, training
def slopes(rng: random.Random, seed: int) -> Model:
    """Values and derivatives by both inputs, now and then derivatives of derivatives."""
    shape, sizes = _shape(rng, _sizes(rng))
    drawn, twice = _drawn(rng), rng.random() < 0.25
    dtype = rng.choice([fl.f32, fl.f32, fl.f64])

    def cost(x: Any, y: Any) -> Any:
        return fl.sum(fl.sin(fl.cast(chained(*drawn, x, y)[-1], x.dtype)))

    def program(x: Any, y: Any) -> Any:
        if twice:
            return fl.grad(lambda x: fl.sum(fl.square(fl.grad(cost, 1)(x, y))))(x)
        return fl.value_and_grad(cost, (0, 1))(x, y)

    return _function(program, {"x": dtype(*shape), "y": dtype(*shape)}, sizes, seed)


def trained(rng: random.Random, seed: int) -> Model:
    """A few steps of training, each from what the one before left."""
    all_sizes = _sizes(rng)
    drawn = _drawn(rng, 1)
    optimizer = rng.choice(
        [
            lambda: fl.optim.SGD(0.1),
            lambda: fl.optim.SGD(0.1, momentum=0.9),
            lambda: fl.optim.Adam(0.01),
            lambda: fl.optim.AdamW(0.01),
            lambda: fl.optim.RMSProp(0.01),
            lambda: fl.optim.Adagrad(0.1),
        ]
    )
    rows, columns = rng.choice(["h", all_sizes["h"]]), all_sizes["w"]

    class Trained(fl.Program):
        def __init__(self) -> None:
            self.w = fl.param(init=fl.init.normal(0.5), i=columns, o=3)
            self.seen, self.count = fl.state(o=3), fl.state(init=0, dtype=fl.i32)
            self.optimizer = optimizer()

        def predicted(self, x: Any) -> Any:
            made = fl.cast(chained(*drawn, x, x * 0.5)[-1], x.dtype)
            return (x @ self.w) * fl.tanh(fl.mean(made))

        def step(self, x: Any) -> Any:
            out = self.predicted(x)
            loss = fl.mean(fl.square(out - self.seen), name="loss")
            self.seen = self.seen * 0.5 + fl.mean(out, axis=0)
            self.count = self.count + 1
            self.optimizer.minimize(loss)
            return loss

        def infer(self, x: Any) -> Any:
            return self.predicted(x), self.seen + fl.cast(self.count, fl.f32)

    for name in ("step", "infer"):
        method = getattr(Trained, name)
        method.__annotations__ = {"x": fl.f32(rows, columns)}
        setattr(Trained, name, fl.method(method, training=True) if name == "step" else fl.method(method))
    g = fl.trace(Trained())

    def calls(at: dict[str, int]) -> Calls:
        x = [values(seed + n, "float32", [at.get("h", all_sizes["h"]), columns]) for n in range(3)]
        return [("step", [x[0]], " first"), ("step", [x[1]], " second"), ("infer", [x[2]], " after"), ("step", [x[2]], " third")]

    return Model(g, {"h": all_sizes["h"]} if rows == "h" else {}, calls)


# ---------------------------------------------------------------- loops, lengths
def waiting(rng: random.Random, seed: int) -> Model:
    """A scan each step of which is a loop that starts where that of the step before ended."""
    shape, sizes = _shape(rng, _sizes(rng))
    before, after = _drawn(rng, 1), _drawn(rng, 1)
    axis, reverse, carried = rng.randrange(2), rng.random() < 0.3, rng.random() < 0.7
    sloped = rng.random() < 0.3

    def program(x: Any, y: Any) -> Any:
        a = fl.cast(chained(*before, x, y)[-1], x.dtype)

        def step(c: Any, e: Any) -> Any:
            high = fl.minimum(e, 3)
            r = fl.while_loop(lambda d: fl.any(d[0] < high), lambda d: (d[0] * 1.5 + 0.25, d[1] + 1), (c if carried else c * 0, 0))
            return r[0] * 0.25, r[0] + fl.cast(r[1], x.dtype)

        last, all_ = fl.scan(step, fl.zeros((a.shape[1 - axis],), dtype=x.dtype), a, axis=axis, reverse=reverse)
        return last, chained(*after, all_, all_)[-1]

    def slope(x: Any, y: Any) -> Any:
        return fl.grad(lambda x: fl.sum(fl.sin(program(x, y)[0])))(x)

    return _function(slope if sloped else program, {"x": fl.f32(*shape), "y": fl.f32(*shape)}, sizes, seed)


def ragged(rng: random.Random, seed: int) -> Model:
    """Lists of arrays of unequal lengths: masked sums and maxima, and a scan as long as each."""
    way, reverse = rng.randrange(3), rng.random() < 0.5
    n = rng.choice([1, 3, 8])

    def program(x: fl.f32[fl.Ragged, "n", "t*", 3]) -> Any:
        inside = fl.where(x.mask[:, :, None], x.padded, 0)
        if way == 0:
            return fl.softmax(fl.where(x.mask, fl.sum(inside, axis=2), -1e9), axis=1), fl.sum(inside, axis=1)
        begin = fl.zeros((x.padded.shape[0], 3))
        last, all_ = fl.scan(lambda h, e: (h * 0.5 + e, h), begin, inside, axis=1, reverse=reverse, lengths=x.lengths)
        if way == 1:
            return last, all_
        return fl.grad(lambda v: fl.sum(fl.square(fl.cumulative_sum(v * last[:, None, :], 1))))(inside)

    g = fl.trace(program)

    def calls(at: dict[str, int]) -> Calls:
        lengths = np.random.default_rng(seed).integers(0, 9, n)
        rows = enumerate((lengths, lengths * 0 + 5, [0] * (n - 1) + [1]))
        some = [[values(seed + k, "float32", [int(t), 3]) for t in row] for k, row in rows]
        return [(g.methods[0].name, [one], f" lengths {[len(a) for a in one]}") for one in some]

    return Model(g, {}, calls)


def counted(rng: random.Random, seed: int) -> Model:
    """Extents that are computed: as many as there are, none among them."""
    sizes = {"h": rng.choice([1, 3, 17, 40])}
    limit, way = rng.choice([0.0, 0.5, 2.0, -2.0]), rng.randrange(4)
    drawn = _drawn(rng, 1)

    def program(x: Any) -> Any:
        if way == 0:
            return fl.nonzero(x > limit, 50, cut=True)
        if way == 1:
            return fl.unique(fl.round(x * 3), 50, cut=True)
        n = fl.extent("found", of=fl.sum(fl.cast(x > limit, fl.i32)), most=50)
        rows = fl.stage(lambda i, j: x[i] * (j + 1), extents={"i": n, "j": 5})
        if way == 2:
            return rows, fl.sum(rows, axis=0), fl.cumulative_sum(rows, 0)
        return chained(*drawn, rows, rows)[-1]

    return _function(program, {"x": fl.f32(rng.choice(["h", sizes["h"]]))}, sizes, seed)


def derived(rng: random.Random, seed: int) -> Model:
    """Windows that fit, every other element, and an extent that is given as a number."""
    sizes = {"h": rng.choice([3, 4, 9, 33]), "w": rng.choice([2, 5, 16, 35])}
    k, stride, drawn = rng.choice([2, 3]), rng.choice([1, 2, 3]), _drawn(rng, 1)
    h, w = rng.choice([("h", "w"), ("h", sizes["w"]), (sizes["h"], "w")])

    def program(x: Any) -> Any:
        n = (x.shape[0] - k) // stride + 1
        part = {"i": n, "j": x.shape[1]}
        windows = fl.stage(lambda i, j: fl.sum(lambda p: x[i * stride + p, j], over={"p": k}), extents=part, name="windows")
        halves = fl.stage(lambda i, j: windows[i, 2 * j] - windows[i, 2 * j + 1], extents={"i": n, "j": x.shape[1] // 2}, name="halves")
        return halves, chained(*drawn, windows, windows)[-1]

    return _function(program, {"x": fl.f32(h, w)}, {n: sizes[n] for n in (h, w) if isinstance(n, str)}, seed)


def product(rng: random.Random, seed: int) -> Model:
    """A product of bytes or of two-byte floats, which instructions of their own may compute."""
    a, b, wide = rng.choice([(fl.u8, fl.i8, fl.i32), (fl.i8, fl.i8, fl.i32), (fl.bf16, fl.bf16, fl.f32), (fl.f16, fl.f16, fl.f32)])
    sizes = {n: rng.choice([1, 3, 16, 17, 32, 50, 64]) for n in "mkn"}
    shape = {n: n if rng.random() < 0.4 else size for n, size in sizes.items()}
    turned, more = rng.random() < 0.4, rng.random() < 0.5

    def program(x: Any, y: Any) -> Any:
        def term(i: Any, j: Any, k: Any) -> Any:
            return fl.cast(x[i, k], wide) * fl.cast(y[j, k] if turned else y[k, j], wide)

        out = fl.stage(lambda i, j: fl.sum(lambda k: term(i, j, k)), name="out")
        return fl.maximum(out, 0) + 1 if more else out

    inputs = {"x": a(shape["m"], shape["k"]), "y": b(*((shape["n"], shape["k"]) if turned else (shape["k"], shape["n"])))}
    return _function(program, inputs, {n: s for n, s in sizes.items() if shape[n] == n}, seed)


MODELS: list[Callable[[random.Random, int], Model]] = [slopes, slopes, trained, trained, waiting, ragged, counted, derived, product]
