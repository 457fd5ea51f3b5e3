"""The one place where TVM's names are spelt, since TVM moves them between releases."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("TVM_NUM_THREADS", str(os.cpu_count() or 1))  # TVM's own default is half the cores

from .lean_tvm import lean_import, load_device_backends

with lean_import():
    import tvm  # type: ignore[import-untyped]
import tvm_ffi
from tvm import s_tir, tirx
from tvm.support.cc import create_shared  # type: ignore[import-untyped]
from tvm.target import Target  # type: ignore[import-untyped]
from tvm.tirx.buffer import BufferType  # type: ignore[import-untyped]
from tvm_ffi import libinfo

VERSION: str = tvm.__version__
FFI_VERSION: str = tvm_ffi.__version__
ForKind = tirx.ForKind
_build = import_module("tvm.tirx.build")  # the package exports a function of the same name

LOOP_KIND = {"serial": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "vectorized": ForKind.VECTORIZED, "unrolled": ForKind.UNROLLED}


def prefetch(element: Any) -> Any:
    """The instruction that asks for an element to be read, into every level of cache."""
    read, near, data = (tirx.IntImm("int32", n) for n in (0, 3, 1))
    return tirx.call_intrin("void", "tirx.prefetch", tirx.address_of(element), read, near, data)


def nothing() -> Any:
    return tirx.Evaluate(tirx.IntImm("int32", 0))


def storage_barrier() -> Any:
    """The barrier of a block's threads, for shared memory."""
    return tirx.Evaluate(tirx.call_intrin("int32", "tirx.tvm_storage_sync", tvm.ir.StringImm("shared")))


def element_address(buffer: Any, index: list[Any]) -> Any:
    return tirx.address_of(tirx.BufferLoad(buffer, index))


def external(name: str, *args: Any) -> Any:
    """The call of a function that the target's own language has."""
    return tirx.Evaluate(tirx.call_extern("void", name, *args))


def pure_external(dtype: str, name: str, *args: Any) -> Any:
    """The value of a function that the target's own language has."""
    return tirx.call_pure_extern(dtype, name, *args)


def processor_instruction(name: str, *args: Any) -> Any:
    """The call of one of LLVM's functions for instructions that change registers or memory."""
    return tirx.Evaluate(tirx.call_llvm_intrin("void", name, *args))


def local_words(name: str, words: list[int]) -> tuple[list[Any], Any]:
    """Statements that put 64-bit words on the stack, and their address."""
    buffer = tirx.decl_buffer([len(words)], "int64", name, scope="local", data_alignment=64)
    stores = [tirx.BufferStore(buffer, tirx.IntImm("int64", w), [tirx.IntImm("int64", n)]) for n, w in enumerate(words)]
    first = element_address(buffer, [tirx.IntImm("int64", 0)])
    return [tirx.AllocBuffer(buffer, {"disable_lower_builtin": tirx.IntImm("bool", 1)}), *stores], first


ROTATING = "shared.rotating"
"""The scope of shared memory that has barriers of its own, until those for the rest have been put in."""


def rotating_is_shared() -> Any:
    """The pass that makes plain shared memory of it."""

    def changed(f: Any) -> Any:
        made: dict[Any, Any] = {}

        def buffer(v: Any) -> Any:
            if not isinstance(v.ty, BufferType) or v.scope() != ROTATING:
                return v
            if v not in made:
                made[v] = tirx.decl_buffer(v.shape, v.dtype, v.name, scope="shared", data_alignment=v.data_alignment)
            return made[v]

        return f.with_body(tvm_ffi.structural_map(f.body, (tirx.Var, buffer)))

    @tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
    def run(mod: Any, _context: Any) -> Any:
        return tvm.IRModule({v: changed(f) if isinstance(f, tirx.PrimFunc) else f for v, f in mod.functions.items()}, attrs=mod.attrs)

    return run


