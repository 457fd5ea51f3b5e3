"""Rows of text: CSV files."""

from __future__ import annotations

import csv as reader
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..dtypes import canonical
from .dataset import Dataset, FromFile, Table
from .examples import Array, Example, each
from .order import Numbers
from .refusals import refused, unreadable
from .sources import arranged

Columns = int | str | Sequence[int] | Sequence[str] | range


@dataclass(frozen=True, eq=False)
class Csv(FromFile, Table):
    """The numbers of a CSV file, read whole when the first row is asked for."""

    path: Path
    columns: Mapping[str, Columns]
    types: Mapping[str, str]
    delimiter: str = ","

    @cached_property
    def read(self) -> dict[str, Array]:
        """Name to array, a row each. Raises RunError with the file and the line."""
        try:
            with self.path.open(newline="", encoding="utf-8-sig") as file:
                return self._parsed(reader.reader(file, delimiter=self.delimiter, skipinitialspace=True, strict=True))
        except OSError as error:
            raise unreadable(self.path, error) from None
        except UnicodeDecodeError as error:
            why = f"byte {error.start} is {error.object[error.start]:#x}"
            raise refused("R202", f"{self.path} is no text in UTF-8", why) from None

    def _parsed(self, lines: Any) -> dict[str, Array]:
        rows: list[tuple[int, list[str]]] = []
        try:
            rows.extend((lines.line_num, row) for row in lines if any(cell.strip() for cell in row))
        except reader.Error as error:
            raise refused("R203", "it cannot be split into cells", str(error), file=self.path, line=lines.line_num) from None
        names: list[str] = []
        if rows and not any(map(_is_number, rows[0][1])):
            names = [cell.strip() for cell in rows.pop(0)[1]]
        if not rows:
            raise refused("R204", f"{self.path} has no rows of numbers")
        width = len(rows[0][1])
        for line, row in rows:
            if len(row) != width:
                raise refused("R203", f"{len(row)} cells", f"the first row has {width}", file=self.path, line=line)
        return {name: self._column(name, rows, names, width) for name in self.columns}

    def _column(self, name: str, rows: list[tuple[int, list[str]]], names: list[str], width: int) -> Array:
        chosen = self.columns[name]
        single = isinstance(chosen, int | str)
        at = [self._place(c, names, width) for c in _listed(chosen)]
        dtype = np.dtype(self.types[name])
        made = np.empty((len(rows), len(at)), dtype)
        number = _integer if dtype.kind in "iu" else _real
        for n, (line, row) in enumerate(rows):
            for k, c in enumerate(at):
                try:
                    made[n, k] = number(row[c])
                except (ValueError, OverflowError):
                    what = f"column {c + 1} is {row[c].strip()!r}" if row[c].strip() else f"column {c + 1} is empty"
                    raise refused("R203", what, f"{name} is {self.types[name]}", file=self.path, line=line) from None
        return made[:, 0] if single else made

    def _place(self, column: int | str, names: list[str], width: int) -> int:
        if isinstance(column, str):
            if column not in names:
                why = f"it has {', '.join(names)}" if names else "its first line is no line of names"
                raise refused("R201", f"{self.path} has no column {column!r}", why)
            return names.index(column)
        if not -width <= column < width:
            raise refused("R201", f"{self.path} has no column {column}", f"it has {width}, from 0 on")
        return column % width

    @property
    def size(self) -> int:
        return len(next(iter(self.read.values())))

    def rows(self, numbers: Numbers) -> Example:
        return each(lambda a: a[numbers], self.read)


def _listed(columns: Any) -> tuple[Any, ...]:
    return (columns,) if isinstance(columns, int | str) else tuple(columns)


def _is_number(cell: str) -> bool:
    try:
        _real(cell)
    except ValueError:
        return not cell.strip()
    return True


def _real(cell: str) -> float:
    if "_" in cell:
        raise ValueError(cell)
    return float(cell)


def _integer(cell: str) -> int:
    if "_" in cell:
        raise ValueError(cell)
    return int(cell)


def csv(
    path: str | Path,
    columns: Mapping[str, Columns],
    *,
    batch_size: int | None = None,
    shuffle: int | None = None,
    drop_last: bool = False,
    dtype: Any = "float32",
    delimiter: str = ",",
) -> Dataset:
    """The rows of a CSV file: ``fl.data.csv("housing.csv", columns={"x": range(13), "y": [13]}, batch_size=64)``.

    A column is its number from 0, or its name in a first line of names, which is found by having no numbers; several make a vector.
    `dtype` is one for all, or a mapping by name. The file is read when the first row is asked for; then RunError says file and line of a
    cell that is no such number.
    """
    if not isinstance(columns, Mapping) or not columns:
        raise refused("R201", f"columns={columns!r}", "it says which columns make each input", 'columns={"x": range(13), "y": [13]}')
    for name, chosen in columns.items():
        listed = _listed(chosen) if isinstance(chosen, int | str | Sequence) else ()
        if not listed or any(isinstance(c, bool) or not isinstance(c, int | str) for c in listed):
            raise refused("R201", f"columns of {name}: {chosen!r}", "columns are numbers from 0, or names", "[13]", "range(13)")
    types = {name: canonical(dtype.get(name, "float32") if isinstance(dtype, Mapping) else dtype) for name in columns}
    table = Csv(Path(path), dict(columns), types, delimiter)
    return arranged(table, batch_size, shuffle, drop_last)


__all__ = ["Csv", "csv"]
