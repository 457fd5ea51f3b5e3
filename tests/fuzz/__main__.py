"""Random programs and models under random plans, plans with random mistakes, and random Python, against the oracle:
``python -m tests.fuzz --minutes 10``."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator

from .guarded import poison
from .kinds import KINDS
from .pool import outcomes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kind", nargs="?", choices=sorted(KINDS), default="plans")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--trials", type=int, help="as many, however long they take")
    parser.add_argument("--seed", type=int, default=0, help="where to begin")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="one seed, with its program and plan printed")
    chosen = parser.parse_args()
    if chosen.only is not None:
        poison()
        print(KINDS[chosen.kind](chosen.only, True))
        return 0
    begun = time.monotonic()
    count: Counter[str] = Counter()
    for seed, said, _ in outcomes(chosen.kind, seeds(chosen.seed, chosen.trials, begun + 60 * chosen.minutes), chosen.jobs):
        count["failed" if said.startswith("failed") else said] += 1
        if said.startswith("failed"):
            print(f"seed {seed}: {said}", flush=True)
    outcome = ", ".join(f"{n} {what}" for what, n in count.most_common())
    print(f"{count.total()} trials in {time.monotonic() - begun:.0f} s: {outcome}")
    return 1 if count["failed"] else 0


def seeds(first: int, trials: int | None, end: float) -> Iterator[int]:
    """As many as are asked for, else until the time is up."""
    if trials is not None:
        return iter(range(first, first + trials))
    return itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(first))


if __name__ == "__main__":
    sys.exit(main())
