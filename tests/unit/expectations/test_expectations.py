"""Declarations, templated paths, dates and partition keys become expectations."""

import pytest

from airflow_provider_sparklineage.expectations import (
    DatasetSubset,
    Kind,
    PartitionRange,
    Side,
)
from airflow_provider_sparklineage.expectations.declared import (
    from_arguments,
    from_declaration,
    from_partition_key,
)
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import DeclarationError
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import NULL, Partition
from airflow_provider_sparklineage.templates import Span, TracedText

T = DatasetName("s3://lake", "t")


def partition(**values):
    return Partition(tuple(values.items()))


def traced(template, *values, field="application_args[0]", variables=("ds",)):
    """Make a text whose ``{}`` were made by expressions of the date."""
    text, spans = "", []
    for literal, value in zip(template.split("{}"), [*values, None], strict=True):
        text += literal
        if value is not None:
            spans.append(Span(len(text), len(text) + len(value), "ds", variables))
            text += value
    return TracedText(field, template.replace("{}", "{{ ds }}"), text, tuple(spans), variables)


def of_declaration(subset, texts=()):
    return from_declaration(Side.READ, subset, texts, DEFAULT_LOCATOR, lambda _: None)


# --- ranges ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        ("2024-05-06", "2024-05-08", "P1D", ["2024-05-06", "2024-05-07"]),
        ("20240506", "20240508", "P1D", ["20240506", "20240507"]),
        ("2024-05-06", "2024-05-06", "P1D", []),
        ("2024-05-08", "2024-05-06", "P1D", []),
        ("2024-01", "2024-04", "P1M", ["2024-01", "2024-02", "2024-03"]),
        ("2024-01-31", "2024-04-01", "P1M", ["2024-01-31", "2024-02-29", "2024-03-31"]),
        ("2024-05-06", "2024-05-21", "P1W", ["2024-05-06", "2024-05-13", "2024-05-20"]),
        ("2024-05-06T22", "2024-05-07T01", "PT1H",
         ["2024-05-06T22", "2024-05-06T23", "2024-05-07T00"]),
        ("0001-01-01", "0001-01-03", "P1D", ["0001-01-01", "0001-01-02"]),
        ("2023", "2025", "P1Y", ["2023", "2024"]),
        ("1969-12-31", "1970-01-02", "P1D", ["1969-12-31", "1970-01-01"]),
    ],
)  # fmt: skip
def test_a_range_is_half_open_and_in_the_format_of_its_start(start, end, step, expected):
    assert PartitionRange("dt", start, end, step).values() == expected


def test_a_day_of_23_hours_has_24_hours_in_a_range_that_names_no_zone():
    # The clocks of Europe went forward at 2024-03-31T02; partitions without a zone do not know.
    values = PartitionRange("h", "2024-03-31T00", "2024-04-01T00", "PT1H").values()
    assert (len(values), values[2]) == (24, "2024-03-31T02")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("2024-05-06", "tomorrow"), "in one format", id="no date"),
        pytest.param(("2024-05-06", "20240508"), "in one format", id="two formats"),
        pytest.param(("2024-5-6", "2024-5-8"), "in one format", id="missing zeros"),
        pytest.param(("2024-05-06", "2024-05-08", "1 day"), "ISO 8601", id="no step"),
        pytest.param(("2024-05-06", "2024-05-08", "P0D"), "ISO 8601", id="no step at all"),
        pytest.param(("2024-05-06", "2024-05-08", "PT1H"), "finer", id="a finer step"),
        pytest.param(("0001-01-01", "9999-01-01"), "more than 100000", id="endless"),
    ],
)
def test_a_wrong_range_is_refused_with_what_to_do(arguments, message):
    with pytest.raises(DeclarationError, match=message):
        PartitionRange("dt", *arguments).values()


