"""How much memory a call takes beside its inputs, what takes it, and where in the call most of it is needed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .extents import evaluate
from .prepared import Prepared


@dataclass(frozen=True)
class Peak:
    """Bytes, each the most that there are at a time. `buffers` is the arena of values between kernels, `workspace` what kernels take for
    themselves on all their threads. `alive` are the values there while `kernel` runs, at which their sum is largest; largest first."""

    parameters: int
    constants: int
    results: int
    buffers: int
    workspace: int
    kernel: str
    alive: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        return self.parameters + self.constants + self.results + self.buffers + self.workspace

    def text(self, most: int = 4) -> str:
        """`1.5 MiB: parameters 1 MiB, buffers 512 KiB; most in kernel net_2_relu: predict/relu 512 KiB`"""
        names = ("parameters", "constants", "results", "buffers", "workspace")
        parts = ", ".join(f"{name} {size(n)}" for name in names if (n := getattr(self, name))) or "nothing"
        inside = ", ".join(f"{name} {size(n)}" for name, n in self.alive[:most])
        return f"{size(self.total)}: {parts}" + (f"; most in kernel {self.kernel}: {inside}" if inside else "")


def peak_of(prepared: Prepared, parameters: Iterable[int], threads: int) -> Peak:
    """The peak of a call that has been planned. `parameters` are their sizes in bytes, `threads` those of parallel kernels."""
    variant, sizes, lifetimes = prepared.variant, prepared.sizes, prepared.lifetimes
    lasting = {b for step in variant.steps for b in step.arguments}
    constants = sum(sizes[b] for b in lasting if variant.buffers[b].kind == "constant")
    made = [b for b in lifetimes if variant.buffers[b].kind in ("temporary", "output")]
    alive: dict[int, list[int]] = {n: [b for b in made if _is_alive(lifetimes[b], n)] for n in range(len(variant.steps))}
    fullest = max(alive, key=lambda n: sum(sizes[b] for b in alive[n]), default=None)
    largest = sorted(alive[fullest] if fullest is not None else [], key=lambda b: -sizes[b])
    workspace = max((evaluate(s.workspace[0], prepared.symbols) + max(threads, 1) * evaluate(s.workspace[1], prepared.symbols)
                     for s in variant.steps), default=0)  # fmt: skip
    return Peak(
        sum(parameters),
        constants,
        prepared.bytes - prepared.arena_bytes,
        prepared.arena_bytes,
        workspace,
        variant.steps[fullest].kernel if fullest is not None else "",
        tuple((variant.buffers[b].name, sizes[b]) for b in largest),
    )


def _is_alive(lifetime: tuple[int, int], step: int) -> bool:
    return lifetime[0] <= step <= lifetime[1]


def size(n: int) -> str:
    """`512 B`, `1.5 KiB`, `3 GiB`"""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if n >= scale:
            return f"{n / scale:.3g} {unit}"
    return f"{n} B"


def less(n: int, than: int) -> str:
    """The size of n, with what it is less by where both sizes read alike."""
    return f"{size(n)}, {than - n:,} B less" if size(n) == size(than) else size(n)


__all__ = ["Peak", "less", "peak_of", "size"]
