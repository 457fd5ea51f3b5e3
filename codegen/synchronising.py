"""What only the threads of a GPU do, as TVM's statements: barriers, and copies that run beside the thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .device_c import definitions
from .statements import AsyncCopy, Barrier, CommitGroup, Exchange, Synchronisation, WaitGroup
from .tvm_adapter import element_address, external, nothing, pure_external, storage_barrier, tirx

HEADER = "#include <cuda_pipeline.h>\n"
"""Of CUDA's functions for asynchronous copies."""
COPY, COMMIT, WAIT = "__pipeline_memcpy_async", "__pipeline_commit", "__pipeline_wait_prior"
BARRIER, SHUFFLE = "fluorite_barrier", "fluorite_shuffle"
_SHUFFLED = {"bool": "int32", "int8": "int32", "uint8": "int32", "int16": "int32", "uint16": "int32", "float16": "float32"}
"""The types that shuffles move others in."""
_BARRIERS = {"cuda": "__syncthreads()", "opencl": "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)"}


def prelude(source: str, kind: str) -> str:
    """What device code of a kind of target needs before it."""
    barrier = f"#define {BARRIER}() {_BARRIERS[kind]}\n" if BARRIER in source else ""
    shuffle = f"#define {SHUFFLE}(value, distance) __shfl_xor_sync(0xffffffffu, value, distance)\n" if SHUFFLE in source else ""
    return (HEADER if COPY in source else "") + barrier + shuffle + definitions(source, kind)


def emitted(s: Synchronisation, buffers: Mapping[int, Any], index: Any, serial: bool) -> Any:
    """The statement. `serial`: for one thread, which sees at once what it has copied."""
    match s:
        case AsyncCopy() if serial:
            *outer, last = map(index, s.index)
            *outside, first = map(index, s.at)
            stores = [
                tirx.BufferStore(
                    buffers[s.buffer], tirx.BufferLoad(buffers[s.source], [*outside, first + _number(n)]), [*outer, last + _number(n)]
                )
                for n in range(s.elements)
            ]
            return stores[0] if len(stores) == 1 else tirx.SeqStmt(stores)
        case AsyncCopy():
            to, source = buffers[s.buffer], buffers[s.source]
            size = s.elements * np.dtype(str(to.dtype)).itemsize
            ends = (element_address(to, list(map(index, s.index))), element_address(source, list(map(index, s.at))))
            return external(COPY, *ends, tirx.IntImm("int32", size))
        case Barrier(everywhere=everywhere):
            return nothing() if serial else external(BARRIER) if everywhere else storage_barrier()
        case Exchange() if serial:
            other = [tirx.bitwise_xor(index(i), _number(s.distance)) if i is s.lane else index(i) for i in s.index]
            return tirx.BufferStore(buffers[s.target], tirx.BufferLoad(buffers[s.source], other), list(map(index, s.index)))
        case Exchange():
            source, zero = buffers[s.source], [_number(0)]
            value, dtype = tirx.BufferLoad(source, zero), str(source.dtype)
            wide = _SHUFFLED.get(dtype, dtype)
            sent = value if wide == dtype else value.astype(wide)
            got = pure_external(wide, SHUFFLE, sent, tirx.IntImm("int32", s.distance))
            return tirx.BufferStore(buffers[s.target], got if wide == dtype else got.astype(dtype), zero)
        case CommitGroup():
            return nothing() if serial else external(COMMIT)
        case WaitGroup():
            return nothing() if serial else external(WAIT, tirx.IntImm("int32", s.groups))


def _number(n: int) -> Any:
    return tirx.IntImm("int64", n)
