"""Sections that are part of the language but not built yet: read, written and documented, and refused by `check`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from .graph_sections import LIMIT, SELECTORS
from .notation.fields import Flag, Integer, Kind, ListOf, OneOf, Size, TableOf, Text, Words
from .notation.records import Record, RecordKind
from .notation.tables import Table
from .sections import Target

_AUTO_FLAG = OneOf(kinds=(Flag(), Words(("auto",))))
_NAMES_OR_NAME = OneOf(kinds=(ListOf(Text()), Text()))
MESH: Kind = TableOf(OneOf(kinds=(Integer(least=1), ListOf(Text(), least=1))))


@dataclass(frozen=True)
class Role(Record):
    """One of several programs of a job: the mesh of its ranks, the device of each, and an expert's own program."""

    mesh: Annotated[Mapping[str, Any], MESH] = Table()
    device: str | None = None
    program: str | None = None


@dataclass(frozen=True)
class ParameterFuse(Record):
    """Several parameters in one buffer called `into`; the old names are views of it."""

    noun: ClassVar[str] = "an entry of fuse"
    into: str
    of: Annotated[tuple[str, ...], ListOf(Text(form="a selector"), least=1)]
    layout: Annotated[Any, OneOf(kinds=(Words(("concat", "flat")), TableOf(OneOf(kinds=(Integer(least=1), ListOf(Integer(least=1)))))))] = (
        "concat"
    )
    axis: str | None = None


@dataclass(frozen=True)
class Parameters(Record):
    """How parameters lie in memory."""

    fuse: tuple[ParameterFuse, ...] = ()
    flat_optimizer: Annotated[Any, _AUTO_FLAG] = "auto"
    layout: Annotated[Mapping[str, Any], TableOf(OneOf(kinds=(ListOf(Text()), Words(("auto",)))))] = Table()


@dataclass(frozen=True)
class Shard(Record):
    """Cut dimensions of a tensor over mesh axes."""

    noun: ClassVar[str] = "an entry of shard"
    tensor: str
    dims: Annotated[Mapping[str, Any], TableOf(_NAMES_OR_NAME, least=1)]


@dataclass(frozen=True)
class DataParallel(Record):
    """Shard the batch axis of every input over mesh axes."""

    noun: ClassVar[str] = "data_parallel"
    over: Annotated[Any, _NAMES_OR_NAME]
    zero: Annotated[int, Integer(least=0, most=3)] = 0
    wrap: Annotated[tuple[str, ...], SELECTORS] = ()
    bucket: Annotated[int | str, Size()] = "25MiB"
    overlap: Annotated[Any, _AUTO_FLAG] = "auto"
    accumulate: Annotated[int, Integer(least=1)] = 1
    prefetch: Annotated[int, Integer(least=0)] = 1
    statistics: Literal["global", "local"] = "global"


@dataclass(frozen=True)
class Pipeline(Record):
    """Cut the layers over a mesh axis and stream micro-batches through them."""

    over: str
    cut_before: Annotated[Any, OneOf(kinds=(SELECTORS, Words(("auto",))))] = "auto"
    microbatches: Annotated[int, Integer(least=1)] = 1
    order: Literal["gpipe", "1f1b", "interleaved"] = "1f1b"
    virtual: Annotated[int, Integer(least=1)] = 1


@dataclass(frozen=True)
class ParameterServer(Record):
    """Keep parameters on server ranks that update them for the trainers."""

    noun: ClassVar[str] = "parameter_server"
    role: str
    of: Annotated[tuple[str, ...], SELECTORS] = ("**",)
    split: Annotated[Mapping[str, Any], TableOf(OneOf(kinds=(Integer(least=1), Words(("round_robin", "hash")))))] = Table()
    mode: Literal["sync", "async"] = "sync"
    staleness: Annotated[Any, OneOf(kinds=(Integer(least=0), Words(("none",))))] = "none"
    elastic: bool = False
    snapshot: Annotated[Mapping[str, str] | None, TableOf(Text())] = None


@dataclass(frozen=True)
class Parallelism(Record):
    """How many devices share the work."""

    shard: tuple[Shard, ...] = ()
    data_parallel: DataParallel | None = None
    pipeline: Pipeline | None = None
    parameter_server: ParameterServer | None = None
    transport: Literal["auto", "mpi", "nccl", "tcp"] = "auto"
    uneven: bool = False
    halo: Literal["exchange", "recompute", "auto"] = "auto"
    max_implicit_reshard: Annotated[int | str, LIMIT] = "unlimited"


Device = Target
DEVICES: Kind = TableOf(RecordKind(Target))
ROLES: Kind = TableOf(RecordKind(Role))
PLACEMENT: Kind = TableOf(Text(form="a device or mesh"))
LATER_RECORDS: tuple[type[Record], ...] = (
    Role, ParameterFuse, Parameters, Shard, DataParallel, Pipeline, ParameterServer, Parallelism,
)  # fmt: skip
