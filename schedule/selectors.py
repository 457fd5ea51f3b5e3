"""Selectors: what a plan calls stages, and which stages those are.

A selector is a path, or its end: `softmax`, `layers.*/up/matmul`, `/train_step/**`, `layers.<0-5>/gelu`, `kind=matmul`. It never enters
`grad/` or `update/` unless it says so, by name, by `**`, by an anchor, or by asking for facts alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from fluorite.algo.errors import PlanError, Problem

from .notation.places import NOWHERE, Place
from .notation.yaml_reader import nearest
from .pool import RESERVED, C, Candidate, Pool, pool_of

FACTS = ("kind", "role", "op", "dtype")
_MOST_DOUBLE_STARS = 4
_MOST_HINTS = 5
_MOST_IN_A_PART = 3
_WILD = re.compile(r"\*\*|\*|<[0-9]+-[0-9]+>")
_PART = re.compile(r"[^\s<>\[\]{}=]*(<[0-9]+-[0-9]+>[^\s<>\[\]{}=]*)*")
_NOT_RESERVED = rf"(?!(?:{'|'.join(RESERVED)})(?:/|$))"


@dataclass(frozen=True)
class Selector:
    """A parsed selector. `parts` are the path, without the anchor and the facts."""

    text: str
    anchored: bool
    parts: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]

    @property
    def is_wild(self) -> bool:
        """Whether it may match any number of stages in a method."""
        return bool(self.facts) or any(_WILD.search(part) for part in self.parts)

    @property
    def wildcards(self) -> tuple[str, ...]:
        """The wildcards of the path, in order: what binds together inside one entry."""
        return tuple(_WILD.findall("/".join(self.parts)))

    @property
    def specificity(self) -> tuple[int, ...]:
        """Compares greater for what wins: anchored > literal parts > range > * > key=value > **."""
        wild = [_WILD.findall(part) for part in self.parts]
        ranges = sum(any(one.startswith("<") for one in found) for found in wild)
        stars = sum("*" in found and not any(one.startswith("<") for one in found) for found in wild)
        doubles = sum(found == ["**"] for found in wild)
        return (self.anchored, sum(not found for found in wild), ranges, stars, len(self.facts), doubles)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The whole path, one group per wildcard."""
        pieces = [] if self.anchored or self.parts[:1] == ("**",) else [rf"(?:{_NOT_RESERVED}[^/]+/)*?"]
        for i, part in enumerate(self.parts):
            last = i == len(self.parts) - 1
            if part == "**":
                pieces.append("(.+)" if last else "((?:[^/]+/)*)")
                continue
            if "*" in part and part.strip("*") == "":
                pieces.append(_NOT_RESERVED)
            inner = "".join(
                "([^/]*)" if piece == "*" else "([0-9]+)" if piece.startswith("<") else re.escape(piece)
                for piece in re.split(r"(\*|<[0-9]+-[0-9]+>)", part)
            )
            pieces.append(inner if last else inner + "/")
        return re.compile("".join(pieces))

    def captures(self, path: str) -> tuple[str, ...] | None:
        """What the wildcards stand for in `path`, or None if the path does not match."""
        found = self.pattern.fullmatch(path)
        if not found:
            return None
        for wildcard, text in zip(self.wildcards, found.groups(), strict=True):
            if wildcard.startswith("<"):
                low, high = wildcard.strip("<>").split("-")
                if not int(low) <= int(text) <= int(high):
                    return None
        return tuple((text or "").strip("/") for text in found.groups())

    def match(self, candidate: Candidate) -> tuple[str, ...] | None:
        """What the wildcards stand for at this candidate, or None. With facts, the path is that of a scope around it."""
        if any(candidate.facts.get(key) != value for key, value in self.facts):
            return None
        if not self.facts:
            return self.captures(candidate.path)
        return () if not self.parts else self.inside(candidate.path)

    def inside(self, path: str) -> tuple[str, ...] | None:
        """What the wildcards stand for if the path lies below a scope that the selector names."""
        parts = path.split("/")
        for end in range(len(parts) - 1, 0, -1):
            found = self.captures("/".join(parts[:end]))
            if found is not None and not set(parts[end:]) & set(RESERVED):
                return found
        return None


