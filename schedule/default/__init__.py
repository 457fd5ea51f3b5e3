"""The default scheduler: rules that write directives for whatever a plan leaves open."""

from __future__ import annotations

from .rules import default_schedule

__all__ = ["default_schedule"]
