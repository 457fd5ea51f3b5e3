"""compute_with: two nests in one, with the values of two, what they share computed once, and why it cannot be elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import PlanError
from fluorite.algo.numerics import compare
from fluorite.codegen import driver
from fluorite.codegen.driver import lower_variants
from fluorite.codegen.target import resolve_target
from fluorite.schedule import ComputeWith, ExecutionPlan

F = fl.f32


def windows(image: Any) -> Any:
    """A bilateral filter's two sums: of the weights, and of the pixels by these."""
    near = fl.edge(image)

    def like(y: Any, x: Any, k: Any) -> Any:
        return fl.exp(near[y, x + k - 1] - image[y, x])

    likes = fl.stage(lambda y, x: fl.sum(lambda k: like(y, x, k), over={"k": 3}), name="likes")
    return likes, fl.stage(lambda y, x: fl.sum(lambda k: like(y, x, k) * near[y, x + k - 1], over={"k": 3}), name="sums")


def guarded(image: Any) -> Any:
    """Sums of what lies inside alone: the same choices around what is shared."""
    zero = fl.constant(image, 0)

    def near(y: Any, x: Any, k: Any) -> Any:
        return fl.where((x + k >= 1) & (x + k < image.shape[1] + 1), fl.exp(zero[y, x + k - 1]) * image[y, x], 0)

    likes = fl.stage(lambda y, x: fl.sum(lambda k: near(y, x, k), over={"k": 3}), name="likes")
    return likes, fl.stage(lambda y, x: fl.max(lambda k: near(y, x, k) * 2, over={"k": 3}), name="sums")


def of_all(image: Any) -> Any:
    """Three weights and one amount: what is an axis of one is a reduction of the other."""
    near = fl.edge(image)
    by = fl.stage(
        lambda i: fl.sum(lambda y, x: fl.exp(near[y, x + i - 1] - image[y, x]) * image[y, x]), name="likes", extents={"i": 3}
    )
    return by, fl.stage(lambda: fl.sum(lambda y, x, k: fl.exp(near[y, x + k - 1] - image[y, x]), over={"k": 3}), name="sums")


def in_rows(image: Any) -> Any:
    """Sums of every row that one stage reads, computed in it."""
    likes = fl.stage(lambda y: fl.sum(lambda k: fl.sqrt(image[y, k])), name="likes")
    sums = fl.stage(lambda y: fl.sum(lambda k: fl.sqrt(image[y, k]) * image[y, k]), name="sums")
    return fl.stage(lambda y, x: image[y, x] * likes[y] + sums[y], name="out")



def beside(axis: str, stage: str = "likes") -> str:
    return f"{{compute_with: {{stage: {stage}, axis: {axis}}}}}"


LANES = "{reorder: [y, x_outer, k, x_inner]}"
VECTORS = f"{{vectorize: {{axis: x, width: 8}}}}, {LANES}"
ODD = "{split: {axis: x, factor: 6}}, {unroll: k}, {unroll: x_inner}"
TASKS = "{rfactor: {axis: y, block: 4, into: tasks}}"
ROWS = "{compute_at: {stage: out, axis: y}}"
CASES: dict[str, tuple[Callable[..., Any], str]] = {
    "by elements": (windows, f"likes: [{{parallel: y}}], sums: [{{parallel: y}}, {beside('k')}]"),
    "outer loops alone": (windows, f"likes: [{{parallel: y}}], sums: [{{parallel: y}}, {beside('y')}]"),
    "vectors": (windows, f"likes: [{VECTORS}], sums: [{VECTORS}, {beside('k')}]"),
    "tails": (windows, f"likes: [{ODD}], sums: [{ODD}, {beside('x_inner')}]"),
    "choices": (guarded, f"likes: [compute_root], sums: [{beside('k')}]"),
    "choices in vectors": (guarded, f"likes: [{VECTORS}], sums: [{VECTORS}, {beside('k')}]"),
    "axis and reduction": (of_all, f"likes: [{{reorder: [y, x, i]}}], sums: [{beside('i')}]"),
    "inside another": (in_rows, f"likes: [{ROWS}], sums: [{ROWS}, {beside('k')}], out: [{{parallel: y}}]"),
    "parts inside parts": (
        of_all,
        f"likes: [{TASKS}], likes/tasks: [{{rfactor: {{axis: x, factor: 4}}}}, {{reorder: [y_outer, i]}}, {{parallel: y_outer}}], "
        "likes/tasks/partial: [{compute_at: {stage: likes/tasks, axis: y_outer}}, {reorder: [y_outer, y_inner, x_outer, i, x_inner]}], "
        f"sums: [{TASKS}], sums/tasks: [{{rfactor: {{axis: x, factor: 4}}}}, {{parallel: y_outer}}, {beside('y_outer', 'likes/tasks')}], "
        "sums/tasks/partial: [{compute_at: {stage: sums/tasks, axis: y_outer}}, {reorder: [y_outer, y_inner, x_outer, k, x_inner]}, "
        f"{beside('x_inner', 'likes/tasks/partial')}]",
    ),
}


