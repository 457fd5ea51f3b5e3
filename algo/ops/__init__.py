"""The operator library: everything here is written in the language, as stages and views."""

from __future__ import annotations

from .activations import (
    celu, elu, geglu, gelu, glu, hardshrink, hardsigmoid, hardswish, hardtanh, leaky_relu, logsigmoid, mish, prelu, quick_gelu, relu,
    relu6, selu, silu, softplus, softshrink, softsign, swiglu, tanhshrink, threshold,
)  # fmt: skip
from .adaptive import (
    adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d, adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d,
)  # fmt: skip
from .arithmetic import (
    abs, add, bitwise_and, bitwise_or, bitwise_xor, clamp, divide, equal, floor_divide, greater, greater_equal, invert, isfinite, isinf,
    isnan, left_shift, less, less_equal, logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply, negative,
    not_equal, pow, reciprocal, right_shift, sign, square, subtract, where,
)  # fmt: skip
from .attention import attention, cached_attention
from .casts import cast, saturate
from .channels import batch_norm, group_norm, instance_norm, local_response_norm, weight_standardization
from .classes import cross_entropy, nll_loss
from .colour import (
    hsv_to_rgb, lab_to_rgb, linear_to_srgb, rgb_to_gray, rgb_to_hsv, rgb_to_lab, rgb_to_ycbcr, rgb_to_yuv, srgb_to_linear, ycbcr_to_rgb,
    yuv_to_rgb,
)  # fmt: skip
from .convolution import conv1d, conv2d, conv3d
from .creation import (
    arange, asarray, empty, empty_like, eye, full, full_like, linspace, meshgrid, ones, ones_like, tril, triu, zeros, zeros_like,
)  # fmt: skip
from .derived import acosh, asinh, atanh, hypot, logaddexp
from .differences import diff
from .einsum import einsum
from .filters import bilateral_filter, box_filter, closing, dilate, erode, gaussian_filter, opening, sobel
from .functions import (
    acos, asin, atan, atan2, ceil, cos, cosh, erf, exp, exp2, expm1, floor, log, log10, log1p, log2, round, rsqrt, sigmoid, sin, sinh,
    sqrt, tan, tanh, trunc,
)  # fmt: skip
from .gather import embedding, one_hot, take, take_along_axis
from .histogram import histogram
from .joining import concatenate, pad, split, stack, unstack
from .losses import (
    binary_cross_entropy, binary_cross_entropy_with_logits, cosine_embedding_loss, cosine_similarity, focal_loss, hinge_embedding_loss,
    hinge_loss, huber_loss, kl_div, l1_loss, mse_loss, smooth_l1_loss, triplet_margin_loss,
)  # fmt: skip
from .matrices import cross, diag, diagonal, kron, matrix_norm, matrix_power, matrix_trace, tensordot, vecdot, vector_norm
from .normalize import layer_norm, log_softmax, logsumexp, rms_norm, softmax, softmin
from .order import flip, repeat, roll, tile
from .patterns import rearrange, reduce_
from .pooling import (
    avg_pool1d, avg_pool2d, avg_pool3d, global_avg_pool1d, global_avg_pool2d, global_avg_pool3d, global_max_pool1d, global_max_pool2d,
    global_max_pool3d, lp_pool1d, lp_pool2d, max_pool1d, max_pool2d, max_pool3d,
)  # fmt: skip
from .positions import alibi, rotary, sinusoidal_positions
from .products import dot, linear, matmul, outer
from .reductions import all, any, argmax, argmin, count_nonzero, max, mean, min, prod, std, sum, var
from .scatter import gather_nd, scatter, scatter_add, scatter_max, scatter_min, scatter_nd
from .segments import bincount, segment_max, segment_mean, segment_min, segment_sum
from .signs import copysign, nextafter, positive, signbit
from .sorting import argsort, median, nonzero, quantile, searchsorted, sort, top_k, unique
from .resizing import pixel_shuffle, pixel_unshuffle, resize
from .transposed import conv_transpose1d, conv_transpose2d, conv_transpose3d, fold, unfold
from .views import (
    broadcast_arrays, broadcast_to, constant, edge, expand_dims, flatten, matrix_transpose, moveaxis, reflect, reshape, squeeze, swapaxes,
    transpose, wrap,
)  # fmt: skip

