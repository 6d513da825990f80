"""What is known of a task's datasets before its job runs, without Airflow."""

import pytest

from airflow_provider_sparklineage.expectations import DatasetSubset, Kind, Side
from airflow_provider_sparklineage.expectations.declared import TaskFields, declared
from airflow_provider_sparklineage.model.datasets import DatasetName, Naming
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.templates import TracedText

ORDERS, RATES = DatasetName("file", "/lake/orders"), DatasetName("file", "/lake/rates")
DAY = Partition.from_values([("dt", "2024-05-06")])


class Table:
    """An object that some plugin knows to be a dataset."""


def known(fields, locator=DEFAULT_LOCATOR):
    return declared(fields, locator, lambda entry: RATES if isinstance(entry, Table) else None)


def text(field, value):
    return TracedText(field, value, value)


def test_reads_and_inlets_are_inputs_once():
    found = known(
        TaskFields(
            inlets=[ORDERS, RATES],
            reads=["/lake/orders/dt=2024-05-06", DatasetSubset(Table()), "analytics.revenue"],
        )
    )
    assert (found.inputs, found.outputs, found.problems) == ((ORDERS, RATES), (), ())
    assert [(e.side, e.dataset, e.table, e.partitions) for e in found.expectations] == [
        (Side.READ, ORDERS, "", (DAY,)),
        (Side.READ, RATES, "", None),
        (Side.READ, None, "analytics.revenue", None),
    ]


@pytest.mark.parametrize("nothing", [None, (), []])
def test_no_declaration_declares_nothing(nothing):
    assert known(TaskFields(inlets=[ORDERS], reads=nothing, writes=nothing)).inputs == (ORDERS,)


def test_paths_of_declarations_are_no_arguments():
    fields = TaskFields(
        [text("reads[0].dataset", "/lake/orders"), text("application_args[0]", "/lake/rates/dt=1")],
        writes="/lake/orders",
    )
    found = known(fields)
    assert found.outputs == (ORDERS,)
    assert [(e.kind, e.dataset) for e in found.expectations] == [
        (Kind.DECLARED, ORDERS),
        (Kind.PATH, RATES),
    ]


def test_the_partition_key_of_a_run_is_expected():
    found = known(TaskFields(partition_key="2024-05-06", partition_key_dimensions=["dt"]))
    assert [e.partitions for e in found.expectations if e.kind is Kind.DECLARED] == [(DAY,)]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        pytest.param(TaskFields(reads=[5]), "reads[0]: No OpenLineage dataset is known for 5",
                     id="no dataset"),
        pytest.param(TaskFields(writes=["/lake/t", "what?"]), "writes[1]: 'what?' names no dataset",
                     id="no name"),
        pytest.param(TaskFields(reads="s3://key:secret@lake/t"), "must not have a user's name",
                     id="password"),
        pytest.param(TaskFields(reads=DatasetSubset("/lake/t", {"dt": "\ud800"})),
                     "it cannot be written as JSON", id="half of a character"),
        pytest.param(TaskFields(partition_key="x", partition_key_dimensions=["a", "b"]),
                     "does not fit", id="partition key"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_a_problem_and_no_error(fields, problem):
    [found] = known(fields).problems
    assert problem in found
    assert "secret" not in found


def test_what_could_not_be_rendered_names_nothing():
    assert known(TaskFields(reads=["/lake/dt={{ nope.x }}"])).inputs == ()


def test_names_that_only_the_listener_can_give_are_a_problem():
    naming = Naming.from_properties({"spark.openlineage.dataset.extraTrimmers": "org.acme.Weeks"})
    [problem] = known(TaskFields(), Locator(naming)).problems
    assert "org.acme.Weeks" in problem