EXACT = ("vectors", "choices", "parts inside parts")
"""Of which the same numbers as of two nests are asked, to the last bit."""


def plan_of(schedule: str) -> ExecutionPlan:
    return ExecutionPlan.from_yaml(f"numerics: {{contract: false}}\nfusion: {{rest: none}}\nschedule: {{{schedule}}}")


def model_of(graph: Any, schedule: str) -> Callable[..., Any]:
    compiled = driver.compile_graph(graph, plan_of(schedule), cache=False)
    return driver.assemble(compiled.manifest("companions"), compiled.library, {})


def kernels(program: Callable[..., Any], schedule: str) -> str:
    graph = fl.trace(program, None, inputs={"image": F(12, 48)})
    (lowered,) = lower_variants(graph, driver.prepared(plan_of(schedule), graph)[0], resolve_target(plan_of(schedule).target))
    return lowered.text()


@pytest.mark.parametrize("case", CASES)
def test_the_values_are_those_of_two_nests(case: str) -> None:
    program, schedule = CASES[case]
    apart = re.sub(r"(, )?\{compute_with: \{[^}]*\}\}", "", schedule).replace("[]", "[compute_root]")
    assert apart.count("[") == schedule.count("[") and "compute_with" not in apart
    graph = fl.trace(program, None, inputs={"image": F("h", "w")})
    model, other = model_of(graph, schedule), model_of(graph, apart) if case in EXACT else None
    for shape in ((1, 1), (5, 3), (7, 19), (9, 48)):
        image = np.random.default_rng(shape[1]).random(shape, np.float32)
        got, wanted = ([np.asarray(r) for r in (x if isinstance(x, tuple) else (x,))] for x in (model(image), graph.run(image)))
        for one, of in zip(got, wanted, strict=True):
            np.testing.assert_allclose(one, of, rtol=1e-5)
        if other is not None:
            assert all(np.array_equal(one, two) for one, two in zip(got, other(image), strict=True))


@pytest.mark.parametrize(("case", "exps"), [("by elements", 1), ("vectors", 3), ("choices", 1), ("axis and reduction", 1)])
def test_what_both_compute_is_computed_once(case: str, exps: int) -> None:
    """Once in each version of the loops: of vectors inside the image, and at each of its sides."""
    text = kernels(*CASES[case])
    assert text.count("exp(") == exps == len(re.findall(r"common.*\] = .*exp\(", text))


