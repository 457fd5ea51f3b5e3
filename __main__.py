"""The command line: `fluorite` and `python -m fluorite`."""
from __future__ import annotations

import sys


def main() -> None:
    try:
        from fluorite.cli.app import main as run

        code = run()
    except KeyboardInterrupt:  # while modules are still being imported
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
