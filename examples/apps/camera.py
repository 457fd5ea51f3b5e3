"""From the raw pixels of a camera to a picture: hot pixels, demosaicing along edges, colours and a tone curve (after FCam, 2010)."""

from __future__ import annotations

from typing import Any

import fluorite as fl

Raw = fl.u16[fl.Tensor, "h", "w"]
MARGIN = (12, 16)  # raw rows and columns outside the picture on each side
BLACK, WHITE, GAMMA, CONTRAST, KELVIN = 25, 1023, 2.0, 50.0, 3700.0


def camera(raw: Raw, warm: fl.f32[fl.Tensor, 3, 4], cold: fl.f32[fl.Tensor, 3, 4]) -> fl.Tensor:
    """`raw` has a green pixel first, red right of it, blue below; values to 1023. `warm` and `cold` calibrate 3200 K and 7000 K."""
    clean = hot_pixels(raw)
    red, green, blue = demosaic(clean)
    return curve(colours(red, green, blue, matrix(warm, cold)))


def mean2(a: Any, b: Any) -> Any:
    """Rounded up."""
    return fl.cast((fl.cast(a, fl.i32) + b + 1) // 2, fl.i16)


def apart(a: Any, b: Any) -> Any:
    return fl.cast(fl.abs(fl.cast(a, fl.i32) - b), fl.u16)


def hot_pixels(raw: fl.Tensor) -> fl.Tensor:
    """No pixel is brighter than the brightest of its four neighbours of the same colour. Starts four pixels outside the picture."""
    top, left = MARGIN[0] - 4, MARGIN[1] - 4

    def clean(y: Any, x: Any) -> Any:
        def at(dy: int, dx: int) -> Any:
            return fl.cast(raw[y + top + dy, x + left + dx], fl.i16)

        brightest = fl.maximum(fl.maximum(at(0, -2), at(0, 2)), fl.maximum(at(-2, 0), at(2, 0)))
        return fl.clamp(at(0, 0), 0, brightest)

    h, w = raw.shape
    return fl.stage(clean, name="clean", extents={"y": h - 2 * top, "x": w - 2 * left})


def demosaic(clean: fl.Tensor) -> tuple[fl.Tensor, fl.Tensor, fl.Tensor]:
    """Three colours at every site. A plane of one colour at one kind of site has half the pixels on both axes; _r is 'at red sites'.

    All planes start two cells outside the picture. Green goes along the direction in which it changes least; red and blue follow green.
    """

    def plane(name: str, dy: int, dx: int) -> fl.Tensor:
        return fl.stage(lambda y, x: clean[2 * y + dy, 2 * x + dx], name=name)

    g_gr, r_r, b_b, g_gb = plane("g_gr", 0, 0), plane("r_r", 0, 1), plane("b_b", 1, 0), plane("g_gb", 1, 1)

    def along(a: Any, b: Any, c: Any, d: Any) -> Any:
        """The mean of the pair that differs less; the first pair where they are alike."""
        return fl.where(apart(c, d) < apart(a, b), mean2(c, d), mean2(a, b))

    # one cell outside the picture
    g_r = fl.stage(lambda y, x: along(g_gb[y, x + 1], g_gb[y + 1, x + 1], g_gr[y + 1, x + 2], g_gr[y + 1, x + 1]), name="g_r")
    g_b = fl.stage(lambda y, x: along(g_gr[y + 2, x + 1], g_gr[y + 1, x + 1], g_gb[y + 1, x], g_gb[y + 1, x + 1]), name="g_b")

    def follow(green: Any, green_mean: Any, other_mean: Any) -> Any:
        """The other colour, corrected by what green's own mean would miss here."""
        return green - green_mean + other_mean

    def site(colour: fl.Tensor, inner: int) -> Any:
        """Reads relative to the picture's cell (y, x)."""
        return lambda y, x: colour[y + inner, x + inner]

    G_r, G_b, G_gr, G_gb, R, B = site(g_r, 1), site(g_b, 1), site(g_gr, 2), site(g_gb, 2), site(r_r, 2), site(b_b, 2)

    def r_gr(y: Any, x: Any) -> Any:
        return follow(G_gr(y, x), mean2(G_r(y, x), G_r(y, x - 1)), mean2(R(y, x - 1), R(y, x)))

    def b_gr(y: Any, x: Any) -> Any:
        return follow(G_gr(y, x), mean2(G_b(y, x), G_b(y - 1, x)), mean2(B(y, x), B(y - 1, x)))

    def r_gb(y: Any, x: Any) -> Any:
        return follow(G_gb(y, x), mean2(G_r(y, x), G_r(y + 1, x)), mean2(R(y, x), R(y + 1, x)))

    def b_gb(y: Any, x: Any) -> Any:
        return follow(G_gb(y, x), mean2(G_b(y, x), G_b(y, x + 1)), mean2(B(y, x), B(y, x + 1)))

    def diagonal(green: Any, other_green: Any, other: Any, rising: Any, falling: Any) -> Any:
        (p0, p1), (n0, n1) = rising, falling
        p = follow(green, mean2(other_green(*p0), other_green(*p1)), mean2(other(*p0), other(*p1)))
        n = follow(green, mean2(other_green(*n0), other_green(*n1)), mean2(other(*n0), other(*n1)))
        return fl.where(apart(other(*p0), other(*p1)) < apart(other(*n0), other(*n1)), p, n)

    def r_b(y: Any, x: Any) -> Any:
        return diagonal(G_b(y, x), G_r, R, ((y, x), (y + 1, x - 1)), ((y, x - 1), (y + 1, x)))

    def b_r(y: Any, x: Any) -> Any:
        return diagonal(G_r(y, x), G_b, B, ((y, x), (y - 1, x + 1)), ((y, x + 1), (y - 1, x)))

    def woven(name: str, gr: Any, r: Any, b: Any, gb: Any) -> fl.Tensor:
        """The picture's pixels from those of its four kinds of site."""

        def pixel(y: Any, x: Any) -> Any:
            cell = (y // 2, x // 2)
            even = fl.where(x % 2 == 0, gr(*cell), r(*cell))
            odd = fl.where(x % 2 == 0, b(*cell), gb(*cell))
            return fl.where(y % 2 == 0, even, odd)

        h, w = clean.shape
        return fl.stage(pixel, name=name, extents={"y": h - 8, "x": w - 8})

    return woven("red", r_gr, R, r_b, r_gb), woven("green", G_gr, G_r, G_b, G_gb), woven("blue", b_gr, b_r, B, b_gb)


def matrix(warm: fl.Tensor, cold: fl.Tensor) -> fl.Tensor:
    """Between the two calibrations by inverse temperature, with 8 bits after the point."""
    share = (1 / KELVIN - 1 / 3200) / (1 / 7000 - 1 / 3200)
    return fl.stage(
        lambda i, j: fl.cast(fl.cast((warm[i, j] * share + cold[i, j] * (1 - share)) * 256.0, fl.i16), fl.i32), name="matrix"
    )


def colours(red: fl.Tensor, green: fl.Tensor, blue: fl.Tensor, matrix: fl.Tensor) -> fl.Tensor:
    def corrected(c: Any, y: Any, x: Any) -> Any:
        total = matrix[c, 3] + matrix[c, 0] * red[y, x] + matrix[c, 1] * green[y, x] + matrix[c, 2] * blue[y, x]
        return fl.cast(total // 256, fl.i16)

    return fl.stage(corrected, name="corrected", extents={"c": 3})


def curve(image: fl.Tensor) -> fl.Tensor:
    """Gamma, then a contrast curve of two parabolas, through a table of the 1024 values that a pixel may have."""
    b = 2.0 - 2.0 ** (CONTRAST / 100)
    a = 2.0 - 2.0 * b

    def tone(i: Any) -> Any:
        linear = fl.clamp(fl.cast(i - BLACK, fl.f32) / (WHITE - BLACK), 0.0, 1.0)
        g = linear ** (1 / GAMMA)
        z = fl.where(g > 0.5, 1 - (a * (1 - g) * (1 - g) + b * (1 - g)), a * g * g + b * g)
        value = fl.cast(fl.clamp(z * 255 + 0.5, 0.0, 255.0), fl.u8)
        return fl.where(i <= BLACK, 0, fl.where(i > WHITE, 255, value))

    table = fl.stage(tone, name="tone", extents={"i": 1024}, dtype=fl.u8)
    return fl.stage(lambda c, y, x: table[fl.clamp(image[c, y, x], 0, 1023)], name="picture")
