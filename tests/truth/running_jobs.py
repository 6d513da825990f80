"""The jobs on one format: their tables, their applications, and what the events say of each."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.terms import OBSERVATIONS
from tests import record_events
from tests.observed_partitions import lost
from tests.spark import submissions
from tests.truth.job import Every
from tests.truth.reported import Accessed, Reported
from tests.truth.running import FORMATS, merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tests.truth.columns import Sources
    from tests.truth.job import How, Job
    from tests.truth.values import Partition

APPLICATION = record_events.APPLICATIONS / "truth_jobs.py"
OUTCOMES = ("right", "declared", "false", "silent")
TOGETHER = 25
"""The most jobs in one application, which has to end within the time limit of a submission."""


@dataclass
class JobsVerdict:
    """How many checks of how many jobs are right, declared to be unknown, false or silent."""

    kind: str
    jobs: int = 0
    checks: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    """Jobs that this Spark cannot run, each with the reason."""

    def __str__(self) -> str:
        figures = [f"{self.checks[outcome]} {outcome}" for outcome in OUTCOMES]
        checks = sum(self.checks.values())
        lines = [f"{self.kind}: {self.jobs} jobs, {checks} checks: {', '.join(figures)}"]
        for why in dict.fromkeys(self.left_out.values()):
            names = ", ".join(name for name, reason in self.left_out.items() if reason == why)
            lines.append(f"  left out ({why}): {names}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Give it for ``truth.json``."""
        return {
            "jobs": self.jobs,
            "checks": dict(self.checks),
            "wrong": self.wrong,
            "left_out": self.left_out,
        }


def run_jobs(
    spark: record_events.Spark, kind: str, jobs: Mapping[str, Job], work: Path
) -> JobsVerdict:
    """Run the jobs that a format has, and compare what the events say with what is true.

    :param work: a folder to be made, in which all is left
    """
    line = tuple(map(int, spark.line.split(".")))
    found = JobsVerdict(kind)
    able = {name: job for name, job in jobs.items() if kind in job.formats}
    for name in [name for name, job in able.items() if spark.line in job.cannot]:
        found.left_out[name] = able.pop(name).cannot[spark.line]
    together = [name for name, job in able.items() if not job.alone]
    begins = range(0, len(together), TOGETHER)
    groups = {f"together-{begin}": together[begin : begin + TOGETHER] for begin in begins}
    groups |= {name: [name] for name, job in able.items() if job.alone}
    for folder, names in groups.items():
        at = work / folder
        static = able[folder].static if folder in able else {}
        event = _application(spark, kind, names, at, found, static)
        reported = _by_job(event, at / "lake", names)
        for name in names:
            truth = able[name].truth_of(kind).truth_on(line)
            _Judge(found, f"{kind} {name}", truth, reported.pop(name)).judge()
        for rest in reported.values():
            strays = sorted({*rest.inputs, *rest.outputs})
            found.wrong += [f"{kind}: {stray} is of no job" for stray in strays]
            found.checks["false"] += len(strays)
        missing = lost(at / OBSERVATIONS, event)
        found.wrong += [f"{kind}: {partition} is lost" for partition in missing]
        found.checks["silent"] += len(missing)
    found.jobs = len(able)
    return found


def _application(
    spark: record_events.Spark,
    kind: str,
    names: Sequence[str],
    work: Path,
    found: JobsVerdict,
    static: Mapping[str, str],
) -> dict[str, Any]:
    """Plant what jobs find, run them in one application, and merge what was collected of that.

    :param static: configuration of the application, more than all have
    """
    lake = work / "lake"
    lake.mkdir(parents=True)
    for phase in ("plant", "run"):
        plan = {"format": kind, "jobs": names, "phase": phase}
        (lake / "plan.json").write_text(json.dumps(plan))
        watched = phase == "run"
        submissions.submit(
            spark,
            APPLICATION,
            work,
            listener=spark.listener if watched else None,
            observe=watched,
            connectors=FORMATS[kind],
            conf={"spark.sql.catalogImplementation": "in-memory", **static},
        )
        (work / "scratch").rename(work / f"scratch-{phase}")
        for name, error in json.loads((lake / "failed.json").read_text()).items():
            found.wrong.append(f"{kind} {name}: {phase} failed: {error}")
            found.checks["false"] += 1
    event = merged(work)
    (work / "event.json").write_text(json.dumps(event, indent=1))
    return event


@dataclass
class _Report:
    """What an event says of one job, by names in its lake.

    :param degradations: ``code dataset``, or ``code dataset column``
    """

    inputs: dict[str, Accessed] = field(default_factory=dict)
    outputs: dict[str, Accessed] = field(default_factory=dict)
    columns: dict[str, dict[str, Sources]] = field(default_factory=dict)
    degradations: list[str] = field(default_factory=list)
    maintained: dict[str, set[str]] = field(default_factory=dict)


def _by_job(event: dict[str, Any], lake: Path, names: Sequence[str]) -> dict[str, _Report]:
    """Distribute the datasets of an event to jobs; what is of none is under the empty name."""
    whole = Reported(event, lambda name: _place(name, lake, names))
    reports = {name: _Report() for name in (*names, "")}
    for side in ("inputs", "outputs", "columns"):
        for (job, table), value in getattr(whole, side).items():
            getattr(reports[job], side)[table] = value
    for entry in event["run"]["facets"]["sparkLineage_capture"].get("maintenance", ()):
        job, table = _place(entry["dataset"]["name"], lake, names)
        reports[job].maintained.setdefault(table, set()).add(entry["operation"])
    for degradation in whole.degradations:
        if dataset := degradation.get("dataset"):
            job, table = _place(dataset["name"], lake, names)
            words = [degradation["code"], table, degradation.get("column", "")]
            reports[job].degradations.append(" ".join(filter(None, words)))
    return reports


