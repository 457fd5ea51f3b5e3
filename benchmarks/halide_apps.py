"""Halide's own applications under Halide's own processor schedules (Halide's repository, apps/), rewritten for its Python package."""

from __future__ import annotations

from typing import Any

import halide as hl  # type: ignore[import-not-found,unused-ignore]

from examples.apps import settings
from examples.apps.settings import CELL, DEPTH, LEVELS, PATCH, SEARCH, STAGES, TONES

x, y, c, k, z = (hl.Var(n) for n in "xyckz")
dx, dy, tx, ty, xi, yi, xo, yo, yii, t = (hl.Var(n) for n in ("dx", "dy", "tx", "ty", "xi", "yi", "xo", "yo", "yii", "t"))
clamped = hl.BoundaryConditions.repeat_edge


def _f(value: Any) -> Any:
    return hl.f32(float(value))


def _func(name: str) -> Any:
    return hl.Func(name)


def stencil_chain(image: Any) -> Any:
    stages, source = [], image
    for s in range(STAGES):
        f = _func(f"stage{s}")
        total = hl.u16(0)
        for i in range(5):
            for j in range(5):
                total = total + hl.u16((i + 1) * (j + 1)) * source[x + i, y + j]
        f[x, y] = total
        stages.append(f)
        source = f
    out = _func("out")
    out[x, y] = source[x, y]
    for f in stages:
        f.store_at(out, t).compute_at(out, yi).vectorize(x, 16)
    out.compute_root().tile(x, y, xo, yo, xi, yi, 512, 512).fuse(xo, yo, t).parallel(t).vectorize(xi, 16)
    return out


