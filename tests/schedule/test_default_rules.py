"""Which rule of the default scheduler takes which algorithm, read off the directives that it prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import fluorite as fl
import pytest
from fluorite.codegen.lowered import lower_all
from fluorite.schedule import Cache, ComputeAt, ExecutionPlan, FindBest, Numerics, Pack, Parallel, Rfactor, Stream, Unroll, Vectorize
from fluorite.schedule.default import default_schedule
from fluorite.schedule.machine import Machine
from fluorite.schedule.scheduled import Scheduled, apply

F = fl.f32


def scheduled(model: Callable[..., Any], plan: ExecutionPlan | None = None, machine: Machine | None = None, **inputs: Any) -> Scheduled:
    made = apply(plan or ExecutionPlan(), fl.trace(model, None, inputs=inputs), machine or Machine(), default_schedule)
    assert not made.problems
    again = ExecutionPlan.from_yaml(made.text())
    assert {e.select: e.do for e in again.entries()} == {e.select: e.do for e in made.complete_plan().entries()}
    return made


def kinds(made: Scheduled) -> set[type]:
    return {type(d) for ds in made.chosen.values() for d in ds}


def transposed(a: Any, b: Any) -> Any:
    return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[j, k]), name="c")


@pytest.mark.parametrize(("rows", "packed"), [(1, False), (8, False), (64, True)])
def test_few_rows_are_dot_products(rows: int, packed: bool) -> None:
    made = scheduled(transposed, a=F(rows, 512), b=F(512, 512))
    assert (Pack in kinds(made)) == packed and (Rfactor in kinds(made)) != packed


def test_a_dot_product_keeps_its_order_under_exact_numerics() -> None:
    made = scheduled(transposed, ExecutionPlan(numerics=Numerics(allow="exact")), a=F(1, 512), b=F(512, 512))
    assert Rfactor not in kinds(made)


def conv(stride: int) -> Callable[..., Any]:
    return lambda x, w: fl.conv2d(x, w, stride=stride, padding=1)


@pytest.mark.parametrize(
    ("size", "stride", "channels", "out", "along"),
    [(7, 1, 512, 512, True), (112, 2, 3, 64, True), (56, 1, 64, 64, True), (7, 1, 512, 8, False), (112, 1, 1, 16, False)],
)
def test_the_vector_axis_of_a_convolution(size: int, stride: int, channels: int, out: int, along: bool) -> None:
    made = scheduled(conv(stride), x=F(1, channels, size, size), w=F(out, channels, 3, 3))
    orders = [d.order for ds in made.chosen.values() for d in ds if isinstance(d, Cache) and d.order]
    assert [order[-1] for order in orders] == (["o"] if along else [])


def test_what_follows_a_convolution_shares_its_kernel() -> None:
    def layer(x: Any, w: Any, b: Any) -> Any:
        return fl.relu(fl.conv2d(x, w, b))

    made = scheduled(layer, x=F(1, 64, 9, 9), w=F(64, 64, 3, 3), b=F(64))
    assert [len(g.stages) for g in made.groups] == [1, 2]


@pytest.mark.parametrize(("stride", "vectors"), [(1, True), (2, True), (4, True), (5, False)])
def test_windows_are_vectorised_up_to_a_step(stride: int, vectors: bool) -> None:
    made = scheduled(lambda x: fl.max_pool2d(x, 2, stride=stride), x=F(1, 8, 32, 32 * stride))
    assert (Vectorize in kinds(made)) == vectors


@pytest.mark.parametrize(
    ("dtype", "k", "vectors"), [(fl.f32, 1000, True), (fl.f32, 20, False), (fl.i16, 100, True), (fl.boolean, 1000, False)]
)
def test_argmax_along_memory_is_found_in_lanes(dtype: Any, k: int, vectors: bool) -> None:
    made = scheduled(lambda x: fl.argmax(x, axis=1), x=dtype(64, k))
    assert (FindBest in kinds(made)) == vectors and len(made.groups) == 1


def test_argmax_of_what_is_dear_is_computed_once() -> None:
    made = scheduled(lambda x: fl.stage(lambda i: fl.argmax(lambda k: fl.exp(x[i, k]))), x=F(64, 1000))
    assert FindBest not in kinds(made)


@pytest.mark.parametrize(
    ("shape", "order", "tiled"),
    [
        ((64, 64), (1, 0), True),
        ((2, 8, 8, 32), (0, 3, 1, 2), False),
        ((2, 8, 32, 8), (0, 3, 1, 2), True),
        ((64, 3), (1, 0), False),
        ((8, 64, 64), (1, 0, 2), False),
    ],
)
def test_transpositions_are_tiled_where_the_last_axis_steps_across_memory(
    shape: tuple[int, ...], order: tuple[int, ...], tiled: bool
) -> None:
    made = scheduled(lambda x: fl.transpose(x, order), x=F(*shape))
    assert (Unroll in kinds(made)) == tiled


@pytest.mark.parametrize(
    ("shape", "dtype", "allow", "shared"),
    [
        ((1 << 20,), fl.f32, "reassociates", ["stripe"]),
        ((1000, 1000), fl.f32, "reassociates", ["i0_outer"]),
        ((1, 1000, 1000), fl.f32, "reassociates", ["i1_outer"]),
        ((5, 200000), fl.f32, "reassociates", ["stripe"]),
        ((1 << 20, 3), fl.f32, "reassociates", []),
        ((1 << 20,), fl.f32, "exact", []),
        ((1 << 20,), fl.i32, "exact", ["stripe"]),
        ((1 << 12,), fl.f32, "reassociates", []),
        (("n",), fl.f32, "reassociates", []),
    ],
)
def test_a_large_total_is_shared_out_and_a_small_one_is_not(shape: tuple[Any, ...], dtype: Any, allow: Any, shared: list[str]) -> None:
    made = scheduled(lambda x: fl.sum(x), ExecutionPlan(numerics=Numerics(allow=allow)), x=dtype(*shape))
    assert [d.axis for ds in made.chosen.values() for d in ds if isinstance(d, Parallel)] == shared


STRIPES = """\
  /lambda/sum/tasks:
    - split: {axis: i0_inner, factor: 1024, into: [stripe, item]}
    - reorder: [stripe, i0_outer, item]
    - parallel: stripe
    - vectorize: {axis: item, width: 16}
  /lambda/sum:
    - rfactor: {axis: i0, factor: 2048, into: tasks}
    - rfactor: {axis: i0_inner, factor: 64}
    - rfactor: {axis: i0_inner_inner, factor: 8, into: few}
