"""What a field may hold: reads a tree, holes included, into a typed value, and says what a schema says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from .holes import AUTO, Choose, Divides, Hole, Pow2, Range, Ref
from .reading import FAILED, Reading
from .tree import INTEGER, Items, Keys, Leaf, Ready, Tree, integer, shape, tree_of

Schema = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """The type of a field. `open` fields may hold holes; `auto` is what `auto` may become there, the default first."""

    open: bool = field(default=True, kw_only=True)
    auto: tuple[Any, ...] | None = field(default=None, kw_only=True)
    words: ClassVar[str] = "a value"
    scalar: ClassVar[bool] = False
    arithmetic: ClassVar[bool] = False

    def read(self, tree: Tree, reading: Reading) -> Any:
        """The typed value, a hole, or FAILED."""
        reading.mark(tree.place)
        hole = self._hole(tree, reading) if self.open else None
        return self.value(tree, reading) if hole is None else hole

    def value(self, tree: Tree, reading: Reading) -> Any:
        """The typed value of a tree that is no hole, or FAILED."""
        raise NotImplementedError

    def fits(self, tree: Tree) -> bool:
        """Whether the tree has the shape of this type: decides between the types of a union."""
        return isinstance(tree, Leaf) and not tree.is_null

    def schema(self) -> Schema:
        """JSON schema of the value, holes left out."""
        raise NotImplementedError

    def wrong(self, tree: Tree, reading: Reading) -> Any:
        """Refuse a value of another type."""
        tries: tuple[str, ...] = ()
        if isinstance(tree, Leaf) and not tree.plain and self.fits(replace(tree, plain=True)):
            return reading.fail(tree.place, "P008", f"{reading.name} is the text {shape(tree)}", f"expected {self.words}", (tree.text,))
        if self.open and self.scalar and isinstance(tree, Keys):
            tries = ("as a hole: {choose: [16, 32]}, {pow2: [16, 128]} or $NAME",)
        elif self.open and self.arithmetic and isinstance(tree, Leaf) and tree.text.isidentifier():
            tries = (f"${tree.text}, if holes: has it",)
        return reading.fail(tree.place, "P008", f"{reading.name} is {shape(tree)}", f"expected {self.words}", tries)

    def _hole(self, tree: Tree, reading: Reading) -> Any:
        match tree:
            case Leaf() if (tree.text.startswith("$") and len(tree.text) > 1) or (self.arithmetic and "$" in tree.text):
                return self._checked(_made(lambda: Ref(tree.text), tree, reading), tree, reading)
            case Ready(Ref() as ref):
                return self._checked(ref, tree, reading)
            case Leaf() if tree.text == "auto" and self.auto is not None:
                return AUTO.placed(tree.place)
            case Ready(Choose() as hole):
                return hole.of(tuple(self.read(tree_of(value), reading.sealed()) for value in hole.values))
            case Ready(Hole() as hole):
                if hole == AUTO and self.auto is None:
                    return reading.fail(tree.place, "P008", f"{reading.name} is auto", f"expected {self.words}")
                return hole
            case Keys():
                return self._mapped_hole(tree, reading)
        return None

    def _checked(self, ref: Any, tree: Tree, reading: Reading) -> Any:
        if isinstance(ref, Ref) and not ref.is_name and not self.arithmetic:
            return reading.fail(tree.place, "P014", f"{reading.name} is {ref.text}", f"that is an integer, expected {self.words}")
        return ref

    def _mapped_hole(self, tree: Keys, reading: Reading) -> Any:
        names = set(tree.names) - {"note", "name", "step"}
        if len(names) != 1:
            return None
        kind = names.pop()
        inner = tree.get(kind)
        extra = set(tree.names) - {kind, "note"} - ({"name"} if kind == "choose" else {"step"} if kind == "range" else set())
        if extra or inner is None:
            return None
        note_leaf = tree.get("note")
        note = note_leaf.text if isinstance(note_leaf, Leaf) else None
        match kind, inner:
            case "choose", Items(values):
                if not values:
                    return reading.fail(inner.place, "P014", f"{reading.name} chooses from nothing", "choose needs at least one value")
                alternatives = tuple(self.read(value, reading.inside("choose", i).sealed()) for i, value in enumerate(values))
                name = tree.get("name")
                label = name.text if isinstance(name, Leaf) else None
                return FAILED if FAILED in alternatives else Choose(*alternatives, name=label, note=note, place=tree.place)
            case (("range" | "pow2"), Items((Leaf() as low, Leaf() as high))) if self.scalar:
                step = tree.get("step") or Leaf("1")
                if not isinstance(step, Leaf) or not all(INTEGER.fullmatch(leaf.text) for leaf in (low, high, step)):
                    return reading.fail(
                        tree.place, "P014", f"{kind} of {reading.name} is not made of integers", f"write {{{kind}: [1, 64]}}"
                    )
                bounds = integer(low.text), integer(high.text)
                if kind == "pow2":
                    return _made(lambda: Pow2(*bounds, note=note), tree, reading)
                return _made(lambda: Range(*bounds, integer(step.text), note=note), tree, reading)
            case "divides", Leaf() if self.scalar:
                return Divides(inner.text, note=note, place=tree.place)
        return None


def _made(make: Callable[[], Hole], tree: Tree, reading: Reading) -> Any:
    try:
        return make().placed(tree.place)
    except ValueError as error:
        return reading.fail(tree.place, "P014", f"{reading.name} is {shape(tree)}, which is no hole", str(error))
