"""Events of any producer, clock and name, through the whole chain: build, ask, print."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.partitioning import NULL, Partition
from tests.unit.history.facts.events import OF_DBT, dataset, event, ours, part

RECORDED = Path(__file__).parents[1] / "golden" / "history"
SEEN = {"witness": "both", "accessed": "part", "writes": 1, "failed": False}


class Store:
    """A history of events, asked by the commands."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.argv = ("--store", str(self.folder / "store"))

    def build(self, *events, name="events.ndjson"):
        file = self.folder / name
        file.write_text("".join(f"{json.dumps(one)}\n" for one in events))
        return self.build_of(file)

    def build_of(self, *sources):
        done = self.run("history", "build", *map(str, sources), "--json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    def run(self, *argv):
        # Options before the dataset, which may begin with a dash.
        done, problems = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(done), contextlib.redirect_stderr(problems):
            code = cli.main([*argv, *self.argv] if argv[0] == "history" else [*argv])
        assert "defect" not in problems.getvalue(), problems.getvalue()
        return SimpleNamespace(code=code, out=done.getvalue(), err=problems.getvalue())

    def ask(self, question, *of, **options):
        """Ask in both forms; give the objects of the one for programs."""
        given = [f"--{name}={value}" for name, value in options.items()]
        for_people = self.run(question, *self.argv, *given, "--", *of)
        done = self.run(question, *self.argv, *given, "--json", "--", *of)
        assert (done.code, for_people.code) == (0, 0), done.err
        assert for_people.out
        return [json.loads(line) for line in done.out.splitlines()]

    def ask_all(self, *datasets, task):
        """Ask every question of every dataset: none may fail."""
        assert self.run("history", "show").code == 0
        self.ask("stale")
        self.ask("drift", task)
        for one in datasets:
            for question in ("trace", "impact", "stale", "gaps", "patterns"):
                self.ask(question, one)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def names(hops):
    return [(hop["depth"], hop["dataset"]["name"]) for hop in hops]


def run_of(number, started, ended, job, reads=(), writes=()):
    """Give the event of a run of ours, each of its datasets with what was accessed."""
    made = ours(
        reads=[(one, SEEN) for one in reads],
        writes=[(one, SEEN) for one in writes],
        eventTime=ended,
        sending={"started": started, "runFacets": {}},
    )
    made["run"]["runId"] = f"00000000-0000-7000-8000-{number:012}"
    made["job"] = {"namespace": "tests", "name": job}
    return made


def read(name, partition, namespace="file"):
    return dataset(name, namespace=namespace, inputFacets=part(partition))


def written(name, partition, namespace="file", columns=None):
    facets = {"lifecycleStateChange": {"lifecycleStateChange": "OVERWRITE"}}
    if columns:
        facets["columnLineage"] = {"fields": columns}
    own = part(partition, key="outputCondition")
    return dataset(name, namespace=namespace, facets=facets, outputFacets=own)


# --- names ----------------------------------------------------------------------------------------

NASTY = (
    *("", " ", "a b", "'", '"', "'; DROP TABLE runs; --", "$name", "$cell", "%s", "%2F", "a/b"),
    *("a=b", "=", "/", "//", ":", "a:b", "x\ny", "\x1b[31m", "\u202e", "é", "日本", "🙂", "null"),
    *(NULL, "orders", "orders2", "orders/x", "s3://bucket", "a,b", "[bold]x[/]", "{{ ds }}", "\\"),
    *("x" * 10_000, "..", "2024-10-15", "20241015", "05", "dt=1", "*", "[a]", "-x", "--json"),
)
NAMES = st.one_of(st.sampled_from(NASTY), st.text(max_size=12))
FULL = NAMES.filter(bool)


@pytest.mark.long  # it builds a hundred stores
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(NAMES, NAMES, NAMES, FULL, st.none() | NAMES, NAMES, NAMES, FULL)
@example("s3://lake", "orders", "revenue", "dt", "2024-10-15", "a", "b", "$name")
@example("file", "/lake/orders", "/lake/orders/x", "x'", None, "", "a/b", "'; DROP TABLE runs; --")
@example(":", "a:b", "x\ny", "a/b=c", "p/q=%2F", "[bold]x[/]", "\x1b", "🙂")
def test_any_name_is_answered_as_any_other(space, source, target, label, value, column, out, job):
    assume(source != target)
    assume(all(scrub_name(one) == one for one in (space, source, target)))
    values = {label: value}
    edge = {"namespace": space, "name": source, "field": column, "transformations": []}
    columns = {out: {"inputFields": [edge]}}
    from_source, to_target = f"{space}:{source}", f"{space}:{target}"
    assume(from_source != to_target)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        hours = [f"2024-10-15T{hour:02}:00:00Z" for hour in range(7)]
        first = run_of(1, *hours[1:3], f"{job}1", writes=[written(source, values, space)])
        second = run_of(
            2, *hours[3:5], f"{job}2",
            [read(source, values, space)], [written(target, values, space, columns)],
        )  # fmt: skip
        third = run_of(3, *hours[5:7], f"{job}1", writes=[written(source, values, space)])
        assert store.build(first, second, third)["new"] == 3

        store.ask_all(to_target, task=f"{job}2")
        expected = [(0, target), (1, source)]
        partition = str(Partition.from_values([(label, value)]))
        found = store.ask("trace", to_target, partition=partition)
        assert names(found) == expected
        assert list(found[0]["partition"]) == [label]
        of_column = store.ask("trace", to_target, column=out)
        assert [hop["column"] for hop in of_column] == [out, column]
        assert names(store.ask("impact", from_source, partition=partition)) == [(1, target)]
        assert [one["dataset"]["name"] for one in store.ask("stale")] == [target]
        [pattern] = store.ask("patterns", to_target)
        assert (pattern["support"], pattern["seen"]) == (1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "s3://lake:warehouse/sales.orders",
        "s3://lake/warehouse/sales.orders",
        "s3a://lake/warehouse/sales.orders/",
        "s3a://lake/warehouse/sales.orders/dt=2024-10-15",
        "warehouse/sales.orders",
        "sales.orders",
        "orders",
    ],
)
def test_a_dataset_is_asked_for_in_each_documented_form(store, text):
    day = {"dt": "2024-10-15"}
    others = [
        written(name, day, "s3://lake")
        for name in ("warehouse/sales.orders", "warehouse/sales.orders2", "warehouse/sales")
    ]
    store.build(run_of(1, "2024-10-15T01:00:00Z", "2024-10-15T02:00:00Z", "load", writes=others))
    assert names(store.ask("trace", text, partition="dt=2024-10-15")) == [
        (0, "warehouse/sales.orders")
    ]


