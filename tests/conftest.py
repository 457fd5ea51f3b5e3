"""Golden texts: what a test prints is compared with ``tests/golden/<test>.txt``, or written there with ``--update-golden``.

And crashes: they end the process that runs the tests, with Python's stack. And garbage: it is not looked for in TVM, nor in the tests.
"""

from __future__ import annotations

import faulthandler
import gc
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden/*.txt anew instead of comparing with them")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    """TVM's handler of crashes is put aside: it allocates memory, and waits for ever where the crash came while memory was allocated."""
    if "tvm_ffi" in sys.modules and not _handled:
        faulthandler.disable()
        faulthandler.enable(file=sys.__stderr__)
        _handled.append(True)


_handled: list[bool] = []


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """`golden(text)` compares the text with the file named after the test."""
    path = GOLDEN / (re.sub(r"\W+", "_", request.node.name).strip("_") + ".txt")

    def check(text: str) -> None:
        if request.config.getoption("--update-golden"):
            GOLDEN.mkdir(exist_ok=True)
            path.write_text(text + "\n", encoding="utf-8")
            return
        assert path.is_file(), f"{path.name} is not there: run pytest --update-golden and read what it wrote"
        assert path.read_text(encoding="utf-8") == text + "\n", f"{path.name} differs: read it, then --update-golden"

    return check
