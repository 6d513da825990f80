"""Declarations of tasks that are adopted: what they say, of which tasks, and what is refused."""

import pytest

from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.task_rules import (
    Subset,
    TaskNames,
    ValueRange,
    load_declarations,
)

DECLARATIONS = """\
# what sales reads and writes
- dag_id: sales
  task_id: [revenue, "merge_*"]
  reads: s3://lake/orders
  writes:
    - dataset: s3://lake/revenue
      partitions: {dt: "{{ ds }}", country: [PL, null], hour: 07, day: 2024-05-06}
      where: "amount > 0"
    - analytics.rates
  on_partition_mismatch: fail
- dag_id: sales
  on_partition_mismatch: ignore
- task_id: "etl.load_{a,b}"
  reads:
    dataset: /lake/t
    partitions:
      - dt: {start: "{{ ds }}", end: "{{ next_ds }}", step: PT1H}
      - dt: null
"""


@pytest.fixture(scope="module")
def declarations():
    return load_declarations(DECLARATIONS)


def test_a_rule_has_the_arguments_of_an_operator(declarations):
    assert [rule.arguments for rule in declarations.rules] == [
        {
            "reads": "s3://lake/orders",
            "writes": (
                Subset(
                    "s3://lake/revenue",
                    {
                        "dt": "{{ ds }}",
                        "country": ("PL", None),
                        "hour": "07",
                        "day": "2024-05-06",
                    },
                    "amount > 0",
                ),
                "analytics.rates",
            ),
            "on_partition_mismatch": "fail",
        },
        {"on_partition_mismatch": "ignore"},
        {
            "reads": Subset(
                "/lake/t",
                ({"dt": ValueRange("{{ ds }}", "{{ next_ds }}", "PT1H")}, {"dt": None}),
            )
        },
    ]


@pytest.mark.parametrize(
    ("dag_id", "task_id", "line"),
    [
        pytest.param("sales", "revenue", 2, id="by its name"),
        pytest.param("sales", "merge_eu", 2, id="by a glob"),
        pytest.param("sales", "other", 11, id="by its DAG alone"),
        pytest.param("any", "etl.load_b", 13, id="with the group that it is in"),
        pytest.param("any", "load_b", None, id="not without that"),
        pytest.param("Sales", "revenue", None, id="in its case"),
        pytest.param("sales_eu", "revenue", None, id="not by a part of its DAG's name"),
    ],
)
def test_the_first_rule_that_is_for_a_task_has_all_that_is_declared(
    declarations, dag_id, task_id, line
):
    found = declarations.for_task(TaskNames(dag_id, task_id))
    assert (found and found.line) == line


@pytest.mark.parametrize("text", ["", "# none yet\n", "[]"])
def test_no_declarations_are_no_error(text):
    assert load_declarations(text).rules == ()


def test_they_are_read_from_a_file_as_from_text(tmp_path, declarations):
    path = tmp_path / "declarations.yaml"
    path.write_text(DECLARATIONS)
    assert load_declarations(str(path)) == declarations


