"""The command line: `fluorite` and `python -m fluorite`."""
from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    try:
        from fluorite.cli.app import main as run

        code = run()
    except KeyboardInterrupt:  # while modules are still being imported, and nothing has begun
        print("interrupted", file=sys.stderr, flush=True)
        os._exit(130)  # an import that was interrupted inside exec() would make Python end itself by the signal
    gc.freeze()  # all that is left goes with the process: Python would look for garbage in TVM for a fifth of a second
    sys.exit(code)


if __name__ == "__main__":
    main()
