"""`explain`: counts that can be done by hand, and who decided what."""

from __future__ import annotations

import json

import fluorite as fl
import pytest
from fluorite.algo.errors import RunError
from fluorite.algo.extent import evaluate
from fluorite.codegen.explaining import explain
from fluorite.codegen.roofline import Roofline
from fluorite.schedule import ExecutionPlan

MACHINE = Roofline(100e9, 10e9, 0.0)


def blur(image: fl.f32[fl.Tensor, "h", "w"]) -> object:
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3, name="rows"))
    return fl.stage(lambda y, x: (rows[y - 1, x] + rows[y, x] + rows[y + 1, x]) / 3, name="blur")


APART = "schedule: {rows: [compute_root, {parallel: y}], blur: [{parallel: y}, {vectorize: {axis: x, width: 8}}]}\nfusion: {rest: none}"
TOGETHER = "schedule: {rows: [{compute_at: {stage: blur, axis: y}}], blur: [{parallel: y}]}"


def test_counts_of_separate_and_fused_kernels() -> None:
    apart = explain(blur, ExecutionPlan.from_yaml(APART), {"h": 100, "w": 200}, machine=MACHINE)
    assert [k.stages for k in apart.kernels] == [("blur/rows",), ("blur/blur",)]
    for k in apart.kernels:
        assert (k.flops, k.bytes_read, k.bytes_written) == (3 * 20000, 80000, 80000)
        assert k.seconds == pytest.approx(160000 / 10e9) and k.bound == "memory" and k.parallel == ("y",)
    assert apart.kernels[1].vectors == (8,)
    fused = explain(blur, ExecutionPlan.from_yaml(TOGETHER), {"h": 100, "w": 200}, machine=MACHINE)
    (only,) = fused.kernels
    assert (only.flops, only.bytes_read, only.bytes_written) == (6 * 20000, 80000, 80000)
    assert fused.memory["blur"] == 80000 + fused.peaks["blur"].workspace and apart.memory["blur"] == 160000
    assert fused.seconds["blur"] == pytest.approx(apart.seconds["blur"] / 2)


def likely(image: fl.f32[fl.Tensor, "h", "w"]) -> object:
    image = fl.edge(image)
    likes = fl.stage(lambda y, x: fl.sum(lambda k: fl.exp(image[y, x + k] - image[y, x]), over={"k": 4}), name="likes")
    return likes, fl.stage(lambda y, x: fl.sum(lambda k: fl.exp(image[y, x + k] - image[y, x]) * image[y, x], over={"k": 4}), name="sums")


def test_what_two_stages_share_counts_once() -> None:
    apart, once = (
        explain(likely, ExecutionPlan.from_yaml(f"schedule: {{likes: [compute_root], sums: [{do}]}}"), {"h": 10, "w": 20}, machine=MACHINE)
        for do in ("compute_root", "{compute_with: {stage: likes, axis: k}}")
    )
    assert [k.flops for k in apart.kernels] == [800 * 12, 800 * 13] and [k.flops for k in once.kernels] == [800 * 14]


def corner(image: fl.f32[fl.Tensor, "h", "w"]) -> object:
    h, w = image.shape
    return fl.stage(lambda i, j: image[h - 1 - i, w - 1 - j], name="corner", extents={"i": 2, "j": 3})


def test_with_extents_reads_are_of_what_is_read() -> None:
    """That h - 2 lies inside the image is known of the size alone."""
    assert explain(corner, None, {"h": 100, "w": 200}, machine=MACHINE).kernels[0].bytes_read == 24


def test_without_extents_counts_are_formulas() -> None:
    found = explain(blur, ExecutionPlan.from_yaml(TOGETHER), machine=MACHINE)
    assert evaluate(found.kernels[0].flops, {"h": 10, "w": 20}) == 6 * 200
    assert found.missing == ("h", "w") and not found.seconds and not found.memory
    assert "--extents h=1024,w=1024" in found.text()
    assert json.loads(json.dumps(found.as_dict()))["kernels"][0]["seconds"] is None


def test_who_decided() -> None:
    found = explain(blur, ExecutionPlan.from_yaml("schedule: {/blur/blur: [{parallel: y}]}"), {"h": 8, "w": 8}, machine=MACHINE)
    assert found.decided_by == {"blur/rows": "default", "blur/blur": "plan"}
    assert found.directives["blur/blur"] == ("{parallel: y}",)
    assert "parallel: y" in found.text()


def test_packing_of_weights_is_seen_as_a_copy_made_once() -> None:
    class Net(fl.Program):
        def __init__(self) -> None:
            self.layer = fl.nn.Linear(64, 32)

        @fl.method
        def infer(self, x: fl.f32[fl.Tensor, "n", 64]) -> object:
            return self.layer(x)

    text = "schedule: {/infer/layer/matmul: [{pack: {tensor: w, sizes: {j: 8}, order: [j, k], into: packed}}]}"
    found = explain(Net(), ExecutionPlan.from_yaml(text), {"n": 4}, machine=MACHINE)
    (packing,) = [k for k in found.kernels if k.copies]
    assert packing.once and packing.bytes_read == packing.bytes_written == 64 * 32 * 4 and packing.flops == 0
    assert "only moves data" in found.text()
    assert sum(k.flops for k in found.kernels) == 4 * 32 * (2 * 64 + 1)  # type: ignore[misc]


def test_buckets_explain_the_variant_that_runs() -> None:
    plan = ExecutionPlan.from_yaml("extents: {h: {buckets: [16]}, w: {buckets: [16]}}")
    assert explain(blur, plan, {"h": 16, "w": 16}, machine=MACHINE).kernels[0].name.endswith("_v0")
    assert not explain(blur, plan, {"h": 17, "w": 16}, machine=MACHINE).kernels[0].name.endswith("_v0")


def test_unknown_extents_are_refused() -> None:
    with pytest.raises(RunError, match="blur has h, w"):
        explain(blur, None, {"z": 3}, machine=MACHINE)
