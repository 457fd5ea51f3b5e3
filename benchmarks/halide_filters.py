"""More of Halide's own applications under schedules after Halide's own (Halide's repository, apps/), rewritten for its Python package."""

from __future__ import annotations

from typing import Any

import halide as hl  # type: ignore[import-not-found,unused-ignore]

from examples.apps.settings import COEFFICIENTS, LOBES, PYRAMID, RADIUS, SHADES, SMALLER

x, y, c, k, i = (hl.Var(n) for n in "xycki")
tx, ty, xi, yi, xo, yo, t = (hl.Var(n) for n in ("tx", "ty", "xi", "yi", "xo", "yo", "t"))
clamped = hl.BoundaryConditions.repeat_edge
LANES = 16


def _f(value: Any) -> Any:
    return hl.f32(float(value))


def interpolate(image: Any) -> Any:
    source, h, w = clamped(image), image.height(), image.width()
    down, up = [hl.Func(f"down{n}") for n in range(PYRAMID)], [hl.Func(f"up{n}") for n in range(PYRAMID)]
    down[0][x, y, c] = hl.select(c < 3, source[x, y, c] * source[x, y, 3], source[x, y, 3])
    out, sizes = hl.Func("spread"), [(w, h)]
    for n in range(1, PYRAMID):
        wide, tall = sizes[-1]
        before = hl.BoundaryConditions.repeat_edge(down[n - 1], [(0, wide), (0, tall)]) if n > 1 else down[0]
        narrow = hl.Func(f"narrow{n}")
        narrow[x, y, c] = (before[2 * x - 1, y, c] + _f(2) * before[2 * x, y, c] + before[2 * x + 1, y, c]) / _f(4)
        rows = hl.Func(f"rows{n}")
        rows[x, y, c] = narrow[x, hl.clamp(y, 0, tall - 1), c]
        down[n][x, y, c] = (rows[x, 2 * y - 1, c] + _f(2) * rows[x, 2 * y, c] + rows[x, 2 * y + 1, c]) / _f(4)
        sizes.append((wide / 2 + 1, tall / 2 + 1))
        down[n].compute_root().parallel(y, 8).vectorize(x, LANES)
        narrow.compute_at(down[n], y).store_at(down[n], y).vectorize(x, LANES)
    for n in reversed(range(PYRAMID)):
        if n == PYRAMID - 1:
            up[n][x, y, c] = down[n][x, y, c]
            continue
        wide, tall = sizes[n + 1]
        across = hl.Func(f"across{n}")
        coarse = up[n + 1]

        def at(a: Any, b: Any, coarse: Any = coarse, wide: Any = wide, tall: Any = tall) -> Any:
            return coarse[hl.clamp(a, 0, wide - 1), hl.clamp(b, 0, tall - 1), c]

        across[x, y, c] = (at(x / 2, y) + at((x + 1) / 2, y)) / _f(2)
        more = (across[x, y / 2, c] + across[x, (y + 1) / 2, c]) / _f(2)
        up[n][x, y, c] = down[n][x, y, c] + (_f(1) - down[n][x, y, 3]) * more
        if n:
            up[n].compute_root().parallel(y, 8).vectorize(x, LANES)
    out[x, y, c] = up[0][x, y, c] / up[0][x, y, 3]
    out.bound(c, 0, 3).reorder(c, x, y).unroll(c).tile(x, y, xi, yi, 2 * LANES, 2).vectorize(xi, LANES).unroll(yi).parallel(y, 8)
    return out


