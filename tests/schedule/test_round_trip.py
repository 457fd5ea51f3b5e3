"""YAML is the projection of the Python objects: writing and reading back is the identity."""

from __future__ import annotations

import yaml
from hypothesis import HealthCheck, given, settings

from fluorite.schedule import DIRECTIVES, Directive, ExecutionPlan
from strategies import directives, plans

EASY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])


@EASY
@given(plans)
def test_a_plan_survives_yaml(plan: ExecutionPlan) -> None:
    text = plan.to_yaml()
    again = ExecutionPlan.from_yaml(text)
    assert again == plan
    assert again.to_yaml() == text
    assert hash(again) == hash(plan)


@EASY
@given(directives)
def test_a_directive_survives_yaml(directive: Directive) -> None:
    plan = ExecutionPlan(schedule={"stage": [directive]})
    assert ExecutionPlan.from_yaml(plan.to_yaml()) == plan


@settings(EASY, max_examples=40)
@given(plans)
def test_what_is_written_is_plain_yaml(plan: ExecutionPlan) -> None:
    assert isinstance(yaml.compose(plan.to_yaml(), Loader=yaml.SafeLoader), yaml.MappingNode)


def test_every_directive_is_drawn() -> None:
    assert {"split", "tile", "store_at", "gpu_lanes"} <= set(DIRECTIVES)
