"""-o: whole files, and nobody else's."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from command_line import fluorite
from fluorite.algo.errors import RunError
from fluorite.cli.arrays import encode, encode_all
from fluorite.cli.files import writable, write


def test_a_file_of_our_own_is_replaced(here: Path) -> None:
    path = here / "out.txt"
    write(path, b"one")
    write(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in here.iterdir() if p.name.startswith(".out")] == []


@pytest.mark.parametrize("change", [b"mine", b"onE"])
def test_a_file_that_was_changed_is_not(here: Path, change: bytes) -> None:
    path = here / "out.txt"
    write(path, b"one")
    path.write_bytes(change)
    with pytest.raises(RunError, match="exists"):
        write(path, b"two")
    assert path.read_bytes() == change
    write(path, b"two", force=True)
    assert path.read_bytes() == b"two"


def test_an_empty_file_is_nobodys(here: Path) -> None:
    (here / "out.txt").touch()
    write(here / "out.txt", b"one")
    assert (here / "out.txt").read_bytes() == b"one"


def test_places_that_cannot_be_written(here: Path) -> None:
    for path in (here, here / "absent" / "out.txt"):
        with pytest.raises(RunError, match="cannot be written"):
            writable(path)


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(here: Path) -> None:
    folder = here / "fixed"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(RunError, match="read-only"):
        writable(folder / "out.txt")


def test_a_write_that_fails_leaves_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(RunError, match="no space left"):
        write(here / "out.txt", b"one")
    assert not (here / "out.txt").exists() and not [p for p in here.iterdir() if p.name.startswith(".out")]


def test_what_a_link_leads_to_is_written(here: Path) -> None:
    (here / "real").mkdir()
    (here / "link.txt").symlink_to(here / "real" / "out.txt")
    for data in (b"one", b"two"):
        write(here / "link.txt", data)
        assert (here / "link.txt").is_symlink() and (here / "real" / "out.txt").read_bytes() == data
    (here / "circle").symlink_to(here / "circle")
    with pytest.raises(RunError, match="cannot be written"):
        write(here / "circle", b"one")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names")
def test_devices_and_pipes_stay_what_they_are(here: Path) -> None:
    os.mkfifo(here / "pipe")
    (here / "link").symlink_to(here / "pipe")
    reader = os.open(here / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        for path in (here / "pipe", here / "link"):
            write(path, b"one")
            assert os.read(reader, 9) == b"one" and stat.S_ISFIFO(os.stat(path).st_mode)
    finally:
        os.close(reader)


def test_without_a_cache_it_asks_for_force(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "file").write_text("no folder")
    monkeypatch.setenv("FLUORITE_CACHE", str(here / "file"))
    write(here / "out.txt", b"one")
    with pytest.raises(RunError, match="exists"):
        write(here / "out.txt", b"two")


def test_it_is_refused_before_the_work_is_done(here: Path) -> None:
    (here / "mine.yaml").write_text("mine")
    ran = fluorite("plan", "init", "nowhere.py", "-o", "mine.yaml")
    assert ran.code == 1 and "error[R401]" in ran.err
    assert (here / "mine.yaml").read_text() == "mine"


def test_types_that_numpys_files_cannot_say_are_refused(tmp_path: Path) -> None:
    array = np.ones(3, ml_dtypes.bfloat16)
    for name in ("out.npy", "out.npz"):
        with pytest.raises(RunError, match="cannot say bfloat16"):
            encode(array, tmp_path / name)
    with pytest.raises(RunError, match="y: NumPy's files"):
        encode_all({"y": array})
    assert encode(array, tmp_path / "out.json")[0] == b"[1.0, 1.0, 1.0]\n"


SPIN = """import fluorite as fl


def spin(z: fl.c64[fl.Tensor, "n"], by: fl.c64 = 1) -> fl.Tensor:
    return z * by
"""


def test_complex_numbers_in_files_and_literals(here: Path) -> None:
    (here / "spin.py").write_text(SPIN)
    z = np.complex64([1, 2j, 3 - 1j])
    np.save(here / "z.npy", z)
    ran = fluorite("run", "spin.py:spin", "--set", "z=z.npy", "--set", "by=0+2j", "-o", "out.npy", "--json")
    assert ran.code == 0 and (np.load(here / "out.npy") == 2j * z).all() and np.load(here / "out.npy").dtype == np.complex64
    assert ran.document["result"]["outputs"]["out"] == {"dtype": "complex64", "shape": [3], "value": [[0, 2], [-4, 0], [2, 6]]}
    ran = fluorite("run", "spin.py:spin", "--set", "z=z.npy", "--set", "by=2", "-o", "out.json")
    assert ran.code == 0 and "complex64[3]  [[2.0, 0.0]" in ran.out and json.loads((here / "out.json").read_text())[1] == [0, 4]
    assert "real numbers" in fluorite("run", "spin.py:spin", "--set", "z=z.npy", "--set", "by=2", "-o", "out.png").err
    assert fluorite("check", "spin.py:spin", "--extents", "n=3", "--set", "z=z.npy", "--set", "by=1j").code == 0
