"""Every function of the Python array API standard and every keyword of it is there; what is not, is listed with the reason."""

from __future__ import annotations

import inspect
import math
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from operator_running import near, numbers, refusal, run, same

PLAIN = """
1: finfo iinfo abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf isnan log
   log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc
   matrix_transpose nonzero unique_all unique_counts unique_inverse unique_values linalg.det linalg.eigh linalg.eigvalsh linalg.inv
   linalg.matrix_transpose linalg.slogdet linalg.svdvals
2: can_cast add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal floor_divide
   greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter
   not_equal pow remainder subtract matmul tile linalg.matmul linalg.matrix_power linalg.outer linalg.solve
3: moveaxis where
"""
"""Functions of as many operands and nothing else."""
STANDARD = """
asarray: 1 dtype= device= copy=
arange: 1 stop= step= dtype= device=
empty: 0 shape dtype= device=
empty_like: 1 dtype= device=
eye: 2 k= dtype= device=
from_dlpack: 1 device= copy=
full: 0 shape fill_value dtype= device=
full_like: 1 fill_value dtype= device=
linspace: 2 num dtype= device= endpoint=
meshgrid: 0* indexing=
ones: 0 shape dtype= device=
ones_like: 1 dtype= device=
tril: 1 k=
triu: 1 k=
zeros: 0 shape dtype= device=
zeros_like: 1 dtype= device=
astype: 2 copy= device=
broadcast_arrays: 0*
broadcast_shapes: 0*
broadcast_to: 1 shape
isdtype: 0 dtype kind
result_type: 0*
clip: 1 min= max=
take: 2 axis=
take_along_axis: 2 axis=
tensordot: 2 axes=
vecdot: 2 axis=
concat: 1 axis=
expand_dims: 1 axis
flip: 1 axis=
permute_dims: 1 axes
repeat: 2 axis=
reshape: 1 shape copy=
roll: 1 shift axis=
squeeze: 1 axis
stack: 1 axis=
unstack: 1 axis=
argmax: 1 axis= keepdims=
argmin: 1 axis= keepdims=
count_nonzero: 1 axis= keepdims=
searchsorted: 2 side= sorter=
isin: 2 invert=
argsort: 1 axis= descending= stable=
sort: 1 axis= descending= stable=
cumulative_sum: 1 axis= dtype= include_initial=
cumulative_prod: 1 axis= dtype= include_initial=
max: 1 axis= keepdims=
mean: 1 axis= keepdims=
min: 1 axis= keepdims=
prod: 1 axis= dtype= keepdims=
std: 1 axis= correction= keepdims=
sum: 1 axis= dtype= keepdims=
var: 1 axis= correction= keepdims=
all: 1 axis= keepdims=
any: 1 axis= keepdims=
diff: 1 axis= n= prepend= append=
linalg.cholesky: 1 upper=
linalg.cross: 2 axis=
linalg.diagonal: 1 offset=
linalg.matrix_norm: 1 keepdims= ord=
linalg.matrix_rank: 1 rtol=
linalg.pinv: 1 rtol=
linalg.qr: 1 mode=
linalg.svd: 1 full_matrices=
linalg.tensordot: 2 axes=
linalg.trace: 1 offset= dtype=
linalg.vecdot: 2 axis=
linalg.vector_norm: 1 axis= keepdims= ord=
fft.fft: 1 n= axis= norm=
fft.ifft: 1 n= axis= norm=
fft.fftn: 1 s= axes= norm=
fft.ifftn: 1 s= axes= norm=
fft.rfft: 1 n= axis= norm=
fft.irfft: 1 n= axis= norm=
fft.rfftn: 1 s= axes= norm=
fft.irfftn: 1 s= axes= norm=
fft.hfft: 1 n= axis= norm=
fft.ihfft: 1 n= axis= norm=
fft.fftfreq: 1 d= dtype= device=
fft.rfftfreq: 1 d= dtype= device=
fft.fftshift: 1 axes=
fft.ifftshift: 1 axes=
"""
"""The others: how many operands come first (* is any number), then the names of what follows, with = where it may be left out."""
LEFT_OUT = {
    "device": "an algorithm names no device",
    "copy": "a tensor is a value: nobody could tell a copy from it",
    "from_dlpack": "what a compiled model is called with may be any DLPack array; an algorithm has constants of NumPy",
}


