"""python -m examples.training NAME: trains one example and says what it has learned."""

from __future__ import annotations

import argparse
import time

from .expected import FOLDER, wrong
from .runs import RUNS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.training", description=__doc__)
    parser.add_argument("name", choices=RUNS)
    parser.add_argument("--plan", help="how it is computed (default: NAME_cpu.yaml beside it)")
    given = parser.parse_args()
    begin = time.perf_counter()
    print((RUNS[given.name].__doc__ or "").strip())
    figures = RUNS[given.name](given.plan or FOLDER / f"{given.name}_cpu.yaml")
    print(*(f"  {name} {value:.4g}" for name, value in figures.items()), f"  in {time.perf_counter() - begin:.1f} s", sep="\n")
    if problems := wrong(given.name, figures):
        raise SystemExit("\n".join(problems))


if __name__ == "__main__":
    main()
