"""PyTorch, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found,unused-ignore]
import torch.nn.functional as F  # type: ignore[import-not-found,unused-ignore]

from . import torch_filters
from .narrow_products import PRODUCTS
from .training import CHANNELS, RATES, SEQUENCE, STEPS, Data, parameters
from .workloads import WORKLOADS, Array

VARIANTS = ("torch eager", "torch compiled", "torch convolutions", "torch convolutions compiled")


def _mlp(p: dict[str, Any], x: Any, activation: Callable[[Any], Any] = F.relu) -> Any:
    last = len(p) // 2 - 1
    for k in range(last + 1):
        x = x @ p[f"layers.{k}/w"] + p[f"layers.{k}/b"]
        x = x if k == last else activation(x)
    return x


def _deep_mlp(p: dict[str, Any], x: Any) -> Any:
    return _mlp(p, x, torch.tanh)


def _convnet(p: dict[str, Any], x: Any) -> Any:
    for k in range(len(CHANNELS) - 1):
        x = F.max_pool2d(F.relu(F.conv2d(x, p[f"convs.{k}/w"], p[f"convs.{k}/b"], padding=1)), 2)
    return x.flatten(1) @ p["out/w"] + p["out/b"]


NETWORKS = {"mlp_train": _mlp, "mlp_adam": _mlp, "deep_mlp": _deep_mlp, "deep_mlp_adam": _deep_mlp, "convnet_train": _convnet}


def lstm(d: Data, compiled: bool) -> Callable[[], Array]:
    width = SEQUENCE[-1]
    layer = torch.nn.LSTM(width, width)
    with torch.no_grad():
        for short, long in (("w_ih", "weight_ih_l0"), ("w_hh", "weight_hh_l0"), ("b_ih", "bias_ih_l0"), ("b_hh", "bias_hh_l0")):
            getattr(layer, long).copy_(torch.from_numpy(d[f"layer/cells.0/{short}"].T))
    x = torch.from_numpy(d["x"])
    run = torch.compile(layer) if compiled else layer

    def call() -> Array:
        with torch.inference_mode():
            return run(x)[0].numpy()  # type: ignore[no-any-return]

    return call


class _Narrow:
    """A result that NumPy has no type for: an array only where it is compared, so that no time is taken for that."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.tensor.float().numpy()  # type: ignore[no-any-return]


def build(name: str, variant: str) -> Callable[[], Array] | None:
    if name in torch_filters.FORMS:
        form = "convolutions" if "convolutions" in variant else "slices"
        return torch_filters.gradient(name, form, variant.endswith("compiled"), WORKLOADS[name].inputs())
    if "convolutions" in variant:
        return None
    if name == "byte_product" and variant == "torch eager":
        given = WORKLOADS[name].inputs()
        a, b = torch.from_numpy(given["a"].astype(np.int8)), torch.from_numpy(given["b"])
        return lambda: torch._int_mm(a, b).numpy()  # type: ignore[no-any-return]
    if name in PRODUCTS and variant == "torch eager":
        kind = getattr(torch, PRODUCTS[name].of)
        pair = [torch.from_numpy(x).to(kind) for x in WORKLOADS[name].inputs().values()]
        multiply = torch._int_mm if kind is torch.int8 else torch.matmul
        return lambda: _Narrow(multiply(*pair))  # type: ignore[return-value]
    if name == "complex_product" and variant == "torch eager":
        z = [torch.from_numpy(x) for x in WORKLOADS[name].inputs().values()]
        into = torch.empty_like(z[0])
        return lambda: torch.mul(*z, out=into).numpy()  # type: ignore[no-any-return]
    if name == "lstm":
        return lstm(WORKLOADS[name].inputs(), variant.endswith("compiled"))
    if name not in NETWORKS:
        return None
    d = WORKLOADS[name].inputs()
    x, y = torch.from_numpy(d["x"]), torch.from_numpy(d["y"].astype(np.int64))
    p = {k: torch.from_numpy(v).requires_grad_() for k, v in parameters(d).items()}
    kind = "Adam" if name.endswith("adam") else "SGD"
    chosen = getattr(torch.optim, kind)(list(p.values()), lr=RATES[kind])
    network = NETWORKS[name]

    def loss(x: Any, y: Any) -> Any:
        return F.cross_entropy(network(p, x), y)

    value = torch.compile(loss) if variant.endswith("compiled") else loss

    def step() -> Any:
        chosen.zero_grad(set_to_none=True)
        found = value(x, y)
        found.backward()
        chosen.step()
        return found

    first = np.array([float(step().detach()) for _ in range(STEPS)])

    def call() -> Array:
        step()
        return first

    return call
