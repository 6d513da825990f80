"""The arguments that commands on the history share, and how they are read."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow_provider_sparklineage.cli.commands import Argument
from airflow_provider_sparklineage.model.exceptions import UnusableInputError


def count(text: str) -> int:
    """Read a number that counts something; for argparse, which names what is none."""
    found = int(text)
    if found < 0:
        raise ValueError
    return found


STORE = Argument(
    ("--store",),
    {
        "metavar": "URL",
        "help": "URL or folder of the store; without it, [sparklineage] history_url of Airflow's "
        "configuration, else the folder history next to the archive",
    },
)
DATASET = Argument(
    ("dataset",),
    {
        "metavar": "DATASET",
        "help": "namespace:name, its URI, or the end of its name if no other ends like that",
    },
)
ANY_DATASET = Argument(
    DATASET.flags,
    {**DATASET.settings, "nargs": "?", "help": f"only of it: {DATASET.settings['help']}"},
)
PARTITION = Argument(
    ("--partition",),
    {
        "metavar": "PARTITION",
        "help": "one partition, e.g. dt=2024-10-15 or dt=2024-10-15/region=eu",
    },
)
COLUMN = Argument(("--column",), {"metavar": "COLUMN", "help": "one column of the dataset"})
AS_OF = Argument(
    ("--as-of",),
    {
        "metavar": "TIME",
        "help": "as it was then, e.g. 2024-10-16 or 2024-10-16T08:00+02:00; UTC without an offset",
    },
)
DEPTH = Argument(
    ("--depth",),
    {"type": count, "metavar": "N", "help": "at most so many runs away; all by default"},
)
JSON = Argument(
    ("--json",), {"action": "store_true", "help": "print one JSON object a line, for programs"}
)
ALL = Argument(
    ("--all",),
    {
        "action": "store_true",
        "help": "a line for each partition, however many there are",
    },
)
IGNORE = Argument(
    ("--ignore",),
    {
        "action": "append",
        "default": [],
        "metavar": "DATASET",
        "help": "a dataset whose changes make nothing stale, e.g. a table of dimensions that is "
        "overwritten each day; as often as needed",
    },
)
STRICT = Argument(
    ("--strict",), {"action": "store_true", "help": "exit with 1 if anything is found"}
)


def time_of(text: str | None) -> datetime | None:
    """Read a time that a person wrote; aware, in UTC.

    :raise UnusableInputError: if it is none
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        problem = f"--as-of {text} is no time."
        raise UnusableInputError(problem, "Write it as 2024-10-16 or 2024-10-16T08:00.") from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
