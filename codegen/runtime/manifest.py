"""The manifest as values: what `manifest.json` says about methods, buffers and steps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from .complexes import NAMES
from .errors import artifact_error, artifact_problem
from .extents import Extent, names, shape_of, text
from .tensors import ALIGNMENT, numpy_dtype

FORMAT = 2
_READABLE = (1, 2)  # the first had no methods that change state
SEAL = "seal"
"""The key of a manifest under which the digest of all else in it stands."""


@dataclass(frozen=True)
class TensorSpec:
    """A named tensor: an input or a parameter. `given` is the type of the algorithm, where a plan stores a parameter in another.
    `lengths` is the input that says how long each row of a ragged one is. One that `counts` is given as the number of its first extent, and
    has no elements. `complex`: the last axis has the parts of complex numbers."""

    name: str
    dtype: str
    shape: tuple[Extent, ...]
    buffer: int = -1
    given: str = ""
    lengths: str = ""
    counts: bool = False
    complex: bool = False

    def text(self) -> str:
        """`float32[h, w]`, `float32[n, t*, 32]` of a ragged one, `complex64[n]` of complex numbers, `extent` of one that is a number."""
        if self.counts:
            return "extent"
        stars = ["*" if self.lengths and axis == 1 else "" for axis in range(len(self.shape))]
        sizes = [text(n) + star for n, star in zip(self.shape, stars, strict=True)]
        return f"{NAMES.get(self.dtype, self.dtype)}[{', '.join(sizes[:-1])}]" if self.complex else f"{self.dtype}[{', '.join(sizes)}]"

    def seen(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an array as its owner sees it, who does not see the parts of complex numbers."""
        return shape[:-1] if self.complex else shape

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        return numpy_dtype(self.dtype)


@dataclass(frozen=True)
class Buffer:
    """Memory that steps work on. Kernels rely on `alignment` (bytes) of its first element."""

    kind: str
    name: str
    dtype: str
    shape: tuple[Extent, ...]
    alignment: int = ALIGNMENT

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        return numpy_dtype(self.dtype)


@dataclass(frozen=True)
class Count:
    """An extent that is computed, and what it is at most."""

    symbol: str
    most: int


@dataclass(frozen=True)
class Step:
    """One kernel call: buffers by number, then extents. `workspace`: bytes that the kernel takes for itself, once and on each thread.
    `unbounded`: only its numbers say how long it runs.

    With `count` no kernel is called: the one buffer holds that extent.
    """

    kernel: str
    arguments: tuple[int, ...]
    symbols: tuple[Extent, ...] = ()
    workspace: tuple[Extent, Extent] = (0, 0)
    unbounded: bool = False
    count: Count | None = None


@dataclass(frozen=True)
class Variant:
    """One body of a method, for the calls whose extents equal `when`."""

    when: Mapping[str, int]
    buffers: tuple[Buffer, ...]
    setup: tuple[Step, ...]
    steps: tuple[Step, ...]
    copies: tuple[tuple[int, int], ...] = ()  # (new value, state) that is copied when all steps are done

    def fits(self, symbols: Mapping[str, int]) -> bool:
        return all(symbols.get(name) == extent for name, extent in self.when.items())


@dataclass(frozen=True)
class Symbol:
    """The extents that a symbol may take."""

    name: str
    min: int = 0
    max: int | None = None
    multiple: int = 1

    def refusal(self, value: int) -> str | None:
        if value < self.min or (self.max is not None and value > self.max):
            return f"it may be {self.min}{'..' + str(self.max) if self.max is not None else ' or more'}"
        return f"it must be a multiple of {self.multiple}" if value % self.multiple else None