def pipeline(gpu: bool = False) -> Any:
    """The passes between our loop nests and code generation. Loops arrive final, so nothing here schedules."""
    from .positive_divisors import positive_divisors

    s, t = s_tir.transform, tirx.transform

    @tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
    def run(mod: Any, _context: Any) -> Any:
        passes = [
            s.UnifyThreadBinding(),
            *([s.LowerOpaqueBlock()] if gpu else []),  # binds loops to blocks and threads
            t.StmtSimplify(),
            t.FlattenBuffer(),
            t.BF16ComputeLegalize(),
            t.VectorizeLoop(True),
            t.UnrollLoop(),
            t.StmtSimplify(),
            t.RemoveNoOp(),
            t.CommonSubexprElim(),
            conditions_in_place(),
            positive_divisors(),
            t.FP8ComputeLegalize(),
            t.VerifyMemory(),
            t.AnnotateEntryFunc(),
            s.ThreadSync("shared"),
            s.ThreadSync("shared.dyn"),
            s.ThreadSync("warp"),
            *([rotating_is_shared()] if gpu else []),
            s.LowerThreadAllreduce(),
            s.MergeSharedMemoryAllocations(),
            t.SplitHostDevice(),
            t.MakePackedAPI(),
            *([] if gpu else [t.SkipAssert()]),  # of arguments, which the runtime makes: TVM's code for it is as long as a small kernel
            t.FP8StorageLegalize(),
            t.BF16StorageLegalize(),
        ]
        return tvm.ir.transform.Sequential(passes)(mod)

    return run


def conditions_in_place() -> Any:
    """The pass that writes vectors made of comparisons back to where they are used.

    TVM bounds the values of what has a name, and fails on a comparison of vectors there.
    """
    comparisons = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)

    def found(kinds: Any, root: Any) -> list[Any]:
        some: list[Any] = []

        def note(node: Any) -> Any:
            some.append(node)
            return node

        tvm_ffi.structural_map(root, (kinds, note))
        return some

    def compares(bind: Any) -> bool:
        return bind.value.ty.dtype.lanes > 1 and bool(found(comparisons, bind.value))

    def restored(body: Any) -> Any:
        if not any(map(compares, found(tirx.Bind, body))):
            return body
        named: dict[Any, Any] = {}

        def statement(bind: Any) -> Any:
            if not compares(bind):
                return bind
            named[bind.var] = bind.value
            return tirx.Evaluate(tirx.IntImm("int32", 0))

        return tvm_ffi.structural_map(body, [(tirx.Bind, statement), (tirx.Var, lambda v: named.get(v, v))])

    @tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
    def run(mod: Any, _context: Any) -> Any:
        changed = {v: f.with_body(restored(f.body)) if isinstance(f, tirx.PrimFunc) else f for v, f in mod.functions.items()}
        return tvm.IRModule(changed, attrs=mod.attrs)

    return run


def _registered() -> tuple[Any, Any, Any]:
    default = tirx.compilation_pipeline

    def finalize_host_passes() -> Any:
        from .real_functions import own_functions

        return tvm.ir.transform.Sequential([own_functions(), default.finalize_host_passes()])

    return pipeline(), finalize_host_passes, default.finalize_device_passes


def has_feature(target: Any, name: str) -> bool:
    """What LLVM knows of the target's processor: an extension ("avx512vbmi") or what it is good at ("fast-gather")."""
    return bool(tvm_ffi.get_global_func("target.target_has_feature")(name, target))


def register_operation(name: str, lower: Any, on: dict[str, Any] | None = None) -> Any:
    """A pure operation that vectorises, lowered by `lower(call)` where nothing else takes it; `on` says how for a kind of target."""
    tvm.ir._ffi_api.RegisterOp(name, "")
    for key, value in {"TVectorizable": True, "TCallEffectKind": 1, "TScriptPrinterName": name.rsplit(".", 1)[-1]}.items():
        tvm.ir.op.register_op_attr(name, key, value)
    for kind, lowering in {"default": lower, **(on or {})}.items():
        tirx.op.register_intrin_lowering(name, kind, f=lowering)
    return tvm.ir.Op.get(name)


tirx.compilation_pipeline.register_tir_pipeline("fluorite", _registered)


def compile_functions(functions: dict[str, Any], target: dict[str, Any], config: dict[str, Any] | None = None) -> Any:
    """A loadable module with these functions, by name."""
    with tvm.transform.PassContext(config=config or {}):
        return tvm.compile(tvm.IRModule(functions), target=Target(target), tir_pipeline="fluorite")


