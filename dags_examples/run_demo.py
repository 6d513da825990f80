"""Run the example Dags in an Airflow home of their own: what `make demo` does.

The first one runs for two days; the second one has a mistake that is caught, so it has to fail.

Everything that is written goes to a folder below ``build``; events and captures are those of the
last demo. The terminal shows progress and the result, everything that Airflow and Spark print goes
to ``demo.log`` in that folder. The demo in a cluster is the same but for the place:
``make demo-cluster`` calls :func:`main` with another :class:`Place`.

Airflow reads its configuration when it is first imported, hence the imports inside functions.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from airflow.sdk import DAG, Context

DAGS = Path(__file__).resolve().parent
BUILD = DAGS.parent / "build"

DAYS = (datetime(2013, 1, 7, tzinfo=UTC), datetime(2013, 1, 8, tzinfo=UTC))

# The demo's are in its own folder, where the Airflow that its end names finds them.
ELSEWHERE = ("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "AIRFLOW__SPARKLINEAGE__HISTORY_URL")
LOG_TAIL_LINES = 40
# Frames of Java stacks, as Spark prints them or behind Airflow's time and level. Thirty of them, as
# a failed job leaves, would push the reason out of the tail.
JAVA_FRAME = re.compile(r"(^|\] )\s*(at [\w.$/]+\(|\.\.\. \d+ more)")


@dataclass(frozen=True)
class Place:
    """Where the demo runs, and where what it makes is.

    :param folder: for what it writes
    :param lake: under which the tables are; by default in the folder
    :param environment: of Airflow, added to what is the same everywhere
    :param conf: Spark properties of all tasks, added to their own
    :param arguments: attributes of all operators, added to their own
    :param delivered: where drivers in a cluster deliver what they capture
    :param until: when that and the tables are gone, in a few words
    :param next_step: what the reader may do next
    """

    folder: Path
    lake: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)
    delivered: str = ""
    until: str = ""
    next_step: str = "README.md, First steps, has the same for your own Airflow."

    @property
    def events(self) -> Path:
        """What Airflow sends."""
        return self.folder / "lineage.ndjson"

    @property
    def captures(self) -> Path:
        """What Spark reported."""
        return self.folder / "captures"

    @property
    def tables(self) -> str:
        """Where the tables are."""
        return self.lake or str(self.folder / "lake")

    @property
    def page(self) -> Path:
        """The lineage for people."""
        return self.folder / "lineage.html"

    @property
    def home(self) -> Path:
        """Of Airflow."""
        return self.folder / "airflow"

    @property
    def history(self) -> Path:
        """The tables of all that ran in this folder, next to Airflow's archive."""
        return self.home / "sparklineage" / "history"

    @property
    def log(self) -> Path:
        """What Airflow and Spark print."""
        return self.folder / "demo.log"


HERE = Place(
    BUILD / "demo",
    environment={
        "AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": str(BUILD / "demo" / "captures"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
    },
)


class DemoError(Exception):
    """Raised when a step of the demo fails; the reason is at the end of the log."""


class Progress:
    """One line a step on the terminal: its number, what it does, and the seconds that it took."""

    def __init__(self, terminal: TextIO, steps: int) -> None:
        self.terminal = terminal
        self.steps = steps
        self.step = 0
        self.started = 0.0

    def start(self, what: str) -> None:
        """Begin the next step."""
        self.step += 1
        self.started = time.monotonic()
        self.write(f"[{self.step}/{self.steps}] {what} … ")

    def finish(self, outcome: str = "") -> None:
        """End the step with its seconds."""
        self.write(f"{outcome}{time.monotonic() - self.started:.0f} s\n")

    def write(self, text: str) -> None:
        """Print at once, because a line is printed in two parts."""
        self.terminal.write(text)
        self.terminal.flush()


def main(place: Place = HERE) -> int:
    """Run the demo; return 0, 1 for a failed step, or 130 when interrupted."""
    place.folder.mkdir(parents=True, exist_ok=True)
    place.events.unlink(missing_ok=True)
    shutil.rmtree(place.captures, ignore_errors=True)
    environment = isolated(dict(os.environ), place)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGTERM, interrupt)

    started = time.monotonic()
    with terminal_apart_from_log(place.log) as terminal:
        try:
            run(terminal, place)
            build_history(place)
            shown = show(terminal, place)
        except KeyboardInterrupt:
            terminal.write("\nInterrupted.\n")
            return 130
        except Exception as error:
            if not isinstance(error, DemoError):
                # To the log, like everything that is not progress.
                sys.excepthook(type(error), error, error.__traceback__)
            terminal.write(f"\n{error}\nThe last lines of {place.log}:\n\n{log_tail(place.log)}")
            return 1
        finally:
            stop_children()
        terminal.write(
            f"\nThe demo took {time.monotonic() - started:.0f} s.\n"
            f"  the lineage as a page  {short(place.page)}\n"
            f"  the history of all     {short(place.history)}\n"
            f"  all events of Airflow  {short(place.events)}\n"
            f"  what Spark reported    {short(place.delivered or place.captures)}{place.until}\n"
            f"  the tables             {short(place.tables)}{place.until}\n"
            f"  the log                {short(place.log)}\n"
            f"Next: open {short(place.page)} in a browser. {place.next_step}\n"
            f"{questions(place)}"
        )
    return shown


