"""What happens when NumPy's functions meet a tensor or an expression: operators are ours, all else is a sentence with the name to use."""

from __future__ import annotations

from typing import Any

_OPERATORS = {
    "add": ("add", "radd"), "subtract": ("sub", "rsub"), "multiply": ("mul", "rmul"), "divide": ("truediv", "rtruediv"),
    "floor_divide": ("floordiv", "rfloordiv"), "remainder": ("mod", "rmod"), "power": ("pow", "rpow"), "less": ("lt", "gt"),
    "less_equal": ("le", "ge"), "greater": ("gt", "lt"), "greater_equal": ("ge", "le"), "equal": ("eq", "eq"), "not_equal": ("ne", "ne"),
    "bitwise_and": ("and", "rand"), "bitwise_or": ("or", "ror"), "bitwise_xor": ("xor", "rxor"), "left_shift": ("lshift", "rlshift"),
    "right_shift": ("rshift", "rrshift"), "matmul": ("matmul", "rmatmul"),
}  # fmt: skip
"""What `array + tensor` and its like call, with the method of the tensor as left and as right operand."""
_NAMES = {
    "absolute": "abs", "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "arccosh": "acosh", "arcsinh": "asinh",
    "arctanh": "atanh", "rint": "round", "around": "round", "clip": "clamp", "amax": "max", "amin": "min", "logical_not": "logical_not",
    "cumsum": "cumulative_sum", "cumprod": "cumulative_prod", "fmax": "maximum", "fmin": "minimum", "invert": "invert",
}  # fmt: skip


class OwnOperators:
    """NumPy leaves operators between its arrays and objects of this class to these, and its functions are refused."""

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        names = _OPERATORS.get(ufunc.__name__)
        if method == "__call__" and names is not None and len(operands) == 2 and not options:
            left, right = operands
            found = getattr(self, f"__{names[0]}__" if left is self else f"__{names[1]}__", None)
            return NotImplemented if found is None else found(right if left is self else left)
        raise _refused(ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        from .expr import refuse

        why = "its elements are known only when the kernel runs"
        raise refuse("A103", "a NumPy array of a tensor", why, "the tensor itself", "fl.stack([a, b]) for a list of tensors")

    def __array_function__(self, function: Any, types: Any, operands: Any, options: Any) -> Any:
        raise _refused(function.__name__)


def _refused(name: str) -> Exception:
    from . import ops
    from .expr import refuse

    ours = _NAMES.get(name, name)
    known = ours in ops.__all__ or ours in ops.ALIASES
    return refuse(
        "A103",
        f"np.{name} of a tensor or an element",
        "NumPy computes with numbers, and these are known only when the kernel runs",
        *([f"fl.{ours}(...)"] if known else []),
    )
