"""Lists of arrays of unequal length as inputs: one build for all lengths, against the oracle, and against themselves padded otherwise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite import init, nn
from fluorite.algo.numerics import compare
from fluorite.codegen import driver

Array = np.ndarray[Any, Any]


class RNN(nn.Module):
    def __init__(self, size: int, hidden: int) -> None:
        self.w_ih = fl.param(in_=size, out=hidden, init=init.xavier_uniform())
        self.w_hh = fl.param(in_=hidden, out=hidden, init=init.orthogonal())
        self.b_ih = fl.param(out=hidden, init=init.zeros())
        self.b_hh = fl.param(out=hidden, init=init.constant(1.0))

    def __call__(self, x: Any, lengths: Any) -> Any:
        def step(h: Any, x_t: Any) -> Any:
            h = fl.tanh(x_t @ self.w_ih + self.b_ih + h @ self.w_hh + self.b_hh)
            return h, h

        return fl.scan(step, fl.zeros((x.shape[0], self.w_hh.shape[1])), x, axis=1, lengths=lengths)


class Tagger(fl.Program):
    """Says of each vector which of the first three components is largest in the sum of all vectors so far."""

    def __init__(self) -> None:
        self.rnn, self.out = RNN(5, 8), nn.Linear(8, 3)
        self.optimizer = fl.optim.LAMB(1e-2)
        self.data: Any = None

    def loss(self, x: Any, tags: Any) -> Any:
        _, h = self.rnn(x.padded, x.lengths)
        return fl.mean(fl.cross_entropy(self.out(h), tags.padded, reduction="none"), where=x.mask, name="loss"), h

    @fl.method(batch="n", training=True, reader="data")
    def train_step(self, x: fl.f32[fl.Ragged, "n", "t*", 5], tags: fl.i32[fl.Ragged, "n", "t*"]) -> Any:
        loss, h = self.loss(x, tags)
        self.optimizer.minimize(loss)
        return {"loss": loss, "h": h}

    @fl.method(batch="n")
    def slopes(self, x: fl.f32[fl.Ragged, "n", "t*", 5], tags: fl.i32[fl.Ragged, "n", "t*"]) -> Any:
        loss, h = self.loss(x, tags)
        return h, fl.gradients(loss, [self.rnn.w_ih, self.rnn.b_hh, self.out.w])

    @fl.method(batch="n")
    def tag(self, x: fl.f32[fl.Ragged, "n", "t*", 5]) -> Any:
        _, h = self.rnn(x.padded, x.lengths)
        return fl.argmax(self.out(h), -1)


def sentences(lengths: list[int], seed: int = 0) -> tuple[list[Array], list[Array]]:
    draw = np.random.default_rng(seed)
    xs = [draw.standard_normal((n, 5)).astype(np.float32) for n in lengths]
    return xs, [np.argmax(np.cumsum(x[:, :3], 0), -1).astype(np.int32) for x in xs]


def some(seed: int) -> tuple[list[Array], list[Array]]:
    return sentences(list(np.random.default_rng(seed).integers(1, 12, 16)), seed)


@pytest.fixture(scope="module")
def tagger() -> Any:
    plan = fl.ExecutionPlan.from_yaml("version: 1\nextents: {n: {between: [0, 64]}, t: {between: [0, 512]}}\n", "p.yaml")
    return fl.compile(Tagger(), plan, seed=0)


@pytest.fixture(scope="module")
def graph() -> fl.Graph:
    return fl.trace(Tagger())


def test_one_build_takes_all_lengths_as_the_oracle_does(tagger: Any, graph: fl.Graph) -> None:
    held = dict(tagger.parameters)
    for lengths in ([1], [3, 1, 2], [7, 7], [0, 5, 0], [13, 1, 17, 2, 11]):
        for method in ("tag", "slopes"):
            given = sentences(lengths)[: 1 if method == "tag" else 2]
            for found in compare(graph, method, given, getattr(tagger, method)(*given), parameters=held):
                assert found.ok, (lengths, found.text())
    assert tagger.tag(sentences([2, 4])[0]).shape == (2, 4)
    assert tagger.tag([]).shape == (0, 0) and graph.run([], method="tag", parameters=held).shape == (0, 0)
    assert tagger.tag([[], []]).shape == (2, 0) and tagger.tag([np.zeros((0, 5), np.float32)]).shape == (1, 0)


def test_padding_changes_nothing(tagger: Any) -> None:
    (x, *more), (tags, *others) = sentences([6, 2, 9, 31])
    alone = tagger.slopes([x], [tags])
    for n in (1, 2, 3):
        together = tagger.slopes([x, *more[:n]], [tags, *others[:n]])
        assert np.array_equal(alone[0][0], together[0][0, :6]), "a row of a longer batch is the row alone, to the bit"
        assert not together[0][0, 6:].any()
    padded, lengths = np.full((1, 40, 5), 7, np.float32), np.array([6], np.int32)  # all inputs by position: padded, with anything behind
    padded[0, :6] = x
    more_tags = np.full((1, 40), 2, np.int32)
    more_tags[0, :6] = tags
    wider = tagger.slopes(padded, lengths, more_tags)
    assert np.array_equal(alone[0][0], wider[0][0, :6])
    for a, b in zip(alone[1], wider[1], strict=True):
        assert np.array_equal(a, b), "gradients are sums with zeros added"


def test_what_else_may_be_given(tagger: Any, graph: fl.Graph) -> None:
    xs, tags = sentences([4, 4, 4])
    wanted = tagger.tag(xs)
    assert np.array_equal(tagger.tag(np.stack(xs)), wanted) and np.array_equal(tagger.tag(tuple(xs)), wanted)
    assert np.array_equal(tagger.tag([x.tolist() for x in xs]), wanted) and np.array_equal(tagger.tag(x=[x[::1] for x in xs]), wanted)
    assert np.array_equal(tagger.tag([np.asfortranarray(x) for x in xs]), wanted)
    assert np.array_equal(tagger.tag(xs[0]), wanted[0]) and np.array_equal(tagger.tag(xs[0].tolist()), wanted[0])  # one sample
    out = np.zeros((3, 4), np.int32)
    assert tagger.tag(xs, out=out) is out and np.array_equal(out, wanted)
    h, slopes = tagger.slopes(xs[1], tags[1].tolist())
    assert h.shape == (4, 8) and slopes[0].shape == (5, 8)
    assert np.array_equal(graph.run([x.tolist() for x in xs], method="tag", parameters=dict(tagger.parameters)), wanted)
    assert "tag(x: float32[n, t*, 5]) -> int32[n, t]" in repr(tagger)


def test_training_reads_lists(tagger: Any) -> None:
    model = tagger.copy()
    losses = [float(model.train_step(*some(n % 40))["loss"]) for n in range(250)]
    assert np.mean(losses[-20:]) < 0.5 * np.mean(losses[:5])
    xs, tags = sentences([5, 9, 2, 11, 8, 3] * 5, seed=77)
    right = [found[: len(t)] == t for found, t in zip(model.tag(xs), tags, strict=True)]
    assert np.mean(np.concatenate(right)) > 0.85
    model.parameters["rnn/w_ih"] = np.zeros((5, 8), np.float32)
    assert not model.parameters["rnn/w_ih"].any() and model.tag(xs).shape == (30, 11)


class Sums(fl.Program):
    def __init__(self) -> None:
        self.data = [(x, len(x)) for x in ([1.0, 2.0], [3.0], [4.0, 5.0, 6.0])]
        self.total = fl.state(init=0.0)

    @fl.method(batch="n", reader="data")
    def run_over(self, x: fl.f32[fl.Ragged, "n", "t*"], n: fl.i32[fl.Tensor, "n"]) -> Any:
        rows = fl.sum(fl.where(x.mask, x.padded, 0.0), -1)
        self.total = self.total + fl.sum(rows)
        return rows, n - x.lengths


def test_a_reader_gives_batches_of_unequal_arrays() -> None:
    program = Sums()
    program.data = fl.data.dataset([(np.array(x, np.float32), np.int32(n)) for x, n in program.data]).batch(2)
    model = fl.compile(program)
    (first, none), (second, nothing) = model.epoch("run_over")
    assert first.tolist() == [3, 3] and second.tolist() == [15] and not none.any() and not nothing.any()
    assert model.parameters["total"] == 21 and model.batch_rows("run_over") == 1
    model.run_over()
    assert model.batch_rows("run_over") == 2


def refusal(call: Any, *args: Any) -> str:
    with pytest.raises(fl.RunError) as caught:
        call(*args)
    return f"{caught.value.problems[0].code} {caught.value.problems[0].asked}"


def test_lists_that_do_not_fit_are_refused(tagger: Any, graph: fl.Graph) -> None:
    (a, b), (s, t) = sentences([2, 3])
    for call in (tagger.slopes, lambda *args: graph.run(*args, method="slopes")):
        assert refusal(call, [a, b], [s, t[:2]]).endswith("t of example 1 is 3 in x, but 2 in tags")
        assert "n is 2 in x, but 1 in tags" in refusal(call, [a, b], [s])
        assert "x[1] has shape (3, 4)" in refusal(call, [a, b[:, :4]], [s, t])
        assert "R104" in refusal(call, 3.0, [s]) and "R104" in refusal(call, [a.astype(np.float64)], [s])
        assert "tags[0] is a float" in refusal(call, [a], [[0.5, 1.0]]).replace("tags[0] is float", "tags[0] is a float")
        assert "R105" in refusal(call, [a[:, :3]], [s]) and "R101" in refusal(call, [a])
        assert "R105" in refusal(call, [a, b[0]], [s, t])
    assert "t is 513 in x" in refusal(tagger.tag, [np.zeros((513, 5), np.float32)])
    assert "tags" in refusal(tagger.slopes, a, [s, t])


def test_declarations_that_mean_nothing_are_refused() -> None:
    for dims in (("n",), ("n", "t"), ("n*", "t"), ("n", "t*", "u*"), (), ("n", 3), ("n", "2*")):
        with pytest.raises(fl.AlgorithmError) as caught:
            fl.f32(fl.Ragged, *dims)
        assert caught.value.problems[0].code == "A116", dims
    for use in (lambda x: x + 1, lambda x: x.shape, lambda x: x[0], lambda x: x):
        with pytest.raises(fl.AlgorithmError):
            fl.trace(use, inputs={"x": fl.f32(fl.Ragged, "n", "t*")})


def test_a_check_and_an_artefact(tmp_path: Path) -> None:
    def weigh(x: fl.f32[fl.Ragged, "n", "t*"], weights: fl.f32[fl.Tensor, 4], kinds: fl.i32[fl.Ragged, "n", "t*"]) -> Any:
        return fl.stage(lambda n: fl.sum(lambda t: fl.where(x.mask[n, t], x.padded[n, t] * weights[kinds.padded[n, t]], 0.0)), name="total")

    assert fl.check(weigh).ok
    folder = driver.build(weigh, None, tmp_path / "weigh_built")
    x, kinds, weights = [[1.0, 2.0], [4.0]], [[0, 1], [3]], [1.0, 10.0, 100.0, 1000.0]
    assert fl.load(folder)(x, weights, kinds).tolist() == [21, 4000]
    code = f"import weigh_built as w; print(w.run({x}, {weights}, {kinds}).tolist())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[21.0, 4000.0]\n", done.stderr
    assert "x: float32[n, t*]" in (folder / "__init__.py").read_text() and "lengths" not in (folder / "__init__.pyi").read_text()
