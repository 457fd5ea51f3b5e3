"""Which stages read one another in a circle, and along which axis the circle can be run.

A set of stages that read each other is computable if along one axis, the clock, every read lies at the same step or a fixed number of steps
earlier, and no circle stays within one step (R. M. Karp, R. E. Miller and S. Winograd, "The organization of computations for uniform
recurrence equations", Journal of the ACM 14, 1967).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .clock import Clock, delay, place
from .errors import AlgorithmError
from .expr import Axis, refuse
from .ordering import step_order
from .printing import show
from .stages import Stage


def with_clocks(stages: Sequence[Stage], directions: Iterable[tuple[str, bool]]) -> dict[int, Stage]:
    """The stages that are part of a recurrence, with their clocks, by id.

    `directions` are (axis name, backward) to be tried in this order. Raises AlgorithmError where none makes the reads earlier ones.
    """
    out: dict[int, Stage] = {}
    tried = list(directions)
    for circle in circles(stages):
        if len({s.clock and s.clock.group for s in circle}) == 1 and circle[0].clock is not None:
            continue  # a recurrence of a scan inside the step of this one: at every step of the outer one another
        whys = [f"{s.name} runs step by step along {s.clock.axis.name} within one step already" for s in circle if s.clock]
        for name, reverse in tried:
            found, why = _clocked(circle, name, reverse)
            if found:
                out |= {s.id: s for s in found}
                break
            whys.append(why)
        else:
            raise _refused(circle, dict.fromkeys(whys))
    return out


def circles(stages: Sequence[Stage]) -> list[list[Stage]]:
    """The sets of stages that depend on themselves, each as large as can be, in the order of their first stages."""
    by_id = {s.id: s for s in stages}
    reached = {i: _reached(i, by_id) for i in by_id}
    done: set[int] = set()
    out = []
    for i in by_id:
        if i in reached[i] and i not in done:
            circle = [s for j, s in by_id.items() if j in reached[i] and i in reached[j]]
            done |= {s.id for s in circle}
            out.append(circle)
    return out


def _reached(start: int, stages: Mapping[int, Stage]) -> set[int]:
    """What a stage reads, directly or not."""
    seen: set[int] = set()
    pending = [start]
    while pending:
        new = {r.source for r in stages[pending.pop()].reads} & stages.keys() - seen
        seen |= new
        pending += new
    return seen


def _clocked(circle: Sequence[Stage], name: str, reverse: bool) -> tuple[list[Stage], str]:
    """The circle with this clock, or why that cannot be."""
    axes: dict[int, Axis] = {}
    for s in circle:
        own = next((a for a in s.axes if a.name == name), None)
        if own is None:
            return [], f"{s.name} has no axis {name}"
        axes[s.id] = own
    inside = {s.id: s for s in circle}
    for s in circle:
        for r in s.reads:
            if (other := inside.get(r.source)) is None:
                continue
            index = r.index[place(axes[other.id], other.axes)]
            steps = delay(index, axes[s.id], reverse)
            if steps is None:
                return [], f"{s.name} reads {other.name} at {show(index)} of {name}, which is not {name} and a fixed number"
            if steps < 0:
                return [], f"{s.name} reads {other.name} at {show(index)} of {name}, which comes later"
    group = min(axes)
    made = [replace(s, clock=Clock(axes[s.id], group, reverse)) for s in circle]
    try:
        return step_order(made), ""
    except ValueError:
        return [], f"{', '.join(s.name for s in circle)} at one {name} needs itself at the same {name}"


def _refused(circle: Sequence[Stage], whys: Iterable[str]) -> AlgorithmError:
    names = ", ".join(s.name for s in circle)
    return refuse(
        "A160",
        f"{names} in terms of {'itself' if len(circle) == 1 else 'one another'}",
        "no axis runs so that what is read is there before: " + "; ".join(whys),
        "reads at earlier positions of one axis, such as h[t - 1, i]",
    )


__all__ = ["circles", "with_clocks"]
