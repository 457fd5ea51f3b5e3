"""python -m examples.apps NAME: builds a module, runs it on a photograph, compares with NumPy or SciPy, writes a picture."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image as Picture

from ..commands import built_module, fluorite, relative
from . import reference, reference_scipy
from .photographs import SIZES, differs, inputs, pixels

FOLDER = Path(__file__).resolve().parent
NAMES = sorted(path.name.removesuffix("_cpu.yaml") for path in FOLDER.glob("*_cpu.yaml"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.apps", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("-o", "--output", type=Path, default=Path("build"), help="where the module and the picture go (default: build)")
    given = parser.parse_args()
    name, module = given.name, given.output / f"{given.name}_built"
    given.output.mkdir(parents=True, exist_ok=True)
    fluorite("build", f"{relative(FOLDER / f'{name}.py')}:{name}", "--plan", relative(FOLDER / f"{name}_cpu.yaml"), "-o", module)
    run, arguments = built_module(module).run, inputs(name, *SIZES.get(name, ()))
    run(*arguments)
    begin = time.perf_counter()
    found = run(*arguments)
    print(f"{name}: {' x '.join(map(str, arguments[0].shape))} in {(time.perf_counter() - begin) * 1e3:.2f} ms")
    wrong = differs(name, found, _reference(name)(*arguments))
    if wrong:
        raise SystemExit(f"the result is not the reference's: {wrong}")
    Picture.fromarray(pixels(found)).save(given.output / f"{name}.png")
    print(f"the same as in {'NumPy' if hasattr(reference, name) else 'SciPy'}; {given.output / f'{name}.png'}")


def _reference(name: str) -> Callable[..., Any]:
    return getattr(reference, name, None) or getattr(reference_scipy, name)  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
