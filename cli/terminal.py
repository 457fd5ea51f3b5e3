"""Where output goes: results to stdout, everything else to stderr, and with --json one document alone on stdout."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from fluorite.algo.errors import RunError

_MARKED = re.compile(r"\b(error\[[A-Z]\d+\]|ok|wrong)(?=\W|$)")
_COLOURS = {"error": "31;1", "wrong": "31;1", "ok": "32"}


@dataclass
class Terminal:
    """The streams of one command. `verb` is its name in the JSON document."""

    verb: str
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    color: str = "auto"
    stdout: TextIO = field(default_factory=lambda: sys.stdout)
    stderr: TextIO = field(default_factory=lambda: sys.stderr)

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """What a model file prints while it runs goes to stderr, so that stdout holds the result alone."""
        with redirect_stdout(self.stderr):
            yield

    def note(self, text: str) -> None:
        """Progress, remarks and warnings; not with -q."""
        if not self.quiet:
            self._say(self.stderr, text)

    def notes(self, texts: Sequence[str]) -> None:
        """Remarks of the compiler, those that say the same of several things in one line."""
        said: dict[str, list[str]] = {}
        for text in texts:
            subject, _, rest = text.partition(" is ")
            said.setdefault(rest, []).append(subject)
        for rest, subjects in said.items():
            self.note(f"note: {', '.join(subjects)}{f' {_verb(subjects)} {_plural(rest, subjects)}' if rest else ''}")

    def error(self, text: str) -> None:
        self._say(self.stderr, text)

    def result(self, text: str) -> None:
        """Raises RunError where stdout cannot be written, but for a reader that went away."""
        try:
            self._say(self.stdout, text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._lost(error) from None

    def _lost(self, error: OSError) -> RunError:
        """The refusal to go on without stdout, which from here on leads nowhere."""
        from fluorite.algo.errors import Problem, RunError

        os.dup2(os.open(os.devnull, os.O_WRONLY), self.stdout.fileno())
        return RunError(Problem("R402", asked="stdout cannot be written", why=(error.strerror or str(error)).lower(), try_=("-o FILE",)))

    def document(self, ok: bool, errors: Sequence[Mapping[str, Any]], result: Any) -> None:
        """The one JSON document."""
        import fluorite

        whole = {"ok": ok, "verb": self.verb, "version": fluorite.__version__, "errors": list(errors), "result": json_data(result)}
        try:
            print(json.dumps(whole, ensure_ascii=False), file=self.stdout, flush=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise self._lost(error) from None

    @property
    def shows_progress(self) -> bool:
        """Bars are drawn for a person who looks at them."""
        return not self.quiet and self.stderr.isatty()

    def _say(self, stream: TextIO, text: str) -> None:
        text = text if text.endswith("\n") or not text else text + "\n"
        if self._colours(stream):
            text = _MARKED.sub(lambda found: f"\x1b[{_COLOURS[re.split(r'[^a-z]', found[0])[0]]}m{found[0]}\x1b[0m", text)
        try:
            stream.write(text)
        except UnicodeEncodeError:
            stream.write(text.encode(stream.encoding or "ascii", "backslashreplace").decode(stream.encoding or "ascii"))
        stream.flush()

    def _colours(self, stream: TextIO) -> bool:
        if self.color == "auto":
            return stream is self.stderr and stream.isatty() and not os.environ.get("NO_COLOR")
        return self.color == "always" and stream is self.stderr


def _verb(subjects: Sequence[str]) -> str:
    return "is" if len(subjects) == 1 else "are"


def _plural(rest: str, subjects: Sequence[str]) -> str:
    return rest if len(subjects) == 1 else rest.replace("its first alternative is", "their first alternatives are")


def json_data(value: Any) -> Any:
    """A value as JSON allows it: numbers that are not finite become their names, NumPy's become Python's."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if value - value == 0 else str(value)
        case Mapping():
            return {str(k): json_data(v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [json_data(v) for v in value]
    return json_data(value.tolist()) if hasattr(value, "tolist") else str(value)
