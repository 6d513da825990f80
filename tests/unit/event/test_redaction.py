"""What must not leave the worker: users of URIs, secrets, literals on request."""

from __future__ import annotations

import json

import msgspec
import pytest

from airflow_provider_sparklineage.event import document
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.event.steps.texts import (
    MAX_TEMPLATE,
    hidden,
    masked,
    without_credentials,
)
from airflow_provider_sparklineage.expectations import Kind, Source
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    INDIRECT,
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.lineage.partitions.selection import Selected
from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.representation import Representation
from airflow_provider_sparklineage.model.subset import Description, Locations, Partitions
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.unit.model.test_credentials import IN_URLS, IN_WORDS

SECRET = "hunter2secret"
ORDERS = DatasetName("s3a://AKIA:shh@lake", "/orders")


def mask(text):
    return text.replace(SECRET, "***")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WHERE ((dt IS NOT NULL) AND (dt = '2024-05-06'))",
         "WHERE ((dt IS NOT NULL) AND (dt = ?))"),
        ("(amount > 0.0D) AND (n = -5) AND (b = 12L)", "(amount > ?) AND (n = -?) AND (b = ?)"),
        ("name = 'it''s' AND d = DATE '2024-05-06'", "name = ? AND d = DATE ?"),
        ("name = 'żółw 🐢' AND dt = 'x'", "name = ? AND dt = ?"),
        ("żółw = 1 AND `c 1` = 2", "żółw = ? AND `c 1` = ?"),
        ("(pythonUDF0 + t1.c2) AS x3", "(pythonUDF0 + t1.c2) AS x3"),
        ("name = 'it\\'s'", "name = ?"),
        ("X'1F' = b", "? = b"),
        ("a = 'unclosed", "?"),
        ("a = 1 -- 'why'", "?"),
        ("", ""),
    ],
)  # fmt: skip
def test_literals_are_hidden_and_columns_are_not(text, expected):
    assert hidden(text) == expected


def lineage(**dataset):
    edges = {
        Column(ORDERS, "password"): (
            Transformation(DIRECT, "TRANSFORMATION", f"concat(token, '{SECRET}') AS token"),
            Transformation(INDIRECT, "FILTER", f"name = '{SECRET}'"),
        )
    }
    columns = ColumnLineage({"token_count": edges}, edges)
    return TaskLineage(Outcome.COMPLETE, (), (LineageDataset(ORDERS, columns=columns, **dataset),))


HIDDEN = Representation(redact_literals=True)


def event(task, **options):
    return event_of(task, ReadReport(), **options)


text = json.dumps


SOURCES = Expected(
    Kind.PATH,
    sources=(Source(Kind.PATH, "conf", f"--key={SECRET} --day={{{{ ds }}}}", SECRET, "dt"),),
)


@pytest.mark.parametrize(
    "dataset",
    [
        pytest.param({}, id="descriptions of columns"),
        pytest.param({"selected": Selected(Locations(frozenset({f"/{SECRET}"})))}, id="locations"),
        pytest.param({"selected": Selected(Description(f"x LIKE '{SECRET}'"))}, id="description"),
        pytest.param({"selected": Selected(predicates.condition(f"a = '{SECRET}'"))}, id="compare"),
        pytest.param(
            {
                "selected": Selected(
                    Partitions(p := frozenset({Partition.from_values([("name", SECRET)])})), p
                )
            },
            id="partitions of a column called name",
        ),
        pytest.param({"expected": SOURCES}, id="templates and values"),
    ],
)
def test_secrets_are_masked(dataset):
    task = lineage(**dataset)
    assert SECRET in text(event(task))
    assert SECRET not in text(event(task, mask=mask))


