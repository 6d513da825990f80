"""Inputs of every kind, and all that reads them, called in this process."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import zlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
from referencing.exceptions import Unresolvable

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.event.stored import readable, stored
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side, Source
from airflow_provider_sparklineage.model import rules, task_rules
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import DocumentError, RulesError
from airflow_provider_sparklineage.model.last_run import LastRun, LastRunDataset
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.terms import EVENTS, MANIFEST, OBSERVATIONS, JobName
from airflow_provider_sparklineage.model.texts import CONTROL_CHARACTERS
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity, Worker
from tests.openlineage_spec import SPEC, validate_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

GOLDEN = Path(__file__).parents[1] / "golden" / "spark-4.0"
_CASES = ("staging_chain", "delta_tables", "python_udf", "self_overwrite", "failing_action")
_OBSERVED = ("delta_tables", "python_udf", "append_then_read")


class Unsurvived(Exception):  # noqa: N818  (what happened, in the words of the table)
    """Raised when an input was not survived as it must be; the message is what happened."""


# --- what is run ----------------------------------------------------------------------------------


def run(*argv: str) -> str:
    """Run a command; give its answer, or "" if it gave none.

    :raise Unsurvived: if it gave neither an answer nor one line on what is wrong
    """
    os.environ[cli.TRACEBACK] = "1"  # what only the last resort catches is not survived
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main(argv)
    answer, errors = out.getvalue(), err.getvalue().splitlines()
    if found := CONTROL_CHARACTERS.search((answer + "".join(errors)).replace("\n", "")):
        _fail(f"{found[0]!r} reaches the terminal")
    wrong = [line for line in errors if not line.startswith("note: ")]
    if code == 0 and (wrong or not answer):
        _fail(f"exit code 0 with {wrong or 'no answer'}")
    if code not in (0, 1, 2):
        _fail(f"exit code {code}")
    if code and (len(wrong) != 1 or not wrong[0].startswith("sparklineage: ")):
        _fail(f"exit code {code} with {len(wrong)} lines")
    return answer if code == 0 else ""


def _fail(message: str) -> None:
    raise Unsurvived(message)


def _merge(*paths: str) -> None:
    answer = run("merge", *paths)
    if answer:
        try:
            event = readable(msgspec.json.decode(answer)).document
            if (
                SPEC.is_dir() and zlib.crc32(answer.encode()) % 10 == 0
            ):  # it takes ten times as long
                validate_event(event)
        except Unresolvable:
            pass  # the schema that a facet names is none that there is
        except (DocumentError, ValueError, jsonschema.ValidationError) as error:
            _fail(f"the merged event is not valid: {str(error)[:100]}")


def _show(*paths: str) -> None:
    run("show", *paths)


def _page(*paths: str) -> None:
    run("show", *paths, "--html", f"{paths[0]}.html")


def _upstream(*paths: str) -> None:
    run("trace", "revenue", "--column", "revenue", "--events", *paths)


def _downstream(*paths: str) -> None:
    run("impact", "orders", "--column", "amount", "--events", *paths)


def _explain(*paths: str) -> None:
    run("explain", "--run", paths[0])


def _explain_json(*paths: str) -> None:
    run("explain", "--run", paths[0], "--json")


_ALL = (_merge, _show, _explain, _explain_json)


def _print(event: dict[str, Any]) -> None:
    out = io.StringIO()
    with contextlib.suppress(DocumentError):
        show.print_event(readable(event).event, out)


def _xcom(path: str) -> None:
    try:
        value = json.loads(Path(path).read_bytes())
    except (ValueError, RecursionError):
        return  # Airflow's, not ours
    with contextlib.suppress(DocumentError):
        _print(xcom.decode(value))


def _archived(path: str) -> None:
    with contextlib.suppress(DocumentError):
        _print(stored(Path(path).read_bytes()))


def _rules(path: str) -> None:
    for load in (
        rules.load_partition_rules,
        task_rules.load_adoption,
        task_rules.load_declarations,
    ):
        try:
            load(Path(path))
        except RulesError as error:
            if path not in str(error):
                _fail(f"the file is not named: {error}")


# --- inputs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InputKind:
    """Inputs of one kind.

    :param originals: good ones, as files by their names; what is spoiled is the one called ``of``
    :param runs: what reads them
    :param is_bundle: whether the runs get the folder of the files
    :param every: of so many seeds one is tried, where a run takes that much longer than others
    """

    originals: Callable[[], tuple[Mapping[str, bytes], ...]]
    of: str
    runs: tuple[Callable[..., None], ...] = _ALL
    is_bundle: bool = False
    every: int = 1


def _events(case: str) -> bytes:
    """Give the first and the last event of each run: what is small is tried sooner."""
    lines = (GOLDEN / f"{case}.ndjson").read_bytes().splitlines(keepends=True)
    runs = [(json.loads(line)["run"]["runId"], line) for line in lines]
    ends = {*dict(reversed(runs)).values(), *dict(runs).values()}
    return b"".join(line for line in lines if line in ends)


@cache
def _event_files() -> tuple[dict[str, bytes], ...]:
    return tuple({EVENTS: _events(case)} for case in _CASES)


@cache
def _bundles() -> tuple[dict[str, bytes], ...]:
    return tuple(
        {
            EVENTS: _events(case),
            OBSERVATIONS: (GOLDEN / "observed" / f"{case}.ndjson").read_bytes(),
            MANIFEST: msgspec.json.format(msgspec.json.encode(_manifest(_events(case)))),
        }
        for case in _OBSERVED
    )


def _manifest(events: bytes) -> Manifest:
    """Make a manifest in which every field has something."""
    output = DatasetName("file", "/lake/revenue")
    source = Source(Kind.DECLARED, "writes[0]", "{{ ds }}", "2024-05-06", "dt", ("ds",), ("ds",))
    last = LastRunDataset("file", "/lake/orders", {"schema": msgspec.Raw(b'{"fields":[]}')})
    return Manifest(
        application_run_id=json.loads(events.splitlines()[0])["run"]["runId"],
        task=TaskIdentity("shop", "revenue", "manual__1", 1),
        worker=Worker("host", 1),
        job=JobName("airflow", "shop.revenue"),
        run_id="00000000-0000-7000-8000-000000000001",
        started=datetime(2024, 5, 7, tzinfo=UTC),
        ended=datetime(2024, 5, 8, tzinfo=UTC),
        outcome="COMPLETE",
        declared_inputs=(DatasetName("file", "/lake/orders"),),
        declared_outputs=(output,),
        expectations=(
            Expectation(
                Kind.DECLARED,
                Side.WRITE,
                output,
                partitions=(Partition.from_values([("dt", "2024-05-06")]),),
                dimensions=(Dimension.of_column("dt"),),
                sources=(source,),
            ),
        ),
        naming={"spark.openlineage.dataset.removePath.pattern": "(?<remove>/v[0-9]+)"},
        partitioning=[{"dataset": "/lake/clicks", "layout": "{dt:%Y-%m-%d}"}],
        intermediate_datasets="drop: /staging/*",
        lineage_facet=True,
        last_known=LastRun("r", (last,), (last,)),
        injected=("py_files",),
        versions={"a": "1"},
        settings={"a": "1"},
        degradations=(Degradation(DegradationCode.LAST_KNOWN, "x", output, "c"),),
    )


@cache
def _merged_events() -> tuple[bytes, ...]:
    """Make merged events of the bundles: one of a job."""
    import tempfile

    events = []
    for bundle in _bundles():
        with tempfile.TemporaryDirectory() as folder:
            for name, text in bundle.items():
                (Path(folder) / name).write_bytes(text)
            events.append(run("merge", folder).encode())
    return tuple(events)


@cache
def _merged_files() -> tuple[dict[str, bytes], ...]:
    pretty = _merged_events()
    lines = b"".join(msgspec.json.format(e, indent=-1).strip() + b"\n" for e in pretty)
    return (*({"lineage.json": e} for e in pretty), {"lineage.json": lines})


@cache
def _archive() -> tuple[dict[str, bytes], ...]:
    return tuple({"1.json": msgspec.json.format(e, indent=-1)} for e in _merged_events())


@cache
def _xcoms() -> tuple[dict[str, bytes], ...]:
    plain = [msgspec.json.format(e, indent=-1) for e in _merged_events()]
    packed = [
        json.dumps(
            {"encoding": "zlib+base64", "event": base64.b64encode(zlib.compress(text)).decode()}
        ).encode()
        for text in plain
    ]
    return tuple({"xcom": text} for text in (*plain, *packed))


_RULES = b"""- dataset: s3://lake/clicks/*
  layout: "{event_date:%Y-%m-%d}/{hour:%H}"
