"""Settings: resolved in one place, and named when they are impossible."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from airflow_provider_sparklineage import rules
from airflow_provider_sparklineage.exceptions import SettingsError
from airflow_provider_sparklineage.intermediates import Intermediates
from airflow_provider_sparklineage.settings import (
    OPTIONS,
    ColumnLineageForm,
    KeepCaptures,
    Settings,
    resolve,
)


def test_nothing_set_gives_the_defaults():
    assert resolve(lambda _: None) == Settings()
    assert resolve(lambda _: "") == Settings()


def test_every_option_is_read():
    values = {
        "disabled": "True",
        "strict": "yes",
        "observe": "no",
        "listener_jar": "/a.jar",
        "capture_location": "/captures",
        "max_partitions": "7",
        "max_locations": "0",
        "max_event_bytes": "900000000",
        "redact_literals": "True",
        "partitioning": "- {dataset: /lake/*, dimensions: [{field: dt}]}",
        "emit_bare_partitions_facet": "1",
        "column_lineage": "Legacy",
        "intermediate_datasets": "drop: /tmp/*",
        "emit_lineage_facet": "on",
        "keep_captures": "ALL",
        "capture_retention": "1.5",
        "collect_timeout": "10",
    }
    assert values.keys() == {option.name for option in OPTIONS}
    assert resolve(values.get) == Settings(
        disabled=True,
        strict=True,
        observe=False,
        listener_jar=Path("/a.jar"),
        capture_location=Path("/captures"),
        max_partitions=7,
        max_locations=0,
        max_event_bytes=900_000_000,
        redact_literals=True,
        partitioning=rules.load(values["partitioning"]),
        emit_bare_partitions_facet=True,
        column_lineage=ColumnLineageForm.LEGACY,
        intermediate_datasets=Intermediates(("/tmp/*",)),
        emit_lineage_facet=True,
        keep_captures=KeepCaptures.ALL,
        capture_retention=timedelta(days=1.5),
        collect_timeout=timedelta(seconds=10),
    )


def test_the_operators_argument_wins():
    assert resolve({"strict": "True"}.get, strict=False).strict is False
    configured = {"column_lineage": "legacy"}.get
    assert resolve(configured, column_lineage="compact").column_lineage == "compact"


def test_a_wrong_argument_is_not_said_to_be_a_wrong_option():
    with pytest.raises(SettingsError, match=r"^column_lineage is 'short'; it must be one of"):
        resolve(lambda _: None, column_lineage="short")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("disabled", "maybe"),
        ("strict", "2"),
        ("keep_captures", "sometimes"),
        ("capture_retention", "-1"),
        ("capture_retention", "soon"),
        ("max_event_bytes", "-1"),
        ("collect_timeout", "nan"),
        ("collect_timeout", "inf"),
        ("capture_location", "relative/path"),
        ("column_lineage", "short"),
        ("intermediate_datasets", "drop:"),
        ("intermediate_datasets", "keep: /tmp"),
        ("intermediate_datasets", "some"),
    ],
)
def test_an_impossible_value_names_the_option(option, value):
    with pytest.raises(SettingsError, match=rf"\[sparklineage\] {option} is '{value}'"):
        resolve({option: value}.get)


def test_the_documentation_lists_every_option():
    text = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    for option in OPTIONS:
        assert f"| `{option.name}` | {option.type} |" in text
        assert option.description in text
