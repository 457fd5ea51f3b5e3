"""One trial: a program, a plan, both ways of running it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from fluorite.algo.errors import FluoriteError
from fluorite.algo.extent import evaluate
from fluorite.codegen import driver

from .plans import plan
from .programs import program


class Failure(Exception):
    """The compiled program is wrong, or something other than a refusal went wrong."""


def trial(seed: int, verbose: bool = False) -> str:
    """ "agrees" or "refused". Raises Failure."""
    rng = random.Random(seed)
    try:
        g, symbols = program(rng)
    except FluoriteError as error:
        return f"no program ({error.problems[0].code})"
    p = plan(rng, g)
    if verbose:
        print(g.text(), "\n", p.to_yaml(), symbols)
    try:
        compiled = driver.compile_graph(g, p, cache=False)
    except FluoriteError as error:
        if not error.problems or not all(q.asked or q.why for q in error.problems):
            raise Failure(f"a refusal without a sentence: {error.problems}") from error
        if verbose:
            print(error)
        return "refused"
    except Exception as error:
        raise Failure(f"{type(error).__name__}: {str(error)[:300]}") from error
    if verbose:
        print(compiled.variants[0].text())
    model = driver.assemble(compiled.manifest("fuzz"), compiled.library, {})
    compiled.library.unlink(missing_ok=True)
    for method in g.methods:
        inputs = [values(seed, g[i].dtype, [evaluate(n, symbols) for n in g[i].shape]) for i in method.inputs]
        try:
            got = getattr(model, method.name)(*inputs)
        except Exception as error:
            raise Failure(f"{type(error).__name__} when called: {str(error)[:300]}") from error
        compare(got, g.run(*inputs, method=method.name))
    return "agrees"


def values(seed: int, dtype: str, shape: list[int]) -> np.ndarray[Any, Any]:
    numbers = np.random.default_rng(seed)
    if dtype == "bool":
        return numbers.random(shape) < 0.6
    if "int" in dtype:
        return numbers.integers(0 if dtype.startswith("u") else -4, 9, shape).astype(dtype)
    return (numbers.random(shape) * 2 - 1).astype(dtype)


def compare(got: Any, wanted: Any) -> None:
    if isinstance(wanted, dict):
        for key in wanted:
            compare(got[key], wanted[key])
        return
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise Failure(f"{got.dtype}{got.shape} instead of {wanted.dtype}{wanted.shape}")
    if not wanted.size:
        return
    if wanted.dtype.kind != "f":
        if not np.array_equal(got, wanted):
            raise Failure(f"{np.sum(got != wanted)} of {got.size} {got.dtype} differ")
        return
    finite = np.isfinite(wanted)
    if not np.array_equal(np.where(finite, 0, wanted), np.where(finite, 0, got), equal_nan=True):
        raise Failure("infinities or NaNs differ")
    exact, made = (np.where(finite, a, 0).astype(np.float64) for a in (wanted, got))
    error = np.max(np.abs(made - exact)) / (1 + np.max(np.abs(exact)))  # of the largest: what cancels has its rounding
    if not error < 1e-4:
        raise Failure(f"differs by {error:.2g}")
