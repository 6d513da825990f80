"""All commands, with their arguments; the function of a command is imported when it runs.

``sparklineage`` has :data:`COMMANDS`, and ``airflow sparklineage`` has :data:`AIRFLOW_COMMANDS`. To
add a command, write its function in a module of :mod:`airflow_provider_sparklineage.cli`, and list
it here, also in :data:`SECTIONS`. The module may import anything, even Airflow if only ``airflow
sparklineage`` has the command; help stays quick, because help does not import the module.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from contextlib import suppress
from datetime import timedelta

from airflow_provider_sparklineage.cli.commands import Argument, Command, Group, argument, switch


def _conn_id(reason: str = "", excludes: tuple[str, ...] = ()) -> Argument:
    """Describe the argument that names the lineage connection.

    :param reason: end of the help text, e.g. why the command needs the connection; it begins with
        a comma or semicolon
    :param excludes: as of :class:`Argument`
    """
    help_ = f"the operator's lineage_conn_id{reason}"
    return argument("--conn-id", "ID", help_, default="sparklineage_default", excludes=excludes)


def _count(text: str) -> int:
    """Read a whole number of at least 0.

    :raise ArgumentTypeError: if the text is not such a number
    """
    with suppress(ValueError):
        if (number := int(text)) >= 0:
            return number
    msg = f"{text!r} is no whole number of at least 0"
    raise ArgumentTypeError(msg)


def _days(text: str) -> timedelta:
    """Read a number of days of at least 0, as far as the calendar has them.

    :raise ArgumentTypeError: if the text is not such a number
    """
    with suppress(ValueError):
        if 0 <= (days := float(text)) <= _MAX_DAYS:
            return timedelta(days=days)
    msg = f"{text!r} is no number of days, 0 to {_MAX_DAYS:,}"
    raise ArgumentTypeError(msg)


_MAX_DAYS = 365_000  # a thousand years


# --- events ---------------------------------------------------------------------------------------


_APPLICATION = argument(
    "--application", "RUN_ID", "OpenLineage run id of the application, if the files have several"
)
_STRICT = switch("--strict", "exit with 1 if anything is missing from the lineage")

_MERGE = Command(
    "merge",
    "Merge captured Spark events into one OpenLineage RunEvent",
    "events:merge",
    (
        argument(
            "input",
            "BUNDLE_OR_FILE",
            "a capture bundle (directory, or URL where a driver in a cluster delivered it), "
            "or files of captured Spark events (NDJSON or JSON, - for stdin)",
            nargs="+",
        ),
        argument(
            "--format",
            None,
            "print the event, or the metadata that DataHub would store, in the form of a file "
            "for `datahub ingest`",
            choices=("openlineage", "datahub"),
            default="openlineage",
        ),
        argument(
            "--transport",
            "JSON_OR_FILE",
            "with --format datahub: configuration of the DataHubTransport that names are to "
            'be those of, e.g. \'{"env": "DEV"}\'',
            needs=("--format datahub",),
        ),
        argument("--job-namespace", "NS", "namespace of the merged event's job"),
        argument("--job-name", "NAME", "name of the merged event's job"),
        argument(
            "--max-event-bytes",
            "N",
            "how large the event may be, instead of 64 MiB",
            type=_count,
        ),
        _APPLICATION,
        _STRICT,
    ),
    ("merge events.ndjson", "merge events.ndjson --format datahub"),
)
_SHOW = Command(
    "show",
    "Show the datasets that a task read and wrote, column by column, and the missing lineage; or "
    "the meaning of a code of missing lineage, and what to do",
    "events:show_events",
    (
        argument(
            "input",
            "BUNDLE_FILE_OR_CODE",
            "capture bundles (directories, or URLs where drivers in a cluster delivered "
            "them), and files of captured Spark events of one application or of merged events, of "
            "which the last of each job counts (NDJSON or JSON, - for stdin); or codes of "
            "degradations, e.g. partitions_unknown, to see what they mean and what to do",
            nargs="+",
        ),
        argument(
            "--html",
            "FILE",
            "write a page of it, as Airflow's tab shows it, instead of printing it",
        ),
        _APPLICATION,
        _STRICT,
    ),
    (
        "show events.ndjson",
        "show events.ndjson --html lineage.html",
        "show partitions_unknown",
    ),
)


# --- the history ----------------------------------------------------------------------------------


_STORE = argument(
    "--store",
    "URL",
    "URL or folder of the store; without it, the option history_url of Airflow's "
    "configuration, else the folder history next to the archive",
)
_EVENTS = argument(
    "--events",
    "BUNDLE_OR_FILE",
    "ask these instead of a store: capture bundles (folders, or URLs where drivers in a "
    "cluster delivered them), archive folders, files of OpenLineage events (JSON, NDJSON, - for "
    "stdin)",
    nargs="+",
    action="extend",
    excludes=("--store",),
)
_ONE_DATASET = "namespace:name, its URI, or the end of its name if no other ends like that"
_DATASET = argument("dataset", "DATASET", _ONE_DATASET)
_PARTITION = argument(
    "--partition", "PARTITION", "one partition, e.g. dt=2024-10-15 or dt=2024-10-15/region=eu"
)
_COLUMN = argument("--column", "COLUMN", "one column of the dataset")
_AS_OF = argument(
    "--as-of",
    "TIME",
    "as it was then, e.g. 2024-10-16 or 2024-10-16T08:00+02:00; UTC without an offset",
)
_DEPTH = argument("--depth", "N", "at most so many runs away; all by default", type=_count)
_JSON = switch("--json", "print one JSON object a line, for programs")
_ALL = switch("--all", "a line for each partition, however many there are")
_IF_ANY = switch(
    "--strict",
    "exit with 1 if anything is found",
    excludes=("--clear",),  # by its exit code --clear reports whether all has run again
)
_OUTPUT = (_STORE, _JSON)
_SECONDS = argument(
    "--seconds",
    "N",
    "give up an answer that takes longer, 0 for never; default %(default)s",
    type=_count,
    default=600,
)
_QUESTION = (_SECONDS, *_OUTPUT)
_UNJUDGED = switch(
    "--unjudged",
    "print only what the answer cannot judge, and why",
    excludes=("--all", "--ignore", "--plan", "--clear"),
)
_PLAN = (
    switch("--plan", "print the rerun plan alone"),
    switch(
        "--clear",
        "run the task instances of the plan again, wave by wave: Airflow clears them, after a "
        "question; only where Airflow has its database",
        excludes=("--json",),
    ),
    switch("--yes", "clear without the question", needs=("--clear",)),
)

_HISTORY = Group(
    "history",
    "Build the tables of the reads and writes of many runs, and show their content",
    (
        Command(
            "build",
            "Add events to the history: the new ones of the archive, or of the named sources",
            "history.store:build",
            (
                argument(
                    "source",
                    "SOURCE",
                    "archive folders or their URLs, capture bundles, files of OpenLineage "
                    "events of any producer (JSON, NDJSON), other stores; without one, the archive "
                    "of Airflow's configuration",
                    nargs="*",
                ),
                switch(
                    "--delivered",
                    "add only what tasks delivered to the store when they ended; quick, as the "
                    "archive is not read",
                    excludes=("source",),
                ),
                argument(
                    "--keep",
                    "DAYS",
                    "forget events that are older, for good; without it nothing is forgotten",
                    type=_days,
                ),
                _STORE,
                switch("--json", "print it as JSON"),
                switch("--strict", "exit with 1 if anything was skipped"),
            ),
            ("history build", "history build events.ndjson --store ./history"),
        ),
        Command(
            "show",
            "Show the content of the history: its datasets, their partitions and runs",
            "history.store:show_datasets",
            _QUESTION,
            ("history show", "history show --json"),
        ),
    ),
)
_QUESTIONS = (
    Command(
        "trace",
        "Show which partitions and columns something was made of, run by run, back to its sources",
        "history.questions:answer_trace",
        (
            _DATASET,
            _PARTITION,
            _COLUMN,
            _AS_OF,
            _DEPTH,
            switch(
                "--direct",
                "of a column: only sources of its values, without the columns that decide which "
                "rows or groups there are (filters, joins, …)",
                needs=("--column",),
            ),
            _ALL,
            _EVENTS,
            _UNJUDGED,
            *_QUESTION,
        ),
        (
            "trace daily_delays --partition flight_date=2013-01-16",
            "trace daily_delays --column avg_visibility --direct",
        ),
    ),
    Command(
        "impact",
        "Show all data made of a partition or a column, and the runs to repeat, in their order",
        "history.questions:answer_impact",
        (
            _DATASET,
            _PARTITION,
            _COLUMN,
            _AS_OF,
            _DEPTH,
            *_PLAN,
            _ALL,
            _EVENTS,
            _UNJUDGED,
            *_QUESTION,
        ),
        (
            "impact flights --partition flight_date=2013-01-15",
            "impact weather --column visib --plan",
        ),
    ),
    Command(
        "stale",
        "List partitions made of data that has changed since, the changes, and the runs to repeat",
        "history.questions:answer_stale",
        (
            argument("dataset", "DATASET", f"only of it: {_ONE_DATASET}", nargs="?"),
            argument(
                "--ignore",
                "DATASET",
                "a dataset whose changes make nothing stale, e.g. a table of dimensions that "
                "is overwritten each day; as often as needed",
                action="append",
                default=[],
            ),
            *_PLAN,
            _ALL,
            _UNJUDGED,
            *_QUESTION,
            _IF_ANY,
        ),
        ("stale", "stale daily_delays --plan", "stale --ignore flights"),
    ),
    Command(
        "gaps",
        "List partitions that runs of the DAG should have written, and none did",
        "history.questions:answer_gaps",
        (_DATASET, _ALL, _UNJUDGED, *_QUESTION, _IF_ANY),
        ("gaps daily_delays",),
    ),
    Command(
        "drift",
        "List the changes from one run of a task to the next: sources of columns, inputs, numbers "
        "of partitions, the rule by which it reads",
        "history.questions:answer_drift",
        (
            argument(
                "task",
                "TASK",
                "dag_id.task_id, task_id if no other task is called that, or a job's name",
            ),
            _UNJUDGED,
            *_QUESTION,
            _IF_ANY,
        ),
        ("drift prepare_flights",),
    ),
    Command(
        "patterns",
        "Show by which rule the partitions that runs read follow from those that they wrote, and "
        "the runs that break it",
        "history.questions:answer_patterns",
        (
            _DATASET,
            switch(
                "--mapper",
                "print Airflow's timetable from these rules (Airflow 3.3), in place of the rules: "
                "runs start when the partitions are there that they read",
            ),
            *_QUESTION,
        ),
        ("patterns weekly_report", "patterns weekly_report --mapper"),
    ),
)


# --- explain --------------------------------------------------------------------------------------


_RUN = (
    argument(
        "--logical-date", "TIME", "logical date of the run, e.g. 2024-05-06; UTC without a zone"
    ),
    argument(
        "--data-interval-start",
        "TIME",
        "start of the data interval; by default the logical date",
        needs=("--data-interval-end", "--logical-date"),
    ),
    argument(
        "--data-interval-end",
        "TIME",
        "end of the data interval; by default the logical date",
        needs=("--data-interval-start", "--logical-date"),
    ),
    argument("--partition-key", "KEY", "key of the run of a partition"),
    argument("--partition-date", "TIME", "date of the run of a partition"),
    argument("--rules", "FILE", "YAML file of partitioning rules to go by"),
    argument(
        "--run",
        "BUNDLE_OR_FILE",
        "show the partitions of a run that has ended: a capture bundle (directory or URL), or "
        "a file of events",
        dest="of_run",
        excludes=(
            *("text", "--map-index", "--logical-date", "--data-interval-start"),
            *("--data-interval-end", "--partition-key", "--partition-date", "--rules"),
        ),
    ),
    switch("--json", "print the explanation as JSON"),
)
_EXPLAIN_TEMPLATES = Command(
    "explain",
    "Show which datasets and partitions templates mean for a run, and the source of each value",
    "explain:explain_templates",
    (
        argument(
            "text",
            "TEMPLATE",
            "path, URI or argument, e.g. 's3a://lake/revenue/dt={{ ds }}'; put -- before "
            "those that begin with a dash",
            nargs="*",
        ),
        *_RUN,
    ),
    (
        "explain 's3a://lake/revenue/dt={{ ds }}' --logical-date 2024-05-06",
        "explain --run events.ndjson",
    ),
)
_EXPLAIN_TASK = Command(
    "explain",
    "Show which datasets and partitions a task is expected to read and write in a run",
    "explain:explain_task",
    (
        argument("dag_id", "DAG_ID", "id of the DAG"),
        argument("task_id", "TASK_ID", "id of the task"),
        argument("--map-index", "N", "which instance of a mapped task", type=int, default=-1),
        *_RUN,
    ),
    ("explain example_report_flight_delays daily_delays --logical-date 2013-01-16",),
)


# --- commands of Airflow's command line alone -----------------------------------------------------


_SETTINGS = Command(
    "settings",
    "Show every setting, its value, and whether connection, configuration or default decides it",
    "settings:show_settings",
    (
        _conn_id("; sparklineage_default need not be there"),
        switch("--json", "print the settings as JSON"),
    ),
    ("settings",),
    needs_airflow=True,
)
_DAGS_FOLDER = argument(
    "--dags-folder", "PATH", "a folder of DAG files, or one file, instead of Airflow's own"
)
_ADOPTION = Command(
    "adoption",
    "List the tasks of Spark operators: which get lineage without a change of their DAG, which do "
    "not and why, and the problems of the rules",
    "adoption_survey:show_adoption",
    (
        argument(
            "--adopt", "RULES", "instead of the option adopt: off, all, a YAML file, or rules"
        ),
        _DAGS_FOLDER,
        argument("--dag-id", "DAG", "list the tasks of that DAG alone"),
        argument("--output", None, "table by default", choices=("table", "json"), default="table"),
    ),
    ("adoption --adopt all", "adoption --dag-id example_report_flight_delays"),
    needs_airflow=True,
)
_SCHEDULE = Command(
    "schedule",
    "Compare what schedules on partitioned assets wait for with what their runs read",
    "schedule:show_schedule",
    (
        argument("dag_id", "DAG", "only of that DAG", nargs="?"),
        _DAGS_FOLDER,
        *_QUESTION,
        switch("--strict", "exit with 1 if anything is found"),
    ),
    ("schedule", "schedule example_partitioned_assets"),
    needs_airflow=True,
)
_RESEND = Command(
    "resend",
    "Send events of the archive again, through Airflow's own transport; without arguments those "
    "that are known not to have been sent",
    "sender:resend",
    (
        argument("dag_id", "DAG", "all events of a DAG", nargs="?"),
        argument("task_id", "TASK", "of one task of it", nargs="?"),
        argument("run_id", "RUN", "of one DAG run", nargs="?"),
        argument("--since", "TIME", "events of the last 30m, 2h or 7d, of the DAG if given"),
        switch("--dry-run", "list them, and send nothing"),
        _conn_id(", by which events are adapted for its backend"),
    ),
    ("resend --dry-run", "resend example_report_flight_delays daily_delays --since 2h"),
    needs_airflow=True,
)
_COLLECT = Command(
    "collect",
    "Collect the lineage of jobs whose tasks did not wait for it, or could not, and send it",
    "collector:collect",
    (
        argument(
            "run",
            "RUN",
            "id of a DAG run, or the URL or folder of one capture bundle; without it, all "
            "commands with a spark-submit of their own whose lineage is not collected yet",
            nargs="?",
            default="",
        ),
        argument("--dag", "DAG", "of that DAG alone"),
        argument("--task", "TASK", "of that task alone"),
        switch("--now", "also of jobs that have not reported their end, because they were killed"),
        switch("--again", "also bundles that were collected already", needs=("run",)),
        switch("--dry-run", "list the events that would be sent, and change nothing"),
        _conn_id(", which may have the capture location"),
    ),
    ("collect --dry-run", "collect 2013-01-16 --dag example_report_flight_delays"),
    needs_airflow=True,
)


# --- the package and its set-up -------------------------------------------------------------------


_SCHEMA = Command(
    "schema",
    "Print a JSON Schema of a document that this package writes, of a row of a table of the "
    "history, or of a line that a question of the history answers under --json; without a name, "
    "list them",
    "schemas:print_schema",
    (argument("name", "NAME", "name of the schema", nargs="?"),),
    ("schema", "schema history.trace"),
)
_EXAMPLES = Command(
    "examples",
    "Copy the example DAGs and their Spark jobs into a folder",
    "examples:copy_examples",
    (
        argument("folder", "DIR", "made if it is not there"),
        switch("--force", "overwrite files that differ from the examples"),
    ),
    ("examples ./flights",),
)
_DEMO = Command(
    "demo",
    "Run the example DAGs for two days of flights in a folder of their own, and say where to see "
    "their lineage; takes a minute or two",
    "demo:run_demo",
    (
        argument(
            "folder",
            "DIR",
            "made if it is not there; it gets an AIRFLOW_HOME; default %(default)s",
            nargs="?",
            default="sparklineage-demo",
        ),
    ),
    ("demo", "demo ./flights-demo"),
    failure="a step failed; the log has the reason",
)
_SPARK_BINARY = argument(
    "--spark-binary", "NAME", "as in the Spark connection", default="spark-submit"
)
_FETCH_LISTENER = Command(
    "fetch-listener",
    "Fetch the OpenLineage listener jar for a Spark into the cache and print its path",
    "listener:fetch_listener",
    (
        argument(
            "--spark-version",
            "VERSION",
            "version of Spark, e.g. 4.0.1 or 3.5.6-scala2.13; by default that of spark-submit",
        ),
        argument(
            "--from", "URL_OR_FILE", "take the jar from there, and ask no repository", dest="source"
        ),
        argument(
            "--repositories",
            "URLS",
            "further Maven repositories, with commas between, as for spark-submit",
            excludes=("--from",),
        ),
        _SPARK_BINARY,
    ),
    ("fetch-listener", "fetch-listener --spark-version 3.5.6-scala2.13"),
)
_JSON = switch("--json", "print the checks as JSON")
_DOCTORS = ("doctor", "doctor --spark-submit")
_OF_TASK = "doctor example_report_flight_delays daily_delays"
_CHECK_MACHINE = Command(
    "doctor",
    "Check Java, Spark, the listener and the place for captures, and give a fix for each problem",
    "doctor:check_machine",
    (
        switch("--spark-submit", "run a small Spark application and look at its lineage"),
        _JSON,
        _SPARK_BINARY,
    ),
    _DOCTORS,
    failure="a check failed",
)
_CHECK_AIRFLOW = Command(
    "doctor",
    "Check all that lineage needs, from Spark to the lineage backend, and give fixes",
    "doctor:check_airflow",
    (
        argument(
            "dag_id",
            "DAG_ID",
            "id of a DAG, to check one task of it: its operator, the service that starts its "
            "driver, and what its job would get",
            nargs="?",
            needs=("task_id",),
        ),
        argument("task_id", "TASK_ID", "id of the task", nargs="?"),
        switch(
            "--spark-submit",
            "run a small Spark application and look at its lineage; with a task, submit it as the "
            "task submits its own",
        ),
        _JSON,
        _conn_id(excludes=("dag_id",)),
        argument(
            "--spark-conn-id",
            "ID",
            "the operator's conn_id",
            default="spark_default",
            excludes=("dag_id",),
        ),
        argument(
            "--conf",
            "KEY=VALUE",
            "a Spark property of the operator's conf, for an application in a cluster",
            action="append",
            default=[],
            needs=("--spark-submit",),
        ),
    ),
    (*_DOCTORS, _OF_TASK),
    failure="a check failed",
)


COMMANDS: tuple[Command | Group, ...] = (
    *(_MERGE, _SHOW, _HISTORY, *_QUESTIONS, _EXPLAIN_TEMPLATES),
    *(_SCHEMA, _FETCH_LISTENER, _EXAMPLES, _DEMO, _CHECK_MACHINE),
)
"""Commands of ``sparklineage``, in the order in which people need them."""

AIRFLOW_COMMANDS: tuple[Command | Group, ...] = (
    *(_MERGE, _SHOW, _HISTORY, *_QUESTIONS, _EXPLAIN_TASK),
    *(_SCHEDULE, _SETTINGS, _ADOPTION, _RESEND, _COLLECT),
    *(_SCHEMA, _FETCH_LISTENER, _EXAMPLES, _CHECK_AIRFLOW),
)
"""Commands of ``airflow sparklineage``."""

SECTIONS: dict[str, tuple[str, ...]] = {
    "Look at runs": ("show", "explain"),
    "Ask the history": (
        *("trace", "impact", "stale", "gaps", "drift", "patterns", "schedule", "history"),
    ),
    "Send events": ("merge", "resend", "collect"),
    "Set up": ("demo", "doctor", "settings", "adoption", "fetch-listener", "examples", "schema"),
}
"""The sections of the help, each with the names of its commands."""
