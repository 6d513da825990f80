"""``schema``: the JSON Schemas of what this package writes, and of the history.

Schemas of events and of other documents are files of the package. Those of the history are made: of
its tables, and of the types with which its questions answer under ``--json``, so that none can be
forgotten. The description of a key is its ``:param`` in the docstring of that type.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.cli.commands import Argument, Command, say_json
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

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


def _schema(args: argparse.Namespace) -> int:
    from importlib import resources

    from airflow_provider_sparklineage.history.tables import TABLES

    folder = resources.files("airflow_provider_sparklineage.event") / "schemas"
    files = {f.name.removesuffix(".json"): f for f in folder.iterdir() if f.name.endswith(".json")}
    tables = {f"{_TABLE}{table.name}": table for table in TABLES}
    answers = {f"{_TABLE}{name}": name for name in ANSWERS}
    names = sorted({*files, *tables, *answers})
    if args.name is None:
        print("\n".join(names))
    elif args.name in files:
        print(files[args.name].read_text(encoding="utf-8"), end="")
    elif args.name in tables:
        say_json(table_schema(tables[args.name]))
    elif args.name in answers:
        say_json(answer_schema(answers[args.name]))
    else:
        problem = f"There is no schema {args.name}."
        fix = f"There are: {', '.join(names)}."
        raise UnusableInputError(problem, fix)
    return 0


def table_schema(table: Table) -> dict[str, Any]:
    """Describe a row of a table; ``sqlType`` is the type of the column in its Parquet files."""
    from airflow_provider_sparklineage.history.tables import VERSION

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


COMMAND = Command(
    "schema",
    "Print a JSON Schema of what this package writes, of a row of a table of the history, or "
    "of a line that a question of the history answers under --json; without a name, list them",
    _schema,
    (Argument(("name",), {"nargs": "?", "metavar": "NAME", "help": "name of the schema"}),),
)


ANSWERS = ("drift", "gaps", "impact", "patterns", "plan", "stale", "trace")
"""The questions, and ``plan``: what ``impact`` and ``stale`` answer under ``--plan``."""

_PARAM = re.compile(r"^:param (\w+): (.*(?:\n {4}.*)*)", re.MULTILINE)
_ORDER = {"type": "integer", "description": "its place in the plan, from 1 on"}


def answer_schema(name: str) -> dict[str, Any]:
    """Give the schema of a line of an answer, one of :data:`ANSWERS`."""
    types = _answer_types(name)
    schemas, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    named = {one.__name__: one for one in _all_structs(types)}
    definitions = {key: _described(one, named.get(key)) for key, one in components.items()}
    if name == "plan":
        for one in types:
            definition = definitions[one.__name__]
            definition["properties"] = {"order": _ORDER, **definition["properties"]}
            definition["required"].insert(0, "order")
    start = {"oneOf": list(schemas)} if len(schemas) > 1 else schemas[0]
    dialect = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**dialect, "title": f"history.{name}", **start, "$defs": definitions}


def _answer_types(name: str) -> tuple[type[Struct], ...]:
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


def _all_structs(types: tuple[type[Struct], ...]) -> list[type[Struct]]:
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


def _described(schema: dict[str, Any], of: type[Struct] | None) -> dict[str, Any]:
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
