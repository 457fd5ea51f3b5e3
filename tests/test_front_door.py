from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import fluorite as fl
import pytest
from fluorite.algo import UNBUILT

ROOT = Path(fl.__file__).parent


def python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_importing_costs_nothing() -> None:
    seconds, loaded = python(
        "import sys, time; t = time.perf_counter(); import fluorite; print(time.perf_counter() - t, end=' '); "
        "print([m for m in ('numpy', 'tvm', 'tvm_ffi', 'yaml') if m in sys.modules])"
    ).split(" ", 1)
    assert float(seconds) < 0.15
    assert loaded == "[]"


def test_the_language_is_there_without_the_compiler() -> None:
    assert python("import fluorite as fl, sys; fl.exp, fl.f32('n'), fl.nn.Linear, fl.trace; print('tvm' in sys.modules)") == "False"


@pytest.mark.parametrize("name", [*fl._LANGUAGE, *fl._MODULES, "extent", "trace", "ExecutionPlan", "exp", "sum", "conv2d"])
def test_names_resolve(name: str) -> None:
    assert getattr(fl, name) is getattr(fl, name)
    assert name in dir(fl)


def test_star_import_keeps_the_builtin_compile() -> None:
    assert "compile" not in fl.__all__ and {"exp", "Tensor", "nn", "scan"} <= set(fl.__all__)
    assert python("from fluorite import *; import builtins; print(compile is builtins.compile, exp.__name__)") == "True exp"


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'expp'"):
        _ = fl.expp  # type: ignore[attr-defined]
    assert not hasattr(fl, "_private")


@pytest.mark.parametrize("name", UNBUILT)
def test_promised_names_say_that_they_are_not_built(name: str) -> None:
    value = getattr(fl, name)
    assert "not built yet" in repr(value) and "Not built yet" in value.__doc__
    for use in (lambda: value(1), lambda: value.anything, lambda: value[0]):
        with pytest.raises(fl.AlgorithmError) as caught:
            use()
        (problem,) = caught.value.problems
        assert problem.code == "A900" and "not built yet" in problem.why and f"fl.{name}" in problem.asked
    assert not hasattr(value, "__wrapped__")


def test_every_name_of_the_contract_exists() -> None:
    named = [
        "stage", "extern", "sum", "prod", "max", "min", "any", "all", "argmin", "argmax", "mean", "reduce", "edge", "reflect", "wrap",
        "constant", "cond", "switch", "while_loop", "scan", "stop_gradient", "scope", "f32", "Ragged", "extent", "Program", "method",
        "function", "param", "state", "nn", "init", "optim", "random", "data", "grad", "value_and_grad", "vjp", "jvp", "vmap",
        "custom_vjp", "trace", "from_onnx", "from_torch", "ExecutionPlan", "dist", "Tensor",
    ]  # fmt: skip
    assert set(named) <= set(fl.__all__)


@pytest.mark.parametrize("name", sorted(importlib.import_module("fluorite.algo.ops").__all__))
def test_operators_are_documented(name: str) -> None:
    doc = getattr(fl, name).__doc__
    assert (doc and doc.strip()[-1] in ".`") or "\n" in doc


def test_a_type_checker_sees_what_is_exported() -> None:
    """The static half of the front door names what the lazy half finds."""
    import ast

    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    blocks = [n for n in tree.body if isinstance(n, ast.If) and isinstance(n.test, ast.Name) and n.test.id == "TYPE_CHECKING"]
    static = {a.asname or a.name for block in blocks for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}
    static -= {"*", "ops", "Any"}
    lazy = {*fl._HOMES, *fl._MODULES, "extent"}
    assert static == lazy - set(fl._COMPILER) or static == lazy
