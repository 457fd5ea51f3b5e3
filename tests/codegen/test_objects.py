"""Object files by several processes: the same as by one, also if a process is lost; kernels of the same code are compiled once."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.graph import Graph
from fluorite.algo.numerics import compare
from fluorite.codegen import driver, objects
from fluorite.codegen.emit import emit
from fluorite.codegen.target import resolve_target
from fluorite.codegen.tvm_adapter import compile_functions
from fluorite.codegen.twins import code_names
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import Target

APART = ExecutionPlan.from_yaml("fusion: {rest: none}")
HERE = resolve_target(Target())


def functions_of_every_sort(x: Any, k: Any) -> Any:
    """Kernels that call the same functions of the library: each brings them along, and they are linked together."""
    e = fl.exp(x)
    return (
        fl.stage(lambda i, j: fl.exp(e[j, i]) * fl.sin(x[i, j]), name="b"),
        fl.sort(e, axis=0),
        k // 3 + (k.T % 5),
        fl.cast(fl.tanh(x), "bfloat16"),
    )


def graph() -> Graph:
    return fl.trace(functions_of_every_sort, None, inputs={"x": fl.f32(37, 37), "k": fl.i32(37, 37)})


def agrees(g: Graph, plan: ExecutionPlan | None, **inputs: Any) -> None:
    compiled = driver.compile_graph(g, plan, cache=False)
    model = driver.assemble(compiled.manifest("m"), compiled.library, driver.parameter_arrays(g))
    name = g.methods[0].name
    assert all(c.ok for c in compare(g, name, tuple(inputs.values()), getattr(model, name)(*inputs.values())))


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("others", [0, 1, 3])
def test_kernels_of_several_processes_are_one_library(monkeypatch: pytest.MonkeyPatch, others: int, lost: bool) -> None:
    g = graph()
    monkeypatch.setattr(objects, "helpers", lambda *_: others)
    monkeypatch.setattr(objects, "BATCH", 500)
    if lost:
        monkeypatch.setattr(objects, "_started", _lost)
    rng = np.random.default_rng(0)
    agrees(g, APART, x=rng.random((37, 37), np.float32), k=rng.integers(-99, 99, (37, 37), np.int32))


def _lost(folder: Path) -> Any:
    """A process that takes the largest batch and ends."""
    code = f"import os; os.rename({str(folder / '0.json')!r}, {str(folder / '0.taken')!r})"
    process = subprocess.Popen([sys.executable, "-c", code])
    process.wait()
    return process


def test_who_compiles_a_kernel_makes_no_difference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernels = driver.lower_variants(graph(), APART, HERE)[0].kernels
    functions, sizes = {k.name: emit(k) for k in kernels}, {k.name: len(k.text()) for k in kernels}
    monkeypatch.setattr(objects, "BATCH", sorted(sizes.values())[-2])
    batches = objects.batches(sizes)
    assert 2 < len(batches) < len(kernels)
    made = []
    for others in (0, 1):
        folder = tmp_path / str(others)
        folder.mkdir()
        monkeypatch.setattr(objects, "helpers", lambda *_, n=others: n)
        if others:  # leaves everything to the other process
            monkeypatch.setattr(objects, "_take", lambda _: False)
        files = objects.object_files(functions, sizes, HERE.dict(), folder)
        assert others == 0 or len(list(folder.glob("*.taken"))) == len(batches)
        made.append([f.read_bytes() for f in files])
    assert made[0] == made[1]


def test_small_kernels_go_together_and_the_largest_first() -> None:
    batches = objects.batches({"a": 30, "b": objects.BATCH + 1, "c": objects.BATCH - 100, "d": 60, "e": 50, "f": 20})
    assert batches == [["b"], ["c", "d"], ["e", "a", "f"]]
    assert objects.batches({}) == [[]]


def test_what_else_is_compiled_with_a_kernel_makes_no_difference() -> None:
    """LLVM inlines what has one caller: each kernel has a copy of its own of the functions that it calls."""

    def model(x: Any, y: Any, at: Any) -> Any:
        near = fl.edge(y)
        return (
            fl.stage(lambda i: fl.pow(x[i], 1.5), name="a"),
            fl.stage(lambda i: fl.pow(fl.exp(y[i]), fl.sin(y[i])) + fl.pow(y[i], x[0]) + fl.exp(-y[i]), name="b"),
            fl.stage(lambda i: near[at[i]] + near[at[i] + 1], name="c"),
            fl.stage(lambda i: fl.exp(x[at[i] % 48]) // 2, name="d"),
        )

    g = fl.trace(model, None, inputs={"x": fl.f32(48), "y": fl.f32(48), "at": fl.i32(48)})
    plan = ExecutionPlan.from_yaml("fusion: {rest: none}\nschedule: {'*': [{vectorize: {axis: i, width: 16}}]}")
    functions = {k.name: emit(k) for k in driver.lower_variants(g, plan, HERE)[0].kernels}

    def code(some: dict[str, Any]) -> dict[str, list[str]]:
        """What is in each function, without the numbers of labels and of constants."""
        found: dict[str, list[str]] = {}
        name = ""
        for line in str(compile_functions(some, HERE.dict()).mod.inspect_source("asm")).splitlines():
            if (start := re.fullmatch(r"(\w+_compute_):", line)) is not None:
                found[name := start[1]] = []
            elif name and re.match(r"\t[a-z]", line):
                found[name].append(re.sub(r"\.L\w+|#.*", "", line))
            elif line.startswith(".Lfunc_end"):
                name = ""
        return found

    together = code(functions)
    assert len(together) == len(functions) > 3
    for name, f in functions.items():
        alone = code({name: f})
        assert len(alone) == 1 and alone.items() <= together.items()


@pytest.mark.parametrize(
    ("cores", "kernels", "characters", "others"), [(8, 1, 900, 0), (8, 61, 190_000, 2), (8, 400, 900_000, 7), (1, 400, 900_000, 0)]
)
def test_small_models_start_no_processes(monkeypatch: pytest.MonkeyPatch, cores: int, kernels: int, characters: int, others: int) -> None:
    monkeypatch.setattr(objects, "_cores", lambda: cores)
    assert objects.helpers(kernels, characters) == others


# ---------------------------------------------------------------- kernels of the same code
def blocks(x: Any, a: Any, b: Any, c: Any) -> Any:
    for w in (a, b, c):
        x = fl.relu(fl.matmul(x, w))
    return x


def test_blocks_of_the_same_shape_share_their_code() -> None:
    square = fl.f32(40, 40)
    g = fl.trace(blocks, None, inputs={"x": fl.f32(40, 40), "a": square, "b": square, "c": fl.f32(40, 24)})
    kernels = driver.lower_variants(g, ExecutionPlan(), HERE)[0].kernels
    names = code_names(kernels)
    assert len(set(names.values())) == len(kernels) * 2 // 3
    rng = np.random.default_rng(0)
    x, a, b = (rng.standard_normal((40, 40)).astype(np.float32) for _ in range(3))
    agrees(g, None, x=x, a=a, b=b, c=rng.standard_normal((40, 24)).astype(np.float32))


def test_what_differs_in_more_than_names_is_not_the_same_code() -> None:
    def model(x: Any, y: Any, h: Any, i: Any) -> Any:
        return x * 2, y * 2, x * 3, x + 2, h * 2, i * 2

    inputs = {"x": fl.f32("n"), "y": fl.f32("n"), "h": fl.f32("m"), "i": fl.i32("n")}
    g = fl.trace(model, None, inputs=inputs)
    names = code_names(driver.lower_variants(g, APART, HERE)[0].kernels)
    (twin,) = (name for name, code in names.items() if code != name)
    assert len(names) == 6 and (list(names).index(names[twin]), list(names).index(twin)) == (0, 1)
    rng = np.random.default_rng(0)
    x, y, h = (rng.random(n, np.float32) for n in (5, 5, 7))
    agrees(g, APART, x=x, y=y, h=h, i=rng.integers(-9, 9, 5, np.int32))


def test_a_model_without_kernels_is_a_library_too() -> None:
    g = fl.trace(lambda x: x, None, inputs={"x": fl.f32(3)})
    agrees(g, None, x=np.arange(3, dtype=np.float32))


def test_processes_that_compile_know_all_operations_of_kernels() -> None:
    """One that does not leaves all its work to the parent, without a word."""
    code = """
import fluorite.codegen.objects
from tvm.ir import Op
known = set(Op.list_op_names())
import fluorite.codegen.emit
print(*sorted(set(Op.list_op_names()) - known))
"""
    found = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    assert found.stdout.split() == []
