"""The one place where TVM's names are spelt, since TVM moves them between releases."""
from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("TVM_NUM_THREADS", str(os.cpu_count() or 1))      # TVM's own default is half the cores

import tvm
import tvm_ffi
from tvm import s_tir, tirx
from tvm.target import Target

VERSION: str = tvm.__version__
FFI_VERSION: str = tvm_ffi.__version__
ForKind = tirx.ForKind

LOOP_KIND = {"serial": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "vectorized": ForKind.VECTORIZED, "unrolled": ForKind.UNROLLED}


def pipeline() -> Any:
    """The passes between our loop nests and code generation. Loops arrive final, so nothing here schedules."""
    s, t = s_tir.transform, tirx.transform

    @tvm.transform.module_pass(opt_level=0)
    def run(mod: Any, _context: Any) -> Any:
        passes = [
            s.UnifyThreadBinding(),
            t.StmtSimplify(),
            t.FlattenBuffer(),
            t.BF16ComputeLegalize(),
            t.VectorizeLoop(True),
            t.StorageRewrite(),
            t.UnrollLoop(),
            t.StmtSimplify(),
            t.RemoveNoOp(),
            t.CommonSubexprElim(),
            t.FP8ComputeLegalize(),
            t.VerifyMemory(),
            t.AnnotateEntryFunc(),
            s.ThreadSync("shared"),
            s.ThreadSync("shared.dyn"),
            s.ThreadSync("warp"),
            s.LowerThreadAllreduce(),
            s.MergeSharedMemoryAllocations(),
            t.SplitHostDevice(),
            t.MakePackedAPI(),
            t.FP8StorageLegalize(),
            t.BF16StorageLegalize(),
        ]
        return tvm.ir.transform.Sequential(passes)(mod)

    return run


def _registered() -> tuple[Any, Any, Any]:
    default = tirx.compilation_pipeline
    return pipeline(), default.finalize_host_passes, default.finalize_device_passes


tirx.compilation_pipeline.register_tir_pipeline("fluorite", _registered)


def compile_functions(functions: dict[str, Any], target: dict[str, Any], config: dict[str, Any] | None = None) -> Any:
    """A loadable module with these functions, by name."""
    with tvm.transform.PassContext(config=config or {}):
        return tvm.compile(tvm.IRModule(functions), target=Target(target), tir_pipeline="fluorite")


__all__ = ["FFI_VERSION", "LOOP_KIND", "VERSION", "ForKind", "Target", "compile_functions", "pipeline", "s_tir", "tirx", "tvm", "tvm_ffi"]
