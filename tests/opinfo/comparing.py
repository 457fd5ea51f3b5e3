"""One sample: the value and the gradient of an operator in the language, run by the interpreter in float64 or complex128, beside PyTorch's.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import fluorite as fl
import numpy as np
import torch

from .left_out import NotOffered

Array = np.ndarray[Any, Any]
EPS = float(np.finfo(np.float64).eps)
ROUNDINGS = 256
"""Of the largest magnitude of a tensor, for each of the elements that may enter an element of it."""
COARSE = {("nn.functional.hardsigmoid", "gradient"): 2.0**29}
"""Where PyTorch itself has a constant in float32: how much coarser that is."""
HERMITIAN = ("linalg.cholesky",)
"""What is a function of Hermitian matrices: of the gradient by one the Hermitian part counts, and PyTorch's may have another one too."""


@dataclass
class Found:
    """Of one operator: how many samples were run, of how many the gradient too, which were left out and why, and the worst error, as a
    share of what rounding may do."""

    name: str
    own: str
    ran: int = 0
    gradients: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    worst: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def row(self) -> str:
        left = ", ".join(f"{n} {why}" for why, n in self.left_out.most_common())
        verdict = f"{len(self.wrong)} WRONG" if self.wrong else "ok"
        return f"{self.name:44} {self.own:26} {self.ran:4} {self.gradients:4} {self.worst:9.2g} {verdict:9} {left}".rstrip()


def compare(op: Any, own: str, call: Callable[..., Any], most: int | None = None, elements: int = 4096) -> Found:
    """An operator on PyTorch's samples of it, `most` of them of each type, of at most so many elements."""
    found = Found(f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}", own)
    real = next((d for d in (torch.float64, torch.int64, torch.bool) if d in op.dtypes), None)
    types = [d for d in (real, torch.complex128) if d in op.dtypes]
    if not types:
        found.left_out["of other types"] += 1
    for dtype in types:
        _compare_in(found, op, call, dtype, None if most is None else found.ran + most, elements)
    return found


