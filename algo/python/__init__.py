"""Python's own ``if``, ``for``, ``while``, ``and``, ``or``, ``not`` and conditional expressions, on tensors: the source is rewritten.

As TensorFlow's AutoGraph does (D. Moldovan et al., "AutoGraph: Imperative-style Coding with Graph-based Performance", MLSys 2019): the
bodies of statements become functions, and what runs in place of the statement looks at the value. On Python values everything means what
it means in Python.
"""

from __future__ import annotations

from .converting import converted

__all__ = ["converted"]
