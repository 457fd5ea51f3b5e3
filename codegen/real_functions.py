"""exp, sin and the like as operations of TVM's: calls until loops are vectors. Then, on processors, each becomes a call of our own function
of that many lanes, which LLVM inlines; on devices, the device's own. As TVM expressions our functions would grow exponentially in its
simplifier when nested. Vector reads of scattered elements and stores past the caches become calls in the same pass.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from . import gathers, lookups, streaming
from .device_c import PREFIX
from .float_operations import lowered
from .functions.dot_products import FUNCTIONS as DOTS
from .functions.narrow_floats import FUNCTIONS as NARROW
from .functions.transcendental import EXACT, FUNCTIONS, definitions, symbol
from .functions.whole_numbers import FUNCTIONS as WHOLE
from .tvm_adapter import register_operation, tirx, tvm, tvm_ffi


def _whole_on_device(name: str, call: Any) -> Any:
    """In C only integers without a sign wrap."""
    dtype, (a, b) = call.ty.dtype, call.args
    signed, lanes = not str(dtype).startswith("u"), dtype.lanes

    def number(n: int) -> Any:
        scalar = tirx.IntImm(str(dtype.with_lanes(1)), n)
        return scalar if lanes == 1 else tirx.Broadcast(scalar, lanes)

    if name in ("plus", "minus", "times"):
        bits = str(dtype).removeprefix("u")
        x, y = (v.astype(f"u{bits}") for v in (a, b))
        return (x + y if name == "plus" else x - y if name == "minus" else x * y).astype(str(dtype))
    zero, one = number(0), number(1)
    if not signed:
        safe = tirx.Select(tirx.EQ(b, zero), one, b)
        return tirx.truncmod(a, safe) if name == "remainder" else tirx.Select(tirx.EQ(b, zero), zero, tirx.truncdiv(a, safe))
    minus = tirx.EQ(b, zero - one)
    safe = tirx.Select(tirx.Or(tirx.EQ(b, zero), minus), one, b)
    rest = tirx.truncmod(a, safe)
    apart = tirx.And(tirx.NE(rest, zero), tirx.LT(tirx.bitwise_xor(rest, safe), zero))
    if name == "remainder":
        return rest + tirx.Select(apart, safe, zero)
    quotient = tirx.truncdiv(a, safe) - tirx.Select(apart, one, zero)
    return tirx.Select(tirx.EQ(b, zero), zero, tirx.Select(minus, zero - a, quotient))


def _on_device(name: str, call: Any) -> Any:
    """CUDA and OpenCL overload C's names for all types."""
    if name in WHOLE:
        return _whole_on_device(name, call)
    if name == "sigmoid":
        dtype = call.ty.dtype
        scalar = tirx.FloatImm(str(dtype.with_lanes(1)), 1.0)
        one = scalar if dtype.lanes == 1 else tirx.Broadcast(scalar, dtype.lanes)
        return tirx.Div(one, one + tirx.exp(-call.args[0]))
    return tirx.call_pure_extern(call.ty, f"{PREFIX}{name}" if name in NARROW else name, *call.args)


_ALL = (*FUNCTIONS, *EXACT, *WHOLE, *NARROW, *DOTS)
_OPERATIONS = {name: register_operation(f"fluorite.{name}", partial(_on_device, name)) for name in sorted(_ALL)}
_NAMES = {f"fluorite.{name}": name for name in _ALL}


def _call(name: str, _dtype: str, *args: Any) -> Any:
    result = tirx.const(0, NARROW[name][1]) if name in NARROW else args[0]
    return tvm.ir.Call(_OPERATIONS[name], args=args, ret_ty=result.ty)


CALLS: dict[str, Callable[..., Any]] = {name: partial(_call, name) for name in _ALL}
"""Operation -> its call, from the dtype and the arguments."""


