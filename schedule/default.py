"""The default scheduler: rules that write directives for whatever the plan leaves open."""
from __future__ import annotations

from collections.abc import Mapping

from fluorite.algo.graph import Graph

from .directives import Directive
from .scheduled import Undecided


def default_schedule(g: Graph, undecided: Undecided) -> Mapping[str, tuple[Directive, ...]]:
    return {}
