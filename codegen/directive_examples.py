"""A small program for every directive, and its kernels before and after: what `fluorite plan directives NAME` prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fluorite.algo.ops.casts import cast
from fluorite.algo.ops.functions import exp
from fluorite.algo.ops.reductions import argmax
from fluorite.algo.ops.reductions import sum as total
from fluorite.algo.ops.views import edge
from fluorite.algo.program import trace
from fluorite.algo.trace import stage
from fluorite.algo.types import f16, f32, i8, u8
from fluorite.schedule import ExecutionPlan

from .driver import lower_variants, prepared
from .target import resolve_target


def scaled(a: Any) -> Any:
    return stage(lambda x: a[x] * 2, name="scaled")


def image_sums(image: Any) -> Any:
    return stage(lambda y, x: image[y, x] + 1, name="out")


def blur(image: Any) -> Any:
    rows = edge(stage(lambda y, x: image[y, x] * 2, name="rows"))
    return stage(lambda y, x: rows[y - 1, x] + rows[y, x] + rows[y + 1, x], name="blur")


def transposed(image: Any) -> Any:
    rows = stage(lambda y, x: image[y, x] * 2, name="rows")
    return stage(lambda x, y: rows[y, x] + 1, name="out")


def product(a: Any, w: Any) -> Any:
    return stage(lambda i, j: total(lambda k: a[i, k] * w[k, j]), name="product")


def weighted(a: Any, w: Any) -> Any:
    likes = stage(lambda i: total(lambda k: exp(a[i, k])), name="likes")
    sums = stage(lambda i: total(lambda k: exp(a[i, k]) * w[k]), name="sums")
    return likes, sums


def counted(a: Any, w: Any) -> Any:
    return stage(lambda i, j: total(lambda k: cast(a[i, k], "int32") * cast(w[k, j], "int32")), name="product")


def halved(a: Any, w: Any) -> Any:
    return stage(lambda i, j: total(lambda k: cast(a[i, k], "float32") * cast(w[k, j], "float32")), name="product")


def largest(a: Any) -> Any:
    return stage(lambda: argmax(lambda k: a[k]), name="at")


def summed(a: Any) -> Any:
    return stage(lambda: total(lambda k: a[k]), name="s")


@dataclass(frozen=True)
class Example:
    """A program with the inputs that it is shown for, and its schedule without and with the directive."""

    program: Callable[..., Any]
    inputs: dict[str, Any]
    before: str
    after: str
    target: str = "{kind: llvm, cpu: skylake-avx512}"


_LINE, _IMAGE = {"a": f32(64)}, {"image": f32(32, 64)}
_MATRICES = {"a": f32(16, 8), "w": f32(8, 32)}
_GPU = "{kind: cuda, arch: sm_80}"
_STRIPS = "blur: [{split: {axis: y, factor: 8}}]"
_BLOCKS = "blur: [{tile: {y: 4, x: 32}}, {gpu_blocks: [y_outer, x_outer]}, {gpu_threads: [y_inner, x_inner]}]"
_AT = "{compute_at: {stage: blur, axis: y_inner}}"
_KEPT = "{store_at: {stage: blur, axis: y_outer}}"
_BYTES = "pack: {tensor: w, sizes: {j: 16, k: 4}, order: [j, k], into: w_packed}"
_DOTS = (
    f"{{{_BYTES}}}, {{split: {{axis: j, factor: 16}}}}, {{split: {{axis: k, factor: 4}}}}, "
    "{reorder: [i, j_outer, k_outer, j_inner, k_inner]}"
)
_BY_WARPS = (
    "{split: {axis: i, factor: 16}}, {reorder: [i_outer, jb, jw, i_inner, jt, k]}, {gpu_blocks: [i_outer, jb]}, "
    "{gpu_warps: jw}, {tensorize: i_inner}"
)
_TILED = (
    "{stage_in: {read: w, into: w_tile}}, {split: {axis: k, factor: 2}}, {gpu_blocks: [i]}, {gpu_threads: [j]}, "
    "{reorder: [i, j, k_outer, k_inner]}"
)
_STRIDED = (
    "{split: {axis: j, factor: 16, into: [jv, jt]}}, {reorder: [i, jv, jt, k]}, {gpu_blocks: [i]}, {gpu_threads: [jt]}"
)
_SHARES = "{split: {axis: k, factor: 4}}"
_COPIED = "w_tile: [{compute_at: {stage: product, axis: k_outer}}, {store_in: shared}, fetch]"
_AHEAD = "{software_pipeline: {axis: k_outer, stages: 2}}"

EXAMPLES: dict[str, Example] = {
    "split": Example(scaled, _LINE, "", "scaled: [{split: {axis: x, factor: 8}}]"),
    "tile": Example(image_sums, _IMAGE, "", "out: [{tile: {y: 8, x: 16}}]"),
    "reorder": Example(product, _MATRICES, "", "product: [{reorder: [i, k, j]}]"),
    "fuse": Example(image_sums, _IMAGE, "", "out: [{fuse: [y, x]}]"),
    "parallel": Example(image_sums, _IMAGE, "", "out: [{parallel: y}]"),
    "vectorize": Example(scaled, _LINE, "", "scaled: [{vectorize: {axis: x, width: 8}}]"),
    "unroll": Example(scaled, _LINE, "", "scaled: [{unroll: {axis: x, factor: 4}}]"),
    "compute_root": Example(blur, _IMAGE, "rows: [{compute_at: {stage: blur, axis: y}}]", "rows: [compute_root]"),
    "compute_at": Example(blur, _IMAGE, "rows: [compute_root]", "rows: [{compute_at: {stage: blur, axis: y}}]"),
    "compute_with": Example(
        weighted,
        {"a": f32(16, 8), "w": f32(8)},
        "likes: [compute_root], sums: [compute_root]",
        "likes: [compute_root], sums: [{compute_with: {stage: likes, axis: k}}]",
    ),
    "compute_inline": Example(blur, _IMAGE, "rows: [compute_root]", "rows: [compute_inline]"),
    "store_at": Example(blur, _IMAGE, f"rows: [{_AT}], {_STRIPS}", f"rows: [{_AT}, {_KEPT}], {_STRIPS}"),
    "fold": Example(
        blur, _IMAGE, f"rows: [{_AT}, {_KEPT}], {_STRIPS}", f"rows: [{_AT}, {_KEPT}, {{fold: {{axis: y, extent: 4}}}}], {_STRIPS}"
    ),
    "store_in": Example(
        blur,
        _IMAGE,
        "rows: [{compute_at: {stage: blur, axis: x}}]",
        "rows: [{compute_at: {stage: blur, axis: x}}, {store_in: registers}]",
    ),
    "pad": Example(
        blur, {"image": f32(32, 60)}, "rows: [{vectorize: {axis: x, width: 8}}]", "rows: [{pad: {x: 8}}, {vectorize: {axis: x, width: 8}}]"
    ),
    "layout": Example(transposed, _IMAGE, "rows: [compute_root]", "rows: [{layout: [x, y]}]"),
    "align": Example(
        blur,
        {"image": f32(32, 60)},
        "rows: [{compute_at: {stage: blur, axis: y}}]",
        "rows: [{compute_at: {stage: blur, axis: y}}, {align: {axis: x, bytes: 64}}]",
    ),
    "stream": Example(image_sums, _IMAGE, "out: [{vectorize: {axis: x, width: 16}}]", "out: [{vectorize: {axis: x, width: 16}}, stream]"),
    "prefetch": Example(image_sums, _IMAGE, "", "out: [{prefetch: {read: image, axis: y, ahead: 2}}]"),
    "pack": Example(product, _MATRICES, "", "product: [{pack: {tensor: w, sizes: {j: 8}, order: [j, k], into: w_packed}}]"),
    "cache": Example(
        product,
        _MATRICES,
        "product: [{split: {axis: i, factor: 4}}]",
        "product: [{cache: acc}, {split: {axis: i, factor: 4}}], product/acc: [{compute_at: {stage: product, axis: i_outer}}]",
    ),
    "stage_in": Example(
        product,
        _MATRICES,
        "product: [{split: {axis: j, factor: 8}}, {reorder: [j_outer, i, j_inner, k]}]",
        "product: [{stage_in: {read: w, into: columns}}, {split: {axis: j, factor: 8}}, {reorder: [j_outer, i, j_inner, k]}], "
        "columns: [{compute_at: {stage: product, axis: j_outer}}]",
    ),
    "tensorize": Example(
        counted,
        {"a": u8(16, 32), "w": i8(32, 32)},
        f"product: [{_DOTS}]",
        f"product: [{_DOTS}, {{tensorize: {{axis: j_inner, intrinsic: avx512_vnni}}}}]",
        "{kind: llvm, cpu: cascadelake}",
    ),
    "rfactor": Example(summed, _LINE, "", "s: [{rfactor: {axis: k, factor: 8}}]"),
    "find_best": Example(largest, _LINE, "", "at: [find_best]"),
    "gpu_blocks": Example(image_sums, _IMAGE, "out: [{gpu_blocks: [y]}]", "out: [{gpu_blocks: [y, x]}]", _GPU),
    "gpu_threads": Example(image_sums, _IMAGE, "out: [{gpu_blocks: [y]}]", "out: [{gpu_blocks: [y]}, {gpu_threads: [x]}]", _GPU),
    "gpu_vthreads": Example(
        product,
        _MATRICES,
        f"product: [{_STRIDED}, {{unroll: jv}}]",
        f"product: [{_STRIDED}, {{gpu_vthreads: [jv]}}]",
        _GPU,
    ),
    "gpu_lanes": Example(summed, _LINE, f"s: [{_SHARES}, {{gpu_threads: [k_inner]}}]", f"s: [{_SHARES}, {{gpu_lanes: k_inner}}]", _GPU),
    "software_pipeline": Example(product, _MATRICES, f"product: [{_TILED}], {_COPIED}", f"product: [{_TILED}, {_AHEAD}], {_COPIED}", _GPU),
    "gpu_warps": Example(
        halved,
        {"a": f16(32, 16), "w": f16(16, 32)},
        f"product: [{{split: {{axis: j, factors: [~, 1, 16], into: [jb, jw, jt]}}}}, {_BY_WARPS}]",
        f"product: [{{split: {{axis: j, factors: [~, 2, 16], into: [jb, jw, jt]}}}}, {_BY_WARPS}]",
        _GPU,
    ),
    "fetch": Example(
        blur,
        _IMAGE,
        f"{_BLOCKS}, rows: [compute_inline]",
        f"{_BLOCKS}, rows: [{{compute_at: {{stage: blur, axis: x_outer}}}}, {{store_in: shared}}, fetch]",
        _GPU,
    ),
}


def kernels(e: Example, schedule: str) -> str:
    """The kernels of the program under a schedule; a stage that it does not name is left as it is written, in loops of its own."""
    graph = trace(e.program, None, inputs=e.inputs)
    plain = {} if e.target == _GPU else {s.name: "[compute_root]" for s in graph.stages if f"{s.name}:" not in schedule}
    entries = ", ".join([*([schedule] if schedule else []), *(f"{name}: {do}" for name, do in plain.items())])
    rest = "numerics: {allow: precision}\nfusion: {rest: none}"
    plan, _ = prepared(ExecutionPlan.from_yaml(f"target: {e.target}\n{rest}\nschedule: {{{entries}}}"), graph)
    (lowered,) = lower_variants(graph, plan, resolve_target(plan.target))
    return lowered.text()


def example_text(key: str) -> str:
    """The kernels of a directive's example, before and after."""
    e = EXAMPLES[key]
    return (
        f"before   {e.before or 'no directives'}\n{_indented(kernels(e, e.before))}\n\nafter    {e.after}\n{_indented(kernels(e, e.after))}"
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())
