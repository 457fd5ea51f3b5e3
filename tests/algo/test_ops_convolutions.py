"""Convolutions over one, two and three axes, their transposes, and windows as axes, against the sums that define them."""

from __future__ import annotations

import itertools
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import both, graph_of, near, numbers, refusal, run, same

CONVOLUTIONS = {1: "conv1d", 2: "conv2d", 3: "conv3d"}
TRANSPOSES = {1: "conv_transpose1d", 2: "conv_transpose2d", 3: "conv_transpose3d"}
LETTERS = {1: "abc", 2: "abcd", 3: "abcde"}


def each(value: Any, rank: int) -> list[int]:
    return np.broadcast_to(value, rank).tolist()  # type: ignore[no-any-return]


def spread(x: np.ndarray, w: np.ndarray, stride: Any, sides: Any, more: Any, dilation: Any, groups: int) -> np.ndarray:
    """Transposed convolution as it is defined: every element adds its multiple of the kernel."""
    rank = x.ndim - 2
    steps, gaps, ends = each(stride, rank), each(dilation, rank), each(more, rank)
    whole = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[2:], steps, w.shape[2:], gaps, strict=True)]
    out = np.zeros((x.shape[0], w.shape[1] * groups, *(n + e for n, e in zip(whole, ends, strict=True))))
    inner, per = x.shape[1] // groups, w.shape[1]
    for c, o in itertools.product(range(x.shape[1]), range(per)):
        for at in itertools.product(*map(range, w.shape[2:])):
            place = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, gaps, x.shape[2:], steps, strict=True))
            out[(slice(None), c // inner * per + o, *place)] += x[:, c].astype(float) * w[(c, o, *at)]
    return out[(..., *(slice(a, n - b) for (a, b), n in zip(sides, out.shape[2:], strict=True)))]


def correlated(x: np.ndarray, w: np.ndarray, stride: Any, sides: Any, dilation: Any, groups: int) -> np.ndarray:
    rank = x.ndim - 2
    x = np.pad(x.astype(float), [(0, 0), (0, 0), *sides])
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], each(dilation, rank), strict=True)]
    views = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, rank + 2)))
    views = views[(slice(None), slice(None), *(slice(None, None, s) for s in each(stride, rank)))]
    views = views[(..., *(slice(None, None, d) for d in each(dilation, rank)))]
    parts = np.split(views, groups, 1)
    kernels = np.split(w, groups, 0)
    space, taps = "xyz"[:rank], "pqr"[:rank]
    return np.concatenate(
        [np.einsum(f"nc{space}{taps},oc{taps}->no{space}", v, k, optimize=True) for v, k in zip(parts, kernels, strict=True)], 1
    )


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 1), (3, 2, 2, 2), (1, "same", 2, 4)], ids=str
)
def test_convolutions_over_other_ranks(rank: int, stride: int, padding: Any, dilation: int, groups: int) -> None:
    size, taps = (9, 7, 8)[:rank], (3, 2, 3)[:rank]
    x, w, b = numbers(2, 4, *size), numbers(8, 4 // groups, *taps, seed=1), numbers(8, seed=2)
    sides = [(padding, padding)] * rank
    if padding == "same":
        total = [(k - 1) * dilation for k in taps]
        sides = [(t // 2, t - t // 2) for t in total]
    want = correlated(x, w, stride, sides, dilation, groups) + b.reshape(8, *(1,) * rank)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    near(run(lambda x, w, b: getattr(fl, CONVOLUTIONS[rank])(x, w, b, **options), x, w, b), want, 1e-5)
    free = fl.trace(
        lambda x, w: getattr(fl, CONVOLUTIONS[rank])(x, w, **options),
        inputs={"x": fl.f32("n", 4, *"hwd"[:rank]), "w": fl.f32(*w.shape)},
    )
    near(free.run(x, w), want - b.reshape(8, *(1,) * rank), 1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "sides", "more", "dilation", "groups"),
    [
        (1, (0, 0), 0, 1, 1), (2, (0, 0), 1, 1, 1), (2, (1, 1), 0, 1, 2), (3, (1, 0), 2, 1, 1), (2, (1, 1), 1, 3, 1), (4, (2, 1), 0, 2, 2),
        (3, (0, 0), 2, 3, 1), (6, (1, 2), 5, 4, 1), (1, (2, 2), 1, 2, 1),
    ],
    ids=str,
)  # fmt: skip
def test_transposed_convolutions(rank: int, stride: int, sides: Any, more: int, dilation: int, groups: int) -> None:
    size, taps = (4, 3, 2)[:rank], (3, 4, 2)[:rank]
    x, w, b = numbers(2, 4, *size), numbers(4, 3, *taps, seed=1), numbers(3 * groups, seed=2)
    want = spread(x, w, stride, [sides] * rank, more, dilation, groups)
    if min(want.shape) == 0:
        pytest.skip("the padding leaves nothing")
    options = {"stride": stride, "padding": [sides] * rank, "output_padding": more, "dilation": dilation, "groups": groups}
    biased = want + b.reshape(-1, *(1,) * rank)
    near(run(lambda x, w, b: getattr(fl, TRANSPOSES[rank])(x, w, b, **options), x, w, b), biased, 1e-5)
    free = fl.trace(
        lambda x, w: getattr(fl, TRANSPOSES[rank])(x, w, **options), inputs={"x": fl.f32("n", 4, *"hwd"[:rank]), "w": fl.f32(*w.shape)}
    )
    near(free.run(x, w), want, 1e-5)


def test_a_transposed_convolution_visits_only_the_taps_that_reach_a_position() -> None:
    graph = graph_of(lambda x, w: fl.conv_transpose2d(x, w, stride=2), numbers(1, 3, 5, 5), numbers(3, 4, 4, 4))
    (stage,) = graph.stages
    assert stage.reduction is not None and stage.reduction.extents == (3, 2, 2)


def test_a_transposed_convolution_is_the_adjoint() -> None:
    x, w, y = numbers(1, 2, 7, 6), numbers(3, 2, 3, 2, seed=1), numbers(1, 3, 4, 4, seed=2)
    forward = run(lambda x, w: fl.conv2d(x, w, stride=2, padding=1, dilation=(1, 1)), x, w)
    assert forward.shape == y.shape
    back = run(lambda y, w: fl.conv_transpose2d(y, w, stride=2, padding=1, output_padding=(0, 0)), y, w)
    assert back.shape == x.shape
    near(np.float64((forward.astype(float) * y).sum()), np.float64((back.astype(float) * x).sum()), 1e-5)


@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (3, (1, 2), 1), (2, ((0, 1), (2, 0)), 2), (3, 0, 3)])
def test_unfold_and_fold(stride: int, padding: Any, dilation: int) -> None:
    x = numbers(2, 3, 9, 8)
    sides = [p if isinstance(p, tuple) else (p, p) for p in (padding if isinstance(padding, tuple) else (padding, padding))]
    around = np.pad(x, [(0, 0), (0, 0), *sides])
    reach = [2 * dilation + 1, dilation + 1]
    views = np.lib.stride_tricks.sliding_window_view(around, reach, axis=(2, 3))
    views = views[:, :, ::stride, ::stride, ::dilation, ::dilation]
    want = views.transpose(0, 1, 4, 5, 2, 3)
    near(both(lambda x: fl.unfold(x, (3, 2), stride=stride, padding=padding, dilation=dilation), x), want)
    columns = numbers(*want.shape, seed=3)
    total = np.zeros(around.shape)
    for n, c, a, b, i, j in np.ndindex(*want.shape):
        total[n, c, i * stride + a * dilation, j * stride + b * dilation] += columns[n, c, a, b, i, j]
    inside = total[:, :, sides[0][0] : sides[0][0] + 9, sides[1][0] : sides[1][0] + 8]
    near(run(lambda k: fl.fold(k, (9, 8), stride=stride, padding=padding, dilation=dilation), columns), inside, 1e-5)