def _compare_in(found: Found, op: Any, call: Callable[..., Any], dtype: Any, most: int | None, elements: int) -> None:
    torch.manual_seed(0)
    differentiable = dtype in (torch.float64, torch.complex128) and op.supports_autograd
    for n, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=differentiable)):
        if most is not None and found.ran >= most:
            break
        operands = [t for t in flat((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor)]
        if sum(t.numel() for t in operands) > elements:
            found.left_out["large"] += 1
            continue
        try:
            one(found, n, op, call, sample, operands)
        except NotOffered as reason:
            found.left_out[str(reason)] += 1
        except fl.FluoriteError as error:
            if error.problems[0].code == "A211":
                found.left_out["complex numbers"] += 1
                continue
            if error.problems[0].code == "A302" and any(t.ndim == 0 for t in operands):
                found.left_out["an axis of a number"] += 1
                continue
            found.wrong.append(f"{found.name} sample {n} {shown(sample)}: refused: {error.problems[0].text()}")
        except (TypeError, ValueError, KeyError, IndexError) as error:  # an argument that the adapter does not know
            found.wrong.append(f"{found.name} sample {n} {shown(sample)}: {type(error).__name__}: {error}")


def one(found: Found, number: int, op: Any, call: Callable[..., Any], sample: Any, operands: list[torch.Tensor]) -> None:
    """Compares one sample. Raises NotOffered, FluoriteError."""
    arrays = [as_array(t) for t in operands]
    if any(a.ndim > 8 for a in arrays):
        raise NotOffered("more than eight axes")
    truth = [t for t in flat(op(sample.input, *sample.args, **sample.kwargs)) if isinstance(t, torch.Tensor)]
    wrt = [k for k, t in enumerate(operands) if t.requires_grad]
    smooth = [t for t in truth if t.requires_grad]
    g = np.random.default_rng(number)

    def applied(*given: Any) -> Any:
        left = iter(given)
        return list(results(call, sample, lambda _: next(left)))

    value = model(applied, arrays).run(*arrays)
    check(found, number, sample, "value", [as_array(t) for t in truth], value, sum(a.size for a in arrays))
    found.ran += 1
    if not wrt or not smooth:
        return
    cotangents = [torch.from_numpy(cotangent(g, t)) for t in smooth]
    wanted = torch.autograd.grad(smooth, [operands[k] for k in wrt], cotangents, allow_unused=True)
    places = [k for k, t in enumerate(truth) if t.requires_grad]

    def pulled(*given: Any) -> Any:
        inside, arriving = given[: len(arrays)], given[len(arrays) :]

        def of_floats(*floats: Any) -> Any:
            whole = list(inside)
            for k, f in zip(wrt, floats, strict=True):
                whole[k] = f
            out = applied(*whole)
            return [out[k] for k in places]

        _, pull = fl.vjp(of_floats, *[inside[k] for k in wrt])
        return list(pull(list(arriving)))

    operands_and_seeds = [*arrays, *[c.numpy() for c in cotangents]]
    gradients = model(pulled, operands_and_seeds).run(*operands_and_seeds)
    expected = [np.zeros(arrays[k].shape, arrays[k].dtype) if w is None else as_array(w) for k, w in zip(wrt, wanted, strict=True)]
    if found.name in HERMITIAN:
        expected, gradients = ([(a + np.swapaxes(a, -1, -2).conj()) / 2 for a in side] for side in (expected, gradients))
    scale = max((float(np.abs(a).max(initial=0.0)) for c in cotangents for a in [c.numpy()]), default=0.0)
    check(found, number, sample, "gradient", expected, gradients, sum(a.size for a in operands_and_seeds), scale)
    found.gradients += 1


def results(call: Callable[..., Any], sample: Any, tensor: Callable[[Any], Any]) -> Iterator[Any]:
    """What the operator makes of the sample with its tensors replaced, one after the other."""
    made = call(replaced(sample.input, tensor), *replaced(tuple(sample.args), tensor), **replaced(dict(sample.kwargs), tensor))
    yield from flat(made)


def check(
    found: Found, number: int, sample: Any, what: str, expected: list[Array], got: list[Array], terms: int, scale: float = 0.0
) -> None:
    if len(expected) > len(got):
        got = [*got, *[np.zeros(0)] * (len(expected) - len(got))] if found.own not in ("cumulative_max", "cumulative_min") else got
    for want, have in zip(expected, got, strict=False):
        why = f"shape {list(have.shape)}, expected {list(want.shape)}" if have.shape != want.shape else ""
        if not why:
            share = distance(want, have, terms, scale) / COARSE.get((found.name, what), 1)
            found.worst = max(found.worst, share)
            why = f"at {share:.3g} of its tolerance" if not share <= 1 else ""
        if why:
            found.wrong.append(f"{found.name} sample {number} {shown(sample)}: {what} {why}")


def distance(want: Array, have: Array, terms: int, least: float = 0.0) -> float:
    """The largest error as a share of what is allowed: nothing for integers, roundings of the largest magnitude for floats, which is at
    least `least`: terms of that size may have cancelled."""
    if not want.size:
        return 0.0
    if want.dtype.kind not in "fc":
        return 0.0 if np.array_equal(want, have) else float("inf")
    with np.errstate(all="ignore"):
        same = (want == have) | (np.isnan(want) & np.isnan(have))
        off = np.where(same, 0.0, np.abs(want - have))
        scale = float(np.max(np.abs(want), where=np.isfinite(want), initial=0.0))
    allowed = ROUNDINGS * EPS * (terms + 1) * max(scale, least, float(np.finfo(np.float64).tiny))
    worst = float(np.max(np.where(np.isnan(off), np.inf, off)))
    return worst / allowed


def model(fn: Callable[..., Any], arrays: list[Array]) -> fl.Graph:
    """fn as a graph of inputs such as these."""
    names = [f"x{k}" for k in range(len(arrays))]
    specs = {n: fl.Spec(a.dtype.name, tuple("abcdefgh"[: a.ndim]), a.shape) for n, a in zip(names, arrays, strict=True)}

    def call(**given: Any) -> Any:
        return fn(*given.values())

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    )
    return fl.trace(call, inputs=specs)


def as_array(t: torch.Tensor) -> Array:
    return np.ascontiguousarray(t.detach().resolve_conj().resolve_neg().numpy()).reshape(t.shape)


def cotangent(g: np.random.Generator, t: torch.Tensor) -> Array:
    """Something that arrives at each element, complex where these are."""
    made = np.asarray(g.standard_normal(tuple(t.shape)))
    return np.asarray(made + 1j * g.standard_normal(tuple(t.shape)) if t.is_complex() else made)


def flat(tree: Any) -> Iterator[Any]:
    match tree:
        case dict():
            for v in tree.values():
                yield from flat(v)
        case list() | tuple():
            for v in tree:
                yield from flat(v)
        case slice():
            return
        case _:
            yield tree


def replaced(tree: Any, tensor: Callable[[Any], Any]) -> Any:
    match tree:
        case dict():
            return {k: replaced(v, tensor) for k, v in tree.items()}
        case torch.Size():
            return tuple(tree)
        case list():
            return [replaced(v, tensor) for v in tree]
        case tuple():
            return tuple(replaced(v, tensor) for v in tree)
        case torch.Tensor():
            return tensor(tree)
    return tree


def shown(sample: Any) -> str:
    """The sample with shapes for tensors."""
    args = replaced((sample.input, *sample.args), lambda t: f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}")
    options = replaced(dict(sample.kwargs), lambda t: f"{list(t.shape)}")
    return ", ".join([*map(str, args), *(f"{k}={v}" for k, v in options.items())])