def bilateral_grid(image: Any) -> Any:
    source, r = clamped(image), hl.RDom([(0, CELL), (0, CELL)])
    histogram, blurx, blury, blurz, sampled, out = (_func(n) for n in ("histogram", "blurx", "blury", "blurz", "sampled", "smooth"))
    value = hl.clamp(source[x * CELL + r.x - CELL // 2, y * CELL + r.y - CELL // 2], _f(0), _f(1))
    histogram[x, y, z, c] = _f(0)
    histogram[x, y, hl.i32(value * _f(LEVELS) + _f(0.5)), c] += hl.mux(c, [value, _f(1)])

    def five(f: Any) -> Any:
        return f(-2) + f(-1) * 4 + f(0) * 6 + f(1) * 4 + f(2)

    blurz[x, y, z, c] = five(lambda d: histogram[x, y, z + d, c])
    blurx[x, y, z, c] = five(lambda d: blurz[x + d, y, z, c])
    blury[x, y, z, c] = five(lambda d: blurx[x, y + d, z, c])
    depth = hl.clamp(image[x, y], _f(0), _f(1)) * _f(LEVELS)
    zi = hl.i32(depth)
    zf, xf, yf = depth - zi, hl.f32(x % CELL) / CELL, hl.f32(y % CELL) / CELL
    X, Y = x / CELL, y / CELL

    def plane(zi: Any) -> Any:
        near = hl.lerp(blury[X, Y, zi, c], blury[X + 1, Y, zi, c], xf)
        far = hl.lerp(blury[X, Y + 1, zi, c], blury[X + 1, Y + 1, zi, c], xf)
        return hl.lerp(near, far, yf)

    sampled[x, y, c] = hl.lerp(plane(zi), plane(zi + 1), zf)
    out[x, y] = sampled[x, y, 0] / sampled[x, y, 1]
    blurz.compute_at(blurx, y).bound(c, 0, 2).reorder(c, z, x, y).vectorize(x, 8).unroll(c)
    histogram.compute_at(blurz, y)
    histogram.update().reorder(c, r.x, r.y, x, y).unroll(c)
    blurx.compute_root().bound(c, 0, 2).reorder(c, x, z, y).parallel(y).vectorize(x, 8).unroll(c)
    blury.compute_at(out, y).bound(c, 0, 2).store_in(hl.MemoryType.Stack)
    blury.reorder(c, x, y, z).reorder_storage(c, z, x, y).vectorize(x, 8).unroll(c)
    out.compute_root().parallel(y, 8).vectorize(x, 8)
    return out


def nl_means(image: Any, sigma: Any) -> Any:
    source = clamped(image)
    each, apart, columns, patch, weight, wide, sums, out = (
        _func(n) for n in ("each", "apart", "columns", "patch", "weight", "wide", "sums", "denoised")
    )
    channels, reach = hl.RDom([(0, 3)]), hl.RDom([(-(PATCH // 2), PATCH)])
    each[x, y, dx, dy, c] = (source[x, y, c] - source[x + dx, y + dy, c]) * (source[x, y, c] - source[x + dx, y + dy, c])
    apart[x, y, dx, dy] = hl.sum(each[x, y, dx, dy, channels.x])
    columns[x, y, dx, dy] = hl.sum(apart[x, y + reach.x, dx, dy])
    patch[x, y, dx, dy] = hl.sum(columns[x + reach.x, y, dx, dy])
    weight[x, y, dx, dy] = hl.fast_exp(patch[x, y, dx, dy] * (_f(-1) / (sigma[()] * sigma[()] * _f(PATCH * PATCH))))
    wide[x, y, c] = hl.mux(c, [source[x, y, 0], source[x, y, 1], source[x, y, 2], _f(1)])
    s = hl.RDom([(-(SEARCH // 2), SEARCH), (-(SEARCH // 2), SEARCH)])
    sums[x, y, c] = _f(0)
    sums[x, y, c] += weight[x, y, s.x, s.y] * wide[x + s.x, y + s.y, c]
    out[x, y, c] = hl.clamp(sums[x, y, c] / sums[x, y, 3], _f(0), _f(1))
    out.compute_root().bound(c, 0, 3).reorder(c, x, y).tile(x, y, tx, ty, xi, yi, 16, 8).parallel(ty).vectorize(xi, 8)
    columns.compute_at(out, tx).reorder(y, x).vectorize(x, 8)
    apart.compute_at(out, tx).vectorize(x, 8)
    sums.compute_at(out, xi).bound(c, 0, 4).reorder(c, x, y).unroll(c).vectorize(x, 8)
    sums.update(0).reorder(c, x, y, s.x, s.y).unroll(c).vectorize(x, 8)
    patch.compute_at(sums, x).vectorize(x, 8)
    return out


def camera(raw: Any, warm: Any, cold: Any) -> Any:
    top, left = settings.MARGIN

    def avg(a: Any, b: Any) -> Any:
        return hl.i16((hl.i32(a) + b + 1) / 2)

    shifted, clean, four = _func("shifted"), _func("clean"), _func("four")
    shifted[x, y] = hl.i16(raw[x + left, y + top])
    brightest = hl.max(hl.max(shifted[x - 2, y], shifted[x + 2, y]), hl.max(shifted[x, y - 2], shifted[x, y + 2]))
    clean[x, y] = hl.clamp(shifted[x, y], hl.i16(0), brightest)
    four[x, y, c] = hl.mux(c, [clean[2 * x, 2 * y], clean[2 * x + 1, 2 * y], clean[2 * x, 2 * y + 1], clean[2 * x + 1, 2 * y + 1]])

    def plane(n: int) -> Any:
        return lambda x, y: four[x, y, n]

    g_gr, r_r, b_b, g_gb = map(plane, range(4))
    g_r, g_b, rgb, mixed, tone, out = (_func(n) for n in ("g_r", "g_b", "rgb", "corrected", "tone", "picture"))
    up, across = (g_gb(x, y - 1), g_gb(x, y)), (g_gr(x + 1, y), g_gr(x, y))
    g_r[x, y] = hl.select(hl.absd(*across) < hl.absd(*up), avg(*across), avg(*up))
    up, across = (g_gr(x, y + 1), g_gr(x, y)), (g_gb(x - 1, y), g_gb(x, y))
    g_b[x, y] = hl.select(hl.absd(*across) < hl.absd(*up), avg(*across), avg(*up))

    def follow(green: Any, of: Any, a: tuple[Any, Any], b: tuple[Any, Any], other: Any) -> Any:
        return green - avg(of[a], of[b]) + avg(other(*a), other(*b))

    here, west, north, south, east = (x, y), (x - 1, y), (x, y - 1), (x, y + 1), (x + 1, y)
    r_gr = follow(g_gr(*here), g_r, here, west, r_r)
    b_gr = follow(g_gr(*here), g_b, here, north, b_b)
    r_gb = follow(g_gb(*here), g_r, here, south, r_r)
    b_gb = follow(g_gb(*here), g_b, here, east, b_b)

    def diagonal(green: Any, of: Any, other: Any, p: Any, n: Any) -> Any:
        first, second = hl.absd(other(*p[0]), other(*p[1])), hl.absd(other(*n[0]), other(*n[1]))
        return hl.select(first < second, follow(green, of, *p, other), follow(green, of, *n, other))

    r_b = diagonal(g_b[here], g_r, r_r, (here, (x - 1, y + 1)), (west, south))
    b_r = diagonal(g_r[here], g_b, b_b, (here, (x + 1, y - 1)), (east, north))
    planes = []
    for name, kinds in (
        ("red", (r_gr, r_r(*here), r_b, r_gb)),
        ("green", (g_gr(*here), g_r[here], g_b[here], g_gb(*here))),
        ("blue", (b_gr, b_r, b_b(*here), b_gb)),
    ):
        funcs = [_func(f"{name}{n}") for n in range(4)]
        for f, value in zip(funcs, kinds, strict=True):
            f[x, y] = value
        woven = _func(name)
        rows = [hl.select(x % 2 == 0, funcs[n][x / 2, y / 2], funcs[n + 1][x / 2, y / 2]) for n in (0, 2)]
        woven[x, y] = hl.select(y % 2 == 0, rows[0], rows[1])
        planes.append(woven)
    rgb[x, y, c] = hl.mux(c, [p[x, y] for p in planes])
    share, matrix = (1 / settings.KELVIN - 1 / 3200) / (1 / 7000 - 1 / 3200), _func("matrix")
    matrix[x, y] = hl.i32(hl.i16((warm[x, y] * _f(share) + cold[x, y] * _f(1 - share)) * _f(256)))
    matrix.compute_root()
    r, g, b = (hl.i32(rgb[x, y, n]) for n in range(3))
    lines = [hl.i16((matrix[3, n] + matrix[0, n] * r + matrix[1, n] * g + matrix[2, n] * b) / 256) for n in range(3)]
    mixed[x, y, c] = hl.mux(c, lines)
    low, high, curve = settings.BLACK, settings.WHITE, 2.0 - 2.0 ** (settings.CONTRAST / 100)
    a = 2.0 - 2.0 * curve
    gamma = hl.pow(hl.clamp(hl.f32(x - low) / _f(high - low), _f(0), _f(1)), _f(1 / settings.GAMMA))
    bent = hl.select(
        gamma > _f(0.5),
        _f(1) - (_f(a) * (_f(1) - gamma) * (_f(1) - gamma) + _f(curve) * (_f(1) - gamma)),
        _f(a) * gamma * gamma + _f(curve) * gamma,
    )
    value = hl.u8(hl.clamp(bent * _f(255) + _f(0.5), _f(0), _f(255)))
    tone[x] = hl.select(x <= low, hl.u8(0), hl.select(x > high, hl.u8(255), value))
    tone.compute_root()
    out[x, y, c] = tone[hl.clamp(hl.i32(mixed[x, y, c]), 0, 1023)]
    vec = hl.get_host_target().natural_vector_size(hl.UInt(16))
    clean.compute_at(out, yi).store_at(out, yo).fold_storage(y, 8)
    clean.tile(x, y, x, y, tx, ty, 2 * vec, 2).vectorize(tx).unroll(ty)
    four.compute_at(out, yi).store_at(out, yo).fold_storage(y, 4).bound(c, 0, 4)
    four.reorder(c, x, y).vectorize(x, 2 * vec, hl.TailStrategy.RoundUp).unroll(c)
    for f in (g_r, g_b):
        f.compute_at(out, yi).store_at(out, yo).vectorize(x, 2 * vec, hl.TailStrategy.RoundUp).fold_storage(y, 2)
    for f in (rgb, mixed):
        f.compute_at(out, x).bound(c, 0, 3).vectorize(x).unroll(y).reorder(c, x, y).unroll(c)
    out.compute_root().bound(c, 0, 3).reorder(c, x, y).split(y, yo, yi, 128)
    out.tile(x, yi, x, yi, xi, yii, 2 * vec, 2, hl.TailStrategy.RoundUp).vectorize(xi).unroll(yii).unroll(c).parallel(yo)
    return out


def local_laplacian(image: Any, alpha: Any, beta: Any) -> Any:
    source, floating, gray, remap = clamped(image), _func("floating"), _func("gray"), _func("remap")
    steps = 256 * (TONES - 1)

    def halved(f: Any, *axes: Any) -> Any:
        narrow, low = hl.Func(), hl.Func()
        narrow[(x, y, *axes)] = (
            f[(2 * x - 1, y, *axes)] + _f(3) * (f[(2 * x, y, *axes)] + f[(2 * x + 1, y, *axes)]) + f[(2 * x + 2, y, *axes)]
        ) / _f(8)
        low[(x, y, *axes)] = (
            narrow[(x, 2 * y - 1, *axes)]
            + _f(3) * (narrow[(x, 2 * y, *axes)] + narrow[(x, 2 * y + 1, *axes)])
            + narrow[(x, 2 * y + 2, *axes)]
        ) / _f(8)
        return low

    def doubled(f: Any, *axes: Any) -> Any:
        wide, high = hl.Func(), hl.Func()
        wide[(x, y, *axes)] = _f(0.25) * f[(x / 2 - 1 + 2 * (x % 2), y, *axes)] + _f(0.75) * f[(x / 2, y, *axes)]
        high[(x, y, *axes)] = _f(0.25) * wide[(x, y / 2 - 1 + 2 * (y % 2), *axes)] + _f(0.75) * wide[(x, y / 2, *axes)]
        return high

    fx = hl.f32(x) / _f(256)
    remap[x] = alpha[()] * fx * hl.exp(-fx * fx / _f(2))
    floating[x, y, c] = hl.f32(source[x, y, c]) / _f(65535)
    gray[x, y] = _f(0.299) * floating[x, y, 0] + _f(0.587) * floating[x, y, 1] + _f(0.114) * floating[x, y, 2]
    level = hl.f32(k) * _f(1 / (TONES - 1))
    step = hl.clamp(hl.i32(gray[x, y] * _f(steps)), 0, steps)
    tones, plain = [_func(f"tones{j}") for j in range(DEPTH)], [_func(f"plain{j}") for j in range(DEPTH)]
    tones[0][x, y, k] = beta[()] * (gray[x, y] - level) + level + remap[step - 256 * k]
    plain[0][x, y] = gray[x, y]
    for j in range(1, DEPTH):
        tones[j][x, y, k] = halved(tones[j - 1], k)[x, y, k]
        plain[j][x, y] = halved(plain[j - 1])[x, y]
    laplace, details, results = ([_func(f"{n}{j}") for j in range(DEPTH)] for n in ("laplace", "detail", "result"))
    for j in range(DEPTH):
        top = j == DEPTH - 1
        laplace[j][x, y, k] = tones[j][x, y, k] if top else tones[j][x, y, k] - doubled(tones[j + 1], k)[x, y, k]
        depth = plain[j][x, y] * _f(TONES - 1)
        li = hl.clamp(hl.i32(depth), 0, TONES - 2)
        lf = depth - hl.f32(li)
        details[j][x, y] = (_f(1) - lf) * laplace[j][x, y, li] + lf * laplace[j][x, y, li + 1]
    for j in reversed(range(DEPTH)):
        results[j][x, y] = details[j][x, y] if j == DEPTH - 1 else doubled(results[j + 1])[x, y] + details[j][x, y]
    out = _func("filtered")
    colour = results[0][x, y] * (floating[x, y, c] + _f(0.01)) / (gray[x, y] + _f(0.01))
    out[x, y, c] = hl.u16(hl.clamp(colour, _f(0), _f(1)) * _f(65535))
    remap.compute_root()
    out.bound(c, 0, 3).reorder(c, x, y).split(y, yo, yi, 64).parallel(yo).vectorize(x, 8)
    gray.compute_root().parallel(y, 32).vectorize(x, 8)
    for j in range(1, 5):
        plain[j].compute_root().parallel(y, 32).vectorize(x, 8)
        tones[j].compute_root().reorder_storage(x, k, y).reorder(k, y).parallel(y, 8).vectorize(x, 8)
        results[j].store_at(out, yo).compute_at(out, yi).fold_storage(y, 8).vectorize(x, 8)
    results[0].compute_at(out, yi).vectorize(x, 8)
    for j in range(5, DEPTH):
        plain[j].compute_root()
        tones[j].compute_root().parallel(k)
        results[j].compute_root()
    return out


APPS = {f.__name__: f for f in (stencil_chain, bilateral_grid, nl_means, camera, local_laplacian)}
