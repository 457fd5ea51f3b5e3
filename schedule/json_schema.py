"""JSON schema of a plan, derived from the dataclasses, for editors."""

from __future__ import annotations

from .directives import DIRECTIVES
from .directives.base import BySizes, Directive, StepKind
from .graph_sections import GRAPH_RECORDS
from .later_sections import LATER_RECORDS
from .notation.fields import Schema, with_holes
from .notation.records import MISSING, default, kinds, record_schema
from .plan import ExecutionPlan
from .sections import ENTRY_RECORDS

_HOLE: Schema = {
    "description": "an open value: auto, $name, or a mapping that says what it may become",
    "anyOf": [
        {"type": "string", "pattern": "\\$[A-Za-z_]"},
        {"enum": ["auto"]},
        {
            "type": "object",
            "properties": {"choose": {"type": "array", "minItems": 1}, "name": {"type": "string"}, "note": {"type": "string"}},
            "required": ["choose"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"range": {"$ref": "#/$defs/bounds"}, "step": {"type": "integer", "minimum": 1}, "note": {"type": "string"}},
            "required": ["range"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"pow2": {"$ref": "#/$defs/bounds"}, "note": {"type": "string"}},
            "required": ["pow2"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"divides": {"type": ["string", "integer"]}, "note": {"type": "string"}},
            "required": ["divides"],
            "additionalProperties": False,
        },
    ],
}


def plan_schema() -> Schema:
    """The schema of a whole plan file (JSON schema, draft 2020-12)."""
    definitions: Schema = {"bounds": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}, "hole": _HOLE}
    for record in (*ENTRY_RECORDS, *GRAPH_RECORDS, *LATER_RECORDS):
        definitions[record.label()] = (
            record_schema(record) if record.label() not in definitions else _either(definitions[record.label()], record_schema(record))
        )
    for key, directive in DIRECTIVES.items():
        definitions[key] = _argument(directive)
    definitions["directive"] = {"anyOf": [StepKind().schema(), {"$ref": "#/$defs/hole"}]}
    plan = record_schema(ExecutionPlan)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "fluorite ExecutionPlan",
        **_nullable(plan),
        "$defs": definitions,
    }


def _either(first: Schema, second: Schema) -> Schema:
    """Several records may stand in one place: the forms of an extent."""
    return {"anyOf": [*first.get("anyOf", [first]), second]}


def _nullable(plan: Schema) -> Schema:
    """Null takes away what a parent says, so every section may be null."""
    return plan | {"properties": {name: {"anyOf": [inner, {"type": "null"}]} for name, inner in plan["properties"].items()}}


def _argument(directive: type[Directive]) -> Schema:
    """What may stand after a directive's key: its fields, its short form, or nothing."""
    forms = [record_schema(directive)]
    required = [name for name in kinds(directive) if default(directive, name) is MISSING]
    first = directive.first()
    if issubclass(directive, BySizes) or (first and (required in ([], [first]))):
        forms.append(with_holes(kinds(directive)[first]))
    if not required:
        forms.append({"type": "null"})
    text = (directive.__doc__ or "").strip().split("\n")[0]
    return {"description": text, "anyOf": forms}
