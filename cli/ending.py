"""Being asked to end, by the system or by a terminal that is closed: what Ctrl-C does, with the exit code of the signal."""

from __future__ import annotations

import signal
from types import FrameType

INTERRUPTED = 130
ASKING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_asked: list[int] = []


def heed() -> None:
    """From here on temporary files go, and a training run leaves a checkpoint, before the process ends. Ignored signals stay ignored."""
    for number in ASKING:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _like_ctrl_c)


def _like_ctrl_c(number: int, frame: FrameType | None) -> None:
    _asked.append(number)
    handler = signal.getsignal(signal.SIGINT)
    (handler if callable(handler) else signal.default_int_handler)(signal.SIGINT, frame)


def exit_code(code: int) -> int:
    """That of an interrupted process says which signal it was."""
    return 128 + _asked[0] if code == INTERRUPTED and _asked else code


__all__ = ["ASKING", "INTERRUPTED", "exit_code", "heed"]
