"""Initial values, to the last bit: they are functions of the seed and the path alone, on every machine."""

from __future__ import annotations

from typing import Any

import fluorite as fl
import numpy as np
import pytest
from fluorite.algo import drawing, init
from fluorite.algo.parameters import initial_parameters
from operator_running import near
from scipy import special

HEX = {
    init.normal(0.5): (
        "-0x1.0740bdbfeba2ap-2 0x1.07e9ca910c318p-1 -0x1.02ae3eccf376ep-1 -0x1.dd61edf146acbp-1 0x1.48781c1891829p-1 -0x1.a008fd46218b1p-1"
    ),
    init.truncated_normal(1.0): (
        "-0x1.f47d8d84d8337p-2 0x1.ee5095b5f03d6p-1 -0x1.e4f1120184cdfp-1 -0x1.9f23314625779p+0 0x1.2f71aa1f694a4p+0 -0x1.75326c0b3aa4cp+0"
    ),
    init.uniform(-1, 1): (
        "-0x1.924aec2454ec0p-2 0x1.6513e80eeaf82p-1 -0x1.601e346a23e7ep-1 -0x1.e025a25a57ee0p-1 0x1.99dff92ef4114p-1 -0x1.caaf0916a4b88p-1"
    ),
    init.kaiming_uniform(): (
        "-0x1.1c76c0502c581p-1 0x1.f8fbf53922422p-1 -0x1.f1f854180d000p-1 -0x1.5383e4859ed58p+0 0x1.21d34810e8813p+0 -0x1.44569fea6d031p+0"
    ),
    init.glorot_normal(): (
        "-0x1.4cfdd2f145712p-2 0x1.4dd3a84459127p-1 -0x1.4735403384362p-1 -0x1.2dec5890b7a8ep+0 0x1.9f7bfafa208f9p-1 -0x1.071fab71c05a3p+0"
    ),
    init.orthogonal(): (
        "-0x1.337f6b094457cp-2 0x1.5d68bebd1a9edp-2 -0x1.2e283284abccfp-1 -0x1.99a66f74c2d6cp-1 0x1.7facc5a273997p-1 -0x1.f9358b88ffb16p-2"
    ),
}


@pytest.mark.parametrize("make", HEX, ids=repr)
def test_bits(make: init.Initializer) -> None:
    values = make(np.random.Generator(np.random.Philox(key=1)), (3, 2))
    assert " ".join(float(v).hex() for v in values.ravel()) == HEX[make]


def test_parameters_of_a_program() -> None:
    class Net(fl.Program):
        def __init__(self) -> None:
            self.layer = fl.nn.Linear(3, 2)

        @fl.method
        def run(self, x: fl.f32[fl.Tensor, "n", 3]) -> Any:
            return self.layer(x)

    drawn = initial_parameters(fl.trace(Net), 5)["layer/w"]
    wanted = (
        "-0x1.f025e20000000p-2 -0x1.deb1760000000p-4 0x1.43f03c0000000p-1 0x1.e71c5c0000000p-2 -0x1.2852080000000p-1 0x1.7723580000000p-2"
    )
    assert drawn.dtype == np.float32 and " ".join(float(v).hex() for v in drawn.ravel()) == wanted


def test_quantiles_logarithms_and_factors() -> None:
    p = np.concatenate([np.linspace(1e-15, 1 - 1e-15, 10001), 10.0 ** -np.arange(2, 300, 3)])
    np.testing.assert_allclose(drawing.quantile(p), special.ndtri(p), rtol=1e-14, atol=1e-15)
    x = 10.0 ** np.linspace(-300, 300, 10001)
    np.testing.assert_allclose(drawing.logarithm(x), np.log(x), rtol=1e-15, atol=1e-15)
    a = np.random.default_rng(0).normal(size=(40, 17))
    q, r = np.linalg.qr(a)
    near(drawing.orthonormal(a), q * np.sign(np.diagonal(r)), 1e-13)
    near(np.abs(drawing.orthonormal(np.zeros((3, 2)))), np.eye(3, 2), 0)


def test_distributions() -> None:
    generator = np.random.default_rng(0)
    some = np.asarray(init.truncated_normal(0.5, 1.0)(generator, (300, 300)))
    assert 0 <= some.min() < 0.01 and 1.99 < some.max() <= 2 and abs(some.std() / 0.5 - 0.8796) < 0.005 and abs(some.mean() - 1) < 0.005
    for make, deviation in ((init.lecun_normal(), 0.05), (init.lecun_uniform(), 0.05), (init.normal(2.0, 1.0), 2.0)):
        assert abs(np.asarray(make(generator, (400, 300))).std() / deviation - 1) < 0.01
    assert init.normal()(generator, ()).shape == () and init.normal()(generator, (0, 3)).shape == (0, 3)
