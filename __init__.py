"""fluorite: an algorithm, a plan, a tuned module.

    import fluorite as fl

    def blur(image: fl.f32[fl.Tensor, "h", "w"]):
        image = fl.edge(image)
        return fl.stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3)

    model = fl.compile(blur)

Everything here is found when it is first used, so that importing fluorite costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes longer to import than all else here: Ctrl-C should not find a program at that
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_LANGUAGE = (
    "AlgorithmError", "ArtifactError", "BuildError", "DType", "Expr", "FluoriteError", "Graph", "InternalError", "Module", "Parameter",
    "PlanError", "Problem", "Program", "Ragged", "RunError", "Spec", "Stage", "Tensor", "bf16", "boolean", "c128", "c64", "can_cast",
    "cond", "custom_vjp", "extern", "f16", "f32", "f64", "f8e4m3", "f8e5m2", "finfo", "function", "grad", "gradients", "i16", "i32",
    "i64", "i8", "iinfo", "isdtype", "jvp", "method", "param", "recurrence", "reduce", "result_type", "scan", "scope", "stage", "state",
    "stop_gradient", "switch", "u16", "u32", "u64", "u8", "value_and_grad", "vjp", "vmap", "while_loop",
)  # fmt: skip
_COMPILER = ("Model", "Report", "check", "compile", "load", "tune")
_HOMES = {
    **dict.fromkeys(_LANGUAGE, "fluorite.algo"),
    **dict.fromkeys(_COMPILER, "fluorite.codegen"),
    **dict.fromkeys(("e", "inf", "nan", "newaxis", "pi"), "fluorite.algo.constants"),
    "ExecutionPlan": "fluorite.schedule",
    "broadcast_shapes": "fluorite.algo.ops.shapes",
    "extent": "fluorite.algo.counts",
    "trace": "fluorite.algo.program",
}
_MODULES = {
    **{name: f"fluorite.algo.{name}" for name in ("data", "init", "linalg", "nn", "optim")},
    "random": "fluorite.algo.ops.random",
}


def _names() -> list[str]:
    from fluorite.algo import ops
    from fluorite.algo.unbuilt import UNBUILT

    return [*_HOMES, *_MODULES, *ops.__all__, *UNBUILT]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "__all__":
        return sorted({*_names()} - {*_COMPILER})  # `import *` brings the language: compile would hide the built-in, and loads TVM
    if name.startswith("_"):
        raise AttributeError(f"module 'fluorite' has no attribute {name!r}")
    found: Any
    if name in _HOMES:
        found = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        found = import_module(_MODULES[name])
    else:
        ops, unbuilt = import_module("fluorite.algo.ops"), import_module("fluorite.algo.unbuilt")
        if name in ops.__all__:
            found = getattr(ops, name)
        elif name in unbuilt.UNBUILT:
            found = unbuilt.Unbuilt(name)
        else:
            raise AttributeError(f"module 'fluorite' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_names()})


if TYPE_CHECKING:
    # a type checker reads fl.f32[fl.Tensor, "n", 13] as an annotated Tensor
    from typing import Annotated as bf16
    from typing import Annotated as boolean
    from typing import Annotated as c64
    from typing import Annotated as c128
    from typing import Annotated as f8e4m3
    from typing import Annotated as f8e5m2
    from typing import Annotated as f16
    from typing import Annotated as f32
    from typing import Annotated as f64
    from typing import Annotated as i8
    from typing import Annotated as i16
    from typing import Annotated as i32
    from typing import Annotated as i64
    from typing import Annotated as u8
    from typing import Annotated as u16
    from typing import Annotated as u32
    from typing import Annotated as u64

    from fluorite.algo import (
        AlgorithmError,
        ArtifactError,
        BuildError,
        DType,
        Expr,
        FluoriteError,
        Graph,
        InternalError,
        Module,
        Parameter,
        PlanError,
        Problem,
        Program,
        Ragged,
        RunError,
        Spec,
        Stage,
        Tensor,
        can_cast,
        cond,
        custom_vjp,
        data,
        extern,
        finfo,
        function,
        grad,
        gradients,
        iinfo,
        init,
        isdtype,
        jvp,
        linalg,
        method,
        nn,
        ops,
        optim,
        param,
        recurrence,
        reduce,
        result_type,
        scan,
        scope,
        stage,
        state,
        stop_gradient,
        switch,
        value_and_grad,
        vjp,
        vmap,
        while_loop,
    )  # fmt: skip
    from fluorite.algo.constants import e, inf, nan, newaxis, pi
    from fluorite.algo.counts import extent
    from fluorite.algo.ops import *
    from fluorite.algo.ops import random
    from fluorite.algo.ops.shapes import broadcast_shapes
    from fluorite.algo.program import trace
    from fluorite.schedule import ExecutionPlan

    __all__: list[str] = [
        "AlgorithmError",
        "ArtifactError",
        "BuildError",
        "DType",
        "ExecutionPlan",
        "Expr",
        "FluoriteError",
        "Graph",
        "InternalError",
        "Module",
        "Parameter",
        "PlanError",
        "Problem",
        "Program",
        "Ragged",
        "RunError",
        "Spec",
        "Stage",
        "Tensor",
        "bf16",
        "boolean",
        "broadcast_shapes",
        "c64",
        "c128",
        "can_cast",
        "cond",
        "custom_vjp",
        "data",
        "e",
        "extent",
        "extern",
        "f8e4m3",
        "f8e5m2",
        "f16",
        "f32",
        "f64",
        "finfo",
        "function",
        "grad",
        "gradients",
        "i8",
        "i16",
        "i32",
        "i64",
        "iinfo",
        "inf",
        "init",
        "isdtype",
        "jvp",
        "linalg",
        "method",
        "nan",
        "newaxis",
        "nn",
        "optim",
        "param",
        "pi",
        "random",
        "recurrence",
        "reduce",
        "result_type",
        "scan",
        "scope",
        "stage",
        "state",
        "stop_gradient",
        "switch",
        "trace",
        "u8",
        "u16",
        "u32",
        "u64",
        "value_and_grad",
        "vjp",
        "vmap",
        "while_loop",
    ]  # fmt: skip
    __all__ += ops.__all__
