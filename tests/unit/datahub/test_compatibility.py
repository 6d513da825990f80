"""Events of the kinds that OpenLineage's compatibility tests have, and what DataHub has of each.

Those that have no edge are in :mod:`.test_events_without_edges`.
"""

from __future__ import annotations

import pytest

from tests.unit.datahub.compatibility_events import (
    ABOVE,
    AIRFLOW,
    HDFS,
    HIVE,
    OTHERS,
    ROOT,
    RUN,
    SPARK,
    TASK,
    below,
    column,
    data,
    fields,
    kind,
    link,
    made_of,
    ran,
)
from tests.unit.datahub.summaries import stored, summary


def test_the_least_that_a_run_can_have_is_an_edge_between_two_tables():
    raw, orders = ({"namespace": "bigquery", "name": f"acme.shop.{n}"} for n in ("raw", "orders"))

    assert summary(ran("somebody", "nightly", inputs=[raw], outputs=[orders])) == [
        "run of unknown:nightly/nightly",
        "SUCCESS",
        "bigquery:acme.shop.orders <- bigquery:acme.shop.raw TRANSFORMED",
        "UNKNOWN bigquery:acme.shop.orders",
    ]


def test_a_task_that_copies_a_table_of_bigquery_says_so_by_the_old_facet():
    raw = ("bigquery", "acme.shop.raw")
    lineage = made_of(Id=[column(raw, "Id")], day=[column(raw, "day")])
    for field in lineage["fields"].values():
        field.update(transformationType="IDENTITY", transformationDescription="identical")
    schema = fields(Id="INTEGER", day="DATE")
    copy = data("bigquery", "acme.shop.copy", schema=schema, columnLineage=lineage)
    of_task = {"run": below("shop"), "facets": TASK}
    start = ran(AIRFLOW, "shop.copy", "START", **of_task)
    end = ran(AIRFLOW, "shop.copy", inputs=[data(*raw, schema=schema)], outputs=[copy], **of_task)

    assert summary(start) == [f"run of airflow:shop/copy in {ABOVE}", "STARTED"]
    assert summary(start, end) == [
        f"run of airflow:shop/copy in {ABOVE}",
        "SUCCESS",
        "bigquery:acme.shop.copy <- bigquery:acme.shop.raw COPY",
        "  id <- bigquery:acme.shop.raw#id DIRECT:IDENTITY",
        "  day <- bigquery:acme.shop.raw#day DIRECT:IDENTITY",
        "UNKNOWN bigquery:acme.shop.copy",
    ]


def test_a_task_that_inserts_into_a_table_of_snowflake_has_a_query_and_the_rows():
    raw = ("snowflake://acme-eu", "SHOP.PUBLIC.RAW")
    lineage = made_of(TOTAL=[column(raw, "AMOUNT", "DIRECT:AGGREGATION")])
    orders = data("snowflake://acme-eu", "SHOP.PUBLIC.ORDERS", columnLineage=lineage)
    orders["outputFacets"] = {"outputStatistics": {"rowCount": 5, "size": 70}}
    facets = TASK | {"sql": {"query": "INSERT INTO orders SELECT SUM(amount) FROM raw"}}
    run = {"externalQuery": {"externalQueryId": "01b2", "source": "snowflake://acme-eu"}}
    event = ran(AIRFLOW, "a.b", run=run, facets=facets, inputs=[data(*raw)], outputs=[orders])

    properties = stored(event)[f"urn:li:dataProcessInstance:{RUN}", "dataProcessInstanceProperties"]
    assert properties["customProperties"] == {"external_query_id": "01b2"}
    assert summary(event) == [
        "run of airflow:a/b",
        "SUCCESS",
        "INSERT INTO orders SELECT SUM(amount) FROM raw",
        "snowflake:shop.public.orders <- snowflake:shop.public.raw TRANSFORMED",
        "  total <- snowflake:shop.public.raw#amount DIRECT:AGGREGATION",
        "INSERT snowflake:shop.public.orders 5 rows",
    ]


def test_a_task_that_composes_files_has_an_edge_from_each():
    parts = [data("gs://lake", "a.csv"), data("file", "/home/b.csv")]
    event = ran(AIRFLOW, "files.compose", inputs=parts, outputs=[data("gs://lake", "all.csv")])

    assert summary(event)[2:] == [
        "gcs:lake/all.csv <- gcs:lake/a.csv TRANSFORMED",
        "gcs:lake/all.csv <- file:home/b.csv TRANSFORMED",
        "UNKNOWN gcs:lake/all.csv",
    ]


