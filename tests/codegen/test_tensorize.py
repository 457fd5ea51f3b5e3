"""tensorize: what the instructions compute against their meaning, products of awkward sizes against the oracle, artefacts, refusals."""

# ruff: noqa: E501 (one case a line)
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import fluorite as fl
import ml_dtypes
import numpy as np
import pytest
from fluorite.algo.errors import ArtifactError, PlanError
from fluorite.codegen import driver
from fluorite.codegen.checking import check
from fluorite.codegen.emit import emit
from fluorite.codegen.runtime import host
from fluorite.codegen.runtime.load import load
from fluorite.codegen.statements import MultiplyFragments, walk
from fluorite.codegen.target import resolve_target
from fluorite.codegen.tvm_adapter import compile_functions
from fluorite.schedule import ExecutionPlan
from fluorite.schedule.intrinsics import INTRINSICS

PROCESSORS = {name: i for name, i in INTRINSICS.items() if not i.arch}
TYPES = {"uint8": fl.u8, "int8": fl.i8, "int16": fl.i16, "bfloat16": fl.bf16, "float32": fl.f32}


def here(name: str) -> bool:
    """Whether this machine can run an intrinsic."""
    there = set(host.cpu_features() or ())
    return there.issuperset(INTRINSICS[name].features) and ("amx_tile" not in INTRINSICS[name].features or host.tiles_allowed())


def product(a: str, b: str, *extents: Any) -> fl.Graph:
    n, k, m = extents or ("n", "k", "m")
    wide = "float32" if a == "bfloat16" else "int32"

    def out(a: Any, b: Any) -> Any:
        return fl.stage(lambda i, j: fl.sum(lambda k: fl.cast(a[i, k], wide) * fl.cast(b[k, j], wide)), name="out")

    return fl.trace(out, None, inputs={"a": TYPES[a](n, k), "b": TYPES[b](k, m)})


def plan(name: str, tall: int = 2, broad: int = 2, more: str = "", target: str = "") -> ExecutionPlan:
    """Tiles of `tall` x `broad` results of the instruction, both operands packed."""
    i = INTRINSICS[name]
    rows = f"split: {{axis: i, factor: {i.rows}}}" if i.rows > 1 else "split: {axis: i, factor: 1}"
    return ExecutionPlan.from_yaml(
        f"""
numerics: {{allow: precision}}
{target}
fusion: {{rest: none}}
schedule:
  out:
    - cache: acc
    - split: {{axis: i, factor: {i.rows * tall}}}
    - split: {{axis: j, factor: {i.columns * broad}}}
    - reorder: [i_outer, j_outer, i_inner, j_inner]
    {more}
  out/acc:
    - compute_at: {{stage: out, axis: j_outer}}
    - pack: {{tensor: a, sizes: {{i: {i.rows}, k: {i.depth}}}, order: [i, k], into: a_packed}}
    - pack: {{tensor: b, sizes: {{k: {i.depth}}}, order: [k, j], into: b_tiles}}
    - pack: {{tensor: b_tiles, sizes: {{j: {i.columns}, k_inner: {i.group}}}, order: [j, k_outer, k_inner], into: b_packed}}
    - {rows}
    - split: {{axis: j, factor: {i.columns}}}
    - split: {{axis: k, factor: {i.depth}}}
    - reorder: [k_outer, i_outer, j_outer, i_inner, j_inner, k_inner]
    - tensorize: {{axis: {'i_inner' if i.rows > 1 else 'j_inner'}, intrinsic: {name}}}
  a_packed: [compute_root]
  b_packed: [compute_root]
  b_tiles: [compute_inline]
""".replace("\n    \n", "\n"),
        "p.yaml",
    )


