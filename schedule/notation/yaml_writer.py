"""A tree to YAML text that a person would write: small things on one line, larger ones indented."""

from __future__ import annotations

import json
import re

from .places import Place
from .tree import Items, Keys, Leaf, Ready, Tree, core_value

WIDTH = 110
OPENED = ("schedule", "variants", "holes")
_SAFE = re.compile(r"[A-Za-z0-9_/.$][A-Za-z0-9_/.$<>=*+@-]*(:[A-Za-z0-9_/.$<>=*+@-]+)*")
_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def write_yaml(tree: Keys, origins: bool = False) -> str:
    """One YAML document. Mappings and lists are indented unless they fit on a line; directives stand one to a line.

    `origins` ends each line with a comment that says where its value was written: `# base.yaml:12`.
    """
    lines = _Lines(origins)
    for key, value in tree.entries:
        _entry(_scalar(key), value, 0, lines, key.text in OPENED and not _is_hole(value))
    return lines.text() if lines else "{}\n"


class _Lines(list[str]):
    """Lines of a document, with the places of their values."""

    def __init__(self, origins: bool) -> None:
        super().__init__()
        self.origins = origins
        self.places: dict[int, Place] = {}

    def add(self, line: str, value: Tree) -> None:
        self.places[len(self)] = value.place
        self.append(line)

    def text(self) -> str:
        if not self.origins:
            return "\n".join(self) + "\n"
        width = min(WIDTH, max(len(line) for line in self))
        comments = [f"  # {place.file}:{place.line}" if (place := self.places.get(i)) and place.line else "" for i in range(len(self))]
        return "\n".join(line.ljust(width) + comment if comment else line for line, comment in zip(self, comments, strict=True)) + "\n"


def flow(tree: Tree) -> str:
    """The tree on one line."""
    match tree:
        case Leaf():
            return _scalar(tree)
        case Items(values):
            return f"[{', '.join(flow(value) for value in values)}]"
        case Keys(entries):
            return f"{{{', '.join(f'{_scalar(key)}: {flow(value)}' for key, value in entries)}}}"
        case Ready(value):
            raise TypeError(f"{value!r} is not written out")


def _entry(prefix: str, value: Tree, indent: int, lines: _Lines, open_up: bool = False) -> None:
    """One `key: value`, or one list element whose prefix is a dash."""
    if prefix == "-" and isinstance(value, Keys) and len(value.entries) == 1:
        key, value = value.entries[0]
        return _entry(f"- {_scalar(key)}", value, indent, lines)
    pad, colon = " " * indent, "" if prefix == "-" else ":"
    line = f"{pad}{prefix}{colon} {flow(value)}"
    inside = value.values if isinstance(value, Items) else value.entries if isinstance(value, Keys) else ()
    if len(inside) == 0 or (len(line) <= WIDTH and not open_up):
        lines.add(line, value)
        return
    start = len(lines)
    if prefix != "-":
        lines.append(f"{pad}{prefix}:")
    deeper = indent + (4 if prefix.startswith("- ") else 2)
    match value:
        case Items(values):
            for element in values:
                _entry("-", element, deeper, lines)
        case Keys(entries):
            for key, inner in entries:
                _entry(_scalar(key), inner, deeper, lines, open_up and isinstance(inner, Items) and len(inner.values) > 1)
    if prefix == "-":
        lines[start] = f"{pad}- {lines[start][indent + 2 :]}"


def _is_hole(tree: Tree) -> bool:
    return isinstance(tree, Keys) and tree.names[:1] == ("choose",)


def _scalar(leaf: Leaf) -> str:
    text = leaf.text
    if leaf.plain and not isinstance(core_value(leaf), str):
        return text or "~"
    if _SAFE.fullmatch(text) and isinstance(core_value(Leaf(text)), str) and not text.startswith(".."):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
