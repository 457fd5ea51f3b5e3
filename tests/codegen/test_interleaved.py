"""Elements of a few parts, in vectors of elements: against the interpreter, on rows shorter and longer than vectors."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.codegen import driver


def everything(
    z: fl.c64[fl.Tensor, "n", "m"],
    w: fl.c128[fl.Tensor, "n"],
    x: fl.f32[fl.Tensor, "n", "m", 3],
    b: fl.u8[fl.Tensor, "n", 4],
    h: fl.f16[fl.Tensor, "n", 2],
) -> Any:
    deep = fl.exp(z * z) / (z + 3)
    near = fl.edge(x)
    luma = x[..., 0] * 0.25 + x[..., 1] * 0.5 + x[..., 2] * 0.25
    return {
        "deep": deep + fl.sqrt(deep),
        "turned": z.T * 2 + fl.conj(z.T),
        "double": w * w + 1j,
        "shared": (fl.abs(w), fl.log(w)),
        "three": fl.stack([luma, x[..., 0] - luma, x[..., 2] - luma], axis=-1),
        "blurred": fl.stage(lambda i, j, c: near[i, j - 1, c] + near[i, j, c] + near[i, j + 1, 2 - c]),
        "four": fl.stack([b[:, 3], b[:, 1], b[:, 0] // 2, b[:, 1] & 3], axis=-1),
        "half": fl.stack([h[:, 1] * 2, h[:, 0]], axis=-1),
        "guarded": fl.stage(lambda i, c: fl.where(h[i, 0] > 0, fl.sqrt(h[i, c]), fl.where(c > 0, 1, h[i, 1])), extents={"c": 2}),
        "counted": fl.stage(lambda i, c: b[i, c] * 2 + fl.cast(i * 4 + c, fl.i32), extents={"c": 3}),
    }


@pytest.fixture(scope="module")
def model() -> Any:
    return fl.compile(everything)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 5), (16, 16), (17, 31), (130, 67)])
def test_against_the_interpreter(model: Any, n: int, m: int) -> None:
    r = np.random.default_rng(n)
    z = (r.standard_normal((n, m)) + 1j * r.standard_normal((n, m))).astype(np.complex64)
    w = r.standard_normal(n) + 1j * r.standard_normal(n)
    given = z, w, r.random((n, m, 3), np.float32), r.integers(0, 256, (n, 4), np.uint8), r.random((n, 2)).astype(np.float16)
    wrong = [c for c in compare(fl.trace(everything), None, given, model(*given)) if not c.ok]
    assert not wrong


def test_vectors_are_woven() -> None:
    """One pass over memory, without a store of a single element outside the rest of a row."""

    def product(a: fl.c64[fl.Tensor, 100, 3], b: fl.c64[fl.Tensor, 100, 3]) -> Any:
        return a * b

    graph, target = fl.trace(product), driver.host_target(fl.ExecutionPlan())
    (kernel,) = driver.lower_variants(graph, fl.ExecutionPlan(), target)[0].kernels
    text = kernel.text()
    assert "= part0, part1 in turn" in text and "every 2 from 1 of a[" in text and "result[" in text
    assert text.count("in turn") == text.count("result[")
