"""Attention of several heads."""

from __future__ import annotations

from typing import Any

from ..expr import refuse
from ..ops import attention, cached_attention, reshape, rotary, transpose
from ..program import Module
from ..tensor import Tensor
from .dense import Linear


class MultiHeadAttention(Module):
    """Attention of `heads` heads with linear layers `query key value output` (Vaswani et al., 2017): x [n, t, features] gives the same.

    With `kv_heads` fewer, keys and values are shared by groups of queries. `rotary_base` turns queries and keys by rotary embeddings of
    that base. Options of the call are those of fluorite.attention; keys and values come from `memory` [n, s, features] where it is given.
    """

    def __init__(
        self,
        features: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        bias: bool = True,
        rotary_base: float | None = None,
        dtype: Any = "float32",
    ) -> None:
        kv = heads if kv_heads is None else kv_heads
        if heads < 1 or features % heads:
            raise refuse("A304", f"nn.MultiHeadAttention: heads={heads!r}", f"they are a positive number that divides {features} features")
        if kv < 1 or heads % kv:
            raise refuse("A304", f"nn.MultiHeadAttention: kv_heads={kv_heads!r}", f"they are a positive number that divides {heads} heads")
        self.heads, self.kv_heads, self.size, self.rotary_base = heads, kv, features // heads, rotary_base
        self.query = Linear(features, features, bias=bias, dtype=dtype)
        self.key, self.value = (Linear(features, kv * self.size, bias=bias, dtype=dtype) for _ in range(2))
        self.output = Linear(features, features, bias=bias, dtype=dtype)

    def forward(self, x: Tensor, memory: Tensor | None = None, **options: Any) -> Tensor:
        q, k, v = self.projected(x, x if memory is None else memory, 0)
        mixed: Tensor = attention(q, k, v, **options)
        return self.output(self.joined(mixed))  # type: ignore[no-any-return]

    def step(self, x: Tensor, k_cache: Tensor, v_cache: Tensor, position: Any, **options: Any) -> tuple[Tensor, Tensor, Tensor]:
        """x [n, t, features] at `position` (an int32 number), on caches [n, kv_heads, s, size]: (the result, new keys, new values)."""
        q, k, v = self.projected(x, x, position)
        mixed, keys, values = cached_attention(q, k, v, k_cache, v_cache, position, **options)
        return self.output(self.joined(mixed)), keys, values

    def projected(self, x: Tensor, memory: Tensor, offset: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values [n, heads, t, size], turned to their positions."""
        q = self._split(self.query(x), self.heads)
        k, v = (self._split(layer(memory), self.kv_heads) for layer in (self.key, self.value))
        if self.rotary_base is not None:
            q, k = (rotary(t, offset=offset, base=self.rotary_base) for t in (q, k))
        return q, k, v

    def _split(self, t: Tensor, heads: int) -> Tensor:
        result: Tensor = transpose(reshape(t, (*t.shape[:-1], heads, self.size)), (0, 2, 1, 3))
        return result

    def joined(self, t: Tensor) -> Tensor:
        """[n, heads, t, size] as [n, t, features]."""
        n, heads, length, size = t.shape
        result: Tensor = reshape(transpose(t, (0, 2, 1, 3)), (n, length, heads * size))
        return result