@dataclass(frozen=True)
class Requirement:
    """No extent of `within` is negative; and where none of them is 0, none of `filled` is 0 either."""

    code: str
    what: str
    within: tuple[Extent, ...]
    filled: tuple[Extent, ...]

    @property
    def symbols(self) -> set[str]:
        return {name for e in (*self.within, *self.filled) for name in names(e)}

    def refusal(self, symbols: Mapping[str, int]) -> str | None:
        domain = shape_of(self.within, symbols)
        if any(n < 0 for n in domain):
            return None if self.filled else f"{self.what} would have {min(domain)} elements"  # which is asked apart
        return self.what if self.filled and all(domain) and not all(shape_of(self.filled, symbols)) else None


@dataclass(frozen=True)
class MethodSpec:
    """Signature and bodies of one method. `result` is the manifest's nest of buffers."""

    name: str
    doc: str
    inputs: tuple[TensorSpec, ...]
    symbols: Mapping[str, Symbol]
    variants: tuple[Variant, ...]
    result: Mapping[str, Any]
    requires: tuple[Requirement, ...] = ()
    updates: tuple[str, ...] = ()  # the parameters and state that it changes
    batch: str | None = None  # the symbol of the batch, whose axis may be left out
    reader: str | None = None  # what its inputs are read from, in the algorithm

    @cached_property
    def arguments(self) -> tuple[TensorSpec, ...]:
        """What a call is given: the inputs, without the lengths of ragged ones."""
        lengths = {i.lengths for i in self.inputs if i.lengths}
        return tuple(i for i in self.inputs if i.name not in lengths)

    def text(self, name: str | None = None) -> str:
        """`blur(image: float32[h, w]) -> float32[h, w]`"""
        return f"{name or self.name}({', '.join(f'{i.name}: {i.text()}' for i in self.arguments)}) -> {self.result_text()}"

    def result_text(self) -> str:
        buffers = self.variants[-1].buffers
        return result_text(self.result, [TensorSpec(b.name, b.dtype, b.shape) for b in buffers])


@dataclass(frozen=True)
class Manifest:
    """All of it; `raw` is the JSON value."""

    name: str
    raw: Mapping[str, Any]
    parameters: tuple[TensorSpec, ...]
    methods: Mapping[str, MethodSpec]

    @property
    def limit(self) -> int | None:
        """The bytes that a call may take, beside its inputs, by the plan."""
        found: int | None = self.raw.get("memory", {}).get("limit")
        return found

    @property
    def program(self) -> str:
        """The name of the algorithm, whatever the built model is called."""
        return str(self.raw.get("program", {}).get("name", self.name))

    @property
    def function(self) -> str | None:
        """The method's name where the model is one function: it can be called as `run` too."""
        program = self.raw.get("program", {}).get("name")
        return next((name for name in self.methods if len(self.methods) == 1 and name in (self.name, program)), None)


def leaves(result: Mapping[str, Any]) -> Iterator[int]:
    """The buffers of a result, in its order."""
    match result:
        case {"buffer": int(buffer)}:
            yield buffer
        case {"dict": items}:
            for _, part in items:
                yield from leaves(part)
        case {"tuple": parts} | {"list": parts}:
            for part in parts:
                yield from leaves(part)
        case {"none": True}:
            return


def complex_leaves(result: Mapping[str, Any]) -> Iterator[bool]:
    """Of each array of a result, in its order, whether it is one of complex numbers."""
    match result:
        case {"buffer": int()}:
            yield is_complex(result)
        case {"dict": items}:
            for _, part in items:
                yield from complex_leaves(part)
        case {"tuple": parts} | {"list": parts}:
            for part in parts:
                yield from complex_leaves(part)


def is_complex(leaf: Mapping[str, Any]) -> bool:
    """Whether an array of a result is one of complex numbers."""
    return bool(leaf.get("complex"))


