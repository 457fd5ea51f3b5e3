"""Random programs under random plans against the oracle: ``python -m tests.fuzz --minutes 10``."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from .run import Failure, trial


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one seed, with its program and plan printed")
    chosen = parser.parse_args()
    if chosen.only is not None:
        print(trial(chosen.only, verbose=True))
        return 0
    count: Counter[str] = Counter()
    end = time.monotonic() + 60 * chosen.minutes
    seed = chosen.seed
    while time.monotonic() < end:
        try:
            count[trial(seed)] += 1
        except Failure as failure:
            count["failed"] += 1
            print(f"seed {seed}: {failure}", flush=True)
        seed += 1
    print(f"{seed - chosen.seed} trials: " + ", ".join(f"{n} {what}" for what, n in count.most_common()))
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    random.seed(0)
    sys.exit(main())
