"""The artefact as a folder: importable, checked, whole or not at all."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import runtime_kernels as hand
from fluorite.algo.errors import ArtifactError, BuildError
from fluorite.codegen import artifact
from fluorite.codegen.runtime import assemble, host, load

F32 = np.float32


def scaled_net() -> dict[str, Any]:
    """infer: x + w, and a dict result; train: several outputs."""
    buffers = [hand.buffer("input", "x", 4), hand.buffer("parameter", "net/w", 4), hand.buffer("output", "y", 4)]
    infer = hand.method(buffers, [hand.step("add4", 0, 1, 2)])
    both = hand.method(buffers, [hand.step("add4", 0, 1, 2)], {"dict": [["y", {"buffer": 2}]]}, doc='Says "yes" to \\ and """ too.')
    return hand.manifest("net", [{"name": "net/w", "dtype": "float32", "shape": [4]}], infer=infer, both=both)


def write(folder: Path, **options: Any) -> Path:
    return artifact.write(scaled_net(), hand.library(), {"net/w": np.arange(4, dtype=F32)}, folder, **options)


def python(code: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, env=os.environ | environment, capture_output=True, text=True, timeout=60
    )


def test_it_is_imported_and_runs(tmp_path: Path) -> None:
    write(tmp_path / "net_built")
    code = """
import sys, numpy as np
import net_built
x = np.ones(4, np.float32)
print(net_built.infer(x).tolist(), net_built.both(x=x)["y"].tolist(), net_built.parameters["net/w"].tolist())
out = np.empty(4, np.float32)
assert net_built.infer(x, out=out) is out
one, two = net_built.Model(), net_built.Model()
one.parameters["net/w"] = np.zeros(4, np.float32)
print(one.infer(x).tolist(), two.infer(x).tolist(), net_built.plan.strip(), net_built.manifest["name"])
print([m for m in ("tvm", "fluorite", "torch") if m in sys.modules])
try:
    net_built.infer(x.astype(np.float64))
except net_built.RunError as error:
    print(error)
help(net_built.infer)
"""
    done = python(code, tmp_path)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:4] == [
        "[1.0, 2.0, 3.0, 4.0] [1.0, 2.0, 3.0, 4.0] [0.0, 1.0, 2.0, 3.0]",
        "[1.0, 1.0, 1.0, 1.0] [1.0, 2.0, 3.0, 4.0] version: 1 net",
        "[]",
        "net.infer: x is float64, expected float32[4]; x.astype(np.float32)",
    ]
    assert "x: float32[4]" in done.stdout and "returns float32[4]" in done.stdout


