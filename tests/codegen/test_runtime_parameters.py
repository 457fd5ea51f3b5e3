"""Parameters: packed once, assigned, saved and loaded by the algorithm's names."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import runtime_kernels as hand
import safetensors.numpy
from fluorite.algo.errors import ArtifactError, RunError
from fluorite.codegen.runtime import Model, parse, weights
from fluorite.codegen.runtime.memory import aligned
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

F32 = np.float32


@pytest.fixture
def model(kernels: Callable[[str], Any]) -> Model:
    """y = x + 2 w + b, where 2 w is packed once."""
    buffers = [
        hand.buffer("input", "x", 4),
        hand.buffer("parameter", "layer/w", 4),
        hand.buffer("constant", "w2", 4),
        hand.buffer("parameter", "layer/b", 4),
        hand.buffer("temporary", "t", 4),
        hand.buffer("output", "y", 4),
    ]
    spec = hand.method(buffers, [hand.step("add4", 0, 2, 4), hand.step("add4", 4, 3, 5)], setup=[hand.step("double4", 1, 2)])
    listed = [{"name": n, "dtype": "float32", "shape": [4]} for n in ("layer/w", "layer/b")]
    arrays = {"layer/w": aligned((4,), np.dtype(F32)), "layer/b": aligned((4,), np.dtype(F32))}
    arrays["layer/w"][:], arrays["layer/b"][:] = 1, 10
    return Model(parse(hand.manifest("net", listed, infer=spec, other=spec)), kernels, arrays, 0)


def first(model: Model) -> float:
    return float(model.infer(np.zeros(4, F32))[0])


def test_assigning_is_seen_by_every_method(model: Model) -> None:
    assert first(model) == 12
    model.parameters["layer/w"] = np.full(4, 3, F32)
    assert first(model) == 16 and model.other(np.ones(4, F32))[0] == 17
    assert model.parameters["layer/w"].tolist() == [3] * 4


def test_parameters_are_a_read_only_mapping_of_fixed_names(model: Model) -> None:
    assert list(model.parameters) == ["layer/w", "layer/b"] and len(model.parameters) == 2
    with pytest.raises(ValueError, match="read-only"):
        model.parameters["layer/w"][0] = 5
    with pytest.raises(KeyError):
        _ = model.parameters["layer/x"]
    with pytest.raises(RunError, match="cannot be deleted"):
        del model.parameters["layer/w"]
    with pytest.raises(RunError, match=r"no parameter layer/ww; did you mean layer/w$"):
        model.parameters["layer/ww"] = np.ones(4, F32)
    with pytest.raises(RunError, match=r"layer/w has shape \(5,\), expected float32\[4\]"):
        model.parameters["layer/w"] = np.ones(5, F32)
    with pytest.raises(RunError, match=r"layer/w is float64, expected float32\[4\]"):
        model.parameters["layer/w"] = np.ones(4)
    assert first(model) == 12


def test_a_copy_has_parameters_of_its_own(model: Model) -> None:
    twin = model.copy()
    twin.parameters["layer/b"] = np.zeros(4, F32)
    assert (first(model), first(twin)) == (12, 2)


def test_what_is_saved_loads_again(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    model.save(path)
    model.parameters["layer/w"] = np.zeros(4, F32)
    assert first(model) == 10
    model.load(path)
    assert first(model) == 12


def test_loading_is_all_or_nothing(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    safetensors.numpy.save_file({"layer/w": np.zeros(4, F32), "layer/b": np.zeros(3, F32), "extra": np.zeros(1, F32)}, path)
    with pytest.raises(RunError) as caught:
        model.load(path)
    assert sorted(str(caught.value).splitlines()) == [
        f"{path}: layer/b has shape (3,), expected float32[4]",
        f"{path}: the model has no parameter extra",
    ]
    assert first(model) == 12
    safetensors.numpy.save_file({"w": np.zeros(4, F32), "extra": np.zeros(1, F32)}, path)
    with pytest.raises(RunError, match=r"has no tensor layer/w\n.*has no tensor layer/b"):
        model.load(path)
    model.load(path, strict=False, rename={"w": "layer/w"})
    assert first(model) == 10


def test_weights_under_other_names(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    safetensors.numpy.save_file({"net.layer.weight": np.zeros(4, F32), "net.layer.bias": np.full(4, 5, F32)}, path)
    names = {"net.layer.weight": "layer/w", "net.layer.bias": "layer/b"}
    for rename in (names, names.__getitem__):
        model.parameters["layer/b"] = np.ones(4, F32)
        model.load(path, rename=rename)
        assert model.parameters["layer/b"].tolist() == [5] * 4
    with pytest.raises(RunError, match="has 2 tensors that are renamed to layer/w"):
        model.load(path, strict=False, rename=lambda _: "layer/w")
    assert model.parameters["layer/b"].tolist() == [5] * 4


def test_memory_counts_weights_temporaries_and_results(model: Model) -> None:
    assert model.memory(method="infer") == 2 * 16 + 16 + 64 + 16
    with pytest.raises(RunError, match="several methods; call one of infer, other"):
        model(np.zeros(4, F32))


DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8, np.uint16, np.int64, np.bool_]
TENSORS = st.dictionaries(
    st.text(min_size=1, max_size=8),
    st.sampled_from(DTYPES).flatmap(
        lambda d: hnp.arrays(np.uint8, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4), elements=st.integers(0, 1)).map(
            lambda a: a.astype(d)
        )
    ),
    max_size=5,
)


@given(TENSORS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_writing_then_reading_is_the_identity(tmp_path: Path, tensors: dict[str, np.ndarray[Any, Any]]) -> None:
    tensors.pop("__metadata__", None)
    path = tmp_path / "t.safetensors"
    weights.write(path, tensors)
    found = weights.read(path)
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        np.testing.assert_array_equal(found[name], array)


def test_the_format_is_the_librarys(tmp_path: Path) -> None:
    tensors = {"a": np.arange(6, dtype=F32).reshape(2, 3), "b": np.array([True, False]), "c": np.array(7, np.int64)}
    weights.write(tmp_path / "ours", tensors)
    theirs = safetensors.numpy.load_file(tmp_path / "ours")
    safetensors.numpy.save_file(tensors, tmp_path / "theirs")
    ours = weights.read(tmp_path / "theirs")
    for name, array in tensors.items():
        np.testing.assert_array_equal(theirs[name], array)
        np.testing.assert_array_equal(ours[name], array)


def _file(header: Any, body: bytes = b"") -> bytes:
    encoded = json.dumps(header).encode()
    return struct.pack("<Q", len(encoded)) + encoded + body


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"junk",
        b"\xff" * 64,
        _file([]),
        _file({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234"),
        _file({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"1234"),
        _file({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, -4]}}),
        _file({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}, b"12345678"),
        _file({"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}, b"1234"),
        _file({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, b"12345678"),
        _file({"a": 5}),
        (100_000).to_bytes(8, "little") + b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_a_sentence(model: Model, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match="is not a whole safetensors file"):
        model.load(path)
    with pytest.raises(ArtifactError, match="cannot be read: No such file"):
        model.load(tmp_path / "absent")
