"""The organisation's partitioning rules: what they find, and what is refused with its line."""

import json

import pytest
import yaml

from airflow_provider_sparklineage.model import rule_files
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import RulesError, SettingsError
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.rules import (
    Layout,
    PartitionRules,
    PartitionSpec,
    load_partition_rules,
)

RULES = """\
- dataset: s3a://bucket/*
  dimensions:
    - field: business_date
      format: "%Y%m%d"
- dataset: [/lake/raw, "/lake/*"]
  dimensions: [event_date, hour]
  layout: "{event_date:%Y-%m-%d}/{hour}"
- dataset: "hdfs://nn/lake/**"
  dimensions: [event_date, country]
  layout: "{event_date:%Y/%m/%d}/{country}"
  description: PARTITIONED BY (event_date, country)
- dataset: "/any/**"
  dimensions:
    - dt
    - fields: [a, b]
      transform: foo(a, b)
      name: ab
"""


@pytest.fixture(scope="module")
def rules():
    return load_partition_rules(RULES)


@pytest.mark.parametrize(
    ("name", "root", "values"),
    [
        pytest.param(
            ("s3://bucket", "dataset/business_date=20241101"),
            ("s3://bucket", "dataset"),
            [("business_date", "20241101")],
            id="the proposal's example",
        ),
        pytest.param(("s3://bucket", "dataset"), ("s3://bucket", "dataset"), [], id="the dataset"),
        pytest.param(
            ("s3://bucket", "dataset/business_date=20241101/part-0.parquet"),
            ("s3://bucket", "dataset"),
            [("business_date", "20241101")],
            id="a file",
        ),
        pytest.param(
            ("file", "/lake/x/2024-01-01/10"),
            ("file", "/lake/x"),
            [("event_date", "2024-01-01"), ("hour", "10")],
            id="what the listener does not trim",
        ),
        pytest.param(
            ("file", "/lake/x/2024-01-01"),
            ("file", "/lake/x"),
            [("event_date", "2024-01-01")],
            id="leading dimension",
        ),
        pytest.param(
            ("hdfs://nn", "/lake/a/b/2024/05/06/PL"),
            ("hdfs://nn", "/lake/a/b"),
            [("event_date", "2024-05-06"), ("country", "PL")],
            id="any depth",
        ),
        pytest.param(("hdfs://nn", "/lake/a/b"), ("hdfs://nn", "/lake/a/b"), [], id="deep dataset"),
        pytest.param(
            ("file", "/any/a/x=1/t/dt=1/ab=2"),
            ("file", "/any/a/x=1/t"),
            [("dt", "1"), ("ab", "2")],
            id="folders of other columns are above the dataset",
        ),
    ],
)
def test_a_name_is_split_into_dataset_and_partition(rules, name, root, values):
    found = rules.split(DatasetName(*name))
    assert (found.root, found.fit.partition) == (DatasetName(*root), Partition.from_values(values))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(("s3://other", "dataset/business_date=20241101"), id="other bucket"),
        pytest.param(("s3://bucket", "a/b/business_date=20241101"), id="* is one folder"),
        pytest.param(("s3://bucket", "dataset/_delta_log"), id="no partition"),
        pytest.param(("file", "/lake/x/2024-13-01/10"), id="no date"),
        pytest.param(("file", "/lake"), id="above"),
    ],
)
def test_a_name_that_no_rule_is_for_is_not_split(rules, name):
    assert rules.split(DatasetName(*name)) is None


def test_the_first_rule_that_matches_wins():
    rules = load_partition_rules(
        "[{dataset: /a/*, dimensions: [x]}, {dataset: '/**', dimensions: [y]}]"
    )
    assert rules.spec(DatasetName("file", "/a/t")) == PartitionSpec((Dimension.of_column("x"),))
    assert rules.spec(DatasetName("file", "/b/t")) == PartitionSpec((Dimension.of_column("y"),))
    found = rules.split(DatasetName("file", "/a/t/y=1"))
    assert found.root == DatasetName("file", "/a/t")
    assert found.fit.partition == Partition.from_values([("y", "1")])


