"""Tuning: from a plan with holes to one without, by measurement."""

from __future__ import annotations

from .journal import merge
from .records import FAILURES, Outcome, Progress, Trial
from .verb import TuneResult, tune, tuned

__all__ = ["FAILURES", "Outcome", "Progress", "Trial", "TuneResult", "merge", "tune", "tuned"]
