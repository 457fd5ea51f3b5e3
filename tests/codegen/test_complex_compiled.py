"""Complex numbers compiled: against the interpreter on awkward sizes, in and out of models, and in artefacts imported elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare
from fluorite.codegen import driver
from fluorite.codegen.tuning.graph_text import graph_data, graph_of
from fluorite.schedule import Parallel

Z = fl.c64[fl.Tensor, "n", "m"]


def everything(z: Z, w: fl.c64[fl.Tensor, "m", 3], x: fl.f32[fl.Tensor, "n", "m"]) -> Any:
    far = z / (w[:, 0] * 0.1 + 3)
    return {
        "arithmetic": 1j * z * x - far + 2,
        "functions": fl.where(x > 0, fl.exp(z), fl.sqrt(z)) + fl.log(z) + fl.tanh(z),
        "size": fl.abs(z) + fl.angle(z),
        "sums": (z.sum(0), fl.mean(z, axis=1), fl.prod(far, axis=1)),
        "product": fl.matmul(z, w, name="product"),
        "moved": fl.concatenate([z[:, ::-1], fl.conj(z)]).T,
        "stage": fl.stage(lambda i, k: fl.sum(lambda j: z[i, j] * w[j, k] ** 2), name="stage"),
        "inverse": fl.asin(z) + fl.acosh(w[:, 0]) + fl.atanh(z * 0.3) + fl.log1p(z) + fl.expm1(z),
        "running": fl.cumulative_prod(far, 1),
        "convolved": fl.conv1d(z[:, None, :], fl.full((2, 1, 1), 2 + 1j), w[0, :2]),
        "itself": z,
        "equal": z == fl.conj(fl.conj(z)),
    }


def test_check() -> None:
    plan = fl.ExecutionPlan(schedule={"double/multiply/imag": [Parallel("n")]})
    report = fl.check(double, plan)
    assert report.ok and len(report.cases) > 4, report


@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 13), (64, 33), (130, 257)])
def test_against_numpy(n: int, m: int) -> None:
    r = np.random.default_rng(n)
    z, w = ((r.standard_normal(s) + 1j * r.standard_normal(s)).astype(np.complex64) for s in ((n, m), (m, 3)))
    x = r.standard_normal((n, m), dtype=np.float32)
    got = fl.compile(everything)(z, w, x)
    assert all(c.ok for c in compare(fl.trace(everything), None, (z, w, x), got))
    assert {k: v.dtype.name for k, v in got.items() if isinstance(v, np.ndarray)} == {
        "arithmetic": "complex64", "functions": "complex64", "size": "float32", "product": "complex64", "moved": "complex64",
        "inverse": "complex64", "running": "complex64", "convolved": "complex64",
        "stage": "complex64", "itself": "complex64", "equal": "bool",
    }  # fmt: skip
    np.testing.assert_allclose(got["product"], z @ w, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got["stage"], z @ w**2, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got["arithmetic"], 1j * z * x - z / (w[:, 0] * 0.1 + 3) + 2, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got["convolved"], z[:, None] * np.complex64(2 + 1j) + w[0, :2, None], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(got["moved"], np.concatenate([z[:, ::-1], z.conj()]).T)
    assert (got["itself"] == z).all() and not np.shares_memory(got["itself"], z) and got["equal"].all()


def double(z: fl.c64[fl.Tensor, "n"], w: fl.c128) -> Any:
    return {"z": z * 2, "w": z * w}


def test_how_arrays_go_in_and_out() -> None:
    model = fl.compile(double)
    z = np.arange(10, dtype=np.complex64) * 1j
    want = z[::3] * 2
    assert model.double.spec.text() == 'double(z: complex64[n], w: complex128[]) -> {"z": complex64[n], "w": complex128[n]}'
    for given in (z[::3], z[::3].astype(">c8"), (z[::3]).tolist()):
        np.testing.assert_array_equal(model(given, 1)["z"], want)
    assert model(z, 2j)["w"].dtype == np.complex128 and (model([1, 2.5], np.complex128(2j))["w"] == [2j, 5j]).all()
    out = {"z": np.zeros(10, np.complex64), "w": np.zeros((10, 2), np.complex128)[:, 0]}
    assert model(z, 1j, out=out) is out and (out["z"] == z * 2).all() and (out["w"] == z * 1j).all()
    kept = [model(np.full(100_000, n, np.complex64), 1)["z"] for n in range(4)]
    assert [int(k[-1].real) for k in kept] == [0, 2, 4, 6]
    for bad, code, why in [
        ((z.astype(np.complex128), 1), "R104", "z is complex128, expected complex64[n]"), ((z.real.copy(), 1), "R104", "z is float32"),
        ((z[None], 1), "R105", "z has shape (1, 10), expected complex64[n]"), ((z, np.complex64(1)), "R104", "w is complex64"),
    ]:  # fmt: skip
        for call in (model, fl.trace(double).run):
            with pytest.raises(fl.RunError) as caught:
                call(*bad)
            assert caught.value.problems[0].code == code and why in caught.value.problems[0].asked
    with pytest.raises(fl.RunError, match=r"out is float32\[10\], expected complex64\[10\]"):
        model(z, 1, out={"z": np.zeros(10, np.float32), "w": out["w"]})


class Rotor(fl.Program):
    @fl.method(batch="n")
    def turn(self, z: fl.c64[fl.Tensor, "n", 3], by: fl.f32[fl.Tensor, "n"]) -> Any:
        """Each vector turned by its own angle."""
        return z * fl.exp(1j * by)[:, None]


def test_one_sample() -> None:
    model = Rotor().compile()
    z = np.complex64([1, 2, 3j])
    np.testing.assert_allclose(model.turn(z, np.float32(np.pi / 2)), z * 1j, atol=1e-6)
    assert model.turn(z[None], np.float32([0])).shape == (1, 3)


def test_an_artefact_in_a_process_of_its_own(tmp_path: Path) -> None:
    driver.build(double, None, tmp_path / "doubled")
    stub = (tmp_path / "doubled" / "__init__.pyi").read_text()
    assert "NDArray[np.complex64]" in stub and "NDArray[np.complex128]" in stub
    code = "import numpy as np, doubled; r = doubled.run(np.complex64([1j, 2]), 3); print(*r.values(), doubled.double.__doc__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert done.stdout.startswith("[0.+2.j 4.+0.j] [0.+3.j 6.+0.j]") and "z: complex64[n]" in done.stdout


def test_graphs_as_text() -> None:
    graph = fl.trace(double)
    again = graph_of(graph_data(graph))
    assert again.methods[0].complex == graph.methods[0].complex and len(graph.methods[0].complex) == 2
    assert [t.complex for t in again.leaves] == [True, True]
