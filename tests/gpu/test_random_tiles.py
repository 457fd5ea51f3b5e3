"""Tiles, threads, vectors and places drawn at random: refused in our words, or free of faults in lock step and equal to the oracle."""

from __future__ import annotations

import fluorite as fl
from fluorite.schedule import ExecutionPlan
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .gpu_algorithms import blur, layers, matmul, matrices
from .test_lockstep import Lockstep

SLOWLY = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
LEGAL_REFUSALS = {"P253", "P259"}


def faults(model: object, text: str, cases: list[tuple[object, ...]]) -> list[str]:
    try:
        kernels = Lockstep(model, ExecutionPlan.from_yaml(text))  # type: ignore[arg-type]
    except fl.PlanError as refused:
        assert {p.code for p in refused.problems} <= LEGAL_REFUSALS, refused.text()
        return []
    return kernels.run(cases)


@st.composite
def stencil_plans(draw: st.DrawFn) -> str:
    ty, tx, each = draw(st.sampled_from([1, 2, 3, 8])), draw(st.sampled_from([1, 4, 7, 16, 32])), draw(st.sampled_from([1, 2, 3]))
    rows = draw(
        st.sampled_from(
            [
                "[compute_inline]",
                "[{compute_at: {stage: blur/blur, axis: x_outer}}, {store_in: shared}, fetch]",
                "[{compute_at: {stage: blur/blur, axis: x_outer}}, {store_in: shared}, {fetch: {vector: 2}}]",
                "[{compute_at: {stage: blur/blur, axis: x_outer}}, {store_in: shared}, {stage_in: {read: image, into: tile}}, fetch]",
                "[{compute_at: {stage: blur/blur, axis: yy}}, {store_in: registers}]",
                "[{compute_at: {stage: blur/blur, axis: INNERMOST}}, {unroll: y}]",
                "[{compute_at: {stage: blur/blur, axis: yy}}, {store_in: shared}, fetch]",
            ]
        )
    )
    order, innermost = draw(st.sampled_from([("ty, x_inner, yy", "x_inner"), ("yy, ty, x_inner", "x_inner"), ("x_inner, yy, ty", "ty")]))
    rows = rows.replace("INNERMOST", innermost)
    tile = "\n  tile: [{compute_at: {stage: blur/blur, axis: x_outer}}, {store_in: shared}, fetch]" if "stage_in" in rows else ""
    last = draw(st.sampled_from(["", "\n    - unroll: yy"]))
    return f"""schedule:
  blur/blur:
    - tile: {{y: {ty * each}, x: {tx}}}
    - split: {{axis: y_inner, factor: {ty}, into: [yy, ty]}}
    - reorder: [y_outer, x_outer, {order}]
    - gpu_blocks: [y_outer, x_outer]
    - gpu_threads: [ty, x_inner]{last}
  rows: {rows}{tile}
"""


@given(stencil_plans(), st.integers(1, 20), st.integers(1, 40))
@SLOWLY
def test_stencils(text: str, h: int, w: int) -> None:
    assert faults(blur, text, matrices((h, w))) == []


@st.composite
def product_plans(draw: st.DrawFn) -> str:
    ti, tj, ii, jj = (draw(st.sampled_from(n)) for n in ([1, 2, 4], [2, 3, 8], [1, 2, 3], [1, 2, 4]))
    step, vector = draw(st.sampled_from([1, 3, 4, 8])), draw(st.sampled_from([1, 2, 4]))
    staged = draw(st.sampled_from(["x", "w", "both", "none"]))
    stages = "".join(f"\n    - stage_in: {{read: {t}, into: {t}_tile}}" for t in "xw" if staged in (t, "both"))
    tiles = "".join(
        f"\n  {t}_tile: [{{compute_at: {{stage: acc, axis: k_outer}}}}, {{store_in: shared}}, {{fetch: {{vector: {vector}}}}}]"
        for t in "xw"
        if staged in (t, "both")
    )
    vectorised = "\n    - vectorize: jj" if jj in (2, 4) and draw(st.booleans()) else ""
    unrolled = "\n    - unroll: i\n    - unroll: j" if draw(st.booleans()) else ""
    return f"""schedule:
  matmul:
    - cache: acc
    - tile: {{i: {ti * ii}, j: {tj * jj}}}
    - split: {{axis: i_inner, factor: {ii}, into: [ti, ii]}}
    - split: {{axis: j_inner, factor: {jj}, into: [tj, jj]}}
    - reorder: [i_outer, j_outer, ti, tj, ii, jj]
    - gpu_blocks: [i_outer, j_outer]
    - gpu_threads: [ti, tj]{vectorised}
  acc:
    - compute_at: {{stage: matmul, axis: tj}}
    - store_in: registers{stages}
    - split: {{axis: k, factor: {step}}}
    - reorder: [k_outer, k_inner, i, j]{unrolled}{tiles}
"""


@given(product_plans(), st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
@SLOWLY
def test_products(text: str, n: int, k: int, m: int) -> None:
    assert faults(matmul, text, [case[:2] for case in layers((n, k, m))]) == []