# --- declarations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        pytest.param(None, None, id="the full dataset"),
        pytest.param({"dt": "1"}, [{"dt": "1"}], id="one"),
        pytest.param({"dt": None}, [{"dt": NULL}], id="null is a value"),
        pytest.param({"dt": ""}, [{"dt": NULL}], id="the empty text is null"),
        pytest.param({"n": 7, "b": True}, [{"n": "7", "b": "true"}], id="numbers"),
        pytest.param({"dt": ["1", "2"]}, [{"dt": "1"}, {"dt": "2"}], id="a list of values"),
        pytest.param(
            {"dt": ["1", "2"], "r": ["a"]},
            [{"dt": "1", "r": "a"}, {"dt": "2", "r": "a"}],
            id="a product",
        ),
        pytest.param(
            [{"dt": "2"}, {"dt": "1"}, {"dt": "2"}], [{"dt": "1"}, {"dt": "2"}], id="some"
        ),
        pytest.param([], [], id="none at all"),
        pytest.param(
            PartitionRange("dt", "2024-05-06", "2024-05-08"),
            [{"dt": "2024-05-06"}, {"dt": "2024-05-07"}],
            id="a range",
        ),
        pytest.param(
            {"dt": PartitionRange("dt", "2024-05-06", "2024-05-07"), "r": "a=b/c"},
            [{"dt": "2024-05-06", "r": "a=b/c"}],
            id="a range in a product",
        ),
    ],
)
def test_declared_partitions(partitions, expected):
    expectation = of_declaration(DatasetSubset("s3://lake/t", partitions))
    wanted = None if expected is None else tuple(partition(**p) for p in expected)
    assert (expectation.kind, expectation.side, expectation.dataset, expectation.partitions) == (
        Kind.DECLARED,
        Side.READ,
        T,
        wanted,
    )


@pytest.mark.parametrize(
    "partitions",
    [
        "dt=1",
        7,
        [["dt", "1"]],
        pytest.param({"dt": object()}, id="an object"),
        {"dt": range(2)},
        {"a": ["1"] * 400, "b": ["1"] * 400},
        {"dt": "1", "DT": "2"},
    ],
    ids=repr,
)
def test_a_declaration_that_makes_no_sense_is_refused(partitions):
    with pytest.raises(DeclarationError, match="s3://lake/t"):
        of_declaration(DatasetSubset("s3://lake/t", partitions))


class FakeTask:
    def render_template(self, value, context):
        return value.replace("{{ ds }}", context["ds"]) if isinstance(value, str) else value


def test_each_run_gets_a_declaration_of_its_own():
    shared = DatasetSubset(
        "s3://lake/{{ ds }}",
        [{"dt": "{{ ds }}", "r": ["{{ ds }}", 1]}, PartitionRange("dt", "{{ ds }}", "{{ ds }}")],
        where="dt < '{{ ds }}'",
    )
    before = shared.serialize()
    first, second = (
        shared.resolve({"task": FakeTask(), "ds": day}) for day in ("2024-05-06", "2024-05-07")
    )
    assert first.dataset == "s3://lake/2024-05-06"
    assert first.partitions[0] == {"dt": "2024-05-06", "r": ["2024-05-06", 1]}
    assert first.partitions[1].start == "2024-05-06"
    assert first.where == "dt < '2024-05-06'"
    assert second.partitions[0]["dt"] == "2024-05-07"
    assert shared.serialize() == before == shared.serialize()
    assert first.template is shared


def test_provenance_names_the_dimension_of_each_declared_value():
    texts = [
        traced("{}", "2024-05-06", field="reads[0].partitions[dt]"),
        traced("{}", "PL", field="reads[0].partitions[1][region]"),
    ]
    expectation = of_declaration(DatasetSubset("s3://lake/t", {"dt": "2024-05-06"}), texts)
    assert [(s.dimension, s.value, s.variables) for s in expectation.sources] == [
        ("dt", "2024-05-06", ("ds",)),
        ("region", "PL", ("ds",)),
    ]


# --- arguments ------------------------------------------------------------------------------------


def found(*texts):
    return from_arguments(texts, DEFAULT_LOCATOR)


def test_a_partition_in_a_path_is_expected_of_either_side():
    [expectation] = found(traced("s3a://lake/t/dt={}", "2024-05-06"))
    assert (expectation.kind, expectation.side, expectation.dataset) == (Kind.PATH, None, T)
    assert expectation.partitions == (partition(dt="2024-05-06"),)
    [source] = expectation.sources
    assert (source.dimension, source.value, source.expressions, source.variables) == (
        "dt",
        "2024-05-06",
        ("ds",),
        ("ds",),
    )


def test_each_value_has_its_own_source():
    [expectation] = found(traced("s3://lake/t/dt={}/region=PL/h={}", "2024-05-06", "03"))
    assert [(s.dimension, s.value, bool(s.expressions)) for s in expectation.sources] == [
        ("dt", "2024-05-06", True),
        ("region", "PL", False),
        ("h", "03", True),
    ]