@lru_cache(maxsize=1 << 16)
def _parsed(text: str) -> Selector | str:
    parts = text.strip().split("/")
    anchored = parts[0] == "" and len(parts) > 1
    if anchored:
        parts = parts[1:]
    facts: list[tuple[str, str]] = []
    while parts and "=" in parts[-1]:
        key, _, value = parts.pop().partition("=")
        if key not in FACTS or not value:
            return f"{key!r} is not known; a stage has {', '.join(FACTS)}, as in kind=matmul"
        facts.insert(0, (key, value))
    if any(not part for part in parts) or (not parts and not facts):
        return "it has an empty part"
    for part in parts:
        if part != "**" and ("**" in part or not _PART.fullmatch(part)):
            return f"{part!r} is no part of a path: names, *, ** alone and ranges such as layers.<0-5> are"
    if any(part.count("*") + part.count("<") > _MOST_IN_A_PART for part in parts):
        return f"one part of it has more than {_MOST_IN_A_PART} wildcards"
    if parts.count("**") > _MOST_DOUBLE_STARS:
        return f"it has more than {_MOST_DOUBLE_STARS} times **"
    return Selector(text, anchored, tuple(parts), tuple(facts))


def parse_selector(text: str, place: Place = NOWHERE) -> Selector:
    """The selector that `text` writes. Raises PlanError P106."""
    found = _parsed(text)
    if isinstance(found, str):
        raise PlanError(place.problem("P106", f'"{text}" is no selector', found))
    return found


def select(
    selector: str,
    candidates: Iterable[C] | Pool[C],
    place: Place = NOWHERE,
    program: str = "the program",
    scopes: bool = True,
    hints: bool = True,
) -> list[C]:
    """The candidates that a selector means, in their order; at least one.

    A stage of that name comes before a scope of that name; a scope means all below it, but as a key of `schedule:` (`scopes=False`) it is
    refused. Raises PlanError: P101 nothing matches (with the nearest names if `hints`), P102 several in one method without a wildcard,
    P104 a scope where stages are needed, P106 no selector.
    """
    parsed, pool = parse_selector(selector, place), pool_of(candidates)
    found = pool.matching(parsed)
    if found:
        crowded = {} if parsed.is_wild else {method: some for method, some in _by_method(found).items() if len(some) > 1}
        if crowded:
            raise PlanError(_too_many(parsed, found, place))
        return found
    below = pool.below(parsed)
    if below and scopes:
        return below
    if below:
        raise PlanError(_is_a_scope(parsed, below, place))
    raise PlanError(_nothing(parsed, pool, place, program) if hints else place.problem("P101", _matches_nothing(parsed, program)))


def bind(
    selectors: Sequence[str], candidates: Iterable[C] | Pool[C], place: Place = NOWHERE, program: str = "the program"
) -> list[list[C]]:
    """The groups of a fusion group or a fused parameter: one per method and binding of the wildcards, members in order.

    The k-th wildcard stands for the same text in every selector. Scopes mean all below them. Raises PlanError as `select`, and P105 where
    a binding lacks a member.
    """
    pool = pool_of(candidates)
    rows: list[list[tuple[str, tuple[str, ...], C]]] = []
    for text in selectors:
        parsed = parse_selector(text, place)
        chosen = select(text, pool, place, program)
        captured = ((one, parsed.match(one)) for one in chosen)
        rows.append([(one.method, (parsed.inside(one.path) or ()) if found is None else found, one) for one, found in captured])
    bindings = dict.fromkeys((method, found) for row in rows for method, found, _ in row)
    longest = [key for key in bindings if not any(_extends(other, key) for other in bindings)]
    groups: list[list[C]] = []
    problems: list[Problem] = []
    for method, binding in longest:
        members: list[C] = []
        for text, row in zip(selectors, rows, strict=True):
            some = [one for where, found, one in row if where == method and found == binding[: len(found)]]
            if not some:
                bound = f" with {', '.join(binding)} for its wildcards" if binding else ""
                asked = f'"{text}" matches nothing in {method or program}{bound}'
                why = "the other selectors of this entry match there, and an entry needs all of them"
                problems.append(place.problem("P105", asked, why))
            members += [one for one in some if all(one is not other for other in members)]
        groups.append(members)
    if problems:
        raise PlanError(problems)
    return groups


def bound(target: str, key: str, candidate: Candidate, place: Place = NOWHERE) -> str:
    """A selector in an entry, such as compute_at's stage: its wildcards become what those of the entry's key mean at `candidate`."""
    parsed, owner = parse_selector(target, place), parse_selector(key, place)
    found = owner.match(candidate) or ()
    if len(found) < len(parsed.wildcards):
        return target
    values = iter(found)
    text = "/".join(_WILD.sub(lambda _: next(values), part) for part in parsed.parts)
    return ("/" if parsed.anchored else "") + text + "".join(f"/{name}={value}" for name, value in parsed.facts)


