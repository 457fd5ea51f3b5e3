"""The process in which candidates are built and run: `python -m fluorite.codegen.tuning.worker FOLDER`.

Reads one request a line from standard input, and answers with one line of JSON. It lives until its input ends; a candidate that kills it
takes nothing else along. FOLDER holds the graph, its parameters and the inputs of every case.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from fluorite.algo.errors import AlgorithmError, BuildError, FluoriteError, PlanError
from fluorite.algo.graph import flatten
from fluorite.schedule import ExecutionPlan

from ..driver import compile_graph
from ..runtime import assemble, weights
from ..runtime.complexes import parts_of
from ..runtime.model import Model
from .graph_text import graph_of

Call = Callable[[], Any]


class Workbench:
    """Built candidates by slot, and the cases that they run on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        constants = weights.read(folder / "constants")
        self.arrays = {**constants, **weights.read(folder / "parameters")}
        self.graph = graph_of(json.loads((folder / "graph.json").read_text(encoding="utf-8")), constants)
        self.cases: list[dict[str, Any]] = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
        self.inputs: dict[int, tuple[Any, ...]] = {}
        self.slots: dict[str, Model] = {}

    def build(self, slot: str, plan: str) -> dict[str, Any]:
        """Compile a plan. Not ok: `failure` says illegal or build."""
        self.slots.pop(slot, None)
        try:
            compiled = compile_graph(self.graph, ExecutionPlan.from_yaml(plan))
            self.slots[slot] = assemble(compiled.manifest(self.graph.name), compiled.library, self.arrays, functions=self.graph.functions)
        except (PlanError, AlgorithmError) as error:
            return {"ok": False, "failure": "illegal", "why": _sentence(error)}
        except BuildError as error:
            return {"ok": False, "failure": "build", "why": _sentence(error)}
        except Exception as error:
            return {
                "ok": False,
                "failure": "build",
                "why": f"{type(error).__name__}: {str(error).strip().splitlines()[-1] if str(error).strip() else ''}",
            }
        return {"ok": True}

    def run(self, slot: str, cases: list[int]) -> dict[str, Any]:
        """One call on each case, from the same state: the files of its results and new values of state, and seconds."""
        files: list[list[str]] = []
        seconds: list[float] = []
        for case in cases:
            call = self._call(slot, case)
            self._begin(slot)
            begun = time.perf_counter()
            try:
                result = call()
            except FluoriteError as error:
                return {"ok": False, "failure": "wrong", "why": f"the call is refused: {_sentence(error)}"}
            seconds.append(time.perf_counter() - begun)
            files.append([])
            held = self.slots[slot].parameters
            updates = self.graph.method(self.cases[case]["method"]).updates
            arrays: list[Any] = [parts_of(np.asarray(a)) for a in (*flatten(result), *(held[path] for path in updates))]
            for n, array in enumerate(arrays):
                name = f"output-{slot}-{case}-{n}.npy"
                np.save(self.folder / name, array, allow_pickle=False)
                files[-1].append(name)
        return {"ok": True, "outputs": files, "seconds": seconds}

    def time(self, slots: list[str], cases: list[int], rounds: int, slice_seconds: float) -> dict[str, Any]:
        """Seconds of one call, [slot][case][round]; slots take turns in every round, so that what else the machine does hits all alike."""
        found: list[list[list[float]]] = [[] for _ in slots]
        for case in cases:
            for slot in slots:
                self._begin(slot)
            calls = [self._call(slot, case) for slot in slots]
            counts = [_repeats(call, slice_seconds) for call in calls]
            taken: list[list[float]] = [[] for _ in slots]
            for n in range(rounds):
                for i in _turns(len(slots), n):
                    begun = time.perf_counter()
                    for _ in range(counts[i]):
                        calls[i]()
                    taken[i].append((time.perf_counter() - begun) / counts[i])
            for i, some in enumerate(taken):
                found[i].append(some)
        return {"ok": True, "seconds": found}

    def drop(self, slot: str) -> dict[str, Any]:
        self.slots.pop(slot, None)
        return {"ok": True}

    def _begin(self, slot: str) -> None:
        """The state as it is before the first call, where calls change it."""
        if self.graph.updates:
            held = self.slots[slot].parameters
            held.assign({leaf.path: self.arrays[leaf.path] for leaf in self.graph.updates.values()})

    def _call(self, slot: str, case: int) -> Call:
        if case not in self.inputs:
            arrays = weights.read(self.folder / f"inputs-{case}")
            self.inputs[case] = tuple(arrays[str(n)] for n in range(len(arrays)))
        method, inputs = getattr(self.slots[slot], self.cases[case]["method"]), self.inputs[case]
        return lambda: method(*inputs)


def _repeats(call: Call, slice_seconds: float) -> int:
    """How many calls fill a slice of time; also warms up."""
    call()
    count, begun = 0, time.perf_counter()
    while True:
        call()
        count += 1
        spent = time.perf_counter() - begun
        if spent >= slice_seconds or count >= 10_000:
            return max(1, round(count * slice_seconds / spent)) if spent > 0 else count


def _turns(count: int, n: int) -> Iterator[int]:
    """Each starts as often as the others."""
    return ((i + n) % count for i in range(count))


def _sentence(error: FluoriteError) -> str:
    first = error.problems[0]
    return f"[{first.code}] {first.asked}" + (f": {first.why}" if first.why else "")


def _die_with_parent() -> None:
    """On Linux the system ends this process with its parent, even while a candidate hangs; elsewhere the end of its input does."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


def _listen(requests: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def serve(folder: Path, answers: TextIO) -> None:
    """Answer requests until there are none."""
    bench = Workbench(folder)
    requests: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    verbs: Mapping[str, Callable[..., dict[str, Any]]] = {"build": bench.build, "run": bench.run, "time": bench.time, "drop": bench.drop}
    print(json.dumps({"ok": True}), file=answers, flush=True)
    while True:
        request = json.loads(requests.get())
        print(json.dumps(verbs[request.pop("do")](**request)), file=answers, flush=True)


def main() -> None:
    _die_with_parent()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever libraries print is no answer
    sys.path += sys.argv[2:]  # where the functions of the model are found; last, so that no file of them hides a module of Python's
    serve(Path(sys.argv[1]), answers)


if __name__ == "__main__":
    main()