"""
ROWS = """\
  /lambda/sum/tasks:
    - rfactor: {axis: i1, factor: 16}
    - rfactor: {axis: i1_inner, factor: 8, into: few}
    - parallel: i0_outer
  /lambda/sum/tasks/partial:
    - compute_at: {stage: /lambda/sum/tasks, axis: i0_outer}
    - store_in: stack
    - reorder: [i0_inner, i1_outer, i1_inner]
    - vectorize: i1_inner
"""


@pytest.mark.parametrize(("shape", "part"), [((1 << 20,), STRIPES), ((1000, 1000), ROWS)])
def test_the_plan_of_a_total_says_how_it_is_shared_out(shape: tuple[int, ...], part: str) -> None:
    text = scheduled(lambda x: fl.sum(x), x=F(*shape)).text()
    assert part in text and ("/lambda/sum: [{rfactor: {axis: i0, into: tasks, block: 125}}]" in text) == (len(shape) > 1)


def test_gradients_of_a_few_weights_take_one_pass_over_the_image() -> None:
    """Every weight has its vector of partial results in the same loop: not one pass for each, and not one thread for all."""

    def model(x: Any, g: Any) -> Any:
        source = fl.edge(x)
        return fl.stage(lambda j, i: fl.sum(lambda y, x: g[y, x] * source[y + j - 1, x + i - 1]), name="w", extents={"j": 3, "i": 3})

    made = scheduled(model, x=F(512, 640), g=F(512, 640))
    (root,) = (path for path in made.chosen if path.endswith("/w"))
    assert [type(d) for d in made.chosen[root]] == [Rfactor]
    assert Parallel("y_outer") in made.chosen[f"{root}/tasks"]
    assert {d.axis for d in made.chosen[f"{root}/tasks/partial"] if isinstance(d, Unroll)} == {"j", "i"}


def test_windows_inside_rows_are_vectors() -> None:
    """A stencil whose reader also needs a sum of each row keeps its vectors when it is computed row by row."""

    def model(x: Any) -> Any:
        around = fl.edge(x)
        window = fl.stage(lambda y, x: fl.max(lambda k: around[y, x + k - 1], over={"k": 3}), name="window")
        total = fl.stage(lambda y: fl.sum(lambda i: x[y, i]), name="total")
        return fl.stage(lambda y, x: window[y, x] + total[y] / (window[y, x] + 1), name="out")

    made = scheduled(model, x=F(64, 640))
    (window,) = (ds for path, ds in made.chosen.items() if path.endswith("/window"))
    assert any(isinstance(d, ComputeAt) for d in window) and any(isinstance(d, Vectorize) for d in window)


def test_a_few_parts_of_each_element_are_vectors_of_elements() -> None:
    """What is put together along a short last axis is computed where it is stored, all parts of some elements at once."""

    def planes(x: Any) -> Any:
        made = fl.stage(lambda c, i: x[c, i] * x[1 - c, i] + x[c, i] * 3, name="planes", extents={"c": 2})
        return fl.stage(lambda i, c: made[c, i], name="pairs")

    def functions(x: Any) -> Any:
        deep = fl.exp(fl.sin(x[0] * x[1]) + x[1])
        return fl.stack([deep * x[0], deep * x[1]], axis=-1)

    def blurred(x: Any) -> Any:
        return fl.stage(lambda i, j, c: x[i, j, c] + x[i, j + 1, c])

    for model, x, last in [(planes, F(2, 512), "c"), (functions, F(2, 512), "i1"), (blurred, F(8, 65, 3), "vec")]:
        made = scheduled(model, x=x)
        chosen = {d.axis for ds in made.chosen.values() for d in ds if isinstance(d, Unroll | Vectorize)}
        assert len(made.groups) == 1 and chosen == {last, "lane"}
    made = scheduled(lambda x: fl.stack([fl.exp(x), fl.exp(x) * 2], axis=-1), x=F(3))  # no row for a vector
    assert not any(isinstance(d, Vectorize) and d.axis == "lane" for ds in made.chosen.values() for d in ds)


def test_sums_of_one_part_of_each_element_are_vectors() -> None:
    for axis in (0, 1, (0, 1)):
        made = scheduled(lambda x, axis=axis: fl.sum(x[..., 1], axis=axis), x=F(500, 600, 2))
        assert any(isinstance(d, Vectorize) for ds in made.chosen.values() for d in ds)


def test_a_best_of_a_strip_is_no_vector() -> None:
    """argmin keeps one running best, also where its readers are stencils that are computed in strips."""

    def model(x: Any) -> Any:
        best = fl.edge(fl.stage(lambda i, j: fl.argmin(lambda z: x[z, i, j]), name="best"))
        return fl.stage(lambda i, j: fl.exp(fl.cast(best[i - 1, j] + best[i, j] + best[i + 1, j], F)), name="near")

    made = scheduled(model, x=F(8, "h", "w"))
    best = next(ds for path, ds in made.chosen.items() if path.endswith("/best"))
    assert any(isinstance(d, ComputeAt) for d in best) and not any(isinstance(d, Vectorize) for d in best)


def test_sums_down_the_columns_have_columns_in_the_lanes_whatever_they_read_of_a_row() -> None:
    """The gradient of a layer norm's weights: of each row a mean and a variance, of each column a matrix."""

    def weights(g: Any, x: Any, mean: Any, var: Any) -> Any:
        return fl.stage(lambda j: fl.sum(lambda i: g[i, j] * ((x[i, j] - mean[i]) * fl.rsqrt(var[i] + 1e-5))), name="scale")

    made = scheduled(weights, g=F(512, 512), x=F(512, 512), mean=F(512), var=F(512))
    assert Cache in kinds(made) and Rfactor not in kinds(made)


