"""Which operator stands for which of PyTorch's, and which have none there."""

from __future__ import annotations

from .elementwise import ELEMENTWISE
from .factorisations import FACTORISATIONS
from .networks import NETWORKS
from .places import PLACES
from .reductions import REDUCTIONS

TABLE = {**ELEMENTWISE, **REDUCTIONS, **PLACES, **NETWORKS, **FACTORISATIONS}
_LISTS = {
    "PyTorch does not have it": [
        "alibi", "bilateral_filter", "box_filter", "cached_attention", "closing", "constant", "dilate", "edge", "erode",
        "exponential_moving_average", "focal_loss", "gather_nd", "gaussian_filter", "geglu", "hinge_loss", "hsv_to_rgb", "lab_to_rgb",
        "lfilter", "linear_recurrence", "linear_to_srgb", "median_filter", "nms", "opening", "quick_gelu", "rearrange", "reduce_",
        "reflect", "rgb_to_gray", "rgb_to_hsv", "rgb_to_lab", "rgb_to_ycbcr", "rgb_to_yuv", "rotary", "saturate", "scatter_nd",
        "sinusoidal_positions", "sobel", "srgb_to_linear", "swiglu", "warp", "warp_affine", "weight_standardization", "wrap",
        "ycbcr_to_rgb", "yuv_to_rgb",
    ],
    "PyTorch has no samples of it": [
        "affine_grid", "fold", "global_avg_pool1d", "global_avg_pool2d", "global_avg_pool3d", "global_max_pool1d", "global_max_pool2d",
        "global_max_pool3d", "lp_pool1d", "lp_pool2d", "segment_max", "segment_mean", "segment_min", "segment_sum",
    ],
    "its result has the extent that it counts, here a declared one": [
        "histogram", "nonzero", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    ],
    "it has no operand to differentiate by": [
        "arange", "asarray", "cast", "empty", "empty_like", "eye", "fftfreq", "full", "full_like", "linspace", "ones", "ones_like",
        "rfftfreq", "zeros", "zeros_like",
    ],
    "it is among the reductions of scatter_reduce": ["scatter_min"],
}  # fmt: skip
ABSENT = {name: why for why, names in _LISTS.items() for name in names}
