"""Runs built models; needs NumPy and the FFI library only, and travels inside every artefact."""

from __future__ import annotations

from .errors import ArtifactError, RunError
from .load import assemble, load, open_folder
from .manifest import parse
from .model import Model, shared

__all__ = ["ArtifactError", "Model", "RunError", "assemble", "load", "open_folder", "parse", "shared"]