@pytest.mark.parametrize(("rows", "past"), [(512, False), (4096, True), ("h", False)])
def test_large_results_go_past_the_caches(rows: Any, past: bool) -> None:
    def lighter(image: Any) -> Any:
        return fl.stage(lambda y, x: image[y, x] + 1, name="lighter")

    def centred(image: Any) -> Any:
        return fl.stage(lambda y, x: image[y, x] + 1, name="lighter"), fl.stage(lambda y: fl.sum(lambda x: image[y, x]), name="sums")

    assert (Stream in kinds(scheduled(lighter, image=F(rows, 1024)))) == past
    assert Stream not in kinds(scheduled(lambda image: fl.sum(lighter(image)), image=F(rows, 1024)))
    assert (Stream() in scheduled(centred, image=F(rows, 1024)).chosen["centred/lighter"]) == past


def test_rows_of_several_kinds_are_written_out_apart() -> None:
    """In a strip, in a kernel of their own, and where they share rows: no select between them is left where a row is whole."""

    def doubled(image: Any) -> Any:
        picked = fl.stage(lambda y, x: fl.where(y % 2 == 0, fl.sqrt(image[y, x]), fl.exp(image[y, x])), name="picked")
        return fl.stage(lambda y, x: picked[y, x] + picked[y + 1, x] * picked[y + 2, x] + picked[y + 3, x], name="sums")

    made = scheduled(doubled, image=F(1024, 1024))
    assert Unroll("y_line") in made.chosen["doubled/picked"]

    def woven(image: Any) -> Any:
        return fl.stage(lambda y, x: fl.where(y % 3 == 0, image[y, x], fl.exp(image[y // 3, x])), name="woven")

    def alternating(image: Any) -> Any:
        return fl.stage(lambda c, y, x: fl.where(y % 2 == 0, image[c, y, x], fl.exp(image[c, y, x])), name="alternating")

    for f, shape in ((woven, (1023, 1024)), (alternating, (3, 256, 1024))):
        (kernel,) = lower_all(scheduled(f, image=F(*shape))).kernels
        assert "exp" in kernel.text() and not re.search(r"% [23] == 0", kernel.text())
