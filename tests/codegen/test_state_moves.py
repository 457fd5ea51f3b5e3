"""New values of state that read old ones: in place where that is right, by way of other memory where it is not."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stateful import Line, copies, follow, rows

F32 = np.float32


class Moves(fl.Program):
    """Every way in which a new value may read old ones."""

    def __init__(self) -> None:
        self.a, self.b, self.c = (fl.state(init=np.arange(k, k + 70, dtype=F32), i=70) for k in (0, 100, 200))
        self.m = fl.state(init=fl.init.normal(1.0), y=33, x=17)
        self.count = fl.state(init=0, dtype=fl.i64)

    @fl.method
    def pointwise(self) -> Any:
        a, b = self.a, self.b
        self.a = fl.stage(lambda i: a[i] * 0.5 + b[i])

    @fl.method
    def swap(self) -> Any:
        self.a, self.b = self.b, self.a

    @fl.method
    def cycle(self) -> Any:
        self.a, self.b, self.c = self.b, self.c, self.a

    @fl.method
    def shift(self) -> Any:
        old = self.a
        self.a = fl.stage(lambda i: fl.where(i > 0, old[i - 1], -1.0), extents={"i": 70})

    @fl.method
    def back(self) -> Any:
        self.a = self.a[::-1]

    @fl.method
    def smooth(self) -> Any:
        old = fl.edge(self.m)
        self.m = fl.stage(lambda y, x: (old[y - 1, x] + old[y, x] + old[y + 1, x]) / 3.0)

    @fl.method
    def later(self) -> Any:
        old = self.a
        self.a = self.a + 1.0
        return fl.stage(lambda i: old[69 - i] + self.a[i], name="both"), old, self.a

    @fl.method
    def total(self) -> Any:
        old = self.a
        self.a = old / fl.sum(old)

    @fl.method
    def rows(self) -> Any:
        old = self.m
        self.m = fl.softmax(old, axis=1)
        self.c = fl.cumulative_sum(self.c) * 0.01

    @fl.method
    def gather(self, ids: fl.i32(70)) -> Any:  # type: ignore[valid-type]
        old = self.a
        self.a = fl.stage(lambda i: old[ids[i]])
        self.count = self.count + 1
        return self.count

    @fl.method
    def product(self) -> Any:
        m = self.m
        self.m = fl.stage(lambda y, x: fl.sum(lambda k: m[y, k] * m[k, x], over={"k": 17}), name="square") * 0.01

    @fl.method
    def one_for_two(self) -> Any:
        same = self.a + self.b
        self.a = same
        self.b = same
        return same


IDS = (np.arange(70) * 7 % 70).astype(np.int32)


def moves() -> list[tuple[str, tuple[Any, ...]]]:
    return [(m.name, (IDS,) if m.name == "gather" else ()) for m in fl.trace(Moves).methods]


def test_every_way_of_moving_state_is_right() -> None:
    model = follow(Moves(), moves() * 2)
    assert {name: copies(model, name) for name, _ in moves()} == {
        "pointwise": set(),
        "swap": {"a"} if copies(model, "swap") == {"a"} else {"b"},
        "cycle": copies(model, "cycle"),
        "shift": {"a"},
        "back": {"a"},
        "smooth": {"m"},
        "later": {"a"},
        "total": set(),
        "rows": copies(model, "rows"),
        "gather": {"a"},
        "product": {"m"},
        "one_for_two": copies(model, "one_for_two"),
    }
    assert len(copies(model, "cycle")) == 1


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(moves()), min_size=3, max_size=12))
def test_any_sequence_of_moves_is_right(calls: list[tuple[str, tuple[Any, ...]]]) -> None:
    follow(Moves(), calls, moved())


def moved() -> Any:
    if not hasattr(moved, "model"):
        moved.model = fl.compile(Moves())  # type: ignore[attr-defined]
    moved.model.reset()  # type: ignore[attr-defined]
    return moved.model  # type: ignore[attr-defined]


PLANS = {
    "vectors": "- vectorize: {axis: i, width: 16, tail: shift}",
    "guarded": "- vectorize: {axis: i, width: 16, tail: guard}",
    "parallel": "- split: {axis: i, factor: 8}\n    - parallel: i_outer",
    "scalar": "- compute_root",
}


@pytest.mark.parametrize("name", PLANS)
def test_loops_of_a_plan_leave_updates_right(name: str) -> None:
    text = "\n".join(f"  /{m}/update/{s}:\n    {PLANS[name]}" for m, s in (("pointwise", "a"), ("shift", "a"), ("swap", "b")))
    model = fl.compile(Moves(), fl.ExecutionPlan.from_yaml(f"schedule:\n{text}\n"))
    follow(Moves(), [c for c in moves() if c[0] in ("pointwise", "shift", "swap")] * 2, model)
    assert copies(model, "pointwise") == ({"a"} if name == "vectors" else set())  # a last vector that is moved back computes some twice


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8", "uint64", "bool"])
def test_state_of_every_kind(dtype: str) -> None:
    class Kind(fl.Program):
        def __init__(self) -> None:
            self.a, self.one = fl.state(init=1, dtype=dtype, i=9), fl.state(init=1, dtype=dtype)
            self.none = fl.state(dtype=dtype, i=0)

        @fl.method
        def step(self) -> Any:
            if dtype == "bool":
                self.a, self.one, self.none = ~self.a, self.one & self.a[3], ~self.none
            else:
                self.a, self.one, self.none = self.a + self.one, self.one + self.one, self.none + 1

    follow(Kind(), [("step", ())] * 9)


def test_symbolic_extents_and_buckets() -> None:
    plan = fl.ExecutionPlan.from_yaml("extents: {n: {buckets: [4, 16]}}\n")
    follow(Line(), [("train_step", rows(n, n)) for n in (4, 16, 5, 1)] + [("infer", (rows(4)[0],))], fl.compile(Line(), plan))


def test_large_state_is_changed_where_it_is() -> None:
    class Large(fl.Program):
        def __init__(self) -> None:
            self.w = fl.param(init=fl.init.normal(1.0), y=301, x=257)

        @fl.method
        def step(self, g: fl.f32(301, 257)) -> Any:  # type: ignore[valid-type]
            self.w = self.w - 0.1 * g

        @fl.method
        def twice(self, g: fl.f32(301, 257)) -> Any:  # type: ignore[valid-type]
            self.w = self.w + g
            return fl.sum(g), self.w

    g = np.random.default_rng(0).standard_normal((301, 257)).astype(F32)
    model = follow(Large(), [("step", (g,)), ("twice", (g,))])
    assert copies(model, "step") == copies(model, "twice") == set()
    w = np.array(model.parameters["w"])
    total, doubled = model.twice(model.parameters["w"])  # the input is the state itself
    np.testing.assert_allclose(total, w.sum(dtype=np.float64), rtol=1e-3)
    assert (doubled == 2 * w).all() and (model.parameters["w"] == 2 * w).all() and not np.shares_memory(doubled, model.parameters["w"])
