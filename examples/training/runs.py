"""Each example trained, and the figures that say what it has learned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fluorite as fl
import numpy as np

Array = np.ndarray[Any, Any]
Figures = dict[str, float]


def fit_a_line(plan: Any) -> Figures:
    """40 passes: the squared error on held-out patients, and the part of their variance that is left."""
    from .fit_a_line import FitALine

    model = fl.compile(FitALine, plan)
    for _ in range(40):
        cost = [float(out["avg_cost"]) for out in model.epoch("train_step")]
    (error,) = model.epoch("error")
    patient = [0.8, 1, 1.3, 0.5, -0.9, -0.7, -0.9, -0.1, 0.4, -0.4]
    return {
        "cost": float(np.mean(cost)), "squared_error": float(error["squared"]),
        "of_the_variance": float(error["squared"] / error["of_the_mean"]), "one_patient": float(model.infer(patient)[0]),
    }  # fmt: skip


def digits_net(plan: Any) -> Figures:
    """12 passes: the part of the held-out digits that is recognised."""
    from .digits_net import DigitsNet

    model = fl.compile(DigitsNet, plan)
    for _ in range(12):
        loss = [float(out["loss"]) for out in model.epoch("train_step")]
    (accuracy,) = model.epoch("accuracy")
    return {"loss": float(np.mean(loss)), "accuracy": float(accuracy)}


def character_lstm(plan: Any) -> Figures:
    """160 steps: bits for each letter of the text, and the part of the letters that is foretold from the 24 before."""
    from .character_lstm import IDS, LENGTH, CharacterLstm

    model = fl.compile(CharacterLstm, plan)
    bits = [float(model.train_step()["bits"]) for _ in range(160)]
    windows = np.lib.stride_tricks.sliding_window_view(IDS, LENGTH + 1)
    foretold = model.next(windows[:, :-1]) == windows[:, -1]
    return {"bits_at_first": bits[0], "bits": float(np.mean(bits[-20:])), "foretold": float(foretold.mean())}


def digits_gan(plan: Any) -> Figures:
    """1500 steps of both: the Frechet distance of made digits from written ones; that of two halves of the written ones is 0.07."""
    from .digits_gan import DigitsGan

    model = fl.compile(DigitsGan, plan)
    written = np.concatenate([pixels for (pixels,) in fl.data.digits(64)])
    before = _frechet(written, _drawn(model))
    for _ in range(1500):
        model.d_step(), model.g_step()
    return {"distance_at_first": before, "distance": _frechet(written, _drawn(model))}


def learned_unsharp(plan: Any) -> Figures:
    """30 passes over the cameraman: how near a blurred astronaut comes to the sharp one, in decibels; and by an ordinary unsharp mask."""
    from scipy import ndimage

    from .learned_unsharp import LearnedUnsharp, blurred, photographs

    model = fl.compile(LearnedUnsharp, plan)
    for _ in range(30):
        for _ in model.epoch("train_step"):
            pass
    sharp = photographs()[1]
    soft = blurred(sharp)
    ordinary = np.clip(soft + 1.5 * (soft - ndimage.gaussian_filter(soft, 2.0)), 0, 1)
    decibels = {"blurred": soft, "ordinary": ordinary, "learned": model.sharpen(soft)}
    return {name: float(-10 * np.log10(np.mean((image - sharp) ** 2))) for name, image in decibels.items()}


RUNS: dict[str, Callable[[Any], Figures]] = {
    run.__name__: run for run in (fit_a_line, digits_net, character_lstm, digits_gan, learned_unsharp)
}


def _drawn(model: Any) -> Array:
    return np.concatenate([model.sample() for _ in range(28)])


def _frechet(a: Array, b: Array) -> float:
    """Between two clouds of points, taken for normal ones (Dowson and Landau, 1982)."""
    (m, s), (n, t) = ((x.mean(0, dtype=np.float64), np.cov(x.T.astype(np.float64))) for x in (a, b))
    roots = np.sqrt(np.linalg.eigvals(s @ t).real.clip(0))
    return float(((m - n) ** 2).sum() + np.trace(s + t) - 2 * roots.sum())


__all__ = ["RUNS"]