def test_a_column_without_a_name_makes_no_partition(store):
    one = written("/lake/orders", {"": "x"})
    store.build(run_of(1, "2024-10-15T01:00:00Z", "2024-10-15T02:00:00Z", "load", writes=[one]))
    [hop] = store.ask("trace", "orders")
    assert hop["partition"] is None
    assert not hop["is_certain"]


# --- other producers ------------------------------------------------------------------------------

SPEC = "https://openlineage.io/spec/facets/1-0-0"
SQL_OPERATOR = "https://github.com/apache/airflow/tree/providers-openlineage/2.20.3"


def of_warehouse(table, **facets):
    return {"namespace": "postgres://db:5432", "name": f"shop.public.{table}", "facets": facets}


def foreign(producer, job, hour, inputs, outputs, **changes):
    run_id = f"00000000-0000-7000-8000-{hour:012}"
    made = event(
        producer=producer,
        eventTime=f"2024-10-15T{hour:02}:00:00Z",
        inputs=inputs,
        outputs=outputs,
        run={"runId": run_id, "facets": {}},
        **changes,
    )
    return made | {"job": {"namespace": "shop", "name": job, "facets": {"sql": {"query": "…"}}}}


def test_sql_operators_dbt_and_transfers_take_part_at_the_level_of_datasets(store):
    lineage = {
        "_producer": OF_DBT,
        "_schemaURL": f"{SPEC}/ColumnLineageDatasetFacet.json",
        "fields": {
            "amount": {
                "inputFields": [{**of_warehouse("staged"), "field": "price"}],
                "transformationType": "IDENTITY",
                "transformationDescription": "price",
            }
        },
    }
    raw = {"namespace": "s3://raw", "name": "orders.csv"}
    store.build(
        foreign(SQL_OPERATOR, "copy.to_postgres", 1, [raw], [of_warehouse("orders")]),
        foreign(OF_DBT, "dbt.staged", 2, [of_warehouse("orders")], [of_warehouse("staged")]),
        foreign(
            OF_DBT, "dbt.revenue", 3, [of_warehouse("staged")],
            [of_warehouse("revenue", columnLineage=lineage)],
        ),
    )  # fmt: skip
    store.ask_all("revenue", "orders.csv", task="dbt.revenue")
    chain = [f"shop.public.{one}" for one in ("revenue", "staged", "orders")]
    found = store.ask("trace", "postgres://db:5432:shop.public.revenue")
    assert names(found) == [*enumerate(chain), (3, "orders.csv")]
    of_column = store.ask("trace", "revenue", column="amount", depth=1)
    assert [hop["column"] for hop in of_column] == ["amount", "price"]
    plan = store.run("impact", "orders.csv", "--plan", "--json", *store.argv)
    steps = [json.loads(line) for line in plan.out.splitlines()]
    assert [one["job"] for one in steps] == ["copy.to_postgres", "dbt.staged", "dbt.revenue"]
    assert "by hand" in store.run("impact", "orders.csv", *store.argv).out


