"""Lazy optimisers: rows that are looked up move as they would alone, all else stays to the bit; and rows written in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.graph import Transition
from fluorite.algo.numerics import compare
from fluorite.algo.parameters import initial_parameters
from fluorite.codegen import driver

Array = np.ndarray[Any, Any]
OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "sgd": lambda **o: fl.optim.SGD(0.1, **o),
    "nesterov": lambda **o: fl.optim.SGD(0.1, 0.9, nesterov=True, clip_value=0.5, **o),
    "adam": lambda **o: fl.optim.Adam(0.1, clip_norm=0.7, **o),
    "adamw": lambda **o: fl.optim.AdamW(0.1, weight_decay=0.1, **o),
    "adagrad": lambda **o: fl.optim.Adagrad(0.1, initial=0.1, weight_decay=0.01, **o),
    "rmsprop": lambda **o: fl.optim.RMSProp(0.1, momentum=0.5, centered=True, **o),
    "ftrl": lambda **o: fl.optim.FTRL(0.1, l1=0.01, l2=0.1, **o),
}


def words(optimizer: Any, rows: int = 11, features: int = 3) -> fl.Program:
    class Words(fl.Program):
        def __init__(self) -> None:
            self.table = fl.param(rows=rows, features=features, init=fl.init.normal(0.1))
            self.optimizer = optimizer

        @fl.method(batch="n", training=True)
        def train_step(self, ids: fl.i32[fl.Tensor, "n", 2], y: fl.f32[fl.Tensor, "n"]) -> Any:
            loss = fl.sum(fl.square(fl.sum(fl.take(self.table, ids, 0), (1, 2)) - y), name="loss")
            self.optimizer.minimize(loss)
            return loss

    return Words()


def batch(n: int, seed: int, rows: int = 11) -> tuple[Array, Array]:
    draw = np.random.default_rng(seed)
    return draw.integers(0, rows // 2, (n, 2)).astype(np.int32), draw.standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("name", ["nesterov", "adam", "ftrl"])
def test_compiled_steps_are_the_oracles_and_leave_other_rows_alone(name: str) -> None:
    program = words(OPTIMIZERS[name](rows="lazy"))
    model, graph = fl.compile(program, seed=1), fl.trace(program)
    touched = np.zeros(11, bool)
    for seed, n in enumerate((1, 7, 2, 13)):
        before = {k: np.array(v) for k, v in model.parameters.items()}
        given = batch(n, seed)
        loss = model.train_step(*given)
        for found in compare(graph, "train_step", given, Transition(loss, dict(model.parameters)), parameters=before):
            assert found.ok, (n, found.text())
        rows = np.unique(given[0])
        touched[rows] = True
        for path, old in before.items():
            new = model.parameters[path]
            if old.ndim == 2:
                others = np.setdiff1d(np.arange(11), rows)
                assert np.array_equal(old[others], new[others]), path
                assert (old[rows] != new[rows]).any(), path
    assert touched.any() and not touched.all()


@pytest.mark.parametrize("name", list(OPTIMIZERS))
def test_a_row_moves_as_in_a_table_of_its_own(name: str) -> None:
    """On the oracle: where every row is looked up, a lazy step is the step of the whole table, to the bit."""
    lazy, dense = (fl.trace(words(OPTIMIZERS[name](**o), 3)) for o in ({"rows": "lazy"}, {}))
    held = initial_parameters(lazy, 0)
    for seed in range(3):
        ids = np.array([[0, 1], [2, 1], [1, 0], [2, 2]], np.int32)
        y = np.random.default_rng(seed).standard_normal(4).astype(np.float32)
        one, other = (g.step(ids, y, method="train_step", parameters=held).parameters for g in (lazy, dense))
        assert one.keys() == other.keys()
        for path in one:
            if name == "adam":  # the norm that clips adds up in another order
                np.testing.assert_allclose(one[path], other[path], rtol=1e-5, atol=1e-7, err_msg=path)
            else:
                assert np.array_equal(one[path], other[path]), path
        held = one


def test_no_kernel_goes_over_the_table() -> None:
    graph = fl.trace(words(fl.optim.Adam(0.1, rows="lazy"), 1009, 5))
    plan = fl.ExecutionPlan()
    (made,) = driver.lower_variants(graph, driver.prepared(plan, graph)[0], driver.host_target(plan))
    assert {graph.path_of(i) for i in made.in_place.values()} >= {"table", "optimizer/m/table", "optimizer/v/table"}
    for k in made.kernels:
        assert not any("0..1009" in line or "0..5045" in line for line in k.text().splitlines()), k.text()
    dense = fl.trace(words(fl.optim.Adam(0.1), 1009, 5))
    (made,) = driver.lower_variants(dense, driver.prepared(plan, dense)[0], driver.host_target(plan))
    assert any("0..1009" in k.text() for k in made.kernels)


class Cache(fl.Program):
    """What users write to rows themselves."""

    def __init__(self) -> None:
        self.rows = fl.state(rows=7, features=3)

    @fl.method
    def put(self, ids: fl.i32[fl.Tensor, "n"], values: fl.f32[fl.Tensor, "n", 3]) -> Any:
        self.rows = fl.scatter(self.rows, ids, values * 2.0)
        return fl.sum(self.rows)

    @fl.method
    def turned(self, ids: fl.i32[fl.Tensor, "n"]) -> Any:
        self.rows = fl.scatter(self.rows, ids, fl.take(self.rows, ids + 1, 0))
        return fl.sum(self.rows)

    @fl.method
    def swap(self, ids: fl.i32[fl.Tensor, "n"], values: fl.f32[fl.Tensor, "n", 3]) -> Any:
        before = self.rows + 0.0
        self.rows = fl.scatter(self.rows, ids, values)
        return before, self.rows


def test_rows_that_a_user_scatters() -> None:
    model, graph = fl.compile(Cache()), fl.trace(Cache())
    draw = np.random.default_rng(0)
    for ids in ([3], [2, 2, 2], [-1, 7, 0], [6, 5, 4, 3, 2, 1, 0, 0, 6]):  # the last for a row counts; what is outside is dropped
        at, values = np.array(ids, np.int32), draw.standard_normal((len(ids), 3)).astype(np.float32)
        for method, given in (("put", (at, values)), ("turned", (at,)), ("swap", (at, values))):
            before = {k: np.array(v) for k, v in model.parameters.items()}
            got = getattr(model, method)(*given)
            for found in compare(graph, method, given, Transition(got, dict(model.parameters)), parameters=before):
                assert found.ok, (method, ids, found.text())
            wanted = graph.step(*given, method=method, parameters=before).parameters["rows"]
            assert np.array_equal(model.parameters["rows"], wanted), (method, ids)


def test_what_is_not_looked_up_is_refused() -> None:
    for options, words_ in (
        ({"rows": "eager"}, "it is 'lazy', or left out"),
        ({"rows": "lazy", "average": 0.9}, "moves all rows"),
        ({"rows": "lazy", "accumulate": 2}, "moves all rows"),
    ):
        with pytest.raises(fl.AlgorithmError) as caught:
            fl.optim.Adam(0.1, **options)
        assert caught.value.problems[0].code == "A191" and words_ in str(caught.value)
    for kind in (fl.optim.LAMB, fl.optim.LARS):
        with pytest.raises(fl.AlgorithmError, match="norms of whole parameters"):
            kind(0.1, rows="lazy")

    class Dense(fl.Program):
        def __init__(self) -> None:
            self.w = fl.param(a=3, b=2)
            self.optimizer = fl.optim.Adam(0.1, rows="lazy")

        @fl.method
        def train_step(self, x: fl.f32[fl.Tensor, "n", 3]) -> Any:
            loss = fl.sum(fl.square(x @ self.w))
            self.optimizer.minimize(loss)
            return loss

    with pytest.raises(fl.AlgorithmError) as caught:
        fl.trace(Dense())
    assert caught.value.problems[0].code == "A198" and "rows='lazy' for w" in str(caught.value)