def test_an_application_of_spark_and_its_insert_into_a_table_of_hive_are_two_runs():
    lineage = made_of(id=[column((HDFS, "/warehouse/raw"), "id", "DIRECT:IDENTITY")])
    read = data(HDFS, "/warehouse/raw", symlinks=link(HIVE, "shop.raw"))
    made = data(HDFS, "/warehouse/o", columnLineage=lineage, symlinks=link(HIVE, "shop.o"))
    made["outputFacets"] = {"outputStatistics": {"rowCount": 5, "size": 70}}
    app = kind("APPLICATION", "SPARK")
    of_app = [ran(OTHERS + "spark", "app", s, ABOVE, facets=app) for s in ("START", "COMPLETE")]
    action = kind("SQL_JOB", "SPARK") | {"sql": {"query": "INSERT INTO shop.o TABLE shop.raw"}}
    of_action = {"run": below("app") | SPARK, "facets": action}
    job = "app.execute_insert_into_hive_table.warehouse_o"
    start, running, end = (
        ran(OTHERS + "spark", job, state, inputs=[read], outputs=[made], **of_action)
        for state in ("START", "RUNNING", "COMPLETE")
    )

    assert summary(of_app[0], start, running, end, of_app[1]) == [
        "run of spark:app",
        "SUCCESS",
        f"run of spark:app/execute_insert_into_hive_table.warehouse_o in {ABOVE}",
        "SUCCESS",
        "hive:shop.o is hdfs:namenode/warehouse/o",
        "hive:shop.raw is hdfs:namenode/warehouse/raw",
        "INSERT INTO shop.o TABLE shop.raw",
        "hive:shop.o <- hive:shop.raw COPY",
        "  id <- hive:shop.raw#id DIRECT:IDENTITY",
    ]


@pytest.mark.parametrize("is_compact", [False, True], ids=["1-1-0", "1-2-0"])
def test_grouping_and_joining_are_of_the_tables_by_both_versions_of_the_facet(is_compact):
    one, other = ("file", "/lake/one"), ("file", "/lake/other")
    conditions = [
        column(one, "a", "INDIRECT:GROUP_BY"),
        column(other, "a", "INDIRECT:FILTER", "INDIRECT:JOIN"),
    ]
    ident, total = column(one, "a", "DIRECT:IDENTITY"), column(one, "b", "DIRECT:AGGREGATION")
    lineage = (
        made_of(*conditions, ident=[ident], total=[total])
        if is_compact
        else made_of(ident=[ident, *conditions], total=[total, *conditions])
    )
    links = {name: {"symlinks": link("file:/lake", f"shop.{name}")} for name in ("one", "other")}
    made = data("file", "/lake/t", columnLineage=lineage, symlinks=link("file:/lake", "shop.t"))
    inputs = [data(*one, **links["one"]), data(*other, **links["other"])]
    event = ran(OTHERS + "spark", "app.create.shop_t", run=SPARK, inputs=inputs, outputs=[made])

    assert summary(event)[-4:] == [
        "hive:shop.t <- hive:shop.one TRANSFORMED (INDIRECT:GROUP_BY a)",
        "hive:shop.t <- hive:shop.other TRANSFORMED (INDIRECT:FILTER a; INDIRECT:JOIN a)",
        "  ident <- hive:shop.one#a DIRECT:IDENTITY",
        "  total <- hive:shop.one#b DIRECT:AGGREGATION",
    ]


def test_hive_itself_names_tables_and_links_them_to_their_files():
    lineage = made_of(month=[column((HIVE, "shop.raw"), "day", "DIRECT:TRANSFORMATION")])
    files = {"symlinks": link(HDFS, "/w/months", "LOCATION")}
    run = {"processing_engine": {"name": "hive"}, "hive_session": {"username": "ada"}}
    read = data(HIVE, "shop.raw", symlinks=link("gs://lake", "w/raw", "LOCATION"))
    made = data(HIVE, "shop.months", columnLineage=lineage, **files)
    job = "createtable_as_select.shop.months"
    event = ran(OTHERS + "hive", job, run=run, inputs=[read], outputs=[made])

    assert summary(event) == [
        "run of hive:createtable_as_select/shop.months",
        "SUCCESS",
        "hive:shop.months <- hive:shop.raw TRANSFORMED",
        "  month <- hive:shop.raw#day DIRECT:TRANSFORMATION",
        "UNKNOWN hive:shop.months",
    ]


