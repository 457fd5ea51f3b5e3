"""Complex numbers as pairs of real ones: an element is a pair of expressions, a tensor a pair of tensors.

The graph below knows none of this: kernels, schedules and derivatives see real stages only, those of one complex tensor are called
NAME/real and NAME/imag, and a part that nothing reads is not computed. At the border of a method a complex tensor is one array, whose
memory is float32 [..., 2] or float64 [..., 2].

Products and sums follow the textbook formulas, as NumPy's do; a real operand stays real instead of getting an imaginary part of 0, so that
``2 * z`` doubles both parts whatever they are. Quotients scale by the larger part of the divisor (Smith, 1962), and neither abs nor sqrt
overflows. On finite numbers the results are NumPy's up to rounding and the sign of zeros. Infinities are not treated as one point, as
C99's Annex G does: ``complex(inf, nan) * z`` is NaN in both parts. exp and its kin are NaN or infinite where a factor overflows, even if
the product would not.

The derivative by a complex tensor is the pair of the derivatives by its parts, d/d real + i d/d imag, as in PyTorch: the conjugate of
JAX's. ``z - rate * derivative`` goes down. A cotangent is such a pair as well, and a tangent moves both parts.
"""

from __future__ import annotations

from .elements import ComplexExpr, complex_element, is_complex
from .tensors import ComplexTensor, complex_tensor, from_pair

__all__ = ["ComplexExpr", "ComplexTensor", "complex_element", "complex_tensor", "from_pair", "is_complex"]
