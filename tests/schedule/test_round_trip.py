"""YAML is the projection of the Python objects: writing and reading back is the identity."""

from __future__ import annotations

import pytest
import yaml
from fluorite.schedule import DIRECTIVES, ExecutionPlan
from hypothesis import given, settings
from hypothesis import strategies as st
from random_plans import directive_of, plan_of

seeds = st.integers(0, 1 << 48)


@settings(max_examples=300, deadline=None)
@given(seeds)
def test_a_plan_survives_yaml(seed: int) -> None:
    plan = plan_of(seed)
    text = plan.to_yaml()
    again = ExecutionPlan.from_yaml(text)
    assert again == plan, text
    assert again.to_yaml() == text
    assert hash(again) == hash(plan)
    assert isinstance(yaml.compose(text, Loader=yaml.SafeLoader), yaml.MappingNode)


@pytest.mark.parametrize("key", DIRECTIVES)
@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_a_directive_survives_yaml(key: str, seed: int) -> None:
    plan = ExecutionPlan(schedule={"stage": [directive_of(key, seed)]})
    assert ExecutionPlan.from_yaml(plan.to_yaml()) == plan, plan.to_yaml()


def test_random_plans_cover_every_section_and_directive() -> None:
    texts = "".join(plan_of(seed).to_yaml() for seed in range(600))
    assert [key for key in DIRECTIVES if key not in texts] == []
    assert [
        name for name in ("roles:", "variants:", "tune:", "choose:", "pow2:", "divides:", "$tx", "note:", "where:") if name not in texts
    ] == []
