"""What the default scheduler and legality need to know of a target: vector width, cores, caches. Facts only; no code generator."""

from __future__ import annotations

from dataclasses import dataclass

from fluorite.algo.dtypes import held, itemsize


@dataclass(frozen=True)
class Machine:
    """`kind` llvm, cuda or opencl; `vector_bytes` of the widest vector, `registers` of that width, `cores`, cache sizes in bytes; `arch` is
    the number of the oldest NVIDIA architecture that code is made for, 0 where it is for none; `features` are those of the processor
    that code may use, by their names in /proc/cpuinfo."""

    kind: str = "llvm"
    vector_bytes: int = 64
    registers: int = 32
    cores: int = 2
    l1: int = 32 << 10
    l2: int = 1 << 20
    threads_per_block: int = 1024
    shared_bytes: int = 48 << 10
    arch: int = 0
    features: tuple[str, ...] = ()

    @property
    def is_gpu(self) -> bool:
        return self.kind != "llvm"

    def lanes(self, dtype: str) -> int:
        """Elements of the widest vector, in the type that they are computed in."""
        return max(1, self.vector_bytes // itemsize(held(dtype)))
