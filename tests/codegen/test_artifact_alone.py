"""The artefact where nothing but NumPy, the FFI library and safetensors is installed, and no compiler is found."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import numpy as np
import pytest
import runtime_kernels as hand
from fluorite.codegen import artifact

CODE = """
import importlib.metadata, shutil, sys
assert not any(map(shutil.which, ("cc", "gcc", "g++", "clang", "ld", "nvcc")))
assert not {"fluorite", "apache-tvm", "torch", "ml_dtypes"} & {d.name for d in importlib.metadata.distributions()}
import numpy as np
import photo_tuned
x = np.random.default_rng(0).random((300, 200), np.float32)
np.testing.assert_array_equal(photo_tuned.run(x, 2.0), x * 2)
try:
    photo_tuned.run(x.astype(np.float64), 2.0)
except photo_tuned.RunError as error:
    print(error)
"""


@pytest.mark.slow
def test_it_runs_with_three_packages_and_no_compiler(tmp_path: Path) -> None:
    artifact.write(hand.manifest("photo", photo=hand.photo()), hand.library(), {}, tmp_path / "photo_tuned")
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    packages = [f"numpy=={np.__version__}", "apache-tvm-ffi==0.1.14.post0", "safetensors"]
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--disable-pip-version-check", *packages]
    installed = subprocess.run(command, capture_output=True, text=True, timeout=240)
    if installed.returncode and "connection" in installed.stderr.lower():
        pytest.skip("the package index cannot be reached: " + installed.stderr.strip().splitlines()[-1])
    assert installed.returncode == 0, installed.stderr
    environment = {"PATH": str(tmp_path / "empty"), "HOME": str(tmp_path), **{k: v for k, v in os.environ.items() if k == "LANG"}}
    done = subprocess.run([python, "-W", "error", "-c", CODE], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("photo.run: image is float64, expected float32[h, w]; image.astype(np.float32)\n", "")
