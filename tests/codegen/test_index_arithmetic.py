"""Index arithmetic as compiled, against Python: TVM's simplifier gets some nested divisions wrong, and emission steers around them."""

from __future__ import annotations

import random
from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo.expr import Axis, Expr, Op, as_expr, axis, binary
from fluorite.codegen.emit import emit
from fluorite.codegen.statements import Buffer, For, Kernel, Statement, Store


def _value(e: Expr, at: dict[Axis, int]) -> int:
    match e:
        case Axis():
            return at[e]
        case Op(op=op, args=args):
            a, b = (_value(x, at) for x in args)
            if op == "reflect":
                period = max(2 * (b - 1), 1)
                m = a % period
                return min(m, period - m) if b > 1 else 0
            return {
                "add": a + b,
                "sub": a - b,
                "mul": a * b,
                "floordiv": a // b if b else 0,
                "mod": a % b if b else 0,
                "edge": max(min(a, b - 1), 0),
                "wrap": a % b if b else 0,
                "min": min(a, b),
                "max": max(a, b),
            }[op]
    return int(e.value)  # type: ignore[attr-defined]


def _random(rng: random.Random, variables: list[Axis], depth: int) -> Expr:
    if depth == 0:
        return rng.choice(variables)
    inner = _random(rng, variables, depth - 1)
    k = rng.choice([1, 2, 3, 4, 5, 7, 8, 16])
    match rng.randrange(8):
        case 0:
            return inner + rng.randint(-20, 20)
        case 1:
            return rng.randint(0, 40) - inner
        case 2:
            return inner // k
        case 3:
            return inner % k
        case 4:
            return inner * rng.choice([2, 3, 16]) + _random(rng, variables, 0)
        case 5:
            return Op(rng.choice(["wrap", "edge", "reflect"]), (inner, as_expr(rng.choice([3, 7, 16, 33]))), "int32", True)
        case 6:
            return inner - _random(rng, variables, depth - 1)
    return inner // k * k + _random(rng, variables, depth - 1) % k


@pytest.mark.parametrize("seed", range(12))
def test_compiled_index_arithmetic_is_pythons(seed: int) -> None:
    """Reads at nested quotients and remainders, in two dimensions, so that flattening sees them."""
    from fluorite.codegen.target import resolve_target
    from fluorite.codegen.tvm_adapter import compile_functions, tvm
    from fluorite.schedule.sections import Target

    rng = random.Random(seed)
    kernels, expected = {}, {}
    for n in range(25):
        i, j = axis("i"), axis("j")
        rows, columns = rng.choice([5, 16, 33]), rng.choice([3, 16, 40])
        first = Op("wrap", (_random(rng, [i, j], rng.randint(1, 3)), as_expr(16)), "int32", True)
        second = Op("wrap", (_random(rng, [i, j], rng.randint(1, 3)), as_expr(16)), "int32", True)
        source, target = Buffer(1, "a", "int32", (16, 16)), Buffer(2, "b", "int32", (rows, columns))
        from fluorite.algo.expr import Read

        body: Statement = Store(2, (i, j), Read(1, (first, second), "int32"))
        body = For(i, "i", as_expr(0), as_expr(rows), "serial", "", For(j, "j", as_expr(0), as_expr(columns), "serial", "", body))
        name = f"k{n}"
        kernels[name] = emit(Kernel(name, (source,), (target,), (), body, ()))
        expected[name] = np.array(
            [[_value(first, {i: y, j: x}) * 16 + _value(second, {i: y, j: x}) for x in range(columns)] for y in range(rows)], np.int32
        )
    library = compile_functions(kernels, resolve_target(Target()).dict())
    table = tvm.runtime.tensor(np.arange(256, dtype=np.int32).reshape(16, 16))
    for name, wanted in expected.items():
        out = tvm.runtime.empty(wanted.shape, "int32")
        library[name](table, out)
        np.testing.assert_array_equal(out.numpy(), wanted, err_msg=f"{seed} {name}")


def test_nothing_is_divided_by_negative_constants() -> None:
    """TVM makes n // -k of -n // k, and lowers it to let expressions, which its code generator may refuse."""
    from fluorite.algo.expr import Read, Size
    from fluorite.algo.extent import floordiv, symbol
    from fluorite.codegen.target import resolve_target
    from fluorite.codegen.tvm_adapter import Target as TVMTarget
    from fluorite.codegen.tvm_adapter import compile_functions, pipeline, tirx, tvm, tvm_ffi
    from fluorite.schedule.sections import Target

    target, size = resolve_target(Target()).dict(), 40
    source, result = Buffer(1, "a", "int32", (size,)), Buffer(2, "b", "int32", (size,))
    divisors, functions = (2, 3, 7, 16), {}
    for k in divisors:
        i, quotient = axis("i"), Size(floordiv(-symbol("n"), k))
        body = For(i, "i", as_expr(0), quotient + size, "serial", "", Store(2, (i,), Read(1, (quotient + 39,), "int32")))
        functions[f"f{k}"] = emit(Kernel(f"f{k}", (source,), (result,), ("n",), body, ()))
    negative: list[object] = []

    def note(node: Any) -> Any:
        divisor = node.b.value if isinstance(node.b, tirx.Broadcast) else node.b
        if isinstance(divisor, tirx.IntImm) and divisor.value < 0:
            negative.append(node)
        return node

    bound = tirx.transform.BindTarget(TVMTarget(target).with_host(TVMTarget(target)))(tvm.IRModule(functions))
    for f in pipeline()(bound).functions.values():
        tvm_ffi.structural_map(f.body, ((tirx.FloorDiv, tirx.FloorMod), note))
    assert not negative
    library, table = compile_functions(functions, target), tvm.runtime.tensor(np.arange(size, dtype=np.int32))
    for k in divisors:
        for n in (1, 5, 14, 39):
            out = tvm.runtime.tensor(np.full(size, -1, np.int32))
            library[f"f{k}"](table, out, n)
            np.testing.assert_array_equal(out.numpy(), np.where(np.arange(size) < -n // k + size, -n // k + 39, -1), err_msg=f"-{n} // {k}")


def test_remainders_of_vectors_that_fall() -> None:
    """At the mirror of a boundary positions fall while the lanes go on: 18, 17, 16, of which TVM takes remainders as of 0, -1, -2."""

    def f(x: fl.f32[fl.Tensor, 5, 19]) -> Any:
        near = fl.reflect(fl.stage(lambda i, j: x[i, j] * 0.5, name="half"))
        return fl.stage(lambda i, j: near[i - 1, j] - near[i + 1, j + 3], name="apart")

    pack = "{pack: {tensor: half, sizes: {j: 3}, order: [j, i], into: packed}}"
    plan = fl.ExecutionPlan.from_yaml(f"schedule:\n  apart: [{pack}, {{vectorize: {{axis: j, width: 4}}}}]\n")
    x = np.arange(95, dtype=np.float32).reshape(5, 19)
    np.testing.assert_array_equal(fl.compile(f, plan)(x), fl.trace(f).run(x))


def test_binary_builds_what_python_computes() -> None:
    i = axis("i")
    assert _value(binary("floordiv", 15 - i, as_expr(2)), {i: 4}) == 5
