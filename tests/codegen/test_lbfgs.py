"""fl.optim.LBFGS: beside the two-loop recursion in NumPy on all parameters as one vector, on Rosenbrock's function and on quadratics."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from scipy.optimize import minimize

Array = np.ndarray[Any, Any]
START = np.array([-1.2, 1.0, -0.7, 0.8, 0.3])


class Valley(fl.Program):
    """Rosenbrock's function of four numbers, and a bowl of a fifth that is a parameter of its own."""

    def __init__(self, optimizer: Any, dtype: str = "float64") -> None:
        self.x = fl.param(init=START[:4].astype(dtype), dtype=dtype, n=4)
        self.y = fl.param(init=float(START[4]), dtype=dtype)
        self.optimizer = optimizer

    @fl.method
    def step(self) -> Any:
        x = self.x
        walls = fl.stage(lambda i: 100.0 * (x[i + 1] - x[i] * x[i]) * (x[i + 1] - x[i] * x[i]) + (1.0 - x[i]) * (1.0 - x[i]))
        loss = fl.sum(walls) + fl.square(self.y - 2.0)
        self.optimizer.minimize(loss)
        return loss


def slope(w: Array) -> Array:
    x, out = w[:4], np.zeros(5)
    out[:3] = -400 * x[:3] * (x[1:] - x[:3] ** 2) - 2 * (1 - x[:3])
    out[1:4] += 200 * (x[1:] - x[:3] ** 2)
    out[4] = 2 * (w[4] - 2)
    return out


def two_loops(g: Array, pairs: list[tuple[Array, Array]]) -> Array:
    """Nocedal and Wright, "Numerical Optimization", 2006, algorithm 7.4; minus its result."""
    q, alphas = g.copy(), []
    for s, y in reversed(pairs):
        alphas.append(s @ q / (s @ y))
        q -= alphas[-1] * y
    r = q * (pairs[-1][0] @ pairs[-1][1] / (pairs[-1][1] @ pairs[-1][1]) if pairs else 1.0)
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r += s * (alpha - y @ r / (s @ y))
    return -r


def followed(steps: int, rate: float, history: int, gradient: Any = slope) -> list[Array]:
    w, pairs, at = START.copy(), list[tuple[Array, Array]](), []
    last: tuple[Array, Array] | None = None
    for n in range(steps):
        g = gradient(w)
        if last is not None:
            s, y = w - last[0], g - last[1]
            pairs = [*pairs, (s, y)][-history:] if s @ y > 1e-10 * np.sqrt((s @ s) * (y @ y)) else pairs
        last = w, g
        w = w + rate * (1.0 if n else min(1.0, 1 / np.abs(g).sum())) * two_loops(g, pairs)
        at.append(w)
    return at


def where(model: Any) -> Array:
    return np.append(model.parameters["x"], model.parameters["y"]).astype(np.float64)


@pytest.mark.parametrize(("history", "rate"), [(1, 0.1), (3, 0.3), (10, 0.5)])
def test_steps_are_those_of_the_two_loops(history: int, rate: float) -> None:
    made = Valley(fl.optim.LBFGS(rate, history))
    graph, model = fl.trace(made), made.compile()
    state: Any = {k: np.array(v) for k, v in model.parameters.items() if not k.startswith("constant")}
    for n, wanted in enumerate(followed(25, rate, history)):
        state = graph.step(method="step", parameters=state).parameters
        model.step()
        np.testing.assert_allclose(np.append(state["x"], state["y"]), wanted, rtol=1e-7, err_msg=f"step {n}")
        np.testing.assert_allclose(where(model), wanted, rtol=1e-7, err_msg=f"step {n}")
    assert model.parameters["optimizer/pairs"] == min(history, 24) and model.parameters["optimizer/s/x"].shape == (history, 4)