def test_the_library_that_imports_torch_is_kept_from_it(tmp_path: Path) -> None:
    write(tmp_path / "net_built")
    (tmp_path / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    done = python("import net_built, sys; print('torch' in sys.modules); import torch", tmp_path)
    assert (done.stdout, done.stderr) == ("False\n", "torch was imported\n")


def test_tvm_may_be_imported_afterwards(tmp_path: Path) -> None:
    write(tmp_path / "net_built")
    done = python("import numpy as np, net_built; net_built.infer(np.ones(4, np.float32)); import tvm; print(tvm.cpu())", tmp_path)
    assert done.returncode == 0, done.stderr


def test_importing_is_quick_and_the_folder_is_small(tmp_path: Path) -> None:
    folder = write(tmp_path / "net_built")
    code = "import numpy, time; t = time.perf_counter(); import net_built; print(time.perf_counter() - t)"
    assert min(float(python(code, tmp_path).stdout) for _ in range(2)) < 0.5
    assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 15e6
    assert len((folder / "__init__.py").read_text().splitlines()) < 80


def test_one_function_is_run_and_its_name(tmp_path: Path) -> None:
    artifact.write(hand.manifest("photo", photo=hand.photo()), hand.library(), {}, tmp_path / "photo_tuned")
    done = python(
        "import photo_tuned as p, numpy as np; x = np.ones((2, 2), np.float32)\n"
        "print(p.run(x, 2.0).tolist() == p.photo(x, amount=2).tolist() == p.Model().run(x, 2.0).tolist(), len(p.signatures))",
        tmp_path,
    )
    assert done.stdout == "True 1\n", done.stderr


def test_type_checkers_accept_it(tmp_path: Path) -> None:
    write(tmp_path / "net_built")
    artifact.write(hand.manifest("photo", photo=hand.photo()), hand.library(), {}, tmp_path / "photo_tuned")
    (tmp_path / "user.py").write_text(
        "import numpy as np\nimport net_built, photo_tuned\n"
        "x = np.ones(4, np.float32)\n"
        "reveal_type(net_built.both(x))\n"
        "reveal_type(photo_tuned.Model().run([[1.0]], 2.0))\n"
        "net_built.infer(y=x)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    revealed = re.findall('Revealed type is "(.*)"', done.stdout)
    assert len(revealed) == 2 and all("floating" in r and "_32Bit" in r for r in revealed), done.stdout
    assert revealed[0].startswith("dict[str, ") and revealed[1].startswith("numpy.ndarray["), done.stdout
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert errors and all("user.py:6" in line for line in errors), done.stdout


def test_a_changed_file_is_a_sentence(tmp_path: Path) -> None:
    for name in ("kernels.so", "weights.safetensors", "libtvm_runtime.so"):
        folder = write(tmp_path / "net_built")
        path = folder / name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        for damaged, sentence in [(data, "was changed after it was built"), (data[:-1], f"has {len(data) - 1} bytes, it was built with")]:
            path.write_bytes(damaged)
            with pytest.raises(ArtifactError, match=f"{name} {sentence}"):
                load(folder)
        path.unlink()
        with pytest.raises(ArtifactError, match=f"{name} cannot be read: No such file"):
            load(folder)


def test_every_file_is_under_the_seal(tmp_path: Path) -> None:
    """The runtime and the module that travel along too, all but the manifest, which has a digest of its own."""
    folder = write(tmp_path / "net_built")
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert set(json.loads((folder / "manifest.json").read_text())["files"]) == files - {"manifest.json"}
    for name in ("_runtime/method.py", "_runtime/load.py", "__init__.py", "__init__.pyi"):
        path = folder / name
        before = path.read_bytes()
        path.write_bytes(before + b"# edited\n")
        done = python("import net_built\ntry: net_built.Model()\nexcept net_built.ArtifactError as e: print(e)", tmp_path)
        assert f"{name} has " in done.stdout and "build or copy it again" in done.stdout, done
        path.write_bytes(before)
    load(folder)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 3}, "manifest.json has format 3, this runtime reads format 2; build it again with this fluorite"),
        ({"target": {"system": "Darwin", "machine": "arm64"}}, "net was built for Darwin arm64, this machine is Linux"),
        ({"target": {"cpu": "z", "features": ["avx2", "amx_quantum"]}}, "net was built for z and needs amx_quantum, which this processor"),
        ({"toolchain": {"tvm_ffi": "9.9.9"}}, "apache-tvm-ffi 9.9.9, this environment has .*; pip install apache-tvm-ffi==9.9.9"),
        ({"methods": {"infer": {}}}, r"manifest.json is not one that fluorite writes \(KeyError: 'inputs'\)"),
        ({"parameters": [{"name": "v", "dtype": "float32", "shape": [4]}]}, r"v is not there as float32\[4\]"),
    ],
)
def test_what_does_not_fit_is_a_sentence(tmp_path: Path, change: dict[str, Any], sentence: str) -> None:
    folder = write(tmp_path / "net_built")
    path = folder / "manifest.json"
    path.write_text(json.dumps(artifact.sealed(json.loads(path.read_text()) | change)))
    with pytest.raises(ArtifactError, match=sentence):
        load(folder)


