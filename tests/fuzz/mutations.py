"""Plans with random mistakes: each is accepted and means the same, or is refused with a code, a place and a reason."""

from __future__ import annotations

import copy
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import yaml
from fluorite.algo.errors import FluoriteError
from fluorite.codegen import driver

from .cheaply import cheaply
from .mistakes import SCALARS, SECTIONS, STEPS, STRANGE
from .run import Failure, agrees, built, refusal, sentences
from .subjects import subject

Nodes = list[tuple[yaml.CollectionNode, int]]
"""Where something stands: the mapping or list, and which of its pairs or elements."""
_DEEPEST = 40


def mutation(seed: int, verbose: bool = False) -> str:
    """ "accepted", "legal" (of what takes long to compile) or the code of the refusal. Raises Failure."""
    rng = random.Random(seed)
    found = subject(rng)
    data = mutated(rng, found.text)
    if verbose:
        print(found.graph.name, data.decode("utf-8", "replace"))
    with tempfile.TemporaryDirectory(prefix="fluorite-fuzz-") as folder:
        path = Path(folder) / "plan.yaml"
        path.write_bytes(data)
        try:
            plan = driver.as_plan(path, found.graph)
            with cheaply(seed):
                compiled = built(found.graph, plan, compile_it=found.quick)
        except FluoriteError as error:
            if verbose:
                print(error)
            sentences(error, str(path))
            return refusal(error)
        except Failure:
            raise
        except Exception as error:
            raise Failure(f"{type(error).__name__}: {str(error)[:300]}") from error
    if compiled is None:
        return "legal"
    agrees(found.graph, compiled, [found.symbols], seed)
    return "accepted"


def mutated(rng: random.Random, text: str) -> bytes:
    """One to three mistakes, in the structure or in the letters."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        text = structure(rng, text) if rng.random() < 0.75 else rng.choice(LETTERS)(rng, text)
    data = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.02:
        n = rng.randrange(len(data) + 1)
        data = data[:n] + bytes([rng.choice([0, 0x80, 0xC3, 0xFF, 0x1B])]) + data[n:]
    return data


# ---------------------------------------------------------------- letters
def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _letter(rng: random.Random, text: str) -> str:
    n = rng.randrange(len(text) + 1)
    other = rng.choice(list("abxyz019:{}[],-'\"#&*!|>%@`~$ \t\n") + STRANGE)
    return text[:n] + rng.choice(["", other]) + text[n + rng.randrange(2) :]


def _lines(rng: random.Random, text: str) -> str:
    lines = text.splitlines()
    n, k = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(6):
        case 0:
            del lines[n]
        case 1:
            lines.insert(k, lines[n])
        case 2:
            lines[n], lines[k] = lines[k], lines[n]
        case 3:
            lines[n] = " " * rng.randrange(6) + lines[n].lstrip()
        case 4:
            lines[n] = rng.choice(["\t", "- ", "  ", "? ", "# ", "--- ", "!!int "]) + lines[n]
        case _:
            lines.insert(n, rng.choice([*SECTIONS, "...", "---", "%YAML 1.1", ": :", "- -", "&a [*a]"]))
    return "\n".join(lines) + "\n"


LETTERS: list[Callable[[random.Random, str], str]] = [_cut, _letter, _letter, _lines, _lines]


# ---------------------------------------------------------------- structure
def structure(rng: random.Random, text: str) -> str:
    """A change of the tree that the text stands for; of the letters where it stands for none."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if not isinstance(root, yaml.CollectionNode):
            return _letter(rng, text)
        _changed(rng, root)
        return str(yaml.serialize(root, Dumper=yaml.SafeDumper, allow_unicode=True, width=140))
    except (yaml.YAMLError, RecursionError, AttributeError):  # an alias may hold itself
        return _letter(rng, text)


def _changed(rng: random.Random, root: yaml.CollectionNode) -> None:
    places = list(_places(root, 0))
    if not places:
        root.value.append(_read(rng.choice(SECTIONS)).value[0] if isinstance(root, yaml.MappingNode) else _scalar(rng))
        return
    holder, n = rng.choice(places)
    pairs = isinstance(holder, yaml.MappingNode)
    entry = holder.value[n]
    key, value = entry if pairs else (None, entry)
    other = rng.choice(places)
    match rng.randrange(11):
        case 0:
            del holder.value[n]
        case 1:
            holder.value.insert(rng.randrange(len(holder.value) + 1), copy.deepcopy(entry))
        case 2 if key is not None:
            holder.value[n] = (_typo(rng, key), value)
        case 3:
            holder.value[n] = (key, _scalar(rng)) if pairs else _scalar(rng)
        case 4:
            taken = other[0].value[other[1]]
            taken = taken[1] if isinstance(taken, tuple) else taken
            taken = copy.deepcopy(taken)
            holder.value[n] = (key, taken) if pairs else taken
        case 5:
            made = yaml.SequenceNode("tag:yaml.org,2002:seq", [value], flow_style=True)
            holder.value[n] = (key, made) if pairs else made
        case 6:
            inner = yaml.MappingNode("tag:yaml.org,2002:map", [(_scalar(rng), value)], flow_style=True)
            holder.value[n] = (key, inner) if pairs else inner
        case 7 if isinstance(value, yaml.CollectionNode) and value.value:
            first = value.value[0]
            holder.value[n] = (key, first[1] if isinstance(first, tuple) else first) if pairs else first
        case 8:
            step = _read(rng.choice(STEPS))
            lists = [h for h, _ in places if isinstance(h, yaml.SequenceNode)]
            chosen = rng.choice(lists) if lists else None
            if chosen is not None:
                chosen.value.insert(rng.randrange(len(chosen.value) + 1), step)
        case 9 if isinstance(root, yaml.MappingNode):
            root.value += _read(rng.choice(SECTIONS)).value
        case _:
            scalars = [(h, k) for h, k in places if isinstance(_value(h, k), yaml.ScalarNode)]
            if scalars:
                h, k = rng.choice(scalars)
                made = _typo(rng, _value(h, k)) if rng.random() < 0.4 else _scalar(rng)
                h.value[k] = (h.value[k][0], made) if isinstance(h, yaml.MappingNode) else made


def _places(node: yaml.Node, depth: int) -> Nodes:
    if not isinstance(node, yaml.CollectionNode) or depth > _DEEPEST:
        return []
    found: Nodes = []
    for n in range(len(node.value)):
        found.append((node, n))
        found += _places(_value(node, n), depth + 1)
    return found


def _value(holder: yaml.CollectionNode, n: int) -> yaml.Node:
    entry = holder.value[n]
    return entry[1] if isinstance(entry, tuple) else entry  # type: ignore[no-any-return]


def _read(text: str) -> yaml.Node:
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _scalar(rng: random.Random) -> yaml.Node:
    return _read(rng.choice(SCALARS))


def _typo(rng: random.Random, node: yaml.Node) -> yaml.ScalarNode:
    text = str(node.value) if isinstance(node, yaml.ScalarNode) else "x"
    letters = list(text) or ["x"]
    n = rng.randrange(len(letters))
    match rng.randrange(4):
        case 0:
            del letters[n]
        case 1:
            letters.insert(n, rng.choice([*"abcxyz_-./* 0123", *STRANGE]))
        case 2:
            letters[n] = rng.choice(list("abcxyz_"))
        case _:
            letters[n : n + 2] = reversed(letters[n : n + 2])
    return yaml.ScalarNode("tag:yaml.org,2002:str", "".join(letters))
