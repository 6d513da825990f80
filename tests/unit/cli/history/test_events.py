"""Columns followed through bundles and files of events, of which no store was built."""

from __future__ import annotations

import json

import pytest

from tests.conftest import golden

pytest.importorskip("duckdb", reason="DuckDB is not in this environment: it is what asks a history")

STAGING = str(golden("staging_chain"))


def source(column, kind="DIRECT/IDENTITY", **more):
    dataset, _, field = column.rpartition(":")
    type_, _, subtype = kind.partition("/")
    transformation = {"type": type_, "subtype": subtype} | more
    return {
        "namespace": "s3://lake",
        "name": dataset,
        "field": field,
        "transformations": [transformation],
    }


def event(job, minute, output, fields, dataset=(), namespace="s3://lake"):
    """Give the event of a task that reads what its columns are made of."""
    facets = {
        "columnLineage": {
            "fields": {name: {"inputFields": sources} for name, sources in fields.items()},
            "dataset": list(dataset),
        },
    }
    sources = [*dataset, *(one for inputs in fields.values() for one in inputs)]
    inputs = sorted({(one["namespace"], one["name"]) for one in sources})
    return {
        "eventType": "COMPLETE",
        "eventTime": f"2024-10-15T00:{minute:02}:00Z",
        "job": {"namespace": "airflow", "name": job},
        "run": {
            "runId": f"{job}-{minute}",
            "facets": {"sparkLineage_capture": {"degradations": []}},
        },
        "inputs": [{"namespace": one, "name": name, "facets": {}} for one, name in inputs],
        "outputs": [{"namespace": namespace, "name": output, "facets": facets}],
    }


REVENUE = event(
    "load",
    1,
    "shop/revenue",
    {
        "amount": [
            source("orders:price", "DIRECT/TRANSFORMATION", masking=True),
            source("rates:rate", "DIRECT/TRANSFORMATION"),
        ]
    },
    dataset=[source("orders:dt", "INDIRECT/FILTER")],
)
REPORT = event(
    "report", 2, "report", {"total": [source("shop/revenue:amount", "DIRECT/AGGREGATION")]}
)


@pytest.fixture
def stored(tmp_path):
    def stored(*events):
        file = tmp_path / "tasks.ndjson"
        file.write_text("\n".join(map(json.dumps, events)))
        return str(file)

    return stored


@pytest.fixture
def walked(run, stored):
    """Follow a column through events; give depth, dataset, column and task of each hop."""

    def walked(events, dataset, column, question="trace"):
        done = run(question, dataset, "--column", column, "--events", stored(*events), "--json")
        assert done.code == 0, done.err
        hops = map(json.loads, done.out.splitlines())
        return sorted(
            (
                hop["depth"],
                hop["dataset"]["name"],
                hop["column"] or "",
                (hop["run"] or {}).get("job"),
            )
            for hop in hops
        )

    return walked


def test_a_path_goes_from_task_to_task_through_datasets_of_equal_name(walked):
    assert walked([REPORT, REVENUE], "report", "total") == [
        (0, "report", "total", "report"),
        (1, "shop/revenue", "amount", "load"),
        (2, "orders", "dt", None),
        (2, "orders", "price", None),
        (2, "rates", "rate", None),
    ]


def test_downstream_is_the_same_the_other_way(walked):
    assert walked([REPORT, REVENUE], "orders", "price", "impact") == [
        (1, "shop/revenue", "amount", "load"),
        (2, "report", "total", "report"),
    ]


def test_a_condition_of_a_dataset_is_one_of_each_of_its_columns(walked):
    downstream = walked([REVENUE], "orders", "dt", "impact")
    assert downstream == [(1, "shop/revenue", "", "load")]
    assert (1, "orders", "dt", None) in walked([REVENUE], "revenue", "amount")


def test_the_order_of_events_does_not_matter(walked):
    assert walked([REVENUE, REPORT], "report", "total") == walked(
        [REPORT, REVENUE], "report", "total"
    )


def test_a_column_is_made_of_what_was_there_and_not_of_what_came_later(walked):
    later = event("late", 3, "shop/revenue", {"amount": [source("other:price")]})
    assert walked([REPORT, REVENUE, later], "report", "total")[1] == (
        *(1, "shop/revenue", "amount", "load"),
    )


def test_all_runs_of_a_task_count(run, stored):
    again = event("load", 3, "shop/returns", {"amount": [source("orders:price")]})
    file = stored(REVENUE, again)
    for dataset in ("shop/revenue", "shop/returns"):
        assert run("trace", dataset, "--column", "amount", "--events", file).code == 0


