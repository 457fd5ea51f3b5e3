"""The command line: `fluorite` and `python -m fluorite`."""
from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    from fluorite.cli.ending import INTERRUPTED, exit_code, heed

    _open_streams()
    heed()
    try:
        from fluorite.cli.app import main as run

        code = exit_code(run())
    except KeyboardInterrupt:  # while modules are still being imported, and nothing has begun
        print("interrupted", file=sys.stderr, flush=True)
        os._exit(exit_code(INTERRUPTED))  # an import that was interrupted inside exec() would make Python end itself by the signal
    gc.freeze()  # all that is left goes with the process: Python would look for garbage in TVM for a fifth of a second
    sys.exit(code)


def _open_streams() -> None:
    """Standard streams that were closed lead nowhere: the next file to be opened would take their number, and be written what is said."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


if __name__ == "__main__":
    main()
