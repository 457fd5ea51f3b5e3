"""fluorite: an algorithm, a plan, a tuned module.

    import fluorite as fl

    def blur(image: fl.f32[fl.Tensor, "h", "w"]):
        image = fl.edge(image)
        return fl.stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3)

    model = fl.compile(blur)

Everything here is found when it is first used, so that importing fluorite costs nothing.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_EXPORTS = {
    "fluorite.algo": (
        "AlgorithmError", "ArtifactError", "BuildError", "DType", "Expr", "FluoriteError", "Graph", "InternalError", "Module",
        "Parameter", "PlanError", "Problem", "Program", "RunError", "Spec", "Stage", "Tensor", "function", "method", "param", "scope",
        "stage",
    ),
    "fluorite.algo.ops": (
        "abs", "acos", "add", "all", "any", "arange", "argmax", "argmin", "asarray", "asin", "atan", "atan2", "attention", "avg_pool2d",
        "bitwise_and", "bitwise_or", "bitwise_xor", "broadcast_to", "cast", "ceil", "clamp", "concatenate", "constant", "conv2d", "cos",
        "cosh", "divide", "dot", "edge", "elu", "embedding", "equal", "erf", "exp", "exp2", "expand_dims", "expm1", "eye", "flatten",
        "flip", "floor", "floor_divide", "full", "full_like", "gelu", "global_avg_pool2d", "global_max_pool2d", "greater",
        "greater_equal", "invert", "isfinite", "isinf", "isnan", "layer_norm", "leaky_relu", "left_shift", "less", "less_equal",
        "linear", "log", "log10", "log1p", "log2", "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor",
        "logsumexp", "matmul", "max", "max_pool2d", "maximum", "mean", "min", "minimum", "mod", "moveaxis", "multiply", "negative",
        "not_equal", "one_hot", "ones", "ones_like", "outer", "pad", "pow", "prod", "reciprocal", "reflect", "relu", "repeat",
        "reshape", "right_shift", "rms_norm", "round", "rsqrt", "saturate", "sigmoid", "sign", "silu", "sin", "sinh", "softmax",
        "softplus", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "take_along_axis",
        "tan", "tanh", "tile", "transpose", "tril", "triu", "trunc", "var", "where", "wrap", "zeros", "zeros_like",
    ),
    "fluorite.algo.program": (
        "trace",
    ),
    "fluorite.schedule": (
        "ExecutionPlan",
    ),
    "fluorite.codegen": (
        "Model", "Report", "check", "compile", "load", "tune",
    ),
    "fluorite.algo.types": (
        "boolean", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
    ),
}
_MODULES = {"init": "fluorite.algo.init", "nn": "fluorite.algo.nn"}
_RENAMED = {"extent": ("fluorite.algo.extent", "symbol")}
_UNBUILT = (
    "extern", "reduce", "cond", "switch", "while_loop", "scan", "scatter", "sort", "argsort", "top_k", "einsum", "rearrange",
    "stop_gradient", "grad", "value_and_grad", "vjp", "jvp", "vmap", "custom_vjp", "cross_entropy", "binary_cross_entropy_with_logits",
    "state", "Ragged", "random", "optim", "data", "dist", "from_onnx", "from_torch",
)
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}
__all__ = [name for name in (*_HOME, *_MODULES, *_RENAMED, *_UNBUILT) if name != "compile"]  # noqa: PLE0605  the built-in keeps its name under *


def __getattr__(name: str) -> Any:
    from importlib import import_module

    found: Any
    if name in _HOME:
        found = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        found = import_module(_MODULES[name])
    elif name in _RENAMED:
        module, inner = _RENAMED[name]
        found = getattr(import_module(module), inner)
    elif name in _UNBUILT:
        found = import_module("fluorite.algo.unbuilt").Unbuilt(name)
    else:
        raise AttributeError(f"module 'fluorite' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES, *_RENAMED, *_UNBUILT})


if TYPE_CHECKING:
    # a type checker reads fl.f32[fl.Tensor, "n", 13] as an annotated Tensor
    from typing import Annotated as boolean
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
        AlgorithmError as AlgorithmError, ArtifactError as ArtifactError, BuildError as BuildError, DType as DType, Expr as Expr,
        FluoriteError as FluoriteError, Graph as Graph, InternalError as InternalError, Module as Module, Parameter as Parameter,
        PlanError as PlanError, Problem as Problem, Program as Program, RunError as RunError, Spec as Spec, Stage as Stage,
        Tensor as Tensor, function as function, method as method, param as param, scope as scope, stage as stage,
    )
    from fluorite.algo.ops import (
        abs as abs, acos as acos, add as add, all as all, any as any, arange as arange, argmax as argmax, argmin as argmin,
        asarray as asarray, asin as asin, atan as atan, atan2 as atan2, attention as attention, avg_pool2d as avg_pool2d,
        bitwise_and as bitwise_and, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor, broadcast_to as broadcast_to, cast as cast,
        ceil as ceil, clamp as clamp, concatenate as concatenate, constant as constant, conv2d as conv2d, cos as cos, cosh as cosh,
        divide as divide, dot as dot, edge as edge, elu as elu, embedding as embedding, equal as equal, erf as erf, exp as exp,
        exp2 as exp2, expand_dims as expand_dims, expm1 as expm1, eye as eye, flatten as flatten, flip as flip, floor as floor,
        floor_divide as floor_divide, full as full, full_like as full_like, gelu as gelu, global_avg_pool2d as global_avg_pool2d,
        global_max_pool2d as global_max_pool2d, greater as greater, greater_equal as greater_equal, invert as invert,
        isfinite as isfinite, isinf as isinf, isnan as isnan, layer_norm as layer_norm, leaky_relu as leaky_relu,
        left_shift as left_shift, less as less, less_equal as less_equal, linear as linear, log as log, log10 as log10, log1p as log1p,
        log2 as log2, log_softmax as log_softmax, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
        logical_xor as logical_xor, logsumexp as logsumexp, matmul as matmul, max as max, max_pool2d as max_pool2d, maximum as maximum,
        mean as mean, min as min, minimum as minimum, mod as mod, moveaxis as moveaxis, multiply as multiply, negative as negative,
        not_equal as not_equal, one_hot as one_hot, ones as ones, ones_like as ones_like, outer as outer, pad as pad, pow as pow,
        prod as prod, reciprocal as reciprocal, reflect as reflect, relu as relu, repeat as repeat, reshape as reshape,
        right_shift as right_shift, rms_norm as rms_norm, round as round, rsqrt as rsqrt, saturate as saturate, sigmoid as sigmoid,
        sign as sign, silu as silu, sin as sin, sinh as sinh, softmax as softmax, softplus as softplus, split as split, sqrt as sqrt,
        square as square, squeeze as squeeze, stack as stack, std as std, subtract as subtract, sum as sum, swapaxes as swapaxes,
        take as take, take_along_axis as take_along_axis, tan as tan, tanh as tanh, tile as tile, transpose as transpose, tril as tril,
        triu as triu, trunc as trunc, var as var, where as where, wrap as wrap, zeros as zeros, zeros_like as zeros_like,
    )
    from fluorite.algo.program import (
        trace as trace,
    )
    from fluorite.schedule import (
        ExecutionPlan as ExecutionPlan,
    )
    from fluorite.algo import init as init
    from fluorite.algo import nn as nn
    from fluorite.algo.extent import symbol as extent
