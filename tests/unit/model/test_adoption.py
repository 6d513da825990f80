"""Which tasks the rules adopt, and what is wrong with rules."""

import json

import pytest
from hypothesis import given, strategies

from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.task_rules import (
    ADOPT_ALL,
    ADOPT_NONE,
    TaskNames,
    Verdict,
    load_adoption,
)

STOCK = "airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator"
RULES = """\
- dag_id: ["sales_*", returns]
  task_id: [load, "*.merge_?"]
- operator: "shop.operators.*"
  tags: spark
- dag_id: sales_legacy
  exclude: true
- dag_id: "*"
  task_id: load
"""


def task(dag_id="sales_eu", task_id="load", operators=(STOCK, "SparkSubmitOperator"), tags=()):
    return TaskNames(dag_id, task_id, operators, tags)


SHOP = ("shop.operators.Submit", "Submit", STOCK, "SparkSubmitOperator")


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        pytest.param(task(), Verdict(True, 0), id="globs of DAGs and of tasks"),
        pytest.param(task("returns", "week.merge_1"), Verdict(True, 0), id="a task in a group"),
        pytest.param(task(task_id="merge_1"), Verdict(False), id="* is text, so is the dot"),
        pytest.param(task(task_id="week.merge_10"), Verdict(False), id="? is one character"),
        pytest.param(
            task("x", "y", SHOP, ("daily", "spark")), Verdict(True, 1), id="class and any tag"
        ),
        pytest.param(task("x", "y", SHOP, ("daily",)), Verdict(False), id="all keys have to match"),
        pytest.param(task("x", "y", tags=("spark",)), Verdict(False), id="another class"),
        pytest.param(task("sales_legacy"), Verdict(False, 2), id="excluding rules go first"),
        pytest.param(task("x"), Verdict(True, 3), id="the first that is for it"),
        pytest.param(task("Sales_eu", "merge"), Verdict(False), id="letters have their case"),
    ],
)
def test_a_rule_is_for_tasks_with_all_of_its_keys(names, verdict):
    assert load_adoption(RULES).verdict(names) == verdict


GLOBS = strategies.sampled_from(["a", "b", "a*", "?", "*"])
LISTS = strategies.lists(GLOBS, min_size=1, max_size=2)
DOCUMENT = strategies.fixed_dictionaries(
    {"task_id": LISTS},
    optional={
        **dict.fromkeys(["dag_id", "operator", "tags"], LISTS),
        "exclude": strategies.booleans(),
    },
) | strategies.fixed_dictionaries({"dag_id": LISTS}, optional={"exclude": strategies.booleans()})
TEXTS = strategies.sampled_from(["a", "b", "ab"])
NAMES = strategies.builds(
    TaskNames, TEXTS, TEXTS, strategies.tuples(TEXTS), strategies.tuples(TEXTS, TEXTS)
)


@given(strategies.lists(DOCUMENT, max_size=4), strategies.lists(NAMES, min_size=1, max_size=5))
def test_what_is_remembered_of_a_dag_decides_as_the_rules_do_one_by_one(documents, tasks):
    rules = load_adoption(json.dumps(documents))
    for one in tasks:
        matching = [n for n, rule in enumerate(rules.rules) if rule.matches(one)]
        excluding = [n for n in matching if rules.rules[n].excludes]
        decides = next(iter([*excluding, *matching]), None)
        adopts = rules.adopts_others if decides is None else not excluding
        assert rules.verdict(one) == Verdict(adopts, decides)


@pytest.mark.parametrize(
    ("glob", "matches"),
    [
        (STOCK, True),
        ("*.SparkSubmitOperator", True),
        ("SparkSubmitOperator", True),
        ("airflow.providers.apache.spark.*", True),
        ("Submit", True),
        ("Spark", False),
        ("shop.*", True),
        ("*.operators", False),
    ],
)
def test_an_operator_is_known_by_its_path_or_name_and_those_of_its_bases(glob, matches):
    rules = load_adoption(f'[{{operator: "{glob}"}}]')
    assert rules.verdict(task(operators=SHOP)).adopts is matches


