"""Random plans from a seed: every section, every directive, holes wherever a value may stand. Fast, so that many can be drawn."""

from __future__ import annotations

import dataclasses
from random import Random
from typing import Any

from fluorite.schedule import (
    AUTO,
    DIRECTIVES,
    Between,
    Choose,
    Directive,
    Divides,
    ExecutionPlan,
    Numerics,
    Pow2,
    Range,
    Ref,
    Rfactor,
    Split,
    Table,
    Target,
    Variant,
)
from fluorite.schedule.directives.base import StepKind, StepsKind
from fluorite.schedule.notation.fields import (
    Condition,
    Flag,
    Free,
    Integer,
    Kind,
    ListOf,
    Nullable,
    Number,
    OneOf,
    Size,
    TableOf,
    Text,
    Words,
)
from fluorite.schedule.notation.records import Record, RecordKind, default, kinds

WORDS = [
    "x",
    "y_outer",
    "layers.*/up/matmul",
    "photo.py:photo",
    "kind=matmul",
    "tail",
    "sizes",
    "choose",
    "range",
    "divides",
    "note_",
    "split",
]
WORDS += [
    "y",
    "no",
    "on",
    "off",
    "true",
    "null",
    "~",
    "1e-3",
    "0x10",
    "12",
    "a b",
    "a: b",
    "- x",
    "#",
    "'",
    '"',
    "\\",
    "é",
    "\u2028",
    "\x85",
    " ",
]
WORDS += [
    "*",
    "**",
    "*/softmax",
    "&a",
    "!t",
    "a#b",
    "a:b",
    "{",
    "]",
    ",",
    "?",
    "|",
    ">",
    "%",
    "@",
    "`",
    "=",
    "<<",
    "...",
    "---",
    "\t",
    "\n",
    "😀",
    "a:",
]
REFS = [Ref("tx"), Ref("ty"), Ref("$tx * 2"), Ref("($tx + 1) // $ty")]
CONDITIONS = ["$tx * $ty <= 1024", "$tx < 4KiB and not ($ty == 2 or $tx % 2 != 0)"]
SAFE: dict[type[Record], Record] = {
    Split: Split("x", 8),
    Rfactor: Rfactor("k", block=8),
    Target: Target("cuda", arch="sm_90"),
    Between: Between((1, 2)),
    Numerics: Numerics(allow="precision", fast_math=True),
    Variant: Variant({"n": 1}),
}  # fmt: skip


class Maker:
    """Draws values of kinds."""

    def __init__(self, seed: int, numbers_only: bool = False) -> None:
        self.random = Random(seed)
        self.numbers_only = numbers_only

    def chance(self, odds: float) -> bool:
        return self.random.random() < odds

    def text(self) -> str:
        if self.chance(0.7):
            return self.random.choice(WORDS)
        return "".join(self.random.choice("abz09_-./*:#\"'\\ é") for _ in range(self.random.randint(1, 6)))

    def note(self) -> str | None:
        return self.text() if self.chance(0.1) else None

    def count(self, least: int = 0) -> int:
        return least + self.random.choice([0, 1, 1, 2])

    def value(self, kind: Kind, depth: int = 4) -> Any:
        """A value of a kind, a hole among them where it is open."""
        if kind.open and depth > 0 and self.chance(0.15):
            return self.hole(kind, depth)
        return self.plain(kind, depth)

    def hole(self, kind: Kind, depth: int) -> Any:
        some: list[Any] = [] if self.numbers_only and not kind.arithmetic else [self.random.choice(REFS if kind.arithmetic else REFS[:2])]
        some += [Choose(*(self.value(kind, depth - 2) for _ in range(1 + self.count())), note=self.note())]
        if kind.scalar:
            some += [Range(1, self.random.randint(1, 9), self.random.randint(1, 3)), Pow2(2, 64), Divides(self.text())]
        if kind.auto is not None:
            some.append(AUTO)
        return self.random.choice(some)

    def plain(self, kind: Kind, depth: int) -> Any:
        match kind:
            case StepsKind():
                return tuple(self.value(StepKind(), depth - 1) for _ in range(self.count()))
            case StepKind():
                return self.record(self.random.choice(list(DIRECTIVES.values())), depth - 1)
            case RecordKind():
                return self.record(kind.record, depth - 1)
            case Text():
                return self.text()
            case Integer():
                least = kind.least if kind.least is not None else -5
                return self.random.choice([least, min(least + 7, kind.most or 1 << 60), kind.most or (1 << 60)])
            case Number():
                return self.random.choice([0.0, 1.0, 1e-3, 2.5e300])
            case Flag():
                return self.chance(0.5)
            case Words():
                return self.random.choice(kind.choices)
            case Size():
                return self.random.choice([0, 1 << 30, "1KiB", "25MiB"])
            case Condition():
                return self.random.choice(CONDITIONS)
            case Free():
                return self.free(depth) if not kind.open else self.random.choice([8, "8", True, "y", ("a", 1)])
            case ListOf():
                return tuple(self.value(kind.element, depth - 1) for _ in range(self.count(kind.least)))
            case TableOf():
                entries = {}
                while len(entries) < kind.least or self.chance(0.5):
                    entries[self.text()] = self.value(kind.element, depth - 1)
                if list(entries) in (["choose"], ["range"], ["divides"]):  # alone, these words are holes
                    entries["x"] = next(iter(entries.values()))
                return kind.make(entries, self.note())
            case Nullable():
                return None if self.chance(0.3) else self.plain(kind.kind, depth)
            case OneOf():
                return self.plain(self.random.choice(kind.kinds), depth)
        raise AssertionError(kind)

    def free(self, depth: int) -> Any:
        plain = self.random.choice([None, True, 3, -2.5, "true", "3", "text", "$ cash", self.text()])
        if depth <= 0 or self.chance(0.6):
            return plain
        return self.random.choice([(self.free(depth - 1),), Table({self.text(): self.free(depth - 1)})])

    def record(self, record: type[Record], depth: int = 4, odds: float = 0.5) -> Any:
        """A record without contradictions; some fields are left at their defaults."""
        given = {}
        for name, kind in kinds(record).items():
            if name == "version":
                continue
            if default(record, name) is dataclasses.MISSING or (name != "note" and self.chance(odds)):
                given[name] = self.value(kind, depth)
        made = blank(record, given | {"note": self.note()})
        if made.complaints():
            made = SAFE.get(record) or blank(
                record, given | {"tail": "auto"} | {n: ("a", "b") for n in ("loops", "axes", "order") if n in given}
            )
        made.__post_init__()
        return made


def blank(record: type[Record], given: dict[str, Any]) -> Any:
    """A record that nothing has checked yet."""
    made = object.__new__(record)
    for one in dataclasses.fields(record):
        object.__setattr__(made, one.name, given.get(one.name, default(record, one.name)))
    return made


def plan_of(seed: int, numbers_only: bool = False) -> ExecutionPlan:
    """The random plan of a seed; `numbers_only` uses named holes for numbers alone."""
    made = Maker(seed, numbers_only).record(ExecutionPlan, depth=7, odds=0.4)
    assert isinstance(made, ExecutionPlan)
    return made


def directive_of(key: str, seed: int) -> Directive:
    """A random directive."""
    made = Maker(seed).record(DIRECTIVES[key], depth=4)
    assert isinstance(made, Directive)
    return made