@pytest.mark.parametrize(
    ("namespace", "name", "expected"),
    [
        ("spanner://acme/main", "shop/orders", "spanner:acme/main/shop/orders"),
        ("bigtable://acme/main", "orders", "bigtable:acme/main/orders"),
        ("postgres://localhost:3307", "shop.orders", "postgres:shop.orders"),
        ("duckdb:///home/x.duckdb", "dev.main.orders", "duckdb:home/x.duckdb/dev.main.orders"),
    ],
)
def test_spark_writes_a_table_of_a_catalog_from_one_of_a_database(namespace, name, expected):
    catalog = {"framework": "iceberg", "type": "bigquerymetastore", "name": "cat"}
    words = link("gs://lake/iceberg", "shop.words")
    made = data("gs://lake", "iceberg/shop/words", catalog=catalog, symlinks=words)
    read = [data(namespace, name)]
    event = ran(OTHERS + "spark", "app.append_data", run=SPARK, inputs=read, outputs=[made])

    assert summary(event)[2:] == [
        "iceberg:shop.words is gcs:lake/iceberg/shop/words",
        f"iceberg:shop.words <- {expected} TRANSFORMED",
    ]


def test_a_model_of_dbt_has_an_edge_and_its_tests_are_assertions():
    db = "postgres://db:5432"
    root = {"run": {"runId": ROOT}, "job": {"namespace": "airflow", "name": "shop.dbt"}}
    run = below("dbt-run-shop", root=root) | {"dbt_version": {"version": "1.8.0"}}
    lineage = made_of(id=[column((db, "dev.shop.raw"), "id")])
    sql = {"sql": {"query": "select id from raw", "dialect": "postgres"}}
    of_model = {"run": run, "facets": kind("MODEL", "DBT") | sql}
    read = [data(db, "dev.shop.raw")]
    made = [data(db, "dev.shop.orders", columnLineage=lineage)]
    job = "dev.shop.orders.build.run"
    model = ran(OTHERS + "dbt", job, inputs=read, outputs=made, **of_model)
    results = [
        {"assertion": "not_null", "success": True, "column": "id"},
        {"assertion": "unique", "success": False, "column": "id"},
    ]
    tested = data(db, "dev.shop.orders")
    tested["inputFacets"] = {"dataQualityAssertions": {"assertions": results}}
    tests = ran(OTHERS + "dbt", "dev.shop.orders.test", facets=kind("TEST", "DBT"), inputs=[tested])

    assert summary(model) == [
        f"run of dbt:dev/shop.orders.build.run in {ABOVE}",
        "SUCCESS",
        "select id from raw",
        "postgres:dev.shop.orders <- postgres:dev.shop.raw TRANSFORMED",
        "  id <- postgres:dev.shop.raw#id NONE",
        "UNKNOWN postgres:dev.shop.orders",
    ]
    assert summary(tests)[2:] == [
        "postgres:dev.shop.orders: not_null of id",
        "  SUCCESS",
        "postgres:dev.shop.orders: unique of id",
        "  FAILURE",
    ]


def test_a_stream_of_flink_has_its_topics_when_it_is_cancelled_or_ends():
    broker = "kafka://broker:9092"
    clicks, sessions = (
        data(broker, name, symlinks=link("flink://catalog", f"default.{name}"))
        for name in ("clicks", "sessions")
    )
    both = {"inputs": [clicks], "outputs": [sessions]}
    facets = kind("JOB", "FLINK", "STREAMING")
    start, running, cancelled, end = (
        ran(OTHERS + "flink", "sessionize", state, facets=facets, **both)
        for state in ("START", "RUNNING", "ABORT", "COMPLETE")
    )

    found, job = stored(start, cancelled), "(urn:li:dataFlow:(flink,sessionize,prod),sessionize)"
    of_job = found[f"urn:li:dataJob:{job}", "dataJobInputOutput"]
    run = found[f"urn:li:dataProcessInstance:{RUN}", "dataProcessInstanceProperties"]
    assert run["type"] == "STREAMING"
    assert "kafka,clicks" in of_job["inputDatasetEdges"][0]["destinationUrn"]
    assert "kafka,sessions" in of_job["outputDatasetEdges"][0]["destinationUrn"]
    assert summary(start, running)[1:] == ["STARTED"]
    assert summary(start, cancelled)[1:] == ["FAILURE"]
    assert "kafka:sessions <- kafka:clicks TRANSFORMED" in summary(start, running, end)
