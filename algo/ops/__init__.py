"""The operator library: everything here is written in the language, as stages and views."""

from __future__ import annotations

from .activations import elu, gelu, leaky_relu, relu, silu, softplus
from .arithmetic import (
    abs, add, bitwise_and, bitwise_or, bitwise_xor, clamp, divide, equal, floor_divide, greater, greater_equal, invert, isfinite, isinf,
    isnan, left_shift, less, less_equal, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply, negative,
    not_equal, pow, reciprocal, right_shift, sign, square, subtract, where,
)  # fmt: skip
from .attention import attention
from .casts import cast, saturate
from .creation import arange, asarray, eye, full, full_like, ones, ones_like, tril, triu, zeros, zeros_like
from .functions import (
    acos, asin, atan, atan2, ceil, cos, cosh, erf, exp, exp2, expm1, floor, log, log10, log1p, log2, round, rsqrt, sigmoid, sin, sinh,
    sqrt, tan, tanh, trunc,
)  # fmt: skip
from .gather import embedding, one_hot, take, take_along_axis
from .joining import concatenate, pad, split, stack
from .normalize import layer_norm, log_softmax, logsumexp, rms_norm, softmax
from .products import dot, linear, matmul, outer
from .reductions import all, any, argmax, argmin, max, mean, min, prod, std, sum, var
from .views import (
    broadcast_to, constant, edge, expand_dims, flatten, flip, moveaxis, reflect, repeat, reshape, squeeze, swapaxes, tile, transpose,
    wrap,
)  # fmt: skip
from .windows import avg_pool2d, conv2d, global_avg_pool2d, global_max_pool2d, max_pool2d

__all__: list[str] = [
    "abs", "acos", "add", "all", "any", "arange", "argmax", "argmin", "asarray", "asin", "atan", "atan2", "attention", "avg_pool2d",
    "bitwise_and", "bitwise_or", "bitwise_xor", "broadcast_to", "cast", "ceil", "clamp", "concatenate", "constant", "conv2d", "cos",
    "cosh", "divide", "dot", "edge", "elu", "embedding", "equal", "erf", "exp", "exp2", "expand_dims", "expm1", "eye", "flatten", "flip",
    "floor", "floor_divide", "full", "full_like", "gelu", "global_avg_pool2d", "global_max_pool2d", "greater", "greater_equal", "invert",
    "isfinite", "isinf", "isnan", "layer_norm", "leaky_relu", "left_shift", "less", "less_equal", "linear", "log", "log1p", "log2",
    "log10", "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "matmul", "max", "max_pool2d",
    "maximum", "mean", "min", "minimum", "mod", "moveaxis", "multiply", "negative", "not_equal", "one_hot", "ones", "ones_like", "outer",
    "pad", "pow", "prod", "reciprocal", "reflect", "relu", "repeat", "reshape", "right_shift", "rms_norm", "round", "rsqrt", "saturate",
    "sigmoid", "sign", "silu", "sin", "sinh", "softmax", "softplus", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract",
    "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tile", "transpose", "tril", "triu", "trunc", "var", "where", "wrap",
    "zeros", "zeros_like",
]  # fmt: skip