def result_text(result: Mapping[str, Any], tensors: list[TensorSpec]) -> str:
    match result:
        case {"buffer": int(buffer)}:
            return replace(tensors[buffer], complex=is_complex(result)).text()
        case {"dict": items}:
            return "{" + ", ".join(f'"{key}": {result_text(part, tensors)}' for key, part in items) + "}"
        case {"list": parts}:
            return f"[{', '.join(result_text(p, tensors) for p in parts)}]"
        case {"tuple": parts}:
            return f"({', '.join(result_text(p, tensors) for p in parts)}{',' if len(parts) == 1 else ''})"
        case {"none": True}:
            return "None"
    raise ValueError(f"no result: {result!r}")


def digest(raw: Mapping[str, Any]) -> str:
    """Of all that a manifest says, its own seal apart."""
    text = json.dumps({k: v for k, v in raw.items() if k != SEAL}, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def parse(raw: Mapping[str, Any]) -> Manifest:
    """Read a manifest. Raises ArtifactError if it is of another format or not one at all."""
    try:
        found = raw["format"]
        if found in _READABLE:
            return Manifest(
                name=raw["name"],
                raw=raw,
                parameters=tuple(_tensor(p) for p in raw.get("parameters", ())),
                methods={name: _method(name, m) for name, m in raw["methods"].items()},
            )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise artifact_error(
            artifact_problem("R002", f"manifest.json is not one that fluorite writes ({type(error).__name__}: {error})")
        ) from None
    raise artifact_error(
        artifact_problem(
            "R003", f"manifest.json has format {found}, this runtime reads format {FORMAT}", "build it again with this fluorite"
        )
    )


def _method(name: str, raw: Mapping[str, Any]) -> MethodSpec:
    spec = MethodSpec(
        name=name,
        doc=raw.get("doc", ""),
        inputs=tuple(_tensor(i) for i in raw["inputs"]),
        symbols={s: Symbol(s, r.get("min", 0), r.get("max"), r.get("multiple", 1)) for s, r in raw.get("symbols", {}).items()},
        variants=tuple(_variant(v) for v in raw["variants"]),
        result=raw["result"],
        requires=tuple(Requirement(r["code"], r["what"], tuple(r["within"]), tuple(r["filled"])) for r in raw.get("requires", ())),
        updates=tuple(raw.get("updates", ())),
        batch=raw.get("batch"),
        reader=raw.get("reader"),
    )
    spec.text()  # every buffer that it names must be there
    return spec


def _variant(raw: Mapping[str, Any]) -> Variant:
    buffers = tuple(Buffer(b["kind"], b["name"], b["dtype"], tuple(b["shape"]), b.get("alignment", ALIGNMENT)) for b in raw["buffers"])
    for buffer in buffers:
        numpy_dtype(buffer.dtype)
    setup, steps = ([_step(s) for s in raw.get(part, ())] for part in ("setup", "steps"))
    copies = tuple((new, held) for new, held in raw.get("copies", ()))
    named = [*(b for step in (*setup, *steps) for b in step.arguments), *(b for pair in copies for b in pair)]
    if not all(0 <= b < len(buffers) for b in named):
        raise IndexError("a step names a buffer that is not there")
    if not all(buffers[held].kind == "parameter" and buffers[new].kind == "temporary" for new, held in copies):
        raise ValueError("a copy is of a temporary to a parameter")
    return Variant(dict(raw.get("when", {})), buffers, tuple(setup), tuple(steps), copies)


def _step(raw: Mapping[str, Any]) -> Step:
    once, each = raw.get("workspace", (0, 0))
    count = Count(*raw["count"]) if "count" in raw else None
    return Step(raw["kernel"], tuple(raw["arguments"]), tuple(raw.get("symbols", ())), (once, each), raw.get("unbounded", False), count)


def _tensor(raw: Mapping[str, Any]) -> TensorSpec:
    numpy_dtype(raw["dtype"])
    marks = raw.get("buffer", -1), raw.get("given", ""), raw.get("lengths", ""), raw.get("counts", False), raw.get("complex", False)
    return TensorSpec(raw["name"], raw["dtype"], tuple(raw["shape"]), *marks)
