"""A built model in this process."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from . import checkpoints, weights
from .errors import artifact_error, artifact_problem, run_error, run_problem
from .feeding import Feed, Stream, arguments
from .ffi import Function
from .manifest import Manifest
from .method import Method
from .parameters import Array, Parameters
from .peak import Peak
from .stateful import StatefulMethod, concerns, written
from .turns import Turns

_OF_A_PLAN = "grad/"
"""What the names of state begin with that a plan adds: the scales of losses."""

T = TypeVar("T")
Initial = Callable[[int | None], Mapping[str, Array] | None]
Slopes = Callable[[str, str, "str | None"], "Model"]


class Model:
    """The methods of a built model as attributes, and its parameters and state.

    It may be called from several threads: methods that change state take turns, and calls that read it see whole steps.

    `kernels` gives a compiled function by name, `arrays` the parameters by name (used as they are, so aligned and owned),
    `thread_count` the threads of parallel kernels, 0 if there are none. `initial` gives the first values of parameters, of a seed or as
    they were, and `streams` what methods read, by method. `slopes` compiles the derivative of a method by a tensor, of a scalar's name.
    """

    parameters: Parameters

    def __init__(
        self,
        manifest: Manifest,
        kernels: Callable[[str], Function],
        arrays: Mapping[str, Array],
        thread_count: int,
        initial: Initial | None = None,
        streams: Mapping[str, Stream] | None = None,
        slopes: Slopes | None = None,
    ) -> None:
        self._manifest, self._slopes = manifest, slopes
        self._sloping, self._slope_lock = dict[tuple[str, str, str | None], Model](), threading.RLock()
        self._kernels, self._thread_count, self._initial = kernels, thread_count, initial
        function, turns, moving = cache(kernels), Turns(), written(manifest.methods)
        self.parameters = Parameters(manifest.parameters, arrays, self._assigned, moving, turns)
        self._moving = moving
        self._methods: dict[str, Method] = {}
        for name, spec in manifest.methods.items():
            alone = name == manifest.function
            label = f"{manifest.name}.{'run' if alone else name}"
            if concerns(spec, moving):
                self._methods[name] = StatefulMethod(label, spec, function, self.parameters.arrays, thread_count, turns, self._wrote)
            else:
                self._methods[name] = Method(label, spec, function, self.parameters.arrays, thread_count)
            self._methods[name].limit = manifest.limit
            if streams and name in streams and spec.inputs:
                self._methods[name].feed = Feed(streams[name])
            if alone:
                self._methods["run"] = self._methods[name]

    def __getattr__(self, name: str) -> Method:
        method: Method | None = self.__dict__.get("_methods", {}).get(name)
        if method is None:
            raise AttributeError(f"{type(self).__name__} has no method {name}; it has {', '.join(self.__dict__.get('_methods', ()))}")
        self.__dict__[name] = method  # found without this detour from now on
        return method

    def __setattr__(self, name: str, value: Any) -> None:
        held = [p for p in self.__dict__.get("parameters", ()) if p == name or p.startswith((f"{name}/", f"{name}."))]
        if held or name in self.__dict__.get("_methods", ()):
            asked = f"{self._manifest.name}.{name} cannot be assigned"
            raise run_error(run_problem("R116", asked, *(f'model.parameters["{p}"] = value' for p in held[:3])))
        object.__setattr__(self, name, value)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the model's only method."""
        return self._only()(*args, **named)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._methods]

    def __repr__(self) -> str:
        return "\n".join([f"model {self._manifest.name}", *(f"  {m}" for m in dict.fromkeys(map(repr, self._methods.values())))])

    def epoch(self, method: str) -> Iterator[Any]:
        """The results of one pass over what a method reads, a call each; where a pass is under way, of the rest of it. Raises RunError."""
        return self._feed(method).rest(self._methods[method])

    def grad(self, method: str, path: str, *inputs: Any, of: str | None = None, **named: Any) -> Array:
        """The derivative of a method's loss by the parameter, input or stage called `path`, for these inputs, and for the parameters and
        state as they are: nothing changes. Without inputs, for those that the method reads next, which it still reads then.

        The loss is what the method's optimisers go down, or else its only scalar result; where there are several, `of` is the name of one:
        a key of the result, or a stage. Random numbers are those of the method's next call. The first call with a path compiles, by the
        default schedule and as precise as the algorithm says. Raises RunError, and AlgorithmError for a name that is none.
        """
        chosen = self._methods.get(method)
        if chosen is None:
            raise run_error(run_problem("R114", f"{self._manifest.name} has no method {method}", *self._methods))
        if self._slopes is None:
            asked = f"the derivative of {self._manifest.name}.{method}: this model has no algorithm"
            raise run_error(run_problem("R132", asked, "fl.compile of the Program or function"))
        key = chosen.spec.name, path, of
        with self._slope_lock:
            if key not in self._sloping:
                self._sloping[key] = self._slopes(*key)
            slope = self._sloping[key]
            if chosen.feed is not None and not inputs and not named:
                with chosen.feed.lock:
                    inputs = arguments(chosen, chosen.feed.stream.peek())
            values, own = self.parameters.copied(), slope.parameters
            own.assign({n: values[n].astype(own[n].dtype, copy=False) for n in own if n in values and not n.startswith("constant/")})
            found: Array = slope(*inputs, **named)
            return found

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What was built, for what, by what: the content of manifest.json."""
        return MappingProxyType(dict(self._manifest.raw))

    @property
    def plan(self) -> str:
        """The plan that it was built with, as YAML."""
        return str(self._manifest.raw.get("plan", ""))

    @property
    def signatures(self) -> Mapping[str, str]:
        """Method name to signature, such as `blur(image: float32[h, w]) -> float32[h, w]`."""
        return MappingProxyType({name: spec.text() for name, spec in self._manifest.methods.items()})

    def memory(self, extents: Mapping[str, int] | None = None, method: str | None = None) -> int:
        """Peak bytes of one call beside its inputs: parameters, packed constants, temporaries, results, and what kernels take.

        `extents` gives a size to every symbol of the method's inputs. Raises RunError.
        """
        return self.peak(extents, method).total

    def peak(self, extents: Mapping[str, int] | None = None, method: str | None = None) -> Peak:
        """The same part by part, with where in the call most is needed. Raises RunError."""
        return (self._methods[method] if method else self._only()).peak(extents or {})

    def save(self, path: str | Path) -> None:
        """Write parameters and state, as they are between two calls, to a safetensors file by the algorithm's names. Raises RunError."""
        try:
            weights.write(Path(path), self.parameters.copied())
        except OSError as error:
            raise run_error(run_problem("R113", f"{path} cannot be written: {error.strerror}")) from None

    def load(self, path: str | Path, strict: bool = True, rename: Mapping[str, str] | Callable[[str], str] | None = None) -> None:
        """Read parameters from a safetensors file: all of them, or none if one does not fit.

        `rename` maps names in the file to the model's: a mapping of those that differ, or a function of a name. With `strict=False`
        missing and surplus tensors are let pass, as the scales of losses always are: a plan adds them, and another has none.
        Narrower floats, which a plan may have stored, are widened.
        Raises ArtifactError if it is no such file, RunError with one sentence a tensor otherwise.
        """
        new_name = rename if callable(rename) else lambda name: (rename or {}).get(name, name)
        read = weights.read(Path(path))
        read = {name: array for name, array in read.items() if name in self.parameters or not name.startswith(_OF_A_PLAN)}
        found = {new: self.parameters.widened(new, array) for name, array in read.items() for new in (new_name(name),)}
        renamed = Counter(map(new_name, read))
        if twice := [name for name, count in renamed.items() if count > 1]:
            raise run_error(*(run_problem("R110", f"{path} has {renamed[name]} tensors that are renamed to {name}") for name in twice))
        refused = [
            p for name, array in found.items() if (p := self.parameters.refusal(name, array)) and (strict or name in self.parameters)
        ]
        wrong = [run_problem(p.code, f"{path}: {p.asked}", *p.try_) for p in refused]
        if strict:
            missing = [name for name in self.parameters if name not in found and not name.startswith(_OF_A_PLAN)]
            wrong += [run_problem("R110", f"{path} has no tensor {name}") for name in missing]
        if wrong:
            raise run_error(*wrong)
        self.parameters.assign({name: array for name, array in found.items() if name in self.parameters})

    def checkpoint(self, folder: str | Path, keep: int = 1) -> Path:
        """Write all that training needs to go on to the bit: parameters, state (of optimisers and of random numbers too), how many calls
        there were, and how far each reader is. Returns the folder of the checkpoint, below `folder`; the newest `keep` are kept.

        It is there whole or not at all, whenever the process is killed. Raises RunError if it cannot be written.
        """
        if keep < 1:
            raise run_error(run_problem("R113", f"keep={keep}: the checkpoint that is being written stays", "keep=1"))
        with self._between_batches() as feeds:
            arrays, calls = self.parameters.copied_with(self._calls)
            positions = {name: feed.position for name, feed in feeds.items()}
            counts = {name: feed.stream.count for name, feed in feeds.items()}
        return checkpoints.write(Path(folder), checkpoints.Facts(self._manifest.program, calls, positions, counts), arrays, keep)

    def resume(self, folder: str | Path) -> int:
        """Go on where a checkpoint was written (`folder` is its own, or the one that was given to `checkpoint`, of which the last counts).
        Returns how many calls that changed state there were before it.

        Raises ArtifactError if it is no whole checkpoint, RunError if it does not fit this model; then nothing has changed.
        """
        file, facts = checkpoints.read(Path(folder))
        with self._between_batches() as feeds:
            if wrong := [*self._unfit(file.parent, facts, feeds)]:
                raise run_error(*(run_problem("R304", w, f"model.load({str(file)!r}) for the weights alone") for w in wrong))
            self.load(file)
            for name, method in self._methods.items():
                method.calls = facts.calls.get(name, 0)
            for name, feed in feeds.items():
                feed.seek(facts.positions.get(name, (0, 0)))
        return facts.step

    @property
    def steps(self) -> Mapping[str, int]:
        """By method, how many calls have changed the state, those before a checkpoint included."""
        return MappingProxyType(self._calls())

    def position(self, method: str) -> tuple[int, int]:
        """Where a method reads next: the number of the pass, and of the batch in it, from 0. Raises RunError."""
        return self._feed(method).position

    def passes(self, method: str) -> int | None:
        """How many batches a pass over what a method reads has; None where nobody knows, or where it reads nothing. Raises RunError."""
        feed = self._methods[method].feed
        return None if feed is None else feed.stream.count

    def batch_rows(self, method: str) -> int:
        """How many samples the batch had that a method read last; 1 where it reads nothing."""
        feed = self._methods[method].feed
        return 1 if feed is None else feed.rows

    def _calls(self) -> dict[str, int]:
        return {name: m.calls for name, m in self._methods.items() if m.spec.updates and name == m.spec.name}

    def _feed(self, method: str) -> Feed:
        found = self._methods.get(method)
        if found is None:
            raise run_error(run_problem("R114", f"{self._manifest.name} has no method {method}", *self._methods))
        if found.feed is None:
            raise run_error(run_problem("R119", f"{found.label} reads nothing", '@fl.method(reader="data") in the algorithm'))
        return found.feed

    def _unfit(self, folder: Path, facts: checkpoints.Facts, feeds: Mapping[str, Feed]) -> Iterator[str]:
        mine = self._manifest
        if facts.program != mine.program:
            yield f"{folder} is of {facts.program}, this is {mine.program}"
        for name in facts.calls.keys() | facts.positions.keys():
            if name not in mine.methods:
                yield f"{folder} has calls of {name}, which {mine.name} does not have"
        for name, feed in feeds.items():
            there, here, index = facts.counts.get(name), feed.stream.count, facts.positions.get(name, (0, 0))[1]
            if None not in (there, here) and there != here and index:
                yield f"{folder}: {name} had read {index} of {there} batches, and a pass has {here} here"

    @contextmanager
    def _between_batches(self) -> Iterator[dict[str, Feed]]:
        """What methods read, by method; meanwhile none of them reads."""
        feeds = {name: m.feed for name, m in self._methods.items() if m.feed is not None and name == m.spec.name}
        with ExitStack() as held:
            for name in sorted(feeds):
                held.enter_context(feeds[name].lock)
            yield feeds

    def copy(self) -> Model:
        """A model of its own on the same kernels; what happens to its parameters and state leaves this one as it is."""
        with self._between_batches() as feeds:
            arrays, calls = self.parameters.copied_with(self._calls)
            streams = {name: feed.stream.copy() for name, feed in feeds.items()}
        made = Model(self._manifest, self._kernels, arrays, self._thread_count, self._initial, streams, self._slopes)
        for name, count in calls.items():
            made._methods[name].calls = count
        return made

    def reset(self, seed: int | None = None) -> None:
        """Parameters and state as they were at first; with `seed`, drawn anew from the initialisers. Readers begin anew. Raises RunError.

        An artefact has no initialisers: its first values are those that it was built with.
        """
        values = None if self._initial is None else self._initial(seed)
        if values is None:
            what = "without its first values" if seed is None else "without initialisers"
            raise run_error(run_problem("R117", f"{self._manifest.name} was made {what}", "reset() of an artefact", "model.load(path)"))
        self.parameters.assign({name: array for name, array in values.items() if name in self.parameters})
        for method in self._methods.values():
            method.calls = 0
            if method.feed is not None:
                with method.feed.lock:
                    method.feed.stream.rewind()

    def _only(self) -> Method:
        if len(self._manifest.methods) != 1:
            raise run_error(run_problem("R114", f"{self._manifest.name} has several methods", f"call one of {', '.join(self._methods)}"))
        return next(iter(self._methods.values()))

    def _assigned(self, names: frozenset[str]) -> None:
        """The owner gave these other values."""
        if names - self._moving:
            for method in self._methods.values():
                method.forget()
        self._wrote(names & self._moving)

    def _wrote(self, names: frozenset[str]) -> None:
        """These hold other values, in the same memory; whoever else might read them waits."""
        for method in self._methods.values():
            if isinstance(method, StatefulMethod) and method.packs & names:
                method.stale = True


def read_manifest(path: Path) -> dict[str, Any]:
    """The JSON value of a manifest file. Raises ArtifactError."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise artifact_error(artifact_problem("R001", f"{path.parent} is no artefact of fluorite: {path.name}: {error.strerror}")) from None
    except (ValueError, RecursionError) as error:
        raise artifact_error(artifact_problem("R002", f"{path} is not valid JSON ({error})")) from None
    if not isinstance(raw, dict):
        raise artifact_error(artifact_problem("R002", f"{path} is not one that fluorite writes"))
    return raw


def shared(make: Callable[[], T]) -> Callable[[], T]:
    """`make`, called once however many threads ask first."""
    lock = threading.Lock()
    made: list[T] = []

    @cache
    def get() -> T:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    return get
