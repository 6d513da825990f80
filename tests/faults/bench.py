"""The worker on which a fault happens: its folders, its Airflow, and a spark-submit of ours."""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import signal
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.settings.option_kinds import default_capture_location
from airflow_provider_sparklineage.spark.capture import bundle, ownership
from tests.conftest import golden
from tests.faults.rows import BUNDLE, Run
from tests.spark_submit_double import FakeSparkSubmit, execute, task_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

CASE = "append_then_read"
"""What the job does: recorded, with what the observer saw, and nothing of it is degraded."""
HANGS_S = 90.0
"""When a run is cut; the longest that is allowed is the deadline of half a minute."""


_WHEN = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class HungError(BaseException):
    """Raised in a run that does not end; nothing catches it by chance."""


class Bench:
    """A worker in a folder of its own, on which a task is run twice: stock, and with lineage.

    :param folder: for all that is on its disk
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.resources = ExitStack()
        """What a fault opens; closed at its end."""
        self.spark = FakeSparkSubmit(self._made("worker"))
        self.spark.install(monkeypatch)
        self.captures = self.spark.home.parent / "captures"
        self.tmp, self.home, self.cwd = (self._made(name) for name in ("tmp", "home", "cwd"))
        monkeypatch.setattr(tempfile, "tempdir", str(self.tmp))
        self._default_captures = default_capture_location()
        monkeypatch.chdir(self.cwd)
        airflow = self._made("airflow")
        for name, value in (("TMPDIR", self.tmp), ("HOME", self.home), ("AIRFLOW_HOME", airflow)):
            monkeypatch.setenv(name, str(value))
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        self.events = golden(CASE).read_bytes()
        """What the listener writes."""
        observed = golden(CASE).parent / "observed" / f"{CASE}.ndjson"
        self.observations = observed.read_bytes()
        """What the observer writes."""
        self.job: dict[str, Any] = {}
        """The script of the double: ``exit``, ``code``, ``bytes`` …"""
        self.arguments: dict[str, Any] = {"application_args": ["--date", "{{ ds }}"]}
        """Of both operators."""
        self.lineage: dict[str, Any] = {}
        """Arguments of ours."""
        self.context = task_context()
        self.context |= {"ds": "2024-05-06", "logical_date": datetime(2024, 5, 6, tzinfo=UTC)}
        self._interrupt: Callable[[Any], object] | None = None
        self._own_class: Callable[[], type] | None = None
        self._is_running = folder / "is-running"
        self._expected: dict[str, Callable[[], object]] = {}
        self._spared_s = 0.0

    def _made(self, name: str) -> Path:
        made = self.folder / name
        made.mkdir()
        return made

    # --- what faults use --------------------------------------------------------------------------

    @property
    def ti(self) -> Any:
        """The task instance."""
        return self.context["ti"]

    def set(self, option: str, value: object) -> None:
        """Set an option by the environment."""
        self.monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{option.upper()}", str(value))

    def configure(self, option: str, line: str) -> None:
        """Set an option by a line of airflow.cfg."""
        from airflow.providers.common.compat.sdk import conf

        conf.read_string(f"[sparklineage]\n{option} = {line}\n")
        self.resources.callback(conf.remove_option, "sparklineage", option)

    def unset(self, option: str) -> None:
        """Leave an option at its default."""
        self.monkeypatch.delenv(f"AIRFLOW__SPARKLINEAGE__{option.upper()}", raising=False)

    def connect(self, conn_id: str = "sparklineage_default", **fields: Any) -> None:
        """Add a connection; of type sparklineage, if nothing else is asked for."""
        fields = {"conn_type": "sparklineage", **fields}
        self.monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))

    def patch(self, name: str, value: object) -> None:
        """Replace something by its dotted name; below our package if it begins with a dot."""
        prefix = "airflow_provider_sparklineage" if name.startswith(".") else ""
        self.monkeypatch.setattr(prefix + name, value)

    def shorten(self, name: str, seconds: float) -> None:
        """Shorten a limit of time that this fault uses up; the row has the time of the real one."""
        owner, _, attribute = name.rpartition(".")
        module = importlib.import_module(f"airflow_provider_sparklineage{owner}")
        self._spared_s += getattr(module, attribute) - seconds
        self.patch(name, seconds)

    def adopt(self, make: Callable[[], type]) -> None:
        """Run a class of the user's: once as it is, and once adopted.

        :param make: makes the class, for each run
        """
        self.set("adopt", "all")
        self._own_class = make

    def breaks(self, name: str, error: BaseException | None = None) -> None:
        """Let a function raise."""
        self.patch(name, raising(error or ZeroDivisionError("a defect")))

    def meanwhile(self, code: str) -> None:
        """Let the job run code: it knows ``location``, ``observations``, ``conf`` and ``pathlib``.

        ``bundle`` is the folder of the capture bundle.
        """
        self.job["code"] = f"if location:\n bundle = pathlib.Path(location).parent\n {code}"

    def disk(self, code: int, what: str = "*", at: int = 1, *, reading: bool = False) -> None:
        """Let the disk give an error from the n-th time on that a file of this name is written.

        :param code: ``errno.ENOSPC`` …
        :param what: glob of the names of files and folders that are made, moved to or written
        :param reading: when a file is opened to be read, instead
        """
        done = 0

        def asked(path: Any) -> None:
            nonlocal done
            if isinstance(path, int) or not self._is_ours(Path(os.fsdecode(path)), what):
                return
            done += 1
            if done >= at:
                raise OSError(code, os.strerror(code), str(path))

        def opened(path: Any, flags: int, *_: Any, **__: Any) -> None:
            if bool(flags & _WRITING) is not reading:
                asked(path)

        def opened_by_mode(path: Any, mode: str = "r", *_: Any, **__: Any) -> None:
            opened(path, os.O_RDONLY if mode.startswith("r") else os.O_WRONLY)

        self._check("os.open", opened)
        self._check("io.open", opened_by_mode)
        self._check("builtins.open", opened_by_mode)
        if not reading:
            self._check("os.mkdir", lambda path, *_, **__: asked(path))
            self._check("os.replace", lambda _, path, **__: asked(path))
            self._check("os.rename", lambda _, path, **__: asked(path))

    def _check(self, name: str, check: Callable[..., object]) -> None:
        """Let a function of the operating system be preceded by a check."""
        module, _, function = name.rpartition(".")
        known = getattr(importlib.import_module(module), function)

        def checked(*args: Any, **kwargs: Any) -> Any:
            check(*args, **kwargs)
            return known(*args, **kwargs)

        self.monkeypatch.setattr(name, checked)

    def _is_ours(self, path: Path, what: str) -> bool:
        places = (self.captures, self.tmp, self.home)
        return path.match(what) and any(path.absolute().is_relative_to(p) for p in places)

    def interrupt(self, by: Callable[[Any], object]) -> None:
        """Call something with the task while its job runs, as Airflow does on a signal."""
        self.job["sleep"] = 30
        self._interrupt = by

    def expect(self, sentence: str, holds: Callable[[], object]) -> None:
        """Expect something more of the run with lineage, when it has ended."""
        self._expected[sentence] = holds

    def hang(self, *_: object) -> None:
        """Never return, for as long as this fault is tried."""
        ended = threading.Event()
        self.resources.callback(ended.set)
        ended.wait(HANGS_S)

    # --- running ----------------------------------------------------------------------------------

    def stock(self) -> Run:
        """Run the task by Airflow's operator."""
        from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

        make = self._own_class or (lambda: SparkSubmitOperator)
        outcome, seconds, _ = self._timed(lambda: make()(**self._given()))
        return Run(outcome, seconds)

    def ours(self) -> Run:
        """Run it by ours, and ask for its events as Airflow's OpenLineage provider does."""
        before = self._present()
        with _warnings() as log:
            outcome, seconds, sent = self._timed(self._task_with_lineage)
        until = time.monotonic() + 2  # for a process that has just been killed
        while (left := self._present() - before) and time.monotonic() < until:
            if not any(name.startswith(("process", "thread")) for name in left):
                break
            time.sleep(0.05)
        broken = tuple(what for what, holds in self._expected.items() if not holds())
        warned = "\n".join(log)
        seconds += self._spared_s
        return Run(
            outcome, seconds, _codes(sent), _datasets(sent), warned, tuple(sorted(left)), broken
        )

    def _task_with_lineage(self) -> Any:
        from airflow_provider_sparklineage.operators.adoption import policy
        from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

        if self._own_class is None:
            return SparkLineageSubmitOperator(**self._given(), **self.lineage)
        task = self._own_class()(**self._given())
        policy.task_policy(task)
        return task

    def _given(self) -> dict[str, Any]:
        return {"task_id": "revenue", "application": "job.py", **self.arguments}

    def _timed(self, operator: Callable[[], Any]) -> tuple[str, float, Any]:
        """Run a task from its rendering to the hooks at its end."""
        self._write_script()
        self.spark.forgets()
        start, task, outcome, sent = time.perf_counter(), None, "succeeds", None
        with _cut():
            try:
                task = operator()
                self.context["task"] = task
                task.render_template_fields(self.context)
                with suppress(Exception):  # which the provider catches
                    _ask(task, "on_start")
                with self._interrupted(task):
                    execute(task, self.context)
            except (HungError, KeyboardInterrupt):
                raise
            except BaseException as error:
                outcome = _named(error)
            with suppress(Exception):
                at_end = "on_complete" if outcome == "succeeds" else "on_failure"
                sent = _ask(task, at_end, self.ti)
        return outcome, time.perf_counter() - start, sent

    @contextmanager
    def _interrupted(self, task: Any) -> Iterator[None]:
        """Interrupt the task by a signal once its job runs."""
        by, main = self._interrupt, threading.main_thread().ident
        if by is None or main is None:
            yield
            return

        ended = threading.Event()

        def send() -> None:
            while not self._is_running.exists():
                if ended.wait(0.01):
                    return
            ended.wait(0.2)  # until Airflow's hook knows the process
            signal.pthread_kill(main, signal.SIGUSR1)

        before = signal.signal(signal.SIGUSR1, lambda *_: by(task))
        sender = threading.Thread(target=send)
        sender.start()
        try:
            yield
        except BaseException as error:
            if type(error).__name__ == "AirflowTaskTimeout":
                task.on_kill()  # as the task runner does
            raise
        finally:
            ended.set()
            sender.join()
            signal.signal(signal.SIGUSR1, before)

    def _write_script(self) -> None:
        events = self.folder / "events.ndjson"
        events.write_bytes(self.events)
        recorded_as = json.loads(golden(CASE).read_text().splitlines()[0])["run"]["runId"]
        observations = self.folder / "observations.ndjson"
        observations.write_bytes(self.observations)
        self._is_running.unlink(missing_ok=True)
        code = f"{self.job.get('code', '')}\npathlib.Path({str(self._is_running)!r}).touch()"
        script = {"events": str(events), "recorded_as": recorded_as, "observed": str(observations)}
        self.spark.script.write_text(json.dumps({**script, **self.job, "code": code}))

    def _present(self) -> set[str]:
        """List what is there that a task could leave."""
        files = (
            path.relative_to(place).as_posix()
            for place in (self.captures, self.tmp, self.cwd, self.home)
            for path in place.rglob("*")
            if not path.match(".swept*") and not self._is_kept(path)
        )
        named = {self._described(name) for name in files}
        threads = {f"thread {t.name}" for t in threading.enumerate() if not _is_of_server(t)}
        return named | threads | {f"process {child}" for child in _children()}

    def _is_kept(self, path: Path) -> bool:
        """Whether a path is for later tasks: the capture location, or in the cache of jars."""
        cache = self.home / ".cache" / "sparklineage"
        kept = (self._default_captures, cache.parent, cache)
        is_of_cache = path.name.startswith(ownership.LOCK_FILE) or path.suffix in (
            ".failed",
            ".jar",
        )
        return path in kept or (path.parent == cache and is_of_cache)

    def _described(self, name: str) -> str:
        name = name.removeprefix(f"{self._default_captures.name}/")
        return BUNDLE if bundle.is_name(name.split("/")[0]) else name


