"""What the methods of a Program read: the datasets that its attributes hold, or what the caller puts in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..graph import Graph
from ..modules import Program
from .dataset import Dataset
from .refusals import refused
from .sources import dataset
from .stream import Stream


def streams(program: Any, graph: Graph, batch_size: int | None = None, data: Any = None) -> dict[str, Stream]:
    """By method, what it reads; each from its own beginning. `data` stands for what the Program holds: a dataset, an iterable, the path of
    a file like the one there, or a mapping of these by reader. An attribute that is None has nothing to read yet. Raises RunError."""
    readers = {m.name: m.reader for m in graph.methods if m.reader is not None} if isinstance(program, Program) else {}
    names = list(dict.fromkeys(readers.values()))
    given = _given(data, names, graph.name)
    if batch_size is not None and not names:
        raise refused("R207", f"batch_size={batch_size!r}", f"{graph.name} has no method with a reader", '@fl.method(reader="data")')
    held = {name: getattr(program, name) for name in names}
    known = [name for name in names if held[name] is not None or given.get(name) is not None]
    found = {name: _source(held[name], given.get(name), name, batch_size) for name in known}
    return {method: found[name].stream() for method, name in readers.items() if name in found}


def _given(data: Any, names: list[str], program: str) -> dict[str, Any]:
    if data is None:
        return {}
    known = f"the readers of {program} are {', '.join(names)}" if names else f"{program} has no method with a reader"
    if not isinstance(data, Mapping):
        if len(names) == 1:
            return {names[0]: data}
        raise refused("R207", "data=...", known, *(f'data={{"{name}": ...}}' for name in names))
    if unknown := [name for name in data if name not in names]:
        raise refused("R207", f"data={{{unknown[0]!r}: ...}}", known, *(f'data={{"{name}": ...}}' for name in names))
    return dict(data)


def _source(held: Any, given: Any, name: str, batch_size: int | None) -> Dataset:
    if isinstance(given, str | Path):
        if held is None:
            raise refused("R207", f"{name}={str(given)!r}", f"self.{name} is None, so nothing says how it is read", "data=fl.data.csv(...)")
        found = dataset(held).moved(given)
    else:
        found = dataset(held if given is None else given)
    return found if batch_size is None else found.rebatched(batch_size)


__all__ = ["streams"]
