"""The published names: the stages of every operator and their axes. Plans speak of them, so a change here breaks plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_names import ATTENTION, FOURIER, IMAGES, NETWORKS

X, IDS = fl.f32("n", "features=8"), fl.i32("n", "t")
UNARY = [
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "ceil", "celu", "conj", "cos", "cosh", "elu", "erf", "exp", "exp2",
    "expm1", "floor", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "imag", "isfinite", "isinf", "isnan", "leaky_relu",
    "log", "log10",
    "log1p", "log2", "logical_not", "logsigmoid", "mish", "negative", "quick_gelu", "reciprocal", "relu", "relu6", "round", "rsqrt",
    "selu", "sigmoid", "sign", "signbit", "silu", "sin", "sinh", "softplus", "softshrink", "softsign", "sqrt", "square", "tan", "tanh",
    "tanhshrink", "trunc",
]  # fmt: skip
BINARY = [
    "add", "atan2", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal",
    "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "nextafter", "not_equal", "pow",
    "subtract",
]  # fmt: skip
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
REDUCTIONS = ["count_nonzero", "sum", "prod", "max", "min", "any", "all", "argmax", "argmin"]
SHAPED = ["ones_like", "zeros_like", "tril", "triu"]
FEATURES = "n features"
VALUES = (
    "unique/rank[features | other], unique/order[features | other], unique/new[i], unique/rest[i], unique/place[i | other], "
    "unique/total[ | i], unique/groups[i], unique/indices/found[k | i], unique/indices[k], unique/values[k]"
)
COUNTS, INVERSE = ", unique/counts[k | i]", ", unique/inverse[i | j]"
UNIQUE = {
    "unique": VALUES + COUNTS + INVERSE, "unique_all": VALUES + COUNTS + INVERSE, "unique_counts": VALUES + COUNTS,
    "unique_inverse": VALUES + INVERSE, "unique_values": VALUES,
}  # fmt: skip

GOLDEN: dict[str, tuple[Callable[..., Any], dict[str, fl.Spec], str]] = {
    **{name: (lambda x, f=name: getattr(fl, f)(x), {"x": X}, f"{name}[{FEATURES}]") for name in UNARY},
    **{name: (lambda x, f=name: getattr(fl, f)(x, x), {"x": X}, f"{name}[{FEATURES}]") for name in BINARY},
    **{name: (lambda k, f=name: getattr(fl, f)(k, k), {"k": IDS}, f"{name}[n t]") for name in BITS},
    **{name: (lambda x, f=name: getattr(fl, f)(x, 1), {"x": X}, f"{name}[n | features]") for name in REDUCTIONS},
    **{name: (lambda x, f=name: getattr(fl, f)(x), {"x": X}, f"{name}[{FEATURES}]") for name in SHAPED},
    **NETWORKS,
    **ATTENTION,
    **IMAGES,
    **FOURIER,
    "complex": (
        lambda x: fl.complex(x, 1.0), {"x": X}, f"complex/real[{FEATURES}], complex/imag[{FEATURES}], result[{FEATURES} i2]",
    ),
    "invert": (lambda k: fl.invert(k), {"k": IDS}, "invert[n t]"),
    "where": (lambda x: fl.where(x > 0, x, 0), {"x": X}, f"greater[{FEATURES}], where[{FEATURES}]"),
    "clamp": (lambda x: fl.clamp(x, 0, 1), {"x": X}, f"clamp[{FEATURES}]"),
    "cast": (lambda x: fl.cast(x, fl.i32), {"x": X}, f"astype[{FEATURES}]"),
    "saturate": (lambda x: fl.saturate(fl.u8, x), {"x": X}, f"saturate[{FEATURES}]"),
    "mean": (lambda x: fl.mean(x, 1), {"x": X}, "mean/sum[n | features], mean[n]"),
    "var": (lambda x: fl.var(x, 1), {"x": X}, "var/mean/sum[n | features], var/mean[n], var/sum[n | features], var[n]"),
    "std": (lambda x: fl.std(x, 1), {"x": X}, "std/mean/sum[n | features], std/mean[n], std/sum[n | features], std[n]"),
    "softmax": (
        lambda x: fl.softmax(x), {"x": X},
        "softmax/max[n | features], softmax/exp[n features], softmax/sum[n | features], softmax[n features]",
    ),
    "log_softmax": (
        lambda x: fl.log_softmax(x), {"x": X},
        "log_softmax/max[n | features], log_softmax/shift[n], log_softmax/sum[n | features], log_softmax[n features]",
    ),
    "logsumexp": (
        lambda x: fl.logsumexp(x, 1), {"x": X},
        "logsumexp/max[n | features], logsumexp/shift[n], logsumexp/sum[n | features], logsumexp[n]",
    ),
    "layer_norm": (
        lambda x: fl.layer_norm(x), {"x": X},
        "layer_norm/mean/sum[n | features], layer_norm/mean[n], layer_norm/var/sum[n | features], layer_norm/var[n], "
        "layer_norm[n features]",
    ),
    "rms_norm": (
        lambda x: fl.rms_norm(x), {"x": X},
        "rms_norm/square[n features], rms_norm/mean/sum[n | features], rms_norm/mean[n], rms_norm[n features]",
    ),
    **{
        name: (lambda x, f=name: getattr(fl, f)(x, 1), {"x": X}, f"{name}[{FEATURES}]")
        for name in ("cumulative_sum", "cumulative_prod", "cumulative_max", "cumulative_min", "logcumsumexp")
    },
    "linear_recurrence": (lambda x: fl.linear_recurrence(x, x), {"x": X}, f"linear_recurrence[{FEATURES}]"),
    "exponential_moving_average": (lambda x: fl.exponential_moving_average(x, 0.5), {"x": X}, f"exponential_moving_average[{FEATURES}]"),
    "lfilter": (lambda x: fl.lfilter([1.0, 0.5], [1.0, 0.5], x), {"x": X}, f"lfilter/feed[{FEATURES}], lfilter[{FEATURES}]"),
    "matmul": (lambda x, w: x @ w, {"x": fl.f32("n", "t", 8), "w": fl.f32(8, 3)}, "matmul[n i j | k]"),
    "dot": (lambda x: fl.dot(x[0], x[0]), {"x": X}, "dot[ | k]"),
    "outer": (lambda x: fl.outer(x[0], x[0]), {"x": X}, "outer[i j]"),
    "vecdot": (lambda x: fl.vecdot(x, x), {"x": X}, "vecdot[n | features]"),
    "tensordot": (lambda x: fl.tensordot(x, x, ([1], [1])), {"x": X}, "tensordot[n i1 | k]"),
    "kron": (lambda x: fl.kron(x, x), {"x": X}, "kron[n features]"),
    "cross": (lambda x: fl.cross(x, x), {"x": fl.f32("n", "xyz=3")}, "cross[n xyz]"),
    "matrix_power": (lambda x: fl.matrix_power(x, 3), {"x": fl.f32("n", "n")}, "matrix_power/power[i j | k], matrix_power[i j | k]"),
    "matrix_trace": (lambda x: fl.matrix_trace(x), {"x": X}, "matrix_trace[ | i0]"),
    "matrix_norm": (lambda x: fl.matrix_norm(x, ord=1), {"x": X}, "matrix_norm/sum[features | n], matrix_norm[ | features]"),
    "vector_norm": (lambda x: fl.vector_norm(x, 1), {"x": X}, "vector_norm/sum[n | features], vector_norm[n]"),
    "diag": (lambda x: fl.diag(x[0]), {"x": X}, "diag[i j]"),
    "diff": (lambda x: fl.diff(x), {"x": X}, "diff[n features]"),
    "einsum": (
        lambda x: fl.einsum("ij,kj,k...->i...", x, x, x), {"x": X}, "einsum/product[j b0 | k], einsum[i b0 | j]",
    ),
    "reduce_": (lambda x: fl.reduce_(x, "n (g f) -> n g", "max", f=2), {"x": X}, "reduce[n g | f]"),
    "linspace": (lambda: fl.linspace(0, 1, 5), {}, "linspace[i]"),
    "linear": (
        lambda x, w, b: fl.linear(x, w, b), {"x": X, "w": fl.f32("features=8", "out=3"), "b": fl.f32("out=3")},
        "linear/matmul[i j | k], linear/bias[i j]",
    ),
    "concatenate": (lambda x: fl.concatenate([x, x]), {"x": X}, f"concatenate[{FEATURES}]"),
    "stack": (lambda x: fl.stack([x, x]), {"x": X}, "stack[i0 n features]"),
    "pad": (lambda x: fl.pad(x, 1), {"x": X}, f"pad[{FEATURES}]"),
    "take": (lambda x, k: fl.take(x, k, 1), {"x": X, "k": fl.i32("m", "t")}, "take[n m t]"),
    "take_along_axis": (lambda x, k: fl.take_along_axis(x, k, 1), {"x": X, "k": IDS}, "take_along_axis[n t]"),
    "gather_nd": (lambda x, k: fl.gather_nd(x, k), {"x": X, "k": fl.i32("m", 1)}, "gather_nd[m features]"),
    **{
        name: (
            lambda x, k, v, f=name: getattr(fl, f)(x, k, v), {"x": X, "k": fl.i32("m"), "v": fl.f32("m", 8)},
            f"{name}/updates[{FEATURES} | m], {name}[{FEATURES}]",
        )
        for name in ("scatter_add", "scatter_max", "scatter_min")
    },
    "scatter": (
        lambda x, k, v: fl.scatter(x, k, v), {"x": X, "k": fl.i32("m"), "v": fl.f32("m", 8)}, f"scatter/last[n | m], scatter[{FEATURES}]"
    ),
    "scatter_nd": (
        lambda k, v: fl.scatter_nd(k, v, (7, 5, 8)), {"k": fl.i32("m", 2), "v": fl.f32("m", "features=8")},
        "scatter_nd[i0 i1 features | m]",
    ),
    **{
        name: (lambda x, k, f=name: getattr(fl, f)(x, k, 4), {"x": X, "k": fl.i32("n")}, f"{name}[segment features | n]")
        for name in ("segment_sum", "segment_max", "segment_min")
    },
    "segment_mean": (
        lambda x, k: fl.segment_mean(x, k, 4), {"x": X, "k": fl.i32("n")},
        "segment_mean/sum[segment features | n], segment_mean/count[segment | n], segment_mean[segment features]",
    ),
    "bincount": (lambda k: fl.bincount(k, 4), {"k": IDS}, "bincount[bin | n t]"),
    "histogram": (
        lambda x: fl.histogram(x, 4), {"x": X},
        "histogram/low[ | i], histogram/high[ | i], histogram/edges[edge], "
        f"histogram/bins[{FEATURES}], histogram/bincount[bin | {FEATURES}]",
    ),
    "argsort": (lambda x: fl.argsort(x), {"x": X}, f"argsort/rank[{FEATURES} | other], argsort[{FEATURES} | other]"),
    "sort": (
        lambda x: fl.sort(x), {"x": X}, f"sort/rank[{FEATURES} | other], sort/argsort[{FEATURES} | other], sort[{FEATURES}]"
    ),
    "top_k": (
        lambda x: fl.top_k(x, 2), {"x": X},
        f"top_k/rank[{FEATURES} | other], top_k/indices[{FEATURES} | other], top_k/values[{FEATURES}]",
    ),
    **{
        name: (
            fn, {"x": X}, f"{name}/rank[{FEATURES} | other], {name}/argsort[{FEATURES} | other], {name}/sort[{FEATURES}], {name}[n]"
        )
        for name, fn in (("median", lambda x: fl.median(x)), ("quantile", lambda x: fl.quantile(x, 0.25)))
    },
    "isin": (lambda x, w: fl.isin(x, w), {"x": X, "w": fl.f32("v=9")}, f"isin[{FEATURES} | k]"),
    "searchsorted": (lambda x, w: fl.searchsorted(w, x), {"x": X, "w": fl.f32("k=9")}, f"searchsorted[{FEATURES} | k]"),
    "nms": (
        lambda b, s: fl.nms(b, s, 0.5, 3), {"b": fl.f32("box", 4), "s": fl.f32("box")},
        "nms/order/rank[box | other], nms/order[box | other], nms/ranked[box i1], nms/overlap[i j], nms/zeros[box], nms/arange[i], "
        "nms/scan/lost[i j], nms/kept[i], nms/found/zero[i], nms/found/total[ | i], nms/found/rank[i | other], "
        "nms/found/order[i | other], nms/found/axis0[k], nms/indices[k]",
    ),
    "nonzero": (
        lambda x: fl.nonzero(x, 3), {"x": fl.f32("features")},
        "nonzero/zero[features], nonzero/total[ | i], nonzero/rank[features | other], nonzero/order[features | other], nonzero/axis0[k]",
    ),
    **{
        name: (lambda x, f=name: getattr(fl, f)(x, 3), {"x": fl.f32("features")}, stages.replace("unique/", f"{name}/"))
        for name, stages in UNIQUE.items()
    },
    "embedding": (lambda k, w: fl.embedding(k, w), {"k": IDS, "w": fl.f32(100, "features=8")}, "embedding[n t features]"),
    "one_hot": (lambda k: fl.one_hot(k, 5), {"k": IDS}, "one_hot[n t c]"),
    "arange": (lambda: fl.arange(5), {}, "arange[i]"),
    "eye": (lambda: fl.eye(5), {}, "eye[i j]"),
    "zeros": (lambda x: fl.zeros(("n", 3)), {"x": X}, "zeros[n i1]"),
    "ones": (lambda: fl.ones(2), {}, "ones[i0]"),
    "full": (lambda: fl.full((), 1), {}, "full[]"),
    "full_like": (lambda x: fl.full_like(x, 1), {"x": X}, f"full_like[{FEATURES}]"),
}  # fmt: skip
VIEWS = [
    "asarray", "broadcast_arrays", "broadcast_to", "constant", "diagonal", "edge", "expand_dims", "fftshift", "flatten", "flip",
    "ifftshift", "matrix_transpose",
    "meshgrid", "moveaxis", "pixel_shuffle", "pixel_unshuffle", "positive", "real", "rearrange", "reflect", "repeat", "reshape", "roll",
    "split", "squeeze", "swapaxes", "tile", "transpose", "unstack", "wrap",
]  # fmt: skip
REFUSED = ["empty", "empty_like"]


def published(graph: fl.Graph) -> str:
    def one(s: fl.Stage) -> str:
        inner = " | " + " ".join(a.name for a in s.reduce_axes) if s.reduction else ""
        return f"{s.path.split('/', 1)[1]}[{' '.join(s.axis_names)}{inner}]"

    return ", ".join(map(one, graph.stages))


@pytest.mark.parametrize("name", GOLDEN)
def test_stages_and_axes(name: str) -> None:
    fn, inputs, want = GOLDEN[name]
    assert published(fl.trace(fn, inputs=inputs)) == want


def test_every_operator_is_listed() -> None:
    from fluorite.algo import ops

    assert sorted([*GOLDEN, *VIEWS, *REFUSED, *ops.ALIASES]) == sorted(ops.__all__)
    assert all(getattr(fl, alias) is getattr(fl, name) for alias, name in ops.ALIASES.items())


def test_repeated_operators_are_numbered_and_stages_know_their_operator() -> None:
    graph = fl.trace(lambda x: fl.exp(fl.exp(fl.softmax(x))), inputs={"x": X})
    assert [s.path.split("/", 1)[1] for s in graph.stages][-2:] == ["exp", "exp_2"]
    assert {s.op for s in graph.stages[:4]} == {"softmax"}
    renamed = fl.trace(lambda x: fl.mean(x, name="cost"), inputs={"x": X})
    assert published(renamed) == "cost/sum[ | n features], cost[]" and {s.op for s in renamed.stages} == {"mean"}


def test_constants_are_copies() -> None:
    table = np.ones(3, np.float32)
    graph = fl.trace(lambda: fl.asarray(table) * 2)
    table[:] = 5
    assert graph.run().tolist() == [2, 2, 2]
