"""The hierarchy of seed 000: partitions, else locations, else conditions, else a description."""

from datetime import date, timedelta

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.lineage.partitions.selection import Evidence, selected
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import Limits
from airflow_provider_sparklineage.model.subset import (
    Binary,
    Compare,
    Comparison,
    Description,
    Locations,
    Partitions,
    disjunction,
)


def days(*numbers):
    first = date(2024, 5, 1)
    return frozenset(Partition.from_values([("dt", str(first + timedelta(n)))]) for n in numbers)


def located(location):
    partition = DEFAULT_LOCATOR.locate(location).partition
    return partition if partition and partition.values else None


def evidence(*, observed=None, full=False, locations=None, filters=None, expected=None, both=False):
    subset = None if observed is None else Subset((Dimension.of_column("dt"),), observed)
    return Evidence(
        observed=observed is not None or full,
        subset=subset,
        locations=None if locations is None else frozenset(locations),
        filters=filters,
        expected=expected,
        located=located,
        is_on_both_sides=both,
    )


WHERE = Expected(Kind.DECLARED, where=("country = 'PL'",))
PATH = Expected(Kind.PATH, days(4), (Dimension.of_column("dt"),))
DECLARED = Expected(Kind.DECLARED, days(5), (Dimension.of_column("dt"),))
GLOB = Expected(Kind.PATH, frozenset({Partition.from_values([("dt", "2024-*")])}), is_glob=True)
FILTER = Compare("country", Comparison.EQUAL, "PL")
LOCATIONS = ("/lake/t/2024/05/01", "/lake/t/2024/05/02")


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        pytest.param({"observed": days(1)}, Partitions(days(1)), id="observed"),
        pytest.param({"observed": days()}, Partitions(days()), id="none of them"),
        pytest.param({"observed": days(1), "expected": DECLARED}, Partitions(days(1)),
                     id="observed before declared"),
        pytest.param({"observed": days(1), "filters": FILTER}, Partitions(days(1)),
                     id="a partition with a further filter is just the partition"),
        pytest.param({"full": True, "expected": DECLARED}, None,
                     id="all was observed, whatever is declared"),
        pytest.param({"full": True, "filters": FILTER}, FILTER, id="all of it, by a filter"),
        pytest.param({"expected": DECLARED}, Partitions(days(5)), id="declared"),
        pytest.param({"expected": WHERE}, FILTER, id="a declared predicate"),
        pytest.param({"expected": replace(WHERE, where=("TRUE",))}, None, id="a predicate of all"),
        pytest.param({"expected": WHERE, "full": True}, None,
                     id="all was observed, whatever the predicate"),
        pytest.param({"expected": WHERE, "locations": LOCATIONS},
                     Locations(frozenset(LOCATIONS)), id="locations before a declared predicate"),
        pytest.param({"expected": PATH}, Partitions(days(4)), id="path"),
        pytest.param({"expected": PATH, "both": True}, None,
                     id="a path of a dataset that was read and written is of neither side"),
        pytest.param({"expected": DECLARED, "both": True}, Partitions(days(5)),
                     id="a declaration has a side"),
        pytest.param({"expected": GLOB}, Description("dt=2024-*"), id="a glob is a description"),
        pytest.param({"expected": PATH, "locations": ["/lake/t/dt=2024-05-05"]},
                     Partitions(days(4)), id="a path that Spark reports"),
        pytest.param({"expected": PATH, "locations": ["/lake/t/dt=2024-05-02"]},
                     Partitions(days(1)), id="a path of the other side"),
        pytest.param({"locations": ["/lake/t/dt=2024-05-02"]}, Partitions(days(1)),
                     id="locations that are partitions"),
        pytest.param({"locations": [*LOCATIONS, "/lake/t/dt=2024-05-02"]},
                     Locations(frozenset({*LOCATIONS, "/lake/t/dt=2024-05-02"})),
                     id="locations, some of which are no partitions"),
        pytest.param({"locations": LOCATIONS, "filters": FILTER}, Locations(frozenset(LOCATIONS)),
                     id="locations before a filter"),
        pytest.param({"filters": FILTER}, FILTER, id="a filter"),
        pytest.param({}, None, id="nothing"),
    ],
)  # fmt: skip
def test_the_hierarchy(known, expected):
    selection = selected(evidence(**known), Limits())
    assert (selection.condition, selection.skipped) == (expected, 0)


@pytest.mark.parametrize(
    ("known", "limits", "expected", "skipped"),
    [
        pytest.param({"observed": days(0, 1, 2, 3)}, Limits(partitions=3),
                     "2024-05-01 <= dt <= 2024-05-04", 4, id="a run of days"),
        pytest.param({"observed": days(0, 1, 3, 4)}, Limits(partitions=3),
                     "dt=2024-05-01 … dt=2024-05-05 (4 partitions)", 4, id="with a gap"),
        pytest.param({"observed": days(0, 1, 3, 4), "filters": FILTER}, Limits(partitions=3),
                     "country=PL", 4, id="with a gap, by a filter"),
        pytest.param({"observed": days(0)}, Limits(partitions=0), "dt=2024-05-01", 1,
                     id="partitions switched off"),
        pytest.param({"locations": LOCATIONS}, Limits(partitions=1),
                     "/lake/t/2024/05/01 … /lake/t/2024/05/02 (2 locations)", 2,
                     id="too many locations"),
        pytest.param({"locations": LOCATIONS, "filters": FILTER}, Limits(partitions=0),
                     "country=PL", 2, id="locations switched off"),
    ],
)  # fmt: skip
def test_a_form_that_would_name_too_many_is_skipped_and_reported(known, limits, expected, skipped):
    selection = selected(evidence(**known), limits)
    assert (selection.condition and text(selection.condition), selection.skipped) == (
        expected,
        skipped,
    )


def text(condition):
    from airflow_provider_sparklineage.model.subset import to_text

    return to_text(condition)


def test_maxima_do_not_truncate_what_is_compared():
    selection = selected(evidence(observed=days(*range(200))), Limits())
    assert selection.partitions == days(*range(200))
    assert isinstance(selection.condition, Binary)


def test_a_list_of_thousands_is_words():
    filters = disjunction(Compare("x", Comparison.EQUAL, str(n)) for n in range(3000))
    selection = selected(evidence(full=True, filters=filters), Limits())
    assert isinstance(selection.condition, Description)
    assert len(selection.condition.text) <= 300