def test_rules_that_all_exclude_leave_everything_else_in():
    rules = load_adoption("- {dag_id: legacy_*, exclude: true}\n- {tags: old, exclude: true}\n")
    assert rules.verdict(task()) == Verdict(True)
    assert rules.verdict(task("legacy_sales")) == Verdict(False, 0)
    assert rules.verdict(task(tags=("old",))) == Verdict(False, 1)


def test_a_rule_that_does_not_exclude_includes():
    rules = load_adoption("- {dag_id: sales, exclude: false}\n")
    assert rules.verdict(task("sales")) == Verdict(True, 0)
    assert rules.verdict(task("else")) == Verdict(False)


@pytest.mark.parametrize("given", ["off", " OFF ", "", "[]", "# none yet\n"])
def test_nothing_is_adopted(given):
    assert load_adoption(given).is_off
    assert load_adoption(given).verdict(task()) == Verdict(False)


def test_everything_is_adopted():
    assert load_adoption(" All") == ADOPT_ALL != ADOPT_NONE
    assert not ADOPT_ALL.is_off
    assert ADOPT_ALL.verdict(task()) == Verdict(True)


def test_a_file_is_read_again_when_it_has_changed(tmp_path):
    file = tmp_path / "adopt.yaml"
    file.write_text("- dag_id: a\n")
    assert load_adoption(str(file)).verdict(task("a")).adopts
    file.write_text("- dag_id: b\n")
    assert not load_adoption(str(file)).verdict(task("a")).adopts


def test_json_is_yaml():
    rules = load_adoption('[{"dag_id": ["sales_*"]}, {"tags": "x", "exclude": true}]')
    assert rules.verdict(task()).adopts
    assert not rules.verdict(task(tags=("x",))).adopts


def test_rules_know_their_lines():
    assert [rule.line for rule in load_adoption(f"# ours\n{RULES}").rules] == [2, 4, 6, 8]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("ture", "Adoption rules: 'ture' is no choice. Write off, all,", id="word"),
        pytest.param(
            "- dag_id: a\n- dagid: b\n",
            "line 2, rule 2, key dagid: the key 'dagid' is not known. Did you mean 'dag_id'?",
            id="unknown key",
        ),
        pytest.param(
            "- dag_id: a\n  exclude: maybe\n",
            "line 2, rule 1, key exclude: it must be true or false",
            id="half a choice",
        ),
        pytest.param(
            "- dag_id: a\n- exclude: true\n",
            "line 2, rule 2: it does not say which tasks it is for. Give it one of dag_id,",
            id="for nobody",
        ),
        pytest.param("- dag_id: []\n", "line 1, rule 1, key dag_id: it must be", id="no glob"),
        pytest.param("- dag_id: ''\n", "line 1, rule 1, key dag_id: it must be", id="empty glob"),
        pytest.param("- dag_id:\n", "line 1, rule 1, key dag_id: there is no value", id="null"),
        pytest.param("- sales\n", "line 1, rule 1: it must be a mapping", id="text"),
        pytest.param("{dag_id: sales}", 'no list. Begin each of them with "- dag_id: "', id="one"),
        pytest.param("- dag_id: [\n", "this is no YAML", id="no YAML"),
        pytest.param("/no/such.yaml", "Adoption rules, /no/such.yaml: the file cannot", id="file"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, message):
    with pytest.raises(RulesError) as error:
        load_adoption(text)
    assert message in str(error.value)


def test_a_file_that_is_no_file_of_rules_is_not_parsed(tmp_path):
    (tmp_path / "rules.yaml").write_bytes(b"- dag_id: x\n" * 100_000)
    with pytest.raises(RulesError, match="the file has more than 1048576 bytes"):
        load_adoption(tmp_path / "rules.yaml")
