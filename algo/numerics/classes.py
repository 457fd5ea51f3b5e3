"""Numerics classes: how far a plan may move results. Weakest last."""
from __future__ import annotations

from ..dtypes import largest
from .rules import Format

CLASSES = ("exact", "reassociates", "precision", "relaxed")
"""exact: the operations of the unscheduled program in its order. reassociates: reductions in any order. precision: values rounded to
bfloat16 or tf32 on the way. relaxed: whatever the plan says, within four times that."""
_UNIT = {"exact": 2.0**-24, "reassociates": 2.0**-24, "precision": 2.0**-8, "relaxed": 2.0**-6}


def weakest(*classes: str) -> str:
    """The class of a whole whose parts have these classes."""
    return max(classes, key=CLASSES.index, default="exact")


def tolerated(class_: str) -> str:
    """The class whose bounds hold beside those of the casts that are known one by one."""
    return "reassociates" if class_ == "precision" else class_


def within(used: str, allowed: str) -> bool:
    """Whether a plan that allows `allowed` may use something of class `used`."""
    return CLASSES.index(used) <= CLASSES.index(allowed)


def formats(class_: str) -> dict[str, Format]:
    """The float types as kernels of this class may compute in them. float64 is its own reference, so both sides round; so are the narrow
    floats, whose every rounding is defined."""
    return {"float16": Format(2.0**-11, 2.0**-24, largest("float16")), "bfloat16": Format(2.0**-8, 2.0**-133, largest("bfloat16")),
            "float8_e4m3fn": Format(2.0**-4, 2.0**-9, 448.0), "float8_e5m2": Format(2.0**-3, 2.0**-16, 57344.0),
            "float32": Format(_UNIT[class_], 2.0**-126, 3.4028234663852886e38),
            "float64": Format(2.0**-52, 2.0**-1022, 1.7976931348623157e308)}


def accumulation(class_: str, dtype: str) -> float:
    """Unit roundoff of the running sums of a reduction: they stay in float32 at least, unless the plan is relaxed."""
    return 2.0**-52 if dtype == "float64" else 2.0**-16 if class_ == "relaxed" else 2.0**-24
