"""fl.random: the same numbers in the interpreter and compiled, pure functions of key and index, with the distributions they claim."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.numerics import compare


def draws(seed: int, n: int) -> Any:
    def f(step: fl.i32[fl.Tensor]) -> dict[str, Any]:
        a, b = fl.random.split(fl.random.fold_in(fl.random.key(seed), step))
        return {
            "bits": fl.random.bits(a, n),
            "uniform": fl.random.uniform(a, n),
            "double": fl.random.uniform(a, n, "float64"),
            "normal": fl.random.normal(b, n),
            "bernoulli": fl.random.bernoulli(b, 0.3, n),
            "randint": fl.random.randint(b, -3, 4, n),
            "exponential": fl.random.exponential(b, n),
            "gumbel": fl.random.gumbel(b, n),
        }

    return f


def test_compiled_draws_are_the_interpreters() -> None:
    graph = fl.trace(draws(7, 33))
    step = np.int32(5)
    wanted, found = graph.run(step), fl.compile(graph)(step)
    rounded = {"normal", "exponential", "gumbel"}
    for name in set(wanted) - rounded:
        np.testing.assert_array_equal(found[name], wanted[name], name)
    for name in rounded:
        np.testing.assert_array_max_ulp(found[name], wanted[name], 2)
    assert all(c.ok for c in compare(graph, None, (step,), found))


def test_distributions() -> None:
    n = 200_000
    got = fl.trace(draws(1, n)).run(np.int32(0))
    u, z = got["uniform"].astype(float), got["normal"].astype(float)
    near = 5 / np.sqrt(n)  # five standard errors of a mean of unit deviation
    assert u.min() >= 0 and u.max() < 1 and abs(u.mean() - 0.5) < near and abs(u.var() - 1 / 12) < near
    assert abs(z.mean()) < near and abs(z.var() - 1) < 2 * near and abs((z**3).mean()) < 4 * near and abs((z**4).mean() - 3) < 10 * near
    assert abs(got["bernoulli"].mean() - 0.3) < near
    assert set(np.unique(got["randint"])) == set(range(-3, 4)) and abs(got["randint"].mean()) < 2 * near
    e, g = got["exponential"].astype(float), got["gumbel"].astype(float)
    assert e.min() > 0 and abs(e.mean() - 1) < near and abs(e.var() - 1) < 3 * near
    assert abs(g.mean() - np.euler_gamma) < 1.3 * near and abs(g.var() - np.pi**2 / 6) < 4 * near
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < near and abs(np.corrcoef(u, z)[0, 1]) < near


CHANCES = np.array([0.1, 0.25, 0, 0.05, 0.6], np.float32)


def test_categories_come_as_often_as_they_should() -> None:
    n = 100_000

    def many(logits: fl.f32[fl.Tensor, 5]) -> Any:
        return fl.random.categorical(fl.random.key(5), logits, shape=n)

    with np.errstate(divide="ignore"):
        logits = np.log(CHANCES) + 3
    seen = np.bincount(fl.trace(many).run(logits), minlength=5) / n
    assert (np.abs(seen - CHANCES) <= 5 * np.sqrt(CHANCES * (1 - CHANCES) / n)).all() and seen[2] == 0


def test_compiled_categories_orders_and_dropout_are_the_interpreters() -> None:
    def f(seed: fl.u32[fl.Tensor, 2], x: fl.f32[fl.Tensor, "n", "c"], h: fl.f16[fl.Tensor, 3, 7]) -> dict[str, Any]:
        a, b = fl.random.split(seed)
        return {
            "categories": fl.random.categorical(a, x),
            "of columns": fl.random.categorical(a, x, 0, shape=(2, 3)),
            "of halves": fl.random.categorical(b, h),
            "order": fl.random.permutation(a, 17),
            "of any length": fl.random.permutation(b, x.shape[0]),
            "rows": fl.random.permutation(b, x),
            "columns": fl.random.permutation(a, x, 1),
            "dropped": fl.dropout(x, 0.3, key=a),
            "dropped rows": fl.dropout(h, 0.5, key=b, shared=-1),
        }

    graph = fl.trace(f)
    model = fl.compile(graph)
    rng = np.random.default_rng(2)
    for n, c in ((1, 1), (11, 7), (16, 8)):
        given = rng.integers(0, 2**32, 2, np.uint32), rng.normal(size=(n, c)).astype("f4"), rng.normal(size=(3, 7)).astype("f2")
        wanted, found = graph.run(*given), model(*given)
        for name in wanted:
            np.testing.assert_array_equal(found[name], wanted[name], name)
        x = given[1]
        assert wanted["of columns"].shape == (2, 3, c) and wanted["of columns"].max() < n
        assert sorted(wanted["order"]) == list(range(17)) and sorted(wanted["of any length"]) == list(range(n))
        np.testing.assert_array_equal(wanted["rows"], x[wanted["of any length"]])
        np.testing.assert_array_equal(np.sort(wanted["columns"], 1), np.sort(x, 1))


def test_every_order_is_as_likely() -> None:
    graph = fl.trace(lambda k: fl.random.permutation(k, 3), inputs={"k": fl.u32(2)})
    keys = np.random.default_rng(0).integers(0, 2**32, (480, 2), np.uint32)
    orders = np.array([graph.run(k) for k in keys])
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 6 and (np.abs(counts - 80) < 5 * np.sqrt(80 * 5 / 6)).all()


def test_dropout_keeps_the_mean_and_what_it_keeps() -> None:
    x = np.random.default_rng(1).uniform(1, 2, (200, 300)).astype(np.float32)

    def run(rate: float, shared: Any = ()) -> Any:
        return fl.trace(lambda x: fl.dropout(x, rate, key=fl.random.key(1), shared=shared), inputs={"x": fl.f32("n", "c")}).run(x)

    got = run(0.2)
    np.testing.assert_array_equal(got[got != 0], (x * np.float32(1 / 0.8))[got != 0])
    assert abs((got == 0).mean() - 0.2) < 5 * np.sqrt(0.16 / x.size) and abs(got.mean() / x.mean() - 1) < 5 * np.sqrt(0.25 / x.size)
    np.testing.assert_array_equal(run(0.0), x)
    assert not run(1).any()
    rows = run(0.5, 1) == 0
    assert (rows == rows[:, :1]).all() and 0 < rows[:, 0].mean() < 1
    np.testing.assert_array_equal(run(0.5, "c"), run(0.5, 1))


def test_elements_depend_on_key_and_index_alone() -> None:
    short, long = (fl.trace(draws(3, n)).run(np.int32(1)) for n in (5, 50))
    for name in short:
        np.testing.assert_array_equal(short[name], long[name][:5])
    other = fl.trace(draws(3, 50)).run(np.int32(2))
    assert not np.any(other["bits"] == long["bits"])


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda k: fl.random.key(1.5), "a seed is an integer"),
        (lambda k: fl.random.uniform(np.zeros(2, np.float32)), "a key is uint32"),
        (lambda k: fl.random.bernoulli(k, 1.5), "from 0 to 1"),
        (lambda k: fl.random.randint(k, 3, 3), "low is below high"),
        (lambda k: fl.random.normal(k, 3, "int32"), "float32 or float64"),
        (lambda k: fl.random.uniform(k, 3, "float16"), "float32 or float64"),
        (lambda k: fl.random.categorical(k, np.ones(3, bool)), "logarithms of probabilities"),
        (lambda k: fl.random.permutation(k, -1), "non-negative integer"),
        (lambda k: fl.dropout([1.0], 1.5, key=k), "from 0 to 1"),
        (lambda k: fl.dropout([1], 0.5, key=k), "divided by 1 - rate"),
        (lambda k: fl.dropout([1.0], 0.5, key=[1, 2]), "a key is uint32"),
        (lambda k: fl.random.fold_in(k, 1.5), "one whole number"),
    ],
)
def test_mistakes_are_told(call: Any, why: str) -> None:
    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(lambda: call(fl.random.key(0)))
    assert why in caught.value.problems[0].why


class Keyless(fl.Program):
    """Draws without a key: in a method, in steps of scans that wait for loops and that do not, and for each example of a batch."""

    def __init__(self) -> None:
        self.w = fl.param(init=1.0)
        self.drop = fl.nn.Dropout(0.5)

    @fl.method
    def plain(self, logits: fl.f32[fl.Tensor, "n", 4]) -> Any:
        return (
            fl.random.uniform(logits.shape), fl.random.normal((2, "n"), fl.f64), fl.random.bernoulli(0.3, (20, 3)), fl.random.bits(3),
            fl.random.randint(-2, 5, (40,)), fl.random.gumbel(), fl.random.exponential(shape=3), fl.random.categorical(logits),
            fl.random.categorical(logits, 0), fl.random.categorical(logits, shape=(2,)), fl.random.permutation(9),
            fl.random.permutation(logits, 1), fl.dropout(logits, 0.5),
        )  # fmt: skip

    @fl.method
    def stepping(self, x: fl.f32[fl.Tensor, "t", 3], most: fl.f32[fl.Tensor]) -> Any:
        def step(c: Any, _: Any) -> Any:
            return c, fl.scan(lambda d, _: (d, fl.random.uniform(2)), c, length=2)[1]

        def waits(c: Any, _: Any) -> Any:
            c = fl.while_loop(lambda v: fl.sum(v) < most, lambda v: v + 3.0, c + fl.random.uniform(3))
            return c * 0, fl.random.uniform(())

        backwards = fl.scan(lambda c, _: (c, fl.random.uniform(3)), fl.zeros(1), x, reverse=True)[1]
        batch = fl.vmap(lambda row: row + fl.random.uniform(3))(0 * x)
        return fl.scan(step, fl.zeros(1), x)[1], fl.scan(waits, fl.zeros(3), x)[1], backwards, batch

    @fl.method(training=True)
    def slope(self, x: fl.f32[fl.Tensor, "t", 8]) -> Any:
        def step(c: Any, row: Any) -> Any:
            c = c * 0.5 + self.drop(row * self.w)
            return c, c

        total = fl.sum(fl.scan(step, fl.zeros(8), x)[1], name="total")
        return total, fl.gradients(total, [self.w])[0]


@pytest.fixture(scope="module")
def keyless() -> Any:
    return Keyless().compile(seed=3)


def state_of(model: Any) -> dict[str, Any]:
    return {k: np.array(v) for k, v in model.parameters.items() if not k.startswith("constant")}


def test_without_a_key_every_place_step_and_example_draws_other_numbers_in_kernels_as_in_the_interpreter(keyless: Any) -> None:
    graph, logits = fl.trace(Keyless), np.random.default_rng(0).random((5, 4), np.float32)
    for method, inputs in (("plain", (logits,)), ("stepping", (np.zeros((4, 3), np.float32), np.float32(10)))):
        for _ in range(2):
            state = state_of(keyless)
            meant, found = graph.run(*inputs, method=method, parameters=state), getattr(keyless, method)(*inputs)
            for comparison in compare(graph, method, inputs, found, parameters=state):
                assert comparison.ok, comparison.text()
            assert len(meant) == len(found)
        again = getattr(keyless, method)(*inputs)
        assert all((a != b).any() for a, b in zip(found, again, strict=True) if a.size > 2)
    drawn = [a.reshape(-1) for a in keyless.stepping(np.zeros((4, 3), np.float32), 10.0)]
    assert all(len(np.unique(a)) == a.size for a in drawn) and len(np.unique(np.concatenate(drawn))) == sum(a.size for a in drawn)


def test_a_key_that_is_given_is_used() -> None:
    def f(k: fl.u32[fl.Tensor, 2], logits: fl.f32[fl.Tensor, "n", 4]) -> Any:
        table = np.array([7, 8], np.uint32)
        return fl.random.uniform(k, 3), fl.random.uniform(key=k, shape=3), fl.random.categorical(k, logits), fl.random.permutation(k, 4), (
            fl.random.permutation(k, logits)), fl.random.bernoulli(table, 0.5, 9), fl.random.randint(k, 0, 9, 4)  # fmt: skip

    graph = fl.trace(f)
    assert not graph.methods[0].updates and (graph.run(np.uint32([1, 2]), np.zeros((2, 4), np.float32))[0] < 1).all()


def test_steps_drop_the_same_forward_and_backward_and_other_elements_each(keyless: Any) -> None:
    x = np.ones((6, 8), np.float32)
    total, slope = keyless.slope(x)
    assert total == pytest.approx(float(slope))  # linear in w, which is 1
    state = state_of(keyless)
    assert keyless.slope(x)[0] == pytest.approx(float(fl.trace(Keyless).run(x, method="slope", parameters=state)[0]))


def test_without_a_key_nothing_is_drawn_in_functions_and_turns_of_loops() -> None:
    class Turning(fl.Program):
        @fl.method
        def run(self, x: fl.f32[fl.Tensor, 3]) -> Any:
            return fl.while_loop(lambda v: fl.sum(v) < 10.0, lambda v: v + fl.random.uniform(3), x)

    def noisy(x: fl.f32[fl.Tensor, "n"]) -> Any:
        return x + fl.random.normal(x.shape)

    for model, what in ((Turning, "in an fl.while_loop"), (noisy, "in a function")):
        with pytest.raises(fl.AlgorithmError) as caught:
            fl.trace(model)
        assert caught.value.problems[0].code == "A199" and what in caught.value.problems[0].asked