def test_a_secret_is_masked_before_a_text_is_truncated():
    long = "x" * 250 + SECRET  # the deprecated description has 255 characters
    edges = {Column(ORDERS, "a"): (Transformation(DIRECT, "IDENTITY", long),)}
    task = TaskLineage(
        Outcome.COMPLETE,
        (),
        (LineageDataset(ORDERS, columns=ColumnLineage({"a": edges})),),
    )
    assert SECRET[:3] not in text(event(task, mask=mask))


def test_names_are_identities_and_never_masked():
    def everything(_):
        return "***"

    [output] = event(lineage(), mask=everything)["outputs"]
    [source] = output["facets"]["columnLineage"]["fields"]["token_count"]["inputFields"]
    assert (output["name"], source["name"], source["field"]) == ("/orders", "/orders", "password")
    assert {t["type"] for t in source["transformations"]} == {"DIRECT", "INDIRECT"}
    assert {t["description"] for t in source["transformations"]} == {"***"}


def test_users_are_stripped_alike_from_datasets_and_columns():
    task = lineage(selected=Selected(Locations(frozenset({"s3a://AKIA:shh@lake/orders/x"}))))
    assert "shh" not in text(event(task))
    [output] = event(task)["outputs"]
    [source] = output["facets"]["columnLineage"]["dataset"]
    assert output["namespace"] == source["namespace"] == "s3a://lake"


def test_users_are_stripped_from_what_spark_reports():
    envelope = {"_producer": "p", "_schemaURL": "s"}
    uri = {"name": "x", "uri": "s3a://AKIA:shh@lake", "list": [1, None, "a"]}
    facet = msgspec.Raw(msgspec.json.encode(envelope | uri))
    [output] = event(lineage(facets={"dataSource": facet}))["outputs"]
    source = output["facets"]["dataSource"]
    assert source == envelope | {"name": "x", "uri": "s3a://lake", "list": [1, "a"]}


def test_literals_are_hidden_on_request():
    task = lineage(selected=Selected(predicates.condition("a = 'PL' AND b LIKE 'x%'")))
    shown, hidden = event(task), event(task, representation=HIDDEN)
    assert "PL" in text(shown)
    assert "x%" in text(shown)
    assert "PL" not in text(hidden)
    assert "x%" not in text(hidden)
    assert SECRET not in text(hidden)
    assert "concat(token, ?) AS token" in text(hidden)


def test_partitions_are_no_literals():
    p = frozenset({Partition.from_values([("dt", "2024-05-06")])})
    for selected in (Selected(Partitions(p), p), Selected(Description("dt=2024-05-06"), p)):
        task = lineage(selected=selected)
        [plain] = event(task)["outputs"]
        [hidden] = event(task, representation=HIDDEN)["outputs"]
        assert hidden["outputFacets"] == plain["outputFacets"]


def test_what_has_nothing_to_hide_is_given_back_as_it_is():
    given = event(lineage())
    assert without_credentials(given) is given
    assert masked(given, str) is given
    assert masked(given, str.strip) is given


@pytest.mark.parametrize("at_once", [2, 200_000])
@pytest.mark.parametrize(
    ("text", "expected"),
    [pytest.param(*row, id=name) for name, row in (IN_URLS | IN_WORDS).items()],
)
def test_a_credential_is_found_among_other_texts(monkeypatch, text, expected, at_once):
    monkeypatch.setattr(document, "_AT_ONCE", at_once)
    given = [{"description": around} for around in ("before", text, "and after", "before")]
    assert [entry["description"] for entry in without_credentials(given)] == [
        "before",
        expected,
        "and after",
        "before",
    ]


def test_a_text_that_is_one_entry_of_yaml_has_a_credential():
    given = {"description": "password: hunter2", "name": "x"}
    assert without_credentials(given)["description"] == "password: ***"