def test_a_definition_has_dimensions_layout_and_description(rules):
    dimensions = (
        Dimension(("event_date",), format="%Y-%m-%d"),  # the format of the layout's values
        Dimension.of_column("country"),
    )
    assert rules.spec(DatasetName("hdfs://nn", "/lake/t")) == PartitionSpec(
        dimensions,
        Layout.parse("{event_date:%Y/%m/%d}/{country}", dimensions),
        "PARTITIONED BY (event_date, country)",
    )
    assert rules.spec(DatasetName("file", "/any/t")).dimensions == (
        Dimension.of_column("dt"),
        Dimension(("a", "b"), "foo(a, b)", "ab"),
    )
    assert rules.spec(DatasetName("file", "/else/t")) is None


@pytest.mark.parametrize(
    ("glob", "name", "matches"),
    [
        pytest.param("s3a://b/*", ("s3://b", "t"), True, id="s3a is s3"),
        pytest.param("file:///lake/*", ("file", "/lake/t"), True, id="file is a path"),
        pytest.param("/lake/t?", ("file", "/lake/t1"), True, id="one character"),
        pytest.param("/lake/t?", ("file", "/lake/t"), False, id="one character is missing"),
        pytest.param("/lake/[!a-c]*", ("file", "/lake/d"), True, id="not of a set"),
        pytest.param("/lake/[!a-c]*", ("file", "/lake/a"), False, id="of a set"),
        pytest.param("/lake/[a^]", ("file", "/lake/^"), True, id="sign of regexes in a set"),
        pytest.param("/lake/*", ("file", "/lake/a/b"), False, id="* stays in a folder"),
        pytest.param("/lake/**/t", ("file", "/lake/t"), True, id="** may be no folder"),
        pytest.param("/lake/**/t", ("file", "/lake/a/b/t"), True, id="** may be many folders"),
        pytest.param("**/t", ("s3://b", "x/t"), True, id="** is any namespace"),
        pytest.param("/lake/a.b", ("file", "/lake/axb"), False, id="a dot is a dot"),
        pytest.param("s3://b/Zürich", ("s3://b", "Zürich"), True, id="unicode"),
    ],
)
def test_globs_match_names_as_they_print(glob, name, matches):
    rules = PartitionRules.from_documents([{"dataset": glob, "dimensions": ["dt"]}])
    assert (rules.spec(DatasetName(*name)) is not None) is matches


def test_rules_come_back_equal_from_a_manifest(rules):
    again = PartitionRules.from_documents(json.loads(json.dumps(rules.documents())))
    assert again == rules
    assert hash(again) == hash(rules)
    assert PartitionRules.from_documents([]) == PartitionRules()


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request, monkeypatch):
    """libyaml, which is in most builds of PyYAML, and Python's own parser, which is in all."""
    monkeypatch.setattr(rule_files, "_LOADER", getattr(yaml, request.param))
    return request.param


def test_rules_are_the_same_by_both_parsers(loader, rules):
    assert load_partition_rules(f"{RULES}\n# by {loader}") == rules


def test_rules_are_read_from_a_file_as_from_text(tmp_path, rules):
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    assert load_partition_rules(path) == load_partition_rules(str(path)) == rules


def test_what_yaml_takes_for_something_else_is_a_text_as_it_is_written():
    (rule,) = load_partition_rules(
        "- dataset: /t/*\n  dimensions: [2024, no, 1.10, 2024-05-06]\n"
    ).rules
    assert rule.spec.labels == {"2024", "no", "1.10", "2024-05-06"}


@pytest.mark.parametrize("text", ["", "# none yet\n", "[]"])
def test_no_rules_are_no_error(text):
    assert load_partition_rules(text) == PartitionRules()


