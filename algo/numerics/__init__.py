"""Comparing what was computed with what the algorithm means, within a bound that is derived and not guessed."""
from .bounding import bounds
from .casts import NO_CASTS, Casts
from .classes import CLASSES, tolerated, weakest, within
from .comparing import Comparison, Expected, compare, compare_array, expected
from .rules import FUNCTION_ULPS, Enclosure
from .static import Tolerance, tolerance

__all__ = ["CLASSES", "FUNCTION_ULPS", "NO_CASTS", "Casts", "Comparison", "Enclosure", "Expected", "Tolerance", "bounds", "compare",
           "compare_array", "expected", "tolerance", "tolerated", "weakest", "within"]
