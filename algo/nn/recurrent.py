"""Recurrent layers: RNN, LSTM and GRU, by the formulas and in the order of gates of PyTorch. Weights are [inputs, gates * hidden]."""

from __future__ import annotations

from functools import partial
from typing import Any

from .. import init as initial
from ..expr import Expr, refuse, unary
from ..ops import add, concatenate, matmul, maximum, stack, tanh, zeros
from ..program import Module, param
from ..scanning import scan
from ..tensor import Tensor
from ..trace import build_stage

ACTIVATIONS = ("tanh", "relu")


class _Cell(Module):
    """What the cells share: parameters w_ih [in, gates], w_hh [hidden, gates], b_ih and b_hh [gates]; a carry of one or two [n, hidden]."""

    gates = 1
    carries = 1

    def __init__(self, inputs: int, hidden: int, *, bias: bool = True, init: Any = None, dtype: Any = "float32") -> None:
        start = init or initial.uniform(-(hidden**-0.5), hidden**-0.5)
        wide = self.gates * hidden
        self.w_ih = param(init=start, dtype=dtype, in_=inputs, gates=wide)
        self.w_hh = param(init=start, dtype=dtype, hidden=hidden, gates=wide)
        self.b_ih = param(init=start, dtype=dtype, gates=wide) if bias else None
        self.b_hh = param(init=start, dtype=dtype, gates=wide) if bias else None
        self.hidden, self.dtype = hidden, dtype

    def forward(self, x: Tensor, state: Any) -> Any:
        """The carry after a step: x [n, inputs], state [n, hidden], for an LSTM the pair (h, c) of them."""
        fed, kept = matmul(x, self.w_ih, name="fed"), matmul(state[0] if self.carries == 2 else state, self.w_hh, name="kept")
        if self.b_ih is not None and self.b_hh is not None:
            fed, kept = add(fed, self.b_ih, name="from_input"), add(kept, self.b_hh, name="from_state")
        return self.step(fed, kept, state)

    def step(self, from_input: Tensor, from_state: Tensor, state: Any) -> Any:
        """The carry, from what the input and what the last state add to each gate [n, gates * hidden]."""
        raise NotImplementedError

    def gate(self, k: int, of: Tensor, n: Expr, j: Expr) -> Any:
        return of[n, j + k * self.hidden]

    def made(self, name: str, like: Tensor, value: Any) -> Tensor:
        """One stage [n, hidden] of the step."""
        return build_stage(["n", "j"], value, name=name, extents={"n": like.shape[0], "j": self.hidden})

    def start(self, n: Any) -> Any:
        """The carry before the first step: zeros."""
        first = [zeros((n, self.hidden), dtype=self.dtype) for _ in range(self.carries)]
        return first[0] if self.carries == 1 else tuple(first)


class RNNCell(_Cell):
    """h' = tanh(x w_ih + b_ih + h w_hh + b_hh), or relu with `activation="relu"`."""

    def __init__(
        self, inputs: int, hidden: int, *, activation: str = "tanh", bias: bool = True, init: Any = None, dtype: Any = "float32"
    ) -> None:
        if activation not in ACTIVATIONS:
            raise refuse("A304", f"RNN with activation={activation!r}", "it is tanh or relu", *ACTIVATIONS)
        super().__init__(inputs, hidden, bias=bias, init=init, dtype=dtype)
        self.activation = activation

    def step(self, from_input: Tensor, from_state: Tensor, state: Any) -> Any:
        gates = add(from_input, from_state, name="gates")
        return tanh(gates, name="h") if self.activation == "tanh" else maximum(gates, 0, name="h")


