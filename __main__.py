"""The command line: `fluorite` and `python -m fluorite`."""
from __future__ import annotations

import sys


def main() -> None:
    from fluorite.cli.app import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
