"""One transformer block with random weights. `python -m examples.attention` builds it and compares it with the algorithm."""

from __future__ import annotations

import fluorite as fl


class Block(fl.Program):
    """Attention of several heads and a two-layer network, each added to what it was given, layer norms in front."""

    def __init__(self, features: int = 64, heads: int = 4, widening: int = 4) -> None:
        self.heads = heads
        self.attention_norm, self.network_norm = fl.nn.LayerNorm(features), fl.nn.LayerNorm(features)
        self.query, self.key, self.value, self.output = (fl.nn.Linear(features, features) for _ in range(4))
        self.up, self.down = fl.nn.Linear(features, widening * features), fl.nn.Linear(widening * features, features)

    def attend(self, x: fl.Tensor) -> fl.Tensor:
        n, t, features = x.shape
        q, k, v = (
            layer(x).reshape(n, t, self.heads, features // self.heads).transpose(0, 2, 1, 3) for layer in (self.query, self.key, self.value)
        )
        mixed = fl.attention(q, k, v, causal=True)
        return self.output(mixed.transpose(0, 2, 1, 3).reshape(n, t, features))

    @fl.method(batch="n")
    def forward(self, x: fl.f32[fl.Tensor, "n", "t", "features=64"]) -> fl.Tensor:
        """n sequences of t positions in, the same out; no position sees a later one."""
        x = x + self.attend(self.attention_norm(x))
        return x + self.down(fl.gelu(self.up(self.network_norm(x))))


if __name__ == "__main__":
    from examples.attention_run import main

    main()
