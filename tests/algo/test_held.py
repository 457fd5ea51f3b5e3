"""Parameters and state that methods assign: what reads see, what the new values are called, what is refused."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.parameters import initial_parameters

F32 = np.float32
V = fl.f32("n")


def after(program: Any, *inputs: Any, method: str = "step", **values: Any) -> Any:
    """The transition of one call, from initial values with some others."""
    graph = fl.trace(program)
    return graph.step(*inputs, method=method, parameters={**initial_parameters(graph), **values})


class Counter(fl.Program):
    """Two methods that change one count, and one that reads it."""

    def __init__(self) -> None:
        self.count = fl.state(init=3, dtype=fl.i32)
        self.total = fl.state(i=4)

    @fl.method
    def step(self, x: fl.f32(4)) -> Any:  # type: ignore[valid-type]
        before = self.count
        self.count = self.count + 1
        self.total = self.total + x
        return {"before": before, "after": self.count, "total": fl.sum(self.total)}

    @fl.method
    def back(self) -> None:
        """Returns nothing."""
        self.count -= 1

    @fl.method
    def read(self) -> Any:
        return self.count


def test_reads_see_the_value_at_their_point_and_the_next_call_the_last_one() -> None:
    graph = fl.trace(Counter)
    found, parameters = graph.step([1, 2, 3, 4], method="step")
    assert (found["before"], found["after"], found["total"]) == (3, 4, 10) and parameters["total"].tolist() == [1, 2, 3, 4]
    again = graph.step([1, 1, 1, 1], method="step", parameters=parameters)
    assert again.result["after"] == 5 and again.result["total"] == 14 and parameters["count"] == 4  # what was given stays
    back = graph.step(method="back", parameters=again.parameters)
    assert back.result is None and back.parameters["count"] == 4 and graph.run(method="read", parameters=back.parameters) == 4
    assert graph.run([1, 1, 1, 1], method="step", parameters=parameters)["before"] == 4


def test_new_values_are_stages_named_after_what_they_update() -> None:
    graph = fl.trace(Counter)
    step, back = graph.method("step"), graph.method("back")
    assert {path: graph.path_of(i) for path, i in step.updates.items()} == {"count": "step/update/count", "total": "step/update/total"}
    assert back.result is None and {path: graph.path_of(i) for path, i in back.updates.items()} == {"count": "back/update/count"}
    assert {s.role for s in graph.stages if "/update/" in s.path} == {"update"}
    assert graph.stage(step.updates["count"]).source.startswith("test_held.py:")  # type: ignore[union-attr]
    text = graph.text()
    assert "state count: int32[]" in text and "update count = step/update/count" in text and "return None" in text
    assert [leaf.kind for leaf in graph.leaves[:2]] == ["state", "state"]
    assert "step/update" not in fl.trace(Counter, method="read").text()


class Several(fl.Program):
    def __init__(self) -> None:
        self.a, self.b = fl.state(init=1.0, i=3), fl.state(init=2.0, i=3)
        self.w = fl.param(init=np.arange(6, dtype=F32).reshape(2, 3), y=2, x=3)
        self.layers = [fl.state(init=float(k), i=3) for k in range(2)]
        self.table = {"one": fl.state(init=7.0)}

    @fl.method
    def swap(self) -> Any:
        self.a, self.b = self.b, self.a

    @fl.method
    def step(self, x: fl.f32(3)) -> Any:  # type: ignore[valid-type]
        w, transposed = self.w, self.w.T
        self.w = self.w * 2.0
        named = fl.stage(lambda i: x[i] + self.a[i], name="named")
        self.a = named
        self.b = 0.5
        middle = self.b + 1.0
        self.b = self.b * 3.0 + x
        self.layers[1].assign(self.layers[0])
        self.layers[0].assign(x[::-1])
        self.table["one"].assign(fl.sum(w))
        return fl.sum(w), transposed, self.w, middle

    @fl.method
    def returned(self) -> Any:
        old = self.a
        self.a = self.a + 1.0
        return old, self.a, self.a


def test_assignments_read_what_was_there_before() -> None:
    swapped = after(Several(), method="swap").parameters
    assert swapped["a"].tolist() == [2] * 3 and swapped["b"].tolist() == [1] * 3
    (total, transposed, doubled, middle), held = after(Several(), F32([1, 2, 4]))
    w = np.arange(6, dtype=F32).reshape(2, 3)
    assert total == 15 and (transposed == w.T).all() and (doubled == 2 * w).all() and (held["w"] == 2 * w).all()
    assert held["a"].tolist() == [2, 3, 5] and held["b"].tolist() == [2.5, 3.5, 5.5] and middle.tolist() == [1.5] * 3
    assert held["layers.0"].tolist() == [4, 2, 1] and held["layers.1"].tolist() == [0] * 3 and held["table.one"] == 15
    old, new, again = after(Several(), method="returned").result
    assert old.tolist() == [1] * 3 and new.tolist() == again.tolist() == [2] * 3


def test_a_stage_that_has_a_name_keeps_it() -> None:
    graph = fl.trace(Several)
    paths = {path: graph.path_of(i) for path, i in graph.method("step").updates.items()}
    assert paths["a"] == "step/update/a" and paths["layers.1"] == "step/update/layers.1" and paths["table.one"] == "step/update/table.one"
    assert "step/named" in [s.path for s in graph.stages]
    copy = graph.stage(graph.method("step").updates["a"])
    assert copy is not None and [graph.path_of(i) for i in copy.sources] == ["step/named"]
    assert len(set(graph.method("step").updates.values())) == 6


def test_a_plan_enters_updates_only_by_name() -> None:
    from fluorite.schedule import select
    from fluorite.schedule.notation.places import Place

    graph = fl.trace(Counter)
    found = select("update/count", graph.stages, Place(), "Counter")
    assert sorted(s.path for s in found) == ["back/update/count", "step/update/count"]
    with pytest.raises(fl.PlanError):
        select("total", graph.stages, Place(), "Counter")
    assert {s.path for s in select("role=update", graph.stages, Place(), "Counter")} == {s.path for s in graph.stages if s.role == "update"}


class Block(fl.Module):
    def __init__(self) -> None:
        self.seen = fl.state(init=0, dtype=fl.i64)
        self.scale = fl.param(init=2.0)

    def forward(self, x: Any) -> Any:
        self.seen = self.seen + 1
        return x * self.scale


def test_modules_hold_state_and_change_it_when_they_are_called() -> None:
    class Net(fl.Program):
        def __init__(self) -> None:
            self.blocks = [Block(), Block()]

        @fl.method
        def step(self, x: V) -> Any:  # type: ignore[valid-type]
            return self.blocks[1](self.blocks[0](self.blocks[0](x)))

    found = after(Net(), F32([1, 2]))
    assert found.result.tolist() == [8, 16] and found.parameters["blocks.0/seen"] == 2 and found.parameters["blocks.1/seen"] == 1


# ---------------------------------------------------------------- refusals
def problem(make: Any) -> fl.Problem:
    with pytest.raises(fl.AlgorithmError) as caught:
        make()
    return caught.value.problems[0]


def stepping(change: Any) -> Any:
    """A Program whose method does this to it."""

    class One(fl.Program):
        def __init__(self) -> None:
            self.w = fl.param(init=0.0, y=2, x=3)
            self.count = fl.state(init=0, dtype=fl.i32)
            self.ws = [fl.state(init=0.0, i=2)]
            self.calls, self.table, self.note = 0, np.zeros(2), "a note"

        @fl.method
        def step(self, x: fl.f32(3)) -> Any:  # type: ignore[valid-type]
            change(self, x)
            return x

    return lambda: fl.trace(One)


def give(name: str, value: Any) -> Any:
    return lambda self, x: setattr(self, name, value(self, x))


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (give("w", lambda self, x: x), "A180", "w = a tensor of shape [3] w has the shape [2, 3]"),
        (give("w", lambda self, x: np.zeros((3, 2), F32)), "A180", "w has the shape [2, 3]"),
        (give("count", lambda self, x: fl.sum(x)), "A181", "count = a tensor of float32 count is int32"),
        (give("count", lambda self, x: 0.5), "A181", "count = 0.5 count is int32"),
        (give("w", lambda self, x: fl.edge(self.w)), "A131", "boundary view"),
        (give("w", lambda self, x: "text"), "A311", ""),
        (give("hidden", lambda self, x: x * 2), "A183", "self.hidden = a tensor"),
        (give("hidden", lambda self, x: [{"a": x * 2}]), "A183", "self.hidden = a tensor"),
        (give("calls", lambda self, x: self.calls + 1), "A183", "self.calls = another number"),
        (give("table", lambda self, x: self.table + 1), "A183", "self.table = an array"),
        (lambda self, x: self.ws.__setitem__(0, x), "A184", "ws.0 was replaced in its list"),
        (lambda self, x: self.ws[0].assign(x), "A180", "ws.0 = a tensor of shape [3]"),
        (lambda self, x: fl.state(init=0.0, i=3).assign(x), "A120", "a state that no attribute holds"),
    ],
)
def test_what_cannot_be_assigned_is_a_sentence(change: Any, code: str, words: str) -> None:
    found = problem(stepping(change))
    assert found.code == code and words in f"{found.asked} {found.why}"
    assert found.source is not None and found.source.startswith("test_held.py")


def test_what_is_no_tensor_may_be_assigned() -> None:
    stepping(give("note", lambda self, x: "another"))()
    stepping(give("table", lambda self, x: self.table))()
    stepping(lambda self, x: setattr(self, "calls", self.calls))()


def test_an_assignment_inside_a_scan_is_refused() -> None:
    class Loop(fl.Program):
        def __init__(self) -> None:
            self.last = fl.state()

        @fl.method
        def step(self, x: V) -> Any:  # type: ignore[valid-type]
            def one(h: Any, e: Any) -> Any:
                self.last = h + e
                return h + e, h

            return fl.scan(one, fl.zeros(()), x)[0]

    found = problem(lambda: fl.trace(Loop))
    assert found.code == "A163" and found.path == "step/update/last"


def test_the_result_of_a_scan_is_state_for_the_next_call() -> None:
    class Running(fl.Program):
        def __init__(self) -> None:
            self.last = fl.state(init=1.0)

        @fl.method
        def step(self, x: V) -> Any:  # type: ignore[valid-type]
            self.last, every = fl.scan(lambda h, e: (h + e, h), self.last, x)
            return every

    found = after(Running(), F32([1, 2, 3]))
    assert found.parameters["last"] == 7 and found.result.tolist() == [1, 2, 4]


def test_outside_a_method_only_declarations_are_assigned() -> None:
    program = Counter()
    for make in (lambda: setattr(program, "count", 5), lambda: setattr(program, "total", np.zeros(4)), lambda: program.count.assign(1)):
        assert problem(make).code == "A182"
    program.count = fl.state(init=8, dtype=fl.i32)
    assert after(program, method="back").parameters["count"] == 7


def test_declarations_are_checked() -> None:
    assert problem(lambda: fl.state(n=-1)).code == "A140" and problem(lambda: fl.state(shape=(2,), n=2)).code == "A121"
    assert "a state of shape [2]" in problem(lambda: fl.state(init=np.zeros(3), n=2)).asked
    assert fl.state(shape=(2, 3)).shape == (2, 3) and fl.state().shape == () and not fl.state().trainable


def test_a_method_without_result_changes_something() -> None:
    class Idle(fl.Program):
        @fl.method
        def step(self, x: V) -> Any:  # type: ignore[valid-type]
            return None

    assert problem(lambda: fl.trace(Idle)).code == "A130"


def test_assigning_what_is_there_is_no_update() -> None:
    class Same(fl.Program):
        def __init__(self) -> None:
            self.a = fl.state(init=1.0)

        @fl.method
        def step(self) -> Any:
            a = self.a
            self.a = a + 1.0
            self.a = a
            return self.a

    assert not fl.trace(Same).method("step").updates
