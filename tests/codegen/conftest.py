"""Models over kernels that are made by hand: each called as a whole, and kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import runtime_kernels as hand
from fluorite.codegen.runtime import Model, parse
from fluorite.codegen.runtime import library as shared_libraries


@pytest.fixture(scope="module", params=[True, False], ids=["one call", "a call a kernel"])
def kernels(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    path: Path = tmp_path_factory.mktemp("kernels") / "kernels.so"
    path.write_bytes(hand.library(request.param))
    module = shared_libraries.load_kernels(path)
    return lambda name: module[name]


@pytest.fixture
def make(kernels: Callable[[str], Any]) -> Callable[..., Model]:
    def model(name: str, thread_count: int = 0, **methods: Any) -> Model:
        return Model(parse(hand.manifest(name, **methods)), kernels, {}, thread_count)

    return model


@pytest.fixture
def photo(make: Callable[..., Model]) -> Model:
    return make("photo", photo=hand.photo())