def test_no_artefact_and_no_json(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"is no artefact of fluorite: manifest\.json: No such file"):
        load(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": 1')
    with pytest.raises(ArtifactError, match="is not valid JSON"):
        load(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(ArtifactError, match="is not one that fluorite writes"):
        load(tmp_path)


def test_two_builds_of_one_name_live_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = []
    for times in (1, 2, 3):
        kernels = hand.linked([hand.elementwise("increment", ["n"], ["float32"] * 2, lambda r, _: sum([r[0]] * times, r[0]))])  # noqa: B023
        folder = artifact.write(hand.manifest("m", m=hand.chain(1)), kernels, {}, tmp_path / "m_built")
        monkeypatch.chdir(folder)
        models.append(load("."))
        monkeypatch.chdir(tmp_path)  # the current folder is not replaced
    assert [float(m.run(np.ones(3, F32))[0]) for m in models] == [2, 3, 4]


def test_a_model_without_a_folder(tmp_path: Path) -> None:
    (tmp_path / "kernels.so").write_bytes(hand.library())
    model = assemble(scaled_net(), tmp_path / "kernels.so", {"net/w": np.arange(5, dtype=F32)[1:]})
    assert model.infer(np.zeros(4, F32)).tolist() == [1, 2, 3, 4]


def test_a_missing_kernel_is_a_sentence(tmp_path: Path) -> None:
    spec = hand.method([hand.buffer("input", "x", 4), hand.buffer("output", "y", 4)], [hand.step("absent", 0, 1)])
    model = load(artifact.write(hand.manifest("m", m=spec), hand.library(), {}, tmp_path / "m_built"))
    with pytest.raises(ArtifactError, match=r"kernels.so has no kernel absent"):
        model.run(np.zeros(4, F32))


def test_threads_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "net_built")
    monkeypatch.setenv("FLUORITE_THREADS", "many")
    with pytest.raises(ArtifactError, match='FLUORITE_THREADS is "many", expected a number of threads or "all"'):
        load(folder)
    monkeypatch.setenv("FLUORITE_THREADS", "1")
    assert load(folder)._thread_count == 1


def test_processor_features_are_known_here() -> None:
    features = host.cpu_features()
    assert features is not None and {"avx2", "fma"} <= features


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("json", "it would hide a module of Python's own library"),
        ("numpy", "it would hide a package that it needs itself"),
        ("net", "the model's own file is called net.py"),
        ("my-net", "Python could not import it"),
        ("class", "Python could not import it"),
    ],
)
def test_names_that_would_not_import(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(BuildError, match=re.escape(why)):
        write(tmp_path / name, model_file=tmp_path / "net.py")
    assert list(tmp_path.iterdir()) == []


def test_methods_and_inputs_need_usable_names(tmp_path: Path) -> None:
    spec = hand.chain(1)
    spec["inputs"][0]["name"] = "in"
    with pytest.raises(BuildError) as caught:
        artifact.write(
            hand.manifest("m", parameters=[], **{"save": hand.chain(1), "a-b": hand.chain(1), "ok": spec}), b"", {}, tmp_path / "m1"
        )
    assert [p.why for p in caught.value.problems] == [
        "every model has something of this name",
        "it must be a public Python name",
        "it is no Python name",
    ]


def test_only_its_own_folders_are_replaced(tmp_path: Path) -> None:
    folder = write(tmp_path / "net_built")
    kernels = (folder / "kernels.so").stat().st_ino
    write(folder)
    assert (folder / "kernels.so").stat().st_ino != kernels  # a new file: a process that has the old one loaded goes on
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("years")
    with pytest.raises(BuildError, match="fluorite did not write it"):
        write(other)
    assert (other / "thesis.txt").read_text() == "years"
    write(other, force=True)
    assert artifact.is_artifact(other)
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="exists and is no folder"):
        write(tmp_path / "file", force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "mine", "net_built"]


def test_no_room_leaves_the_old_one(tmp_path: Path) -> None:
    folder = write(tmp_path / "net_built")
    before = (folder / "manifest.json").read_text()
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    try:
        with pytest.raises(BuildError, match="there is no room for it"):
            write(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (folder / "manifest.json").read_text() == before
    assert [p.name for p in tmp_path.iterdir()] == ["net_built"]
    assert load(folder).infer(np.ones(4, F32))[0] == 1


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BuildError, match="cannot be written"):
        write(tmp_path / "file" / "net_built")
    with pytest.raises(BuildError, match="cannot be written"):
        write(Path("/proc/net_built"))
