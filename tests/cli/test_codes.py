"""Every code of every problem is explained, and none is used for two kinds of things."""

from __future__ import annotations

import re
from pathlib import Path

import fluorite as package
import pytest
from command_line import fluorite
from fluorite.cli.codes import all_codes

ROOT = Path(package.__file__).parent


def used() -> set[str]:
    text = "\n".join(
        path.read_text()
        for room in ("algo", "schedule", "codegen", "cli")
        for path in (ROOT / room).rglob("*.py")
        if path.name != "codes.py"
    )
    return set(re.findall(r'"([APBRX]\d{3})"', text))


def test_every_code_is_explained() -> None:
    assert used() - set(all_codes()) == set()


@pytest.mark.parametrize("code", ["P203", "p203", "A102", "B002", "R401", "X001"])
def test_explain_prints_a_code(code: str) -> None:
    ran = fluorite("explain", code)
    assert ran.code == 0 and ran.out.startswith(f"{code.upper()}: ") and len(ran.out) > 30


def test_explanations_are_sentences() -> None:
    assert all(text.rstrip().endswith((".", ")", "}.")) and len(text) > 20 for text in all_codes().values())
