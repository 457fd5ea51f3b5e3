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
    numbers = np.random.default_rng(seed)
    inputs = [numbers.random([evaluate(n, symbols) for n in g[i].shape], dtype=np.float32) * 2 - 1 for i in g.methods[0].inputs]
    model = driver.assemble(compiled.manifest("fuzz"), compiled.library, {})
    compiled.library.unlink(missing_ok=True)
    try:
        got = model(*inputs)
    except Exception as error:
        raise Failure(f"{type(error).__name__} when called: {str(error)[:300]}") from error
    compare(got, g.run(*inputs))
    return "agrees"


def compare(got: Any, wanted: Any) -> None:
    if isinstance(wanted, dict):
        for key in wanted:
            compare(got[key], wanted[key])
        return
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise Failure(f"{got.dtype}{got.shape} instead of {wanted.dtype}{wanted.shape}")
    if wanted.size:
        error = np.max(np.abs(got.astype(np.float64) - wanted) / (1 + np.abs(wanted)))
        if not error < 1e-4:
            raise Failure(f"differs by {error:.2g}")
