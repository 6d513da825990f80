"""``schema``: the JSON Schemas of what this package writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.commands import Argument, Command
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse


def _schema(args: argparse.Namespace) -> int:
    from importlib import resources

    folder = resources.files("airflow_provider_sparklineage.event") / "schemas"
    names = sorted(
        f.name.removesuffix(".json") for f in folder.iterdir() if f.name.endswith(".json")
    )
    if args.name is None:
        print("\n".join(names))
        return 0
    if args.name not in names:
        problem = f"There is no schema {args.name}."
        fix = f"There are: {', '.join(names)}."
        raise UnusableInputError(problem, fix)
    print((folder / f"{args.name}.json").read_text(encoding="utf-8"), end="")
    return 0


COMMAND = Command(
    "schema",
    "Print a JSON Schema of what this package writes; without a name, list them",
    _schema,
    (Argument(("name",), {"nargs": "?", "metavar": "NAME", "help": "name of the schema"}),),
)