def max_filter(image: Any) -> Any:
    source, levels = clamped(image), (2 * RADIUS + 1).bit_length()
    tall = [hl.Func(f"tall{n}") for n in range(levels)]
    tall[0][x, y] = source[x, y]
    for n in range(1, levels):
        tall[n][x, y] = hl.max(tall[n - 1][x, y], tall[n - 1][x, y + 2 ** (n - 1)])
    reach = [int((RADIUS * RADIUS - d * d) ** 0.5) for d in range(RADIUS + 1)]
    columns = {d: hl.Func(f"column{d}") for d in sorted(set(reach))}
    for d, f in columns.items():
        n = (2 * d + 1).bit_length() - 1
        f[x, y] = hl.max(tall[n][x, y - d], tall[n][x, y + d + 1 - 2**n])
    out, found = hl.Func("largest"), [columns[reach[abs(d)]][x + d, y] for d in range(-RADIUS, RADIUS + 1)]
    while len(found) > 1:
        found = [hl.max(*found[n : n + 2]) if n + 1 < len(found) else found[n] for n in range(0, len(found), 2)]
    out[x, y] = found[0]
    out.compute_root().split(x, tx, x, 256).reorder(x, y, tx).split(y, yo, y, 128).reorder(x, y, tx, yo).parallel(yo).vectorize(x, LANES)
    for f in tall:
        f.store_at(out, tx).compute_at(out, y).vectorize(x, LANES)
    for f in columns.values():
        f.compute_at(out, y).vectorize(x, LANES)
    return out


def hist(image: Any) -> Any:
    luma, counts, below, spread, out = (hl.Func(n) for n in ("luma", "counts", "below", "spread", "equalised"))
    r, g, b = (hl.f32(image[x, y, n]) for n in range(3))
    luma[x, y] = hl.u8(_f(0.299) * r + _f(0.587) * g + _f(0.114) * b + _f(0.5))
    pixels, shades = hl.RDom([(0, image.width()), (0, image.height())]), hl.RDom([(1, SHADES - 1)])
    counts[i] = hl.i32(0)
    counts[luma[pixels.x, pixels.y]] += hl.i32(1)
    below[i] = counts[i]
    below[shades.x] += below[shades.x - 1]
    spread[i] = hl.f32(below[i]) * (_f(SHADES - 1) / hl.f32(below[SHADES - 1]))
    new = spread[luma[x, y]] + (hl.f32(image[x, y, c]) - hl.f32(luma[x, y]))
    out[x, y, c] = hl.u8(hl.clamp(new, _f(0), _f(255)))
    rows = counts.update().rfactor([(pixels.y, y)])
    counts.compute_root()
    below.compute_root()
    spread.compute_root()
    rows.compute_root().parallel(y, 32)
    rows.update().parallel(y, 32)
    luma.in_(rows).compute_at(rows, y).vectorize(x, 4 * LANES)
    out.bound(c, 0, 3).reorder(c, x, y).unroll(c).parallel(y, 16).vectorize(x, LANES)
    return out


def iir_blur(image: Any, alpha: Any) -> Any:
    def blurred_columns(source: Any, w: Any, h: Any) -> Any:
        """Down and up, turned round."""
        blur, turned, a = hl.Func(), hl.Func(), alpha[()]
        r = hl.RDom([(1, h - 1)])
        blur[x, y, c] = source[x, y, c]
        blur[x, r, c] = blur[x, r - 1, c] + a * (blur[x, r, c] - blur[x, r - 1, c])
        back = h - 1 - r
        blur[x, back, c] = blur[x, back + 1, c] + a * (blur[x, back, c] - blur[x, back + 1, c])
        turned[x, y, c] = blur[y, x, c]
        turned.compute_root().tile(x, y, xo, yo, xi, yi, LANES, 4 * LANES).reorder(xi, yi, xo, yo, c).vectorize(xi).parallel(yo).parallel(c)
        blur.compute_at(turned, yo).vectorize(x, LANES)
        for n in range(2):
            blur.update(n).reorder(x, r.x).vectorize(x, LANES)
        return turned

    w, h = image.width(), image.height()
    return blurred_columns(blurred_columns(image, w, h), h, w)


