"""Data sets of files, and of samples of scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fluorite as fl
import ml_dtypes
import numpy as np
import pytest
from fluorite.algo.errors import RunError
from PIL import Image
from safetensors.numpy import save_file

data = fl.data


def values(source: Any) -> list[Any]:
    return [np.asarray(e["x"] if isinstance(e, dict) else e[0] if isinstance(e, tuple) else e).tolist() for e in source]


def test_csv(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text('\ufeffa, "b", label\n1,2.5, 7\n\n-3,"1e2",0\nnan,inf,-1\n')
    table = data.csv(file, columns={"x": range(2), "y": "label"}, dtype={"y": fl.i32})
    x, y = (np.stack([e[k] for e in table]) for k in "xy")
    assert (x.dtype, y.dtype) == (np.float32, np.int32) and y.tolist() == [7, 0, -1]
    np.testing.assert_array_equal(x, np.array([[1, 2.5], [-3, 100], [np.nan, np.inf]], np.float32))
    assert [e["x"].tolist() for e in data.csv(file, columns={"x": ["label", "a"]}).take(1)] == [[7.0, 1.0]]
    assert [e["x"].tolist() for e in data.csv(file, columns={"x": [-1]}).take(1)] == [[7.0]]
    (tmp_path / "s.csv").write_text("1;2\n3;4\n")
    assert values(data.csv(tmp_path / "s.csv", columns={"x": [1]}, delimiter=";", batch_size=2)) == [[[2.0], [4.0]]]


BAD_CSV = {
    "1,2\n3\n": ("R203", ":2: ", "1 cells", "the first row has 2"),
    "1,2\n3,four\n": ("R203", ":2: ", "column 2 is 'four'", "x is float32"),
    "a,b\n1,2\n\n3,\n": ("R203", ":4: ", "column 2 is empty"),
    "1,1_0\n": ("R203", ":1: ", "column 2 is '1_0'"),
    '1,"2\n': ("R203", "t.csv:", "cannot be split"),
    "": ("R204", "has no rows"),
    "a,b\n": ("R204", "has no rows"),
    "1\n2\n": ("R201", "no column 1"),
}


@pytest.mark.parametrize("text", BAD_CSV)
def test_bad_csv_is_a_sentence_with_the_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    table = data.csv(tmp_path / "t.csv", columns={"x": [0, 1]})
    with pytest.raises(RunError) as refused:
        next(iter(table))
    code, *words = BAD_CSV[text]
    assert refused.value.problems[0].code == code and all(w in str(refused.value) for w in words)


def test_csv_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    absent = data.csv(tmp_path / "absent.csv", columns={"x": 0})  # it may be made before the first step
    with pytest.raises(RunError, match=r"absent.csv cannot be read\n  no such file"):
        next(iter(absent))
    (tmp_path / "b.csv").write_bytes(b"1,\xff\n")
    with pytest.raises(RunError, match="no text in UTF-8"):
        next(iter(data.csv(tmp_path / "b.csv", columns={"x": 0})))
    (tmp_path / "n.csv").write_text("a\n1\n")
    with pytest.raises(RunError, match="it has a"):
        next(iter(data.csv(tmp_path / "n.csv", columns={"x": "c"})))
    (tmp_path / "i.csv").write_text("1\n2.5\n")
    with pytest.raises(RunError, match=r"i.csv:2: .*'2.5'\n  x is int64"):
        next(iter(data.csv(tmp_path / "i.csv", columns={"x": 0}, dtype=fl.i64)))
    (tmp_path / "u.csv").write_text("300\n")
    with pytest.raises(RunError, match="x is uint8"):
        next(iter(data.csv(tmp_path / "u.csv", columns={"x": 0}, dtype=fl.u8)))


def test_npy_files_are_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(20, dtype=np.int16).reshape(10, 2))
    np.save(tmp_path / "y.npy", np.arange(10.0))
    source = data.npy(x=tmp_path / "x.npy", y=tmp_path / "y.npy", batch_size=4, shuffle=0)
    assert isinstance(source.source.source.opened["x"], np.memmap)  # type: ignore[attr-defined]
    for batch in source:
        assert type(batch["x"]) is np.ndarray and (batch["x"][:, 0] == 2 * batch["y"]).all()
    np.save(tmp_path / "o.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    (tmp_path / "t.npy").write_bytes((tmp_path / "y.npy").read_bytes()[:-4])
    for name, words in {"o.npy": "no .npy file", "a.npz": "archive", "t.npy": "no .npy file", "absent.npy": "no such file"}.items():
        with pytest.raises(RunError, match=words):
            next(iter(data.npy(x=tmp_path / name)))
    np.save(tmp_path / "z.npy", np.zeros(3))
    with pytest.raises(RunError, match="y has 10, z has 3 rows"):
        next(iter(data.npy(y=tmp_path / "y.npy", z=tmp_path / "z.npy")))


def test_safetensors_files_are_mapped(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(ml_dtypes.bfloat16)
    save_file({"images": x.view(np.uint16), "labels": np.arange(7, dtype=np.int32)}, tmp_path / "raw.safetensors")
    raw = (tmp_path / "raw.safetensors").read_bytes()
    file = tmp_path / "d.safetensors"
    longer = (int.from_bytes(raw[:8], "little") + 1).to_bytes(8, "little")
    file.write_bytes(longer + raw[8:].replace(b'"U16"', b'"BF16"'))
    found = {k: np.stack([e[k] for e in data.safetensors(file)]) for k in ("images", "labels")}
    assert found["images"].dtype == ml_dtypes.bfloat16 and found["images"].tobytes() == x.tobytes()
    assert found["labels"].tolist() == list(range(7))
    assert [e["y"].tolist() for e in data.safetensors(file, {"y": "labels"}, batch_size=7)] == [list(range(7))]
    assert [e.keys() for e in data.safetensors(tmp_path / "none").moved(file).take(1)] == [{"images", "labels"}]
    with pytest.raises(RunError, match="no tensor 'digits'"):
        next(iter(data.safetensors(file, {"y": "digits"})))
    (tmp_path / "cut.safetensors").write_bytes(raw[:-3])
    with pytest.raises(RunError, match="no whole safetensors file"):
        next(iter(data.safetensors(tmp_path / "cut.safetensors")))
    with pytest.raises(RunError, match=r"absent.*cannot be read"):
        next(iter(data.safetensors(tmp_path / "absent")))


def test_folders_of_images(tmp_path: Path) -> None:
    for label, level in (("cat", 51), ("dog", 204)):
        (tmp_path / label).mkdir()
        for n in range(2):
            Image.new("L", (10 + n, 6), level).save(tmp_path / label / f"{n}.png")
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    pictures, labels = next(iter(data.images(tmp_path, size=(4, 5), channels=3, batch_size=4)))
    assert pictures.shape == (4, 4, 5, 3) and pictures.dtype == np.float32 and labels.tolist() == [0, 0, 1, 1] and labels.dtype == np.int32
    np.testing.assert_allclose(pictures[:, 0, 0, 0], [0.2, 0.2, 0.8, 0.8], atol=1e-6)
    alone = data.images(tmp_path / "dog", size=(6, 10), channels=1)
    assert [e[0].shape for e in alone] == [(6, 10, 1)] * 2 and all(len(e) == 1 for e in alone)
    (tmp_path / "dog" / "2.png").write_bytes((tmp_path / "dog" / "1.png").read_bytes()[:40])
    with pytest.raises(RunError, match=r"2\.png"):
        list(alone.moved(tmp_path / "dog"))
    (tmp_path / "loose.png").write_bytes(b"")
    with pytest.raises(RunError, match="pictures and folders"):
        next(iter(data.images(tmp_path, size=(4, 4))))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="has no pictures"):
        next(iter(data.images(tmp_path / "empty", size=(4, 4))))
    with pytest.raises(RunError, match="cannot be read"):
        next(iter(data.images(tmp_path / "absent", size=(4, 4))))


def test_samples_of_scikit_learn() -> None:
    (pixels,) = next(iter(data.digits(batch_size=64, shuffle=1)))
    assert pixels.shape == (64, 64) and pixels.dtype == np.float32 and pixels.min() >= 0 and pixels.max() == 1
    sizes = {part: len(data.digits(part=part)) for part in ("all", "train", "test")}
    assert sizes == {"all": 1797, "train": 1438, "test": 359}
    rows = {part: {(*x.tolist(), int(y)) for x, y in data.digits(part=part, labels=True)} for part in sizes}
    assert rows["train"] | rows["test"] == rows["all"] and not rows["train"] & rows["test"]
    patients = next(iter(data.diabetes(batch_size=442)))
    assert patients["x"].shape == (442, 10) and patients["y"].shape == (442, 1) and patients["y"].max() == 346
    np.testing.assert_allclose(patients["x"].std(0), 1, atol=1e-5)