@pytest.mark.parametrize(
    ("program", "schedule", "line", "why"),
    [
        (windows, "likes: [compute_root], sums: [{compute_with: {stage: sums, axis: k}}]", "with", "names another stage"),
        (windows, "likes: [compute_root], sums: [{compute_with: {stage: nothing, axis: k}}]", "", "nothing"),
        (windows, f"likes: [compute_root], sums: [{beside('z')}]", "down to", 'no loop "z"'),
        (windows, f"likes: [{{parallel: y}}], sums: [{beside('k')}]", "sums: [{parallel: y}, ...]", "(parallel, 12) of likes is not"),
        (windows, f"likes: [{VECTORS}], sums: [{VECTORS}, {beside('x_inner')}]", "down to", "x_inner is vectorised"),
        (of_all, f"likes: [compute_root], sums: [{beside('i')}]", "down to", "is not reduction loop y"),
        (in_rows, f"likes: [{ROWS}], sums: [compute_root, {beside('k')}]", "together", "likes is computed at out's y, sums by itself"),
        (in_rows, "likes: [compute_root], out: [{compute_with: {stage: likes, axis: y}}]", "together", "out needs likes, all of it"),
        (
            in_rows,
            f"likes: [compute_root, {beside('y', 'sums')}], sums: [{beside('y')}]",
            "together",
            "likes itself runs together with another stage",
        ),
    ],
)
def test_it_is_refused(program: Callable[..., Any], schedule: str, line: str, why: str) -> None:
    with pytest.raises(PlanError) as refused:
        kernels(program, schedule)
    assert why in str(refused.value) and line in str(refused.value)


def stepping(image: Any) -> Any:
    total = fl.cumulative_sum(image, axis=1)
    return total, fl.stage(lambda y, x: image[y, x] * 2, name="twice")


def test_a_recurrence_and_a_gpu_have_loops_of_their_own() -> None:
    with pytest.raises(PlanError, match="part of a recurrence"):
        kernels(stepping, "cumulative_sum: [compute_root], twice: [{compute_with: {stage: cumulative_sum, axis: h}}]")
    graph = fl.trace(windows, None, inputs={"image": F(12, 48)})
    blocks = "{gpu_blocks: [y]}, {gpu_threads: [x]}"
    text = f"target: {{kind: cuda, arch: sm_80}}\nschedule: {{likes: [{blocks}], sums: [{blocks}, {beside('k')}]}}"
    plan = ExecutionPlan.from_yaml(text)
    with pytest.raises(PlanError, match="compute_with on a GPU"):
        lower_variants(graph, driver.prepared(plan, graph)[0], resolve_target(plan.target))


def smoothed(image: fl.f32[fl.Tensor, "h", "w"], near: fl.f32[fl.Tensor, 3], tone: fl.f32[fl.Tensor]) -> Any:
    """The gradient of a bilateral filter along rows, by everything: the default scheduler runs its sums together."""

    def error(image: Any, near: Any, tone: Any) -> Any:
        source = fl.edge(image)

        def weight(y: Any, x: Any, i: Any) -> Any:
            apart = source[y, x + i - 1] - image[y, x]
            return near[i] * fl.exp(-tone * apart * apart)

        total = fl.stage(lambda y, x: fl.sum(lambda i: weight(y, x, i)), name="total")
        blended = fl.stage(lambda y, x: fl.sum(lambda i: weight(y, x, i) * source[y, x + i - 1]), name="blended")
        return fl.mean(fl.square(blended / total), name="error")

    return dict(zip(("image", "near", "tone"), fl.grad(error, argnums=(0, 1, 2))(image, near, tone), strict=True))


def test_a_gradient_whose_sums_run_together_by_default() -> None:
    graph = fl.trace(smoothed)
    compiled = driver.compile_graph(graph, ExecutionPlan(), cache=False)
    chosen = compiled.variants[0].scheduled.chosen
    assert sum(isinstance(d, ComputeWith) for ds in chosen.values() for d in ds) == 7
    model = driver.assemble(compiled.manifest("companions"), compiled.library, {})
    for shape in ((1, 1), (2, 3), (5, 50), (33, 70)):
        rng = np.random.default_rng(shape[1])
        given = [rng.random(shape, np.float32), rng.random(3, np.float32) + np.float32(0.5), np.array(3, np.float32)]
        assert all(c.ok for c in compare(graph, "smoothed", given, model(*given)))