def test_a_pair_that_says_that_the_loss_curves_down_is_left_out() -> None:
    class Hill(Valley):
        @fl.method
        def step(self) -> Any:
            loss = fl.sum(fl.cos(self.x)) + fl.cos(self.y)
            self.optimizer.minimize(loss)
            return loss

    model = Hill(fl.optim.LBFGS(0.2, 4)).compile()
    counted = []
    for wanted in followed(10, 0.2, 4, lambda w: -np.sin(w)):
        model.step()
        np.testing.assert_allclose(where(model), wanted, rtol=1e-7)
        counted.append(int(model.parameters["optimizer/pairs"]))
    assert counted[1] == 0 and counted[-1] > 0


def test_a_quadratic_is_at_its_least_after_a_few_steps_where_gradient_descent_takes_thousands() -> None:
    dtype = "float32"
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.standard_normal((12, 12)))
    matrix = ((q * np.logspace(0, 3, 12)) @ q.T).astype(dtype)
    least = rng.standard_normal(12).astype(dtype)

    class Bowl(fl.Program):
        def __init__(self, optimizer: Any) -> None:
            self.w, self.v = fl.param(init=0.0, dtype=dtype, i=3, j=3), fl.param(init=0.0, dtype=dtype, i=3)
            self.optimizer = optimizer

        @fl.method
        def step(self) -> Any:
            off = fl.concatenate([fl.reshape(self.w, (9,)), self.v]) - fl.asarray(least)
            loss = 0.5 * fl.sum(off * (fl.asarray(matrix) @ off))
            self.optimizer.minimize(loss)
            return loss

    model = Bowl(fl.optim.LBFGS(history_size=12)).compile()
    losses = [float(model.step()) for _ in range(60)]
    descended, rate = np.zeros(12), 1.0 / 1000
    for _ in range(2000):
        descended -= rate * (matrix @ (descended - least))
    off = descended - least
    assert losses[-1] < 1e-6 * losses[0] and losses[-1] < 0.1 * (0.5 * off @ (matrix @ off))


def test_accumulated_clipped_decayed_and_averaged_as_the_others() -> None:
    def gradient(w: Array) -> Array:
        return np.clip(slope(w), -50, 50) + 0.1 * np.append(w[:4], 0)

    model = Valley(fl.optim.LBFGS(0.2, 3, clip_value=50.0, weight_decay=0.1, decay="x", accumulate=2, average=0.5)).compile()
    for wanted in followed(8, 0.2, 3, gradient):
        before = where(model)
        model.step()
        np.testing.assert_array_equal(where(model), before)
        model.step()
        np.testing.assert_allclose(where(model), wanted, rtol=1e-7)
    assert abs(model.parameters["optimizer/average/x"] - model.parameters["x"]).max() > 0


def test_a_checkpoint_goes_on_to_the_bit(tmp_path: Path) -> None:
    def made() -> Any:
        return Valley(fl.optim.LBFGS(0.1, 3), "bfloat16").compile()

    model = made()
    for _ in range(7):
        model.step()
    model.checkpoint(tmp_path / "at_7")
    on = [float(model.step()) for _ in range(5)]
    other = made()
    other.resume(tmp_path / "at_7")
    assert [float(other.step()) for _ in range(5)] == on and np.isfinite(on).all()


def test_arguments_are_checked() -> None:
    for make, words in (
        (lambda: fl.optim.LBFGS(history_size=0), "history_size=0"),
        (lambda: fl.optim.LBFGS(curvature=-1), "curvature=-1"),
        (lambda: fl.optim.LBFGS(rows="lazy"), "rows='lazy'"),
    ):
        with pytest.raises(fl.AlgorithmError) as caught:
            make()
        assert caught.value.problems[0].code == "A191" and words in caught.value.problems[0].asked


class Searching(Valley):
    @fl.method
    def step(self) -> Any:
        return self.optimizer.minimize(self.height)

    def height(self) -> Any:
        x = self.x
        walls = fl.stage(lambda i: 100.0 * (x[i + 1] - x[i] * x[i]) * (x[i + 1] - x[i] * x[i]) + (1.0 - x[i]) * (1.0 - x[i]))
        return fl.sum(walls) + fl.square(self.y - 2.0)