def raising(error: BaseException) -> Callable[..., Any]:
    """Make a function that raises, whatever it is given."""

    def raises(*_: Any, **__: Any) -> Any:
        raise error

    return raises


def time_is_up(*_: Any, **__: Any) -> Any:
    """Fire the task's ``execution_timeout``, which Airflow does by a signal."""
    from airflow.providers.common.compat.sdk import AirflowTaskTimeout

    msg = "Timeout"
    raise AirflowTaskTimeout(msg)


def _ask(task: Any, when: str, *args: Any) -> Any:
    """Ask for what goes into an event, as Airflow's OpenLineage provider does."""
    hook = getattr(task, f"get_openlineage_facets_{when}", None)
    return None if hook is None else hook(*args)


def _codes(sent: Any) -> tuple[str, ...] | None:
    facet = sent and sent.run_facets.get("sparkLineage_capture")
    return facet and tuple(sorted({d["code"] for d in facet.degradations}))


def _datasets(sent: Any) -> Any:
    """Give the datasets of what is sent; the texts that describe them say when that was."""
    from openlineage.client.serde import Serde

    if not sent:
        return None
    text = json.dumps([Serde.to_dict(dataset) for dataset in (*sent.inputs, *sent.outputs)])
    return json.loads(_WHEN.sub("<when>", text))


def _named(error: BaseException) -> str:
    code = re.search(r"Error code is: (-?\d+)", str(error))
    return f"fails with {type(error).__name__}" + (f" (exit code {code[1]})" if code else "")


def _is_of_server(thread: threading.Thread) -> bool:
    """Whether it is one of ours that answers a request."""
    return "process_request_thread" in thread.name


def _children() -> list[str]:
    """List the processes of this one that run; the stock hook does not wait for all that end."""
    # One that ends while we look is none.
    of_threads = map(_content, Path("/proc/self/task").glob("*/children"))
    stats = {c: _content(Path(f"/proc/{c}/stat")) for c in " ".join(of_threads).split()}
    return [c for c, stat in stats.items() if stat and " Z " not in stat]


def _content(file: Path) -> str:
    """Read a file of a process or thread; empty if that has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return file.read_text()
    return ""


@contextmanager
def _cut() -> Iterator[None]:
    """End what hangs."""

    def end(*_: object) -> None:
        msg = f"the task has not ended within {HANGS_S:.0f} s"
        raise HungError(msg)

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, HANGS_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect what our package warns of."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(record.getMessage())

    logger, handler = logging.getLogger("airflow_provider_sparklineage"), Collector(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