def test_a_date_outside_of_paths_is_inferred():
    [expectation] = found(traced("--date={}", "2024-05-06"))
    assert (expectation.kind, expectation.partitions) == (Kind.INFERRED, None)
    assert [(s.value, s.dimension) for s in expectation.sources] == [("2024-05-06", "")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TracedText("a", "2024-05-06", "2024-05-06", (), ()), id="a literal date"),
        pytest.param(traced("--name={}", "daily"), id="no date"),
        pytest.param(traced("{}", "2024-05-06", variables=("params",)), id="not an execution date"),
    ],
)
def test_what_is_no_date_of_the_run_is_not_inferred(text):
    assert found(text) == []


def test_a_path_without_partitions_expects_none():
    [expectation] = found(traced("s3://lake/{}/t", "2024-05-06"))
    assert expectation.dataset == DatasetName("s3://lake", "2024-05-06/t")
    assert expectation.partitions is None


def test_date_folders_without_a_rule_are_a_location():
    [expectation] = found(traced("s3://lake/t/{}", "2024/05/06"))
    assert (expectation.dataset, expectation.partitions, expectation.location) == (
        T,
        None,
        "t/2024/05/06",
    )


def test_an_empty_value_is_no_null():
    [expectation] = found(traced("s3://lake/t/dt={}", ""))
    assert (expectation.dataset, expectation.partitions) == (T, None)


def test_a_glob_stays_one():
    [expectation] = found(traced("s3://lake/t/dt={}-*", "2024-05"))
    assert expectation.is_glob
    assert expectation.partitions == (partition(dt="2024-05-*"),)


# --- partition keys -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "dimensions", "expected"),
    [
        pytest.param("2024-05-06", ["dt"], {"dt": "2024-05-06"}, id="one"),
        pytest.param("2024-05-06", "{dt}", {"dt": "2024-05-06"}, id="one in a pattern"),
        pytest.param(
            "2024-05-06|PL", "{dt}|{region}", {"dt": "2024-05-06", "region": "PL"}, id="two"
        ),
        pytest.param(
            "2024-05-06|PL", ["dt", "region"], {"dt": "2024-05-06", "region": "PL"}, id="list"
        ),
        pytest.param("day-2024", ["flight-date"], {"flight-date": "day-2024"}, id="odd name"),
        pytest.param(
            "v1/2024/PL", "v1/{dt}/{region}", {"dt": "2024", "region": "PL"}, id="literal"
        ),
    ],
)
def test_a_partition_key_is_declared_of_outputs_and_inferred_of_inputs(key, dimensions, expected):
    output, *inputs = from_partition_key(key, dimensions)
    assert (output.kind, output.side, output.dataset) == (Kind.DECLARED, Side.WRITE, None)
    assert output.partitions == (partition(**expected),)
    assert [(e.kind, e.side) for e in inputs] == [(Kind.INFERRED, Side.READ)] * len(expected)
    assert [s.variables for s in output.sources] == [("partition_key",)] * len(expected)


@pytest.mark.parametrize(
    ("key", "dimensions"),
    [("2024-05-06", "{dt}|{region}"), ("a", []), ("a", "dt"), ("a|b", "{dt}|{dt}"), ("", ["dt"])],
)
def test_a_key_that_does_not_fit_is_refused(key, dimensions):
    with pytest.raises(DeclarationError, match="partition_key_dimensions"):
        from_partition_key(key, dimensions)


def test_each_path_of_a_long_list_has_its_own_template():
    text = ",".join(f"/lake/t/dt={day:04}" for day in range(800))
    [*found] = from_arguments([TracedText("conf[paths]", text, text)], DEFAULT_LOCATOR)
    assert [s.template for e in found[:2] for s in e.sources] == [
        "/lake/t/dt=0000",
        "/lake/t/dt=0001",
    ]
    assert sum(len(s.template) for e in found for s in e.sources) < len(text)


def test_a_template_without_spans_is_the_source_of_a_path_that_is_all_of_it():
    one, more = (
        TracedText("f", template, value, (), ("ds",))
        for template, value in (
            ("{{ odd(ds) }}", "/lake/t/dt=1"),
            ("--token abc {{ odd(ds) }}", "--token abc /lake/t/dt=1"),
        )
    )
    found = from_arguments([one, more], DEFAULT_LOCATOR)
    assert [s.template for e in found for s in e.sources] == ["{{ odd(ds) }}", "/lake/t/dt=1"]


def test_an_argument_that_linux_would_not_take_is_passed_over():
    text = f"/lake/t/dt=1 {'x' * 200_000}"
    assert from_arguments([TracedText("f", text, text)], DEFAULT_LOCATOR) == []
