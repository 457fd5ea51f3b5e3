"""WHAT is computed: the language, its graph, its operators and its meaning."""

from __future__ import annotations

from .autodiff import custom_vjp, grad, gradients, jvp, stop_gradient, value_and_grad, vjp, vmap
from .branching import cond, switch
from .building import function, scope
from .combining import reduce
from .dtypes import DTYPES, canonical
from .errors import AlgorithmError, ArtifactError, BuildError, FluoriteError, InternalError, PlanError, Problem, RunError
from .expr import Expr
from .extent import Dim, Extent
from .externs import extern
from .graph import Graph, Method
from .held import Parameter, param, state
from .looping import while_loop
from .modules import Module, Program
from .program import method
from .ragged import Ragged
from .recurring import recurrence
from .scanning import scan
from .stages import Leaf, Reduction, Stage
from .tensor import Tensor
from .trace import stage
from .type_queries import can_cast, finfo, iinfo, isdtype, result_type
from .types import DType, Spec, bf16, boolean, c64, c128, f8e4m3, f8e5m2, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from .unbuilt import UNBUILT, Unbuilt

__all__ = [
    "DTYPES", "UNBUILT", "AlgorithmError", "ArtifactError", "BuildError", "DType", "Dim", "Expr", "Extent", "FluoriteError", "Graph",
    "InternalError", "Leaf", "Method", "Module", "Parameter", "PlanError", "Problem", "Program", "Ragged", "Reduction", "RunError", "Spec",
    "Stage", "Tensor", "Unbuilt", "bf16", "boolean", "c64", "c128", "can_cast", "canonical", "cond", "custom_vjp", "extern", "f8e4m3",
    "f8e5m2", "f16", "f32", "f64", "finfo", "function", "grad", "gradients", "i8", "i16", "i32", "i64", "iinfo", "isdtype", "jvp", "method",
    "param", "recurrence", "reduce", "result_type", "scan", "scope", "stage", "state", "stop_gradient", "switch", "u8", "u16", "u32", "u64",
    "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip
