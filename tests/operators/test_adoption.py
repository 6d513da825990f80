"""``airflow sparklineage adoption``: which tasks are adopted, which are not, and why."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from airflow import settings as airflow_settings
from airflow.dag_processing.bundles.base import BaseDagBundle
from airflow.dag_processing.bundles.local import LocalDagBundle

import airflow_provider_sparklineage
from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli import adoption_survey
from airflow_provider_sparklineage.cli.doctor import airflow as doctor
from airflow_provider_sparklineage.model.budget import Budget
from airflow_provider_sparklineage.operators.adoption import policy
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.checks import Status
from airflow_provider_sparklineage.settings.resolution import Origin, Source

pytestmark = pytest.mark.airflow

SCHEMA = json.loads(
    (
        Path(airflow_provider_sparklineage.__file__).parent / "event" / "schemas" / "adoption.json"
    ).read_text()
)
SALES = """\
from airflow.sdk import DAG, TaskGroup
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

print("what a file prints")

class Own(SparkSubmitOperator):
    def execute(self, context):
        return super().execute(context)

class Alone(SparkSubmitOperator):
    def execute(self, context):
        pass

with DAG("sales", schedule=None, tags=["spark"]):
    SparkSubmitOperator(task_id="revenue", application="a.py")
    with TaskGroup("etl"):
        Own(task_id="load", application="a.py")
        SparkSubmitOperator.partial(task_id="each", application="a.py").expand(
            application_args=[["a"], ["b"]]
        )
    Alone(task_id="alone", application="a.py")
    SparkLineageSubmitOperator(task_id="ours", application="a.py")
    EmptyOperator(task_id="empty")
"""
LEGACY = """\
from airflow.sdk import DAG
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

with DAG("legacy_{n}", schedule=None):
    SparkSubmitOperator(task_id="load", application="a.py")
