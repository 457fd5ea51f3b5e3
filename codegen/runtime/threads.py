"""How many threads kernels use. The pool's own default is half the processors, and every Python thread has a pool of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from .errors import artifact_error, artifact_problem
from .ffi import get_global_func

_ALL_AT_FULL_SPEED = 1


class _Here(threading.local):
    count = 0


here = _Here()  # of the calling thread: what its pool was last told
shared: list[Callable[[], Any]] = []  # what gives the place where compiled code reads the same, once a library has such a place


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chosen(declared: str | int) -> int:
    """Threads for a model whose manifest says `declared` ("all" or a number); FLUORITE_THREADS wins. Raises ArtifactError."""
    asked = os.environ.get("FLUORITE_THREADS") or str(declared)
    if asked == "all":
        count = processors()
    elif asked.isascii() and asked.isdigit() and int(asked):
        count = int(asked)
    else:
        raise artifact_error(
            artifact_problem("R008", f'FLUORITE_THREADS is "{asked}", expected a number of threads or "all"', "FLUORITE_THREADS=all")
        )
    # read when a thread's pool starts, and a pool never grows: the ceiling must be right from the beginning
    os.environ.setdefault("TVM_NUM_THREADS", str(max(count, processors())))
    return count


def use(count: int) -> None:
    """Let the calling thread's pool use `count` threads from now on."""
    _configure()(_ALL_AT_FULL_SPEED, count)
    here.count = count
    share()


def share() -> None:
    """Let compiled code know what the calling thread's pool was last told."""
    for place in shared:
        place()[0] = here.count


@cache
def _configure() -> Any:
    return get_global_func("runtime.config_threadpool")
