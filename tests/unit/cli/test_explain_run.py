"""``sparklineage explain --run``: what a run was expected to read and write, and what it did."""

import io
import json
import re
import shutil

import msgspec
import pytest

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.event.model import read_document
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side, Source
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.terms import JobName
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests.conftest import golden
from tests.observed_writes import written

OUTPUT = DatasetName("file", "/lake/revenue")


def expected(day, **more):
    source = Source(Kind.DECLARED, "writes[0]", "{{ ds }}", day, "dt", ("ds",), ("ds",))
    partitions = (Partition.from_values([("dt", day)]),)
    return Expectation(
        Kind.DECLARED,
        Side.WRITE,
        OUTPUT,
        **({"partitions": partitions} | more),
        dimensions=(Dimension.of_column("dt"),),
        sources=(source,),
    )


@pytest.fixture
def bundle(tmp_path):
    """Make the bundle of a run with an expectation and observed days; of none without days."""

    def make(*days, wanted):
        shutil.copy(golden("staging_chain"), tmp_path / "events.ndjson")
        first = (tmp_path / "events.ndjson").read_text().splitlines()[0]
        manifest = Manifest(
            application_run_id=json.loads(first)["run"]["runId"],
            job=JobName("airflow", "shop.revenue"),
            expectations=(wanted,),
        )
        if days:
            text = "".join(f"{json.dumps(line)}\n" for line in written(*days))
            (tmp_path / "observations.ndjson").write_text(text)
        CaptureBundle(tmp_path, manifest).save()
        return str(tmp_path)

    return make


def words(done):
    """Give what was printed without its columns."""
    return " ".join(done.out.split())


@pytest.mark.parametrize(
    ("days", "wanted", "line"),
    [
        pytest.param(
            ["2024-05-06"], expected("2024-05-06"),
            "matched expected dt=2024-05-06; observed dt=2024-05-06", id="matched",
        ),
        pytest.param(
            ["2024-05-05"], expected("2024-05-06"),
            "unexpected expected dt=2024-05-06; observed dt=2024-05-05; unexpected dt=2024-05-05; "
            "missing dt=2024-05-06", id="unexpected",
        ),
        pytest.param(
            [], expected("2024-05-06"),
            "matched expected dt=2024-05-06", id="by locations",
        ),
        pytest.param(
            ["2024-05-06"], expected("dt > '2024'", partitions=None, where="amount > 1"),
            "unobserved expected dt > '2024'; observed dt=2024-05-06", id="predicate",
        ),
    ],
)  # fmt: skip
def test_expected_observed_and_status_are_printed(run, bundle, days, wanted, line):
    folder = bundle(*days, wanted=wanted)
    done = run("explain", "--run", folder)
    assert done.code == 0
    assert f"revenue written {line} " in words(done)
    assert "from {{ ds }}" in done.out
    assert f"revenue written {line} " in words(run("show", folder))


def test_what_was_not_observed_is_printed(run, bundle):
    staging = DatasetName("file", "/lake/staging/enriched_orders")
    wanted = msgspec.structs.replace(expected("2024-05-06"), dataset=staging)
    done = run("explain", "--run", bundle(wanted=wanted))
    line = "enriched_orders written unobserved expected dt=2024-05-06; observed: not known"
    assert line in words(done)


def test_statuses_have_a_colour_where_there_is_a_terminal(bundle, run, monkeypatch):
    folder = bundle("2024-05-05", wanted=expected("2024-05-06"))
    event = json.loads(run("merge", folder).out)
    file = io.StringIO()
    monkeypatch.setattr(file, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show.print_run(read_document(event), file)
    assert "\x1b[1;31munexpected" in file.getvalue()


def test_the_check_is_printed_for_programs(run, bundle):
    folder = bundle("2024-05-05", wanted=expected("2024-05-06"))
    [document] = json.loads(run("explain", "--run", folder, "--json").out)
    assert (document["subject"], document["status"]) == ("shop.revenue", "unexpected")
    entries = {e["dataset"]["name"]: e for e in document["writes"]}
    assert entries["/lake/revenue"]["missing"]["summary"] == "dt=2024-05-06"


def test_a_run_of_which_nothing_was_expected_is_reported(run):
    done = run("explain", "--run", str(golden("writes_nothing")))
    assert (done.code, "Nothing was expected" in done.out) == (0, True)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--logical-date", "2024-05-06"],
        ["/lake/t/dt=1", "--run", "."],
        ["--run", ".", "--logical-date", "2024-05-06"],
        ["--run", "/nowhere/at/all"],
    ],
)
def test_what_makes_no_sense_is_refused(run, arguments):
    done = run("explain", *arguments)
    assert done.code == 2
    assert re.search("^sparklineage(: | explain: error: )", done.err, re.MULTILINE)
