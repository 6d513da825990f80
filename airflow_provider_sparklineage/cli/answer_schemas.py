"""The JSON Schemas of what questions of the history answer under ``--json``: of one line each.

They are made of the types that the questions answer with, so that none can be forgotten; what a
key means is its ``:param`` there.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Struct

NAMES = ("drift", "gaps", "impact", "patterns", "plan", "stale", "trace")
"""The questions, and ``plan``: what ``impact`` and ``stale`` answer under ``--plan``."""

_PARAM = re.compile(r"^:param (\w+): (.*(?:\n {4}.*)*)", re.MULTILINE)
_ORDER = {"type": "integer", "description": "its place in the plan, from 1 on"}


def answer_schema(name: str) -> dict[str, Any]:
    """Give the schema of a line of an answer, one of :data:`NAMES`."""
    types = _types(name)
    schemas, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    named = {one.__name__: one for one in _structs(types)}
    definitions = {key: _whole(one, named.get(key)) for key, one in components.items()}
    if name == "plan":
        for one in types:
            definition = definitions[one.__name__]
            definition["properties"] = {"order": _ORDER, **definition["properties"]}
            definition["required"].insert(0, "order")
    start = {"oneOf": list(schemas)} if len(schemas) > 1 else schemas[0]
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**dialect, "title": f"history.{name}", **start, "$defs": definitions}


def _types(name: str) -> tuple[type[Struct], ...]:
    from airflow_provider_sparklineage.history.queries import answers
    from airflow_provider_sparklineage.history.queries.drift import Drift
    from airflow_provider_sparklineage.history.queries.gaps import Gap
    from airflow_provider_sparklineage.history.queries.patterns.pattern import Pattern

    known: Mapping[str, tuple[type[Struct], ...]] = {
        "drift": (Drift,),
        "gaps": (Gap,),
        "impact": (answers.Hop,),
        "patterns": (Pattern,),
        "plan": (answers.Step, answers.ByHand),
        "stale": (answers.Stale,),
        "trace": (answers.Hop,),
    }
    return known[name]


def _structs(types: tuple[type[Struct], ...]) -> list[type[Struct]]:
    """Give types, and those of their fields, however deep."""
    found: dict[int, type[Struct]] = {}
    waiting: list[Any] = [msgspec.inspect.type_info(one) for one in types]
    while waiting:
        one = waiting.pop()
        if isinstance(one, msgspec.inspect.StructType):
            found[id(one.cls)] = one.cls
            waiting += [field.type for field in one.fields]
        else:
            inner = (getattr(one, key, None) for key in ("item_type", "value_type"))
            waiting += [*filter(None, inner), *getattr(one, "types", ())]
    return list(found.values())


def _whole(schema: dict[str, Any], of: type[Struct] | None) -> dict[str, Any]:
    """Say of the schema of an object which keys are always there, and what each means."""
    text = inspect.cleandoc(of.__doc__ or "") if of else ""
    means = {name: " ".join(found.split()) for name, found in _PARAM.findall(text)}
    properties = {
        name: {
            **{key: part for key, part in one.items() if key != "default"},
            **_meaning(means, name),
        }
        for name, one in schema["properties"].items()
    }
    is_shortened = of is not None and of.__struct_config__.omit_defaults
    return {
        "title": schema["title"],
        "description": _PARAM.sub("", text).strip(),
        "type": "object",
        "properties": properties,
        "required": schema.get("required", []) if is_shortened else list(properties),
        "additionalProperties": False,
    }


def _meaning(means: Mapping[str, str], name: str) -> dict[str, str]:
    return {"description": means[name]} if name in means else {}
