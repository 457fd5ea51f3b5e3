"""An artefact as a wheel, by the binary distribution format of the Python packaging user guide (PEP 427)."""

from __future__ import annotations

import base64
import json
import os
import sysconfig
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from .runtime.load import MANIFEST
from .runtime.manifest import SEAL

_ANY_DATE = (1980, 1, 1, 0, 0, 0)
"""The same artefact gives the same bytes whenever it is packed."""


def write_wheel(folder: Path) -> Path:
    """Packs the artefact in `folder` into a wheel beside it, and returns its path. Its version is what the artefact holds.

    The wheel is for this machine's kind of system. Raises OSError.
    """
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    version = f"0+{manifest[SEAL][:12]}"
    tag = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    info = f"{folder.name}-{version}.dist-info"
    files = {path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if _belongs(path)}
    files[f"{info}/METADATA"] = _metadata(folder.name, version, manifest).encode()
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: fluorite\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    record = f"{info}/RECORD"
    files[record] = "".join([*(f"{name},{_digest(data)},{len(data)}\n" for name, data in files.items()), f"{record},,\n"]).encode()
    made = folder.parent / f"{folder.name}-{version}-{tag}.whl"
    handle, temporary = tempfile.mkstemp(prefix=f".{made.name[:100]}.", dir=folder.parent)
    try:
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                entry = zipfile.ZipInfo(name, _ANY_DATE)
                entry.external_attr = 0o100644 << 16
                archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
        os.chmod(temporary, 0o644)
        os.replace(temporary, made)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return made


def _belongs(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc"


def _metadata(name: str, version: str, manifest: dict[str, Any]) -> str:
    needs = ["numpy>=1.26", f"apache-tvm-ffi=={manifest['toolchain']['tvm_ffi']}", "safetensors>=0.4"]
    if any(word in json.dumps(manifest["methods"]) + json.dumps(manifest.get("parameters", ())) for word in ("bfloat16", "float8")):
        needs.append("ml_dtypes>=0.4")
    lines = [f"Name: {name}", f"Version: {version}", f"Summary: {manifest['name']}, compiled by fluorite", "Requires-Python: >=3.11"]
    return "\n".join(["Metadata-Version: 2.1", *lines, *(f"Requires-Dist: {need}" for need in needs)]) + "\n"


def _digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()
