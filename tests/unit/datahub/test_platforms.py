"""What DataHub's connectors call datasets that OpenLineage names by namespace and name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datahub.configuration import Conversion, Namespace
from airflow_provider_sparklineage.datahub.naming import identity, placed
from airflow_provider_sparklineage.model.datasets import DatasetName

# OpenLineage's spec/Naming.md, the namespaces of its listener and those of Airflow's providers.
PLACES = [
    ("s3://lake", "sales/orders", "s3", "lake/sales/orders"),
    ("s3a://lake", "/sales/orders/", "s3", "lake/sales/orders"),
    ("s3n://lake", "/", "s3", "lake"),
    ("gs://lake", "orders", "gcs", "lake/orders"),
    ("gcs://lake", "orders", "gcs", "lake/orders"),
    ("abfss://raw@acme.dfs.core.windows.net", "orders", "abs", "raw/orders"),
    ("abfs://raw@acme.dfs.core.windows.net", "/orders", "abs", "raw/orders"),
    ("wasbs://raw@acme.blob.core.windows.net", "orders", "abs", "raw/orders"),
    ("hdfs://nn:8020", "/lake/orders", "hdfs", "nn:8020/lake/orders"),
    ("hdfs", "/lake/orders", "hdfs", "lake/orders"),
    ("dbfs", "/mnt/orders", "dbfs", "mnt/orders"),
    ("dbfs://adb-1", "/mnt/orders", "dbfs", "adb-1/mnt/orders"),
    ("file", "/lake/orders", "file", "lake/orders"),
    ("file", "/", "file", "/"),
    ("file://host:22", "/lake/orders", "file", "host:22/lake/orders"),
    ("oss://lake", "orders", "oss", "lake/orders"),
    ("kafka://broker:9092", "orders", "kafka", "orders"),
    ("postgres://db:5432", "shop.public.orders", "postgres", "shop.public.orders"),
    ("postgresql://db:5432", "shop.public.orders", "postgres", "shop.public.orders"),
    ("jdbc:postgresql://db:5432", "shop.public.orders", "postgres", "shop.public.orders"),
    ("mysql://db:3306", "shop.orders", "mysql", "shop.orders"),
    ("mysql://db:3306?useSSL=false", "shop.orders", "mysql", "shop.orders"),
    ("sqlserver://db:1433", "shop.dbo.orders", "mssql", "shop.dbo.orders"),
    ("mssql://db:1433", "shop.dbo.orders", "mssql", "shop.dbo.orders"),
    ("oracle://db:1521", "ORCL.SHOP.ORDERS", "oracle", "shop.orders"),
    ("oracle://db:1521", "SHOP.Orders", "oracle", "shop.Orders"),
    ("snowflake://acme-eu", "SHOP.PUBLIC.ORDERS", "snowflake", "shop.public.orders"),
    ("redshift://c.eu-west-1:5439", "shop.public.orders", "redshift", "shop.public.orders"),
    ("trino://trino:8080", "hive.shop.orders", "trino", "hive.shop.orders"),
    ("awsathena://athena.eu.amazonaws.com", "AwsDataCatalog.shop.o", "athena", "shop.o"),
    ("awsathena://athena.eu.amazonaws.com", "s3tables.shop.o", "athena", "s3tables.shop.o"),
    ("awsathena://athena.eu.amazonaws.com", "AwsDataCatalog.o", "athena", "AwsDataCatalog.o"),
    ("bigquery", "acme.shop.orders", "bigquery", "acme.shop.orders"),
    ("bigquery", "acme.shop.orders$20260101", "bigquery", "acme.shop.orders"),
    ("bigquery", "acme.shop.events_20260101", "bigquery", "acme.shop.events"),
    ("bigquery", "acme.shop.v1_20260101", "bigquery", "acme.shop.v1"),
    ("bigquery", "acme.shop.20260101", "bigquery", "acme.shop.20260101"),
    ("bigquery", "acme.shop._20260101", "bigquery", "acme.shop._20260101"),
    ("bigquery", "acme.shop.events_20261301", "bigquery", "acme.shop.events_20261301"),
    ("arn:aws:glue:eu-west-1:123", "table/shop/orders", "glue", "shop.orders"),
    ("arn:aws-cn:glue:cn-north-1:123", "table/shop/orders", "glue", "shop.orders"),
    ("aws:glue:eu-west-1:123", "shop.orders", "glue", "shop.orders"),
    ("hive://metastore:9083", "shop.orders", "hive", "shop.orders"),
    ("azurekusto://acme.kusto.windows.net", "shop/orders", "kusto", "shop.orders"),
    ("azurecosmos://h/dbs/shop", "colls/o", "azurecosmos", "h/dbs/shop/colls/o"),
    ("cassandra://c:9042", "shop.orders", "cassandra", "shop.orders"),
    ("teradata://t:1025", "shop.orders", "teradata", "shop.orders"),
    ("spanner://acme:main", "shop.s.orders", "spanner", "acme:main/shop.s.orders"),
    ("h2:file:/lake/people;MODE=x", "PUBLIC.PEOPLE", "h2", "lake/people/PUBLIC.PEOPLE"),
    ("file:/scratch/metastore_db", "APP.CLIENTS", "file", "scratch/metastore_db/APP.CLIENTS"),
    ("food_delivery", "public.orders", "food_delivery", "public.orders"),
    ("", "orders", "unknown", "orders"),
    ("", "", "unknown", "/"),
]


@pytest.mark.parametrize(("namespace", "name", "platform", "place"), PLACES)
def test_a_dataset_has_the_name_that_a_connector_gives_it(namespace, name, platform, place):
    assert placed(DatasetName(namespace, name)) == (platform, place)


def test_nothing_secret_of_a_url_is_in_a_name():
    place = placed(DatasetName("foo://me:secret@host:1/x?password=pw", "t"))

    assert place == ("foo", "host:1/x/t")


def test_the_rules_of_a_platform_hold_however_it_is_known():
    name = DatasetName("ourwarehouse://host:1", "SHOP.PUBLIC.ORDERS")

    assert placed(name) == ("ourwarehouse", "host:1/SHOP.PUBLIC.ORDERS")
    assert placed(name, "snowflake") == ("snowflake", "shop.public.orders")


@given(st.text(), st.text())
def test_no_name_is_refused(namespace, name):
    assert all(placed(DatasetName(namespace, name)))


def test_a_local_path_keeps_its_first_slash_where_the_configuration_has_it():
    keeping = Conversion(namespaces=(Namespace("file*", name_prefix="/"),))
    orders = DatasetName("file", "/lake/orders")
    assert identity(orders, Conversion()).name == "lake/orders"
    assert identity(orders, keeping).urn == (
        "urn:li:dataset:(urn:li:dataPlatform:file,/lake/orders,PROD)"
    )
