"""Random plans: every section, every directive, holes wherever a value may stand."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

from fluorite.schedule import (
    AUTO, DIRECTIVES, AtMost, Between, Buckets, Choose, Directive, Divides, ExecutionPlan, Fusion, Numerics, Pow2, Range, Ref, Runtime,
    ScheduleEntry, Split, Table, Target, Tune, Variant,
)  # fmt: skip
from fluorite.schedule import later_sections as later
from fluorite.schedule.directives.base import StepKind, StepsKind
from fluorite.schedule.notation.fields import Condition, Flag, Free, Integer, Kind, ListOf, Nullable, Number, OneOf, Size, TableOf, Text, Words
from fluorite.schedule.notation.records import Record, RecordKind, default, kinds

AWKWARD = ["y", "no", "on", "off", "true", "null", "~", "1e-3", "0x10", "12", "", "a b", "a: b", "- x", "#", "'", '"', "\\", "é", "\u2028", "\x85"]
AWKWARD += ["*", "**", "*/softmax", "&a", "!t", "a#b", "a:b", "{", "]", ",", "?", "|", ">", "%", "@", "`", "=", "<<", "...", "---", "\t", "\n", "😀"]
words = st.sampled_from(["x", "y_outer", "layers.*/up/matmul", "photo.py:photo", "kind=matmul", "tail", "sizes", "choose", "note_"])
texts = (words | st.sampled_from(AWKWARD) | st.text(max_size=6)).filter(lambda text: not text.startswith("$") and "\ud800" > max(text, default=" "))
texts = texts.filter(lambda text: all(c.isprintable() or c in "\n\t\x85\u2028" for c in text) and "\ufeff" not in text and "\ufffe" not in text)
names = texts.filter(lambda text: text not in ("", "note", "auto"))
notes = st.none() | texts
refs = st.sampled_from(["tx", "ty", "$tx * 2", "($tx + 1) // $ty"]).map(Ref)


def values(kind: Kind, depth: int = 2, hole: bool = True) -> st.SearchStrategy[Any]:
    """Values of a kind, holes among them where it is open."""
    plain = _plain(kind, depth)
    if not kind.open or not hole or depth < 0:
        return plain
    holes = refs | st.lists(values(kind, depth - 2, hole=depth > 1), min_size=1, max_size=3).map(lambda some: Choose(*some))
    if kind.scalar:
        holes |= st.builds(Range, st.integers(1, 4), st.integers(5, 9), st.integers(1, 3)) | st.just(Pow2(2, 64)) | names.map(Divides)
    if kind.auto is not None:
        holes |= st.just(AUTO)
    return st.integers(0, 5).flatmap(lambda n: holes if n == 0 else plain)


def _plain(kind: Kind, depth: int) -> st.SearchStrategy[Any]:
    match kind:
        case StepsKind():
            return st.lists(values(StepKind(), depth - 1), max_size=3).map(tuple)
        case StepKind():
            return st.sampled_from(sorted(DIRECTIVES)).flatmap(lambda key: records(DIRECTIVES[key], depth - 1))
        case RecordKind():
            return records(kind.record, depth - 1)
        case Text():
            return names if not kind.pattern else st.from_regex(kind.pattern, fullmatch=True)
        case Integer():
            return st.integers(kind.least if kind.least is not None else -(1 << 60), kind.most if kind.most is not None else 1 << 60)
        case Number():
            return st.floats(kind.least, allow_nan=False, allow_infinity=False)
        case Flag():
            return st.booleans()
        case Words():
            return st.sampled_from(kind.choices)
        case Size():
            return st.integers(0, 1 << 40) | st.sampled_from(["1KiB", "25MiB", "3GiB"])
        case Condition():
            return st.sampled_from(["$tx * $ty <= 1024", "$tx < 4KiB and not ($ty == 2 or $tx % 2 != 0)"])
        case Free():
            return st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names,
                lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(names, inner, max_size=3).map(Table),
                max_leaves=4,
            )
        case ListOf():
            return st.lists(values(kind.element, depth - 1), min_size=kind.least, max_size=kind.least + 2).map(tuple)
        case TableOf():
            entries = st.dictionaries(names, values(kind.element, depth - 1), min_size=kind.least, max_size=kind.least + 2)
            return st.builds(kind.make, entries, notes)
        case Nullable():
            return st.none() | _plain(kind.kind, depth)
        case OneOf():
            return st.one_of([_plain(one, depth) for one in kind.kinds])
    raise AssertionError(kind)


def records(record: type[Record], depth: int = 2) -> st.SearchStrategy[Any]:
    """Records without contradictions; some fields are left at their defaults."""
    fields = {}
    for name, kind in kinds(record).items():
        required = default(record, name) is dataclasses.MISSING
        some = values(kind, depth) if name != "note" else notes
        fields[name] = some if required or depth > 2 else st.just(default(record, name)) | some
        if required and not isinstance(kind, Nullable):
            fields[name] = some
    return st.fixed_dictionaries(fields).map(lambda given: _without_contradiction(record, given))


def _without_contradiction(record: type[Record], given: dict[str, Any]) -> Any:
    made = object.__new__(record)
    for one in dataclasses.fields(record):
        object.__setattr__(made, one.name, given.get(one.name, default(record, one.name)))
    if not made.complaints():
        made.__post_init__()
        return made
    good: dict[type[Record], Record] = {
        Split: Split("x", 8), Target: Target("cuda", arch="sm_90"), Between: Between((1, 2)), Numerics: Numerics(allow="precision", fast_math=True),
        Variant: Variant({"n": 1}),
    }  # fmt: skip
    if record in good:
        return good[record]
    for name in ("loops", "axes", "order"):
        if name in given:
            object.__setattr__(made, name, tuple(f"a{i}" for i in range(min(3, max(2, len(given[name]))))))
    if "width" in given:
        object.__setattr__(made, "tail", "auto")
    made.__post_init__()
    return made


plans = records(ExecutionPlan, 4).map(lambda plan: plan.replace(version=1))
directives: st.SearchStrategy[Directive] = st.sampled_from(sorted(DIRECTIVES)).flatmap(lambda key: records(DIRECTIVES[key], 2))
__all__ = ["AtMost", "Buckets", "Fusion", "Runtime", "ScheduleEntry", "Tune", "directives", "later", "plans", "records", "values"]