def test_of_a_long_template_only_what_stands_around_the_expression_is_reported():
    template = f"{'a' * 900} {{{{ ds }}}} {'b' * 900} --password=x"
    source = Source(Kind.PATH, "conf", template, "2024-05-06", "dt", ("ds",))
    task = lineage(expected=Expected(Kind.PATH, sources=(source,)))
    [entry] = event(task)["run"]["facets"]["sparkLineage_partitionCheck"]["writes"]
    template_shown = entry["from"][0]["template"]
    assert "{{ ds }}" in template_shown
    assert "password" not in template_shown
    assert len(template_shown) == MAX_TEMPLATE + 2
    assert (template_shown[0], template_shown[-1]) == ("…", "…")


PLANTED = "planted"
WITH_PASSWORD = (
    f"s3a://AKIA:{PLANTED}@lake",
    f"https://user:p@{PLANTED}@mirror",
    f"jdbc:x://h/db?user=u&password={PLANTED}",
    f"jdbc:sqlserver://h;password={PLANTED};a=1",
    f"https://h/x?token={PLANTED}",
)


def of_spark(facet):
    return msgspec.Raw(msgspec.json.encode({"_producer": "p", "_schemaURL": "s", **facet}))


def as_a_name(url):
    return {"name": DatasetName(url, f"orders {url}")}


def as_data_source(url):
    return {"facets": {"dataSource": of_spark({"name": url, "uri": url})}}


def as_catalog(url):
    facet = {"framework": "x", "type": "x", "name": url, "metadataUri": url, "warehouseUri": url}
    return {"facets": {"catalog": of_spark(facet)}}


def as_storage(url):
    return {"facets": {"storage": of_spark({"storageLayer": url, "fileFormat": "x"})}}


def as_symlinks(url):
    entry = {"namespace": url, "name": url, "type": "TABLE"}
    return {"facets": {"symlinks": of_spark({"identifiers": [entry]})}}


def as_locations(url):
    return {"selected": Selected(Locations(frozenset({f"{url}/x"})))}


def as_description(url):
    return {"selected": Selected(Description(f"x LIKE '{url}'"))}


def as_template(url):
    source = Source(Kind.PATH, "conf", f"--to={url} {{{{ ds }}}}", url, "dt", ("ds",))
    return {"expected": Expected(Kind.PATH, sources=(source,))}


def as_column_lineage(url):
    edges = {Column(DatasetName(url, "x"), "a"): (Transformation(DIRECT, "IDENTITY", url),)}
    return {"columns": ColumnLineage({"a": edges}, edges)}


@pytest.mark.parametrize("url", WITH_PASSWORD)
@pytest.mark.parametrize(
    "place",
    [as_a_name, as_data_source, as_catalog, as_storage, as_symlinks, as_locations, as_description,
     as_template, as_column_lineage],
)  # fmt: skip
def test_no_facet_of_a_dataset_has_a_password(place, url):
    dataset = LineageDataset(**{"name": ORDERS, **place(url)})
    message = Degradation(DegradationCode.ACTION_FAILED, f"It failed ({url}).", dataset.name)
    task = TaskLineage(Outcome.COMPLETE, (dataset,), (dataset,), degradations=(message,))
    written = text(event(task))
    assert PLANTED not in written
    assert "It failed (" in written


def test_half_a_credential_is_not_left_by_a_text_that_is_truncated():
    url = f"https://user:{PLANTED}@mirror "
    template = f"{url * 40}{{{{ ds }}}} {url * 40}"
    source = Source(Kind.PATH, "conf", template, "2024-05-06", "dt", ("ds",))
    assert PLANTED not in text(event(lineage(expected=Expected(Kind.PATH, sources=(source,)))))


def test_partitions_of_a_column_called_token_are_reported():
    p = frozenset({Partition.from_values([("token", "5")])})
    [output] = event(lineage(selected=Selected(Partitions(p), p)))["outputs"]
    assert output["facets"]["sparkLineage_partitions"]["summary"] == "token=5"
    [partition] = output["outputFacets"]["subset"]["outputCondition"]["partitions"]
    assert partition == {"identifier": "token=5", "dimensions": {"token": "5"}}
