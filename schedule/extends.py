"""Plan files and presets, and how a plan takes over what its parents say."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TypeVar

from fluorite.algo.errors import PlanError, Problem

from .notation.places import Place
from .notation.tree import Items, Keys, Leaf, Ready, Tree
from .notation.yaml_reader import nearest
from .plan import ExecutionPlan

PRESET = "fluorite:"
_MOST = 64
_READ_WHOLE = 64 << 20
_HOLES = ({"choose"}, {"range"}, {"pow2"}, {"divides"})
P = TypeVar("P", bound=ExecutionPlan)


def presets() -> dict[str, str]:
    """The plans that ship, by name (`cpu` for `fluorite:cpu`), as YAML text."""
    folder = resources.files("fluorite").joinpath("schedules")
    found = {entry.name: entry for entry in folder.iterdir() if entry.name.endswith(".yaml")} if folder.is_dir() else {}
    return {name.removesuffix(".yaml"): found[name].read_text(encoding="utf-8") for name in sorted(found)}


def read_source(name: str, asked: Place) -> tuple[str, bytes]:
    """The display name and the bytes of a plan file or preset. Raises PlanError at the place that asked for it."""
    if name.startswith(PRESET):
        known = presets()
        text = known.get(name.removeprefix(PRESET))
        if text is None:
            tries = nearest(name, [PRESET + each for each in known]) or tuple(PRESET + each for each in known)
            raise PlanError(asked.problem("P010", f'there is no preset "{name}"', "", tries))
        return name, text.encode()
    try:
        facts = Path(name).stat()
        if not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)):
            raise ValueError("it is no ordinary file")
        if facts.st_size > _READ_WHOLE:
            raise ValueError(f"it has {facts.st_size:,} bytes")
        return name, Path(name).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        folder = Path(name).parent
        try:
            files = [str(folder / each.name) for each in folder.iterdir() if each.suffix in (".yaml", ".yml")]
        except (OSError, ValueError):
            files = []
        raise PlanError(asked.problem("P010", f'the plan "{name}" cannot be read', reason.lower(), nearest(name, files))) from None


def resolve(plan: P) -> P:
    """The plan with all its parents merged in: parents from left to right, then the plan. Raises PlanError."""
    if not plan.extends:
        if plan.removed:
            raise PlanError([_nothing_to_delete(plan.place_of(*path), path) for path in plan.removed])
        return plan
    line = _lineage(plan, str(plan.place.file), (), [])
    problems: list[Problem] = []
    merged: Tree = Keys(())
    for distance, (tree, file) in zip(range(len(line) - 1, -1, -1), line, strict=True):
        moved = _rebase(tree, file, plan.place.file)
        far = _placed(moved, lambda place, distance=distance: replace(place, nearness=distance))  # type: ignore[misc]
        merged = _merge(merged, far, (), problems)
    assert isinstance(merged, Keys)
    kept = Keys(tuple(entry for entry in merged.entries if entry[0].text != "extends"), plan.place)
    return type(plan).from_tree(kept, problems)


def _lineage(plan: ExecutionPlan, file: str, above: tuple[str, ...], line: list[tuple[Keys, str]]) -> list[tuple[Keys, str]]:
    """The plan and its ancestors, the farthest first, each with its file."""
    for index, parent in enumerate(plan.extends):
        asked = plan.place_of("extends", index)
        name = parent if parent.startswith(PRESET) else os.path.normpath(os.path.join(os.path.dirname(file), parent))
        chain = (*above, _identity(file))
        if _identity(name) in chain:
            why = " -> ".join([os.path.basename(each) for each in (*chain, name)])
            raise PlanError(asked.problem("P011", f'"{parent}" extends itself', why, ("take one of them out",)))
        if len(line) > _MOST:
            raise PlanError(asked.problem("P011", f"the plan has more than {_MOST} ancestors"))
        _, data = read_source(name, asked)
        _lineage(ExecutionPlan.from_yaml(data, name), name, chain, line)
    line.append((plan.merging_tree(), file))
    return line


def _identity(name: str) -> str:
    return name if name.startswith(PRESET) else os.path.realpath(name)


def _merge(old: Tree, new: Tree, path: tuple[str, ...], problems: list[Problem]) -> Tree:
    if not (isinstance(old, Keys) and isinstance(new, Keys)) or _stands_alone(old, new, path):
        return new
    entries = {key.text: (key, value) for key, value in old.entries}
    for key, value in new.entries:
        here = (*path, key.text)
        if isinstance(value, Leaf) and value.is_null:
            if entries.pop(key.text, None) is None:
                problems.append(_nothing_to_delete(value.place, here))
        elif key.text in entries:
            entries[key.text] = (key, _merge(entries[key.text][1], value, here, problems))
        else:
            entries[key.text] = (key, value)
    return Keys(tuple(entries.values()), new.place)


def _stands_alone(old: Keys, new: Keys, path: tuple[str, ...]) -> bool:
    """Whether a mapping is one value rather than a collection: a hole, the bounds of an extent, a target of another kind."""
    if any(set(tree.names) - {"note", "name", "step"} in _HOLES for tree in (old, new)):
        return True
    kinds = [kind.text for tree in (old, new) if isinstance(kind := tree.get("kind"), Leaf)]
    return (len(path) == 2 and path[0] == "extents") or (len(kinds) == 2 and kinds[0] != kinds[1])


def _nothing_to_delete(place: Place, path: tuple[str, ...]) -> Problem:
    why = "null takes away what a parent in extends says, and no parent says it"
    return place.problem("P012", f"{'/'.join(path)} is null", why, ("remove the line",))


def _rebase(tree: Keys, file: str, onto: str) -> Keys:
    """The tree with paths that are relative to `file` made relative to `onto`."""
    source, target = os.path.dirname(file), os.path.dirname(onto)
    if file.startswith(PRESET) or os.path.abspath(source) == os.path.abspath(target):
        return tree

    def moved(text: str) -> str:
        name, colon, member = text.rpartition(":") if ":" in text[2:] else (text, "", "")
        is_file = name.endswith((".py", ".onnx", ".npz", ".npy")) or "/" in name or not colon
        if not is_file or os.path.isabs(name) or (colon and not name.endswith((".py", ".onnx"))):
            return text
        return Path(os.path.relpath(os.path.join(source or ".", name), target or ".")).as_posix() + colon + member

    def at(inner: Tree, path: tuple[str, ...]) -> Tree:
        match inner:
            case Leaf() if path in (("program",), ("tune", "inputs"), ("precision", "calibrate")) and not inner.is_null:
                return replace(inner, text=moved(inner.text))
            case Keys() if path in ((), ("tune",), ("precision",)):
                return replace(inner, entries=tuple((key, at(value, (*path, key.text))) for key, value in inner.entries))
        return inner

    result = at(tree, ())
    assert isinstance(result, Keys)
    return result


def _placed(tree: Tree, move: Callable[[Place], Place]) -> Tree:
    match tree:
        case Leaf() | Ready():
            return replace(tree, place=move(tree.place))
        case Items(values, place):
            return Items(tuple(_placed(value, move) for value in values), move(place))
        case Keys(entries, place):
            return Keys(tuple((replace(key, place=move(key.place)), _placed(value, move)) for key, value in entries), move(place))
