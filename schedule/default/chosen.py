"""What the default scheduler has decided so far, and what it may decide."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fluorite.algo.dtypes import kind
from fluorite.algo.expr import Op
from fluorite.algo.graph import Graph
from fluorite.algo.stages import Stage, unwidened

from ..machine import Machine
from ..scheduled import Undecided
from . import few_results
from .analysis import factors, unwoven
from .kernels import Directives


@dataclass
class Chosen:
    """The directives so far, by path, and the stages that already have a kernel. `carried`: whose expressions a stage contains."""

    graph: Graph
    undecided: Undecided
    directives: dict[str, Directives] = field(default_factory=dict)
    inlined: set[int] = field(default_factory=set)
    placed: set[int] = field(default_factory=set)
    carried: dict[int, set[int]] = field(default_factory=dict)
    written: Graph | None = None  # before anything was written into its readers

    def multiplies(self, s: Stage) -> bool:
        """Whether a stage multiplies as the algorithm has it. The rules for products move operands, which is done before stages are written
        into their readers: what only that makes a product is none."""
        first = s if self.written is None else self.written.by_id.get(s.id, s)
        value = unwidened(first.value) if isinstance(first, Stage) else None
        return isinstance(value, Op) and value.op == "mul"

    def operands(self, s: Stage) -> frozenset[int]:
        """The tensors that a stage reads as the algorithm has it: those that a rule may move."""
        first = None if self.written is None else self.written.by_id.get(s.id)
        return frozenset((first if isinstance(first, Stage) else s).sources)

    def is_product(self, s: Stage) -> bool:
        """Whether a stage is a product, under the rules for products. With one column it is sums of rows, with no element none."""
        if 0 in s.extents:
            return False
        return factors(s) is not None and (self.machine.is_gpu or s.extents[-1] != 1) and self.multiplies(s) and self.one_pass(s) is None

    def one_pass(self, s: Stage) -> few_results.Pass | None:
        """How a stage is reduced in one pass over its operands, if that may be done and pays."""
        free = self.undecided.reassociate or kind(s.value.dtype) != "float"  # integers and truth values come out the same
        return few_results.one_pass(unwoven(self.graph, s), self.machine) if free else None

    def apart(self, s: Stage) -> bool:
        """Whether a stage has a kernel of its own, or one of which it is the main part."""
        return factors(s) is not None or self.one_pass(s) is not None

    @property
    def machine(self) -> Machine:
        return self.undecided.machine

    def free(self, s: Stage) -> bool:
        return s.id in self.undecided.stages and s.id not in self.placed and s.id not in self.inlined

    def may_fuse(self, a: int, b: int) -> bool:
        """Whether a and b, with what has been written into them, may share a kernel."""
        apart, of_both = self.undecided.apart, ({a, *self.carried.get(a, ())}, {b, *self.carried.get(b, ())})
        if any((x, y) in apart or (y, x) in apart for x in of_both[0] for y in of_both[1]):
            return False
        loops = [t.loops for t in (self.graph.by_id[x] for x in (a, b)) if isinstance(t, Stage)]
        if len(set(loops)) > 1:
            return False
        of_a = next((g for g in self.undecided.together if a in g), None)
        of_b = next((g for g in self.undecided.together if b in g), None)
        if of_a is None and of_b is None:
            return self.undecided.fuse
        return of_a is of_b


def carry(carried: dict[int, set[int]], s: int, readers: Iterable[Stage]) -> None:
    """Note that s is written into its readers."""
    for c in readers:
        carried.setdefault(c.id, set()).update({s, *carried.get(s, ())})


__all__ = ["Chosen", "carry"]
