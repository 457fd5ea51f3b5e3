"""Operators of images against SciPy, scikit-image, Pillow, and the formulas."""

from __future__ import annotations

from functools import partial
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.ops.median import exchanges
from operator_running import both, near, numbers, refusal, run, same
from PIL import Image
from scipy import ndimage
from skimage import color

Array = np.ndarray[Any, Any]


# ---------------------------------------------------------------- resize
def keys(d: Array, a: float) -> Array:
    d = np.abs(d)
    return np.where(d <= 1, (a + 2) * d**3 - (a + 3) * d**2 + 1, np.where(d < 2, a * (d**3 - 5 * d**2 + 8 * d - 4), 0))


def places(n: int, m: int, coordinates: str) -> Array:
    i = np.arange(m)
    if coordinates == "half_pixel":
        return (i + 0.5) * n / m - 0.5
    return i * (n - 1) / max(m - 1, 1) if coordinates == "align_corners" else i * n / m


def matrix(n: int, m: int, method: str, coordinates: str, a: float) -> Array:
    """[m, n]: what each element counts for in each output."""
    at, out = places(n, m, coordinates), np.zeros((m, n))
    base = np.floor(at + 1e-12).astype(int)
    reach = 1 if method == "bilinear" else 2
    for k in range(1 - reach, reach + 1):
        weight = np.maximum(1 - np.abs(at - base - k), 0) if method == "bilinear" else keys(at - base - k, a)
        np.add.at(out, (np.arange(m), np.clip(base + k, 0, n - 1)), weight)
    return out


@pytest.mark.parametrize("size", [(5, 11), (14, 3), (1, 7), (9, 6)], ids=str)
@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("method", ["bilinear", "bicubic"])
def test_resize(method: str, coordinates: str, size: tuple[int, int]) -> None:
    x = numbers(2, 3, 7, 6)
    for a in (-0.75, -0.5):
        rows, columns = (matrix(n, m, method, coordinates, a) for n, m in zip((7, 6), size, strict=True))
        want = rows @ x.astype(float) @ columns.T
        near(both(lambda x, a=a: fl.resize(x, size, method, coordinates=coordinates, cubic=a), x), want, 1e-5)


def test_resize_to_the_nearest_element() -> None:
    x = numbers(7, 6)
    for size in ((3, 11), (14, 6), (1, 1)):
        for coordinates in ("half_pixel", "align_corners", "asymmetric"):
            at = [places(n, m, coordinates) for n, m in zip((7, 6), size, strict=True)]
            down, across = (np.clip(np.floor(p + (0 if coordinates == "asymmetric" else 0.5) + 1e-9).astype(int), 0, None) for p in at)
            got = both(lambda x, s=size, c=coordinates: fl.resize(x, s, "nearest", coordinates=c), x)
            same(got, x[np.ix_(np.minimum(down, 6), np.minimum(across, 5))])
    assert run(lambda x: fl.resize(x, 3, "nearest"), np.ones((2, 2), np.uint8)).dtype == np.uint8


@pytest.mark.parametrize("size", [(5, 4), (17, 3), (20, 25)], ids=str)
def test_resize_is_that_of_scipy_and_pillow(size: tuple[int, int]) -> None:
    x = numbers(17, 13)
    zoomed = ndimage.zoom(x.astype(float), (size[0] / 17, size[1] / 13), order=1, mode="nearest", grid_mode=True)
    near(run(lambda x: fl.resize(x, size), x), zoomed, 1e-5)
    for method, theirs in (("bilinear", Image.Resampling.BILINEAR), ("bicubic", Image.Resampling.BICUBIC)):
        want = np.asarray(Image.fromarray(x).resize(size[::-1], theirs))
        near(run(lambda x, m=method: fl.resize(x, size, m, antialias=True, cubic=-0.5), x), want, 2e-5)


