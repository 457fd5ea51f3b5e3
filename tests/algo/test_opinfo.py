"""A slice of ``python -m tests.opinfo``: operators and their gradients beside PyTorch's, where it is installed."""

from __future__ import annotations

import pytest
from fluorite.algo import ops
from opinfo.table import ABSENT, TABLE

SLICE = [
    "add", "amax", "std", "cross_entropy", "conv2d", "layer_norm", "sort", "scaled_dot_product_attention", "fft.rfft", "cumprod",
    "__getitem__", "linalg.vector_norm",
]  # fmt: skip


def test_every_operator_is_compared_or_said_not_to_be() -> None:
    compared = {own for own, _ in TABLE.values() if not own.startswith("linalg.")}
    assert set(ops.__all__) - {*ops.ALIASES} == (compared - {"getitem"}) | {*ABSENT}
    assert not compared & {*ABSENT}


@pytest.mark.filterwarnings("ignore")
def test_a_slice_agrees() -> None:
    pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'fluorite[torch]'")
    pytest.importorskip("expecttest", reason="PyTorch's samples need it: pip install 'fluorite[torch]'")
    from opinfo.__main__ import entries
    from opinfo.comparing import compare

    found = [compare(op, *TABLE[op.name], most=2) for op in entries([n for s in SLICE for n in (s, f"nn.functional.{s}")])]
    assert [w for f in found for w in f.wrong] == []
    assert sum(f.gradients for f in found) > 20


@pytest.mark.filterwarnings("ignore")
def test_a_wrong_gradient_is_found() -> None:
    pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'fluorite[torch]'")
    pytest.importorskip("expecttest", reason="PyTorch's samples need it: pip install 'fluorite[torch]'")
    import fluorite as fl
    from opinfo.__main__ import entries
    from opinfo.comparing import compare

    (op,) = entries(["tanh"])
    held = compare(op, "tanh", lambda x: fl.tanh(fl.stop_gradient(x)) + x - fl.stop_gradient(x))
    assert held.wrong and "gradient" in held.wrong[0]
