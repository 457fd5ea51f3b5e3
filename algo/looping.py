"""``fl.while_loop``: a loop whose number of turns is known only when it has run.

The condition and the body are traced once, with tensors that stand for what is carried. Each carry is a stage whose value is what it
starts with; its turn says which stage it becomes. The stages that the body and the condition made are computed at each turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .building import Builder, call_site, current, opened, placed
from .errors import AlgorithmError
from .expr import refuse
from .graph import map_tree
from .passing import bound
from .stages import Stage, Turn
from .tensor import Direct, Tensor
from .trace import copied
from .trees import described, leaves
from .wellformed import counted_apart, moved_by


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """What is carried when the condition no longer holds: init, ``body(init)``, ``body(body(init))``, ...

        fl.while_loop(lambda c: c["error"] > 1e-6, lambda c: {"x": ..., "error": ...}, {"x": x, "error": 1.0})

    init is a tensor, or a list, tuple or dict of them; condition(carry) gives one bool tensor without axes, body(carry) a carry of the same
    structure, shapes and types. The condition is asked before the first turn. Loops stand in loops, in steps of fl.scan, and in fl.vmap:
    there one loop runs until the last example is done, and what is carried stays as it is where one is done. Stages are called while/NAME.
    There is no derivative: the number of turns is not known; fl.scan with a fixed number of steps, or with lengths=, has one.
    Raises AlgorithmError: a body that returns another carry than it takes, a condition with axes.
    """
    from .python import converted

    builder, source = current(), call_site()
    try:
        with opened("while"):
            return _Loop(builder, converted(condition), converted(body), init).result()
    except AlgorithmError as error:
        raise placed(error, source, "/".join([builder.method, *builder.scopes, "while"])) from None


class _Loop:
    """One loop while it is being made."""

    def __init__(self, builder: Builder, condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> None:
        from .ops.shapes import tensor

        self.builder = builder
        self.taken: set[int] = set()
        start = map_tree(lambda t: bound(tensor(t, "while_loop")), init)
        if not leaves(start):
            raise refuse(
                "A423", "fl.while_loop without a carry", "what no turn changes never ends a loop", "init= with what the body changes"
            )
        carry = map_tree(self._carry, start)
        self.carries: list[Direct] = leaves(carry)
        self.before = set(builder.stages)
        assigned = dict(builder.assigned)
        with builder.step(_turn):
            self.condition = self._asked(tensor(condition(carry), "while_loop"))
        with builder.step(_turn):
            made = map_tree(lambda t: None if t is None else bound(tensor(t, "while_loop")), body(carry))
        if described(made) != described(start):
            raise refuse("A423", f"a body that returns {described(made)}", f"init is {described(start)}")
        self.next = [self._next(old, new) for old, new in zip(self.carries, leaves(made), strict=True)]
        self.carry = carry
        if any(assigned.get(key) is not value for key, value in builder.assigned.items()):
            why = "what the Program holds is assigned once, after the loop"
            raise refuse("A423", "an assignment to a parameter or state in an fl.while_loop", why, "carry it, and assign the result")

    def _carry(self, t: Tensor) -> Direct:
        """A stage that starts as t."""
        if t.is_bounded:
            raise refuse("A423", f"while_loop of {t.label}", "a boundary view is a way to read, not a tensor", "the tensor itself")
        return copied(t, "carry", "derived")

    def _asked(self, t: Tensor) -> int:
        if t.shape != () or t.dtype != "bool":
            instead = (f"{t.label} != 0",) if t.shape == () else ("fl.any(x)", "fl.all(x)")
            raise refuse("A401", f"fl.while_loop on {t!r}", "it decides by a bool tensor without axes", *instead)
        return self._own(t, "condition")

    def _next(self, old: Direct, new: Tensor) -> int:
        if tuple(old.shape) != tuple(new.shape) or old.dtype != new.dtype:
            why = "a carry keeps its shape and type from turn to turn"
            raise refuse("A423", f"a body that makes {new!r} of the carry {old!r}", why, "an init of that shape and type", "fl.cast")
        return self._own(new, "next")

    def _own(self, t: Tensor, name: str) -> int:
        """A stage of the loop that is this tensor, and nothing else."""
        t = bound(t)
        if isinstance(t, Direct) and t.source in self.builder.stages and t.source not in self.before:
            s = self.builder.stages[t.source]
            if s.when is self.builder.when and s.id not in self.taken and s.clock is None and s.turn is None:
                self.taken.add(s.id)
                return s.id
        return copied(t, name, "derived").source

    def result(self) -> Any:
        """The carries after the loop. Stages that no carry goes into are computed before it, once."""
        builder, mine = self.builder, {c.source for c in self.carries}
        group = min(mine)
        made = [s for i, s in builder.stages.items() if i not in self.before and i not in mine]
        moving = self._moving(made, mine) | {self.condition, *self.next}
        if opaque := next((s for s in made if s.id in moving and s.extern is not None), None):
            raise placed(moved_by("fl.while_loop", opaque.name), opaque.source, opaque.path)
        for s in made:
            if any(i in moving or i in mine for _, i in s.counts):
                raise placed(counted_apart("turn of fl.while_loop", s.counts[0][0]), s.source, s.path)
            if s.id in moving:
                turn = Turn(group) if s.turn is None else replace(s.turn, around=(group, *s.turn.around))
                builder.stages[s.id] = replace(s, turn=turn)
                builder.transposes.pop(s.id, None)
        for c, new in zip(self.carries, self.next, strict=True):
            builder.stages[c.source] = replace(builder.stages[c.source], turn=Turn(group, new, self.condition))
        builder.closed |= moving
        return self.carry

    def _moving(self, stages: list[Stage], carries: set[int]) -> set[int]:
        """The stages that differ from turn to turn; of a loop inside this one all, or none."""
        moving, loops = set(carries), set[int]()
        while more := {s.id for s in stages if s.id not in moving and (loops & {*s.loops} or any(i in moving for i in s.sources))}:
            moving |= more
            loops |= {group for s in stages if s.id in more for group in s.loops}
        return moving - carries


def _turn() -> Tensor:
    raise refuse(
        "A199",
        "random numbers without a key in an fl.while_loop",
        "every turn would draw the same ones: its turns have no number",
        "a key that is carried, and split at every turn",
        "fl.scan",
    )


__all__ = ["while_loop"]