class GRUCell(_Cell):
    """r = s(r_x + r_h), z = s(z_x + z_h), n = tanh(n_x + r * n_h), h' = (1 - z) * n + z * h; s is the sigmoid, gates in this order."""

    gates = 3

    def step(self, from_input: Tensor, from_state: Tensor, state: Any) -> Any:
        def value(n: Expr, j: Expr) -> Any:
            (a, b), (c, d), (e, f) = ((self.gate(k, from_input, n, j), self.gate(k, from_state, n, j)) for k in range(3))
            reset, update = unary("sigmoid", a + b), unary("sigmoid", c + d)
            return (1 - update) * unary("tanh", e + reset * f) + update * state[n, j]

        return self.made("h", from_state, value)


class LSTMCell(_Cell):
    """c' = s(f) * c + s(i) * tanh(g), h' = s(o) * tanh(c'); s is the sigmoid, gates in the order i, f, g, o."""

    gates = 4
    carries = 2

    def step(self, from_input: Tensor, from_state: Tensor, state: Any) -> Any:
        _, cell = state
        gates = add(from_input, from_state, name="gates")

        def memory(n: Expr, j: Expr) -> Any:
            i, f, g = (self.gate(k, gates, n, j) for k in range(3))
            return unary("sigmoid", f) * cell[n, j] + unary("sigmoid", i) * unary("tanh", g)

        c = self.made("c", gates, memory)
        h = self.made("h", gates, lambda n, j: unary("sigmoid", self.gate(3, gates, n, j)) * unary("tanh", c[n, j]))
        return h, c


class _Layers(Module):
    """Layers of cells over a sequence, forward or both ways."""

    cell: type[_Cell] = RNNCell

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 1,
        *,
        bidirectional: bool = False,
        reverse: bool = False,
        batch_first: bool = False,
        **cell: Any,
    ) -> None:
        ways = [False, True] if bidirectional else [reverse]
        widths = [inputs, *[hidden * len(ways)] * (layers - 1)]
        self.cells = [self.cell(w, hidden, **cell) for w in widths for _ in ways]
        self.ways, self.axis = ways, 1 if batch_first else 0

    def forward(self, x: Tensor, state: Any = None, lengths: Any = None) -> tuple[Tensor, Any]:
        """(y, state after the last step): x [t, n, inputs] gives y [t, n, hidden], or [n, t, ...] with `batch_first`.

        Going both ways, y holds the forward half and the backward half side by side. `state` is [layers * ways, n, hidden] (zeros if left
        out), for an LSTM the pair (h, c) of them. `lengths` [n] are the steps that each sequence has: beyond them y is 0.
        """
        last: list[Any] = []
        for n in range(0, len(self.cells), len(self.ways)):
            outputs = []
            for k, (cell, reverse) in enumerate(zip(self.cells[n : n + len(self.ways)], self.ways, strict=True)):
                start = self._state(cell, state, n + k, x)
                step = partial(_step, cell)
                carry, y = scan(step, start, x, axis=self.axis, reverse=reverse, lengths=lengths)
                outputs.append(y)
                last.append(carry)
            x = outputs[0] if len(outputs) == 1 else concatenate(outputs, axis=-1)
        if self.cell.carries == 1:
            return x, stack(last)
        return x, tuple(stack([s[k] for s in last]) for k in range(2))

    def _state(self, cell: _Cell, state: Any, k: int, x: Tensor) -> Any:
        if state is None:
            return cell.start(x.shape[1 - self.axis])
        return tuple(s[k] for s in state) if self.cell.carries == 2 else state[k]


def _step(cell: _Cell, state: Any, x: Tensor) -> tuple[Any, Tensor]:
    new = cell(x, state)
    return new, new[0] if cell.carries == 2 else new


class RNN(_Layers):
    """Layers of RNNCell: nn.RNN(inputs, hidden, layers, activation=, bidirectional=, reverse=, batch_first=, bias=)."""

    cell = RNNCell


class LSTM(_Layers):
    """Layers of LSTMCell, as nn.RNN; the state is a pair (h, c)."""

    cell = LSTMCell


class GRU(_Layers):
    """Layers of GRUCell, as nn.RNN."""

    cell = GRUCell


__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]
