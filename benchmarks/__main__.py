"""python -m benchmarks [--peers numpy,halide] [--only blur,sgemm]: everything side by side in one run, medians and ratios."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from . import limits, overheads
from .rounds import Result, Worker, measure, prepare, python_of
from .workloads import WORKLOADS, Workload


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    p.add_argument("--peers", default="numpy", help="numpy, halide, torch, comma separated; all but numpy need --peer-env (default: numpy)")
    p.add_argument("--peer-env", type=Path, help="a virtual environment that holds the peers: pip install numpy halide==21.0.0 torch")
    p.add_argument("--only", default=",".join((*WORKLOADS, *overheads.NAMES)), help="workloads, comma separated (default: all)")
    p.add_argument("--variants", default="", help="only variants whose name contains one of these")
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--samples", type=int, default=10, help="times taken of each variant in each round")
    p.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    p.add_argument("-o", "--output", type=Path, help="all times as JSON")
    return p.parse_args()


def line(r: Result, best_peer: float | None, limit: float) -> str:
    if r.error:
        return f"  {r.variant:16} {r.error}"
    ratio = f"{r.median / best_peer:6.2f}x best peer" if best_peer else ""
    note = " (disturbed)" if r.disturbed else ""
    times = f"{r.median * 1e6:10.1f} us  (best {r.best * 1e6:.1f}, {len(r.times)} times)"
    return f"  {r.variant:16} {times} {ratio}  {100 * limit / r.median:4.0f}% of the limit  error {r.difference:.0e}{note}"


def report(w: Workload, results: list[Result], limit: limits.Limit) -> None:
    print(f"{w.name}: {w.text}; limit {limit.text()}")
    peers = [r.median for r in results if not r.error and not r.variant.startswith("fluorite")]
    for r in sorted(results, key=lambda r: r.median if not r.error else float("inf")):
        print(line(r, min(peers, default=None), limit.seconds), flush=True)


def side_by_side(workloads: list[Workload], given: argparse.Namespace) -> dict[str, Any]:
    """Times of every variant of every peer, by workload."""
    kept = {}
    workers = [Worker(p, python_of(p, given.peer_env), given.threads) for p in ("fluorite", *(p for p in given.peers.split(",") if p))]
    with tempfile.TemporaryDirectory() as folder:
        program = limits.built(Path(folder))
        for w in workloads:
            results = prepare(w, workers, [v for v in given.variants.split(",") if v])
            measure(w, results, workers, given.rounds, given.samples)
            report(w, results, limits.limit(program, given.threads, w.flops, w.bytes))
            kept[w.name] = {
                r.variant: {"samples": r.samples, "build": r.build, "difference": r.difference, "error": r.error} for r in results
            }
    for worker in workers:
        worker.close()
    return kept


def main() -> None:
    given = arguments()
    names = given.only.split(",")
    unknown = [n for n in names if n not in WORKLOADS and n not in overheads.NAMES]
    if unknown:
        raise SystemExit(f"no workload {', '.join(unknown)}; there are {', '.join((*WORKLOADS, *overheads.NAMES))}")
    kept: dict[str, Any] = {}
    timed = [WORKLOADS[n] for n in names if n in WORKLOADS]
    if timed:
        kept |= side_by_side(timed, given)
    for name in (n for n in names if n in overheads.NAMES):
        kept[name] = overheads.run(name)
    if given.output:
        given.output.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
