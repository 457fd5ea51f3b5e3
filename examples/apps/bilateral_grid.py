"""The bilateral grid (Chen, Paris, Durand 2007): smooth an image but not its edges, in a coarse grid with brightness as third dimension."""

from __future__ import annotations

from typing import Any

import fluorite as fl

CELL = 8  # pixels of one cell of the grid, on both axes
LEVELS = 10  # cells of brightness between 0 and 1


def bilateral_grid(image: fl.f32[fl.Tensor, "h", "w"]) -> fl.Tensor:
    """`image` has values from 0 to 1. The grid has two cells more than the image needs on every side, for the blur to read."""
    h, w = image.shape
    bright = fl.stage(lambda y, x: fl.clamp(image[y, x], 0.0, 1.0), name="bright")
    level = fl.stage(lambda y, x: fl.cast(bright[y, x] * LEVELS + 0.5, fl.i32), name="level")
    brights, levels = fl.edge(bright), fl.edge(level)

    def cell(c: Any, z: Any, y: Any, x: Any) -> Any:
        def inside(dy: Any, dx: Any) -> Any:
            at = (y - 2) * CELL + dy - CELL // 2, (x - 2) * CELL + dx - CELL // 2
            return fl.where(levels[at] == z, fl.where(c == 0, brights[at], 1.0), 0.0)

        return fl.sum(inside, over={"dy": CELL, "dx": CELL})

    rows, columns = (h - 1) // CELL + 2, (w - 1) // CELL + 2
    grid = fl.stage(cell, name="grid", extents={"c": 2, "z": LEVELS + 1, "y": rows + 4, "x": columns + 4})
    deep = fl.constant(grid, 0.0)

    def blurred(read: Any) -> Any:
        return read(-2) + 4 * read(-1) + 6 * read(0) + 4 * read(1) + read(2)

    blur_z = fl.stage(
        lambda c, z, y, x: blurred(lambda d: deep[c, z + d, y, x]),
        name="blur_z",
        extents={"c": 2, "z": LEVELS + 2, "y": rows + 4, "x": columns + 4},
    )
    blur_x = fl.stage(lambda c, z, y, x: blurred(lambda d: blur_z[c, z, y, x + 2 + d]), name="blur_x")
    blur_y = fl.stage(lambda c, z, y, x: blurred(lambda d: blur_x[c, z, y + 2 + d, x]), name="blur_y")

    def lerp(a: Any, b: Any, t: Any) -> Any:
        return a + (b - a) * t

    def within(position: Any) -> Any:
        """Where in its cell a pixel lies, from 0 to 1."""
        return fl.cast(position % CELL, fl.f32) / CELL

    across = fl.stage(
        lambda c, z, y, x: lerp(blur_y[c, z, y, x // CELL], blur_y[c, z, y, x // CELL + 1], within(x)),
        name="across",
        extents={"c": 2, "z": LEVELS + 2, "y": rows, "x": w},
    )

    def interpolated(c: Any, y: Any, x: Any) -> Any:
        depth = bright[y, x] * LEVELS
        z = fl.cast(depth, fl.i32)

        def plane(z: Any) -> Any:
            return lerp(across[c, z, y // CELL, x], across[c, z, y // CELL + 1, x], within(y))

        return lerp(plane(z), plane(z + 1), depth - fl.cast(z, fl.f32))

    sampled = fl.stage(interpolated, name="sampled", extents={"c": 2})
    return fl.stage(lambda y, x: sampled[0, y, x] / sampled[1, y, x], name="smooth")