def to_json(functions: dict[str, Any]) -> str:
    """Functions as text that another process reads with `from_json`."""
    return str(tvm.ir.save_json(tvm.IRModule(functions)))


def from_json(text: str) -> dict[str, Any]:
    return {v.name_hint: f for v, f in tvm.ir.load_json(text).functions.items()}


def write_object(library: Any, path: Path) -> None:
    """The machine code of a compiled module without device code, as an object file."""
    library.mod.write_to_file(str(path), "o")


def link(objects: list[Path], path: Path, compiler: str) -> None:
    """One shared library of object files. Not by a C++ compiler, whose library the linker would read, too."""
    create_shared(str(path), [*map(str, objects), "-lm"], cc=compiler)


def header_folders() -> list[str]:
    """Where the headers of the foreign-function library are."""
    return [str(folder) for folder in dict.fromkeys((libinfo.find_include_path(), libinfo.find_dlpack_include_path()))]


def as_tensor(array: Any) -> Any:
    """A NumPy array as an argument of a compiled function, without a copy."""
    return tvm_ffi.from_dlpack(array)


def split_for_device(functions: dict[str, Any], target: dict[str, Any]) -> tuple[Any, list[tuple[Any, Any]]]:
    """Host module and (device module, target) pairs of GPU functions, ready for code generation."""
    load_device_backends()
    _, finish_host, finish_device = _registered()
    module = tirx.transform.BindTarget(Target(target).with_host(host_target()))(tvm.IRModule(functions))
    host, devices = _build.split_host_device_mods(pipeline(gpu=True)(module))
    aliased = {f"{name}_kernel" for name, f in functions.items() if "tirx.noalias" not in f.attrs}  # TVM takes that for granted on devices
    from .exact_constants import exact_constants

    finished = [(_sharing(aliased)(finish_device()(m)), t) for t, m in devices.items()]
    return finish_host()(host), [(exact_constants(m, str(target["kind"])), t) for m, t in finished]


def _sharing(names: set[str]) -> Any:
    """The pass after which the parameters of these functions may lead to memory that others change meanwhile."""

    def changed(f: Any) -> Any:
        return f.without_attr("tirx.noalias") if str(f.attrs["global_symbol"]) in names else f

    @tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
    def run(mod: Any, _context: Any) -> Any:
        return tvm.IRModule({v: changed(f) for v, f in mod.functions.items()}, attrs=mod.attrs)

    return run


def generate(module: Any, target: Any) -> Any:
    """The runtime module of device or host functions."""
    return _build.codegen_build(module, target)


def host_target() -> Any:
    return Target({"kind": "llvm"})


def kernel_signatures(module: Any) -> list[tuple[str, list[str], list[str]]]:
    """Of every device function: its name, the types of its parameters ("handle" for a pointer), the tags of its launch arguments."""
    out = []
    for function in module.functions.values():
        dtypes = ["handle" if isinstance(p.ty, tvm.ir.PointerType) else str(p.ty.dtype) for p in function.params]
        out.append((str(function.attrs["global_symbol"]), dtypes, [str(tag) for tag in function.attrs["tirx.kernel_launch_params"]]))
    return out


def register_function(name: str, function: Any) -> None:
    """What compiled code finds under this name; replaces an earlier one."""
    tvm_ffi.register_global_func(name, function, override=True)


def imitate_device(kind: str) -> None:
    """Memory of a device that is not there, in memory of the CPU."""
    cpu = tvm.get_global_func("device_api.cpu")
    if tvm.get_global_func(f"device_api.{kind}", allow_missing=True) is None:
        tvm_ffi.register_global_func(f"device_api.{kind}", lambda *a: cpu(*a))


def tensor_on(kind: str, array: Any) -> Any:
    """A copy of a NumPy array on a device."""
    return tvm.runtime.tensor(array, device=tvm.device(kind, 0))


__all__ = [
    "FFI_VERSION", "LOOP_KIND", "VERSION", "ForKind", "Target", "compile_functions",
    "has_feature", "pipeline", "s_tir", "tirx", "tvm", "tvm_ffi",
]  # fmt: skip
