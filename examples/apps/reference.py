"""The applications in plain NumPy, written from their papers' formulas: what the compiled ones are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from .settings import BLACK, CELL, CONTRAST, DEPTH, GAMMA, KELVIN, LEVELS, MARGIN, PATCH, SEARCH, STAGES, TONES, WHITE

Array = np.ndarray[Any, Any]
F32 = np.float32


def stencil_chain(image: Array) -> Array:
    for _ in range(STAGES):
        h, w = image.shape[0] - 4, image.shape[1] - 4
        terms = [np.uint16((i + 1) * (j + 1)) * image[j : j + h, i : i + w] for i in range(5) for j in range(5)]
        image = np.sum(terms, axis=0, dtype=np.uint16)
    return image


def bilateral_grid(image: Array) -> Array:
    h, w = image.shape
    value = np.clip(image, 0, 1)
    rows, columns = (h - 1) // CELL + 6, (w - 1) // CELL + 6
    y = np.arange(rows * CELL) - 2 * CELL - CELL // 2
    x = np.arange(columns * CELL) - 2 * CELL - CELL // 2
    wide = value[np.clip(y, 0, h - 1)][:, np.clip(x, 0, w - 1)]
    z = (wide * F32(LEVELS) + F32(0.5)).astype(np.int32)
    cell = (np.arange(rows * CELL)[:, None] // CELL) * columns + np.arange(columns * CELL) // CELL
    place = (z * rows * columns + cell).ravel()
    grid = np.stack([np.bincount(place, weights, (LEVELS + 1) * rows * columns) for weights in (wide.ravel(), None)])
    grid = np.pad(grid.reshape(2, LEVELS + 1, rows, columns), ((0, 0), (2, 3), (0, 0), (0, 0)))
    for axis in (1, 3, 2):
        n = grid.shape[axis] - 4
        grid = sum(k * np.take(grid, range(d, d + n), axis) for d, k in enumerate((1, 4, 6, 4, 1)))
    depth = value * F32(LEVELS)
    k = depth.astype(np.int32)
    y, x = np.arange(h)[:, None], np.arange(w)[None]
    out = np.zeros((2, h, w))
    for dz in (0, 1):
        for dy in (0, 1):
            for dx in (0, 1):
                tz, ty, tx = depth - k, y % CELL / CELL, x % CELL / CELL
                share = abs(1 - dz - tz) * abs(1 - dy - ty) * abs(1 - dx - tx)
                out += share * grid[:, k + dz, y // CELL + dy, x // CELL + dx]
    return (out[0] / out[1]).astype(F32)


def nl_means(image: Array, sigma: Array) -> Array:
    _, h, w = image.shape
    p, s = PATCH // 2, SEARCH // 2
    rim = np.pad(image, ((0, 0), (p + s, p + s), (p + s, p + s)), mode="edge")
    inner = np.pad(image, ((0, 0), (p, p), (p, p)), mode="edge")
    sums, total = np.zeros(image.shape), np.zeros((h, w))
    for sy in range(SEARCH):
        for sx in range(SEARCH):
            moved = rim[:, sy : sy + h + 2 * p, sx : sx + w + 2 * p]
            apart = ((inner - moved) ** 2).sum(0, dtype=np.float64)
            rows = sum(apart[k : k + h] for k in range(PATCH))
            weight = np.exp(-sum(rows[:, k : k + w] for k in range(PATCH)) / (float(sigma) * PATCH) ** 2)
            sums += weight * moved[:, p : p + h, p : p + w]
            total += weight
    return np.clip(sums / total, 0, 1).astype(F32)


def camera(raw: Array, warm: Array, cold: Array) -> Array:
    clean = _clean(raw.astype(np.int16))
    planes = {k: clean[dy::2, dx::2].astype(np.int32) for k, dy, dx in (("gr", 0, 0), ("r", 0, 1), ("b", 1, 0), ("gb", 1, 1))}
    n, m = ((s - 2 * g) // 2 for s, g in zip(raw.shape, MARGIN, strict=True))

    def at(plane: str | Array, dy: int = 0, dx: int = 0) -> Array:
        """The picture's cells with one more around, moved."""
        a = planes[plane] if isinstance(plane, str) else plane
        first = (a.shape[0] - n) // 2
        return a[first + dy : first + dy + n, first + dx : first + dx + m]

    def mean(a: Array, b: Array) -> Array:
        return (a + b + 1) // 2

    gr, gb, r, b = (planes[k] for k in ("gr", "gb", "r", "b"))
    near = slice(1, -1)

    def green(up: tuple[Array, Array], left: tuple[Array, Array]) -> Array:
        return np.where(abs(left[0] - left[1]) < abs(up[0] - up[1]), mean(*left), mean(*up))

    g_r = green((gb[:-2, near], gb[near, near]), (gr[near, 2:], gr[near, near]))
    g_b = green((gr[2:, near], gr[near, near]), (gb[near, :-2], gb[near, near]))
    red, grn, blue = (np.empty((2 * n, 2 * m), np.int32) for _ in range(3))
    red[::2, 1::2], grn[::2, 1::2] = at(r), at(g_r)
    blue[1::2, ::2], grn[1::2, ::2] = at(b), at(g_b)
    grn[::2, ::2], grn[1::2, 1::2] = at(gr), at(gb)
    red[::2, ::2] = at(gr) - mean(at(g_r), at(g_r, 0, -1)) + mean(at(r), at(r, 0, -1))
    blue[::2, ::2] = at(gr) - mean(at(g_b), at(g_b, -1)) + mean(at(b), at(b, -1))
    red[1::2, 1::2] = at(gb) - mean(at(g_r), at(g_r, 1)) + mean(at(r), at(r, 1))
    blue[1::2, 1::2] = at(gb) - mean(at(g_b), at(g_b, 0, 1)) + mean(at(b), at(b, 0, 1))

    def diagonal(centre: Array, g: Array, c: Array, pairs: tuple[tuple[tuple[int, int], tuple[int, int]], ...]) -> Array:
        values = [centre - mean(at(g, *p), at(g, *q)) + mean(at(c, *p), at(c, *q)) for p, q in pairs]
        first, second = (abs(at(c, *p) - at(c, *q)) for p, q in pairs)
        return np.where(first < second, *values)

    red[1::2, ::2] = diagonal(at(g_b), g_r, r, (((0, 0), (1, -1)), ((0, -1), (1, 0))))
    blue[::2, 1::2] = diagonal(at(g_r), g_b, b, (((0, 0), (-1, 1)), ((0, 1), (-1, 0))))
    share = F32((1 / KELVIN - 1 / 3200) / (1 / 7000 - 1 / 3200))
    matrix = ((warm * share + cold * (1 - share)) * F32(256)).astype(np.int16).astype(np.int32)
    mixed = np.einsum("cj,jyx->cyx", matrix[:, :3], np.stack([red, grn, blue])) + matrix[:, 3, None, None]
    return _tone()[np.clip((mixed // 256).astype(np.int16), 0, 1023)]  # type: ignore[no-any-return]


def _clean(raw: Array) -> Array:
    """Without hot pixels, from four pixels outside the picture on."""
    top, left = MARGIN[0] - 4, MARGIN[1] - 4
    h, w = raw.shape[0] - 2 * top, raw.shape[1] - 2 * left

    def moved(dy: int, dx: int) -> Array:
        return raw[top + dy : top + dy + h, left + dx : left + dx + w]

    brightest = np.maximum.reduce([moved(0, -2), moved(0, 2), moved(-2, 0), moved(2, 0)])
    return np.minimum(np.maximum(moved(0, 0), 0), brightest)  # type: ignore[no-any-return]


def _tone() -> Array:
    i = np.arange(1024)
    g = np.clip((i - BLACK).astype(F32) / F32(WHITE - BLACK), 0, 1) ** F32(1 / GAMMA)
    b = 2 - 2 ** (CONTRAST / 100)
    a = 2 - 2 * b
    z = np.where(g > F32(0.5), 1 - (a * (1 - g) ** 2 + b * (1 - g)), a * g * g + b * g)
    return np.where(i <= BLACK, 0, np.clip(z * 255 + 0.5, 0, 255)).astype(np.uint8)


def local_laplacian(image: Array, alpha: Array, beta: Array) -> Array:
    _, h, w = image.shape
    rim = 2**DEPTH - 1
    top = 2 ** (DEPTH - 1)
    floating = image.astype(F32) / F32(65535)  # the table is read at whole numbers, which rounding decides
    y, x = (np.clip(np.arange(-(-(n - 1) // top) * top + 4 * top - 2) - rim, 0, n - 1) for n in (h, w))
    gray = (F32(0.299) * floating[0] + F32(0.587) * floating[1] + F32(0.114) * floating[2])[y][:, x]
    level = np.arange(TONES)[:, None, None] / (TONES - 1)
    step = np.clip((gray * F32(256 * (TONES - 1))).astype(np.int32), 0, 256 * (TONES - 1)) / 256 - level * (TONES - 1)
    tones, plain = [beta * (gray - level) + level + alpha * step * np.exp(-(step**2) / 2)], [gray]
    for _ in range(1, DEPTH):
        tones.append(_halved(tones[-1]))
        plain.append(_halved(plain[-1]))
    result: Array | None = None
    for j in reversed(range(DEPTH)):
        first, sizes = (0, (h, w)) if j == 0 else (1, tuple((n - 2 + 2**j) // 2**j + 2 for n in (h, w)))
        y, x = (np.arange(n) - first for n in sizes)
        own = 2 ** (DEPTH - j) - 1

        def inside(a: Array, own: int = own, y: Array = y, x: Array = x) -> Array:
            return a[..., y[0] + own : y[-1] + own + 1, x[0] + own : x[-1] + own + 1]  # type: ignore[no-any-return]

        detail = inside(tones[j])
        if j + 1 < DEPTH:
            detail = detail - _doubled(tones[j + 1], y, x, 2 ** (DEPTH - j - 1) - 1)
        depth = inside(plain[j]) * (TONES - 1)
        k = np.clip(depth.astype(np.int32), 0, TONES - 2)
        part = depth - k
        low, high = (np.take_along_axis(detail, (k + d)[None], 0)[0] for d in (0, 1))
        new = (1 - part) * low + part * high
        result = new if result is None else new + _doubled(result, y, x, 1)
    assert result is not None
    colour = result * (floating + 0.01) / (gray[rim : rim + h, rim : rim + w] + 0.01)
    return (np.clip(colour, 0, 1) * 65535).astype(np.uint16)  # type: ignore[no-any-return]


def _halved(a: Array) -> Array:
    for axis in (-1, -2):
        n = (a.shape[axis] - 4) // 2 + 1
        rows = [np.take(a, range(d, d + 2 * n - 1, 2), axis) for d in range(4)]
        a = (rows[0] + 3 * (rows[1] + rows[2]) + rows[3]) / 8
    return a


def _doubled(a: Array, y: Array, x: Array, rim: int) -> Array:
    for axis, at in ((-1, x), (-2, y)):
        a = 0.25 * np.take(a, at // 2 - 1 + 2 * (at % 2) + rim, axis) + 0.75 * np.take(a, at // 2 + rim, axis)
    return a
