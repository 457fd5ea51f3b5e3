"""Symbolic extents fixed to numbers: the same values, nothing symbolic left, and what is refused."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.errors import AlgorithmError
from fluorite.algo.extent import symbols_of
from fluorite.algo.graph import Graph
from fluorite.algo.specialise import specialise
from hypothesis import given, settings
from hypothesis import strategies as st


class Two(fl.Program):
    @fl.method
    def windows(self, x: fl.f32[fl.Tensor, "n", "m"]) -> Any:
        view = fl.reflect(x)
        sums = fl.stage(lambda i, j: view[i - 1, j] + view[i, j + 2] * i, name="sums")
        return fl.stage(lambda i: fl.sum(lambda j: sums[i, j]) / sums.shape[1], name="means")

    @fl.method
    def shorter(self, x: fl.f32[fl.Tensor, "n"]) -> Any:
        return fl.stage(lambda i: x[i] - x[i + 2], name="steps")


G = fl.trace(Two())


def left(g: Graph, method: str) -> set[str]:
    """Symbols anywhere in the extents of a method."""
    stages = g.stages_of(method)
    extents = [n for s in stages for n in (*s.extents, *(s.reduction.extents if s.reduction else ()))]
    return {name for n in extents for name in symbols_of(n)} | set(g.symbols(method))


@settings(max_examples=25, deadline=None)
@given(n=st.integers(3, 9), m=st.integers(1, 9), values=st.sampled_from([("n",), ("m",), ("n", "m")]))
def test_the_values_stay(n: int, m: int, values: tuple[str, ...]) -> None:
    sizes = {"n": n, "m": m}
    made = specialise(G, {name: sizes[name] for name in values})
    x = np.random.default_rng(n).random((n, m), dtype=np.float32)
    np.testing.assert_allclose(made.run(x, method="windows"), G.run(x, method="windows"), rtol=1e-6)
    np.testing.assert_array_equal(made.run(x[:, 0], method="shorter"), G.run(x[:, 0], method="shorter"))
    assert left(made, "windows") == {"n", "m"} - set(values)
    assert [s.id for s in made.stages] == [s.id for s in G.stages]


def test_one_method_alone() -> None:
    made = specialise(G, {"n": 5}, "windows")
    assert left(made, "windows") == {"m"} and left(made, "shorter") == {"n"}


def test_nothing_to_fix_is_the_same_graph() -> None:
    assert specialise(G, {}) is G


@pytest.mark.parametrize(("values", "code"), [({"q": 3}, "A140"), ({"n": 1}, "A141")])
def test_refusals(values: dict[str, int], code: str) -> None:
    with pytest.raises(AlgorithmError) as caught:
        specialise(G, values)
    assert caught.value.problems[0].code == code
