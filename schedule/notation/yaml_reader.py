"""YAML text to a tree: the YAML 1.2 core subset that a plan may use, every refusal with its place.

Read from parser events rather than composed nodes, so that depth is bounded before anything recurses.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml
from fluorite.algo.errors import PlanError, Problem

from .places import Place
from .tree import Items, Keys, Leaf, Tree

MAX_BYTES = 1 << 20
MAX_DEPTH = 64
_TRAP = re.compile(r"\*[^\s,\[\]{}]*(?:\s*/[^\s,\[\]{}]*)?")


@dataclass
class _Open:
    """A list or mapping whose end has not been seen."""

    place: Place
    mapping: bool
    values: list[Tree] = field(default_factory=list)
    entries: list[tuple[Leaf, Tree]] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    key: Leaf | None = None
    dropped: bool = False


def read_tree(text: str | bytes, file: str = "plan.yaml") -> tuple[Tree | None, list[Problem]]:
    """The tree of one YAML document (None if it is empty), and the problems that do not keep it from being read.

    Raises PlanError P001 (not YAML), P003 (a key that is a list or mapping), P004 (tags, anchors, several documents), P005 (too large,
    too deep, not UTF-8).
    """
    decoded = _decode(text, file)
    try:
        return _Builder(decoded, file).build()
    except yaml.MarkedYAMLError as error:
        raise PlanError(_syntax(error, decoded, file)) from None
    except yaml.YAMLError as error:
        raise PlanError(_unreadable(error, decoded, file)) from None


def nearest(word: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The known names that `word` was probably meant to be."""
    close = difflib.get_close_matches(word, list(dict.fromkeys(known)), most, 0.55)
    scores = [difflib.SequenceMatcher(None, word, name).ratio() for name in close]
    return tuple(name for name, score in zip(close, scores, strict=True) if score > max(scores) - 0.12)


def _decode(text: str | bytes, file: str) -> str:
    place = Place(file, 1, 1)
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        raise PlanError(place.problem("P005", f"the plan is {size:,} bytes long", f"a plan may have {MAX_BYTES:,} bytes (1 MiB)"))
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - (text.rfind(b"\n", 0, error.start) + 1) + 1
        bad = Place(file, line, column).problem("P005", f"byte 0x{text[error.start]:02x} is not UTF-8 text", "a plan is a UTF-8 text file")
        raise PlanError(bad) from None


class _Builder:
    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file
        self.problems: list[Problem] = []
        self.stack: list[_Open] = []
        self.root: Tree | None = None
        self.documents = 0

    def build(self) -> tuple[Tree | None, list[Problem]]:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for event in yaml.parse(self.text, Loader=loader):
            self.take(event)
        return self.root, self.problems

    def place(self, event: Any) -> Place:
        return Place(self.file, event.start_mark.line + 1, event.start_mark.column + 1)

    def take(self, event: Any) -> None:
        place = self.place(event)
        match event:
            case yaml.DocumentStartEvent():
                self.documents += 1
                if self.documents > 1:
                    raise PlanError(place.problem("P004", "a second document starts here", "a plan is one YAML document"))
            case yaml.AliasEvent():
                raise PlanError(_alias(place, f"*{event.anchor}"))
            case yaml.ScalarEvent():
                self.plainly(event, place)
                self.add(Leaf(event.value, event.style in (None, ""), place))
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self.plainly(event, place)
                if len(self.stack) >= MAX_DEPTH:
                    raise PlanError(_too_deep(place))
                top = self.stack[-1] if self.stack else None
                if top and top.mapping and top.key is None:
                    raise PlanError(
                        place.problem("P003", "a list or mapping stands where a key should be", "keys are words: write  key: value")
                    )
                self.stack.append(_Open(place, isinstance(event, yaml.MappingStartEvent)))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                closed = self.stack.pop()
                tree: Tree = Keys(tuple(closed.entries), closed.place) if closed.mapping else Items(tuple(closed.values), closed.place)
                self.add(tree)
            case _:
                pass

    def plainly(self, event: Any, place: Place) -> None:
        if event.anchor:
            asked = f'"&{event.anchor}" names a YAML anchor'
            raise PlanError(
                place.problem("P004", asked, "anchors and aliases are not part of a plan", ("quote the text if it starts with &",))
            )
        if event.tag and event.tag != "!":
            asked = f"{event.tag!r} is a YAML tag"
            raise PlanError(
                place.problem("P004", asked, "the field gives a value its type, so tags are not part of a plan", ("remove the tag",))
            )

    def add(self, tree: Tree) -> None:
        if not self.stack:
            self.root = tree
            return
        top = self.stack[-1]
        if not top.mapping:
            top.values.append(tree)
        elif top.key is None:
            assert isinstance(tree, Leaf)
            top.key, top.dropped = tree, tree.text in top.seen
            if top.dropped:
                asked = f'key "{tree.text}" is given twice (first at line {top.seen[tree.text]}); YAML would silently keep the last'
                self.problems.append(tree.place.problem("P002", asked, "", ("keep one of them",)))
            top.seen.setdefault(tree.text, tree.place.line)
        else:
            if not top.dropped:
                top.entries.append((top.key, tree))
            top.key = None


def _too_deep(place: Place) -> Problem:
    return place.problem("P005", "lists and mappings are nested too deeply here", f"a plan may nest {MAX_DEPTH} deep")


def _alias(place: Place, text: str) -> Problem:
    pattern = text.strip("*/ ")
    remedy = f'a selector matches at any depth by itself: write  {pattern}   (or quote it: "{text}")'
    if not pattern:
        remedy = f'quote it: "{text}"'
    return place.problem("P001", '"*" starts a YAML alias here, so the file cannot be read', "", (remedy,))


def _syntax(error: yaml.MarkedYAMLError, text: str, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return Place(file, 1, 1).problem("P001", f"not YAML: {error.problem or error.context}")
    lines = text.splitlines()
    context = error.context_mark
    if context is not None and "alias" in (error.context or ""):
        line = lines[context.line] if context.line < len(lines) else ""
        trap = _TRAP.match(line, context.column)
        return _alias(Place(file, context.line + 1, context.column + 1), trap.group(0) if trap else "*")
    if "nesting depth" in (error.problem or ""):
        return _too_deep(Place(file, mark.line + 1, mark.column + 1))
    why = f"{error.context}, {error.problem}" if error.context and error.problem else str(error.problem or error.context)
    tries: tuple[str, ...] = ()
    if mark.line < len(lines) and "\t" in lines[mark.line][: mark.column + 1]:
        tries = ("indent with spaces: YAML allows no tabs there",)
    return Place(file, mark.line + 1, mark.column + 1).problem("P001", "this is not YAML, so the file cannot be read", why, tries)


def _unreadable(error: yaml.YAMLError, text: str, file: str) -> Problem:
    position = getattr(error, "position", None)
    character = getattr(error, "character", None)
    if not isinstance(position, int):
        return Place(file, 1, 1).problem("P001", f"not YAML: {error}")
    bad = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    at = bad.start() if bad else min(position, len(text))
    shown = ord(text[at]) if at < len(text) else character
    place = Place(file, text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1)
    return place.problem("P005", f"character U+{shown or 0:04X} may not stand in a plan", "YAML allows printable text only")