def wavelet(image: Any, threshold: Any) -> Any:
    d0, d1, d2, d3 = (_f(d) for d in COEFFICIENTS)
    w, h = image.width() / 2, image.height() / 2

    def apart(f: Any, name: str, down: bool) -> tuple[Any, Any]:
        low, high = hl.Func(name + "_low"), hl.Func(name + "_high")

        def at(n: int) -> Any:
            return f[x, (2 * y + n) % (2 * h)] if down else f[(2 * x + n) % (2 * w), y]

        low[x, y] = d0 * at(0) + d1 * at(1) + d2 * at(2) + d3 * at(3)
        high[x, y] = d3 * at(0) - d2 * at(1) + d1 * at(2) - d0 * at(3)
        return low, high

    def together(low: Any, high: Any, name: str, down: bool) -> Any:
        f = hl.Func(name)
        here, before = ((x, y / 2), (x, (y / 2 - 1 + h) % h)) if down else ((x / 2, y), ((x / 2 - 1 + w) % w, y))
        even = d2 * low[before] + d1 * high[before] + d0 * low[here] + d3 * high[here]
        odd = d3 * low[before] - d0 * high[before] + d1 * low[here] - d2 * high[here]
        f[x, y] = hl.select((y if down else x) % 2 == 0, even, odd)
        return f

    rows = apart(image, "rows", False)
    bands = [apart(f, f"band{n}", True) for n, f in enumerate(rows)]
    quiet = []
    for n, f in enumerate((bands[0][0], bands[0][1], bands[1][0], bands[1][1])):
        q = hl.Func(f"quiet{n}")
        q[x, y] = f[x, y] - hl.clamp(f[x, y], -threshold[()], threshold[()]) if n else f[x, y]
        quiet.append(q)
    back = [together(quiet[n], quiet[n + 1], f"back{n}", True) for n in (0, 2)]
    out = together(back[0], back[1], "denoised", False)
    for f in rows:
        f.compute_root().parallel(y, 32).vectorize(x, LANES)
    for q in quiet:
        q.compute_root().parallel(y, 32).vectorize(x, LANES)
    out.split(y, yo, yi, 32).parallel(yo).vectorize(x, 2 * LANES)
    for f in back:
        f.compute_at(out, yi).vectorize(x, LANES)
    return out


def resize(image: Any) -> Any:
    to, of = SMALLER
    source, w, h = clamped(image), image.width(), image.height()
    taps = -2 * (-LOBES * of // to) + 1

    def first(at: Any) -> Any:
        return ((2 * at + 1) * of) / (2 * to) - taps // 2

    def share(size: Any, name: str) -> Any:
        raw, sums, normal, r = hl.Func(name + "_raw"), hl.Func(name + "_sum"), hl.Func(name), hl.RDom([(0, taps)])
        p = first(x) + k
        distance = hl.f32((2 * p + 1) * to - (2 * x + 1) * of) * _f(1 / (2 * of))
        turn = distance * _f(3.14159265358979)
        middle = hl.abs(distance) < _f(1e-6)
        value = hl.select(middle, _f(1), _f(LOBES) * hl.sin(turn) * hl.sin(turn / _f(LOBES)) / hl.select(middle, _f(1), turn * turn))
        raw[x, k] = hl.select((p >= 0) & (p < size) & (hl.abs(distance) < _f(LOBES)), value, _f(0))
        sums[x] = _f(0)
        sums[x] += raw[x, r]
        normal[x, k] = raw[x, k] / sums[x]
        for f in (raw, sums, normal):
            f.compute_root().vectorize(x, LANES)
        sums.update().vectorize(x, LANES)
        return normal

    rows, columns = share(h, "rows"), share(w, "columns")
    down, out = hl.Func("down"), hl.Func("small")
    r = hl.RDom([(0, taps)])
    down[x, y, c] = hl.sum(rows[y, r] * source[x, first(y) + r, c])
    out[x, y, c] = hl.sum(columns[x, r] * down[hl.clamp(first(x) + r, 0, w - 1), y, c])
    out.compute_root().split(y, yo, yi, 16).parallel(yo).vectorize(x, LANES)
    down.compute_at(out, yi).vectorize(x, LANES)
    return out


FILTERS = {f.__name__: f for f in (interpolate, max_filter, hist, iir_blur, wavelet, resize)}