def test_resize_by_symbolic_factors_of_bytes_and_of_doubles() -> None:
    x = numbers(2, 4, 5)
    twice = fl.trace(lambda x: fl.resize(x, (x.shape[1] * 2, x.shape[2] * 2)), inputs={"x": fl.f32("n", "h", "w")})
    near(twice.run(x), matrix(4, 8, "bilinear", "half_pixel", 0) @ x.astype(float) @ matrix(5, 10, "bilinear", "half_pixel", 0).T, 1e-5)
    k = np.abs(numbers(4, 5, dtype="int32")).astype(np.uint8)
    got = run(lambda k: fl.resize(k, (2, 3)), k)
    assert got.dtype == np.float32
    near(got, matrix(4, 2, "bilinear", "half_pixel", 0) @ k @ matrix(5, 3, "bilinear", "half_pixel", 0).T, 1e-5)
    fine = numbers(4, 5, dtype="float64")
    near(
        run(lambda x: fl.resize(x, (7, 3)), fine),
        matrix(4, 7, "bilinear", "half_pixel", 0) @ fine @ matrix(5, 3, "bilinear", "half_pixel", 0).T,
        1e-14,
    )


def test_pixels_and_channels() -> None:
    x = numbers(2, 12, 3, 5)
    want = x.reshape(2, 3, 2, 2, 3, 5).transpose(0, 1, 4, 2, 5, 3).reshape(2, 3, 6, 10)
    same(run(lambda x: fl.pixel_shuffle(x, 2) + 0, x), want)
    same(run(lambda x: fl.pixel_unshuffle(x, 2) + 0, want), x)
    free = fl.trace(lambda x: fl.pixel_unshuffle(fl.pixel_shuffle(x, 2), 2) * 2, inputs={"x": fl.f32("n", 12, "h", "w")})
    same(free.run(x), 2 * x)
    assert len(free.stages) == 1


# ---------------------------------------------------------------- sampling
def sampled(x: Array, across: Array, down: Array, method: str, outside: str, align: bool) -> Array:
    """x [n, c, h, w] at pixels [n, y, x]."""

    def settled(p: Array, n: int) -> Array:
        if outside == "reflection":
            low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
            p = low + (high - low) - np.abs((p - low) % (2 * (high - low)) - (high - low))
        return p if outside == "zeros" else np.clip(p, 0, n - 1)

    across, down = settled(across, x.shape[3]), settled(down, x.shape[2])
    mode = {"mode": "constant", "cval": 0.0}
    padded = np.pad(x.astype(float), [(0, 0), (0, 0), (2, 2), (2, 2)])
    out = np.zeros((*x.shape[:2], *across.shape[1:]))
    for n, c in np.ndindex(*x.shape[:2]):
        at = np.clip([down[n] + 2, across[n] + 2], 0, [[[x.shape[2] + 3]], [[x.shape[3] + 3]]])
        at = np.rint(at) if method == "nearest" else at
        out[n, c] = ndimage.map_coordinates(padded[n, c], at, order=1, **mode)
    return out


def cubic(x: np.ndarray, across: np.ndarray, down: np.ndarray, outside: str, align: bool) -> np.ndarray:
    """Sixteen pixels each, weighed by Keys' kernel of their distances, those outside as the index of a padded row says."""

    def taps(p: np.ndarray, n: int) -> list[tuple[np.ndarray, np.ndarray]]:
        row = np.arange(n)
        mode = {"border": "edge", "reflection": "reflect" if align else "symmetric"}.get(outside)
        places = np.pad(row, 40, constant_values=-1) if mode is None else np.pad(row, 40, mode=mode)
        found = []
        for k in range(-1, 3):
            d = np.abs(p - (np.floor(p) + k))
            near, far = (1.25 * d - 2.25) * d * d + 1, -0.75 * (((d - 5) * d + 8) * d - 4)
            found.append((places[(np.floor(p) + k).astype(int) + 40], np.where(d <= 1, near, far)))
        return found

    out = np.zeros((*x.shape[:2], *across.shape[1:]))
    for n in range(len(x)):
        for r, v in taps(down[n], x.shape[2]):
            for q, w in taps(across[n], x.shape[3]):
                out[n] += np.where((r < 0) | (q < 0), 0, x[n][:, r, q]) * v * w
    return out


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic"])
def test_grid_sample(method: str, outside: str, align: bool) -> None:
    x, grid = numbers(2, 3, 5, 4), 1.3 * numbers(2, 6, 7, 2, seed=1)
    size = np.array([4, 5])
    at = (grid.astype(float) + 1) / 2 * (size - 1) if align else ((grid.astype(float) + 1) * size - 1) / 2
    want = (cubic if method == "bicubic" else partial(sampled, method=method))(x, at[..., 0], at[..., 1], outside=outside, align=align)

    def sample(x: Any, g: Any) -> Any:
        return fl.grid_sample(x, g, method=method, outside=outside, align_corners=align)

    near(run(sample, x, grid), want, 2e-5)
    free = fl.trace(sample, inputs={"x": fl.f32("n", "c", "h", "w"), "g": fl.f32("n", "y", "x", 2)})
    near(free.run(x, grid), want, 2e-5)


