"""What a caller of check, compile, tune and explain gives in numbers, before any work is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import pytest
from fluorite.codegen.explaining import explain


def double(x: fl.f32[fl.Tensor, "n"]) -> Any:
    return x * 2


@pytest.mark.parametrize("verb", [fl.check, fl.compile, fl.tune, explain])
@pytest.mark.parametrize("extents", [{"n": "a"}, {"n": -1}, {"n": 2.0}, {"n": True}, {"n": None}, ["n"]])
def test_extents_that_are_none(verb: Callable[..., Any], extents: Any) -> None:
    with pytest.raises(fl.RunError, match=r"R131\]: extents=.*\n  extents are whole numbers"):
        verb(double, extents=extents)


@pytest.mark.parametrize("limit", [{"trials": 0}, {"trials": -1}, {"minutes": -1}, {"minutes": float("nan")}])
def test_limits_of_a_search_that_are_none(limit: dict[str, Any]) -> None:
    with pytest.raises(fl.RunError, match="R133"):
        fl.tune(double, extents={"n": 4}, **limit)
