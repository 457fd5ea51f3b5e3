"""What can be tried at random."""

from __future__ import annotations

from collections.abc import Callable

from .mutations import mutation
from .run import trial

KINDS: dict[str, Callable[[int, bool], str]] = {"plans": trial, "mutations": mutation}
"""name -> the trial of one seed, told about or not."""
