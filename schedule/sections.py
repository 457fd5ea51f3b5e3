"""The sections of a plan that are built: one frozen dataclass each, its fields being the YAML keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from .directives import STEPS, Directive
from .directives.base import StepsKind
from .notation.fields import Condition, Flag, Free, Integer, Kind, ListOf, Number, OneOf, TableOf, Text, Words
from .notation.holes import Hole
from .notation.records import Complaint, Record, RecordKind
from .notation.tables import Table

NumericsClass: TypeAlias = Literal["exact", "reassociates", "precision", "relaxed"]
NUMERICS_CLASSES: tuple[NumericsClass, ...] = ("exact", "reassociates", "precision", "relaxed")

PLAIN = Text(open=False)
SELECTOR = Text(form="a selector", open=False)
Path: TypeAlias = Annotated[str, Text(form="a path", open=False)]


@dataclass(frozen=True)
class Numerics(Record):
    """How far results may differ from the unscheduled program: a ceiling, above which a directive is refused at its line.

    exact < reassociates (sums in another order) < precision (fewer bits) < relaxed (results may differ from run to run).
    """

    allow: NumericsClass = "reassociates"
    fast_math: bool = False
    contract: bool = True
    deterministic: bool = True

    def complaints(self) -> list[Complaint]:
        if self.fast_math is True and self.allow in ("exact", "reassociates"):
            return [
                Complaint(
                    "fast_math", "fast_math changes values, which the plan does not allow", f"it allows {self.allow}", ("allow: precision",)
                )
            ]
        return []

    def allows(self, needed: NumericsClass) -> bool:
        """Whether something of class `needed` is within the ceiling."""
        return NUMERICS_CLASSES.index(needed) <= NUMERICS_CLASSES.index(self.allow)


@dataclass(frozen=True)
class Target(Record):
    """What code is generated for: {kind: llvm, cpu, features}, {kind: cuda, arch} or {kind: opencl}."""

    kind: Literal["llvm", "cuda", "opencl"] = "llvm"
    cpu: str = "native"
    features: tuple[str, ...] = ()
    arch: Annotated[tuple[str, ...], OneOf(kinds=(Text(), ListOf(Text())))] = ()

    def complaints(self) -> list[Complaint]:
        found: list[Complaint] = []
        if isinstance(self.kind, Hole):
            return found
        if self.kind == "cuda" and not self.arch:
            found.append(Complaint("kind", "cuda needs an arch", "", ("arch: sm_90",)))
        if self.kind != "cuda" and self.arch:
            found.append(Complaint("arch", f"arch is for cuda, the target is {self.kind}", "", ("kind: cuda", "leave arch out")))
        if self.kind != "llvm" and (self.cpu != "native" or self.features):
            field = "cpu" if self.cpu != "native" else "features"
            found.append(
                Complaint(field, f"cpu and features are for llvm, the target is {self.kind}", "", ("kind: llvm", f"leave {field} out"))
            )
        return found

    @property
    def arches(self) -> tuple[str, ...]:
        """The GPU architectures, one or several."""
        return (self.arch,) if isinstance(self.arch, str) else self.arch


@dataclass(frozen=True)
class Buckets(Record):
    """Code specialised for exactly these extents; others take the generic code, unless `fallback` is false."""

    noun: ClassVar[str] = "an extent"
    buckets: Annotated[tuple[int, ...], ListOf(Integer(least=0, open=False), least=1, open=False)]
    fallback: bool = True


@dataclass(frozen=True)
class Between(Record):
    """A symbolic extent with bounds, both included, and a number that it is a multiple of."""

    noun: ClassVar[str] = "an extent"
    between: Annotated[tuple[int, ...], ListOf(Integer(least=0, open=False), least=2, open=False)]
    multiple: Annotated[int, Integer(least=1, open=False)] = 1

    def complaints(self) -> list[Complaint]:
        if len(self.between) != 2 or self.between[0] > self.between[1]:
            return [Complaint("between", "between takes two bounds, the lower first", "", ("between: [1, 512]",))]
        return []


@dataclass(frozen=True)
class AtMost(Record):
    """The bound of an extent that depends on data."""

    noun: ClassVar[str] = "an extent"
    max: Annotated[int, Integer(least=1, open=False)]


@dataclass(frozen=True)
class _ExtentKind(OneOf):
    def value(self, tree: Any, reading: Any) -> Any:
        names = set(getattr(tree, "names", ()))
        for kind, mark in zip(self.kinds[1:], ("buckets", "between", "max"), strict=True):
            if mark in names:
                return kind.value(tree, reading)
        if names:
            return reading.fail(tree.place, "P008", f"{reading.name} is a mapping with {', '.join(names)}", f"expected {self.words}")
        return super().value(tree, reading)

    @property
    def words(self) -> str:  # type: ignore[override]
        """The type in the words of a message."""
        return "an integer, {buckets: [1, 8]}, {between: [1, 512]} or {max: 300}"


Extent: TypeAlias = int | Buckets | Between | AtMost
EXTENTS: Kind = TableOf(_ExtentKind(kinds=(Integer(least=0), RecordKind(Buckets), RecordKind(Between), RecordKind(AtMost))))
FIXED: Kind = TableOf(Integer(least=0, open=False), open=False)


@dataclass(frozen=True)
class Fusion(Record):
    """Which stages share a kernel: `groups` do, pairs in `never` do not, and `rest` says who decides the others."""

    groups: Annotated[tuple[tuple[str, ...], ...], ListOf(ListOf(SELECTOR, least=1))] = ()
    never: Annotated[tuple[tuple[str, ...], ...], ListOf(ListOf(SELECTOR, least=2))] = ()
    rest: Literal["auto", "none"] = "auto"


@dataclass(frozen=True)
class ScheduleEntry(Record):
    """The long form of a line of `schedule`: the same directives for every selector in `select`."""

    noun: ClassVar[str] = "an entry of schedule"
    select: Annotated[tuple[str, ...], ListOf(SELECTOR, least=1)]
    do: Annotated[tuple[Directive, ...], STEPS]
    optional: Annotated[bool, Flag(open=False)] = False

    @property
    def selectors(self) -> tuple[str, ...]:
        """Those of `select` that are no open holes."""
        return tuple(text for text in self.select if isinstance(text, str)) if isinstance(self.select, tuple) else ()


Schedule: TypeAlias = Mapping[str, tuple[Directive, ...]] | tuple[ScheduleEntry, ...]
SCHEDULE: Kind = OneOf(kinds=(ListOf(RecordKind(ScheduleEntry, open=False)), TableOf(StepsKind(auto=()))), auto=())


@dataclass(frozen=True)
class Variant(Record):
    """Overrides for one bucket: `when` gives its extents, each a number or two bounds."""

    noun: ClassVar[str] = "a variant"
    when: Annotated[
        Mapping[str, int | tuple[int, ...]],
        TableOf(OneOf(kinds=(Integer(least=0), ListOf(Integer(least=0, open=False), least=2)), open=False), least=1, open=False),
    ]
    schedule: Annotated[Schedule, SCHEDULE] = Table()  # noqa: RUF009  # a Table is frozen
    fusion: Fusion | None = None

    def complaints(self) -> list[Complaint]:
        wrong = [name for name, value in self.when.items() if isinstance(value, tuple) and (len(value) != 2 or value[0] > value[1])]
        return [Complaint("when", f"when/{name} takes two bounds, the lower first", "", (f"{name}: [1, 512]",)) for name in wrong]


@dataclass(frozen=True)
class Runtime(Record):
    """How a built model runs; changes no code, and may be overridden when it is loaded."""

    threads: Annotated[int | str, OneOf(kinds=(Integer(least=1), Words(("all",))))] = "all"
    cuda_graph: Annotated[bool | str, OneOf(kinds=(Flag(), Words(("auto",))))] = "auto"
    streams: Annotated[int | str, OneOf(kinds=(Integer(least=1), Words(("auto",))))] = "auto"
    huge_pages: Annotated[bool | str, OneOf(kinds=(Flag(), Words(("auto",))))] = "auto"


@dataclass(frozen=True)
class Tune(Record):
    """What tuning optimises, on which extents and inputs, within which constraints and budget (`trials`, `minutes`)."""

    objective: Annotated[Mapping[str, float], TableOf(Number(least=0, open=False), open=False)] = Table()
    at: Annotated[tuple[Mapping[str, int], ...], ListOf(FIXED, open=False)] = ()
    inputs: Path | None = None
    where: Annotated[tuple[str, ...], ListOf(Condition(open=False), open=False)] = ()
    trials: Annotated[int, Integer(least=1, open=False)] = 200
    minutes: Annotated[float, Number(least=0, open=False)] | None = None


HOLES: Kind = TableOf(Free(open=True, auto=()), open=False)
PROVENANCE: Kind = TableOf(Free(open=False), open=False)
EXTENDS: Kind = OneOf(kinds=(ListOf(PLAIN, open=False), PLAIN), open=False)
ENTRY_RECORDS: tuple[type[Record], ...] = (
    Numerics, Target, Buckets, Between, AtMost, Fusion, ScheduleEntry, Variant, Runtime, Tune,
)  # fmt: skip
