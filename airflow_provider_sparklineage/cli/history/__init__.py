"""Commands on the history: they build it, and ask it questions that span many runs.

``history`` builds and shows the store; ``trace``, ``impact``, ``stale``, ``gaps``, ``drift`` and
``patterns`` are the questions. Answers are tables for people, and with ``--json`` one object a
line. The age of the store goes to stderr, with notes and errors.

The exit codes are those of all commands: 0 if the question is answered, with any answer; 1 if it is
not, or if ``--strict`` is given and the answer is not empty; 2 if there is no store, or the store
has nothing of that name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.commands import Argument, Command, Group

if TYPE_CHECKING:
    import argparse


def _build(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.history import store

    return store.build(args)


def _show(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.history import store

    return store.show_datasets(args)


def _trace(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.history import questions

    return questions.answer_trace(args)


def _gaps(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.history import questions

    return questions.answer_gaps(args)


def _drift(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.history import questions

    return questions.answer_drift(args)


def _patterns(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.history import questions

    return questions.answer_patterns(args)


def _impact(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.history import questions

    return questions.answer_impact(args)


def _stale(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.history import questions

    return questions.answer_stale(args)


def count(text: str) -> int:
    """Read a whole number of at least 0.

    :raise ValueError: if the text is no such number; argparse's own message then has the text
    """
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
EVENTS = Argument(
    ("--events",),
    {
        "nargs": "+",
        "action": "extend",
        "metavar": "BUNDLE_OR_FILE",
        "help": "ask these instead of a store: capture bundles (folders, or URLs where drivers in "
        "a cluster delivered them), archive folders, files of OpenLineage events (JSON, NDJSON, - "
        "for stdin)",
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
_ONE_JSON = Argument(JSON.flags, {"action": "store_true", "help": "print it as JSON"})
_HISTORY = Group(
    "history",
    "Build the tables of what many runs did, and show what is in them",
    (
        Command(
            "build",
            "Add events to the history: what is new in the archive, or in what is named",
            _build,
            (
                Argument(
                    ("source",),
                    {
                        "nargs": "*",
                        "metavar": "SOURCE",
                        "help": "archive folders or their URLs, capture bundles, files of "
                        "OpenLineage events of any producer (JSON, NDJSON), other stores; without "
                        "one, the archive of Airflow's configuration",
                    },
                ),
                Argument(
                    ("--keep",),
                    {
                        "type": float,
                        "metavar": "DAYS",
                        "help": "forget events that are older, for good; without it nothing is "
                        "forgotten",
                    },
                ),
                STORE,
                _ONE_JSON,
                Argument(
                    STRICT.flags,
                    {"action": "store_true", "help": "exit with 1 if anything was skipped"},
                ),
            ),
        ),
        Command(
            "show",
            "Show what is in the history: its datasets, their partitions and runs",
            _show,
            (STORE, JSON),
        ),
    ),
)
_OUTPUT = (STORE, JSON)
_TRACE = Command(
    "trace",
    "Show which partitions and columns something was made of, run by run, back to its sources",
    _trace,
    (
        DATASET,
        PARTITION,
        COLUMN,
        AS_OF,
        DEPTH,
        Argument(
            ("--direct",),
            {
                "action": "store_true",
                "help": "of a column: only sources of its values, without the columns that decide "
                "which rows or groups there are (filters, joins, …)",
            },
        ),
        ALL,
        EVENTS,
        *_OUTPUT,
    ),
)
_OTHERS = (
    Command(
        "gaps",
        "List partitions that runs of the DAG should have written, and none did",
        _gaps,
        (DATASET, *_OUTPUT, STRICT),
    ),
    Command(
        "drift",
        "List what changed from one run of a task to the next: sources of columns, inputs, numbers "
        "of partitions, the rule by which it reads",
        _drift,
        (
            Argument(
                ("task",),
                {
                    "metavar": "TASK",
                    "help": "dag_id.task_id, task_id if no other task is called that, or a job's "
                    "name",
                },
            ),
            *_OUTPUT,
            STRICT,
        ),
    ),
    Command(
        "patterns",
        "Show by which rule the partitions that runs read follow from those that they wrote, and "
        "the runs that break it",
        _patterns,
        (DATASET, *_OUTPUT),
    ),
)
_PLAN_ARGUMENTS = (
    Argument(("--plan",), {"action": "store_true", "help": "print the rerun plan alone"}),
    Argument(
        ("--clear",),
        {
            "action": "store_true",
            "help": "run what the plan lists again, wave by wave: Airflow clears it, after a "
            "question; only where Airflow has its database",
        },
    ),
    Argument(("--yes",), {"action": "store_true", "help": "clear without the question"}),
)
_IMPACT = Command(
    "impact",
    "Show all that was made of a partition or a column, and what to run again, in which order",
    _impact,
    (
        DATASET,
        PARTITION,
        COLUMN,
        AS_OF,
        DEPTH,
        *_PLAN_ARGUMENTS,
        ALL,
        EVENTS,
        STORE,
        JSON,
    ),
)
_STALE = Command(
    "stale",
    "List partitions made of data that has changed since, why, and what to run again",
    _stale,
    (
        ANY_DATASET,
        IGNORE,
        *_PLAN_ARGUMENTS,
        ALL,
        STORE,
        JSON,
        STRICT,
    ),
)

COMMANDS = (_HISTORY, _TRACE, _IMPACT, _STALE, *_OTHERS)
"""Commands on the history, in the order in which people need them."""
