"""Expectations of the datasets that were read and written: which count, and which do not."""

import pytest

from airflow_provider_sparklineage.expectations import Expectation, Kind, Side, Source
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.expected import Expectations
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import DEFAULT_LIMITS

T = DatasetName("s3://lake", "t")
LINK = DatasetName("hive://metastore:9083", "analytics.revenue")


def day(value, label="dt"):
    return Partition.from_values([(label, value)])


def path(value=None, dataset=T, **more):
    partitions = None if value is None else (day(value),)
    return Expectation(Kind.PATH, dataset=dataset, partitions=partitions, **more)


def declared(value, side=Side.READ, dataset=T, **more):
    partitions = None if value is None else (day(value),)
    return Expectation(Kind.DECLARED, side, dataset, partitions=partitions, **more)


def inferred(value, side=None, dimension=""):
    source = Source(
        Kind.INFERRED, "application_args[1]", "{{ ds }}", value, dimension, ("ds",), ("ds",)
    )
    return Expectation(Kind.INFERRED, side, sources=(source,))


def observed(*values, label="dt", form=""):
    return Subset((Dimension((label,), format=form),), frozenset(day(v, label) for v in values))


def ask(*expectations, side=Side.READ, seen=None, links=()):
    return Expectations(expectations).of(T, links, side, seen)


def test_a_path_is_expected_of_both_sides():
    assert ask(path("1"), side=Side.READ).partitions == {day("1")}
    assert ask(path("1"), side=Side.WRITE).partitions == {day("1")}


def test_paths_of_one_dataset_are_united():
    assert ask(path("1"), path("2")).partitions == {day("1"), day("2")}


def test_one_path_to_the_full_dataset_expects_all_of_it():
    assert ask(path("1"), path()).partitions is None


def test_a_path_to_the_full_dataset_alone_expects_nothing():
    assert ask(path()) is None


def test_paths_do_not_count_next_to_a_declaration():
    expectation = ask(path("1"), declared("2"))
    assert (expectation.kind, expectation.partitions) == (Kind.DECLARED, {day("2")})


def test_a_declaration_of_the_other_side_does_not_count():
    assert ask(path("1"), declared("2", Side.WRITE)).partitions == {day("1")}


def test_a_declared_identity_leaves_it_to_paths():
    assert ask(path("1"), declared(None)).partitions == {day("1")}


@pytest.mark.parametrize(
    ("table", "bound"),
    [
        ("analytics.revenue", True),
        ("Analytics.`Revenue`", True),
        ("revenue", True),
        ("spark_catalog.analytics.revenue", True),
        ("other.revenue", False),
        ("analytics", False),
    ],
)
def test_a_table_is_bound_through_symlinks(table, bound):
    expectation = ask(declared("1", dataset=None, table=table), links=[LINK])
    assert (expectation is not None) == bound


@pytest.mark.parametrize(
    ("table", "bound"),
    [
        ("lake.analytics.revenue", True),
        ("analytics.revenue", True),
        ("other.analytics.revenue", False),
        ("spark_catalog.analytics.revenue", False),
        ("x.lake.analytics.revenue", True),
    ],
)
def test_where_the_catalog_was_seen_another_one_is_another_table(table, bound):
    links = [LINK, DatasetName("", "lake.analytics.revenue")]
    expectation = ask(declared("1", dataset=None, table=table), links=links)
    assert (expectation is not None) == bound


def test_a_folder_with_a_dot_in_its_name_is_no_table():
    table = Expectation(Kind.DECLARED, Side.READ, table="revenue", partitions=(day("1"),))
    folder = DatasetName("file", "/lake/old.revenue")
    assert Expectations([table]).of(folder, (), Side.READ, None) is None


def test_a_predicate_counts_if_all_that_is_declared_has_one():
    one, two = (declared(None, where=text) for text in ("a = 1", "b = 2"))
    assert ask(one, two).where == ("a = 1", "b = 2")
    assert ask(one, declared(None)).where == ()


def test_a_table_that_is_nowhere_is_named():
    expectations = Expectations([declared("1", dataset=None, table="a.b")])
    expectations.of(T, [LINK], Side.READ, None)
    assert expectations.unbound_tables() == ["a.b"]


