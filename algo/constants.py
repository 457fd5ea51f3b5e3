"""Numbers that have names, as in the array API standard."""

from __future__ import annotations

from math import e, inf, nan, pi

newaxis = None
"""In ``x[fl.newaxis]`` an axis of extent 1."""

__all__ = ["e", "inf", "nan", "newaxis", "pi"]