def _declared_once(text: str) -> str:
    """The text of LLVM IR without declarations that stand in it already."""
    lines = text.split("\n")
    declared = dict.fromkeys(line for line in lines if line.startswith("declare"))
    return "\n".join([*declared, *(line for line in lines if line not in declared)])


def _cpu(f: Any) -> str:
    """LLVM's name of the processor that a function is for."""
    return str(f.attrs["target"].attrs.get("mcpu", ""))


def own_functions() -> Any:
    """The pass over host functions: each carries the text of those that it calls, under names of its own.

    LLVM inlines what is called from one place: if functions shared them, the code of one would depend on what else is in the module.
    """
    extern = tvm.ir.Op.get("tirx.call_pure_extern")

    def replaced(f: Any, users: Counter[str]) -> Any:
        wanted: set[tuple[str, str, int]] = set()
        gathered: set[gathers.Key] = set()
        looked_up: set[lookups.Key] = set()
        streams, stores = set[Any](), set[streaming.Key]()
        target = f.attrs["target"]

        def own(call: Any) -> Any:
            name = _NAMES.get(getattr(call.op, "name", ""))
            if streaming.is_mark(call):
                return call.args[0]
            if streaming.finishes(call):
                streams.add(call)
            if name is None:
                return call if (found := lowered(call)) is None else found
            dtype = call.ty.dtype
            key = (name, str(dtype.with_lanes(1)), dtype.lanes)
            wanted.add(key)
            return tvm.ir.Call(extern, args=[tvm.ir.StringImm(symbol(*key)), *call.args], ret_ty=call.ty)

        def scattered(load: Any) -> Any:
            if (found := lookups.looked_up(load, target)) is not None:
                looked_up.add(found[1])
            elif (found := gathers.gathered(load, target)) is not None:
                gathered.add(found[1])
            return load if found is None else found[0]

        def past_caches(store: Any) -> Any:
            found = streaming.streamed(store)
            if found is not None:
                stores.add(found[1])
            return store if found is None else found[0]

        body = tvm_ffi.structural_map(f.body, (tirx.BufferStore, past_caches))  # before the marks go
        body = tvm_ffi.structural_map(body, [(tvm.ir.Call, own), (tvm.ir.expr.TensorLoad, scattered)])
        if not (wanted or gathered or looked_up or streams):
            return f.with_body(body)
        texts = [definitions(wanted, _cpu(f))]
        texts += [gathers.definition(*g) for g in sorted(gathered)]
        texts += [lookups.definition(*t) for t in sorted(looked_up)]
        texts += [streaming.definitions(stores, target)] if streams else []
        text, body = _apart(_declared_once("\n".join(texts)), body, users)
        carried = tvm.ir.StringImm(text)
        return f.with_body(tirx.AttrStmt(carried, "pragma_import_llvm", carried, body))

    @tvm.transform.module_pass(opt_level=0)  # type: ignore[untyped-decorator]
    def run(module: Any, _context: Any) -> Any:
        users: Counter[str] = Counter()
        functions = {v: replaced(f, users) if isinstance(f, tirx.PrimFunc) else f for v, f in module.functions.items()}
        return tvm.IRModule(functions, attrs=module.attrs)

    return run


def _apart(text: str, body: Any, users: Counter[str]) -> tuple[str, Any]:
    """Definitions and the calls of them, renamed where the module has had the name; `users` counts how often."""
    defined = re.findall(r"^define .*? @(\w+)\(", text, re.MULTILINE)
    renamed = {name: f"{name}.{users[name]}" for name in defined if users[name]}
    users.update(defined)
    if not renamed:
        return text, body
    text = re.sub(r"@(\w+)\(", lambda found: f"@{renamed.get(found[1], found[1])}(", text)

    def name(s: Any) -> Any:
        return tvm.ir.StringImm(renamed[s.value]) if s.value in renamed else s

    return text, tvm_ffi.structural_map(body, (tvm.ir.StringImm, name))