def values(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype == "bfloat16":
        return rng.standard_normal(shape).astype(ml_dtypes.bfloat16)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def compiled(graph: fl.Graph, p: ExecutionPlan) -> Callable[..., Any]:
    model: Callable[..., Any] = driver.compile(graph, p, cache=False)
    return model


PAIRS = [(name, a, b) for name, i in PROCESSORS.items() for a, b in i.operands]
SIZES = [(1, 1, 1), (3, 5, 7), (16, 64, 32), (33, 65, 47), (17, 129, 16)]


@pytest.mark.parametrize(("name", "a", "b"), PAIRS)
def test_awkward_sizes(name: str, a: str, b: str) -> None:
    """Integers to the last bit; bfloat16 within the rounding of float32 sums."""
    if not here(name):
        pytest.skip(f"this machine has no {name}")
    graph = product(a, b)
    call = compiled(graph, plan(name))
    for n, k, m in SIZES:
        x, y = values(a, (n, k), n), values(b, (k, m), m)
        got, want = call(x, y), graph.run(x, y)
        if want.dtype.kind == "i":
            np.testing.assert_array_equal(got, want)
        else:
            scale = np.abs(x.astype("float64")) @ np.abs(y.astype("float64"))
            assert (np.abs(got - want) <= (k + 2) * np.finfo("float32").eps * scale + 1e-37).all()


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_instruction_is_its_meaning(name: str) -> None:
    """One instruction, to the bit: the order of the sums, wrapped integers, subnormal numbers, infinities."""
    if not here(name):
        pytest.skip(f"this machine has no {name}")
    i = INTRINSICS[name]
    a, b = i.operands[0]
    call = compiled(product(a, b), plan(name, 1, 1))
    for seed in range(8):
        x, y = values(a, (i.rows, i.depth), seed), values(b, (i.depth, i.columns), seed + 99)
        if a == "bfloat16" and seed > 3:
            x = (x.astype("float32") * 2.0 ** np.random.default_rng(seed).integers(-135, 20, x.shape)).astype(x.dtype)
        if seed == 7 and a == "bfloat16":
            x[0, 0], y[1, 0] = np.inf, np.nan
        c = np.zeros((i.rows, i.columns), i.result)
        np.testing.assert_array_equal(call(x, y), i.meaning(c, x, y))


def lowered(graph: fl.Graph, p: ExecutionPlan) -> Any:
    chosen, _ = driver.prepared(p, graph)
    (made,) = driver.lower_variants(graph, chosen, resolve_target(chosen.target))
    return made


CALLS = [("avx512_vnni", "uint8", "int8", "vpdpbusd"), ("avx512_bf16", "bfloat16", "bfloat16", "vdpbf16ps"), ("amx_int8", "int8", "int8", "tdpbssd"), ("amx_bf16", "bfloat16", "bfloat16", "tdpbf16ps")]  # fmt: skip


@pytest.mark.parametrize(("name", "a", "b", "instruction"), CALLS)
def test_the_instruction_is_in_the_code(name: str, a: str, b: str, instruction: str) -> None:
    made = lowered(product(a, b, 32, 128, 64), plan(name, target="target: {cpu: sapphirerapids}"))
    kernel = made.kernels[-1]
    code = compile_functions({kernel.name: emit(kernel)}, resolve_target(made.scheduled.plan.target).dict()).mod.inspect_source("s")
    assert instruction in code and made.numerics == INTRINSICS[name].numerics
    if name.startswith("amx"):
        assert code.count("tileloadd") == code.count(instruction), "each of four operands is loaded once for two products"
        assert "tilerelease" in code


def test_auto_takes_what_fits() -> None:
    for target, name in [("sapphirerapids", "amx_int8"), ("icelake-server", "avx512_vnni")]:
        made = lowered(product("uint8", "int8"), plan_text(plan(name, target=f"target: {{cpu: {target}}}"), f"intrinsic: {name}", "intrinsic: auto"))
        assert {n.intrinsic for n in walk(made.kernels[-1].body) if isinstance(n, MultiplyFragments)} == {name}


def plan_text(p: ExecutionPlan, old: str, new: str) -> ExecutionPlan:
    text = p.to_yaml()
    assert old in text, text
    return ExecutionPlan.from_yaml(text.replace(old, new), "p.yaml")


def products(kind: str, a: str, b: str) -> fl.Graph:
    """Sums of products of a and b written in one way or another, then perhaps something that follows."""
    wide = "float32" if a == "bfloat16" else "int32"

    def out(x: Any, y: Any) -> Any:
        if kind == "of batches":
            return fl.stage(lambda n, i, j: fl.sum(lambda k: fl.cast(x[n, i, k], wide) * fl.cast(y[n, k, j], wide)), name="out")
        if kind == "transposed":
            return fl.stage(lambda i, j: fl.sum(lambda k: fl.cast(x[k, i], wide) * fl.cast(y[j, k], wide)), name="out")
        if kind == "one row":
            return fl.stage(lambda j: fl.sum(lambda k: fl.cast(x[k], wide) * fl.cast(y[k, j], wide)), name="out")
        if kind == "over two axes":
            return fl.stage(lambda i, j: fl.sum(lambda n, k: fl.cast(x[n, i, k], wide) * fl.cast(y[n, k, j], wide)), name="out")
        product = fl.stage(lambda i, j: fl.sum(lambda k: fl.cast(x[i, k], wide) * fl.cast(y[k, j], wide)), name="product")
        return product if kind != "with what follows" else fl.stage(lambda i, j: fl.cast(product[i, j], "float32") * 0.5, name="out")

    left = {"of batches": ("n", "i", "k"), "over two axes": ("n", "i", "k"), "one row": ("k",), "transposed": ("k", "i")}.get(kind, ("i", "k"))
    right = {"of batches": ("n", "k", "j"), "over two axes": ("n", "k", "j"), "transposed": ("j", "k")}.get(kind, ("k", "j"))
    return fl.trace(out, None, inputs={"x": TYPES[a](*left), "y": TYPES[b](*right)})


def used(made: Any) -> set[str]:
    return {n.intrinsic for k in made.kernels for n in walk(k.body) if isinstance(n, MultiplyFragments)}


CHOSEN = [
    ("sapphirerapids", "uint8", "int8", "reassociates", {"amx_int8"}),
    ("sapphirerapids", "int8", "int8", "exact", {"amx_int8"}),
    ("icelake-server", "int8", "uint8", "reassociates", {"avx512_vnni"}),
    ("icelake-server", "int8", "int8", "exact", {"avx512_vnni_i16"}),
    ("sapphirerapids", "int16", "uint8", "exact", {"avx512_vnni_i16"}),
    ("skylake-avx512", "uint8", "int8", "reassociates", set()),
    ("sapphirerapids", "bfloat16", "bfloat16", "reassociates", set()),
    ("sapphirerapids", "bfloat16", "bfloat16", "precision", {"amx_bf16"}),
    ("cooperlake", "bfloat16", "bfloat16", "precision", {"avx512_bf16"}),
    ("haswell", "bfloat16", "bfloat16", "precision", set()),
]  # fmt: skip


@pytest.mark.parametrize(("cpu", "a", "b", "allow", "instructions"), CHOSEN)
def test_the_default_plan_takes_what_the_processor_has(cpu: str, a: str, b: str, allow: str, instructions: set[str]) -> None:
    """And bfloat16 by instructions that take subnormal numbers for 0 only where the plan allows it."""
    p = ExecutionPlan.from_yaml(f"target: {{cpu: {cpu}}}\nnumerics: {{allow: {allow}}}")
    made = lowered(products("alone", a, b), p)
    assert used(made) == instructions
    assert made.numerics == ("precision" if instructions and a == "bfloat16" else "exact")
    again = lowered(products("alone", a, b), ExecutionPlan.from_yaml(made.scheduled.text()))
    assert again.text() == made.text()


@pytest.mark.parametrize(("cpu", "name", "kernels"), [("sapphirerapids", "amx_bf16", 2), ("cooperlake", "avx512_bf16", 3)])
def test_what_is_rounded_for_a_product_is_rounded_as_it_is_packed(cpu: str, name: str, kernels: int) -> None:
    """The rows too, where they are packed: not for vectors, if the depth divides."""

    def out(a: Any, b: Any) -> Any:
        return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[k, j]), name="out")

    graph = fl.trace(out, None, inputs={"a": fl.f32(192, 64), "b": fl.f32(64, 96)})
    made = lowered(graph, ExecutionPlan.from_yaml(f"target: {{cpu: {cpu}}}\nprecision: {{compute: bf16}}"))
    assert used(made) == {name} and len(made.kernels) == kernels, made.text()


