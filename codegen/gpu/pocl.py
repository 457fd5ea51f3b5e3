"""OpenCL kernels run by PoCL on this CPU: real work groups, local memory and barriers. A test facility, no target to run models on.

The host functions are those that a GPU would get. What they call when they launch a kernel is replaced by pyopencl.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ..lowered import Lowered
from ..target import CodeTarget
from .execution import Host


def available() -> bool:
    """Whether pyopencl is installed and finds a PoCL device."""
    try:
        cl = import_module("pyopencl")
        return any("Portable" in p.name and p.get_devices() for p in cl.get_platforms())
    except (ImportError, OSError, RuntimeError):
        return False
    except Exception as error:  # pyopencl's own errors derive from Exception alone
        if type(error).__module__.startswith("pyopencl"):
            return False
        raise


class Device(Host):
    """Tensors that TVM takes for OpenCL's, in memory of the CPU."""

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        from ..tvm_adapter import tensor_on

        return tensor_on("opencl", np.array(array, order="C"))

    def empty(self, shape: tuple[int, ...], dtype: str) -> Any:
        return self.put(super().empty(shape, dtype))

    def get(self, tensor: Any) -> np.ndarray[Any, Any]:
        return np.asarray(tensor.numpy())


def _loader(package: str) -> ctypes.CDLL:
    """The library that finds OpenCL's implementations: the one that pyopencl brings, or the system's."""
    own = sorted(Path(package).parent.glob(".libs/libOpenCL*"))
    return ctypes.CDLL(str(own[0]) if own else "libOpenCL.so.1")


class _Queue:
    def __init__(self) -> None:
        self.cl = import_module("pyopencl")
        platform = next(p for p in self.cl.get_platforms() if "Portable" in p.name)
        self.context = self.cl.Context([platform.get_devices()[0]])
        self.queue = self.cl.CommandQueue(self.context)
        self.argument = _loader(str(self.cl.__file__)).clSetKernelArgSVMPointer
        self.argument.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p]
        self.launches: list[tuple[str, tuple[int, ...], tuple[int, ...]]] = []

    def launcher(self, program: Any, name: str, dtypes: Sequence[str], tags: Sequence[str]) -> Any:
        kernel = self.cl.Kernel(program, name)

        def launch(*args: Any) -> None:
            blocks, threads = [1, 1, 1], [1, 1, 1]
            for tag, value in zip(tags, args[len(dtypes) :], strict=True):
                (blocks if tag.startswith("block") else threads)["xyz".index(tag[-1])] = int(value)
            for n, (value, dtype) in enumerate(zip(args, dtypes, strict=False)):
                if dtype != "handle":
                    kernel.set_arg(n, np.dtype(dtype).type(value))
                elif (code := self.argument(kernel.int_ptr, n, getattr(value, "value", value) or 0)) != 0:
                    raise RuntimeError(f"clSetKernelArgSVMPointer: {code}")
            self.launches.append((name, tuple(blocks), tuple(threads)))
            if all(blocks):
                self.cl.enqueue_nd_range_kernel(self.queue, kernel, [b * t for b, t in zip(blocks, threads, strict=True)], threads)
            self.queue.finish()

        return launch


_queue: list[_Queue] = []


def pocl_functions(lowered: Lowered, target: CodeTarget) -> tuple[Mapping[str, Any], str]:
    """Every kernel by name, for tensors of `Device`, and the OpenCL C that they run."""
    from ..emit import emit
    from ..synchronising import prelude
    from ..tvm_adapter import generate, host_target, imitate_device, kernel_signatures, register_function, split_for_device

    if not lowered.kernels:
        return {}, ""
    imitate_device("opencl")
    if not _queue:
        _queue.append(_Queue())
    queue = _queue[0]
    host, devices = split_for_device({k.name: emit(k) for k in lowered.kernels}, target.dict())
    sources = []
    for module, t in devices:
        source = str(generate(module, t).inspect_source())
        source = prelude(source, "opencl") + source
        sources.append(source)
        program = queue.cl.Program(queue.context, source).build(options=["-cl-fp32-correctly-rounded-divide-sqrt"])
        for name, dtypes, tags in kernel_signatures(module):
            register_function(name, queue.launcher(program, name, dtypes, tags))
    functions = generate(host, host_target())
    return {k.name: functions[k.name] for k in lowered.kernels}, "\n".join(sources)


def launches() -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    """What was launched so far: kernel, blocks, threads a block."""
    return _queue[0].launches if _queue else []


__all__ = ["Device", "available", "launches", "pocl_functions"]
