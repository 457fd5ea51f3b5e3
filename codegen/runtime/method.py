"""One method of a model, as something to call."""

from __future__ import annotations

import difflib
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_int64
from functools import cached_property
from typing import Any

import numpy as np

from . import entry, padding
from .arguments import LARGEST_EXTENT, Refused, as_array, bind, rank_problem
from .complexes import NAMES
from .errors import Problem, run_error, run_problem
from .extents import shape_of
from .feeding import Feed
from .ffi import Function
from .forms import Form, form_of
from .manifest import MethodSpec, Variant, complex_leaves
from .native import Native
from .parameters import fixed_arrays
from .peak import Peak, less, peak_of
from .prepared import Array, NegativeExtent, Prepared, arrays_of, nest_of
from .samples import OneSample, Samples

_KEPT_SHAPES = 64
_KEPT_BYTES = 256 << 20


class Method:
    """Call it with arrays, positional or by name; with one sample, where the axis of the batch is left out of every input; or with nothing,
    where it has a reader. `out=` takes arrays to write the result to, in the result's own structure. A ragged input is a list of arrays of
    unequal length; given all inputs in the order of the manifest, it is a padded array, with an array of lengths behind the first of those
    that share it.

    Raises RunError, one sentence for each input that does not fit.
    """

    def __init__(
        self,
        label: str,
        spec: MethodSpec,
        functions: Callable[[str], Function],
        parameters: Callable[[], Mapping[str, Array]],
        thread_count: int,
    ) -> None:
        self.spec, self.label = spec, label
        self.__name__ = spec.name
        self.__doc__ = f"{spec.text()}\n\n{spec.doc}"
        self.__signature__ = _signature(spec)
        self._functions, self._parameters, self._threads = functions, parameters, thread_count
        self._names = [i.name for i in spec.arguments]
        self._takes_out = "out" not in self._names
        self._ragged = any(i.lengths for i in spec.inputs)
        self.limit: int | None = None  # bytes that a call may take beside its inputs
        self.feed: Feed | None = None  # what it reads where it is called without inputs
        self._calls = c_int64(0)
        self._nest = nest_of(spec.result)
        self._as_given = not any(i.counts or i.complex for i in spec.inputs)  # what kernels read is what callers give
        self._entrance: entry.Entrance | None = None
        self._enter: Callable[..., Any] = _unknown
        self._enter_into: Callable[..., Any] = _unknown
        self._samples = Samples(spec)
        self._form = form_of(len(spec.inputs))
        self._prepared: dict[Form, Prepared | OneSample] = {}
        self._fixed: dict[int, tuple[Variant, dict[int, Array]]] = {}
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not named:
            return self.call(args)
        if self._takes_out and len(named) == 1 and (out := named.get("out")) is not None:
            return self.call(args, out)
        return self.call(*self._arranged(args, named))

    def __repr__(self) -> str:
        return self.spec.text()

    def call(self, args: tuple[Any, ...], out: Any = None) -> Any:
        """The same with all inputs in order; what the functions of an artefact use."""
        try:
            if out is None:
                if (found := self._enter(*args)) is not None:
                    return found if self._nest is None else self._nest(found)
            elif self._nest is None and self._enter_into(*args, out):
                return out
            return self._looked_up(args, out)
        except MemoryError as error:
            raise self._too_large(error) from None

    def _looked_up(self, args: tuple[Any, ...], out: Any) -> Any:
        """The result of a call that the entry does not know: of other forms, or of what has to be made into arrays first."""
        try:
            prepared = self._prepared.get(self._form(*args)) if self._as_given else None
        except (AttributeError, TypeError):
            prepared = None
        if prepared is None:
            if self.feed is not None and not args:
                return self.feed.call(self, out)
            args, prepared = self._readied(args)
        if out is None:
            return prepared(args)
        prepared.write(args, self._targets(out, prepared))
        return out

    @property
    def calls(self) -> int:
        """How many have changed state."""
        return self._calls.value

    @calls.setter
    def calls(self, count: int) -> None:
        self._calls.value = count

    def ordered(self, named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Inputs by name in the order in which the method takes them; an extent that is not among them is that of the others. Raises
        RunError."""
        known = {e: n for i in self.spec.inputs if i.name in named for e, n in zip(i.shape, np.shape(named[i.name]), strict=False)}
        named = {**{i.name: known[i.shape[0]] for i in self.spec.inputs if i.counts and i.shape[0] in known}, **named}
        if named.keys() != set(self._names):
            self._refuse_count((), named)
        return tuple(named[name] for name in self._names)

    def rows(self, args: Sequence[Any]) -> int:
        """How many samples a batch has; 1 where nothing says which axis they are along."""
        return padding.count(self.spec, args) if self._ragged else self._samples.count(args)

    def _too_large(self, error: MemoryError) -> Exception:
        return run_error(run_problem("R109", f"{self.label}: there is not enough memory ({error})"))

    def peak(self, extents: Mapping[str, int]) -> Peak:
        """The memory of one call with these extents, beside those that the plan fixes. Raises RunError."""
        extents = {**{name: s.min for name, s in self.spec.symbols.items() if s.min == s.max}, **extents}
        if wrong := [n for n, e in extents.items() if not isinstance(e, int | np.integer) or not 0 <= e < LARGEST_EXTENT]:
            raise run_error(
                *(run_problem("R108", f"{self.label}: {n} = {extents[n]!r} is no extent", "an integer from 0 on") for n in wrong)
            )
        shapes = []
        for spec in self.spec.inputs:
            try:
                shapes.append(shape_of(spec.shape, extents))
            except KeyError as missing:
                raise run_error(run_problem("R108", f"{self.label}: the extent {missing.args[0]} is not given")) from None
        symbols = self._bound(shapes)
        return self._peak(self._planned(self._variant(symbols), symbols, {}, 0))

    def _peak(self, prepared: Prepared) -> Peak:
        return peak_of(prepared, (a.nbytes for a in self._parameters().values()), self._threads)

    def _within_limit(self, prepared: Prepared) -> Prepared:
        """What was planned. Raises RunError where the plan forbids a call to take so much."""
        if self.limit is not None and (peak := self._peak(prepared)).total > self.limit:
            given = ", ".join(f"{n} = {v}" for n, v in prepared.symbols.items())
            limit = less(self.limit, peak.total)
            asked = f"{self.label}{f' with {given}' if given else ''} takes {peak.text()}; the plan's limit is {limit}"
            raise run_error(run_problem("R118", asked, "smaller inputs", "a plan with another memory: {limit: ...}"))
        return prepared

    def forget(self) -> None:
        """Drop everything made from the parameters; they have changed."""
        with self._lock:
            self._fixed = {}
            self._keep({})

    def _readied(self, args: Sequence[Any]) -> tuple[tuple[Array, ...], Prepared | OneSample]:
        arrays = self._checked(args)
        form = self._form(*arrays)
        return arrays, self._prepared.get(form) or self._prepare(arrays, form)

    def _prepare(self, args: Sequence[Array], form: Form) -> Prepared | OneSample:
        with self._lock:
            if (known := self._prepared.get(form)) is not None:
                return known
            prepared = self._made_ready(args)
            kept = {**self._prepared, form: prepared}
            while len(kept) > 1 and (len(kept) > _KEPT_SHAPES or sum(p.bytes for p in kept.values()) > _KEPT_BYTES):
                del kept[next(iter(kept))]
            self._keep(kept)
            return prepared

    def _keep(self, kept: dict[Form, Prepared | OneSample]) -> None:
        """What is made ready from now on; the entry is told what it can run by itself."""
        self._prepared = kept
        ready = [p.run for p in kept.values() if isinstance(p, Prepared) and p.plain]
        native = [run for run in ready if isinstance(run, Native)]
        if self._entrance is None and native and self._as_given and self._library is not None:
            self._entrance = self._library.entrance()
            self._enter, self._enter_into = self._entrance.call, self._entrance.write
        if self._entrance is not None:
            self._entrance.know([run.form for run in native], native)

    @cached_property
    def _library(self) -> entry.Library | None:
        """The entry of the kernels' library, if it has one."""
        return entry.of(self._functions)

    def _made_ready(self, args: Sequence[Array]) -> Prepared | OneSample:
        """For inputs of these shapes; for a batch of one, where they lack its axis."""
        if any(a.ndim != len(i.shape) for a, i in zip(args, self.spec.inputs, strict=True)):
            full = self._samples.whole(args)
            batch = self._prepare(full, self._form(*full))
            assert isinstance(batch, Prepared)
            return OneSample(batch, self._samples)
        symbols = self._bound([a.shape for a in args])
        variant = self._variant(symbols)
        try:
            return self._within_limit(self._planned(variant, symbols, self._fixed_for(variant), self._threads))
        except MemoryError as error:
            raise self._too_large(error) from None

    def _planned(self, variant: Variant, symbols: Mapping[str, int], fixed: Mapping[int, Array], thread_count: int) -> Prepared:
        try:
            return Prepared(self.spec, variant, symbols, self._functions, fixed, thread_count, self._calls, lambda: self._library)
        except NegativeExtent as found:
            given = ", ".join(f"{n} = {v}" for n, v in symbols.items())
            asked = f"{self.label}: with {given}, {found.name} would have the shape {list(found.shape)}"
            raise run_error(run_problem("R120", asked, "larger inputs")) from None

    def _fixed_for(self, variant: Variant) -> dict[int, Array]:
        key = id(variant)  # variants live as long as the method
        if key not in self._fixed:
            self._fixed[key] = variant, fixed_arrays(variant, self._parameters(), self._functions)
        return self._fixed[key][1]

    def _variant(self, symbols: Mapping[str, int]) -> Variant:
        for variant in self.spec.variants:
            if variant.fits(symbols):
                return variant
        found = ", ".join(f"{n} = {v}" for n, v in symbols.items())
        built = [", ".join(f"{n} = {e}" for n, e in v.when.items()) for v in self.spec.variants]
        raise run_error(run_problem("R107", f"{self.label}: there is no variant for {found}", f"built for {' or '.join(built)}"))

    def _bound(self, shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        symbols, wrong = bind(self.label, self.spec, shapes)
        if not wrong:
            given = ", ".join(f"{n} = {v}" for n, v in symbols.items())
            wrong = [
                run_problem(r.code, f"{self.label}: {f'with {given}, ' if given else ''}{why}", "larger inputs")
                for r in self.spec.requires
                if r.symbols <= symbols.keys() and (why := r.refusal(symbols))
            ]
        if wrong:
            raise run_error(*wrong)
        return symbols

    def _checked(self, args: Sequence[Any]) -> tuple[Array, ...]:
        if self._ragged and len(args) == len(self._names):
            args = padding.padded(self.label, self.spec, args)
        elif len(args) != len(self.spec.inputs):
            self._refuse_count(args, {})
        arrays: list[Array] = []
        wrong: list[Problem] = []
        for spec, value in zip(self.spec.inputs, args, strict=True):
            try:
                arrays.append(as_array(self.label, spec, value))
            except Refused as refused:
                wrong.append(refused.problem)
        if not wrong and not self._samples.lacking(arrays):
            wrong = [p for i, a in zip(self.spec.inputs, arrays, strict=True) if (p := rank_problem(self.label, i, a))]
        if wrong:
            raise run_error(*wrong)
        return tuple(arrays)

    def _arranged(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
        out = named.pop("out", None) if self._takes_out else None
        if not named:
            return args, out
        order = dict(zip(self._names, args))  # noqa: B905
        if len(args) > len(self._names) or order.keys() & named.keys() or named.keys() - set(self._names):
            self._refuse_count(args, named)
        order |= named
        if len(order) != len(self._names):
            self._refuse_count(args, named)
        return tuple(order[name] for name in self._names), out

    def _refuse_count(self, args: Sequence[Any], named: Mapping[str, Any]) -> None:
        given = self._names[: len(args)]
        wrong = []
        if len(args) > len(self._names):
            wrong.append(run_problem("R101", f"{self.label}: {len(args)} inputs given, it takes {len(given)}: {', '.join(given)}"))
        for name in named:
            if name in given:
                wrong.append(run_problem("R102", f"{self.label}: {name} is given twice, by position and by name"))
            elif name not in self._names:
                near = difflib.get_close_matches(name, [*self._names, "out"], 1)
                wrong.append(run_problem("R103", f"{self.label}: there is no input {name}", *(f"did you mean {n}" for n in near)))
        absent = [spec for spec in self.spec.arguments[len(args) :] if spec.name not in named]
        wrong += [run_problem("R101", f"{self.label}: {spec.name} is missing, expected {spec.text()}") for spec in absent]
        if self.spec.reader and self.feed is None and len(absent) == len(self._names):
            wrong.append(run_problem("R101", f"{self.label}: its reader {self.spec.reader} has no data in this model"))
        raise run_error(*wrong)

    def _targets(self, out: Any, prepared: Prepared | OneSample) -> list[Array]:
        if out.__class__ is np.ndarray and prepared.takes(out):
            return [out]
        try:
            targets = list(arrays_of(self.spec.result, out))
        except (KeyError, TypeError, ValueError, IndexError):
            raise run_error(run_problem("R112", f"{self.label}: out is not built like the result, {self.spec.result_text()}")) from None
        if isinstance(prepared, Prepared) and prepared.counted.intersection(prepared.outputs):
            raise run_error(run_problem("R112", f"{self.label}: out, and how long the result is comes out only then", "leave out= out"))
        pairs = complex_leaves(self.spec.result)
        for i, (target, (shape, dtype), pair) in enumerate(zip(targets, prepared.leaf_specs, pairs, strict=True)):
            if not isinstance(target, np.ndarray):
                found = f"of type {type(target).__name__}"
            elif target.shape != shape or target.dtype != dtype:
                found = f"{target.dtype.name}{list(target.shape)}"
            elif not target.flags.writeable:
                found = "read-only"
            elif any(np.may_share_memory(target, other) for other in targets[:i]):
                raise run_error(run_problem("R112", f"{self.label}: two arrays of out share memory"))
            else:
                continue
            expected = f"{NAMES[dtype.name]}{list(shape[:-1])}" if pair else f"{dtype.name}{list(shape)}"
            raise run_error(run_problem("R112", f"{self.label}: out is {found}, expected {expected}"))
        return targets


def _unknown(*_: Any) -> None:
    """The entry of a library that has none."""


def _signature(spec: MethodSpec) -> inspect.Signature:
    inputs = [inspect.Parameter(i.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=i.text()) for i in spec.arguments]
    if all(i.name != "out" for i in inputs):
        inputs.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(inputs, return_annotation=spec.result_text())
