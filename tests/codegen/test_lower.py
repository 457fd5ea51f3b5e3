"""Lowering: the loops that plans become (golden texts), what they compute on awkward extents, and what is refused."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import fluorite as fl
import model_zoo
import numpy as np
import pytest
from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.extent import evaluate
from fluorite.algo.graph import Graph, Method
from fluorite.codegen import driver
from fluorite.codegen.lowered import Lowered
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.nest import UNROLLED, VECTOR
from fluorite.schedule.sections import Target

TARGET = resolve_target(Target(cpu="skylake-avx512"), threads=2)
AWKWARD = [(1, 1), (1, 33), (7, 16), (16, 7), (17, 17), (33, 1), (16, 33)]


def lowered(model: Callable[..., Any] | Graph, plan: str = "", target: Any = TARGET, **inputs: Any) -> Lowered:
    g = model if isinstance(model, Graph) else fl.trace(model, None, inputs=inputs)
    chosen, _ = driver.prepared(ExecutionPlan.from_yaml(plan, "p.yaml"), g)
    (made,) = driver.lower_variants(g, chosen, target)
    return made


def numbers(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if dtype == "bool":
        return rng.random(shape) < 0.6
    if "int" in dtype:
        return rng.integers(0 if dtype.startswith("u") else -9, 10, shape).astype(dtype)
    return (rng.random(shape) * 4 - 2).astype(dtype)


def same(got: Any, wanted: Any, where: str) -> None:
    if isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for key in wanted:
            same(got[key], wanted[key], f"{where}/{key}")
    elif isinstance(wanted, tuple):
        for n, (a, b) in enumerate(zip(got, wanted, strict=True)):
            same(a, b, f"{where}/{n}")
    elif wanted.dtype.kind == "f":
        tolerance = 2e-5 if wanted.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=where)
        assert got.dtype == wanted.dtype
    else:
        np.testing.assert_array_equal(got, wanted, err_msg=where)
        assert got.dtype == wanted.dtype


def agrees(g: Graph, model: Any, method: Method, sizes: dict[str, int], seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    inputs = [numbers(rng, g[i].dtype, tuple(evaluate(n, sizes) for n in g[i].shape)) for i in method.inputs]
    same(getattr(model, method.name)(*inputs), g.run(*inputs, method=method.name), f"{method.name} {sizes}")


# ---------------------------------------------------------------- golden texts
def product(x: Any, w: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * w[k, j]), name="product")


def twice(x: Any) -> Any:
    return fl.stage(lambda i: x[i] * 2, name="out")


def total(x: Any) -> Any:
    return fl.stage(lambda: fl.sum(lambda k: x[k]), name="total")


BLUR = {"image": fl.f32("h", "w")}
GOLDEN: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "blur_root": (model_zoo.blur, BLUR, "schedule: {'blur/*': [{vectorize: {axis: x, width: 8}}]}\nfusion: {rest: none}"),
    "blur_strips": (
        model_zoo.blur,
        BLUR,
        """
schedule:
  out: [{split: {axis: y, factor: 32}}, {parallel: y_outer}, {vectorize: {axis: x, width: 16}}]
  rows: [{compute_at: {stage: out, axis: y_outer}}, {vectorize: {axis: x, width: 16}}]
""",
    ),
    "product_tile": (
        product,
        {"x": fl.f32("n", 32), "w": fl.f32(32, "m")},
        """
schedule:
  product: [{cache: acc}, {tile: {i: 4, j: 16}}, {parallel: i_outer}, {unroll: i_inner}, {vectorize: j_inner}]
  product/acc: [{compute_at: {stage: product, axis: j_outer}}, {store_in: registers}, {reorder: [k, i, j]}, {unroll: i}, {vectorize: j}]
""",
    ),
    "softmax_rows": (
        model_zoo.softmax,
        {"x": fl.f32("n", 40)},
        """
schedule:
  /softmax/softmax: [{parallel: n}, {vectorize: {axis: i1, width: 8}}]
  max: [{compute_at: {stage: /softmax/softmax, axis: n}}]
  exp: [{compute_at: {stage: /softmax/softmax, axis: n}}, {vectorize: {axis: i1, width: 8}}]
  sum: [{compute_at: {stage: /softmax/softmax, axis: n}}]
