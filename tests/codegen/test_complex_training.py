"""Complex parameters and state: first values, training, files of weights, checkpoints, derivatives, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite import init, nn
from fluorite.algo.parameters import initial_parameters
from fluorite.codegen.runtime import weights

WANTED = np.complex64([[1 + 2j, -0.5j], [0.25, -1 + 1j], [2j, 3]])


class Channel(fl.Program):
    """Learns a complex matrix from what comes out of it."""

    def __init__(self, optimizer: Any = None) -> None:
        self.line = nn.Linear(3, 2, dtype=fl.c64)
        self.last = fl.state(init=1j, dtype=fl.c64)
        self.optimizer = optimizer or fl.optim.Adam(0.05)

    @fl.method(batch="n", training=True)
    def train_step(self, x: fl.c64[fl.Tensor, "n", 3], y: fl.c64[fl.Tensor, "n", 2]) -> Any:
        cost = fl.mean(fl.abs(self.line(x) - y) ** 2, name="cost")
        self.optimizer.minimize(cost)
        self.last = fl.sum(y) * 1j
        return cost

    @fl.method
    def weight(self) -> Any:
        return self.line.w


class Slopes(fl.Program):
    def __init__(self) -> None:
        self.line = nn.Linear(3, 2, dtype=fl.c64)
        self.gains = [fl.param(init=init.ones, dtype=fl.c64, out=2)]

    @fl.method
    def slopes(self, x: fl.c64[fl.Tensor, "n", 3]) -> Any:
        def loss(line: Any) -> Any:
            return fl.sum(fl.abs(line(x) * self.gains[0]) ** 2)

        w = self.line.w
        return fl.gradients(loss(self.line), [w]), fl.grad(loss)(self.line), fl.grad(lambda w: fl.sum(fl.abs(x @ w) ** 2))(w)


def samples(n: int, seed: int = 0) -> tuple[Any, Any]:
    g = np.random.default_rng(seed)
    x = (g.standard_normal((n, 3)) + 1j * g.standard_normal((n, 3))).astype(np.complex64)
    return x, x @ WANTED


def test_training_is_that_of_the_interpreter_and_ends_where_it_should() -> None:
    graph, model = fl.trace(Channel()), Channel().compile()
    held: Any = {path: np.asarray(a) for path, a in model.parameters.items()}
    x, y = samples(32)
    for _ in range(3):
        cost, held = graph.step(x, y, method="train_step", parameters=held)
        np.testing.assert_allclose(model.train_step(x, y), cost, rtol=1e-4)
    for path, value in held.items():
        np.testing.assert_allclose(model.parameters[path], value, rtol=1e-3, atol=1e-5, err_msg=path)
    assert model.parameters["line/w"].dtype == np.complex64
    np.testing.assert_allclose(model.parameters["last"], y.sum() * 1j, rtol=1e-5)
    for _ in range(600):
        model.train_step(x, y)
    np.testing.assert_allclose(model.parameters["line/w"], WANTED, atol=1e-2)


@pytest.mark.parametrize("optimizer", [fl.optim.SGD(0.1, clip_norm=5.0, average=0.9), fl.optim.LAMB(0.03), fl.optim.AdamW(0.05)])
def test_other_optimisers_go_down_too(optimizer: Any) -> None:
    graph, (x, y) = fl.trace(Channel(optimizer), method="train_step"), samples(16)
    first, held = graph.step(x, y)
    for _ in range(20):
        cost, held = graph.step(x, y, parameters=held)
    assert cost < 0.8 * first


def test_derivatives_by_parameters() -> None:
    graph, (x, _) = fl.trace(Slopes()), samples(5)
    held = graph.step(x).parameters
    w, b = held["line/w"], held["line/b"]
    (first,), second, third = graph.run(x, parameters=held)
    want = 2 * x.conj().T @ (x @ w + b)
    for got in (first, second["w"], third):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(second["b"], 2 * (x @ w + b).sum(0), rtol=1e-4, atol=1e-4)


def test_first_values() -> None:
    class Held(fl.Program):
        def __init__(self) -> None:
            self.a = fl.param(init=init.normal(1.0), dtype=fl.c64, n=4000)
            self.b = fl.param(init=np.complex64([1j, 2]), dtype=fl.c128, n=2)
            self.c = fl.param(init=lambda g, shape: g.standard_normal(shape) * 1j, dtype=fl.c64, n=3)
            self.d, self.e = fl.param(dtype=fl.c64, n=2), fl.param(init=2 - 1j, dtype=fl.c64, shape=())

        @fl.method
        def all(self) -> Any:
            return self.a, self.b, self.c, self.d, self.e

    a, b, c, d, e = Held().compile().all()
    assert a.dtype == np.complex64 and b.dtype == np.complex128 and b.tolist() == [1j, 2] and d.tolist() == [0, 0] and e == 2 - 1j
    assert abs(np.mean(np.abs(a) ** 2) - 1) < 0.1 and abs(np.corrcoef(a.real, a.imag)[0, 1]) < 0.1 and not c.real.any() and c.imag.all()


def test_files_of_weights_and_checkpoints(tmp_path: Path) -> None:
    model, other = Channel().compile(), Channel().compile(seed=1)
    x, y = samples(8)
    model.train_step(x, y)
    model.save(tmp_path / "w.safetensors")
    stored = weights.read(tmp_path / "w.safetensors")
    assert stored["line/w"].dtype == np.float32 and stored["line/w"].shape == (3, 2, 2)
    other.load(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(other.weight(), model.weight())
    complex_file = {name: np.array(a) for name, a in model.parameters.items()} | {"line/w": WANTED}
    weights.write(tmp_path / "c.safetensors", complex_file)
    other.load(tmp_path / "c.safetensors")
    np.testing.assert_array_equal(other.parameters["line/w"], WANTED)
    model.checkpoint(tmp_path / "kept")
    other.resume(tmp_path / "kept")
    assert other.train_step(x, y) == model.train_step(x, y)
    other.parameters["line/w"] = WANTED
    with pytest.raises(ValueError, match="read-only"):
        other.parameters["line/w"][0] = 0
    for wrong, why in (
        (WANTED[:2], "has shape (2, 2), expected complex64[3, 2]"),
        (WANTED.astype(np.complex128), "value.astype(np.complex64)"),
    ):
        with pytest.raises(fl.RunError) as caught:
            other.parameters["line/w"] = wrong
        assert why in str(caught.value)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda self: fl.real(self.z), "A181"),
        (lambda self: fl.cast(self.z, fl.c128), "A181"),
        (lambda self: self.z[:1], "A180"),
    ],
)
def test_assignments_that_are_refused(change: Any, code: str) -> None:
    class Holder(fl.Program):
        def __init__(self) -> None:
            self.z = fl.state(dtype=fl.c64, n=3)

        @fl.method
        def change(self) -> Any:
            self.z = change(self)

    with pytest.raises(fl.AlgorithmError, match=code):
        fl.trace(Holder())


def test_initialisers_of_real_numbers_alone() -> None:
    class Holder(fl.Program):
        def __init__(self) -> None:
            self.z = fl.param(init=init.orthogonal(), dtype=fl.c64, n=3, m=3)

        @fl.method
        def it(self) -> Any:
            return self.z

    with pytest.raises(fl.AlgorithmError, match="orthogonal"):
        initial_parameters(fl.trace(Holder()))
