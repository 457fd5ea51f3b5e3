"""What is not arithmetic: a call, a rebuild, the command line's start, the memory between kernels. Each with its limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .rounds import ROOT

PLANS = Path(__file__).with_name("plans")
MODELS = "benchmarks.algorithms"
Found = dict[str, Any]

COMMAND = "import benchmarks, runpy; runpy.run_module('fluorite', run_name='__main__', alter_sys=True)"
CALL = """
import json, timeit
import numpy as np
import add_built
x, y = np.arange(16, dtype=np.float32), np.ones(16, np.float32)
out = np.empty(16, np.float32)
add_built.add(x, y)
enter = add_built._model().add._enter
best = lambda call: min(timeit.repeat(call, number=1000, repeat=200)) / 1000
calls = {"seconds": lambda: add_built.add(x, y), "into": lambda: add_built.add(x, y, out=out), "entry": lambda: enter(x, y),
         "numpy": lambda: np.add(x, y), "numpy_into": lambda: np.add(x, y, out=out), "nothing": lambda: None}
print(json.dumps({name: best(call) for name, call in calls.items()}))
"""
DISPATCH = """
import json, timeit
import numpy as np
import fluorite as fl
plan = fl.ExecutionPlan(fusion=fl.schedule.Fusion(rest="none"))

def once(x: fl.f32[fl.Tensor, "n"]):
    return x + 1

def hundred(x: fl.f32[fl.Tensor, "n"]):
    for k in range(100):
        x = fl.stage(lambda i: x[i] * 0.5 + k, name=f"s{k}")
    return x

best = lambda call: min(timeit.repeat(call, number=100, repeat=200)) / 100
model, many, x = fl.compile(once), fl.compile(hundred, plan), np.ones(1, np.float32)
kernels = len(many.manifest["methods"]["hundred"]["variants"][0]["steps"])
forms = [np.ones(n, np.float32) for n in range(1, 33)]
for form in forms:
    model(form)
whole, enter = best(lambda: many(x)), model._only()._enter
print(json.dumps({"kernels": kernels, "whole": whole, "each": whole / kernels, "first": best(lambda: enter(forms[0])),
                  "last": best(lambda: enter(forms[-1]))}))
"""
CHAIN = """
import json, resource
import numpy as np
import benchmarks, fluorite as fl
from benchmarks.algorithms import chain
n = 1 << 24
model = fl.compile(chain, PLAN, extents={"n": n})
x = np.ones(n, np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
model(x)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
kernels = len(model.manifest["methods"]["chain"]["variants"][0]["steps"])
print(json.dumps({"buffer": x.nbytes, "planned": model.memory({"n": n}), "measured": after - before, "kernels": kernels}))
"""

SCAN = """
import timeit
import numpy as np
import benchmarks, fluorite as fl

def last(x: fl.f32[fl.Tensor, "t", 16]):
    return fl.scan(lambda h, v: (h * 0.5 + v, h), fl.zeros((16,)), x)[0]

model, x = fl.compile(last), np.ones((20000, 16), np.float32)
print(min(timeit.repeat(lambda: model(x), number=5, repeat=7)) / 5 / len(x))
"""

MODEL = """
import json, sys
from benchmarks.whole_models import measured
print(json.dumps(measured(sys.argv[1])))
"""

STEP = """
import sys
import benchmarks, fluorite as fl
from benchmarks import networks
peak = fl.compile(networks.NETWORKS[sys.argv[1]]()).peak(method="train_step")
print(peak.total - peak.parameters)
"""
STEP_TORCH = """
import sys
from torch.profiler import ProfilerActivity, profile
from benchmarks import peer_torch
step = peer_torch.build(sys.argv[1], "torch eager")
step()
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
    step()
now = most = 0
for event in sorted((e for e in found.profiler.kineto_results.events() if e.name() == "[memory]"), key=lambda e: e.start_ns()):
    now += event.nbytes()
    most = max(most, now)
print(most)
"""
RECOMPUTE = """
import json, resource
import numpy as np
import benchmarks, fluorite as fl
from fluorite import nn

class Deep(fl.Program):
    def __init__(self):
        self.layers, self.optimizer = [nn.Linear(64, 64) for _ in range(6)], fl.optim.SGD(0.01)

    @fl.method(training=True)
    def train_step(self, x: fl.f32[fl.Tensor, 1 << 17, 64]):
        for layer in self.layers:
            x = fl.gelu(layer(x), name="act")
        cost = fl.mean(fl.square(x), name="cost")
        self.optimizer.minimize(cost)
        return {"cost": cost}

model, x = fl.compile(Deep(), PLAN), np.ones((1 << 17, 64), np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
model.train_step(x)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"planned": model.memory(method="train_step"), "measured": after - before}))
"""


def _python(code: str, *folders: Path, python: str = sys.executable, words: tuple[str, ...] = ()) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    return subprocess.run([python, "-c", code, *words], cwd=folders[0], env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def _fluorite(*words: str | Path) -> float:
    """Seconds of a command, start to end."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", COMMAND, *map(str, words)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def call() -> Found:
    """A 16-float add through an imported artefact: under 5 microseconds, of which choosing the code and entering it under 1."""
    with tempfile.TemporaryDirectory() as folder:
        _fluorite("build", f"{MODELS}:add", "-o", Path(folder) / "add_built")
        found: Found = json.loads(_python(CALL, Path(folder)))
    us = {name: f"{seconds * 1e6:.2f}" for name, seconds in found.items()}
    print(f"call: 16-float add through an imported artefact {us['seconds']} us (NumPy {us['numpy']}), into a given array {us['into']} us "
          f"(NumPy {us['numpy_into']}); from arrays to kernel and back {us['entry']} us")  # fmt: skip
    return {**found, "limit": 5e-6}


