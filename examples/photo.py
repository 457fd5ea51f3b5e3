"""A photograph, sharpened, and its corners: blur, unsharp mask, Harris. `python -m examples.photo` builds it and writes a picture."""

from __future__ import annotations

import fluorite as fl

Gray = fl.f32[fl.Tensor, "h", "w"]


@fl.function
def blur(image: Gray) -> fl.Tensor:
    image = fl.edge(image)
    rows = fl.edge(fl.stage(lambda y, x: (image[y, x - 1] + image[y, x] + image[y, x + 1]) / 3, name="rows"))
    return fl.stage(lambda y, x: (rows[y - 1, x] + rows[y, x] + rows[y + 1, x]) / 3, name="blur")


@fl.function
def unsharp(image: Gray, amount: fl.f32[fl.Tensor]) -> fl.Tensor:
    soft = blur(image)
    return fl.stage(lambda y, x: fl.clamp(image[y, x] + amount[()] * (image[y, x] - soft[y, x]), 0, 1), name="unsharp")


@fl.function
def harris(image: Gray) -> fl.Tensor:
    image = fl.edge(image)
    gx = fl.edge(fl.stage(lambda y, x: image[y, x + 1] - image[y, x - 1], name="gx"))
    gy = fl.edge(fl.stage(lambda y, x: image[y + 1, x] - image[y - 1, x], name="gy"))

    def window(a: fl.Tensor, b: fl.Tensor, name: str) -> fl.Tensor:
        return fl.stage(
            lambda y, x: fl.sum(lambda dy, dx: a[y + dy, x + dx] * b[y + dy, x + dx], over={"dy": (-1, 2), "dx": (-1, 2)}), name=name
        )

    xx, yy, xy = window(gx, gx, "xx"), window(gy, gy, "yy"), window(gx, gy, "xy")
    return fl.stage(lambda y, x: xx[y, x] * yy[y, x] - xy[y, x] ** 2 - 0.04 * (xx[y, x] + yy[y, x]) ** 2, name="corners")


def photo(image: Gray, amount: fl.f32[fl.Tensor]) -> dict[str, fl.Tensor]:
    """`image` has values from 0 to 1; `sharp` has too. `corners` is large where two edges meet."""
    sharp = unsharp(image, amount)
    return {"sharp": sharp, "corners": harris(sharp)}


if __name__ == "__main__":
    from examples.photo_run import main

    main()
