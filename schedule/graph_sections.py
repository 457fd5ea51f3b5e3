"""The sections of a plan that change what is computed where and in which type, before any loop is scheduled: precision and memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from fluorite.algo.errors import Problem

from .notation.constraint import size
from .notation.fields import Kind, ListOf, Number, OneOf, Size, TableOf, Text, Words
from .notation.holes import Hole
from .notation.records import Record, RecordKind
from .notation.tables import Table

if TYPE_CHECKING:
    from .plan import ExecutionPlan

DType: TypeAlias = Literal["f32", "tf32", "bf16", "f16", "f8e4m3", "int8"]
TYPES: Mapping[str, str] = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
"""The types of arithmetic that are built, by the names that plans have for them."""
NARROWING = frozenset({"bf16", "f16"})
"""Those that are narrower than float32."""
SELECTORS: Kind = ListOf(Text(form="a selector"))
LIMIT: Kind = OneOf(kinds=(Size(), Words(("unlimited",))))
_LOSS_SCALE = OneOf(kinds=(Number(), Words(("none", "dynamic"))))


@dataclass(frozen=True)
class PrecisionOverride(Record):
    """The types of the stages of one selector."""

    noun: ClassVar[str] = "an override of precision"
    compute: DType | None = None
    accumulate: DType = "f32"


@dataclass(frozen=True)
class Precision(Record):
    """Narrower types than the algorithm's. Of class precision; results and inputs keep their types.

    A stage computed in `compute` takes the tensors that it reads rounded to that type (a parameter's copy is made once, at load), and does
    its arithmetic in `accumulate`. `parameters` is the type in which they are stored. Stages in `keep` stay as the algorithm says; a module
    or operator there means all its stages. What a stage hands on to the next one element by element stays in registers and keeps its bits.

    Training: stages of the forward pass and of the gradient are computed in `compute`; updates are not, whatever `overrides` say. They read
    the parameters as they are stored and compute as the algorithm says, float32 at least. `gradients` is the type in which an update finds
    the gradients; `optimizer` that in which optimisers keep their state from call to call, except new values in `keep`. Both are rounded
    once where they are stored. Numbers below 6e-8 are 0 in f16: `loss_scale` computes all adjoints of a loss multiplied by a number, and
    divides in float32 before anything else reads them. `dynamic`: begins at 65536, is halved by a call in which a gradient is not finite,
    doubled by the 2000th good call in a row. The call that halves it changes no parameter, no state of the optimiser and counts no step.
    Each loss has its own scale, which is state (grad/METHOD/LOSS/scale) and goes into checkpoints. A number stays and skips nothing.

    Benefit: with bf16, half the memory and half the time of what waits for memory, such as products of a matrix and few rows; with
    `parameters: bf16` half the bytes of the weights. Costs: accuracy, most with `parameters` and `optimizer` while training: what a step
    adds is lost where it is below 1/512 (bf16) of what is there; products with many rows become slower (1.3 times on a processor
    without instructions for bfloat16), and f16 several times slower, since each number is converted by several instructions. A copy in
    `compute` is made beside each parameter that is stored in a wider type.
    """

    compute: DType | None = None
    accumulate: DType = "f32"
    parameters: DType | None = None
    gradients: DType = "f32"
    optimizer: DType = "f32"
    reduce: DType = "f32"
    keep: Annotated[tuple[str, ...], SELECTORS] = ()
    overrides: Annotated[Mapping[str, PrecisionOverride], TableOf(RecordKind(PrecisionOverride))] = Table()
    loss_scale: Annotated[str | float, _LOSS_SCALE] = "none"
    calibrate: str | None = None


@dataclass(frozen=True)
class Memory(Record):
    """What is computed again or kept on the host, within which limit of bytes per device.

    Stages in `recompute` are computed once more, as METHOD/recompute/PATH, for all their readers but the first (those of a gradient, where
    others read it too), so that their memory is free in between. `auto` chooses them: as little as can be found is computed again in the
    backward pass for every call to stay within `limit`, at the largest extents, which the plan has to bound. `explain` and `plan resolve
    --model MODEL` show what was chosen. `limit` is what one call may take beside its inputs: parameters, packed
    constants, results, buffers between kernels and what kernels take for themselves. It is checked at build for all extents that the plan
    bounds, and at the call for the others.
    """

    recompute: Annotated[Any, OneOf(kinds=(SELECTORS, Words(("auto",))))] = ()
    offload: Annotated[tuple[str, ...], SELECTORS] = ()
    limit: Annotated[int | str, LIMIT] = "unlimited"

    @property
    def most(self) -> int | None:
        """The limit in bytes."""
        return None if self.limit == "unlimited" or isinstance(self.limit, Hole) else bytes_of(self.limit)


def bytes_of(given: int | str) -> int:
    """A number of bytes, or one with a unit: 2048, 512MiB."""
    return given if isinstance(given, int) else int(size(given) or 0)


def unbuilt_keys(plan: ExecutionPlan) -> Iterator[Problem]:
    """P903: keys and values of these sections that are part of the language but not built yet. P301: what the plan's ceiling forbids."""
    if (memory := plan.memory) is not None:
        if memory.offload:
            why = "models run on the host, where all memory is"
            yield memory.place_of("offload").problem("P903", "memory: offload is not built yet", why, ("leave offload out",))
        if memory.recompute == "auto" and memory.limit == "unlimited":
            why = "it chooses stages so that calls stay within memory: limit"
            instead = ("memory: {recompute: auto, limit: 512MiB}", "recompute: [a stage]")
            yield memory.place_of("recompute").problem("P404", "memory: recompute: auto without a limit", why, instead)
    if (found := plan.precision) is not None:
        yield from _unbuilt_precision(found)
        if found.given() and "allow" in plan.numerics.given() and not plan.numerics.allows("precision"):
            asked, why = "precision: rounds to narrower types", f"the plan allows {plan.numerics.allow}"
            yield plan.place_of("precision").problem(
                "P301", asked, why, ("numerics: {allow: precision}", "leave numerics: allow out: it is implied")
            )


def _unbuilt_precision(found: Precision) -> Iterator[Problem]:
    if found.reduce != "f32":
        why = "nothing is sent between devices yet"
        asked = f"precision: reduce: {found.reduce} is not built yet"
        yield found.place_of("reduce").problem("P903", asked, why, ("leave reduce out",))
    given_scale = found.loss_scale
    if not isinstance(given_scale, Hole | str) and not 2.0**-100 <= given_scale <= 2.0**100:
        why = "losses are multiplied by it and gradients divided, in float32"
        instead = ("loss_scale: 1024", "loss_scale: dynamic")
        yield found.place_of("loss_scale").problem("P009", f"loss_scale: {given_scale:g} is no scale", why, instead)
    if found.calibrate is not None:
        why = "it is for int8, which is not built"
        yield found.place_of("calibrate").problem("P903", "precision: calibrate is not built yet", why, ("compute: bf16",))
    given: list[tuple[str, object, Any]] = [(key, getattr(found, key), found.place_of(key)) for key in STORED]
    sums: list[tuple[str, object, Any]] = [("accumulate", found.accumulate, found.place_of("accumulate"))]
    for selector, override in found.overrides.items() if isinstance(found.overrides, Mapping) else ():
        if isinstance(override, PrecisionOverride):
            given.append((f"overrides: {selector}: compute", override.compute, override.place_of("compute")))
            sums.append((f"overrides: {selector}: accumulate", override.accumulate, override.place_of("accumulate")))
    for key, value, place in given:
        if isinstance(value, str) and value not in TYPES:
            yield place.problem("P903", f"precision: {key}: {value} is not built yet", _WHY[value], tuple(TYPES))
    for key, value, place in sums:
        if isinstance(value, str) and value != "f32":
            why = "sums and products are taken in float32, which holds every product of two narrow floats"
            yield place.problem("P903", f"precision: {key}: {value} is not built", why, ("accumulate: f32",))


STORED = ("compute", "parameters", "gradients", "optimizer")
_WHY = {
    "tf32": "it is a type of NVIDIA's matrix units, and processors have none of it",
    "f8e4m3": "without scales per tensor most values would leave its range",
    "int8": "it needs scales from calibration data",
}
GRAPH_RECORDS: tuple[type[Record], ...] = (Precision, PrecisionOverride, Memory)