# the names that the Python array API standard gives to what stands above
bitwise_invert, bitwise_left_shift, bitwise_right_shift = invert, left_shift, right_shift
remainder, clip, astype, concat, permute_dims = mod, clamp, cast, concatenate, transpose
ALIASES = {
    "bitwise_invert": "invert", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift", "remainder": "mod",
    "clip": "clamp", "astype": "cast", "concat": "concatenate", "permute_dims": "transpose",
}  # fmt: skip

__all__: list[str] = [
    "abs", "acos", "acosh", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "add", "alibi", "all", "any", "arange", "argmax", "argmin", "argsort", "asarray", "asin",
    "asinh", "astype", "atan", "atan2", "atanh", "attention", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "bilateral_filter",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "bincount", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "box_filter", "broadcast_arrays", "broadcast_to", "cached_attention", "cast",
    "ceil", "celu", "clamp", "clip", "closing", "concat", "concatenate", "constant", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "copysign", "cos", "cosh", "cosine_embedding_loss", "cosine_similarity", "count_nonzero",
    "cross", "cross_entropy", "diag", "diagonal", "diff", "dilate", "divide", "dot", "edge", "einsum", "elu", "embedding", "empty",
    "empty_like", "equal", "erf", "erode", "exp", "exp2", "expand_dims", "expm1", "eye", "flatten", "flip", "floor", "floor_divide",
    "focal_loss", "fold", "full", "full_like", "gather_nd", "gaussian_filter", "geglu", "gelu", "global_avg_pool1d", "global_avg_pool2d",
    "global_avg_pool3d", "global_max_pool1d", "global_max_pool2d", "global_max_pool3d", "glu", "greater", "greater_equal", "group_norm",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "hinge_loss", "histogram", "hsv_to_rgb", "huber_loss",
    "hypot", "instance_norm", "invert", "isfinite", "isinf", "isnan", "kl_div", "kron", "l1_loss", "lab_to_rgb", "layer_norm",
    "leaky_relu", "left_shift", "less", "less_equal", "linear", "linear_to_srgb", "linspace", "local_response_norm", "log", "log1p",
    "log2", "log10", "log_softmax", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "logsigmoid", "logsumexp",
    "lp_pool1d", "lp_pool2d", "matmul", "matrix_norm", "matrix_power", "matrix_trace", "matrix_transpose", "max", "max_pool1d",
    "max_pool2d", "max_pool3d", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mish", "mod", "moveaxis", "mse_loss",
    "multiply", "negative", "nextafter", "nll_loss", "nonzero", "not_equal", "one_hot", "ones", "ones_like", "opening", "outer", "pad",
    "permute_dims", "pixel_shuffle", "pixel_unshuffle", "positive", "pow", "prelu", "prod", "quantile", "quick_gelu", "rearrange",
    "reciprocal", "reduce_", "reflect", "relu", "relu6", "remainder", "repeat", "reshape", "resize", "rgb_to_gray", "rgb_to_hsv",
    "rgb_to_lab", "rgb_to_ycbcr", "rgb_to_yuv", "right_shift", "rms_norm", "roll", "rotary", "round", "rsqrt", "saturate", "scatter",
    "scatter_add", "scatter_max", "scatter_min", "scatter_nd", "searchsorted", "segment_max", "segment_mean", "segment_min", "segment_sum",
    "selu", "sigmoid", "sign", "signbit", "silu", "sin", "sinh", "sinusoidal_positions", "smooth_l1_loss", "sobel", "softmax", "softmin",
    "softplus", "softshrink", "softsign", "sort", "split", "sqrt", "square", "squeeze", "srgb_to_linear", "stack", "std", "subtract",
    "sum", "swapaxes", "swiglu", "take", "take_along_axis", "tan", "tanh", "tanhshrink", "tensordot", "threshold", "tile", "top_k",
    "transpose", "tril", "triplet_margin_loss", "triu", "trunc", "unfold", "unique", "unstack", "var", "vecdot", "vector_norm",
    "weight_standardization", "where", "wrap", "ycbcr_to_rgb", "yuv_to_rgb", "zeros", "zeros_like",
]  # fmt: skip
