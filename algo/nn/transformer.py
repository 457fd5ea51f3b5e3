"""Transformer layers: attention and a feed-forward network, each added to what it was given, with norms before or after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops import gelu, relu, silu
from ..program import Module
from ..tensor import Tensor
from .attention import MultiHeadAttention
from .dense import Linear
from .normalization import LayerNorm, RMSNorm

Activation = Callable[..., Any]


class FeedForward(Module):
    """``down(activation(up(x)))``; with `gated`, ``down(activation(gate(x)) * up(x))``, which is swiglu for silu (Shazeer, 2020)."""

    def __init__(
        self, features: int, hidden: int, *, activation: Activation = gelu, gated: bool = False, bias: bool = True, dtype: Any = "float32"
    ) -> None:
        self.gate = Linear(features, hidden, bias=bias, dtype=dtype) if gated else None
        self.up, self.down = Linear(features, hidden, bias=bias, dtype=dtype), Linear(hidden, features, bias=bias, dtype=dtype)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.down(self.activation(self.up(x)))  # type: ignore[no-any-return]
        return self.down(self.activation(self.gate(x)) * self.up(x))  # type: ignore[no-any-return]


class TransformerEncoderLayer(Module):
    """Attention to all of x [n, t, features], then the network; norms after the sums as in BERT, or before with `norm_first`.

    Parts: `attention network attention_norm network_norm`. The call takes the options of fluorite.attention, such as `mask`.
    """

    def __init__(
        self,
        features: int,
        heads: int,
        hidden: int | None = None,
        *,
        activation: Activation = gelu,
        norm_first: bool = False,
        eps: float = 1e-5,
        dtype: Any = "float32",
    ) -> None:
        self.attention = MultiHeadAttention(features, heads, dtype=dtype)
        self.network = FeedForward(features, hidden or 4 * features, activation=activation, dtype=dtype)
        self.attention_norm, self.network_norm = (LayerNorm(features, eps=eps, dtype=dtype) for _ in range(2))
        self.norm_first = norm_first

    def forward(self, x: Tensor, **options: Any) -> Tensor:
        if self.norm_first:
            x = x + self.attention(self.attention_norm(x), **options)
            return x + self.network(self.network_norm(x))  # type: ignore[no-any-return]
        x = self.attention_norm(x + self.attention(x, **options))
        return self.network_norm(x + self.network(x))  # type: ignore[no-any-return]


class TransformerDecoderLayer(Module):
    """Causal attention to x [n, t, features], attention to `memory` [n, s, features], then the network, as in the first Transformer.

    Parts: `attention memory_attention network attention_norm memory_norm network_norm`; norms as in TransformerEncoderLayer.
    `memory_mask` is the mask of the attention to the memory.
    """

    def __init__(
        self,
        features: int,
        heads: int,
        hidden: int | None = None,
        *,
        activation: Activation = relu,
        norm_first: bool = False,
        eps: float = 1e-5,
        dtype: Any = "float32",
    ) -> None:
        self.attention, self.memory_attention = (MultiHeadAttention(features, heads, dtype=dtype) for _ in range(2))
        self.network = FeedForward(features, hidden or 4 * features, activation=activation, dtype=dtype)
        self.attention_norm, self.memory_norm, self.network_norm = (LayerNorm(features, eps=eps, dtype=dtype) for _ in range(3))
        self.norm_first = norm_first

    def forward(self, x: Tensor, memory: Tensor, *, memory_mask: Any = None) -> Tensor:
        x = self._added(x, self.attention_norm, lambda y: self.attention(y, causal=True))
        x = self._added(x, self.memory_norm, lambda y: self.memory_attention(y, memory, mask=memory_mask))
        return self._added(x, self.network_norm, self.network)

    def _added(self, x: Tensor, norm: LayerNorm, part: Callable[[Tensor], Tensor]) -> Tensor:
        result: Tensor = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return result


class TransformerBlock(Module):
    """A block of a language model: causal attention and the network, norms before them. x [n, t, features] gives the same.

    The defaults are GPT-2's (layer norms, gelu, biases). ``llama=True`` is Llama's: RMS norms, rotary embeddings, silu gates, no biases.
    Parts: `attention_norm attention network_norm network`. `step` decodes on a cache, as MultiHeadAttention.step.
    """

    def __init__(
        self,
        features: int,
        heads: int,
        hidden: int | None = None,
        *,
        kv_heads: int | None = None,
        window: int | None = None,
        llama: bool = False,
        rotary_base: float | None = None,
        dtype: Any = "float32",
    ) -> None:
        base = 10000.0 if llama and rotary_base is None else rotary_base
        self.attention = MultiHeadAttention(features, heads, kv_heads=kv_heads, bias=not llama, rotary_base=base, dtype=dtype)
        activation: Activation = silu if llama else gelu
        self.network = FeedForward(features, hidden or 4 * features, activation=activation, gated=llama, bias=not llama, dtype=dtype)
        self.attention_norm, self.network_norm = ((RMSNorm if llama else LayerNorm)(features, dtype=dtype) for _ in range(2))
        self.window = window

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), causal=True, window=self.window)
        return x + self.network(self.network_norm(x))  # type: ignore[no-any-return]

    def step(self, x: Tensor, k_cache: Tensor, v_cache: Tensor, position: Any) -> tuple[Tensor, Tensor, Tensor]:
        """x [n, t, features] at `position`, on caches [n, kv_heads, s, size]: (the result, new keys, new values)."""
        mixed, keys, values = self.attention.step(self.attention_norm(x), k_cache, v_cache, position, window=self.window)
        x = x + mixed
        return x + self.network(self.network_norm(x)), keys, values
