"""Every operator on PyTorch's samples of it: ``python -m tests.opinfo [NAME ...]``. Needs the extra `torch`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from .comparing import Found, compare
from .table import ABSENT, TABLE


def entries(names: list[str]) -> Iterator[Any]:
    """PyTorch's entries of these operators, by default of all that are here."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if op.name in TABLE and (not names or op.name in names or TABLE[op.name][0] in names):
            yield op


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.opinfo", description=__doc__)
    parser.add_argument("names", nargs="*", help="operators, as PyTorch or as fluorite calls them")
    parser.add_argument("--most", type=int, help="samples of each")
    chosen = parser.parse_args()
    begun = time.monotonic()
    print(f"{'PyTorch':44} {'fluorite':26} {'ran':>4} {'grad':>4} {'worst':>9} verdict   left out")
    rows: list[Found] = []
    for op in entries(chosen.names):
        rows.append(compare(op, *TABLE[op.name], most=chosen.most))
        print(rows[-1].row(), flush=True)
    wrong = [w for r in rows for w in r.wrong]
    print(*wrong, sep="\n")
    ran, gradients, left = sum(r.ran for r in rows), sum(r.gradients for r in rows), sum(r.left_out.total() for r in rows)
    print(
        f"{len(rows)} operators, {ran} samples, {gradients} gradients, {left} samples left out, "
        f"{len(wrong)} wrong, in {time.monotonic() - begun:.0f} s"
    )
    for why in dict.fromkeys(ABSENT.values()):
        print(f"not compared, {why}: {', '.join(n for n, w in ABSENT.items() if w == why)}")
    return 1 if wrong or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
