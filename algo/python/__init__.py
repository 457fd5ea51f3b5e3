"""Python's own ``if``, ``for``, ``while``, ``and``, ``or``, ``not`` and conditional expressions, on tensors: the source is rewritten.

As TensorFlow's AutoGraph does (D. Moldovan et al., "AutoGraph: Imperative-style Coding with Graph-based Performance", MLSys 2019): the
bodies of statements become functions, and what runs in place of the statement looks at the value. On Python values everything means what
it means in Python. Rewritten are the model's own functions, those with ``@fl.function``, and those that fl.grad, fl.value_and_grad, fl.vjp,
fl.jvp, fl.vmap, fl.custom_vjp, fl.scan, fl.while_loop, fl.cond and fl.switch are given, lambdas included; not what these call.
"""

from __future__ import annotations

from .converting import converted

__all__ = ["converted"]
