"""`fluorite check`: derivatives are compared unless told otherwise."""

from __future__ import annotations

from pathlib import Path

from command_line import fluorite

WRONG = """
import fluorite as fl


def backward(x, g):
    return (g * 1.02 * x,)


def half(x):
    return x * x / 2


def wrong(x: fl.f32[fl.Tensor, "n"]):
    return fl.custom_vjp(half, lambda x: (half(x), x), backward)(x)
"""


def test_a_wrong_derivative_is_told_with_its_line(here: Path) -> None:
    (here / "wrong.py").write_text(WRONG)
    ran = fluorite("check", "wrong.py", "--extents", "n=6", "--json")
    found = {c["output"]: (c["of"], c["ok"]) for c in ran.document["result"]["cases"]}
    assert ran.code == 1 and ran.document["ok"] is False
    assert found == {
        "wrong/result/copy": ("value", True),
        "wrong by x": ("gradient", True),  # what the rule says is compiled as it says
        "wrong slope": ("slope", False),
        "wrong/half slope": ("slope", False),
    }
    ran = fluorite("check", "wrong.py")
    assert ran.code == 1 and "the derivative that half (wrong.py:14) gives by wrong/x says" in ran.out
    assert "2 wrong" in ran.out and not ran.err
    ran = fluorite("check", "wrong.py", "--no-gradients")
    assert ran.code == 0 and "slope" not in ran.out
    assert fluorite("check", "wrong.py", "--quick").code == 0


def test_mistakes_in_what_gives_a_derivative_are_the_authors(here: Path) -> None:
    (here / "wrong.py").write_text(WRONG.replace("g * 1.02 * x,", "g[0],"))
    ran = fluorite("check", "wrong.py")
    assert ran.code == 1 and "A174" in ran.err and "wrong.py:14" in ran.err
    (here / "worse.py").write_text(WRONG.replace("g * 1.02 * x,", "g * undefined,"))
    ran = fluorite("check", "worse.py")
    assert ran.code == 1 and "undefined" in ran.err and "worse.py:6" in ran.err and "Traceback" not in ran.err
