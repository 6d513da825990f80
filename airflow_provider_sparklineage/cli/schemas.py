"""``schema``: the JSON Schemas of what this package writes, and of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli.commands import Argument, Command
from airflow_provider_sparklineage.cli.output import say_json
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse

    from airflow_provider_sparklineage.history.tables import Table

_TABLE = "history."  # `columns` alone says nothing in a list of all schemas
_TYPES: dict[str, dict[str, Any]] = {
    "VARCHAR": {"type": ["string", "null"]},
    "BIGINT": {"type": ["integer", "null"]},
    "INTEGER": {"type": ["integer", "null"]},
    "BOOLEAN": {"type": ["boolean", "null"]},
    "TIMESTAMP": {"type": ["string", "null"], "format": "date-time"},
}


def _schema(args: argparse.Namespace) -> int:
    from importlib import resources

    from airflow_provider_sparklineage.cli import answer_schemas
    from airflow_provider_sparklineage.history.tables import TABLES

    folder = resources.files("airflow_provider_sparklineage.event") / "schemas"
    files = {f.name.removesuffix(".json"): f for f in folder.iterdir() if f.name.endswith(".json")}
    tables = {f"{_TABLE}{table.name}": table for table in TABLES}
    answers = {f"{_TABLE}{name}": name for name in answer_schemas.NAMES}
    names = sorted({*files, *tables, *answers})
    if args.name is None:
        print("\n".join(names))
    elif args.name in files:
        print(files[args.name].read_text(encoding="utf-8"), end="")
    elif args.name in tables:
        say_json(table_schema(tables[args.name]))
    elif args.name in answers:
        say_json(answer_schemas.answer_schema(answers[args.name]))
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
                **_TYPES[column.type],
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