def dispatch() -> Found:
    """Choosing the code for the extents and entering it: under 1 microsecond; and what each of a hundred kernels adds."""
    found: Found = json.loads(_python(DISPATCH, ROOT))
    many = f"{found['kernels']} kernels in one call {found['whole'] * 1e6:.2f} us, {found['each'] * 1e9:.0f} ns each"
    print(f"dispatch: {many}; the first of 32 forms {found['first'] * 1e6:.2f} us, the last {found['last'] * 1e6:.2f} us")
    return {**found, "limit": 1e-6}


def rebuild() -> Found:
    """A model that has not changed: under 2 seconds."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("build", f"{MODELS}:harris", "--plan", PLANS / "harris.yaml", "-o", Path(folder) / "harris_built")
        first = _fluorite(*words, "--no-cache")
        _fluorite(*words)
        again = min(_fluorite(*words) for _ in range(3))
    print(f"rebuild: {again:.2f} s for an unchanged model, {first:.2f} s without the cache")
    return {"seconds": again, "first": first, "limit": 2.0}


def help() -> Found:
    """`fluorite --help`: under 0.3 seconds."""
    seconds = min(_fluorite("--help") for _ in range(5))
    print(f"help: fluorite --help {seconds:.2f} s")
    return {"seconds": seconds, "limit": 0.3}


def chain() -> Found:
    """Twenty elementwise stages that may not share a kernel: the memory of two buffers."""
    found: Found = json.loads(_python(CHAIN.replace("PLAN", repr(str(PLANS / "chain.yaml"))), ROOT))
    buffers = {k: found[k] / found["buffer"] for k in ("planned", "measured")}
    grown = f"the process grew by {buffers['measured']:.2f}"
    print(f"chain: {found['kernels']} kernels need {buffers['planned']:.2f} buffers, result included; {grown}")
    return {**found, "limit": 2.0}


def scan() -> Found:
    """A step of a scan that does next to nothing: under 5 microseconds."""
    seconds = float(_python(SCAN, ROOT))
    print(f"scan: {seconds * 1e6:.3f} us a step, of 20,000 steps over 16 floats")
    return {"seconds": seconds, "limit": 5e-6}


def memory() -> Found:
    """What one step of training takes beside parameters, optimiser state and data: no more than PyTorch's, where BENCHMARK_TORCH names the
    Python that has it."""
    found: Found = {}
    for name in ("mlp_train", "mlp_adam", "deep_mlp", "deep_mlp_adam", "convnet_train"):
        found[name] = {"fluorite": float(_python(STEP, ROOT, words=(name,)))}
        if (python := os.environ.get("BENCHMARK_TORCH")) is not None:
            found[name]["torch"] = float(_python(STEP_TORCH, ROOT, python=python, words=(name,)))
        print(f"memory: a step of {name} " + ", ".join(f"{peer} {size / 2**20:.2f} MiB" for peer, size in found[name].items()))
    return found


def recompute() -> Found:
    """What computing activations again saves: as much as was predicted, within 5%; five that are named, and those that a limit makes
    `auto` choose."""
    named = "recompute: [" + ", ".join(f"act_{n}" for n in range(2, 6)) + ", act]"
    usual = json.loads(_python(RECOMPUTE.replace("PLAN", "None"), ROOT))
    found: Found = {}
    for what, memory in (("named", named), ("auto", f"recompute: auto, limit: {usual['planned'] * 6 // 10}")):
        plan = f"fl.ExecutionPlan.from_yaml('memory: {{{memory}}}')"
        again = json.loads(_python(RECOMPUTE.replace("PLAN", plan), ROOT))
        saved = found[what] = {k: usual[k] - again[k] for k in usual}
        print(f"recompute: {what}: {saved['planned'] / 2**20:.1f} MiB of {usual['planned'] / 2**20:.1f} less predicted, "
              f"{saved['measured'] / 2**20:.1f} MiB of {usual['measured'] / 2**20:.1f} less measured")  # fmt: skip
    return {**found["named"], "auto": found["auto"], "limit": 0.05}


def models() -> Found:
    """Whole models with the empty plan: compiled in 30 s (a pipeline of 50 stages in 10), ResNet-18 interpreted in 30 s and a layer of
    BERT-base in 2."""
    found: Found = {}
    for name, limits in {"pipeline": (10, None), "resnet18": (30, 30), "bert_layer": (30, 2)}.items():
        one = found[name] = json.loads(_python(MODEL, ROOT, words=(name,)))
        oracle = f"{one['oracle']:.2f} s" + (f" (limit {limits[1]})" if limits[1] else "")
        print(f"models: {name} compiled in {one['compile']:.1f} s (limit {limits[0]}), interpreted in {oracle}, "
              f"called in {one['call'] * 1e3:.2f} ms, error {one['difference']:.0e}")  # fmt: skip
    return found


RUN: dict[str, Callable[[], Found]] = {f.__name__: f for f in (call, dispatch, rebuild, help, chain, scan, memory, recompute, models)}
NAMES = tuple(RUN)


def run(name: str) -> Found:
    return RUN[name]()
