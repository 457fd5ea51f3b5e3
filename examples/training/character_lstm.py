"""A character model: an LSTM (Hochreiter and Schmidhuber, 1997) learns the Zen of Python, which comes with Python, by heart."""

from __future__ import annotations

import codecs
import contextlib
import io

import fluorite as fl
import numpy as np
from fluorite import nn

LENGTH = 24


def zen() -> str:
    """The 856 letters of PEP 20, by Tim Peters."""
    with contextlib.redirect_stdout(io.StringIO()):  # importing it prints it
        import this
    return codecs.decode(this.s, "rot13")


TEXT = zen()
LETTERS = sorted(set(TEXT))
IDS = np.array([LETTERS.index(letter) for letter in TEXT], np.int32)


class CharacterLstm(fl.Program):
    """The letter after each letter of a text."""

    def __init__(self, batch_size: int = 32) -> None:
        windows = np.lib.stride_tricks.sliding_window_view(IDS, LENGTH + 1)
        self.data = fl.data.arrays(windows[:, :-1], windows[:, 1:], batch_size=batch_size, shuffle=0)
        self.table = fl.param(init=fl.init.normal(1.0), letter=len(LETTERS), features=24)
        self.lstm, self.last = nn.LSTM(24, 64, batch_first=True), nn.Linear(64, len(LETTERS))
        self.optimizer = fl.optim.Adam(fl.optim.cosine(0.02, 160), clip_norm=1.0)

    def scores(self, letters: fl.Tensor) -> fl.Tensor:
        """Of each letter, after each position [n, t]."""
        hidden, _ = self.lstm(fl.embedding(letters, self.table))
        return self.last(hidden)

    @fl.method(batch="n", training=True, reader="data")
    def train_step(self, letters: fl.i32[fl.Tensor, "n", LENGTH], after: fl.i32[fl.Tensor, "n", LENGTH]) -> dict[str, fl.Tensor]:
        """One step against the cross entropy, which is told in bits for each letter."""
        scores = fl.reshape(self.scores(letters), (letters.shape[0] * LENGTH, len(LETTERS)))
        loss = fl.cross_entropy(scores, fl.reshape(after, (letters.shape[0] * LENGTH,)), name="loss")
        self.optimizer.minimize(loss)
        return {"bits": loss / np.log(2.0)}

    @fl.method(batch="n")
    def next(self, letters: fl.i32[fl.Tensor, "n", LENGTH]) -> fl.Tensor:
        """The most likely letter after the last one."""
        return fl.argmax(self.scores(letters)[:, LENGTH - 1], axis=1)