def test_affine_grids_and_warps() -> None:
    x, theta = numbers(2, 3, 6, 5), numbers(2, 2, 3, seed=1)
    for align in (False, True):
        ends = [np.linspace(-1, 1, n) if align else (2 * np.arange(n) + 1) / n - 1 for n in (4, 7)]
        v, u = np.meshgrid(*ends, indexing="ij")
        want = np.einsum("ncp,pyx->nyxc", theta.astype(float), np.stack([u, v, np.ones_like(u)]))
        near(run(lambda t, a=align: fl.affine_grid(t, (4, 7), align_corners=a), theta), want, 1e-5)
    turn = np.array([[0.9, 0.3, -0.4], [-0.2, 1.1, 0.7]], np.float32)
    v, u = np.meshgrid(np.arange(6), np.arange(5), indexing="ij")
    across, down = (np.broadcast_to(r[0] * u + r[1] * v + r[2], (2, 6, 5)) for r in turn.astype(float))
    near(run(lambda x, m: fl.warp_affine(x, m), x, turn), sampled(x, across, down, "bilinear", "zeros", True), 1e-5)
    flow = 2 * numbers(2, 2, 6, 5, seed=2)
    want = sampled(x, u + flow[:, 0].astype(float), v + flow[:, 1].astype(float), "bilinear", "border", True)
    near(run(lambda x, f: fl.warp(x, f), x, flow), want, 1e-5)
    whole = np.zeros((2, 2, 6, 5), np.float32)
    same(run(lambda x, f: fl.warp(x, f), x, whole), x)


# ---------------------------------------------------------------- colour
RGB = np.concatenate([np.random.default_rng(0).random((9, 11, 3)), np.eye(3)[None].repeat(11, 0).reshape(3, 11, 3)]).astype(np.float32)
RGB[0, 0], RGB[0, 1], RGB[0, 2] = 0, 1, 0.5