def _place(name: str, lake: Path, names: Sequence[str]) -> tuple[str, str]:
    """Give (job, its table or folder) of a dataset's name; the job is empty if it is of none."""
    path = name.removeprefix(f"{lake}/").removeprefix("iceberg/")
    job, _, table = path.partition("/")
    return (job, table) if table and job in names else ("", name)


class _Judge:
    """Compares what an event says of one job with its truth, and counts each check.

    :param at: format and name of the job, for messages
    """

    def __init__(self, found: JobsVerdict, at: str, truth: Job, reported: _Report) -> None:
        self._found, self._at, self._truth, self._reported = found, at, truth, reported
        self._declared = [d for d in reported.degradations if d in truth.declared]

    def judge(self) -> None:
        """Compare all."""
        truth, reported = self._truth, self._reported
        self._datasets(
            "input", truth.reads, reported.inputs, reported.inputs.keys() & truth.reads.keys()
        )
        written = {**{table: [] for table in truth.removes}, **truth.writes}
        both = reported.outputs.keys() & written.keys()
        self._datasets("output", written, reported.outputs, both)
        for table in both:
            self._removed(table, reported.outputs[table], truth.removes.get(table, []))
        for table, columns in truth.columns.items():
            for column in columns.keys() | reported.columns.get(table, {}).keys():
                self._column(table, column, columns.get(column, set()))
        # Delta's commands are in capitals, the names of Iceberg's procedures are not.
        is_delta = self._at.startswith("delta ")
        for table in sorted(truth.maintains.keys() | reported.maintained.keys()):
            true = {one for one in truth.maintains.get(table, ()) if one.isupper() == is_delta}
            seen = reported.maintained.get(table, set())
            self._check(seen <= true, "false", f"{table} is maintained by {sorted(seen - true)}")
            text = f"maintenance of {table} by {sorted(true - seen)} is missing"
            self._check(true <= seen, "silent", text)
        for text in reported.degradations:
            self._check(text in truth.declared, "false", f"declares {text!r}")
        for text in sorted(truth.declared.keys() - set(reported.degradations)):
            self._check(False, "false", f"no longer declares {text!r}, which its truth still has")

    def _check(self, is_right: bool, outcome: str, text: str) -> None:
        self._found.checks["right" if is_right else outcome] += 1
        if not is_right and outcome != "declared":
            self._found.wrong.append(f"{self._at}: {text}")

    def _unless_declared(self, outcome: str, table: str, column: str = "") -> str:
        """Give the outcome of a check that is not right.

        :param outcome: where no degradation that the truth allows names the table or column
        """
        about = ([table, column], [table]) if column else ([table],)
        return "declared" if any(d.split(" ")[1:] in about for d in self._declared) else outcome

    def _datasets(
        self,
        side: str,
        true: Mapping[str, How],
        reported: Mapping[str, Accessed],
        compared: Iterable[str],
    ) -> None:
        """Compare the datasets of a side.

        :param compared: those of which the partitions are compared, too
        """
        for table in sorted(true.keys() - reported.keys()):
            outcome = self._unless_declared("silent", table)
            self._check(False, outcome, f"{table} is no {side}")
        for table in sorted(reported):
            text = f"{table} is an {side} ({_text(reported[table])})"
            self._check(table in true, "false", text)
        for table in sorted(compared):
            self._partitions(f"{side} {table}", table, reported[table], true[table])

    def _partitions(self, what: str, table: str, accessed: Accessed, true: How) -> None:
        """Compare how much of a dataset was accessed with the truth."""
        if isinstance(true, str):
            is_right, is_less, truth = accessed.how == true, False, true
        else:
            partitions = _partitions_of(true)
            known = accessed.partitions
            is_all = isinstance(true, Every) and accessed.how == "all"
            is_right, truth = is_all or known == partitions, _named(partitions)
            is_less = accessed.how == "unknown" or (known is not None and known < partitions)
        outcome = self._unless_declared("silent" if is_less else "false", table)
        self._check(is_right, outcome, f"{what} is {_text(accessed)}, and true is {truth}")

    def _removed(self, table: str, accessed: Accessed, true: How) -> None:
        """Compare the partitions that a job emptied with the truth."""
        partitions = _partitions_of([()] if true == "all" else true)
        is_less = accessed.removed < partitions
        outcome = self._unless_declared("silent" if is_less else "false", table)
        text = f"of {table} is removed {_named(accessed.removed)}, and true is {_named(partitions)}"
        self._check(accessed.removed == partitions, outcome, text)

    def _column(self, table: str, column: str, true: Iterable[str]) -> None:
        truth = {tuple(source.rsplit(".", 1)) for source in true}
        sources = self._reported.columns.get(table, {}).get(column, frozenset())
        more, less = sorted(sources - truth), sorted(truth - sources)
        outcome = "false" if more else self._unless_declared("silent", table, column)
        text = f"{table}.{column}: too many {more}, missing {less}"
        self._check(not more and not less, outcome, text)


def _partitions_of(true: Iterable[str | tuple[str | None, ...] | None]) -> set[Partition]:
    return {p if isinstance(p, tuple) else (p,) for p in true}


def _text(accessed: Accessed) -> str:
    if accessed.partitions:
        return _named(accessed.partitions)
    return accessed.rows or accessed.how


def _named(partitions: Iterable[tuple[str | None, ...]]) -> str:
    texts = sorted("/".join("null" if v is None else v for v in p) for p in partitions)
    return ", ".join(texts[:8]) + (" …" if len(texts) > 8 else "")