def test_events_that_are_of_no_run_are_counted_and_all_others_count(store):
    good = foreign(OF_DBT, "dbt.staged", 2, [of_warehouse("orders")], [of_warehouse("staged")])
    of_job = {"eventTime": good["eventTime"], "job": good["job"], "schemaURL": "…#/$defs/JobEvent"}
    of_dataset = {"eventTime": good["eventTime"], "dataset": of_warehouse("orders")}
    wrong = [{**good, "run": None}, {**good, "eventTime": "yesterday"}, {**good, "job": []}]
    built = store.build(of_job, good, of_dataset, *wrong, [], "text", 1, None)
    assert (built["new"], sum(built["skipped"].values())) == (1, 8)
    assert names(store.ask("trace", "staged")) == [
        (0, "shop.public.staged"),
        (1, "shop.public.orders"),
    ]


def test_inputs_at_the_start_and_outputs_at_the_end_are_of_one_run(store):
    inputs, outputs = [of_warehouse("orders")], [of_warehouse("staged")]
    start = foreign(OF_DBT, "dbt.staged", 2, inputs, [], eventType="START")
    end = start | {"eventType": "COMPLETE", "eventTime": "2024-10-15T02:10:00Z"}
    store.build(start, end | {"inputs": [], "outputs": outputs})
    assert names(store.ask("trace", "staged")) == [
        (0, "shop.public.staged"),
        (1, "shop.public.orders"),
    ]


# --- clocks ---------------------------------------------------------------------------------------

DAY = {"dt": "2024-10-15"}


@pytest.mark.parametrize(
    ("started", "ended"),
    [
        pytest.param("2024-10-15T04:00:00Z", "2024-10-15T03:30:00Z", id="ended before it started"),
        pytest.param("1970-01-01T00:00:00Z", "2024-10-15T04:00:00Z", id="started in 1970"),
        pytest.param("2024-10-15T03:00:00Z", "9999-12-31T23:59:59.999999Z", id="ended in 9999"),
        pytest.param("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", id="all in 1970"),
        pytest.param("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", id="beyond dates"),
        pytest.param("soon", "2024-10-15T04:00:00Z", id="no time"),
        pytest.param("2024-10-15T05:00:00+02:00", "2024-10-15T06:00:00+02:00", id="another zone"),
    ],
)
def test_wrong_clocks_break_nothing_and_what_was_read_stays_known(store, started, ended):
    first = run_of(
        1, "2024-10-15T01:00:00Z", "2024-10-15T02:00:00Z", "load",
        writes=[written("/lake/orders", DAY)],
    )  # fmt: skip
    second = run_of(
        2, started, ended, "report",
        [read("/lake/orders", DAY)], [written("/lake/revenue", DAY)],
    )  # fmt: skip
    built = store.build(first, second)
    if ended.endswith("-12:00"):  # in UTC it is in the year 10000
        assert built["skipped"] == {"no_run_event": 1}
        return
    assert not built["skipped"]
    store.ask_all("orders", "revenue", task="report")
    found = store.ask("trace", "revenue", partition="dt=2024-10-15")
    assert names(found) == [(0, "/lake/revenue"), (1, "/lake/orders")]
    # Who read before the first known write read something, and nobody knows who wrote that.
    is_after = not started.startswith(("1970", "0001"))
    assert (found[1]["run"] is not None) == is_after