def test_cycles_end(walked):
    back = event("back", 1, "a", {"x": [source("b:x")]})
    forth = event("forth", 2, "b", {"x": [source("a:x")]})
    assert walked([forth, back], "b", "x") == [
        (0, "b", "x", "forth"),
        (1, "a", "x", "back"),
        (2, "b", "x", None),
    ]


def test_a_long_chain_is_no_recursion(walked):
    chain = [event(f"t{n}", n % 60, f"d{n + 1}", {"x": [source(f"d{n}:x")]}) for n in range(60)]
    assert walked(chain, "d60", "x")[-1] == (60, "d0", "x", None)


# --- the commands ---------------------------------------------------------------------------------


@pytest.fixture
def tasks(stored):
    return stored(REVENUE, REPORT)


def lines(done):
    return [" ".join(line.split()) for line in done.out.splitlines()]


def test_the_command_prints_what_was_done_at_every_hop(run, tasks):
    done = run("trace", "report", "--column", "total", "--events", tasks)
    assert (done.code, done.err) == (0, "")
    assert lines(done)[1:4] == [
        "0 report all total report 2024-10-15 00:02 not certain",
        "1 revenue all amount load 2024-10-15 00:01 aggregation not certain",
        "2 orders all price nobody known transformation, masked",
    ]


def test_a_dataset_that_none_of_the_runs_wrote_is_reported(run, tasks):
    done = run("trace", "rates", "--column", "rate", "--events", tasks)
    assert (done.code, done.out) == (
        0,
        "None of these runs is known to have written it.\n"
        "Not judged\n"
        "No run is known that wrote 1 dataset: rates.\n",
    )
    done = run("impact", "report", "--column", "total", "--events", tasks)
    assert (done.code, done.out) == (0, "Nothing is known that was made of it.\n")


def test_spark_events_are_merged_first(run):
    done = run("trace", "revenue", "--column", "revenue", "--events", STAGING, "--json")
    hops = [json.loads(line) for line in done.out.splitlines()]
    found = {(hop["depth"], hop["dataset"]["name"], hop["column"]) for hop in hops}
    assert {(0, "/lake/revenue", "revenue"), (1, "/lake/orders", "amount")} <= found
    assert max(hop["depth"] for hop in hops) == 1


def test_events_of_stdin_are_read(run, monkeypatch):
    with golden("staging_chain").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        done = run("trace", "revenue", "--column", "revenue", "--events", "-")
    assert "aggregation" in done.out


def test_bundles_and_merged_events_are_taken_together(run, tmp_path):
    from airflow_provider_sparklineage.spark.capture import bundle as capture
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest

    text = golden("staging_chain").read_text()
    first = json.loads(text.splitlines()[0])
    bundle = capture.create(
        tmp_path / "captures", Manifest(application_run_id=first["run"]["runId"])
    )
    bundle.events_path.write_text(text)
    after = event("after", 1, "after", {"x": [source("/lake/revenue:revenue")]}, namespace="file")
    after = json.loads(json.dumps(after).replace("s3://lake", "file").replace("2024-", "2999-"))
    file = tmp_path / "after.ndjson"
    file.write_text(json.dumps(after))
    done = run(
        *("trace", "after", "--column", "x", "--json", "--events", str(bundle.path), str(file))
    )
    hops = [json.loads(line) for line in done.out.splitlines()]
    found = {(hop["depth"], hop["dataset"]["name"], hop["column"]) for hop in hops}
    assert {(1, "/lake/revenue", "revenue"), (2, "/lake/orders", "amount")} <= found


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("revenue", "--column", "x"), "No run names a column 'x' of s3://lake/shop/revenue."),
        (("nothing", "--column", "x"), "There is no dataset 'nothing' in the history."),
        (("report", "--store", "here"), "Give --store or --events, not both."),
    ],
    ids=["column", "dataset", "store"],
)
@pytest.mark.parametrize("question", ["trace", "impact"])
def test_a_wrong_name_is_exit_code_2(run, tasks, question, argv, message):
    done = run(question, *argv, "--events", tasks)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_an_input_without_datasets_is_exit_code_2(run, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("nonsense\n")
    done = run("trace", "revenue", "--events", str(file))
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines() == [
        "note: skipped: no json: 1",
        "sparklineage: The input names no dataset. Give capture bundles, or files of OpenLineage "
        "events.",
    ]


def test_an_input_that_is_not_there_is_exit_code_2(run, tmp_path):
    done = run("trace", "revenue", "--events", str(tmp_path / "nothing"))
    assert (done.code, done.out) == (2, "")
    assert "nothing does not exist" in done.err