def rule(**changes):
    return [{"dataset": "/lake/*", "dimensions": ["dt"]} | changes]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "- dataset: /t/*\n  dimensions: [dt]\n  layuot: x",
            "line 3, rule 1, key layuot: the key 'layuot' is not known. Did you mean 'layout'?",
            id="unknown key",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions:\n    - field: a\n    - felds: [b]\n",
            "line 4, rule 1, key dimensions[2].felds: the key 'felds' is not known",
            id="unknown key of a dimension",
        ),
        pytest.param(
            "- dataset: /a\n  dimensions: [dt]\n- dimensions: [dt]\n",
            "line 3, rule 2: the key 'dataset' is missing",
            id="no dataset",
        ),
        pytest.param(
            "- dataset: /a/*\n  dimensions: [dt]\n  asset: orders\n",
            "line 3, rule 1, key asset: an asset has one dataset, and the rule is for several",
            id="asset of several",
        ),
        pytest.param(
            "- dataset: /a\n  dimensions: [dt]\n  partition_key: dt\n",
            "line 3, rule 1, key partition_key: it must name each dimension once, as in {dt}",
            id="no pattern of a key",
        ),
        pytest.param(
            "- dataset: /a\n  dimensions: [dt]\n  partition_key: '{day}'\n",
            "line 3, rule 1, key partition_key: 'day' is no dimension of the rule (dt)",
            id="key of another dimension",
        ),
        pytest.param(
            "- dataset: /t/*\n",
            "line 1, rule 1: the key 'dimensions' is missing",
            id="no dimensions",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions: []\n", "key dimensions: it must be a list", id="none"
        ),
        pytest.param(
            "- dataset: ''\n  dimensions: [dt]\n",
            "line 1, rule 1, key dataset: it must be a text that is not empty",
            id="empty glob",
        ),
        pytest.param(
            "- dataset: [/a, '']\n  dimensions: [dt]\n", "key dataset[2]: it must", id="second glob"
        ),
        pytest.param(
            "- dataset: []\n  dimensions: [dt]\n", "key dataset: it must be a text", id="no glob"
        ),
        pytest.param(
            "- dataset: lake/t\n  dimensions: [dt]\n",
            "no dataset's name is like 'lake/t'. Begin with a scheme",
            id="relative glob",
        ),
        pytest.param(
            "- dataset: '*'\n  dimensions: [dt]\n", "'*' is one folder. Write **", id="lone star"
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions: [dt]\n  layout: '{d:%Y}'\n",
            "line 3, rule 1, key layout: the field 'd' is no dimension of the rule (dt)",
            id="field that is no dimension",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions: [dt]\n  layout: '{dt:%F}'\n",
            "line 3, rule 1, key layout: %F in '%F' cannot be used",
            id="directive of a layout",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions: [dt]\n  layout: {dt}\n",
            "line 3, rule 1, key layout: it must be a text that is not empty. Put it in quotes",
            id="layout without quotes",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions:\n",
            "key dimensions: there is no value. Give one; a text with braces has to be in quotes",
            id="no value",
        ),
        pytest.param(
            "- dataset: /t/**\n  dimensions: [r]\n  layout: '{r}/x'\n",
            "with ** it is open where a dataset ends",
            id="no end of the dataset",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions:\n  - field: a\n    format: '%Q'\n",
            "line 4, rule 1, key dimensions[1].format: %Q in '%Q' is no directive",
            id="directive of a format",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions:\n  - field: a\n    format: yyyy-MM-dd\n",
            "'yyyy-MM-dd' has no directive; write e.g. %Y%m%d",
            id="Java's format",
        ),
        pytest.param(
            "- dataset: /t/*\n  dataset: /u\n",
            "line 2, rule 1, key dataset: the key 'dataset' is there twice",
            id="duplicate key",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions: [a, a]\n",
            "key dimensions[2]: there are two dimensions 'a'",
            id="duplicate dimension",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions:\n  - {field: a, fields: [b]}\n",
            "line 3, rule 1, key dimensions[1]: it must have a field, or a list of fields",
            id="field and fields",
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions: {field: a}\n", "it must be a list", id="no list inside"
        ),
        pytest.param(
            "- dataset: /t/*\n  dimensions: [[a]]\n",
            "line 2, rule 1, key dimensions[1]: it must be a text, or a mapping with the keys",
            id="list in a list",
        ),
        pytest.param("- /t/*\n", "line 1, rule 1: it must be a mapping", id="a rule that is text"),
        pytest.param(
            "dataset: /t/*\ndimensions: [a]\n", "line 1: the rules are no list", id="no list"
        ),
        pytest.param("- dataset: %x\n", "line 1: this is no YAML", id="percent sign"),
        pytest.param("- dataset: /t\n\tdimensions: []\n", "line 2: this is no YAML", id="tab"),
        pytest.param("- dataset: [/t\n", "this is no YAML", id="open bracket"),
        pytest.param("- a: \x00\n", "this is no YAML", id="control character"),
        pytest.param("[" * 600, "this is no YAML", id="nested without end"),
        pytest.param("- &a {dataset: /t}\n- *a\n", "rule 1: anchors (&) and", id="anchor"),
        pytest.param("- {}\n- *a\n", "line 2, rule 2: anchors (&) and aliases", id="alias"),
        pytest.param("[" * 5000 + "]" * 5000, "this is no YAML (maximum recursion", id="deep"),
        pytest.param("[]\n---\n[]\n", "line 2: a second document begins", id="documents"),
        pytest.param("- ? [a]\n  : b\n", "a key is no text", id="odd key"),
        pytest.param("- !!python/name:os.system x\n", "os.system) are not read", id="tag"),
        pytest.param("/no/such/rules.yaml", "/no/such/rules.yaml: the file cannot be", id="file"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_line_and_key(text, message, loader):
    with pytest.raises(RulesError) as error:
        load_partition_rules(text)
    assert message in str(error.value)


def test_an_error_names_the_file(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text("# ours\n- dataset: /t/*\n  dimension: [dt]\n")
    with pytest.raises(SettingsError) as error:
        load_partition_rules(path)
    assert str(error.value) == (
        f"Partitioning rules, {path}, line 3, rule 1, key dimension: the key 'dimension' is not "
        "known. Did you mean 'dimensions'?"
    )


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("/dev", id="a folder"),
        pytest.param("/dev/null", id="a device, which can be without end, as a pipe can"),
        pytest.param("~nobody-of-this-name/rules.yaml", id="of a user whom nobody knows"),
        pytest.param("x" * 5000, id="too long"),
    ],
)
def test_what_is_no_file_is_refused(name):
    with pytest.raises(RulesError, match="the file cannot be read"):
        load_partition_rules(name)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_bytes(b"- dataset: /t/\xff")
    with pytest.raises(RulesError, match="UTF-8"):
        load_partition_rules(path)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        pytest.param({}, "as given: the rules are no list", id="no list"),
        pytest.param(rule(dimensions=[{"field": 1}]), "rule 1, key dimensions[1].field", id="type"),
        pytest.param(rule(layout=None), "rule 1, key layout: there is no value", id="null"),
        pytest.param(rule(dimensions=None), "rule 1, key dimensions: there is no value", id="none"),
        pytest.param(rule(dataset=" "), "no dataset's name is like ''", id="blank glob"),
        pytest.param(
            rule(dimensions=[" "]),
            "key dimensions[1]: it must be a text that",
            id="blank dimension",
        ),
        pytest.param(
            rule(dimensions=[{"fields": ["a", " "]}]), "it must be a text that", id="blank field"
        ),
        pytest.param(rule(dataset=1), "key dataset: it must be a text, or a list", id="a number"),
        pytest.param(rule(dataset=["/a", 1]), "key dataset[2]: it must be a text", id="and one"),
        pytest.param(
            [{"dataset": "/a", "a ` - at b": 1}], "key 'a ` - at b' is not known", id="odd key"
        ),
    ],
)
def test_wrong_documents_of_a_manifest_are_refused_with_rule_and_key(documents, message):
    with pytest.raises(RulesError) as error:
        PartitionRules.from_documents(documents)
    assert message in str(error.value)


def test_half_of_a_surrogate_pair_in_a_rules_file_is_an_error_of_the_file(tmp_path, loader):
    file = tmp_path / "rules.yaml"
    file.write_text('- dataset: /lake/x\n  "\\ud800": x\n')
    with pytest.raises(RulesError, match=r"half of a surrogate pair|invalid Unicode") as error:
        load_partition_rules(file)
    assert str(file) in str(error.value)
