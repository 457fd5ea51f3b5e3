"""Folders of pictures, decoded by Pillow when they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from .dataset import Dataset, FromFile, Table
from .examples import Array, Example
from .order import Numbers
from .refusals import refused, unreadable, whole
from .sources import arranged

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


@dataclass(frozen=True, eq=False)
class Images(FromFile, Table):
    """The pictures of a folder, or of its subfolders, whose number is then the label."""

    path: Path
    height: int
    width: int
    channels: int

    @cached_property
    def found(self) -> tuple[list[Path], list[int], list[str]]:
        """Files in the order of their names, their labels, and the names of the labels. Raises RunError."""
        try:
            inside = sorted(self.path.iterdir())
        except OSError as error:
            raise unreadable(self.path, error) from None
        folders = [p for p in inside if p.is_dir() and not p.name.startswith(".")]
        plain = [p for p in inside if _is_picture(p)]
        if folders and plain:
            raise refused("R204", f"{self.path} has pictures and folders", "a folder for each label, or pictures alone")
        labelled = [(p, n) for n, folder in enumerate(folders) for p in sorted(folder.iterdir()) if _is_picture(p)]
        if not labelled and not plain:
            raise refused("R204", f"{self.path} has no pictures", f"these are {', '.join(SUFFIXES)}")
        return [p for p, _ in labelled] or plain, [n for _, n in labelled], [f.name for f in folders]

    @property
    def size(self) -> int:
        return len(self.found[0])

    def rows(self, numbers: Numbers) -> Example:
        files, labels, _ = self.found
        made = np.empty((len(numbers), self.height, self.width, self.channels), np.float32)
        for n, number in enumerate(numbers):
            made[n] = self._decoded(files[int(number)])
        return (made, np.asarray(labels, np.int32)[numbers]) if labels else (made,)

    def _decoded(self, file: Path) -> Array:
        from PIL import Image, UnidentifiedImageError

        try:
            with Image.open(file) as picture:
                fitted = picture.convert(_MODES[self.channels])
                if fitted.size != (self.width, self.height):
                    fitted = fitted.resize((self.width, self.height), Image.Resampling.BILINEAR, reducing_gap=2.0)
        except (UnidentifiedImageError, SyntaxError, ValueError) as error:
            raise refused("R202", f"{file} is no picture", str(error)) from None
        except OSError as error:
            raise refused("R202", f"{file} cannot be read", error.strerror or str(error)) from None
        return (np.asarray(fitted, np.float32) / np.float32(255)).reshape(self.height, self.width, self.channels)


def _is_picture(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")


def images(
    folder: str | Path,
    size: Any,
    channels: int = 3,
    *,
    batch_size: int | None = None,
    shuffle: int | None = None,
    drop_last: bool = False,
) -> Dataset:
    """The pictures of a folder, scaled to ``size=(height, width)``: float32 from 0 to 1, of shape [height, width, channels].

    With pictures in subfolders, one for each label, an example is (picture, label); the label, int32, is the number of the folder in the
    order of names. Otherwise it is (picture,). `channels` is 1, 3 or 4. Needs Pillow. Raises RunError for a file that is no picture when
    its turn comes.
    """
    from importlib.util import find_spec

    if find_spec("PIL") is None:
        raise refused("R206", "fl.data.images(...)", "pictures are decoded by Pillow, which is not installed", "pip install pillow")
    if channels not in _MODES:
        raise refused("R201", f"channels={channels!r}", "a picture has 1, 3 or 4")
    if not isinstance(size, tuple | list) or len(size) != 2:
        raise refused("R201", f"size={size!r}", "it is (height, width)", "size=(64, 64)")
    height, width = (whole(n, "size") for n in size)
    return arranged(Images(Path(folder), height, width, channels), batch_size, shuffle, drop_last)


__all__ = ["Images", "images"]
