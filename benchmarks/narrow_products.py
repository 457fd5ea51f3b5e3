"""Matrix products in narrow types: their shapes, and data that each peer gives its own type. Results are float32 or int32, PyTorch's of the
floats as narrow as its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Product(NamedTuple):
    """`of` m x k and k x n numbers of the type."""

    of: str
    m: int
    k: int
    n: int

    @property
    def text(self) -> str:
        return f"matrix product of {self.of}, {self.m} x {self.k} times {self.k} x {self.n}; the limit is that of float32"

    @property
    def flops(self) -> float:
        return 2.0 * self.m * self.k * self.n

    @property
    def bytes(self) -> float:
        return (1 if self.of == "int8" else 2) * (self.m + self.n) * self.k + 4 * self.m * self.n

    def data(self, r: np.random.Generator) -> Mapping[str, Array]:
        """Numbers that the type holds, of the floats as float32."""
        shapes = {"a": (self.m, self.k), "b": (self.k, self.n)}
        if self.of == "int8":
            return {name: r.integers(-127, 128, shape).astype(np.int8) for name, shape in shapes.items()}
        return {name: (r.integers(-128, 129, shape) / 128).astype(np.float32) for name, shape in shapes.items()}


PRODUCTS = {
    "bf16_product": Product("bfloat16", 1024, 1024, 1024),
    "bf16_product_512": Product("bfloat16", 512, 512, 512),
    "bf16_few_rows": Product("bfloat16", 8, 2048, 2048),
    "half_product": Product("float16", 512, 512, 512),
    "int8_product": Product("int8", 512, 512, 512),
}


def reference(of: str) -> Callable[[Mapping[str, Array]], Array]:
    return lambda d: (d["a"].astype(np.float64) @ d["b"].astype(np.float64)).astype("int32" if of == "int8" else "float32")


__all__ = ["PRODUCTS", "Product", "reference"]
