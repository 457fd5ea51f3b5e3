"""What can be tried at random."""

from __future__ import annotations

from collections.abc import Callable

from .models import model
from .mutations import mutation
from .run import trial
from .sources import source

KINDS: dict[str, Callable[[int, bool], str]] = {"plans": trial, "mutations": mutation, "python": source, "models": model}
"""name -> the trial of one seed, told about or not."""