"""
OFF = "left alone: adoption is off"
OURS = "left alone: it has lineage by itself"


@pytest.fixture
def dags(tmp_path):
    folder = tmp_path / "dags"
    folder.mkdir()
    (folder / "sales.py").write_text(SALES)
    (folder / "legacy.py").write_text(LEGACY.replace("{n}", "1"))
    return folder


@pytest.fixture
def run(capfd, dags):
    """Run the command on the folder of DAGs."""
    command = next(c for c in cli.airflow_commands()[0].subcommands if c.name == "adoption")
    parser = argparse.ArgumentParser()
    for argument in command.args:
        argument.add_to_parser(parser)

    def run(*argv, folder=dags):
        of_folder = ("--dags-folder", str(folder)) if folder else ()
        capfd.readouterr()
        code = 0
        try:
            command.func(parser.parse_args([*argv, *of_folder]))
        except SystemExit as ended:
            code = ended.code
        captured = capfd.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture
def listed(run):
    """Run it for a program; give the tasks by their names, and the problems."""

    def listed(*argv, code=0, **more):
        done = run(*argv, "--output", "json", **more)
        assert done.code == code, done.err
        document = json.loads(done.out)
        jsonschema.validate(document, SCHEMA)
        tasks = {f"{t['dag_id']}.{t['task_id']}": t for t in document["tasks"]}
        return tasks, [f"{p['name']}: {p['message']}" for p in document["problems"]]

    return listed


@pytest.fixture
def configured(monkeypatch):
    def configure(**options):
        for name, value in options.items():
            monkeypatch.setenv(f"AIRFLOW__SPARKLINEAGE__{name.upper()}", str(value))

    return configure


def reasons(tasks):
    return {name: task["reason"] for name, task in tasks.items()}


def test_before_adoption_is_turned_on_all_tasks_are_left_alone(listed):
    tasks, problems = listed()
    assert set(tasks) == {
        *("sales.revenue", "sales.etl.load", "sales.etl.each", "sales.alone", "sales.ours"),
        "legacy_1.load",
    }
    assert {task["reason"] for task in tasks.values()} == {OFF, OURS}
    assert problems == []


def test_it_says_what_would_be_adopted(listed):
    tasks, _ = listed("--adopt", "all")
    assert reasons(tasks) == {
        "sales.revenue": "adopted",
        "sales.etl.load": "adopted",
        "sales.etl.each": "adopted",
        "sales.alone": "left alone: its execute() does not call super().execute()",
        "sales.ours": OURS,
        "legacy_1.load": "adopted",
    }
    assert [name for name, task in tasks.items() if task["adopted"]] == [
        name for name, reason in reasons(tasks).items() if reason == "adopted"
    ]
    assert tasks["sales.revenue"]["class"].endswith(".spark_submit.SparkSubmitOperator")
    assert tasks["sales.etl.each"]["operator"] == "SparkSubmitOperator"
    assert tasks["sales.etl.load"]["operator"] == "Own"


def test_it_says_what_is_adopted_by_which_rule_with_which_declaration(listed, configured, tmp_path):
    (tmp_path / "adopt.yaml").write_text(
        "- {dag_id: legacy_*, exclude: true}\n- {tags: spark, task_id: [revenue, 'etl.*']}\n"
    )
    (tmp_path / "declared.yaml").write_text(
        "- {task_id: 'etl.*', reads: /a}\n- {dag_id: sales, task_id: revenue, writes: /b}\n"
    )
    configured(adopt=tmp_path / "adopt.yaml", declarations=tmp_path / "declared.yaml")
    tasks, problems = listed()
    assert {name: (t["reason"], t["rule"], t["declaration"]) for name, t in tasks.items()} == {
        "sales.revenue": ("adopted (rule 2)", 2, 2),
        "sales.etl.load": ("adopted (rule 2)", 2, 1),
        "sales.etl.each": ("adopted (rule 2)", 2, 1),
        "sales.alone": ("left alone: no rule is for it", None, None),
        "sales.ours": (OURS, None, None),
        "legacy_1.load": ("left alone: rule 1 excludes it", 1, None),
    }
    assert problems == []


def test_what_adopts_already_changes_nothing_of_the_answer(listed, configured):
    before = listed("--adopt", "all")
    configured(adopt="all")
    assert listed("--adopt", "all") == listed() == before


def test_rules_that_are_for_nothing_or_for_a_task_twice_are_warnings(listed, configured):
    configured(
        declarations="[{dag_id: sales, reads: /a}, {task_id: revenue, reads: /b}, "
        "{dag_id: legacy_1, reads: /c}, {task_id: gone, reads: /d}]"
    )
    _, problems = listed("--adopt", "[{dag_id: [sales, nobody]}, {operator: x.y}]")
    assert problems == [
        "adopt: Rule 1 (line 1): no DAG with a Spark operator is like 'nobody'.",
        "adopt: Rule 2 (line 1) is for no task: no Spark operator is like 'x.y'.",
        "declarations: Rule 4 (line 1) is for no task: no task of a Spark operator is like 'gone'.",
        "declarations: Rule 1 (line 1) acts for sales.revenue, and never rule 2 (line 1).",
        "declarations: Rule 3 (line 1) declares nothing: none of its tasks is adopted.",
    ]


def test_what_cannot_be_read_is_not_what_is_off(listed, configured, dags):
    (dags / "broken.py").write_text("from airflow.sdk import DAG\n1 / 0\n")
    (dags.parent / "rules.yaml").write_text("- dag_id: x\n  task: y\n")
    configured(declarations="- dag_id: d\n  read: x")
    tasks, problems = listed("--adopt", str(dags.parent / "rules.yaml"), code=1)
    assert tasks["sales.revenue"]["reason"] == "left alone: the rules cannot be read"
    assert tasks["sales.ours"]["reason"] == OURS
    assert problems == [
        f"adopt: Adoption rules, {dags.parent}/rules.yaml, line 2, rule 1, key task: the key "
        "'task' is not known.",
        "declarations: Declarations, line 2, rule 1, key read: the key 'read' is not known.",
        f"DAG file: {dags}/broken.py cannot be imported: ZeroDivisionError: division by zero",
    ]


def test_people_get_a_table_and_what_to_do(run):
    done = run("--adopt", "[{dag_id: sales}, {dag_id: gone}]")
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["DAG", "task", "operator", "adoption", "declared"]
    assert ["sales", "revenue", "SparkSubmitOperator", "adopted", "(rule", "1)"] in lines
    assert "Of 6 tasks of Spark operators 3 are adopted." in done.out
    assert "like 'gone'. Correct it, or take it out." in done.out
    assert "what a file prints" not in done.out
    assert "--adopt all" not in done.err


def test_people_are_shown_how_to_try_it(run):
    assert "airflow sparklineage adoption --adopt all" in run().err


def test_the_tasks_of_one_dag_are_listed_and_rules_are_judged_by_all(listed):
    tasks, problems = listed("--dag-id", "legacy_1", "--adopt", "[{dag_id: sales}]")
    assert set(tasks) == {"legacy_1.load"}
    assert problems == []


@pytest.mark.parametrize(
    ("argv", "folder", "message"),
    [
        pytest.param((), "/no/such/folder", "There is no folder /no/such/folder.", id="folder"),
        pytest.param(("--dag-id", "nobody"), None, "has a DAG nobody.", id="DAG"),
    ],
)
def test_what_is_not_there_is_unusable_input(run, dags, argv, folder, message):
    done = run(*argv, folder=folder or dags)
    assert done.code == 2
    assert message in done.err


def test_one_file_is_enough_and_airflows_own_folders_are_the_default(
    listed, dags, monkeypatch, tmp_path
):
    assert set(listed(folder=dags / "legacy.py")[0]) == {"legacy_1.load"}
    bundle = {"name": "b", "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle"}
    bundles = json.dumps([{**bundle, "kwargs": {"path": str(dags)}}])
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", bundles)
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    assert len(listed(folder=None)[0]) == 6


def test_bundles_that_cannot_be_used_are_a_problem(listed, monkeypatch):
    bundles = json.dumps([{"name": "b", "classpath": "no.such.Bundle", "kwargs": {}}])
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", bundles)
    monkeypatch.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    tasks, (problem,) = listed(folder=None, code=1)
    assert tasks == {}
    assert problem.startswith("DAG file: Airflow's DAG bundles cannot be used (")


def test_files_that_there_is_no_time_for_are_left_out(dags):
    done = []
    times = iter([1.0, 0.0])
    parsed = adoption_survey.parse_dags(str(dags), done.append, Budget(lambda: next(times)))
    assert (len(parsed.dags), parsed.is_all) == (1, False)
    assert done == [1]
    assert adoption_survey.parse_dags(str(dags)).is_all


def test_a_bundle_that_would_have_to_be_fetched_is_left_out(dags, monkeypatch):
    class Fetched(BaseDagBundle):
        path = dags

        def initialize(self):
            pytest.fail("fetched")

        get_current_version = refresh = initialize

    local = LocalDagBundle(name="local", path=str(dags))
    manager = SimpleNamespace(get_all_dag_bundles=lambda: [Fetched(name="far"), local])
    monkeypatch.setattr(adoption_survey, "DagBundlesManager", lambda: manager)
    parsed = adoption_survey.parse_dags(None, fetches=False)
    assert [dag.dag_id for dag in parsed.dags] == ["legacy_1", "sales"]
    assert not parsed.is_all


# --- the doctor -----------------------------------------------------------------------------------


@pytest.fixture
def checked(dags, monkeypatch):
    """Give what the doctor finds of settings, with these DAGs."""
    parse = adoption_survey.parse_dags
    monkeypatch.setattr(
        doctor.adoption_survey, "parse_dags", lambda _, **more: parse(str(dags), **more)
    )

    def checked(**values):
        source = Source(Origin.CONFIGURATION, values)
        return [
            (c.name, c.status, c.message)
            for c in doctor.adoption_checks(resolution.resolve(source))
        ]

    return checked


OK = ("adopt", Status.OK)


@pytest.fixture
def loaded(monkeypatch):
    """Let Airflow have loaded the policy, as it does where the package is installed."""
    manager = airflow_settings.get_policy_plugin_manager()
    if manager.is_registered(policy):
        yield
        return
    manager.register(policy, name="sparklineage")
    yield
    manager.unregister(policy)


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(
            {}, [(*OK, "Adoption is off: tasks have lineage whose DAG asks for it.")], id="off"
        ),
        pytest.param(
            {"adopt": "all"},
            [(*OK, "All tasks are adopted: `airflow sparklineage adoption` lists them.")],
            id="all",
        ),
        pytest.param(
            {"adopt": "[{dag_id: sales}, {dag_id: gone}]"},
            [
                (*OK, "Tasks are adopted by rules: `airflow sparklineage adoption` lists them."),
                (
                    "adopt",
                    Status.WARNING,
                    "Rule 2 (line 1) is for no task: no DAG with a Spark operator is like 'gone'.",
                ),
            ],
            id="a glob that matches nothing",
        ),
        pytest.param(
            {
                "adopt": "all",
                "declarations": "[{dag_id: sales, reads: /}, {dag_id: s*, reads: /}]",
            },
            [
                (*OK, "All tasks are adopted: `airflow sparklineage adoption` lists them."),
                (
                    "declarations",
                    Status.WARNING,
                    "Rule 1 (line 1) acts for sales.revenue, sales.etl.load, sales.etl.each, and "
                    "never rule 2 (line 1).",
                ),
            ],
            id="two declarations for a task",
        ),
        pytest.param(
            {"adopt": "no.yaml"},
            [
                (
                    "adopt",
                    Status.FAILED,
                    "Adoption rules, no.yaml: the file cannot be read ([Errno 2] No such file or "
                    "directory: 'no.yaml').",
                )
            ],
            id="no file",
        ),
        pytest.param(
            {"adopt": "all", "declarations": "- dag_id: d\n"},
            [("declarations", Status.FAILED, "Declarations, line 1, rule 1: it declares nothing.")],
            id="a wrong declaration",
        ),
        pytest.param(
            {"declarations": "- {dag_id: d, reads: /a}"},
            [
                (
                    "declarations",
                    Status.WARNING,
                    "There are declarations, and no task is adopted, which they are for.",
                )
            ],
            id="declarations for nobody",
        ),
    ],
)
def test_the_doctor_looks_at_rules_and_at_whom_they_are_for(checked, values, expected):
    assert checked(**values) == expected


def test_the_doctor_parses_no_dag_where_there_are_no_rules(monkeypatch, checked):
    monkeypatch.setattr(doctor.adoption_survey, "parse_dags", lambda *_: pytest.fail("parsed"))
    checked(adopt="all")
    checked()


@pytest.mark.usefixtures("loaded")
def test_the_doctor_counts_what_is_too_much_for_a_line_each(checked):
    declared = json.dumps([{"dag_id": f"gone_{n}", "reads": "/a"} for n in range(300)])
    found = checked(adopt="all", declarations=declared)
    assert len(found) == 12
    assert found[-1][2] == "290 more rules or globs are for no task, or for one twice."


@pytest.mark.usefixtures("loaded")
def test_the_doctor_leaves_many_dags_to_the_command(monkeypatch, checked):
    monkeypatch.setattr(doctor, "PARSING_S", 0.0)
    _, (name, status, message) = checked(adopt="[{dag_id: gone}]")
    assert (name, status) == OK
    assert message.startswith("Not all DAG files were parsed: 0 s are for that")


def test_the_doctor_knows_whether_airflow_has_loaded_the_policy(monkeypatch, checked):
    manager = SimpleNamespace(is_registered=lambda _: False)
    monkeypatch.setattr(airflow_settings, "get_policy_plugin_manager", lambda: manager)
    ((name, status, message),) = checked(adopt="all")
    assert (name, status) == ("adopt", Status.WARNING)
    assert "has not loaded this package's cluster policy" in message
