"""A tree to YAML text that a person would write: small things on one line, larger ones indented."""

from __future__ import annotations

import json
import re

from .tree import Items, Keys, Leaf, Ready, Tree, core_value

WIDTH = 110
OPENED = ("schedule", "variants", "holes")
_SAFE = re.compile(r"[A-Za-z0-9_/.$][A-Za-z0-9_/.$<>=*+@-]*(:[A-Za-z0-9_/.$<>=*+@-]+)*")
_ODD = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


def write_yaml(tree: Keys) -> str:
    """One YAML document. Top-level mappings and lists are indented unless they fit on a line; directives stand one to a line."""
    lines: list[str] = []
    for key, value in tree.entries:
        _entry(_scalar(key), value, 0, lines, key.text in OPENED and not _is_hole(value))
    return "\n".join(lines) + "\n" if lines else "{}\n"


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


def _entry(prefix: str, value: Tree, indent: int, lines: list[str], open_up: bool = False) -> None:
    """One `key: value`, or one list element whose prefix is a dash."""
    if prefix == "-" and isinstance(value, Keys) and len(value.entries) == 1:
        key, value = value.entries[0]
        return _entry(f"- {_scalar(key)}", value, indent, lines)
    pad, colon = " " * indent, "" if prefix == "-" else ":"
    line = f"{pad}{prefix}{colon} {flow(value)}"
    inside = value.values if isinstance(value, Items) else value.entries if isinstance(value, Keys) else ()
    if len(inside) == 0 or (len(line) <= WIDTH and not open_up):
        lines.append(line)
        return
    start = len(lines)
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
    else:
        lines.insert(start, f"{pad}{prefix}:")


def _is_hole(tree: Tree) -> bool:
    return isinstance(tree, Keys) and tree.names[:1] == ("choose",)


def _scalar(leaf: Leaf) -> str:
    if leaf.plain:
        return leaf.text or "~"
    text = leaf.text
    if _SAFE.fullmatch(text) and isinstance(core_value(Leaf(text)), str) and not text.startswith(".."):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)
