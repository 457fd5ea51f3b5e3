"""Every operator beside its NumPy counterpart, with the operands and options that it is tried on."""

from __future__ import annotations

from elementwise_cases import elementwise
from movement_cases import moved
from operator_case import Case
from product_cases import created, products
from reduction_cases import reductions

CASES: dict[str, Case] = {c.name: c for c in (*elementwise(), *reductions(), *moved(), *products(), *created())}
TRIED_ELSEWHERE = (
    # activations and what networks are made of, against their formulas: test_ops_activations and its neighbours
    "celu", "elu", "embedding", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "layer_norm", "leaky_relu", "linear",
    "log_softmax", "logsigmoid", "logsumexp", "mish", "one_hot", "quick_gelu", "relu", "relu6", "rms_norm", "selu", "silu", "softmax",
    "softplus", "softshrink", "softsign", "tanhshrink",
    # of one form only: test_ops_elementwise, test_ops_views, test_ops_joining, test_ops_patterns
    "asarray", "cast", "constant", "edge", "empty", "empty_like", "full", "ones", "rearrange", "reduce_", "reflect", "saturate",
    "take_along_axis", "wrap", "zeros",
)  # fmt: skip