def test_a_partition_key_is_expected_of_outputs_with_its_dimensions():
    key = Expectation(
        Kind.DECLARED, Side.WRITE, partitions=(day("1"),), dimensions=(Dimension.of_column("dt"),)
    )
    assert ask(key, side=Side.WRITE, seen=observed("2")).partitions == {day("1")}
    assert ask(key, side=Side.WRITE, seen=observed("2", label="month")) is None
    assert ask(key, side=Side.WRITE) is None
    assert ask(key, side=Side.READ, seen=observed("2")) is None
    own = declared("3", Side.WRITE)
    assert ask(key, own, side=Side.WRITE, seen=observed("2")).partitions == {day("3")}


@pytest.mark.parametrize(
    ("seen", "explained"),
    [
        pytest.param(observed("2024-05-06"), "dt", id="the same"),
        pytest.param(observed("20240506"), "dt", id="another format"),
        pytest.param(observed("06.05.2024", form="%d.%m.%Y"), "dt", id="the dimension's format"),
        pytest.param(observed("2024-05-05", "2024-05-06", "2024-05-07"), "dt", id="one of several"),
        pytest.param(observed("2024-05-05"), None, id="another day"),
        pytest.param(observed(), None, id="no partitions"),
        pytest.param(None, None, id="not observed"),
    ],
)
def test_a_date_explains_the_partition_that_was_seen_and_expects_nothing(seen, explained):
    expectation = ask(inferred("2024-05-06"), seen=seen)
    if explained is None:
        assert expectation is None
        return
    assert (expectation.kind, expectation.partitions) == (Kind.INFERRED, None)
    assert [(s.dimension, s.value) for s in expectation.sources] == [(explained, "2024-05-06")]


def test_a_date_of_several_columns_is_explained_by_all_then_by_the_first_by_name():
    """Whatever the order in which Python keeps the partitions of a set."""
    labels = ("year", "month", "day")
    together = Partition.from_values(zip(labels, ("2024", "05", "06"), strict=True))
    some = {day("2024-05-06", label) for label in "bcdefgha"}
    for partitions, explained in ((some, "a"), (some | {together}, "year/month/day")):
        dimensions = tuple(Dimension.of_column(label) for p in partitions for label, _ in p.values)
        found = ask(inferred("2024-05-06"), seen=Subset(dimensions, frozenset(partitions)))
        assert [source.dimension for source in found.sources] == [explained]


def test_a_date_that_a_path_explains_is_not_reported_twice():
    source = Source(Kind.PATH, "application_args[0]", "t/dt={{ ds }}", "20240506", "dt")
    expectation = ask(
        path("20240506", sources=(source,)), inferred("2024-05-06"), seen=observed("20240506")
    )
    assert expectation.sources == (source,)


def test_a_date_is_added_to_what_a_path_has():
    expectation = ask(path("2024-05-06"), inferred("2024-05-05"), seen=observed("2024-05-05"))
    assert (expectation.kind, expectation.partitions) == (Kind.PATH, {day("2024-05-06")})
    assert [s.kind for s in expectation.sources] == [Kind.INFERRED]


@pytest.mark.parametrize(
    ("how", "statuses"),
    [
        pytest.param(("observed", "observed"), ("matched", "matched"), id="observed"),
        pytest.param(("located", "located"), ("matched", "matched"), id="located"),
        pytest.param(("observed", "static"), ("unobserved", "matched"), id="observed and static"),
        pytest.param(("observed", "unknown"), ("unobserved", "unobserved"), id="one unknown"),
    ],
)
def test_yesterday_is_read_and_today_is_written_of_one_dataset(how, statuses):
    report = SubsetReport([path("05"), path("06")], DEFAULT_LOCATOR, DEFAULT_LIMITS)
    sides = {
        side: {
            "observed": LineageDataset(T, observed=True, subset=observed(value)),
            "located": LineageDataset(T, locations=frozenset({f"t/dt={value}"})),
        }.get(how, LineageDataset(T))
        for (side, value), how in zip(((Side.READ, "05"), (Side.WRITE, "06")), how, strict=True)
    }
    static = frozenset({day("06")}) if "static" in how else None
    found = (
        report.of(sides[Side.READ], Side.READ, None, static, other=sides[Side.WRITE]),
        report.of(sides[Side.WRITE], Side.WRITE, None, static, other=sides[Side.READ]),
    )
    assert tuple(dataset.check.status for dataset in found) == statuses