- dataset: /lake/orders
  dimensions:
    - dt: {type: date, format: "%Y%m%d"}
    - field: ts
      transform: day
"""


_ADOPTION = b"""- dag_id: ["sales_*", returns]
  task_id: load
  operator: "shop.operators.*"
- tags: legacy
  exclude: true
"""
_DECLARATIONS = b"""- dag_id: sales
  task_id: [revenue, "etl.*"]
  reads: s3://lake/orders
  writes:
    - dataset: s3://lake/revenue
      partitions: {dt: {start: "{{ ds }}", end: "{{ ts }}", step: P1D}, country: [PL, null]}
      where: "amount > 0"
  on_partition_mismatch: fail
"""


def _rules_files() -> tuple[dict[str, bytes], ...]:
    as_json = json.dumps([{"dataset": "/lake/*", "layout": "{dt:%Y-%m-%d}"}], indent=1).encode()
    return tuple({"rules.yaml": text} for text in (_RULES, as_json, _ADOPTION, _DECLARATIONS))


KINDS: dict[str, InputKind] = {
    "events": InputKind(_event_files, EVENTS),
    "bundle-events": InputKind(_bundles, EVENTS, is_bundle=True),
    "observations": InputKind(_bundles, OBSERVATIONS, is_bundle=True),
    "manifest": InputKind(_bundles, MANIFEST, is_bundle=True),
    "merged": InputKind(_merged_files, "lineage.json", (*_ALL, _page)),
    "asked": InputKind(_merged_files, "lineage.json", (_upstream, _downstream), every=15),
    "xcom": InputKind(_xcoms, "xcom", (_xcom,)),
    "archive": InputKind(_archive, "1.json", (_archived,)),
    "rules": InputKind(_rules_files, "rules.yaml", (_rules,)),
}


@dataclass
class Result:
    """What came of the inputs of one kind.

    :param problems: what happened -> how often, and the first seed that it happened with
    """

    inputs: int = 0
    runs: int = 0
    problems: dict[str, list[int]] = field(default_factory=dict)


def try_one(
    kind: InputKind,
    runs: Iterable[Callable[..., None]],
    text: bytes,
    others: Mapping[str, bytes],
    folder: Path,
) -> list[str]:
    """Write a spoiled input where it is looked for, and have it read; give what happened."""
    for name, content in {**others, kind.of: text}.items():
        (folder / name).write_bytes(content)
    path = str(folder if kind.is_bundle else folder / kind.of)
    problems = []
    for action in runs:
        try:
            action(path)
        except Unsurvived as error:
            problems.append(f"{action.__name__}: {error}")
        except Exception as error:
            what = f"{_where(error)}: {type(error).__name__}: {error}"[:200]
            problems.append(f"{action.__name__}: {what}")
        except SystemExit as error:
            problems.append(f"{action.__name__}: exits with {error}")
    return problems


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    place = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "airflow_provider_sparklineage" in file:
            place = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
