"""``schema``: prints a JSON Schema.

Schemas of events and of other documents are files of the package. Schemas of the history are
generated from its tables, and from the types of its answers under ``--json``, so that no schema can
be forgotten. The description of a key is its ``:param`` in the docstring of the type.
"""

from __future__ import annotations

import inspect
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.history.queries import answers, drift, gaps, schedule
from airflow_provider_sparklineage.history.queries.patterns.observed import Pattern
from airflow_provider_sparklineage.history.queries.patterns.timetable import Timetable
from airflow_provider_sparklineage.history.tables import TABLES, VERSION
from airflow_provider_sparklineage.model import texts

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from msgspec import Struct

    from airflow_provider_sparklineage.history.tables import Table


_TABLE = "history."  # `columns` alone says nothing in a list of all schemas
_COLUMN_TYPES: dict[str, dict[str, Any]] = {
    "VARCHAR": {"type": ["string", "null"]},
    "BIGINT": {"type": ["integer", "null"]},
    "INTEGER": {"type": ["integer", "null"]},
    "BOOLEAN": {"type": ["boolean", "null"]},
    "TIMESTAMP": {"type": ["string", "null"], "format": "date-time"},
}


def print_schema(args: argparse.Namespace) -> int:
    """Print the schema of a name; without a name, print the names of all schemas. Return 0.

    :raise UnusableInputError: if there is no schema of the name
    """
    folder = resources.files("airflow_provider_sparklineage.event") / "schemas"
    files = {f.name.removesuffix(".json"): f for f in folder.iterdir() if f.name.endswith(".json")}
    tables = {f"{_TABLE}{table.name}": table for table in TABLES}
    names = sorted({*files, *tables, *(f"{_TABLE}{name}" for name in ANSWERS)})
    if args.name is None:
        print("\n".join(names))
    elif args.name in files:
        print(files[args.name].read_text(encoding="utf-8"), end="")
    elif args.name in tables:
        commands.say_json(table_schema(tables[args.name]))
    elif args.name in names:
        commands.say_json(answer_schema(args.name.removeprefix(_TABLE)))
    else:
        there_are = f"There are: {', '.join(names)}."
        near = texts.did_you_mean(args.name, names)
        commands.refuse(f"There is no schema {args.name}.", near or there_are)
    return 0


def table_schema(table: Table) -> dict[str, Any]:
    """Give the JSON Schema of a row of a table.

    The key ``sqlType`` is not part of JSON Schema: it is the type of the column in Parquet files.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": table.name,
        "description": table.description,
        "tableVersion": VERSION,
        "sortedBy": list(table.sorted_by),
        "type": "object",
        "properties": {
            column.name: {
                **_COLUMN_TYPES[column.type],
                "description": column.description,
                "sqlType": column.type,
            }
            for column in table.columns
        },
        "required": [column.name for column in table.columns],
        "additionalProperties": False,
    }


ANSWERS: Mapping[str, tuple[type[Struct], ...]] = {
    "drift": (drift.Drift,),
    "gaps": (gaps.Gap,),
    "impact": (answers.Hop,),
    "patterns": (Pattern,),
    "mappers": (Timetable,),
    "plan": (answers.Step, answers.ByHand),
    "schedule": (schedule.ScheduleMismatch,),
    "stale": (answers.Stale,),
    "trace": (answers.Hop,),
    "unjudged": (answers.Unjudged,),
}
"""The types of the lines that each question prints under ``--json``.

The key ``plan`` is for the lines of ``impact --plan`` and ``stale --plan``, the key ``mappers``
for those of ``patterns --mapper``, the key ``unjudged`` for those of any question with
``--unjudged``.
"""

_PARAM = re.compile(r"^:param (\w+): (.*(?:\n {4}.*)*)", re.MULTILINE)
_ORDER = {"type": "integer", "description": "its place in the plan, from 1 on"}


def answer_schema(name: str) -> dict[str, Any]:
    """Give the JSON Schema of a line that a command of ``history`` prints under ``--json``.

    :param name: a key of :data:`ANSWERS`, such as ``drift``
    """
    types = ANSWERS[name]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    named = {one.__name__: one for one in _all_structs(types)}
    definitions = {key: _described(one, named[key]) for key, one in components.items()}
    if name == "plan":
        for one in types:
            definition = definitions[one.__name__]
            definition["properties"] = {"order": _ORDER, **definition["properties"]}
            definition["required"].insert(0, "order")
    start = {"oneOf": list(schemas)} if len(schemas) > 1 else schemas[0]
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**dialect, "title": f"history.{name}", **start, "$defs": definitions}


def _all_structs(types: tuple[type[Struct], ...]) -> list[type[Struct]]:
    """Give the struct types among some types and their fields, at any depth."""
    structs: dict[int, type[Struct]] = {}
    waiting: list[Any] = [msgspec.inspect.type_info(one) for one in types]
    while waiting:
        one = waiting.pop()
        if isinstance(one, msgspec.inspect.StructType):
            structs[id(one.cls)] = one.cls
            waiting += [field.type for field in one.fields]
        else:
            inner = (getattr(one, key, None) for key in ("item_type", "value_type"))
            waiting += [*filter(None, inner), *getattr(one, "types", ())]
    return list(structs.values())


def _described(schema: dict[str, Any], of: type[Struct]) -> dict[str, Any]:
    """Give the schema of an object with a description of each key.

    Keys that the object always has are ``required``.

    :param schema: the schema, as msgspec makes it
    :param of: the type of the object; the descriptions are in its docstring
    """
    text = inspect.cleandoc(of.__doc__ or "")
    means = {name: " ".join(found.split()) for name, found in _PARAM.findall(text)}
    properties = {
        name: {key: part for key, part in one.items() if key != "default"}
        | ({"description": means[name]} if name in means else {})
        for name, one in schema["properties"].items()
    }
    return {
        "title": schema["title"],
        "description": _PARAM.sub("", text).strip(),
        "type": "object",
        "properties": properties,
        "required": schema["required"] if of.__struct_config__.omit_defaults else list(properties),
        "additionalProperties": False,
    }
