"""Vectors whose lanes differ in kind are dealt into ordinary ones; shared parts of large values are computed once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.codegen.driver import host_target, lower_variants
from fluorite.schedule import ExecutionPlan, Vectorize

Image = fl.f32[fl.Tensor, "h", "w"]


def doubled(x: Image) -> fl.Tensor:
    """Twice as wide: pixels, and means between them."""
    h, w = x.shape
    x = fl.edge(x)
    return fl.stage(
        lambda i, j: fl.where(j % 2 == 0, x[i, j // 2], (x[i, j // 2] + x[i, j // 2 + 1]) / 2), name="o", extents={"i": h, "j": 2 * w}
    )


def thirds(x: Image, y: fl.f32[fl.Tensor, "h", "v"]) -> fl.Tensor:
    """Three phases, and a row that every phase reads its own lanes of."""
    h, w = x.shape
    y = fl.edge(y)
    return fl.stage(lambda i, j: x[i, j // 3] * fl.cast(j % 3, fl.f32) + y[i, j], name="o", extents={"i": h, "j": 3 * w})


def fields(x: fl.i16[fl.Tensor, "h", "w"], y: fl.i16[fl.Tensor, "h", "w"]) -> fl.Tensor:
    h, w = x.shape
    return fl.stage(lambda i, j: fl.where(j % 2 == 0, x[i, j // 2], y[i, j // 2]), name="o", extents={"i": h, "j": 2 * w})


def shifted(x: Image) -> fl.Tensor:
    """The first lane of a vector is the second of a cell."""
    h, w = x.shape
    x = fl.edge(x)
    return fl.stage(lambda i, j: x[i, (j + 1) // 2] - x[i, (j + 5) // 2 - 4], name="o", extents={"i": h, "j": 2 * w})


def wide(width: int) -> ExecutionPlan:
    return ExecutionPlan(schedule={"o": [Vectorize("j", width=width)]})


def lowered(f: Callable[..., Any], width: int) -> str:
    plan = wide(width)
    return "\n".join(v.text() for v in lower_variants(fl.trace(f), plan, host_target(plan)))


@pytest.mark.parametrize(("f", "width", "phases"), [(doubled, 16, 2), (thirds, 12, 3), (fields, 32, 2), (shifted, 16, 2)])
def test_lanes_are_dealt_and_woven(f: Callable[..., Any], width: int, phases: int) -> None:
    text = lowered(f, width)
    assert re.search(", ".join(rf"phase{p}(@-\d+)?" for p in range(phases)) + " in turn", text)
    assert f"vectorized for j_inner_cell in 0..{width // phases}:" in text


def test_a_row_is_dealt_among_the_phases() -> None:
    assert re.search(r"part0(@-\d+)?, part1(@-\d+)?, part2(@-\d+)? = every 3 lanes of row", lowered(thirds, 24))


def test_widths_that_cells_do_not_divide_stay_as_they_are() -> None:
    assert "in turn" not in lowered(thirds, 16)
    assert "in turn" not in lowered(doubled, 4)  # parts of two lanes


@pytest.mark.parametrize(("f", "width"), [(doubled, 16), (thirds, 12), (thirds, 24), (fields, 64), (shifted, 8)])
def test_values(f: Callable[..., Any], width: int) -> None:
    model, graph, random = fl.compile(f, wide(width)), fl.trace(f), np.random.default_rng(width)
    for h, w in ((1, 1), (3, 7), (2, 83)):
        x: Any = random.random((h, w), np.float32)
        inputs = {
            doubled: (x,),
            shifted: (x,),
            thirds: (x, random.random((h, 2 * w), np.float32)),
            fields: tuple(random.integers(-99, 99, (h, w), np.int16) for _ in "xy"),
        }[f]
        np.testing.assert_allclose(model(*inputs), graph.run(*inputs), rtol=1e-6)


def towers(x: fl.f32[fl.Tensor, "n"]) -> fl.Tensor:
    """Each step uses the one before several times: written out as a tree it has tens of thousands of nodes."""

    def body(j: Any) -> Any:
        e = x[j]
        for _ in range(5):
            e = fl.clamp(e * 0.5 + 0.25 / (e + 1), 0.1, 0.9) + fl.abs(e - 0.5)
        return e

    return fl.stage(body, name="o")


@pytest.mark.parametrize("n", [1, 37])
def test_shared_parts_are_computed_once(n: int) -> None:
    x = np.random.default_rng(n).random(n, np.float32)
    assert re.search(r"shared0(@-\d+)?\[", lowered(towers, 16))
    np.testing.assert_allclose(fl.compile(towers)(x), fl.trace(towers).run(x), rtol=1e-5)


def test_branches_that_are_not_taken_are_not_computed_for_their_parts() -> None:
    """The read behind the test would be out of bounds."""

    def guarded(x: fl.f32[fl.Tensor, "n"]) -> fl.Tensor:
        def body(j: Any) -> Any:
            e = x[j - 3]
            for _ in range(6):
                e = fl.clamp(e * 0.5 + 0.1, 0, 1) + fl.abs(e)
            return fl.where(j >= 3, e, 0.0)

        return fl.stage(body, name="o", extents={"j": x.shape[0]})

    x = np.random.default_rng(0).random(50, np.float32)
    np.testing.assert_allclose(fl.compile(guarded)(x), fl.trace(guarded).run(x), rtol=1e-5)


def test_lanes_that_read_from_places_of_their_own_are_left_to_a_loop() -> None:
    def many(x: Image) -> fl.Tensor:
        x = fl.edge(x)
        return fl.stage(lambda i, j: sum((x[i, (j * j) % 7 + d] for d in range(1, 40)), x[i, j]), name="o")

    text = lowered(many, 16)
    assert "vectorized" not in text
    x = np.random.default_rng(0).random((3, 50), np.float32)
    np.testing.assert_allclose(fl.compile(many, wide(16))(x), fl.trace(many).run(x), rtol=1e-5)


@pytest.mark.parametrize(("step", "first", "width"), [(2, 0, 8), (2, 1, 16), (3, 1, 4), (4, 3, 12)])
@pytest.mark.parametrize("dtype", ["f32", "u8"])
def test_strided_reads_are_picked_out_of_whole_vectors(step: int, first: int, width: int, dtype: str) -> None:
    def every(x: Any) -> fl.Tensor:
        h, w = x.shape
        return fl.stage(lambda i, j: x[i, step * j + first], name="o", extents={"i": h, "j": (w - first - 1) // step + 1})

    graph = fl.trace(every, inputs={"x": getattr(fl, dtype)("h", "w")})
    plan = wide(width)
    text = "\n".join(v.text() for v in lower_variants(graph, plan, host_target(plan)))
    assert f"every {step} of x[" in text
    model = fl.compile(graph, plan)
    for h, w in ((1, 9), (3, 67)):
        x = np.arange(h * w).reshape(h, w).astype(graph[graph.methods[0].inputs[0]].dtype)
        np.testing.assert_array_equal(model(x), x[:, first::step])


def test_rows_of_branches_that_are_not_taken_are_not_read() -> None:
    """A row that only some lanes may read is not loaded whole."""

    def guarded(x: Image, y: fl.f32[fl.Tensor, "h", "v"]) -> fl.Tensor:
        h, w = x.shape
        return fl.stage(
            lambda i, j: x[i, j // 2] + fl.where(j < y.shape[1], y[i, j], -1.0) * fl.cast(j % 2, fl.f32),
            name="o",
            extents={"i": h, "j": 2 * w},
        )

    text = lowered(guarded, 16)
    assert "where(" in text and not re.search(r"where\([^\n]*, part\d", text)
    model, graph, random = fl.compile(guarded, wide(16)), fl.trace(guarded), np.random.default_rng(0)
    for h, w, v in ((2, 40, 3), (1, 9, 18), (3, 33, 50)):
        x, y = random.random((h, w), np.float32), random.random((h, v), np.float32)
        np.testing.assert_allclose(model(x, y), graph.run(x, y), rtol=1e-6)


def test_kernels_are_the_same_text_every_time() -> None:
    """Whatever the addresses of expressions are: the build cache goes by the text."""

    def several(x: Image, y: Image, z: Image) -> fl.Tensor:
        h, w = x.shape
        a, b = fl.edge(y), fl.edge(z)
        rows = range(1, 6)
        return fl.stage(
            lambda i, j: x[i, j // 2] * sum((a[i, j + d] - b[i, j + d] for d in rows), a[i, j]), name="o", extents={"i": h, "j": 2 * w}
        )

    assert len({lowered(several, 16) for _ in range(4)}) == 1