def _extends(other: tuple[str, tuple[str, ...]], key: tuple[str, tuple[str, ...]]) -> bool:
    return other != key and other[0] == key[0] and len(other[1]) > len(key[1]) and other[1][: len(key[1])] == key[1]


def _by_method(found: Iterable[C]) -> dict[str, list[C]]:
    methods: dict[str, list[C]] = {}
    for one in found:
        methods.setdefault(one.method, []).append(one)
    return methods


def _matches_nothing(selector: Selector, program: str) -> str:
    return f'selector "{selector.text}" matches nothing in {program}'


def _nothing(selector: Selector, pool: Pool[C], place: Place, program: str) -> Problem:
    asked = _matches_nothing(selector, program)
    if selector.facts and not selector.parts:
        key = selector.facts[0][0]
        known = sorted({one.facts[key] for one in pool.all if key in one.facts})
        return place.problem("P101", asked, f"{key} is one of: {', '.join(known)}" if known else f"no stage has a {key}")
    names = pool.suffixes(len(selector.parts), selector.is_wild)
    text = "/".join(selector.parts)
    close = nearest(text, names)
    if not close:
        last = pool.suffixes(1, selector.is_wild)
        close = nearest(selector.parts[-1], last)
        names = names | last
    if not close:
        paths = [one.path for one in pool.all]
        return place.problem(
            "P101", asked, f"there are: {', '.join(paths[:8])}{', ...' if len(paths) > 8 else ''}" if paths else "it has no stages"
        )
    if not selector.is_wild:
        spelled = tuple(dict.fromkeys(text for name in close for text in pool.spelled(name)))[:_MOST_HINTS]
        return place.problem("P101", asked, "", spelled or close)
    return place.problem("P101", asked, "", (f"nearest: {', '.join(f'{name} ({_counted(names[name])})' for name in close)}",))


def _counted(counts: Mapping[str, int]) -> str:
    """`12 stages in train_step, 4 in predict`."""
    words = [f"{count} in {method}" if method else str(count) for method, count in counts.items()]
    first = next(iter(counts.values()))
    return ", ".join([words[0].replace(str(first), f"{first} stage{'s' if first > 1 else ''}", 1), *words[1:]])


def _too_many(selector: Selector, found: Sequence[Candidate], place: Place) -> Problem:
    method, some = max(_by_method(found).items(), key=lambda item: len(item[1]))
    asked = f'selector "{selector.text}" matches {len(some)} stages of {method or "the program"}; '
    asked += "without a wildcard it may match one per method"
    paths = [one.path for one in some]
    why = ", ".join(paths) if len(paths) <= 3 else f"{paths[0]} ... {paths[-1]}"
    source = getattr(some[0], "source", None)
    why += f"   ({source})" if isinstance(source, str) and source else ""
    tries = (f"for all of them write: {generalised(paths)}", f"for one of them write: {_shortest(paths[0], paths)}")
    return place.problem("P102", asked, why, tries)


def _is_a_scope(selector: Selector, below: Sequence[Candidate], place: Place) -> Problem:
    paths = [one.path for one in below]
    asked = f'"{selector.text}" is a module or operator of {len(paths)} stages; a key of schedule names stages'
    why = f"its stages: {', '.join(paths[:8])}{', ...' if len(paths) > 8 else ''}"
    return place.problem("P104", asked, why, tuple(_shortest(path, paths) for path in paths[:3]))


def generalised(paths: Sequence[str]) -> str:
    """The shortest selector with wildcards that these paths have in common."""
    split = [path.split("/") for path in paths]
    length = min(len(parts) for parts in split)
    columns = [[parts[-k] for parts in split] for k in range(1, length + 1)]
    result: list[str] = []
    for column in columns:
        if len(set(column)) == 1:
            result.insert(0, column[0])
            continue
        stems = {re.sub(r"\.[0-9]+$", "", name) for name in column}
        result.insert(0, f"{stems.pop()}.*" if len(stems) == 1 else "*")
        break
    else:
        result.insert(0, "**")
    if any(len(parts) != length for parts in split) and result[0] != "**":
        result.insert(0, "**")
    return "/".join(result)


def _shortest(path: str, others: Sequence[str]) -> str:
    """The shortest end of `path` that none of the others has."""
    parts = path.split("/")
    for length in range(1, len(parts) + 1):
        end = "/".join(parts[-length:])
        if sum(other == end or other.endswith("/" + end) for other in others) == 1:
            return end
    return "/" + path