@pytest.mark.parametrize(
    ("ours", "theirs", "given", "tolerance"),
    [
        (fl.rgb_to_hsv, color.rgb2hsv, RGB, 1e-5), (fl.hsv_to_rgb, color.hsv2rgb, color.rgb2hsv(RGB), 1e-5),
        (fl.rgb_to_yuv, color.rgb2yuv, RGB, 1e-5), (fl.yuv_to_rgb, color.yuv2rgb, color.rgb2yuv(RGB), 1e-5),
        (fl.rgb_to_lab, color.rgb2lab, RGB, 2e-4), (fl.lab_to_rgb, color.lab2rgb, color.rgb2lab(RGB), 1e-4),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)  # fmt: skip
def test_colours_are_those_of_scikit_image(ours: Any, theirs: Any, given: Array, tolerance: float) -> None:
    given = given.astype(np.float32)
    near(run(lambda x: ours(x, axis=-1), given), theirs(given.astype(float)), tolerance)
    channels_first = np.moveaxis(given, -1, 0)[None]
    near(run(lambda x: ours(x), channels_first)[0], np.moveaxis(theirs(given.astype(float)), -1, 0), tolerance)


def test_greys_and_light() -> None:
    for name, w in {"bt601": [0.299, 0.587, 0.114], "bt709": [0.2126, 0.7152, 0.0722]}.items():
        near(run(lambda x, n=name: fl.rgb_to_gray(x, axis=-1, weights=n), RGB), (RGB * w).sum(-1, keepdims=True), 1e-5)
    x = np.linspace(0, 1, 101).astype(np.float32)
    light = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    near(run(lambda x: fl.srgb_to_linear(x), x), light, 1e-5)
    near(run(lambda x: fl.linear_to_srgb(fl.srgb_to_linear(x)), x), x, 1e-5)
    r, g, b = (RGB[..., c].astype(float) for c in range(3))
    y = 0.299 * r + 0.587 * g + 0.114 * b
    want = np.stack([y, 0.5 + (b - y) / 1.772, 0.5 + (r - y) / 1.402], -1)
    near(run(lambda x: fl.rgb_to_ycbcr(x, axis=-1), RGB), want, 1e-5)
    near(run(lambda x: fl.ycbcr_to_rgb(x, axis=-1), want.astype(np.float32)), RGB, 1e-5)


# ---------------------------------------------------------------- filters
MODES: list[tuple[Any, dict[str, Any]]] = [
    ("edge", {"mode": "nearest"}), ("reflect", {"mode": "mirror"}), ("wrap", {"mode": "wrap"}), (0.5, {"mode": "constant", "cval": 0.5}),
]  # fmt: skip
PHOTO = numbers(2, 19, 14)


@pytest.mark.parametrize(("boundary", "mode"), MODES, ids=lambda v: str(v) if not isinstance(v, dict) else "")
def test_linear_filters_and_medians_are_those_of_scipy(boundary: Any, mode: dict[str, Any]) -> None:
    def each(f: Any) -> Array:
        return np.stack([f(p.astype(float)) for p in PHOTO])

    near(
        both(lambda x: fl.gaussian_filter(x, 1.3, boundary=boundary), PHOTO), each(lambda p: ndimage.gaussian_filter(p, 1.3, **mode)), 1e-5
    )
    near(
        both(lambda x: fl.box_filter(x, (3, 4), boundary=boundary), PHOTO), each(lambda p: ndimage.uniform_filter(p, (3, 4), **mode)), 1e-5
    )
    if not isinstance(
        boundary, float
    ):  # SciPy takes the number outside for each of the two passes; so it is 0.5 in the first, 2 in the second
        for axis in (0, 1):
            near(
                both(lambda x, a=axis: fl.sobel(x, "yx"[a], boundary=boundary), PHOTO),
                each(lambda p, a=axis: ndimage.sobel(p, a, **mode)),
                1e-5,
            )
    for size in (3, 5):
        got = run(lambda x, s=size: fl.median_filter(x, s, boundary=boundary), PHOTO)
        near(got, each(lambda p, s=size: ndimage.median_filter(p, s, **mode)))


def test_medians_of_every_order_and_type() -> None:
    for n in (3, 4, 5, 9):
        lines = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        for a, b in exchanges(n):
            lines[:, a], lines[:, b] = lines[:, [a, b]].min(1), lines[:, [a, b]].max(1)
        assert (np.diff(lines) >= 0).all()
    bytes_ = np.random.default_rng(1).integers(0, 255, (12, 9)).astype(np.uint8)
    for size in (3, 5):
        same(run(lambda x, s=size: fl.median_filter(x, s), bytes_), ndimage.median_filter(bytes_, size, mode="nearest"))
    coarse = np.random.default_rng(2).integers(0, 2, (300, 301)).astype(np.uint8)
    same(run(lambda x: fl.median_filter(x, 5), coarse), ndimage.median_filter(coarse, 5, mode="nearest"))


def test_bilateral_filter() -> None:
    x = PHOTO[0]
    around = np.pad(x.astype(float), 2, mode="edge")
    total, weights = np.zeros(x.shape), np.zeros(x.shape)
    for dy, dx in np.ndindex(5, 5):
        other = around[dy : dy + 19, dx : dx + 14]
        w = np.exp(-((dy - 2) ** 2 + (dx - 2) ** 2) / (2 * 1.5**2) - (other - x) ** 2 / (2 * 0.4**2))
        total, weights = total + w * other, weights + w
    near(both(lambda x: fl.bilateral_filter(x, 2, 1.5, 0.4), x), total / weights, 1e-5)


@pytest.mark.parametrize("footprint", [3, (1, 3), (4, 2), [[0, 1, 0], [1, 1, 1], [0, 1, 0]], [[1, 0, 0], [1, 1, 0]]], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_morphology_is_that_of_scipy(footprint: Any, dtype: str) -> None:
    x = np.abs(PHOTO[0] * 50).astype(dtype)
    low, high = (-np.inf, np.inf) if dtype == "float32" else (0, 255)
    shape = np.ones(np.broadcast_to(footprint, 2), bool) if not isinstance(footprint, list) else np.array(footprint, bool)
    eroded = ndimage.grey_erosion(x, footprint=shape, mode="constant", cval=high)
    dilated = ndimage.grey_dilation(x, footprint=shape, mode="constant", cval=low)
    same(both(lambda x: fl.erode(x, footprint), x), eroded)
    same(both(lambda x: fl.dilate(x, footprint), x), dilated)
    same(run(lambda x: fl.opening(x, footprint), x), ndimage.grey_dilation(eroded, footprint=shape, mode="constant", cval=low))
    same(run(lambda x: fl.closing(x, footprint), x), ndimage.grey_erosion(dilated, footprint=shape, mode="constant", cval=high))


def test_refusals() -> None:
    x = numbers(1, 6, 5, 7)
    for wrong, code, said in [
        (lambda x: fl.resize(x, (3, 4), "cubic"), "A304", "one of these"),
        (lambda x: fl.resize(x, (3, 4, 5)), "A304", "two for y and x"),
        (lambda x: fl.resize(x, (0, 4)), "A304", "positive"),
        (lambda x: fl.resize(x, 3, antialias=True, coordinates="asymmetric"), "A304", "half_pixel"),
        (lambda x: fl.resize(x[0, 0, 0], 3), "A307", "last two axes"),
        (lambda x: fl.pixel_shuffle(x, 2), "A303", "multiple of 4"),
        (lambda x: fl.pixel_unshuffle(x, 2), "A303", "multiples of 2"),
        (lambda x: fl.pixel_shuffle(x, 0), "A304", "positive"),
        (lambda x: fl.grid_sample(x, x), "A301", "a grid is [1, y, x, 2]"),
        (lambda x: fl.grid_sample(fl.cast(x, fl.u8), x[:, :, :, :2]), "A306", "between pixels"),
        (lambda x: fl.warp(x, x), "A301", "the flow is [1, 2, y, x]"),
        (lambda x: fl.warp(x, x[:, :2], outside="wrap"), "A304", "one of these"),
        (lambda x: fl.warp_affine(x, x[0, 0]), "A301", "[2, 3]"),
        (lambda x: fl.affine_grid(x[0], 3), "A301", "theta is [n, 2, 3]"),
        (lambda x: fl.rgb_to_hsv(x), "A301", "a colour has 3"),
        (lambda x: fl.rgb_to_lab(fl.cast(x[:, :3], fl.u8)), "A306", "from 0 to 1"),
        (lambda x: fl.rgb_to_gray(x[:, :3], weights="bt1"), "A304", "recommendation"),
        (lambda x: fl.gaussian_filter(x, 0.0), "A304", "above 0"),
        (lambda x: fl.gaussian_filter(x, 1.0, boundary="mirror"), "A304", "one of these"),
        (lambda x: fl.median_filter(x, 4), "A304", "3 and 5"),
        (lambda x: fl.sobel(x, "z"), "A304", "last two axes"),
        (lambda x: fl.bilateral_filter(x, -1, 1.0, 1.0), "A304", "at least 0"),
        (lambda x: fl.erode(x, np.zeros((3, 3))), "A304", "at least one true"),
    ]:  # fmt: skip
        problem = refusal(wrong, x)
        assert problem.code == code and said in problem.why, (problem.asked, problem.why)
