"""Memory that knows who touched it, and says which accesses are wrong: races, bounds, reads of what nobody wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
SEVERAL, NOBODY = -2, -1


@dataclass
class Memory:
    """`last` writer and reader of every element, and the epochs of these."""

    name: str
    kind: str
    data: Array
    written: Array
    writer: Array = field(default_factory=lambda: np.empty(0))
    write_epoch: Array = field(default_factory=lambda: np.empty(0))
    reader: Array = field(default_factory=lambda: np.empty(0))
    read_epoch: Array = field(default_factory=lambda: np.empty(0))


def watched(name: str, kind: str, data: Array, written: Array) -> Memory:
    """Memory that several threads touch."""
    return Memory(name, kind, data, written, *_nobody(data.size, 4))


def _nobody(size: int, arrays: int) -> list[Array]:
    return [np.full(size, NOBODY) for _ in range(arrays)]


class WatchedMemory:
    """All memory of a block of `count` threads. `touched`: who touched what of global memory, for all blocks of a launch."""

    def __init__(self, count: int, number: tuple[int, ...], touched: dict[int, list[Array]]) -> None:
        self.count, self.number, self.touched = count, number, touched
        self.threads = np.arange(count)
        self.memory: dict[Any, Memory] = {}
        self.epochs = {"shared": 0, "global": 0}
        self.faults: list[str] = []

    def fault(self, what: str) -> None:
        if len(self.faults) < 10:
            self.faults.append(what)

    def element(self, b: Any, index: Any, active: Array, doing: str) -> tuple[Memory, Array, Array]:
        """The memory, the index clipped to it, and which threads and lanes really access it."""
        m = self.memory[b]
        index = np.broadcast_to(index, (self.count, np.shape(index)[-1] if np.ndim(index) else 1))
        size = m.data.shape[-1]
        here = np.broadcast_to(active[:, None], index.shape)
        outside = here & ((index < 0) | (index >= size))
        if outside.any():
            t, lane = np.argwhere(outside)[0]
            self.fault(f"{doing} {m.name}[{int(index[t, lane])}] of {size} by thread {int(t)}")
        return m, np.clip(index, 0, size - 1), here & ~outside

    def load(self, b: Any, index: Any, active: Array) -> Any:
        m, at, here = self.element(b, index, active, "read of")
        if m.kind == "local":
            rows = self.threads[:, None]
            if (here & ~m.written[rows, at]).any():
                self.fault(f"{m.name} is read before it is written")
            return m.data[rows, at]
        if m.kind in self.epochs:
            element, thread = at[here], np.broadcast_to(self.threads[:, None], at.shape)[here]
            epoch = self.epochs[m.kind]
            self.between_blocks(m, element, writes=False)
            if not m.written[element].all():
                self.fault(f"{m.name} is read before it is written")
            raced = (m.write_epoch[element] == epoch) & (m.writer[element] != thread)
            if raced.any():
                k = int(np.argmax(raced))
                self.fault(
                    f"{m.name}[{element[k]}] is read by thread {thread[k]} and written by {m.writer[element[k]]} without a barrier between"
                )
            others = (m.read_epoch[element] == epoch) & (m.reader[element] != thread)
            m.reader[element], m.read_epoch[element] = thread, epoch
            m.reader[element[others | (m.reader[element] != thread)]] = SEVERAL
        return m.data[at]

    def store(self, b: Any, index: Any, value: Any, active: Array) -> None:
        m, at, here = self.element(b, index, active, "write to")
        value = np.broadcast_to(value, at.shape)[here]
        element, thread = at[here], np.broadcast_to(self.threads[:, None], at.shape)[here]
        if m.kind == "local":
            m.data[thread, element], m.written[thread, element] = value, True
            return
        if m.kind in self.epochs:
            epoch = self.epochs[m.kind]
            self.between_blocks(m, element, writes=True)
            for who, epochs, verb in ((m.writer, m.write_epoch, "written"), (m.reader, m.read_epoch, "read")):
                raced = (epochs[element] == epoch) & (who[element] != thread)
                if raced.any():
                    k = int(np.argmax(raced))
                    self.fault(
                        f"{m.name}[{element[k]}] is written by thread {thread[k]} and {verb} by {who[element[k]]} without a barrier between"
                    )
            m.writer[element], m.write_epoch[element] = thread, epoch
        if len(np.unique(element)) != len(element):
            self.fault(f"{m.name}: several threads write one element")
        m.data[element] = value
        m.written[element] = True

    def between_blocks(self, m: Memory, element: Array, writes: bool) -> None:
        """Blocks run at the same time, in any order."""
        if m.kind != "global" or not self.number:
            return
        own = hash(self.number) & 0xFFFFFFFF
        writer, reader = self.touched.setdefault(m.data.ctypes.data, _nobody(m.data.size, 2))
        for who, verb in ((writer, "written"), *([(reader, "read")] if writes else [])):
            raced = (who[element] != NOBODY) & (who[element] != own)
            if raced.any():
                place, mine = element[int(np.argmax(raced))], "written" if writes else "read"
                self.fault(f"{m.name}[{place}] is {mine} by a block and {verb} by another")
        if writes:
            writer[element] = own
        else:
            reader[element] = np.where((reader[element] == NOBODY) | (reader[element] == own), own, SEVERAL)
