"""Rewrites against the original graph on the interpreter, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError, Problem
from fluorite.algo.graph import Graph
from fluorite.algo.identities import identity
from fluorite.algo.stages import Stage
from fluorite.schedule import Cache, ComputeInline, Directive, FindBest, Pack, Rfactor, StageIn
from fluorite.schedule.rewrites import inline, operand_axes, rewrite_stage
from hypothesis import given, settings
from hypothesis import strategies as st

REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
FACTORED = tuple(k for k in REDUCTIONS if not k.startswith("arg"))
SIZES = st.sampled_from([1, 2, 3, 5, 7, 16, 17])


def reduced(kind: str, dtype: Any, two: bool) -> Graph:
    """One reduction of kind over k (and p) of x[i, k, p]."""
    over: Callable[..., Any] = getattr(fl, kind)

    def model(x: Any) -> Any:
        if two:
            return fl.stage(lambda i: over(lambda k, p: x[i, k, p]), name="r")
        return fl.stage(lambda i, p: over(lambda k: x[i, k, p]), name="r")

    return fl.trace(model, None, inputs={"x": dtype("n", "m", 3)})


def values(rng: np.random.Generator, dtype: Any, *shape: int) -> np.ndarray:
    if dtype is fl.boolean:
        return rng.random(shape) < 0.7
    if dtype is fl.f32:
        return (rng.random(shape) * 2 - 1).astype(np.float32)
    return rng.integers(-3, 4, shape).astype(dtype.dtype_name)


def the(g: Graph, name: str) -> Stage:
    return next(s for s in g.stages if s.name == name)


def dtypes_of(kind: str) -> list[Any]:
    return [fl.boolean] if kind in ("any", "all") else [fl.f32, fl.i32, fl.u8, fl.i64]


CASES = [(kind, dtype) for kind in REDUCTIONS for dtype in dtypes_of(kind)]


@pytest.mark.parametrize(("kind", "dtype"), CASES, ids=[f"{k}-{d}" for k, d in CASES])
@settings(max_examples=6, deadline=None)
@given(n=SIZES, m=SIZES, two=st.booleans(), turned=st.booleans())
def test_cache_changes_nothing(kind: str, dtype: Any, n: int, m: int, two: bool, turned: bool) -> None:
    g = reduced(kind, dtype, two)
    names = list(the(g, "r").axis_names)
    new, copy = rewrite_stage(g, the(g, "r"), Cache("acc", order=tuple(reversed(names)) if turned else ()))
    acc = next(s for s in new.stages if s.path.endswith("/r/acc"))
    assert acc.axis_names == tuple(reversed(names) if turned else names) and acc.origin == "derived"
    assert copy.reduction is None and copy.id in new.outputs
    x = values(np.random.default_rng(0), dtype, n, m, 3)
    np.testing.assert_array_equal(new.run(x), g.run(x))


@pytest.mark.parametrize(("kind", "dtype"), [c for c in CASES if c[0] in FACTORED], ids=lambda c: str(c))
@settings(max_examples=10, deadline=None)
@given(n=SIZES, m=SIZES, two=st.booleans(), step=st.sampled_from([1, 2, 3, 4, 8, 16]), first=st.booleans(), blocks=st.booleans())
def test_rfactor_adds_up_to_the_same(kind: str, dtype: Any, n: int, m: int, two: bool, step: int, first: bool, blocks: bool) -> None:
    g, name = reduced(kind, dtype, two), "k" if first or not two else "p"
    d = Rfactor(axis=name, block=step) if blocks else Rfactor(axis=name, factor=step)
    new, total = rewrite_stage(g, the(g, "r"), d)
    partial = next(s for s in new.stages if s.path.endswith("/r/partial"))
    assert total.reduction is not None and total.reduction.extents == partial.extents[-1:]
    part = next(a for a in partial.ranges if a.name == f"{d.axis}_inner")
    assert partial.ranges[part] == step and (part in set(partial.reduce_axes)) == blocks
    x = values(np.random.default_rng(1), dtype, n, m, 3)
    if dtype is fl.f32:
        np.testing.assert_allclose(new.run(x), g.run(x), rtol=1e-4, atol=1e-6)
    else:
        np.testing.assert_array_equal(new.run(x), g.run(x))


@pytest.mark.parametrize(("kind", "dtype"), [c for c in CASES if c[0] not in FACTORED], ids=lambda c: str(c))
@settings(max_examples=10, deadline=None)
@given(n=SIZES, m=SIZES, two=st.booleans(), factor=st.sampled_from([1, 2, 3, 8]))
def test_find_best_finds_the_same(kind: str, dtype: Any, n: int, m: int, two: bool, factor: int) -> None:
    g = reduced(kind, dtype, two)
    found, at = rewrite_stage(g, the(g, "r"), FindBest())
    assert at.reduction is not None and at.reduction.kind == "min" and at.id in found.outputs
    lanes, _ = rewrite_stage(found, at, Rfactor(axis=at.reduce_axes[-1].name, factor=factor))
    x = values(np.random.default_rng(1), dtype, n, m, 3)
    if dtype is fl.f32:
        x.flat[:: 1 + x.size // 3] = np.nan
    for new in (found, lanes):
        np.testing.assert_array_equal(new.run(x), g.run(x))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint64", "float32", "float64"])
@pytest.mark.parametrize("kind", FACTORED)
def test_identities_change_nothing(kind: str, dtype: str) -> None:
    """Every value of the type, its ends included, combined with the identity is itself."""
    if (kind in ("any", "all")) != (dtype == "bool"):
        return
    combine = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or, "all": np.logical_and}[kind]
    if dtype == "bool":
        some = np.array([False, True])
    elif "int" in dtype:
        some = np.array([np.iinfo(dtype).min, 0, 1, np.iinfo(dtype).max], dtype)
    else:
        some = np.array([-np.inf, -1, 0, np.finfo(dtype).max, np.inf, np.nan], dtype)
    neutral = np.array(identity(kind, dtype).value, dtype)
    np.testing.assert_array_equal(combine(some, neutral), some)


# ---------------------------------------------------------------- operands
def window(x: Any) -> Any:
    x = fl.edge(x)
    return fl.stage(lambda i, j: x[i, j - 1] + 2 * x[i, j] + x[i + 1, j], name="w")


def product(a: Any, b: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[k, j]), name="p")


def strided(x: Any) -> Any:
    return fl.stage(lambda i, j: x[2 * i + 1, j // 2] - x[i, j], name="s", extents={"i": 3, "j": 5})


def graph_of(model: Callable[..., Any], **inputs: Any) -> Graph:
    return fl.trace(model, None, inputs=inputs)


WINDOW = graph_of(window, x=fl.f32("n", "m"))
PRODUCT = graph_of(product, a=fl.f32("n", "k"), b=fl.f32("k", "m"))
STRIDED = graph_of(strided, x=fl.f32(7, 5))


@settings(max_examples=15, deadline=None)
@given(n=SIZES, m=SIZES)
def test_stage_in_changes_nothing(n: int, m: int) -> None:
    rng = np.random.default_rng(2)
    x = values(rng, fl.f32, n, m)
    new, reader = rewrite_stage(WINDOW, the(WINDOW, "w"), StageIn(read="x", into="x_tile"))
    assert [s.path.rsplit("/", 1)[-1] for s in new.stages] == ["x_tile", "w"] and reader.sources == (the(new, "x_tile").id,)
    np.testing.assert_array_equal(new.run(x), WINDOW.run(x))
    a, b = values(rng, fl.f32, n, 4), values(rng, fl.f32, 4, m)
    new, _ = rewrite_stage(PRODUCT, the(PRODUCT, "p"), StageIn(read="b", into="b_tile"))
    assert the(new, "b_tile").axis_names == ("k", "j")
    np.testing.assert_allclose(new.run(a, b), PRODUCT.run(a, b), rtol=1e-5, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), n=SIZES, m=SIZES)
def test_pack_changes_nothing(data: st.DataObject, n: int, m: int) -> None:
    g, name, tensor, shapes = data.draw(
        st.sampled_from([(WINDOW, "w", "x", [(n, m)]), (PRODUCT, "p", "b", [(n, 5), (5, m)]), (STRIDED, "s", "x", [(7, 5)])])
    )
    s = the(g, name)
    axes = operand_axes(s, next(t for t in g.leaves if t.name == tensor))
    sizes = {a: data.draw(st.sampled_from([1, 2, 3, 8, 16])) for a in data.draw(st.lists(st.sampled_from(axes), min_size=1, unique=True))}
    order = data.draw(st.permutations(axes))
    new, _ = rewrite_stage(g, s, Pack(tensor=tensor, sizes=sizes, order=tuple(order), into="packed"))
    packed = the(new, "packed")
    assert packed.axis_names == (*(f"{a}_outer" if a in sizes else a for a in order), *(f"{a}_inner" for a in sizes))
    inputs = [values(np.random.default_rng(3), fl.f32, *shape) for shape in shapes]
    np.testing.assert_allclose(new.run(*inputs), g.run(*inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("narrow", "wide"), [(fl.f16, "f32"), (fl.i8, "i16"), (fl.u8, "i32"), (fl.bf16, "f32")])
def test_a_packed_copy_may_be_wider(narrow: Any, wide: Any) -> None:
    """Where the operand is converted that is done in the copy; elsewhere the stage still sees it in its own type."""

    def model(a: Any, b: Any) -> Any:
        to = "float32" if wide == "f32" else "int32"

        def term(i: Any, j: Any, k: Any) -> Any:
            return fl.cast(a[i, k], to) * fl.cast(b[k, j], to) + fl.cast(b[k, j] * b[k, j], to)

        return fl.stage(lambda i, j: fl.sum(lambda k: term(i, j, k)), name="p")

    g = fl.trace(model, None, inputs={"a": narrow("n", 5), "b": narrow(5, "m")})
    new, s = rewrite_stage(g, the(g, "p"), Pack(tensor="b", sizes={"j": 8}, order=("j", "k"), into="packed", type=wide))
    assert the(new, "packed").dtype == {"f32": "float32", "i16": "int16", "i32": "int32"}[wide]
    assert s.text(new.path_of).count("packed[") == 3
    a, b = (np.arange(-7, 8).reshape(shape).astype(narrow.dtype_name) for shape in ((3, 5), (5, 3)))
    np.testing.assert_array_equal(new.run(a, b), g.run(a, b))


@settings(max_examples=25, deadline=None)
@given(data=st.data(), n=SIZES, m=SIZES)
def test_rewrites_compose(data: st.DataObject, n: int, m: int) -> None:
    """Any of them after any other, on the product and on what they make."""
    g = PRODUCT
    for step in range(data.draw(st.integers(1, 4))):
        s = data.draw(st.sampled_from([x for x in g.stages if x.sources]))
        read = data.draw(st.sampled_from([g[i].name for i in s.sources]))
        axes = operand_axes(s, next(g[i] for i in s.sources if g[i].name == read))
        d = data.draw(
            st.sampled_from(
                [
                    Cache(f"c{step}"),
                    Rfactor(axis=s.reduce_axes[0].name if s.reduce_axes else "k", factor=3, into=f"f{step}"),
                    StageIn(read=read, into=f"t{step}"),
                    Pack(tensor=read, sizes={axes[-1]: 4}, order=tuple(axes), into=f"p{step}"),
                ]
            )
        )
        try:
            g, _ = rewrite_stage(g, s, d)
        except PlanError as error:
            assert [p.code for p in error.problems] in (["P222"], ["P223"])
    a, b = values(np.random.default_rng(4), fl.f32, n, 6), values(np.random.default_rng(5), fl.f32, 6, m)
    np.testing.assert_allclose(g.run(a, b), PRODUCT.run(a, b), rtol=1e-5, atol=1e-6)
    assert {p.path for p in g.stages} >= {the(PRODUCT, "p").path} and len({p.path for p in g.stages}) == len(g.stages)


# ---------------------------------------------------------------- inline
@settings(max_examples=20, deadline=None)
@given(n=SIZES, m=SIZES, boundary=st.sampled_from(["edge", "reflect", "wrap", "constant"]))
def test_inline_changes_nothing(n: int, m: int, boundary: str) -> None:
    def model(x: Any) -> Any:
        view: Callable[[Any], Any] = (lambda t: fl.constant(t, 0.5)) if boundary == "constant" else getattr(fl, boundary)
        inside = view(x)
        a = view(fl.stage(lambda i, j: 2 * inside[i - 1, j + 1] + i, name="a"))
        b = fl.stage(lambda i, j: a[i, j - 2] * a[i + 2, j], name="b")
        return fl.stage(lambda i: fl.sum(lambda j: b[i, j]), name="c")

    g = graph_of(model, x=fl.f32("n", "m"))
    x = values(np.random.default_rng(6), fl.f32, n, m)
    for names in (["a"], ["b"], ["a", "b"], ["b", "a"]):
        new = g
        for name in names:
            new = inline(new, the(new, name))
        assert {s.name for s in new.stages} == {"a", "b", "c"} - set(names)
        np.testing.assert_allclose(new.run(x), g.run(x), rtol=1e-6)


# ---------------------------------------------------------------- refusals
def refused(g: Graph, name: str, d: Directive) -> Problem:
    with pytest.raises(PlanError) as caught:
        if isinstance(d, ComputeInline):
            inline(g, the(g, name), d)
        else:
            rewrite_stage(g, the(g, name), d)
    (problem,) = caught.value.problems
    assert problem.path == the(g, name).path and problem.source and problem.asked
    return problem


BEST = graph_of(lambda x: fl.stage(lambda i: fl.argmax(lambda k: x[i, k]), name="best"), x=fl.f32("n", "m"))


@pytest.mark.parametrize(
    ("g", "name", "directive", "code", "says"),
    [
        (PRODUCT, "p", Cache("acc", order=("i",)), "P221", "i, j"),
        (PRODUCT, "p", Cache("acc", order=("i", "q")), "P221", "i, j"),
        (PRODUCT, "p", Rfactor(axis="i", factor=4), "P222", "it has k"),
        (WINDOW, "w", Rfactor(axis="k", factor=4), "P222", "it has none"),
        (PRODUCT, "p", Rfactor(axis="k"), "P222", "factor"),
        (BEST, "best", Rfactor(axis="k", factor=4), "P222", "argmax"),
        (PRODUCT, "p", FindBest(), "P222", "it splits an argmax or argmin"),
        (WINDOW, "w", FindBest(), "P222", "no reduction"),
        (PRODUCT, "p", StageIn(read="c", into="c_tile"), "P223", "a, b"),
        (PRODUCT, "p", Pack(tensor="q", sizes={"j": 8}, order=("k", "j"), into="packed"), "P223", "a, b"),
        (PRODUCT, "p", Pack(tensor="b", sizes={"j": 8}, order=("j",), into="packed"), "P221", "k, j"),
        (PRODUCT, "p", Pack(tensor="b", sizes={"i": 8}, order=("k", "j"), into="packed"), "P221", "no axis i"),
        (PRODUCT, "p", Pack(tensor="b", sizes={"j": 8}, order=("k", "j"), into="packed", when="build"), "P224", "when the model is called"),
        (PRODUCT, "p", Pack(tensor="b", sizes={"j": 8}, order=("k", "j"), into="packed", type="i32"), "P227", "it is float32"),
        (PRODUCT, "p", ComputeInline(), "P225", "a reduction"),
        (WINDOW, "w", ComputeInline(), "P225", "a result of"),
    ],
)  # fmt: skip
def test_refusals(g: Graph, name: str, directive: Directive, code: str, says: str) -> None:
    problem = refused(g, name, directive)
    assert problem.code == code and says in problem.text()


def test_a_path_that_exists_already() -> None:
    g, copy = rewrite_stage(PRODUCT, the(PRODUCT, "p"), Cache("acc"))
    assert refused(g, copy.name, Cache("acc")).code == "P220"
    g, _ = rewrite_stage(PRODUCT, the(PRODUCT, "p"), StageIn(read="b", into="tile"))
    assert refused(g, "p", StageIn(read="a", into="tile")).code == "P220"


def test_an_operand_whose_name_is_not_one() -> None:
    def model(x: Any) -> Any:
        with fl.scope("one"):
            a = fl.stage(lambda i: x[i] + 1, name="t")
        with fl.scope("two"):
            b = fl.stage(lambda i: x[i] * 2, name="t")
        return fl.stage(lambda i: a[i] * b[i], name="out")

    g = graph_of(model, x=fl.f32("n"))
    problem = refused(g, "out", StageIn(read="t", into="tile"))
    assert problem.code == "P223" and "several" in problem.asked
    new, _ = rewrite_stage(g, the(g, "out"), StageIn(read="two/t", into="tile"))
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(new.run(x), g.run(x))


def test_a_parameter_can_be_packed_at_build() -> None:
    class Model(fl.Program):
        def __init__(self) -> None:
            self.w = fl.param(k=4, j=6, init=fl.init.normal(0.1))

        @fl.method
        def run(self, x: fl.f32[fl.Tensor, "n", 4]) -> Any:
            return fl.stage(lambda i, j: fl.sum(lambda k: x[i, k] * self.w[k, j]), name="p")

    g = fl.trace(Model())
    new, _ = rewrite_stage(g, the(g, "p"), Pack(tensor="w", sizes={"j": 4}, order=("j", "k"), into="packed", when="build"))
    assert the(new, "packed").extents == (2, 4, 4)


def test_the_parts_of_a_scatter_share_no_cache_lines() -> None:
    """The new axis comes first: each part is one piece of memory."""
    g = fl.trace(lambda x, k: fl.segment_sum(x, k, 5), None, inputs={"x": fl.i32(40, 3), "k": fl.i32(40)})
    (s,) = (s for s in g.stages if s.scatter is not None)
    new, total = rewrite_stage(g, s, Rfactor(axis=s.reduce_axes[0].name, factor=4))
    partial = next(s for s in new.stages if s.path.endswith("/partial"))
    assert partial.extents == (4, 5, 3) and partial.scatter is not None and total.scatter is None
    rng = np.random.default_rng(0)
    x, k = rng.integers(0, 9, (40, 3)).astype(np.int32), rng.integers(-1, 6, 40).astype(np.int32)
    np.testing.assert_array_equal(new.run(x, k), g.run(x, k))