def functions() -> list[tuple[str, str, list[str]]]:
    found = []
    for line in PLAIN.replace("\n   ", " ").strip().splitlines():
        count, names = line.split(": ")
        found += [(n, count, []) for n in names.split()]
    for line in STANDARD.strip().splitlines():
        name, rest = line.split(": ")
        found.append((name, rest.split()[0], rest.split()[1:]))
    return found


def test_functions_and_keywords() -> None:
    wrong = []
    for path, count, keywords in functions():
        home, _, name = path.rpartition(".")
        if path in LEFT_OUT:
            continue
        fn = getattr(fl.linalg if home == "linalg" else fl, name, None)
        if fn is None:
            wrong.append(f"no {path}")
            continue
        parameters = inspect.signature(fn).parameters
        first = [p for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        if "*" in count and not any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
            wrong.append(f"{path} takes no number of operands")
        if len(first) < int(count.rstrip("*")):
            wrong.append(f"{path} takes {len(first)} operands, not {count}")
        for k in keywords:
            p = parameters.get(k.rstrip("="))
            if k.rstrip("=") not in LEFT_OUT and (p is None or (k.endswith("=") and p.default is p.empty)):
                wrong.append(f"{path} has no {k}")
    assert wrong == []


def test_constants() -> None:
    assert (fl.e, fl.pi, fl.inf, fl.newaxis) == (math.e, math.pi, math.inf, None) and math.isnan(fl.nan)


def test_shapes_that_broadcast() -> None:
    assert fl.broadcast_shapes((2, 1), (3,), ()) == (2, 3) and fl.broadcast_shapes() == ()
    assert fl.broadcast_shapes((0, 1), (1, 5)) == (0, 5)
    with pytest.raises(fl.AlgorithmError, match="broadcasting needs equal extents"):
        fl.broadcast_shapes((2,), (3,))


def test_the_default_type_may_be_said() -> None:
    for make in (fl.zeros, fl.ones, fl.eye, fl.fftfreq, fl.rfftfreq, lambda n, dtype: fl.linspace(0, 1, n, dtype=dtype)):
        assert run(lambda make=make: make(2, dtype=None)).dtype == np.float32
        assert run(lambda make=make: make(2, dtype="float64")).dtype == np.float64


def test_sums_in_a_type() -> None:
    x, z = numbers(2, 3, 5, dtype="int8"), numbers(4, 4, dtype="complex64")
    for to in ("int8", "int16", "int64", "uint8", "float32", "float64"):
        same(run(lambda x, to=to: fl.sum(x, (0, 2), dtype=to), x), x.sum((0, 2), dtype=to))
        same(run(lambda x, to=to: fl.prod(x, 1, dtype=to), x), x.prod(1, dtype=to))
        same(run(lambda x, to=to: fl.linalg.trace(x, 1, dtype=to), x), x.trace(1, 1, 2, dtype=to))
    same(run(lambda x: fl.sum(x, (), dtype=fl.u8), x), x.astype(np.uint8))
    for to in ("complex64", "complex128"):
        assert run(lambda z, to=to: fl.sum(z, 1, dtype=to), z).dtype == to == run(lambda x, to=to: fl.prod(x, 1, dtype=to), x).dtype
        near(run(lambda z, to=to: fl.sum(z, 1, dtype=to), z), z.sum(1), 1e-5)
        near(run(lambda z, to=to: fl.prod(z, 1, dtype=to), z), z.prod(1), 1e-5)
        near(run(lambda z, to=to: fl.linalg.trace(z, dtype=to), z), z.trace(), 1e-5)
        near(run(lambda x, to=to: fl.sum(x, 1, dtype=to), x), x.sum(1))
        near(run(lambda x, to=to: fl.linalg.trace(x, dtype=to), x), x.trace(0, 1, 2))
    assert refusal(lambda x: fl.stage(lambda i, j: fl.sum(lambda k: x[i, j, k], dtype="int8")), x).code == "A302"


def test_the_remaining_keywords() -> None:
    x = numbers(3, 5)
    same(run(lambda x: fl.clip(x, min=-0.5, max=0.5), x), x.clip(-0.5, 0.5))
    same(run(lambda x: fl.full((2,), fill_value=3, dtype="int8") + fl.full_like(x[0, :2], fill_value=2, dtype="int8"), x), np.int8([5, 5]))
    at = np.argsort(x, -1)
    same(run(lambda x, at: fl.take_along_axis(x, at), x, at), np.take_along_axis(x, at, -1))
    few = np.array([[2, 0, 1]], np.int64)
    for axis, first, places in ((1, x, few), (0, x, few[:, :1]), (1, x[:1], at), (0, x[:, :1], at % 3)):
        same(run(lambda x, p, d=axis: fl.take_along_axis(x, p, d), first, places), np.take_along_axis(first, places, axis))
    same(run(lambda x: x.mT, x), x.T)
    same(run(lambda x: x[:, fl.newaxis], x), x[:, None])
    shuffled, wanted = numbers(70), numbers(9, seed=1)
    order = np.argsort(shuffled)
    places = run(lambda x, v, s: fl.searchsorted(x, v, sorter=s), shuffled, wanted, order)
    np.testing.assert_array_equal(places, np.searchsorted(shuffled, wanted, sorter=order))
    assert fl.isdtype(dtype="int8", kind="integral")


def test_parts_of_unique() -> None:
    x = np.int32([[3, 1, 3], [7, 1, 0]])
    values, at, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for size, cut in ((4, False), (6, True)):
        every = run(lambda x, n=size, c=cut: list(fl.unique_all(x, n, cut=c)), x)
        for got, want in zip(every, (values, at, inverse, counts), strict=True):
            np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(run(lambda x: fl.unique_values(x, 6, -1), x), [*values, -1, -1])
    for got, want in zip(run(lambda x: list(fl.unique_counts(x, 4)), x), (values, counts), strict=True):
        np.testing.assert_array_equal(got, want)
    found, places = run(lambda x: list(fl.unique_inverse(x, 4)), x)
    np.testing.assert_array_equal(found[places], x)


def test_what_has_no_declared_size() -> None:
    x = np.int32([[3, 0], [3, 7]])
    every = run(lambda x: [*fl.nonzero(x, cut=True)[0], fl.unique_values(x, cut=True)], x)
    for got, want in zip(every, (*np.nonzero(x), [0, 3, 7]), strict=True):
        np.testing.assert_array_equal(got, want)
    for wrong in (lambda x: fl.nonzero(x)[0][0], lambda x: fl.unique(x)[0], lambda x: fl.bincount(x)):
        problem = refusal(wrong, x, symbolic=True)
        assert problem.code == "A304" and "declared" in (problem.why or "")


def test_lists_by_themselves() -> None:
    same(run(lambda: fl.add([1, 2], [0.5, 4])), np.float32([1.5, 6]))
    same(run(lambda: fl.multiply([True, False], [3, 4])), np.int32([3, 0]))
    same(run(lambda: fl.where([True, False], [1, 2], [0.5, 4])), np.float32([1, 4]))
    same(run(lambda x: fl.where([True, False], x, 0), np.int8([5, 6])), np.int8([5, 0]))


def test_transforms_of_mirrored_signals() -> None:
    z, x = numbers(3, 5, dtype="complex128"), numbers(3, 5, dtype="float64")
    for norm in ("backward", "ortho", "forward"):
        for n, axis in ((None, -1), (7, 1), (4, 0), (1, -2)):
            got = run(lambda z, n=n, a=axis, k=norm: fl.hfft(z, n, a, norm=k), z)
            np.testing.assert_allclose(got, np.fft.hfft(z, n, axis, norm), atol=1e-12)
            got = run(lambda x, n=n, a=axis, k=norm: fl.ihfft(x, n, a, norm=k), x)
            np.testing.assert_allclose(got, np.fft.ihfft(x, n, axis, norm), atol=1e-12)


def test_complete_qr() -> None:
    for shape in ((5, 3), (3, 5), (2, 4, 4)):
        x = numbers(*shape, dtype="float64")
        q, r = run(lambda x: list(fl.linalg.qr(x, mode="complete")), x)
        assert q.shape == (*shape[:-1], shape[-2]) and r.shape == shape
        np.testing.assert_allclose(q @ r, x, atol=1e-12)
        np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(shape[-2]), q.shape), atol=1e-12)
    wide = numbers(3, 5, dtype="float64")

    def of(mode: str) -> Any:
        return run(lambda x: fl.grad(lambda x: fl.sum(fl.linalg.qr(x, mode=mode).R))(x), wide)

    np.testing.assert_array_equal(of("complete"), of("reduced"))
    assert refusal(lambda x: fl.grad(lambda x: fl.sum(fl.linalg.qr(x, mode="complete").R))(x), numbers(5, 3)).code == "A171"
    assert refusal(lambda x: list(fl.linalg.qr(x, mode="full")), wide).code == "A304"
