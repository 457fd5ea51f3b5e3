"""The order of kernels: it takes no more memory than the order of the stages, and what is computed late dies at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.graph import Graph
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.alive import Values, values_of
from fluorite.schedule.default import default_schedule
from fluorite.schedule.grouping import Group, group_stages
from fluorite.schedule.machine import Machine
from fluorite.schedule.running_order import STRATEGIES, Dependences, _Run
from fluorite.schedule.scheduled import Scheduled, apply
from hypothesis import given, settings
from hypothesis import strategies as st

KIB = 1024


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Stages of very different sizes that read one another."""
    count = draw(st.integers(2, 12))
    sizes = [draw(st.sampled_from([1, 16, 256, None])) for _ in range(count)]
    reads = [draw(st.lists(st.integers(0, n), min_size=1, max_size=3, unique=True)) for n in range(count)]

    def model(x: Any) -> Any:
        made = [x]
        for n, (size, sources) in enumerate(zip(sizes, reads, strict=True)):
            made.append(_total(f"s{n}", size or x.shape[0], [made[k] for k in sources]))
        return made[-1]

    return fl.trace(model, None, inputs={"x": fl.f32("n")})


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_all_that_runs_before_a_group_does(data: st.DataObject) -> None:
    """Also what stands after it in the order of the stages, as groups of several stages and readers of old state may."""
    count = data.draw(st.integers(2, 12))
    rank = data.draw(st.permutations(range(count)))
    before = {n: data.draw(st.sets(st.sampled_from(range(count)), max_size=4)) for n in range(count)}
    before = {n: {b for b in those if rank[b] < rank[n]} for n, those in before.items()}
    made = {n: data.draw(st.sampled_from([0, 1, 50, 1000])) for n in range(count)}
    readers = {n: tuple(r for r, those in before.items() if n in those) for n in range(count)}
    reads = {n: tuple(v for v in before[n]) for n in range(count)}
    values = Values(made, reads, {v: made[v] for v in readers if readers[v]}, {v: r for v, r in readers.items() if r})
    for strategy in STRATEGIES:
        order = _Run(values, Dependences.of(before, {n: n for n in range(count)}), strategy).order()
        assert sorted(order) == list(range(count))
        assert all(order.index(b) < order.index(n) for n, those in before.items() for b in those)


def _total(name: str, size: Any, tensors: Sequence[Any]) -> Any:
    return fl.stage(lambda i: sum((fl.sum(t) for t in tensors), start=i * 0.5), extents={"i": size}, name=name)


@settings(max_examples=60, deadline=None)
@given(g=graphs())
def test_no_order_takes_more_than_that_of_the_stages(g: Graph) -> None:
    groups = group_stages(g, {}, [])
    members = {s.id: [s.id] for s in g.stages}
    place = {s.id: n for n, s in enumerate(g.stages)}
    known = Dependences.of({s.id: [i for i in s.sources if g.stage(i)] for s in g.stages}, place)
    for extent in (1024, 32):
        values = values_of(g, lambda i: i, members, extent)
        first = _Run(values_of(g, lambda i: i, members, 1024), known, STRATEGIES[0]).order()
        assert values.peak(first) == _peak(g, [(i,) for i in first], extent)
        assert values.least <= _peak(g, [x.stages for x in groups], extent) <= values.peak(first)


def _peak(g: Graph, order: Sequence[Sequence[int]], extent: int = 1024) -> int:
    """Bytes of what has been made and is read later, or is returned, at the fullest kernel."""
    size = {s.id: 4 * _elements(s.shape, extent) for s in g.stages}
    most, made = 0, set[int]()
    for n, group in enumerate(order):
        later = {i for rest in order[n + 1 :] for s in rest for i in g.stage(s).sources}  # type: ignore[union-attr]
        read = {i for s in group for i in g.stage(s).sources}  # type: ignore[union-attr]
        made |= {s for s in group if s in g.outputs or any(c.id not in group for c in g.consumers[s])}
        most = max(most, sum(size[i] for i in made if i not in g.updates and (i in g.outputs or i in read | later or i in group)))
    return most


def _elements(shape: Sequence[Any], extent: int) -> int:
    total = 1
    for n in shape:
        total *= n if isinstance(n, int) else extent
    return total


class Network(fl.Program):
    def __init__(self, depth: int, optimizer: Any) -> None:
        self.layers, self.optimizer = [fl.nn.Linear(128, 128) for _ in range(depth)], optimizer

    @fl.method(training=True)
    def train_step(self, x: fl.f32[fl.Tensor, 32, 128]) -> Any:
        for layer in self.layers:
            x = fl.gelu(layer(x), name="act")
        self.optimizer.minimize(fl.mean(fl.square(x), name="cost"))


def scheduled(depth: int, optimizer: Any, text: str = "") -> Scheduled:
    return apply(ExecutionPlan.from_yaml(text, "p.yaml"), fl.trace(Network(depth, optimizer)), Machine(), default_schedule)


def peak(groups: Sequence[Group], g: Graph) -> float:
    """In rows of activations: 16 KiB."""
    return _peak(g, [x.stages for x in groups]) / (16 * KIB)


@pytest.mark.parametrize("optimizer", [fl.optim.SGD(), fl.optim.Adam()])
def test_a_weight_is_updated_as_soon_as_its_adjoint_is_there(optimizer: Any) -> None:
    """Two activations a layer are kept for the gradient; four more of a gradient of a weight, and a few adjoints."""
    for depth in (4, 8):
        made = scheduled(depth, optimizer)
        assert 2 * depth <= peak(made.groups, made.graph) <= 2 * depth + 7


def test_what_is_computed_again_dies_at_once() -> None:
    text = "memory: {recompute: [act, act_2, act_3, act_4, act_5, act_6, act_7]}"
    usual, again = scheduled(8, fl.optim.SGD()), scheduled(8, fl.optim.SGD(), text)
    saved = peak(usual.groups, usual.graph) - peak(again.groups, again.graph)
    assert saved >= 6


def test_the_order_is_always_the_same() -> None:
    one, other = (scheduled(3, fl.optim.Adam()) for _ in range(2))
    assert [[one.graph.path_of(i) for i in x.stages] for x in one.groups] == [
        [other.graph.path_of(i) for i in x.stages] for x in other.groups
    ]
