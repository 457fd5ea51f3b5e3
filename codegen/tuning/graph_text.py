"""A graph as JSON data and back, for processes that do not have the model's Python code.

Arrays stay out of it: values of constants and parameters travel beside it, by path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fluorite.algo.clock import Clock
from fluorite.algo.combiners import Combiner
from fluorite.algo.errors import BuildError
from fluorite.algo.expr import Axis, Const, Expr, Op, Read, Scalar, Size, axis
from fluorite.algo.extent import Dim, Extent, floordiv, maximum, minimum, symbol
from fluorite.algo.extent_json import to_json
from fluorite.algo.externs import found_again
from fluorite.algo.graph import Graph, Method
from fluorite.algo.stages import Extern, Leaf, Reduction, Stage, Turn

from ..host_functions import lost
from ..runtime.calling import imported


def graph_data(graph: Graph) -> dict[str, Any]:
    """The graph as a JSON value; `graph_of` gives an equal graph back, but for values of leaves."""
    nodes = _Nodes()
    stages = [_stage_data(s, nodes) for s in graph.stages]
    return {
        "name": graph.name,
        "nodes": nodes.data,
        "leaves": [
            [t.id, t.path, t.kind, [to_json(e) for e in t.shape], t.dtype, list(t.axis_names), t.source, t.complex] for t in graph.leaves
        ],
        "stages": stages,
        "methods": [[m.name, list(m.inputs), _tree_data(m.result), m.doc, dict(m.updates), sorted(m.complex)] for m in graph.methods],
    }


def graph_of(data: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> Graph:
    """The graph of `graph_data`, with the values of constants by path."""
    nodes = _expressions(data["nodes"])
    leaves = tuple(
        Leaf(i, path, kind, tuple(map(extent_of, shape)), dtype, tuple(names), (values or {}).get(path), source, pair)
        for i, path, kind, shape, dtype, names, source, pair in data["leaves"]
    )
    methods = tuple(
        Method(name, tuple(inputs), _tree_of(result), doc, updates, complex=frozenset(pairs))
        for name, inputs, result, doc, updates, pairs in data["methods"]
    )
    return Graph(data["name"], leaves, tuple(_stage_of(s, nodes) for s in data["stages"]), methods)


def extent_of(data: Any) -> Extent:
    """The extent that `extent.to_json` wrote."""
    if isinstance(data, int):
        return data
    if isinstance(data, str):
        return symbol(data)
    operator, first, *rest = data
    value = extent_of(first)
    for each in map(extent_of, rest):
        match operator:
            case "+":
                value = value + each
            case "-":
                value = value - each
            case "*":
                value = value * each
            case "//":
                value = floordiv(value, each)
            case "min":
                value = minimum(value, each)
            case "max":
                value = maximum(value, each)
            case _:
                raise ValueError(f"{operator} is no operator of extents")
    return value


class _Nodes:
    """Expression nodes in an order in which each comes after its parts, so that shared parts are written once."""

    def __init__(self) -> None:
        self.data: list[list[Any]] = []
        self.numbers: dict[Expr, int] = {}

    def number(self, root: Expr) -> int:
        pending = [root]
        while pending:
            e = pending[-1]
            missing = [c for c in e.operands if c not in self.numbers]
            if missing and e not in self.numbers:
                pending += missing
                continue
            pending.pop()
            if e not in self.numbers:
                self.data.append(self._node(e))
                self.numbers[e] = len(self.data) - 1
        return self.numbers[root]

    def _node(self, e: Expr) -> list[Any]:
        match e:
            case Const(value=value, dtype=dtype, weak=weak):
                return ["const", value, dtype, weak]
            case Axis(name=name, uid=uid):
                return ["axis", name, uid]
            case Scalar(name=name, dtype=dtype):
                return ["scalar", name, dtype]
            case Size(extent=extent):
                return ["size", to_json(extent)]
            case Read(source=source, index=index, dtype=dtype):
                return ["read", source, [self.numbers[i] for i in index], dtype]
            case Op(op=op, args=args, dtype=dtype, weak=weak):
                return ["op", op, [self.numbers[a] for a in args], dtype, weak]
        raise TypeError(f"{type(e).__name__} is no part of a graph")


def _expressions(data: Sequence[Sequence[Any]]) -> list[Expr]:
    fresh = {uid: axis(name) for uid, name in sorted((node[2], node[1]) for node in data if node[0] == "axis")}  # the order of axes is kept
    made: list[Expr] = []
    for kind, *rest in data:
        match kind:
            case "const":
                made.append(Const(*rest))
            case "axis":
                made.append(fresh[rest[1]])
            case "scalar":
                made.append(Scalar(*rest))
            case "size":
                extent = extent_of(rest[0])
                assert isinstance(extent, Dim)
                made.append(Size(extent))
            case "read":
                made.append(Read(rest[0], tuple(made[i] for i in rest[1]), rest[2]))
            case _:
                made.append(Op(rest[0], tuple(made[i] for i in rest[1]), rest[2], rest[3]))
    return made


def _stage_data(s: Stage, nodes: _Nodes) -> list[Any]:
    reduction = s.reduction and [
        s.reduction.kind,
        [nodes.number(a) for a in s.reduction.axes],
        [to_json(e) for e in s.reduction.extents],
        s.reduction.combiner and _combiner_data(s.reduction.combiner, nodes),
    ]
    return [
        s.id,
        s.path,
        s.method,
        [nodes.number(a) for a in s.axes],
        [to_json(e) for e in s.extents],
        s.dtype,
        nodes.number(s.value),
        reduction,
        s.op,
        s.role,
        s.origin,
        s.source,
        s.clock and [nodes.number(s.clock.axis), s.clock.group, s.clock.reverse],
        None if s.when is None else nodes.number(s.when),
        s.turn and [s.turn.group, s.turn.next, s.turn.condition, list(s.turn.around)],
        s.extern and _extern_data(s, s.extern, nodes),
        s.loss,
        [list(count) for count in s.counts],
    ]


def _stage_of(data: Sequence[Any], nodes: Sequence[Expr]) -> Stage:
    i, path, method, axes, extents, dtype, value, reduction, op, role, origin, source, ticks, when, turn, called, loss, counts = data
    clock = ticks and Clock(_axes(ticks[:1], nodes)[0], *ticks[1:])
    made = reduction and _reduction_of(reduction, nodes)
    shape = tuple(map(extent_of, extents))
    condition, loop = None if when is None else nodes[when], turn and Turn(turn[0], turn[1], turn[2], tuple(turn[3]))
    extern = called and _extern_of(path, called, nodes)
    own = _axes(axes, nodes)
    rest = (op, role, origin, source, clock, condition, loop, extern, loss, tuple((n, count) for n, count in counts))
    return Stage(i, path, method, own, shape, dtype, nodes[value], made, *rest)


def _combiner_data(c: Combiner, nodes: _Nodes) -> list[Any]:
    return [*([nodes.number(e) for e in part] for part in (c.left, c.right, c.results, c.identity)), c.dtype, c.commutes]


def _reduction_of(data: Sequence[Any], nodes: Sequence[Expr]) -> Reduction:
    kind, axes, extents, combiner = data
    made = None
    if combiner is not None:
        parts: list[Any] = [tuple(nodes[n] for n in part) for part in combiner[:4]]
        made = Combiner(parts[0], parts[1], parts[2], parts[3], *combiner[4:])
    return Reduction(kind, _axes(axes, nodes), tuple(map(extent_of, extents)), made)


def _extern_data(s: Stage, extern: Extern, nodes: _Nodes) -> list[Any]:
    numbers = [list(x) for x in (extern.ranks, extern.complex_inputs, extern.complex_results)]
    return [_found(s, extern), [[nodes.number(a), to_json(n)] for a, n in extern.reading], extern.conditional, *numbers]


def _extern_of(path: str, data: Sequence[Any], nodes: Sequence[Expr]) -> Extern:
    function, reading, conditional, *numbers = data
    axes = _axes([n for n, _ in reading], nodes)
    ranges = tuple(zip(axes, (extent_of(n) for _, n in reading), strict=True))
    return Extern(imported(path, function), ranges, conditional, *map(tuple, numbers))


def _found(s: Stage, extern: Extern) -> str | None:
    """module:name of a function. Raises BuildError where another process does not find it."""
    if (problem := lost(s)) is not None:
        raise BuildError(problem)
    return found_again(extern.function)


def _axes(numbers: Sequence[int], nodes: Sequence[Expr]) -> tuple[Axis, ...]:
    found = [nodes[n] for n in numbers]
    return tuple(a for a in found if isinstance(a, Axis))


def _tree_data(tree: Any) -> Any:
    match tree:
        case dict():
            return {"dict": [[k, _tree_data(v)] for k, v in tree.items()]}
        case list():
            return {"list": [_tree_data(v) for v in tree]}
        case tuple():
            return {"tuple": [_tree_data(v) for v in tree]}
    return tree


def _tree_of(data: Any) -> Any:
    match data:
        case {"dict": items}:
            return {k: _tree_of(v) for k, v in items}
        case {"list": parts}:
            return [_tree_of(v) for v in parts]
        case {"tuple": parts}:
            return tuple(_tree_of(v) for v in parts)
    return data


__all__ = ["extent_of", "graph_data", "graph_of"]
