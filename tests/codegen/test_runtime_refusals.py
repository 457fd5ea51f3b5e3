"""Calls of models over kernels made by hand: a sentence for whatever does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import runtime_kernels as hand
from fluorite.codegen.runtime import Model
from fluorite.codegen.runtime.arguments import Refused, as_array
from fluorite.codegen.runtime.manifest import TensorSpec
from runtime_kernels import image, refusal

F32 = np.float32


def test_the_documented_sentence(photo: Model) -> None:
    assert refusal(lambda: photo.run(image().astype(np.float64), 1.0)) == (
        "photo.run: image is float64, expected float32[h, w]; image.astype(np.float32)"
    )


@pytest.mark.parametrize(
    ("args", "named", "sentence"),
    [
        ((), {}, "photo.run: image is missing, expected float32[h, w]\nphoto.run: amount is missing, expected float32[]"),
        ((image(),), {}, "photo.run: amount is missing, expected float32[]"),
        ((image(), 1.0, 2.0), {}, "photo.run: 3 inputs given, it takes 2: image, amount"),
        ((image(), 1.0), {"image": image()}, "photo.run: image is given twice, by position and by name"),
        (
            (image(),),
            {"amonut": 1.0},
            "photo.run: there is no input amonut; did you mean amount\nphoto.run: amount is missing, expected float32[]",
        ),
        ((image()[0], 1.0), {}, "photo.run: image has shape (5,), expected float32[h, w]"),
        ((image(), np.zeros(3, F32)), {}, "photo.run: amount has shape (3,), expected float32[]"),
        ((image(), "loud"), {}, "photo.run: amount is of type str, expected float32[]"),
        ((None, 1.0), {}, "photo.run: image is of type NoneType, expected float32[h, w]"),
        ((image().astype(np.int32), 1.0), {}, "photo.run: image is int32, expected float32[h, w]; image.astype(np.float32)"),
        ((image().astype(object), 1.0), {}, "photo.run: image is object, expected float32[h, w]"),
        ((np.ma.masked_array(image()), 1.0), {}, "photo.run: image is a masked array, expected float32[h, w]; image.filled(0)"),
        (([[1.0], [1.0, 2.0]], 1.0), {}, "photo.run: image is a list of unequal rows, expected float32[h, w]"),
        ((np.zeros((10001, 1), F32), 1.0), {}, "photo.run: h is 10001 in image, it may be 0..10000"),
        ((image(), 1.0), {"out": np.empty((3, 4), F32)}, "photo.run: out is float32[3, 4], expected float32[3, 5]"),
        ((image(), 1.0), {"out": np.empty((3, 5))}, "photo.run: out is float64[3, 5], expected float32[3, 5]"),
        ((image(), 1.0), {"out": [1]}, "photo.run: out is of type list, expected float32[3, 5]"),
    ],
)  # fmt: skip
def test_one_sentence(photo: Model, args: tuple[Any, ...], named: dict[str, Any], sentence: str) -> None:
    assert refusal(lambda: photo.run(*args, **named)) == sentence
    np.testing.assert_array_equal(photo.run(image(), 1.0), image())  # and the model goes on working


def test_extents_that_disagree(make: Callable[..., Model]) -> None:
    buffers = [hand.buffer("input", "image", "h"), hand.buffer("input", "mask", "h"), hand.buffer("output", "y", "h")]
    model = make("masked", masked=hand.method(buffers, [hand.step("add", 0, 1, 2, symbols=["h"])]))
    assert refusal(lambda: model.masked(np.zeros(5, F32), np.zeros(6, F32))) == "masked.run: h is 5 in image, but 6 in mask"


def test_fixed_and_computed_extents(make: Callable[..., Model]) -> None:
    spec = hand.add16()
    assert refusal(lambda: make("add", add=spec).add(np.zeros(15, F32), np.zeros(16, F32))) == (
        "add.run: a has shape (15,), expected float32[16]"
    )
    buffers = [hand.buffer("input", "x", ["*", 2, "n"]), hand.buffer("output", "y", ["*", 2, "n"])]
    model = make("even", even=hand.method(buffers, [hand.step("increment", 0, 1, symbols=[["*", 2, "n"]])]))
    assert model.even(np.zeros(6, F32)).shape == (6,)
    assert refusal(lambda: model.even(np.zeros(5, F32))) == "even.run: x has shape (5,), expected float32[2 * n]"


def test_multiples(make: Callable[..., Model]) -> None:
    spec = hand.chain(1) | {"symbols": {"n": {"min": 8, "max": None, "multiple": 4}}}
    model = make("m", m=spec)
    assert refusal(lambda: model.m(np.zeros(10, F32))) == "m.run: n is 10 in x, it must be a multiple of 4"
    assert refusal(lambda: model.m(np.zeros(4, F32))) == "m.run: n is 4 in x, it may be 8 or more"


@pytest.mark.parametrize(
    ("dtype", "kernel", "value", "sentence"),
    [
        ("int8", "copy_int8", [1, -128], None),
        ("int8", "copy_int8", [1, 128], "same.run: x holds a number outside int8, expected int8[n]"),
        ("int8", "copy_int8", [1.5], "same.run: x is a float, expected int8[n]"),
        ("int8", "copy_int8", [10**30], "same.run: x is object values, expected int8[n]"),
        ("int8", "copy_int8", [], None),
        ("bool", "copy_bool", [True, False], None),
        ("bool", "copy_bool", [1], "same.run: x is an integer, expected bool[n]"),
        ("bfloat16", "copy_bfloat16", [1, 2.5], None),
        ("float32", "increment", ["a"], "same.run: x is str32 values, expected float32[n]"),
    ],
)
def test_python_values_are_weak(make: Callable[..., Model], dtype: str, kernel: str, value: list[Any], sentence: str | None) -> None:
    buffers = [hand.buffer("input", "x", "n", dtype=dtype), hand.buffer("output", "y", "n", dtype=dtype)]
    model = make("same", same=hand.method(buffers, [hand.step(kernel, 0, 1, symbols=["n"])]))
    if sentence is None:
        assert model.same(value).tolist() == value
    else:
        assert refusal(lambda: model.same(value)) == sentence


def test_real_numbers_in_the_place_of_complex_ones() -> None:
    wanted = TensorSpec("z", "float32", ("n", 2), complex=True)
    for shape in ((2,), (3, 4), (2, 2, 2)):
        with pytest.raises(Refused) as caught:
            as_array("f", wanted, np.ones(shape, F32))
        assert caught.value.problem.asked == "f: z is float32, expected complex64[n]"
    assert as_array("f", wanted, np.ones((3, 2), F32)).shape == as_array("f", wanted, np.ones(3, np.complex64)).shape == (3, 2)
