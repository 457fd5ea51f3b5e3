"""`fluorite build` of a GPU plan: a folder of source, cubins and launch facts."""

from __future__ import annotations

import json
from pathlib import Path

import fluorite as fl
import pytest
from fluorite.codegen.driver import build, compile_graph
from fluorite.codegen.gpu.building import nvcc
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

from .gpu_algorithms import HAND_MADE, scaled

OPENCL = ExecutionPlan(target=Target(kind="opencl"))


def test_a_folder_for_opencl(tmp_path: Path) -> None:
    made = build(scaled, OPENCL, tmp_path / "kernels")
    assert sorted(p.name for p in made.iterdir()) == ["kernels.cl", "kernels.json"]
    facts = json.loads((made / "kernels.json").read_text())
    (kernel,) = facts["kernels"]
    assert kernel["threads"] == {"x": 256} and kernel["blocks"] == {"x": "(columns*rows+255)//256"}
    assert [a["name"] for a in kernel["arguments"]] == ["x", "y", "add"] and kernel["symbols"] == ["rows", "columns"]
    assert f"{kernel['name']}_kernel" in (made / "kernels.cl").read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["kernels"]


def test_a_folder_that_fluorite_wrote_is_replaced_and_no_other(tmp_path: Path) -> None:
    build(scaled, OPENCL, tmp_path / "mine")
    build(scaled, OPENCL, tmp_path / "mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(fl.BuildError, match="fluorite did not write it"):
        build(scaled, OPENCL, tmp_path / "other")
    assert (tmp_path / "other" / "letter.txt").read_text() == "dear"
    build(scaled, OPENCL, tmp_path / "other", force=True)
    assert not (tmp_path / "other" / "letter.txt").exists()


def test_a_file_in_the_way_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(fl.BuildError, match="is no folder"):
        build(scaled, OPENCL, tmp_path / "file")
    with pytest.raises(fl.BuildError, match="cannot be written"):
        build(scaled, OPENCL, tmp_path / "file" / "below")


def test_running_on_a_gpu_is_refused() -> None:
    with pytest.raises(fl.BuildError, match="models run on the CPU so far"):
        compile_graph(fl.trace(scaled), OPENCL)


@pytest.mark.slow
@pytest.mark.skipif(nvcc() is None, reason="needs nvcc")
def test_a_folder_for_cuda(tmp_path: Path) -> None:
    model, plan, _ = HAND_MADE["softmax"]
    made = build(model, plan, tmp_path / "softmax_gpu")
    assert sorted(p.name for p in made.iterdir()) == ["kernels.cu", "kernels.json", "sm_80.cubin", "sm_90.cubin"]
    facts = json.loads((made / "kernels.json").read_text())
    assert [(f["kernel"], f["arch"]) for f in facts["ptxas"]] == [("softmax_0_softmax", "sm_80"), ("softmax_0_softmax", "sm_90")]