WAYS = [
    ("alone", "int8", "int8", "native"), ("with what follows", "uint8", "int8", "native"), ("of batches", "uint8", "uint8", "native"),
    ("transposed", "int8", "uint8", "native"), ("over two axes", "bfloat16", "bfloat16", "native"), ("one row", "uint8", "int8", "native"),
    ("with what follows", "uint8", "int8", "cooperlake"), ("transposed", "int8", "uint8", "cooperlake"), ("of batches", "bfloat16", "bfloat16", "cooperlake"),
    ("transposed", "int16", "uint8", "native"), ("of batches", "int8", "int8", "cooperlake"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "a", "b", "cpu"), WAYS)
def test_the_default_plan_multiplies_narrow_types(kind: str, a: str, b: str, cpu: str) -> None:
    if cpu != "native" and not here("avx512_bf16"):
        pytest.skip("this machine cannot run what is made for cooperlake")
    graph = products(kind, a, b)
    call = compiled(graph, ExecutionPlan.from_yaml(f"target: {{cpu: {cpu}}}\nnumerics: {{allow: precision}}"))
    for i, k, j in [(1, 1, 1), (9, 33, 17), (40, 64, 70), (70, 130, 33)]:
        sizes = {"i": i, "k": k, "j": j, "n": 3}
        x, y = (values(t.dtype, tuple(sizes[str(e)] for e in t.shape), k) for t in graph.leaves)
        got, want = call(x, y), graph.run(x, y)
        if a == "bfloat16":
            scale = abs(x.astype("float64")).max() * abs(y.astype("float64")).max() * 3 * k
            assert (abs(got - want) <= (3 * k + 2) * np.finfo("float32").eps * scale).all()
        else:
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("m", "k", "n", "batch"), [(1, 64, 48, 0), (3, 100, 130, 0), (65, 64, 257, 0), (7, 24, 40, 5)])
def test_constant_extents_and_weights_known_at_build(m: int, k: int, n: int, batch: int) -> None:
    """Few rows, many, one; a depth below the instruction's; columns packed when the model is built."""
    rng = np.random.default_rng(0)
    w = rng.integers(-128, 128, (k, n)).astype("int8")

    def out(x: Any, y: Any) -> Any:
        held = fl.constant(w)
        fixed = fl.stage(lambda i, j: fl.sum(lambda k: fl.cast(x[i, k], "int32") * fl.cast(held[k, j], "int32")), name="fixed")
        if not batch:
            return fixed
        return fixed, fl.stage(lambda b, i, j: fl.sum(lambda k: fl.cast(x[i, k], "int32") * fl.cast(y[b, k, j], "int32")), name="batched")

    graph = fl.trace(out, None, inputs={"x": fl.i8(m, k), "y": fl.i8(max(1, batch), k, n)})
    x, y = (rng.integers(-128, 128, shape).astype("int8") for shape in ((m, k), (max(1, batch), k, n)))
    got, want = compiled(graph, ExecutionPlan())(x, y), graph.run(x, y)
    for found, meant in zip(got, want, strict=True) if batch else [(got, want)]:
        np.testing.assert_array_equal(found, meant)


