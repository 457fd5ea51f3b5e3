"""Local Laplacian filters (Paris, Hasinoff, Kautz 2011): more or less local contrast without halos, by pyramids of remapped images."""

from __future__ import annotations

from typing import Any

import fluorite as fl

DEPTH = 8  # levels of the pyramids
TONES = 8  # brightnesses at which the image is remapped


def local_laplacian(image: fl.u16[fl.Tensor, 3, "h", "w"], alpha: fl.f32[fl.Tensor], beta: fl.f32[fl.Tensor]) -> fl.Tensor:
    """`alpha` is the contrast of details, divided by TONES - 1; `beta` that of large edges. (0, 1) changes nothing."""
    _, h, w = image.shape
    clamped = fl.edge(image)
    rim = _rim(0)

    def floating(c: Any, y: Any, x: Any) -> Any:
        return fl.cast(clamped[c, y, x], fl.f32) / 65535.0

    def luminance(y: Any, x: Any) -> Any:
        r, g, b = (floating(c, y - rim, x - rim) for c in range(3))
        return 0.299 * r + 0.587 * g + 0.114 * b

    gray = fl.stage(luminance, name="gray", extents={"y": _seen(h), "x": _seen(w)})
    steps = 256 * (TONES - 1)
    remap = fl.stage(lambda i: _detail_curve(fl.cast(i - steps, fl.f32) / 256.0, alpha[()]), name="remap", extents={"i": 2 * steps + 1})

    def toned(k: Any, y: Any, x: Any) -> Any:
        step = fl.clamp(fl.cast(gray[y, x] * float(steps), fl.i32), 0, steps)
        level = fl.cast(k, fl.f32) * (1 / (TONES - 1))
        return beta[()] * (gray[y, x] - level) + level + remap[step - 256 * k + steps]

    tones, plain = [fl.stage(toned, name="tones0", extents={"k": TONES})], [gray]
    for j in range(1, DEPTH):
        tones.append(_halved(tones[-1], f"tones{j}"))
        plain.append(_halved(plain[-1], f"plain{j}"))
    result = _level(DEPTH - 1, plain, tones, None, (h, w))
    for j in reversed(range(DEPTH - 1)):
        result = _level(j, plain, tones, result, (h, w))

    def coloured(c: Any, y: Any, x: Any) -> Any:
        value = result[y, x] * (floating(c, y, x) + 0.01) / (gray[y + rim, x + rim] + 0.01)
        return fl.cast(fl.clamp(value, 0.0, 1.0) * 65535.0, fl.u16)

    return fl.stage(coloured, name="filtered", extents={"c": 3, "y": h, "x": w})


def _detail_curve(x: Any, alpha: Any) -> Any:
    return alpha * x * fl.exp(-x * x / 2.0)


def _rim(j: int) -> int:
    """Pixels before the first one of the picture that the pyramids hold at level j, since the levels above read them."""
    return int(2 ** (DEPTH - j) - 1)


def _seen(n: Any) -> Any:
    """Pixels along one side of level 0, rims included, for a picture of n."""
    top = 2 ** (DEPTH - 1)
    return (n - 2 + top) // top * top + 4 * top - 2


def _halved(image: fl.Tensor, name: str) -> fl.Tensor:
    """Every second pixel of the image under a 1 3 3 1 filter, along both axes."""

    def narrow(*at: Any) -> Any:
        *k, y, x = at
        return (image[(*k, y, 2 * x)] + 3.0 * (image[(*k, y, 2 * x + 1)] + image[(*k, y, 2 * x + 2)]) + image[(*k, y, 2 * x + 3)]) / 8.0

    across = fl.stage(_named(narrow, image), name=f"{name}_x")

    def low(*at: Any) -> Any:
        *k, y, x = at
        rows = [across[(*k, 2 * y + d, x)] for d in range(4)]
        return (rows[0] + 3.0 * (rows[1] + rows[2]) + rows[3]) / 8.0

    return fl.stage(_named(low, image), name=name)


def _named(body: Any, image: fl.Tensor) -> Any:
    """The body with the image's number of axes."""
    return (lambda k, y, x: body(k, y, x)) if len(image.shape) == 3 else (lambda y, x: body(y, x))


def _doubled(read: Any, y: Any, x: Any) -> Any:
    """The pixel (y, x) of an image of twice the size, by bilinear interpolation."""

    def row(y: Any) -> Any:
        return 0.25 * read(y, x // 2 - 1 + 2 * (x % 2)) + 0.75 * read(y, x // 2)

    return 0.25 * row(y // 2 - 1 + 2 * (y % 2)) + 0.75 * row(y // 2)


def _level(j: int, plain: list[fl.Tensor], tones: list[fl.Tensor], above: fl.Tensor | None, picture: tuple[Any, Any]) -> fl.Tensor:
    """Level j of the result: the details of the two nearest tones, on top of the level above. Above 0 with a rim of one pixel."""
    first = 0 if j == 0 else 1

    def at(image: fl.Tensor, rim: int) -> Any:
        return lambda y, x, *k: image[(*k, y + rim, x + rim)]

    mine, tone = at(plain[j], _rim(j)), at(tones[j], _rim(j))

    def detail(k: Any, y: Any, x: Any) -> Any:
        if above is None:
            return tone(y, x, k)
        coarse = at(tones[j + 1], _rim(j + 1))
        return tone(y, x, k) - _doubled(lambda y, x: coarse(y, x, k), y, x)

    def pixel(y: Any, x: Any) -> Any:
        y, x = y - first, x - first
        level = mine(y, x) * float(TONES - 1)
        k = fl.clamp(fl.cast(level, fl.i32), 0, TONES - 2)
        part = level - fl.cast(k, fl.f32)
        new = (1.0 - part) * detail(k, y, x) + part * detail(k + 1, y, x)
        return new if above is None else _doubled(at(above, 1), y, x) + new

    def size(n: Any) -> Any:
        return n if j == 0 else (n - 2 + 2**j) // 2**j + 2

    return fl.stage(pixel, name=f"result{j}", extents={"y": size(picture[0]), "x": size(picture[1])})
