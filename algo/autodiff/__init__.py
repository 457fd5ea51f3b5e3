"""Derivatives of anything the language can say: stages whose values are derivatives of other stages."""

from __future__ import annotations

from .batching import vmap
from .custom import custom_vjp, stop_gradient
from .forward import jvp
from .transforms import grad, gradients, value_and_grad, vjp

__all__ = ["custom_vjp", "grad", "gradients", "jvp", "stop_gradient", "value_and_grad", "vjp", "vmap"]
