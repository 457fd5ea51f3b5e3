"""What the command line itself refuses."""

from __future__ import annotations

from fluorite.algo.errors import FluoriteError, Problem, RunError


class UsageError(FluoriteError):
    """The command does not say what to do: exit code 2."""


def usage(asked: str, why: str = "", *try_: str) -> UsageError:
    return UsageError(Problem("R400", "usage", asked=asked, why=why, try_=try_))


def not_built(what: str, *try_: str) -> RunError:
    return RunError(Problem("R490", "run", asked=f"{what} is not built yet", try_=try_))