""",
    ),
    "tail_guarded": (twice, {"x": fl.f32("n")}, "schedule: {out: [{vectorize: {axis: i, width: 8, tail: guard}}]}"),
    "tail_shifted": (twice, {"x": fl.f32(37)}, "schedule: {out: [{vectorize: {axis: i, width: 8, tail: shift}}]}"),
    "total_in_parts": (
        total,
        {"x": fl.f32("n")},
        """
schedule:
  total: [{rfactor: {axis: k, factor: 8}}]
  total/partial: [{compute_root: }, {reorder: [k_outer, k_inner]}, {vectorize: k_inner}]
""",
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden(name: str, golden: Callable[[str], None]) -> None:
    model, inputs, plan = GOLDEN[name]
    golden(lowered(model, plan, **inputs).text())


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_kernels_compute_the_algorithm(name: str) -> None:
    model, inputs, plan = GOLDEN[name]
    g = fl.trace(model, None, inputs=inputs)
    compiled = driver.compile_graph(g, ExecutionPlan.from_yaml(plan), cache=False)
    made = driver.assemble(compiled.manifest("m"), compiled.library, {})
    symbols = g.symbols()
    for pair in AWKWARD if symbols else AWKWARD[:1]:
        agrees(g, made, g.methods[0], dict(zip(symbols, pair, strict=False)))


def test_lowering_twice_gives_one_text() -> None:
    """The cache goes by it, so it may not depend on anything but graph, plan and target."""
    for name in ("attention", "harris"):
        assert lowered(model_zoo.graph(name)).text() == lowered(model_zoo.graph(name)).text()


@pytest.mark.parametrize("name", ["layer 64x128x96", "transposed_product 33x17x130", "sums 7x1000", "convolution 14x30", "attention 17"])
@pytest.mark.parametrize("cpu", ["skylake-avx512", "haswell", "nehalem"])
def test_default_tiles_fit_the_registers(name: str, cpu: str) -> None:
    target = resolve_target(Target(cpu=cpu), threads=2)
    made = lowered(model_zoo.graph(name), target=target)
    for s in made.graph.stages:
        tile = [loop for loop in made.nests[s.id].loops if not loop.reduction and loop.kind in (UNROLLED, VECTOR)]
        vectors = [loop.extent for loop in tile if loop.kind == VECTOR]
        copies = np.prod([loop.extent for loop in tile if loop.kind == UNROLLED], dtype=int)
        assert copies <= target.machine.registers, s.path
        assert all(isinstance(v, int) and v <= target.machine.lanes(s.dtype) for v in vectors), s.path


# ---------------------------------------------------------------- compiled against the oracle: default schedules
SYMBOLIC = [
    name for name, (_, inputs) in model_zoo.MODELS.items() if any(not isinstance(n, int) for spec in inputs.values() for n in spec.shape)
]


class Zoo:
    """Methods compiled as one library, since linking takes longest."""

    def __init__(self, methods: dict[str, tuple[Callable[..., Any], dict[str, Any]]], plan: str = "") -> None:
        made = {name: fl.method(_as_method(name, model, inputs)) for name, (model, inputs) in methods.items()}
        self.graph = fl.trace(type("Zoo", (fl.Program,), made)())
        compiled = driver.compile_graph(self.graph, ExecutionPlan.from_yaml(plan), cache=False)
        self.model = driver.assemble(compiled.manifest("zoo"), compiled.library, driver.parameter_arrays(self.graph))

    def agrees(self, name: str, sizes: dict[str, int]) -> None:
        agrees(self.graph, self.model, self.graph.method(name), sizes)


def _as_method(name: str, model: Callable[..., Any], inputs: dict[str, Any]) -> Callable[..., Any]:
    arguments = ", ".join(inputs)
    made: dict[str, Any] = {"model": model}
    exec(f"def {name}(self, {arguments}): return model({arguments})", made)
    made[name].__annotations__ = inputs
    return made[name]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def zoo() -> Iterator[Zoo]:
    yield Zoo({name: model_zoo.MODELS[name] for name in SYMBOLIC})


@pytest.mark.parametrize("name", SYMBOLIC)
def test_default_schedules_on_awkward_extents(zoo: Zoo, name: str) -> None:
    for n, m in AWKWARD:
        if name == "pooled" and min(n, m) < 3:
            continue
        zoo.agrees(name, {"n": n, "m": m, "k": m})


# ---------------------------------------------------------------- compiled against the oracle: every type
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES = {t.dtype_name: t for t in (fl.boolean, fl.i8, fl.i16, fl.i32, fl.i64, fl.u8, fl.u16, fl.u32, fl.u64, fl.f32, fl.f64)}


def integers(x: Any, y: Any) -> dict[str, Any]:
    return {
        "sum": x + y * 3, "difference": x - y, "quotient": x // y, "remainder": x % y, "bits": (x & y) | (x ^ 5), "inverse": ~x, "left": x << y,
        "right": x >> y, "least": fl.minimum(x, y), "most": fl.maximum(x, y), "size": abs(x), "sign": fl.sign(x), "negative": -x,
        "chosen": fl.where(x > y, x, y), "less": x <= y, "equal": x == y, "different": x != y,
    }  # fmt: skip


def floats(x: Any, y: Any) -> dict[str, Any]:
    return {
        "sum": x + y * 3, "quotient": x / (y + 5), "floor_quotient": x // (abs(y) + 1), "remainder": x % (abs(y) + 1), "root": fl.sqrt(abs(x)),
        "least": fl.minimum(x, y), "most": fl.maximum(x, y), "size": abs(x), "sign": fl.sign(x), "floor": fl.floor(x), "ceiling": fl.ceil(x),
        "rounded": fl.round(x), "whole": fl.trunc(x), "chosen": fl.where(x > y, x, y), "less": x < y, "exp": fl.exp(x), "tanh": fl.tanh(x),
    }  # fmt: skip


def truths(x: Any, y: Any) -> dict[str, Any]:
    return {"and": x & y, "or": x | y, "xor": x ^ y, "not": ~x, "equal": x == y, "chosen": fl.where(x, y, ~y)}


def reductions(x: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        f"{name}_{axis}": getattr(fl, name)(x, axis=axis) for name in ("sum", "max", "argmax", "argmin") for axis in (0, 1)
    }
    return made | {"min": fl.min(x), "prod": fl.prod(x, axis=1)}


def stencils(x: Any, y: Any) -> dict[str, Any]:
    def beside(v: Any) -> Any:
        return fl.stage(lambda i, j: v[i - 2, j + 1] - v[i + 1, j - 3])

    views = {"edge": fl.edge(x), "reflect": fl.reflect(x), "wrap": fl.wrap(x), "constant": fl.constant(x, 3)}
    return {name: beside(v) for name, v in views.items()} | {
        "product": fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * y[j, k])),
        "joined": fl.concatenate([x, y, x], axis=1),
        "gathered": fl.stage(lambda i, j: x[fl.cast(y[i, j], fl.i32), j]),
        "turned": x.T,
    }


def casts(x: Any) -> dict[str, Any]:
    return {name: fl.cast(x, t) for name, t in TYPES.items()}


def methods_of(
    types: list[str], reduced: list[str], read: list[str], cast: list[str]
) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    methods: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {}
    for name in types:
        one, two = {"x": TYPES[name]("n", "m")}, {"x": TYPES[name]("n", "m"), "y": TYPES[name]("n", "m")}
        methods[f"elements_{name}"] = (truths if name == "bool" else integers if name in INTEGERS else floats, two)
        if name in cast:
            methods[f"casts_{name}"] = (casts, one)
        if name in reduced:
            methods[f"reductions_{name}"] = (settled if name == "bool" else reductions, one)
        if name in read:
            methods[f"reads_{name}"] = (stencils, two)
    return methods


def settled(x: Any) -> dict[str, Any]:
    return {"any": fl.any(x, axis=0), "all": fl.all(x, axis=1), "sum": fl.sum(x)}


_FAST = ["bool", "int32", "uint8", "float32"]
IN_VECTORS = methods_of(_FAST, ["bool", "int32", "float32"], ["uint8", "float32"], ["bool", "float32"])
_PLAIN = ["int8", "int16", "int64", "uint16", "uint32", "uint64", "float64"]
IN_LOOPS = methods_of(_PLAIN, _PLAIN, _PLAIN, ["int8", "int64", "uint32", "float64"])


@pytest.fixture(scope="module")
def in_vectors() -> Iterator[Zoo]:
    yield Zoo(IN_VECTORS)


@pytest.fixture(scope="module")
def in_loops() -> Iterator[Zoo]:
    """As written, which compiles faster: what differs between types is in the scalar operations."""
    yield Zoo(IN_LOOPS, "schedule: {'**': [compute_root]}\nfusion: {rest: none}")


@pytest.mark.parametrize("method", IN_VECTORS)
def test_types_in_vectors(in_vectors: Zoo, method: str) -> None:
    for n, m in AWKWARD:
        in_vectors.agrees(method, {"n": n, "m": m})


@pytest.mark.parametrize("method", IN_LOOPS)
def test_types_in_loops(in_loops: Zoo, method: str) -> None:
    for n, m in AWKWARD:
        in_loops.agrees(method, {"n": n, "m": m})


def test_empty_extents() -> None:
    def model(x: Any) -> Any:
        return {"out": x * 2, "sum": fl.sum(x, axis=0), "joined": fl.concatenate([x, x], axis=0)}

    made = Zoo({"run": (model, {"x": fl.f32("n", 5)})}, "extents: {n: {max: 64}}")
    for n in (0, 1, 64):
        made.agrees("run", {"n": n})


# ---------------------------------------------------------------- refusals
def refusals(model: Callable[..., Any], plan: str, **inputs: Any) -> tuple[Problem, ...]:
    with pytest.raises(PlanError) as caught:
        lowered(model, plan, **inputs)
    return caught.value.problems


def four(x: Any) -> Any:
    a = fl.stage(lambda i, j: x[i, j] + 1, name="a")
    b = fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * a[k, j]), name="b")
    c = fl.stage(lambda i, j: a[i, j] + b[i, j], name="c")
    return fl.stage(lambda i, j: c[i, j] * 2, name="d")


def best(x: Any) -> Any:
    return fl.stage(lambda i: fl.argmax(lambda p, q: x[i, p, q]), name="best")


FOUR, BEST = {"x": fl.f32("n", "n")}, {"x": fl.f32("n", 4, 8)}
ROOTS = "schedule:\n  'four/*': [compute_root]\n"


@pytest.mark.parametrize(
    ("model", "inputs", "plan", "line", "code", "says"),
    [
        (four, FOUR, ROOTS + "  four/a: [{compute_at: {stage: b, axis: i}}]\n", 3, "P205", "c reads it in another kernel"),
        (four, FOUR, ROOTS + "  four/a: [{compute_at: {stage: b, axis: i}}]\nfusion: {groups: [[b, c]]}\n", 3, "P204", "computed outside that loop"),
        (
            four,
            FOUR,
            ROOTS + "  four/c: [{compute_at: {stage: d, axis: j_inner}}]\n  four/d: [{vectorize: {axis: j, width: 4}}]\n",
            3,
            "P204",
            "legal: i, j_outer",
        ),
        (
            four,
            FOUR,
            ROOTS + "  four/c: [{compute_at: {stage: d, axis: i}}, {parallel: j}]\n  four/d: [{parallel: i}]\n",
            3,
            "P212",
            "i of d, which is parallel already",
        ),
        (four, FOUR, ROOTS + "  four/c: [{compute_at: {stage: d, axis: i}}, {store_in: registers}]\n", 3, "P213", "a constant number"),
        (
            four,
            {"x": fl.f32(20, 20)},
            ROOTS + "  four/c: [{compute_at: {stage: d, axis: i}}, {split: {axis: j, factors: [2, 4], into: [p, q]}}]\n",
            3,
            "P207",
            "2 x 4 = 8 iterations",
        ),
        (four, FOUR, ROOTS + "  four/c: [{compute_at: {stage: d, axis: i}}, {vectorize: j}]\n", 3, "P211", "known only when the kernel runs"),
        (four, {"x": fl.f32(8, 8)}, ROOTS + "  four/d: [{vectorize: i}, {parallel: j}]\n", 3, "P215", "j, inside i, is parallel"),
        (four, FOUR, ROOTS + "  four/d: [{split: {axis: i, factor: 4}}, {vectorize: i_inner}]\n", 3, "P215", "j, inside i_inner, has n iterations"),
        (best, BEST, "schedule:\n  best: [{reorder: [p, i, q]}]\n", 2, "P214", "loop i lies inside a loop of argmax"),
        (best, BEST, "schedule:\n  best: [{vectorize: {axis: i, width: 4}}]\n", 2, "P214", "loop i_inner is vectorised"),
        (best, BEST, "schedule:\n  best: [{tile: {p: 2, q: 2}}]\n", 2, "P214", "order of p, q"),
        (best, BEST, "schedule:\n  best:\n    - split: {axis: q, factors: [~, 2, 4], into: [a, b, c]}\n    - fuse: [b, c]\n", 3, "P214", "order of p, q"),
        (
            product,
            {"x": fl.f32("n", 32), "w": fl.f32(32, "m")},
            "numerics: {allow: exact}\nschedule:\n  product: [{rfactor: {axis: k, factor: 4}}]\n",
            3,
            "P301",
            "the plan allows exact",
        ),
        (
            product,
            {"x": fl.f32("n", 32), "w": fl.f32(32, "m")},
            "numerics: {allow: exact}\nschedule:\n  product: [{split: {axis: k, factor: 4}}, {reorder: [k_inner, k_outer]}]\n",
            3,
            "P301",
            "reorder adds the parts of product up in another order",
        ),
    ],
)  # fmt: skip
def test_refusals(model: Callable[..., Any], inputs: dict[str, Any], plan: str, line: int, code: str, says: str) -> None:
    (problem,) = refusals(model, plan, **inputs)
    assert problem.code == code, problem.text()
    assert says in problem.text() and problem.file == "p.yaml" and problem.line == line, problem.text()


def test_integers_may_be_added_in_any_order() -> None:
    plan = "numerics: {allow: exact}\nschedule: {product: [{rfactor: {axis: k, factor: 4}}]}"
    assert lowered(product, plan, x=fl.i32("n", 32), w=fl.i32(32, "m")).numerics == "exact"
    assert lowered(product, plan.replace("exact", "reassociates"), x=fl.f32("n", 32), w=fl.f32(32, "m")).numerics == "reassociates"


@pytest.mark.parametrize("tail", ["auto", "shift", "guard"])
def test_the_last_vector_of_a_part_that_ends_early_is_not_moved_beyond_it(tail: str) -> None:
    """A part of the reader may be shorter than the memory that is kept for it, down to nothing."""

    def model(x: Any) -> Any:
        a = fl.stage(lambda i: x[i] + 1, name="a")
        return fl.stage(lambda i: a[i] * 2, name="out")

    g = fl.trace(model, None, inputs={"x": fl.f32("n")})
    plan = f"schedule: {{a: [{{compute_at: {{stage: out, axis: p}}}}, {{vectorize: {{axis: i, width: 2, tail: {tail}}}}}], out: [{{split: {{axis: i, factors: [4, ~], into: [p, q]}}}}]}}"
    compiled = driver.compile_graph(g, ExecutionPlan.from_yaml(plan, "p.yaml"), cache=False)
    model_ = driver.assemble(compiled.manifest("parts"), compiled.library, {})
    for n in range(1, 30):
        agrees(g, model_, g.methods[0], {"n": n})


def test_a_part_whose_vectors_do_not_fill_it_is_not_moved_back() -> None:
    """Its last elements are computed one by one, where they are."""
    g = fl.trace(lambda x: fl.stage(lambda i: x[i] * 2, name="out"), None, inputs={"x": fl.f32("n")})
    plan = "schedule: {out: [{split: {axis: i, factor: 3}}, {vectorize: {axis: i_inner, width: 2, tail: guard}}]}"
    compiled = driver.compile_graph(g, ExecutionPlan.from_yaml(plan, "p.yaml"), cache=False)
    model_ = driver.assemble(compiled.manifest("parts"), compiled.library, {})
    for n in range(1, 22):
        x, out = np.arange(n, dtype=np.float32), np.full(n, np.nan, np.float32)
        getattr(model_, g.methods[0].name)(x, out=out)
        np.testing.assert_array_equal(out, x * 2)