def test_the_result_may_be_written_in_place() -> None:
    """Where everything divides, no cache is needed; and a pipeline brings operands near."""
    if not here("avx512_vnni"):
        pytest.skip("this machine has no avx512_vnni")
    graph = product("uint8", "int8", 12, 64, 48)
    text = "fusion: {rest: none}\nschedule: {out: [{pack: {tensor: b, sizes: {j: 16, k: 4}, order: [j, k], into: b_packed}}, {split: {axis: i, factor: 3}}, {split: {axis: j, factor: 16}}, {split: {axis: k, factors: [~, 4, 4], into: [ko, km, ki]}}, {reorder: [i_outer, ko, km, i_inner, j_outer, j_inner, ki]}, {parallel: i_outer}, {software_pipeline: ko}, {tensorize: j_inner}], b_packed: [{compute_at: {stage: out, axis: ko}}]}"
    x, y = values("uint8", (12, 64), 1), values("int8", (64, 48), 2)
    np.testing.assert_array_equal(compiled(graph, ExecutionPlan.from_yaml(text))(x, y), graph.run(x, y))


def test_mixed_precision_with_bfloat16_dot_products() -> None:
    """Under precision: {compute: bf16} the operands are rounded first, which is a class that these instructions are within."""
    if not here("avx512_bf16"):
        pytest.skip("this machine has no avx512_bf16")

    def out(a: Any, b: Any) -> Any:
        return fl.stage(lambda i, j: fl.sum(lambda k: a[i, k] * b[k, j]), name="out")

    graph = fl.trace(out, None, inputs={"a": fl.f32("n", "k"), "b": fl.f32("k", "m")})
    text = plan("avx512_bf16").to_yaml().replace("numerics: {allow: precision}\n", "").replace("tensor: a,", "tensor: a/cast,").replace("tensor: b,", "tensor: b/cast,")
    p = ExecutionPlan.from_yaml(text.replace("version: 1", "version: 1\nprecision: {compute: bf16}"), "p.yaml")
    report = check(graph, p)
    assert report.numerics == "precision" and report.ok, report.text()


