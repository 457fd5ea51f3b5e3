"""A generative adversarial network (Goodfellow et al., 2014) on scikit-learn's digits: two optimisers, two methods, one state."""

from __future__ import annotations

from itertools import pairwise

import fluorite as fl
from fluorite import nn

NOISE, BATCH = 16, 64


class Layers(nn.Module):
    """Linear layers with leaky rectifiers between them."""

    def __init__(self, *sizes: int) -> None:
        self.layers = [nn.Linear(a, b) for a, b in pairwise(sizes)]

    def forward(self, x: fl.Tensor) -> fl.Tensor:
        for layer in self.layers[:-1]:
            x = fl.leaky_relu(layer(x), 0.2)
        return self.layers[-1](x)


class DigitsGan(fl.Program):
    """The generator makes 64 pixels of 16 normal numbers; the critic says how real 64 pixels look."""

    def __init__(self) -> None:
        self.data = fl.data.digits(BATCH, shuffle=0, drop_last=True)
        self.generator, self.critic = Layers(NOISE, 128, 128, 64), Layers(64, 128, 128, 1)
        self.g_opt = fl.optim.Adam(1e-3, betas=(0.5, 0.999))
        self.d_opt = fl.optim.Adam(1e-3, betas=(0.5, 0.999))

    def fake(self, count: int) -> fl.Tensor:
        return fl.sigmoid(self.generator(fl.random.normal((count, NOISE))))

    @fl.method(training=True, reader="data")
    def d_step(self, real: fl.f32[fl.Tensor, 64, 64]) -> dict[str, fl.Tensor]:
        """One step of the critic: real digits and fakes apart."""
        fake = fl.stop_gradient(self.fake(BATCH))
        loss = fl.mean(fl.softplus(-self.critic(real)) + fl.softplus(self.critic(fake)), name="d_loss")
        self.d_opt.minimize(loss, params=self.critic)
        return {"d_loss": loss}

    @fl.method(training=True)
    def g_step(self) -> dict[str, fl.Tensor]:
        """One step of the generator: fakes that the critic takes for real."""
        loss = fl.mean(fl.softplus(-self.critic(self.fake(BATCH))), name="g_loss")
        self.g_opt.minimize(loss, params=self.generator)
        return {"g_loss": loss}

    @fl.method(training=True)
    def sample(self) -> fl.Tensor:
        """64 digits that nobody wrote, others in every call."""
        return self.fake(BATCH)