def test_times_of_several_zones_are_in_one_order(store):
    """The first write is later on its host's clock, and two hours earlier."""
    store.build(
        run_of(1, "2024-10-15T09:00:00+09:00", "2024-10-15T10:00:00+09:00", "load",
               writes=[written("/lake/orders", DAY)]),
        run_of(2, "2024-10-15T02:00:00Z", "2024-10-15T03:00:00Z", "load",
               writes=[written("/lake/orders", DAY)]),
    )  # fmt: skip
    [hop] = store.ask("trace", "orders", partition="dt=2024-10-15")
    assert hop["run"]["ended"] == "2024-10-15T03:00:00Z"
    [before] = store.ask("trace", "orders", **{"as-of": "2024-10-15T04:30:00+02:00"})
    assert before["run"]["ended"] == "2024-10-15T01:00:00Z"


def test_a_host_whose_clock_is_hours_behind_makes_no_circle(store):
    """By its clock the reader ended before what it read was written."""
    store.build(
        run_of(1, "2024-10-15T08:00:00Z", "2024-10-15T09:00:00Z", "load",
               writes=[written("/lake/orders", DAY)]),
        run_of(2, "2024-10-15T03:00:00Z", "2024-10-15T04:00:00Z", "report",
               [read("/lake/orders", DAY)], [written("/lake/revenue", DAY)]),
    )  # fmt: skip
    store.ask_all("orders", "revenue", task="report")
    assert [hop["run"] for hop in store.ask("trace", "revenue")][1] is None
    [late] = store.ask("stale")
    assert late["dataset"]["name"] == "/lake/revenue"


# --- duplicates, order, torn files ----------------------------------------------------------------


def recorded():
    files = [RECORDED / f"flights_{name}.ndjson.gz" for name in ("month", "rewritten")]
    return [json.loads(line) for file in files for line in gzip.open(file)]


def answers(store):
    asked = [
        store.ask("stale"),
        store.ask("trace", "weekly_report"),
        store.ask("impact", "flights", partition="flight_date=2013-01-15"),
        store.ask("patterns", "daily_delays"),
        store.ask("gaps", "daily_delays"),
        store.ask("drift", "example_report_flight_delays.weekly_report"),
    ]
    return json.dumps(asked, sort_keys=True)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("expected"))
    store.build(*recorded())
    return answers(store)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_events_and_how_often_they_come_do_not_matter(store, expected, seed):
    events = recorded()
    events += events[: len(events) // 3]
    random.Random(seed).shuffle(events)
    half = len(events) // 2
    store.build(*events[:half])
    built = store.build(*events[half:], *events[:5], name="late.ndjson")
    assert built["rows"]["events"] == 91
    assert answers(store) == expected


def test_of_a_torn_archive_what_is_whole_is_there_and_the_rest_when_it_is_whole(store, expected):
    packed, lines = store.folder / "a.ndjson.gz", store.folder / "b.ndjson"
    texts = [json.dumps(one).encode() + b"\n" for one in recorded()]
    whole = gzip.compress(b"".join(texts[:60]))
    packed.write_bytes(whole[: len(whole) * 2 // 3])
    lines.write_bytes(b"".join(texts[60:])[:-500])
    built = store.build_of(packed, lines)
    assert built["skipped"] == {"torn_file": 1, "torn_line": 1}
    assert 0 < built["new"] < 90
    store.ask_all("flights", "weekly_report", task="example_report_flight_delays.weekly_report")
    packed.write_bytes(whole)
    lines.write_bytes(b"".join(texts[60:]))
    assert store.build_of(packed, lines)["rows"]["events"] == 91
    assert answers(store) == expected
