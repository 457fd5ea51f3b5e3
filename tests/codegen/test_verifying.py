"""The interpreter between passes: a right pipeline passes, and a pass made wrong on purpose is the one that is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import fluorite as fl
import pytest
from fluorite.algo.expr import as_expr, binary
from fluorite.codegen import lowering
from fluorite.codegen.partition import partition
from fluorite.codegen.statements import For, Sequence, Statement, sequence, transform
from fluorite.codegen.verifying import verify_each
from fluorite.schedule import Cache, ExecutionPlan, scheduled
from fluorite.schedule.passes import PASSES

PLAN = """
schedule:
  product: [{cache: acc}]
  product/acc: [{vectorize: {axis: j, width: 8}}]
  bias: [compute_inline]
"""


def model(a: Any, b: Any) -> Any:
    product = fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[k, j]), name="product")
    bias = fl.stage(lambda i, j: product[i, j] + 1, name="bias")
    return fl.stage(lambda i, j: bias[i, j] * 2, name="out")


def graph() -> Any:
    return fl.trace(model, None, inputs={"a": fl.f32("n", 5), "b": fl.f32(5, "m")})


def test_every_pass_keeps_the_meaning() -> None:
    found = verify_each(graph(), ExecutionPlan.from_yaml(PLAN + "extents: {n: {buckets: [4]}}\nprecision: {compute: bf16}\n", "p.yaml"))
    assert found.first_wrong is None and found.text().endswith("every pass keeps what the algorithm means")
    changed_nothing = ("default", "memory")
    assert list(dict.fromkeys(v.name for v in found.verdicts if v.name != "default")) == [p for p in PASSES if p not in changed_nothing]
    assert "compute_inline of model/bias (n=4)" in found.text()


def test_a_wrong_rewrite_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    right = scheduled.rewrite_stage

    def wrong(g: Any, s: Any, d: Any, lanes: Any) -> Any:
        g, new = right(g, s, d, lanes)
        if isinstance(d, Cache):
            new = replace(new, value=binary("add", new.value, as_expr(1)))
            g = g.with_stages([new if x.id == new.id else x for x in g.stages])
        return g, new

    monkeypatch.setattr(scheduled, "rewrite_stage", wrong)
    found = verify_each(graph(), ExecutionPlan.from_yaml(PLAN, "p.yaml"))
    assert found.first_wrong is not None and (found.first_wrong.name, found.first_wrong.what) == ("rewrites", "cache of model/product")
    assert "the first wrong pass is rewrites: cache of model/product: model(" in found.text()


def test_a_wrong_pass_over_statements_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(s: Statement, _: Any) -> Statement:
        """Loses the last part of every loop that was cut."""

        def rule(x: Statement) -> Statement | None:
            return sequence(*x.body[:-1]) if isinstance(x, Sequence) and all(isinstance(y, For) for y in x.body) else None

        return transform(partition(s), rule)

    monkeypatch.setitem(lowering.PASSES, "partition", forgetful)
    plan = "schedule: {product: [{vectorize: {axis: j, width: 8, tail: guard}}], bias: [compute_inline]}\nfusion: {rest: none}"
    found = verify_each(graph(), ExecutionPlan.from_yaml(plan, "p.yaml"))
    assert found.first_wrong is not None and found.first_wrong.name == "partition"