def questions(place: Place) -> str:
    """Return what the reader may ask the history, as it is typed."""
    scripts = Path(sys.executable).parent
    store, ask = f"--store {short(place.history)}", short(scripts / "sparklineage")
    column = f"--partition flight_date={DAYS[-1]:%Y-%m-%d} --column avg_visibility"
    airflow = f"AIRFLOW_HOME={place.home} AIRFLOW__CORE__DAGS_FOLDER={DAGS}"
    return (
        "Ask the history what a column of a day was made of, what a day went into, what is stale:\n"
        f"  {ask} trace daily_delays {column} {store}\n"
        f"  {ask} impact flights --partition flight_date={DAYS[0]:%Y-%m-%d} {store}\n"
        f"  {ask} stale {store}\n"
        "or on its page, Spark lineage in the navigation of Airflow, http://localhost:8080:\n"
        f"  {airflow} {short(scripts / 'airflow')} standalone\n"
    )


def isolated(environment: dict[str, str], place: Place = HERE) -> dict[str, str]:
    """Return an environment in which neither another Airflow nor another Spark is configured."""
    foreign = ("AIRFLOW_", "OPENLINEAGE_", "PYSPARK_", "PYTHONPATH", "SPARK_")
    kept = {
        name: value
        for name, value in environment.items()
        # The listener may have to come from where this machine keeps it.
        if not name.startswith(foreign)
        or (name.startswith("AIRFLOW__SPARKLINEAGE__") and name not in ELSEWHERE)
    }
    transport = {"type": "file", "log_file_path": str(place.events), "append": True}
    common = {
        "AIRFLOW_HOME": str(place.home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "demo",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
        "AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES": "all",
        # spark-submit is next to the running Python; it starts its jobs with the `python3` of PATH.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", os.defpath)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # A driver that lives for seconds spends half of its time on compiling what it runs once.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    return kept | common | dict(place.environment)


def interrupt(_signal_number: int, _frame: FrameType | None) -> NoReturn:
    """Treat a polite kill like Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def terminal_apart_from_log(log_file: Path) -> Iterator[TextIO]:
    """Send standard output and error of this process and of its children to the log.

    :return: the terminal, for the few lines that belong there
    """
    terminal = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    with log_file.open("wb") as log, terminal:
        # By descriptor, because spark-submit and forked processes know nothing of sys.stdout.
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
        yield terminal


def run(terminal: TextIO, place: Place) -> None:
    """Run one Dag for each of the days, then the other; stop at the first surprise."""
    terminal.write("Starting Airflow …\n")
    terminal.flush()
    from example_catch_wrong_partition import dag as wrong
    from example_report_flight_delays import dag

    progress = Progress(terminal, steps=1 + len(DAYS) * len(dag.tasks) + len(wrong.tasks))
    progress.start("Airflow's database")
    migrate_database()
    progress.finish()

    for task in (*dag.tasks, *wrong.tasks):
        task.conf = {**task.conf, **place.conf}
        for name, value in place.arguments.items():
            setattr(task, name, value)
    report_tasks(dag, progress)
    for day in DAYS:
        run_day(dag, day, place)
    caught = report_tasks(wrong, progress)
    if wrong.test(logical_date=DAYS[-1], run_conf={"lake": place.tables}).state == "success":
        message = "The wrong partition was not caught."
        raise DemoError(message)
    terminal.write(f"\nThat failure is the point of the example:\n  {caught[-1]}\n")
    send_last_events()


def migrate_database() -> None:
    """Create the database, or bring one of an older Airflow up to date."""
    from airflow.utils import db

    try:
        db.check_migrations(timeout=1)
    except TimeoutError:
        db.initdb()


def report_tasks(dag: DAG, progress: Progress) -> list[BaseException]:
    """Have every task report when it starts and how it ends.

    :return: the errors of tasks that fail, from when they do
    """
    errors: list[BaseException] = []

    def on_execute(context: Context) -> None:
        # Airflow has just put its own handler there, which makes it a task's failure.
        signal.signal(signal.SIGTERM, interrupt)
        progress.start(f"{context['ds']} {context['ti'].task_id}")

    def on_success(_context: Context) -> None:
        progress.finish()

    def on_failure(context: Context) -> None:
        if isinstance(error := context["exception"], KeyboardInterrupt):
            # Airflow takes it for a task's failure and would go on.
            raise error
        errors.append(error)
        progress.finish("failed after ")

    for task in dag.tasks:
        task.on_execute_callback = [on_execute]
        task.on_success_callback = [on_success]
        task.on_failure_callback = [on_failure]
    return errors


def run_day(dag: DAG, day: datetime, place: Place = HERE) -> None:
    """Run all tasks for one day, in this process."""
    run = dag.test(logical_date=day, run_conf={"lake": place.tables})
    failed = [ti.task_id for ti in run.get_task_instances() if ti.state == "failed"]
    if run.state != "success":
        message = f"{', '.join(failed) or 'The Dag'} failed on {day:%Y-%m-%d}."
        raise DemoError(message)


def send_last_events() -> None:
    """Wait for the events of the Dag runs, which a pool of processes sends."""
    from airflow.listeners.listener import get_listener_manager

    get_listener_manager().hook.before_stopping(component=None)


def stop_children() -> None:
    """Leave no process behind: an interrupted demo may have a spark-submit and its driver."""
    children = psutil.Process().children(recursive=True)
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.terminate()
    _, alive = psutil.wait_procs(children, timeout=10)
    for child in alive:
        with suppress(psutil.NoSuchProcess):
            child.kill()


def build_history(place: Place) -> None:
    """Make the tables of what the archive has, which the page and the questions read."""
    archive = place.history.with_name("archive")
    command = [sys.executable, "-m", "airflow_provider_sparklineage.cli", "history", "build"]
    subprocess.run([*command, str(archive), "--store", str(place.history)], check=True)  # noqa: S603 — our own command


def show(terminal: TextIO, place: Place) -> int:
    """Print the lineage of each task's last run, and write it as a page; return the exit code."""
    terminal.write("\n")
    terminal.flush()
    command = [sys.executable, "-m", "airflow_provider_sparklineage.cli", "show", str(place.events)]
    subprocess.run([*command, "--html", str(place.page)], check=True)  # noqa: S603 — our own command
    return subprocess.run(  # noqa: S603 — our own command
        command, stdout=terminal, stderr=terminal, check=False
    ).returncode


def log_tail(log: Path) -> str:
    """Return what the log has about the failure."""
    sys.stdout.flush()
    with log.open(errors="replace") as lines:
        relevant = (line for line in lines if not JAVA_FRAME.search(line))
        return "".join(deque(relevant, LOG_TAIL_LINES))


def short(path: Path | str) -> str:
    """Return the path as the user of the checkout would type it; a URL as it is."""
    return str(path).removeprefix(f"{DAGS.parent}/")


if __name__ == "__main__":
    sys.exit(main())