def test_integers_keep_their_widths() -> None:
    x, w = np.full((1, 2, 5), 200, np.uint8), np.full((2, 3, 2), 100, np.uint8)
    same(run(lambda x, w: fl.conv_transpose1d(x, w, stride=2), x, w), spread(x, w, 2, [(0, 0)], 0, 1, 1).astype(np.uint32))
    assert run(lambda x: fl.unfold(x[:, :, None], (1, 2)), x).dtype == np.uint8


def test_refusals() -> None:
    x, w, t = numbers(1, 4, 6), numbers(2, 4, 3), numbers(4, 2, 3)
    for wrong, code, said in [
        (lambda x, w, t: fl.conv1d(x, w, padding=(1, 2)), "A304", "((before, after),)"),
        (lambda x, w, t: fl.conv1d(x[0], w), "A307", "three axes: n, c, x"),
        (lambda x, w, t: fl.conv3d(x, w), "A307", "five axes"),
        (lambda x, w, t: fl.conv1d(x, w[0]), "A307", "o, c, kx"),
        (lambda x, w, t: fl.conv1d(x, w, stride=(1, 2)), "A304", "at least 1"),
        (lambda x, w, t: fl.conv_transpose1d(x, w), "A301", "4 channels, there are 2 kernels"),
        (lambda x, w, t: fl.conv_transpose1d(x, t, groups=3), "A304", "divides the 4 channels"),
        (lambda x, w, t: fl.conv_transpose1d(x, t, output_padding=1), "A304", "below the stride"),
        (lambda x, w, t: fl.conv_transpose1d(x, t, padding=9), "A301", "leave -10 elements"),
        (lambda x, w, t: fl.conv_transpose1d(x, t, numbers(3)), "A301", "one element for each kernel"),
        (lambda x, w, t: fl.conv_transpose1d(x, t, padding="same"), "A304", "non-negative"),
        (lambda x, w, t: fl.unfold(x, 2), "A307", "four axes"),
        (lambda x, w, t: fl.fold(x, 3), "A307", "six axes"),
        (lambda x, w, t: fl.fold(fl.reshape(x, (1, 1, 2, 2, 2, 3)), (3, 3)), "A301", "[2, 2] windows"),
    ]:  # fmt: skip
        problem = refusal(wrong, x, w, t)
        assert problem.code == code and said in problem.why, (problem.asked, problem.why)