def test_an_artefact_asks_the_system_for_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not here("amx_int8"):
        pytest.skip("this machine has no amx_int8")
    graph = product("uint8", "int8", "n", "k", 32)
    folder = driver.build(graph, plan("amx_int8"), tmp_path / "tiles")
    x, y = values("uint8", (32, 64), 1), values("int8", (64, 32), 2)
    np.testing.assert_array_equal(load(folder).out(x, y), graph.run(x, y))
    monkeypatch.setattr(host, "tiles_allowed", lambda: False)
    with pytest.raises(ArtifactError, match="tiles uses the tile registers of AMX") as refused:
        load(folder)
    assert refused.value.problems[0].code == "R012"


U8I8 = ("uint8", "int8")
REFUSED: list[tuple[str, tuple[str, str], tuple[Any, ...], str, str, str, str]] = [
    ("avx512_vnni", U8I8, (), "intrinsic: avx512_vnni", "intrinsic: vpdpbusd", "P280", "there is no intrinsic vpdpbusd"),
    ("avx512_vnni", U8I8, (), "cpu: sapphirerapids", "cpu: skylake-avx512", "P282", "the target has no avx512_vnni"),
    ("amx_int8", U8I8, (), "cpu: sapphirerapids", "cpu: cooperlake", "P282", "the target has no amx_tile, amx_int8"),
    ("avx512_vnni", ("int8", "int8"), (), "", "", "P280", "adds products of uint8 x int8 or int8 x uint8 to int32, and acc computes int8 x int8 in int32"),
    ("avx512_bf16", ("bfloat16", "bfloat16"), (), "allow: precision", "allow: reassociates", "P301", "take subnormal numbers for 0"),
    ("avx512_vnni", U8I8, (), "axis: j, factor: 16", "axis: j, factor: 8", "P280", "takes loops of 16 and one of the reduction of 4, and inside are j_inner 8, k_inner 4"),
    ("avx512_vnni", U8I8, (), "sizes: {j: 16, k_inner: 4}, order: [j, k_outer, k_inner]", "sizes: {k_inner: 4, j: 16}, order: [j, k_outer, k_inner]", "P281", "reads 4 of k_inner side by side for each j_inner in b_packed"),
    ("avx512_vnni", U8I8, (), "- pack: {tensor: a, sizes: {i: 1, k: 4}, order: [i, k], into: a_packed}", "- note", "P281", "k has k iterations, which the instruction does not divide, and a has no zeros beyond them"),
    ("amx_int8", U8I8, (), "axis: i, factor: 32", "axis: i, factor: 128", "P280", "are 16 results of amx_int8, and 4 fit into its registers"),
    ("avx512_vnni", U8I8, (), "[k_outer, i_outer, j_outer,", "[i_outer, k_outer, j_outer,", "", ""),
    ("avx512_vnni", U8I8, (), "axis: j_inner, intrinsic", "axis: j_middle, intrinsic", "P203", 'acc has no loop "j_middle"'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "types", "extents", "old", "new", "code", "words"), REFUSED)
def test_refusals(name: str, types: tuple[str, str], extents: tuple[Any, ...], old: str, new: str, code: str, words: str) -> None:
    text = plan(name, target="target: {cpu: sapphirerapids}").to_yaml()
    assert old in text, text
    text = text.replace(old, new)
    if new == "- note":
        text = text.replace("    - note\n", "").replace("  a_packed: [compute_root]\n", "")
    graph = product(*types, *extents)
    if not code:  # the same instruction, said otherwise
        assert lowered(graph, ExecutionPlan.from_yaml(text, "p.yaml"))
        return
    with pytest.raises(PlanError) as refused:
        lowered(graph, ExecutionPlan.from_yaml(text, "p.yaml"))
    assert [p.code for p in refused.value.problems] == [code] and words in str(refused.value), str(refused.value)


def test_a_gpu_has_other_instructions() -> None:
    text = plan("avx512_vnni", target="target: {kind: cuda, arch: sm_80}").to_yaml()
    with pytest.raises(PlanError) as refused:
        lowered(product(*U8I8), ExecutionPlan.from_yaml(text))
    assert "P282" in {p.code for p in refused.value.problems}