def test_json_is_read_as_it_stands_in_an_environment_variable():
    (rule,) = load_declarations('[{"dag_id": "d", "reads": ["/a", {"dataset": "/b"}]}]').rules
    assert rule.arguments == {"reads": ("/a", Subset("/b"))}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "- dag_id: d\n  reads: /a\n  write: /b\n",
            "line 3, rule 1, key write: the key 'write' is not known. Did you mean 'writes'?",
            id="unknown key",
        ),
        pytest.param(
            "- dag_id: d\n  reads:\n    - dataset: /a\n      partition: {dt: 1}\n",
            "line 4, rule 1, key reads[1].partition: the key 'partition' is not known. Did you "
            "mean 'partitions'?",
            id="unknown key of a dataset",
        ),
        pytest.param(
            "- dag_id: d\n  reads:\n    dataset: /a\n    partitions: {dt: {start: a, ende: b}}\n",
            "line 4, rule 1, key reads.partitions.ende: the key 'ende' is not known. Did you mean "
            "'end'?",
            id="unknown key of a range",
        ),
        pytest.param(
            "- dag_id: d\n  reads: {dataset: /a, partitions: {dt: {start: a}}}\n",
            "key reads.partitions: the key 'end' is missing",
            id="no end",
        ),
        pytest.param(
            "- dag_id: d\n  reads: [{partitions: {dt: 1}}]\n",
            "line 2, rule 1, key reads[1]: the key 'dataset' is missing",
            id="no dataset",
        ),
        pytest.param(
            "- dag_id: d\n  on_partition_mismatch: failed\n",
            "line 2, rule 1, key on_partition_mismatch: it must be warn, ignore or fail",
            id="policy",
        ),
        pytest.param(
            "- dag_id: d\n  on_partition_mismatch: ''\n",
            "line 2, rule 1, key on_partition_mismatch: it must be a text that is not empty",
            id="empty policy",
        ),
        pytest.param(
            "- dag_id: d\n  reads: [/a, ' ']\n",
            "line 2, rule 1, key reads[2]: it must be a text that is not empty",
            id="blank dataset",
        ),
        pytest.param(
            "- dag_id: ''\n  reads: /a\n",
            "line 1, rule 1, key dag_id: it must be a text that is not empty",
            id="empty glob",
        ),
        pytest.param(
            "- dag_id: d\n  reads: {dataset: /a, where: ''}\n",
            "key reads.where: it must be a text that is not empty",
            id="empty predicate",
        ),
        pytest.param(
            "- dag_id: d\n  reads: {dataset: /a, partitions: {'': 1}}\n",
            "key reads.partitions: it must be a text that is not empty",
            id="empty column",
        ),
        pytest.param(
            "- dag_id: d\n  reads: []\n",
            "key reads: it must be a dataset, or a list of one or more",
            id="no datasets",
        ),
        pytest.param(
            "- dag_id: d\n  writes:\n",
            "line 2, rule 1, key writes: there is no value",
            id="nothing",
        ),
        pytest.param(
            "- dag_id: d\n  writes: [null]\n", "key writes[1]: there is no value", id="null"
        ),
        pytest.param(
            "- dag_id: d\n  reads: [[/a]]\n",
            "key reads[1]: it must be a text, or a mapping with the keys dataset, partitions",
            id="list in a list",
        ),
        pytest.param(
            "- dag_id: d\n  reads: {dataset: /a, partitions: dt=1}\n",
            "key reads.partitions: it must be values by column, or a list of one or more such",
            id="partitions as a text",
        ),
        pytest.param(
            "- dag_id: d\n  reads: {dataset: /a, partitions: {}}\n",
            "key reads.partitions: it must be values by column",
            id="no column",
        ),
        pytest.param(
            "- dag_id: d\n  reads: {dataset: /a, partitions: {dt: []}}\n",
            "key reads.partitions: it must be values by column",
            id="no value of a column",
        ),
        pytest.param(
            "- dag_id: d\n  reads: {dataset: /a, partitions: {dt: {{ ds }}}}\n",
            "key reads.partitions.dt: a key is no text. Put texts with braces in quotes",
            id="template without quotes",
        ),
        pytest.param(
            "- dag_id: d\n- reads: /a\n",
            "line 1, rule 1: it declares nothing. Give it one of reads, writes, "
            "on_partition_mismatch",
            id="nothing declared",
        ),
        pytest.param(
            "- dag_id: d\n  reads: /a\n- reads: /a\n",
            "line 3, rule 2: it does not say which tasks it is for. Give it one of dag_id, task_id",
            id="no task",
        ),
        pytest.param(
            "- dag_id: d\n  operator: x\n  reads: /a\n", "'operator' is not known", id="operator"
        ),
        pytest.param(
            "dag_id: d\nreads: /a\n",
            'line 1: the rules are no list. Begin each of them with "- dag_id: "',
            id="no list",
        ),
        pytest.param("- dag_id: d\n\treads: /a\n", "line 2: this is no YAML", id="tab"),
        pytest.param("/no/such.yaml", "/no/such.yaml: the file cannot be read", id="no file"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_line_and_key(text, message):
    with pytest.raises(RulesError) as error:
        load_declarations(text)
    assert str(error.value).startswith("Declarations, ")
    assert message in str(error.value)