def height(w: Array) -> float:
    x = w[:4]
    return float((100 * (x[1:] - x[:3] ** 2) ** 2 + (1 - x[:3]) ** 2).sum() + (w[4] - 2) ** 2)


def test_a_line_search_halves_the_step_until_the_loss_is_low_enough_and_finds_the_least() -> None:
    made = Searching(fl.optim.LBFGS(line_search="backtracking"))
    graph, model = fl.trace(made), made.compile()
    state: Any = {k: np.array(v) for k, v in model.parameters.items() if not k.startswith("constant")}
    w, pairs, last = START.copy(), list[tuple[Array, Array]](), None
    halved = 0
    for n in range(60):
        g = slope(w)
        if last is not None:
            s, y = w - last[0], g - last[1]
            pairs = [*pairs, (s, y)][-10:] if s @ y > 1e-10 * np.sqrt((s @ s) * (y @ y)) else pairs
        last, d, t = (w, g), two_loops(g, pairs), 1.0 if n else min(1.0, 1 / np.abs(g).sum())
        while not height(w + t * d) <= height(w) + 1e-4 * t * (g @ d):
            t, halved = t / 2, halved + 1
        before, w = height(w), w + t * d
        assert float(model.step()) == pytest.approx(before, rel=1e-6, abs=1e-18)
        if n < 20:  # rounding decides where they are in the end, at the least
            state = graph.step(method="step", parameters=state).parameters
            np.testing.assert_allclose(where(model), w, rtol=1e-6, err_msg=f"step {n}")
            np.testing.assert_allclose(np.append(state["x"], state["y"]), w, rtol=1e-6)
    assert halved > 3 and float(model.step()) < 1e-20
    np.testing.assert_allclose(where(model), [1, 1, 1, 1, 2], rtol=1e-9)


PYTORCH = {
    1: [-1.00913597734, 0.475920679887, -0.472839943343, 0.745113314448, 0.303009915014],
    2: [-0.731228599077, 0.369978063076, -0.389025509065, 0.620333356544, 0.307255953106],
    5: [-0.381679721227, 0.135312697233, -0.0128287290975, 0.0350093432432, 0.362009800746],
    10: [-0.186895862318, 0.105565587309, 0.0340345617706, -0.0378533179742, 1.05418161039],
    20: [0.623042910949, 0.362922251341, 0.101393177995, 0.00574102416264, 1.7824922781],
    40: [1.00081472789, 1.00138184684, 1.00295636766, 1.00601294256, 1.98897017845],
}
"""Where torch.optim.LBFGS(line_search_fn="strong_wolfe", lr=1, max_iter=1, max_eval=100) of PyTorch 2 is after so many steps."""


def test_strong_wolfe_goes_where_pytorch_goes() -> None:
    made = Searching(fl.optim.LBFGS(line_search="strong_wolfe"))
    model = made.compile()
    graph = fl.trace(made)
    state: Any = {k: np.array(v) for k, v in model.parameters.items() if not k.startswith("constant")}
    for n in range(1, 41):
        model.step()
        if n <= 6:
            state = graph.step(method="step", parameters=state).parameters
            np.testing.assert_allclose(np.append(state["x"], state["y"]), where(model), rtol=1e-10)
        if n in PYTORCH:
            np.testing.assert_allclose(where(model), PYTORCH[n], rtol=1e-7, err_msg=f"step {n}")


class Net(fl.Program):
    def __init__(self) -> None:
        self.up, self.down = fl.nn.Linear(2, 6), fl.nn.Linear(6, 1)
        self.optimizer = fl.optim.LBFGS(line_search="strong_wolfe")

    @fl.method(training=True)
    def step(self, x: fl.f32[fl.Tensor, 30, 2], y: fl.f32[fl.Tensor, 30, 1]) -> Any:
        return self.optimizer.minimize(lambda: fl.mean(fl.square(self.down(fl.tanh(self.up(x))) - y), name="loss"))


