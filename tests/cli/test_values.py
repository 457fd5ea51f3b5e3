"""--extents, --set and -o: values in and out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fluorite.algo.errors import RunError
from fluorite.cli.arrays import encode, encode_all, leaves, read, short
from fluorite.cli.refusals import UsageError
from fluorite.cli.table import seconds, size, table
from fluorite.cli.values import extents, pairs
from hypothesis import given
from hypothesis import strategies as st


@dataclass(frozen=True)
class Input:
    name: str = "x"
    dtype: str = "float32"
    shape: tuple[Any, ...] = ("h", "w")


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9_/]{0,5}", fullmatch=True), st.integers(0, 10**17), max_size=5))
def test_extents_round_trip(wanted: dict[str, int]) -> None:
    joined = ",".join(f"{k}={v}" for k, v in wanted.items())
    assert extents([joined]) == wanted
    assert extents([f"{k}={v}" for k, v in wanted.items()]) == wanted


@pytest.mark.parametrize("text", ["n", "n=", "n=1.5", "n=-1", "=3", "n=3,n=4", "n=٣", "n=9999999999999999999999"])
def test_extents_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        extents([text])


def test_a_value_may_hold_equals_signs() -> None:
    assert pairs("--set", ["image=a=b.png"]) == {"image": "a=b.png"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        ("3", 3),
        ("[[1, 2], [3, 4]]", [[1, 2], [3, 4]]),
        ("true", True),
        ("inf", float("inf")),
        ("-inf", -float("inf")),
        ("1e-3", 1e-3),
    ],
)
def test_literals(text: str, value: object) -> None:
    assert read(text, Input()) == value


@pytest.mark.parametrize("text", ["hello", "", "{}", "null", '"text"', "[1, 2", "[" * 100000])
def test_what_is_no_literal(text: str) -> None:
    with pytest.raises(UsageError):
        read(text, Input())


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_npy_npz_and_json_keep_values(tmp_path: Path, dtype: str) -> None:
    array = (np.arange(12).reshape(3, 4) % 3).astype(dtype)
    for suffix in (".npy", ".npz"):
        (tmp_path / f"a{suffix}").write_bytes(encode(array, Path(f"a{suffix}"))[0])
        found = read(str(tmp_path / f"a{suffix}"), Input(dtype=dtype))
        assert found.dtype == array.dtype and np.array_equal(found, array)
    (tmp_path / "a.json").write_bytes(encode(array, Path("a.json"))[0])
    assert read(str(tmp_path / "a.json"), Input(dtype=dtype)) == array.tolist()


def test_an_npz_of_several_arrays_goes_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(encode_all({"x": np.zeros(2), "y": np.ones(2)}))
    assert read(str(tmp_path / "a.npz"), Input("x")).sum() == 0
    assert read(str(tmp_path / "a.npz"), Input("y")).sum() == 2
    assert read(f"{tmp_path / 'a.npz'}:y", Input("z")).sum() == 2
    with pytest.raises(RunError, match="it has x, y"):
        read(str(tmp_path / "a.npz"), Input("z"))


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], object), allow_pickle=True)
    with pytest.raises(RunError, match="cannot be read"):
        read(str(tmp_path / "a.npy"), Input())


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.png", "a.json"])
@pytest.mark.parametrize("data", [b"", b"nonsense", b"\x93NUMPY\x01\x00", b"\x89PNG\r\n\x1a\n", b"PK\x03\x04"])
def test_damaged_files_are_told_in_a_sentence(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RunError, match="cannot be read"):
        read(str(tmp_path / name), Input())
    with pytest.raises(RunError, match="no such file"):
        read(str(tmp_path / f"absent_{name}"), Input())


def test_files_that_claim_too_much(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 999), }".ljust(117) + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + header)
    (tmp_path / "a.png").write_bytes(b"\x89PNG")
    (tmp_path / "a.json").write_bytes(b"[" * 100_000)
    for name, said in (("a.npy", "not enough memory"), ("a.png", "it is no PNG picture"), ("a.json", "recursion")):
        with pytest.raises(RunError, match=said):
            read(str(tmp_path / name), Input())


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int32"])
def test_pictures_round_trip(tmp_path: Path, dtype: str) -> None:
    grey = np.arange(256, dtype=np.uint8).reshape(16, 16)
    array = (grey / np.float64(255)).astype(dtype) if dtype.startswith("float") else grey.astype(dtype)
    data, remark = encode(array, Path("a.png"))
    (tmp_path / "a.png").write_bytes(data)
    found = read(str(tmp_path / "a.png"), Input(dtype=dtype))
    assert remark == "" and found.dtype == dtype and np.allclose(found, array, atol=1e-7)


def test_colours_and_depth(tmp_path: Path) -> None:
    colours = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    (tmp_path / "a.png").write_bytes(encode(colours, Path("a.png"))[0])
    assert np.array_equal(read(str(tmp_path / "a.png"), Input(dtype="uint8", shape=("h", "w", 3))), colours)
    assert read(str(tmp_path / "a.png"), Input(shape=("h", "w", 1))).shape == (4, 4, 1)
    assert read(str(tmp_path / "a.png"), Input(shape=("h", "w", 4))).shape == (4, 4, 4)
    assert read(str(tmp_path / "a.png"), Input(dtype="bool")).dtype == bool
    deep = np.arange(16, dtype=np.uint16).reshape(4, 4) * 4000
    (tmp_path / "b.png").write_bytes(encode(deep, Path("b.png"))[0])
    assert np.array_equal(read(str(tmp_path / "b.png"), Input(dtype="uint16")), deep)
    assert np.allclose(read(str(tmp_path / "b.png"), Input()), deep / 65535)
    with pytest.raises(RunError, match="a picture has 2 axes"):
        read(str(tmp_path / "a.png"), Input(shape=("n",)))


def test_values_outside_a_picture_are_clipped_and_said() -> None:
    data, remark = encode(np.array([[-1, 0.5], [2, np.nan]], np.float32), Path("a.png"))
    assert data and remark == "a.png: 3 of 4 values lie outside 0..1 and were clipped"
    with pytest.raises(RunError, match="no picture"):
        encode(np.zeros(3), Path("a.png"))
    with pytest.raises(UsageError):
        encode(np.zeros(3), Path("a.txt"))


def test_names_of_results() -> None:
    a = np.zeros(1)
    assert list(leaves(a)) == ["out"]
    assert list(leaves({"a": a, "b": [a, (a, a)]})) == ["a", "b/0", "b/1/0", "b/1/1"]


def test_short_texts() -> None:
    assert short(np.array([1, 2])) == "int64[2]  [1, 2]"
    assert short(np.zeros((4, 4), np.float32)) == "float32[4, 4]  min 0, max 0, mean 0"
    assert short(np.full((4, 4), np.nan)).endswith("16 not finite")
    assert short(np.ones((4, 4), bool)) == "bool[4, 4]  16 of 16 true"
    assert table(("a", "n"), [["x", "1"], ["long", "10"]]) == "a      n\nx      1\nlong  10"
    assert (size(10), size(2048), size(3 << 20)) == ("10 B", "2.0 KiB", "3.0 MiB")
    assert (seconds(2), seconds(0.0123), seconds(4.5e-6), seconds(1e-9)) == ("2 s", "12.3 ms", "4.5 us", "0.001 us")
