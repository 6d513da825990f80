"""Settings: resolved in one place, and named when they are impossible."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_provider_sparklineage.model import rules
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.representation import ColumnLineageForm, Intermediates
from airflow_provider_sparklineage.settings.option_kinds import (
    BackendName,
    HistoryMerger,
    KeepCaptures,
    OtherProducers,
    default_capture_location,
)
from airflow_provider_sparklineage.settings.options import OPTIONS
from airflow_provider_sparklineage.settings.resolution import (
    Origin,
    Settings,
    Source,
    option_values,
    resolve,
)
from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation
from airflow_provider_sparklineage.spark.submit.injection import ExistingTransport
from tests import write_options


def configuration(**values):
    return Source(Origin.CONFIGURATION, values)


def connection(**values):
    return Source(Origin.CONNECTION, values, conn_id="lineage")


def arguments(**values):
    return Source(Origin.ARGUMENT, values)


def test_nothing_set_gives_the_defaults():
    nothing = {option.name: None for option in OPTIONS}
    empty = {option.name: "" for option in OPTIONS}
    assert (
        resolve(configuration(**nothing), connection(**nothing), arguments(**nothing)) == resolve()
    )
    assert resolve(configuration(**empty), connection(**empty)) == resolve()


def of_executor(url="file:///home/airflow/sparklineage/archive"):
    return Source(Origin.EXECUTOR, {"archive_url": url})


def test_an_archive_of_the_executors_is_used_where_none_is_configured():
    settings = resolve(configuration(archive_url=""), of_executor())
    assert settings.archive_url == "file:///home/airflow/sparklineage/archive"
    assert settings.archive_is_default


@pytest.mark.parametrize(
    ("configured", "url"),
    [
        ("none", ""),
        ("None", ""),
        ("s3://bucket/x", "s3://bucket/x"),
        ("file:///home/airflow/sparklineage/archive", "file:///home/airflow/sparklineage/archive"),
    ],
)
def test_what_is_configured_is_the_users_own_archive(configured, url):
    settings = resolve(configuration(archive_url=configured), of_executor())
    assert (settings.archive_url, settings.archive_is_default) == (url, False)


def test_without_an_executor_that_is_local_there_is_no_archive():
    settings = resolve(Source(Origin.EXECUTOR))
    assert (settings.archive_url, settings.archive_is_default) == ("", False)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_the_example_of_an_option_is_possible(option, tmp_path):
    if option.name != "partitioning":  # which is a file
        assert resolve(configuration(**{option.name: option.example})) != resolve()


def test_every_option_is_read():
    values = {
        "disabled": "True",
        "adopt": "all",
        "declarations": " /etc/declarations.yaml",
        "strict": "yes",
        "observe": "no",
        "backend": "Generic",
        "listener_jar": "/a.jar",
        "fetch_listener": "True",
        "spark_version": "3.5.6-scala2.13",
        "listener_extensions": "/a.jar, s3a://b.jar",
        "existing_transport": "Collect_Only",
        "capture_location": "s3://lake@bucket/lineage/",
        "capture_location_in_spark": "s3a://bucket/lineage",
        "capture_endpoint": "worker:20000-20100",
        "capture_location_shared": "True",
        "web_url": "http://marquez:3000/",
        "max_partitions": "7",
        "max_event_bytes": "900000000",
        "max_columns": "50",
        "describe_datasets": "False",
        "redact_literals": "True",
        "partitioning": "- {dataset: /lake/*, dimensions: [{field: dt}]}",
        "emit_bare_partitions_facet": "1",
        "column_lineage": "Legacy",
        "intermediate_datasets": "drop: /tmp/*",
        "emit_lineage_facet": "on",
        "relay_spark_events": "1",
        "archive_url": "s3://lineage@bucket/tasks/",
        "history_url": "file:///mnt/history/",
        "history_merged_by": "Tasks",
        "history_other_producers": "Everybody",
        "keep_captures": "ALL",
        "capture_retention": "1.5",
        "collect_timeout": "10",
    }
    assert values.keys() == {option.name for option in OPTIONS}
    assert resolve(configuration(**values)) == Settings(
        disabled=True,
        adopt="all",
        declarations="/etc/declarations.yaml",
        strict=True,
        observe=False,
        backend=BackendName.GENERIC,
        listener_jar=Path("/a.jar"),
        fetch_listener=True,
        spark_version=("3.5.6", "2.13"),
        listener_extensions=("/a.jar", "s3a://b.jar"),
        existing_transport=ExistingTransport.COLLECT_ONLY,
        capture_location=CaptureLocation(default_capture_location(), "s3://lake@bucket/lineage"),
        capture_location_in_spark="s3a://bucket/lineage",
        capture_endpoint="worker:20000-20100",
        capture_location_shared=True,
        web_url="http://marquez:3000",
        max_partitions=7,
        max_event_bytes=900_000_000,
        max_columns=50,
        describe_datasets=False,
        redact_literals=True,
        partitioning=rules.load_partition_rules(values["partitioning"]),
        emit_bare_partitions_facet=True,
        column_lineage=ColumnLineageForm.LEGACY,
        intermediate_datasets=Intermediates(("/tmp/*",)),
        emit_lineage_facet=True,
        relay_spark_events=True,
        archive_url="s3://lineage@bucket/tasks",
        history_url="file:///mnt/history",
        history_merged_by=HistoryMerger.TASKS,
        history_other_producers=OtherProducers.EVERYBODY,
        keep_captures=KeepCaptures.ALL,
        capture_retention=timedelta(days=1.5),
        collect_timeout=timedelta(seconds=10),
    )


def test_argument_wins_over_connection_over_configuration():
    configured = configuration(strict="True", max_partitions="1", max_columns="2", observe="False")
    more = connection(strict=False, max_partitions=7, observe="")
    settings = resolve(configured, arguments(strict=True, observe=None), more)
    assert (settings.strict, settings.max_partitions, settings.max_columns) == (True, 7, 2)
    assert settings.observe is False


def test_extensions_are_a_list_or_a_text():
    listed = resolve(arguments(listener_extensions=["/a.jar", "/b.jar"]))
    assert listed.listener_extensions == ("/a.jar", "/b.jar")
    assert resolve(connection(listener_extensions="/a.jar,")).listener_extensions == ("/a.jar",)


def test_it_is_known_where_a_value_comes_from():
    sources = (configuration(max_partitions="1"), connection(observe=False), arguments(strict=True))
    origins = {name: str(value.source) for name, value in option_values(*sources).items()}
    assert origins["strict"] == "argument"
    assert origins["observe"] == "connection lineage"
    assert origins["max_partitions"] == "[sparklineage]"
    assert origins["max_columns"] == "default"


def test_values_of_json_are_read_as_those_of_text():
    as_json = connection(
        observe=False,
        max_partitions=7,
        capture_retention=1.5,
        partitioning=[{"dataset": "/lake/*", "dimensions": ["dt"]}],
    )
    as_text = configuration(
        observe="False",
        max_partitions="7",
        capture_retention="1.5",
        partitioning="- {dataset: /lake/*, dimensions: [dt]}",
    )
    assert resolve(as_json) == resolve(as_text)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (arguments, "observe"),
        (connection, "observe in the extra of connection lineage"),
        (configuration, r"\[sparklineage\] observe"),
    ],
)
def test_a_wrong_value_is_reported_with_its_source(source, place):
    with pytest.raises(SettingsError, match=rf"^{place} is 'short'\. It must be True or False"):
        resolve(source(observe="short"))


@pytest.mark.parametrize("option", ["capture_location", "capture_location_in_spark"])
def test_a_password_in_a_location_is_refused_with_the_reason(option):
    with pytest.raises(SettingsError, match=r"It must be .* URL without a password") as refused:
        resolve(configuration(**{option: "s3a://shop:hunter2hunter2@lake/captures"}))
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "jar"),
    [
        ("/opt/a.jar", Path("/opt/a.jar")),
        ("file:///opt/a%20b.jar", Path("/opt/a b.jar")),
        ("local:///opt/a.jar", "local:///opt/a.jar"),
        ("s3a://jars/a.jar", "s3a://jars/a.jar"),
    ],
)
def test_a_listener_is_a_file_of_the_worker_or_at_a_url_of_sparks(given, jar):
    assert resolve(configuration(listener_jar=given)).listener_jar == jar


@pytest.mark.parametrize("url", ["s3a://key:s3cr3t@jars/a.jar", "hdfs://nn/a,b.jar"])
def test_a_listener_at_a_url_that_could_be_no_argument_is_refused(url):
    with pytest.raises(SettingsError, match="or a URL without a user") as caught:
        resolve(configuration(listener_jar=url))
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_partitions", True),
        ("max_partitions", 1.5),
        ("max_partitions", [1]),
        ("max_partitions", 10**13),
        ("observe", {"a": 1}),
        ("observe", 2),
        ("capture_retention", float("inf")),
        ("partitioning", {"dataset": "/x"}),
        ("listener_jar", ["/a.jar"]),
    ],
)
def test_an_impossible_value_of_json_is_named_too(option, value):
    with pytest.raises(SettingsError, match=f"{option} in the extra of connection lineage is "):
        resolve(connection(**{option: value}))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("disabled", "maybe"),
        ("strict", "2"),
        ("keep_captures", "sometimes"),
        ("capture_retention", "-1"),
        ("capture_retention", "soon"),
        ("max_event_bytes", "-1"),
        ("max_partitions", "1.5"),
        ("collect_timeout", "nan"),
        ("collect_timeout", "inf"),
        ("capture_location", "relative/path"),
        ("web_url", "marquez:3000"),
        ("web_url", "http://["),
        ("archive_url", "s3://["),
        ("history_url", "s3://["),
        ("column_lineage", "short"),
        ("intermediate_datasets", "drop:"),
        ("intermediate_datasets", "keep: /tmp"),
        ("intermediate_datasets", "some"),
    ],
)
def test_an_impossible_value_names_the_option(option, value):
    named = re.escape(f"[sparklineage] {option} is '{value}'")
    with pytest.raises(SettingsError, match=named):
        resolve(configuration(**{option: value}))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("capture_location", "s3://key:hunter2@bucket/lineage"),
        ("capture_location_in_spark", "s3a://key:hunter2@bucket/lineage"),
    ],
)
def test_a_password_in_a_location_is_refused_and_not_shown(option, value):
    with pytest.raises(SettingsError, match=rf"\[sparklineage\] {option} is ") as caught:
        resolve(configuration(**{option: value}))
    assert "hunter2" not in str(caught.value)


def test_the_documentation_lists_every_option():
    text = write_options.DOCUMENT.read_text()
    assert write_options.documented(text) == text, "Run: python -m tests.write_options"