def test_a_small_network_learns_as_with_scipy() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((30, 2)).astype(np.float32)
    y = np.sin(x[:, :1]) * x[:, 1:]
    model = fl.compile(Net(), seed=1)
    names = ["up/w", "up/b", "down/w", "down/b"]
    shapes = [model.parameters[n].shape for n in names]
    start = np.concatenate([np.ravel(model.parameters[n]) for n in names]).astype(np.float64)

    def loss(w: Array) -> tuple[float, Array]:
        a, b, c, d = (part.reshape(s) for part, s in zip(np.split(w, np.cumsum([np.prod(s) for s in shapes])[:-1]), shapes, strict=True))
        h = np.tanh(x @ a + b)
        off = h @ c + d - y
        back = 2 * off @ c.T / len(x) * (1 - h * h)
        slopes = (x.T @ back, back.sum(0), h.T @ off * 2 / len(x), off.sum(0) * 2 / len(x))
        return float((off * off).mean()), np.concatenate([np.ravel(s) for s in slopes])

    with_scipy = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60, "ftol": 0, "gtol": 0})
    losses = [float(model.step(x, y)) for _ in range(61)]
    assert all(b <= a * (1 + 1e-5) for a, b in itertools.pairwise(losses))
    assert losses[0] == pytest.approx(loss(start)[0], rel=1e-5)
    assert max(losses[-1], with_scipy.fun) < losses[0] / 100  # two ways through a valley that is not convex


class Fit(fl.Program):
    def __init__(self, loss: str, search: str = "backtracking", **options: Any) -> None:
        self.line, self.drop = fl.nn.Linear(3, 2), fl.nn.Dropout(0.5)
        self.optimizer, self.kind = fl.optim.LBFGS(line_search=search, **options), loss

    @fl.method(training=True)
    def step(self, x: fl.f32[fl.Tensor, "n", 3], y: fl.f32[fl.Tensor, "n", 2]) -> Any:
        def loss() -> Any:
            return fl.mean(fl.square(self.line(self.drop(x) if self.kind == "random" else x) - y), name="loss")

        losses = {"tensor": loss(), "many": lambda: fl.square(self.line(x)), "random": loss, "good": loss}
        return self.optimizer.minimize(losses[self.kind])


def test_a_line_search_of_a_model_and_its_data() -> None:
    x = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)
    y = np.stack([x @ [1, -2, 3] + 0.5, x @ [0, 40, 0]], 1).astype(np.float32)
    model = fl.compile(Fit("good"), seed=0)
    losses = [float(model.step(x, y)) for _ in range(15)]
    assert all(b <= a for a, b in itertools.pairwise(losses)) and losses[-1] < 1e-9 * losses[0]
    np.testing.assert_allclose(model.parameters["line/w"], [[1, 0], [-2, 40], [3, 0]], atol=1e-3)


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [("tensor", "A191", "a line search of a loss that is a tensor"), ("random", "A199", "fl.while_loop"), ("many", "A170", "")],
)
def test_losses_that_a_line_search_cannot_ask_for_again_are_refused(kind: str, code: str, words: str) -> None:
    for search in ("backtracking", "strong_wolfe"):
        with pytest.raises(fl.AlgorithmError) as caught:
            fl.trace(Fit(kind, search))
        assert caught.value.problems[0].code == code and words in caught.value.problems[0].asked


def test_arguments_of_a_line_search_are_checked() -> None:
    for options in ({"line_search": "golden"}, {"line_search": "backtracking", "accumulate": 2}):
        with pytest.raises(fl.AlgorithmError) as caught:
            fl.optim.LBFGS(**options)
        assert caught.value.problems[0].code == "A191"
