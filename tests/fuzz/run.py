"""One trial: a program, a plan, both ways of running it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from fluorite.algo.errors import FluoriteError, RunError
from fluorite.algo.extent import evaluate
from fluorite.algo.graph import Graph, Method, Transition
from fluorite.algo.interpreter import run
from fluorite.algo.numerics import compare, weakest
from fluorite.algo.parameters import initial_parameters
from fluorite.cli.codes import all_codes
from fluorite.codegen import driver
from fluorite.codegen.compiled import Compiled
from fluorite.codegen.diagnosis import every_problem
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.sections import AtMost, Between

from .cheaply import cheaply
from .guarded import beside, placed
from .plans import plan
from .programs import program
from .repair import repaired

Array = np.ndarray[Any, Any]


class Failure(Exception):
    """The compiled program is wrong, or something other than a refusal went wrong."""


_ROUNDS = 12
"""How often what is refused is taken out of a plan."""


def trial(seed: int, verbose: bool = False) -> str:
    """ "agrees", "agrees once repaired" or why not. Raises Failure."""
    rng = random.Random(seed)
    try:
        g, symbols = program(rng)
    except FluoriteError as error:
        return f"no program ({error.problems[0].code})"
    compiled, outcome = legal(g, plan(rng, g).to_yaml(), seed, verbose)
    if compiled is not None:
        agrees(g, compiled, extremes(compiled.plan, symbols), seed)
    return outcome


def legal(g: Graph, text: str, seed: int, verbose: bool = False) -> tuple[Compiled | None, str]:
    """The program compiled under what is legal of a plan, and the outcome if it is right. Raises Failure."""
    for n in range(_ROUNDS):
        if verbose:
            print(g.text(), "\n", text)
        try:
            with cheaply(seed):
                compiled = built(g, ExecutionPlan.from_yaml(text))
        except FluoriteError as error:
            sentences(error)
            if verbose:
                print(error)
            if algorithms := [p for p in error.problems if p.code.startswith("A") and not p.code.startswith("A14")]:  # extents of a bucket
                raise Failure(f"what was traced is refused when compiled: {algorithms[0]}") from error
            left = repaired(text, error.problems)
            if left is None:
                return None, refusal(error)
            text = left
            continue
        assert compiled is not None
        if verbose:
            print(compiled.variants[0].text())
        return compiled, "agrees once repaired" if n else "agrees"
    return None, "refused"


def built(g: Graph, plan: ExecutionPlan, compile_it: bool = True) -> Compiled | None:
    """As a plan file is compiled; only as far as its kernels if not `compile_it`. Raises FluoriteError, Failure."""
    try:
        with every_problem(g, plan):
            if compile_it:
                return driver.compile_graph(g, plan, cache=False)
            chosen, _ = driver.prepared(plan, g)
            driver.lower_variants(g, chosen, driver.host_target(chosen))
            return None
    except FluoriteError:
        raise
    except Exception as error:
        raise Failure(f"{type(error).__name__}: {str(error)[:300]}") from error


def sentences(error: FluoriteError, file: str = "plan") -> None:
    """Each problem says where, what and why. Raises Failure."""
    for p in error.problems:
        placed = p.kind != "plan" or (p.line and p.column and p.file)
        if not (p.code in all_codes() and p.asked and (p.why or p.try_) and placed):
            raise Failure(f"a refusal without a place or a reason: {p}")
    if not error.text():
        raise Failure("a refusal without a text")


def refusal(error: FluoriteError) -> str:
    return f"refused ({error.problems[0].code})"


def extremes(plan: ExecutionPlan, symbols: dict[str, int]) -> list[dict[str, int]]:
    """The sizes, and those with each extent that the plan lets be 0 as that."""
    none = [n for n in symbols if isinstance(e := plan.extents.get(n), AtMost) or (isinstance(e, Between) and not e.between[0])]
    return [symbols, *({**symbols, n: 0} for n in none), *([{**symbols, **dict.fromkeys(none, 0)}] if len(none) > 1 else [])]


def agrees(g: Graph, compiled: Compiled, sizes: Sequence[dict[str, int]], seed: int) -> None:
    """Every method on random inputs of these sizes. Raises Failure."""

    def given(method: Method, symbols: dict[str, int]) -> list[Array]:
        return [values(seed, g[i].dtype, [evaluate(n, symbols) for n in g[i].shape]) for i in method.inputs]

    agrees_on(g, compiled, [(m.name, given(m, symbols), f" with {symbols}") for m, symbols in itertools.product(g.methods, sizes)])


def agrees_on(g: Graph, compiled: Compiled, calls: Sequence[tuple[str, Sequence[Any], str]]) -> None:
    """Calls (method, inputs, what to say of them) one after another, each within the tolerance of the plan's class; what the plan bounds,
    and what the oracle refuses, may be refused. Raises Failure."""
    plan = compiled.plan
    bounds = {code for code, there in (("R107", plan.extents), ("R118", plan.limit is not None)) if there}
    model = driver.assemble(compiled.manifest("fuzz"), compiled.library, driver.parameter_arrays(g), functions=g.functions)
    compiled.library.unlink(missing_ok=True)
    numerics = weakest(*(v.numerics for v in compiled.variants))
    casts = replace(driver.in_types(compiled.plan, g).casts, overflow=True)
    start = initial_parameters(g)
    for method, inputs, about in calls:
        before = {path: np.array(model.parameters[path]) for path in start}
        try:
            got = getattr(model, method)(*(placed(a) if isinstance(a, np.ndarray) else a for a in inputs))
        except RunError as error:
            if {p.code for p in error.problems} & (bounds | _refused(g, method, inputs, before)):
                continue
            raise Failure(f"refused when called{about}: {error}") from error
        except Exception as error:
            raise Failure(f"{type(error).__name__} when called{about}: {str(error)[:300]}") from error
        if wrong := beside():
            raise Failure(f"it wrote {wrong}{about}")
        if g.updates:
            got = Transition(got, {path: np.array(model.parameters[path]) for path in start})
        for found in compare(g, method, tuple(inputs), got, numerics, before, casts=casts):
            if not found.ok:
                raise Failure(f"{found.text()}{about}")


def _refused(g: Graph, method: str, inputs: Sequence[Any], parameters: dict[str, Array]) -> set[str]:
    """The codes with which the oracle refuses the call."""
    try:
        run(g, tuple(inputs), method=method, parameters=parameters)
    except RunError as error:
        return {p.code for p in error.problems}
    return set()


def values(seed: int, dtype: str, shape: list[int]) -> Array:
    """Small numbers of both signs, where the type has them."""
    numbers = np.random.default_rng(seed)
    if dtype == "bool":
        return numbers.random(shape) < 0.6
    if "int" in dtype:
        return numbers.integers(0 if dtype.startswith("u") else -4, 9, shape).astype(dtype)
    return (numbers.random(shape) * 2 - 1).astype(dtype)
