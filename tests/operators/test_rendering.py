"""Templates of real operators, rendered as Airflow renders them: plain and mapped tasks."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import jinja2
import pendulum
import pytest
from airflow.sdk import DAG, Asset
from airflow.sdk.bases.operator import BaseOperator
from airflow.sdk.execution_time.context import MacrosAccessor

from airflow_provider_sparklineage.operators.attempt import prepare
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator

pytestmark = pytest.mark.airflow

DAY = "2024-05-06"
MIDNIGHT = pendulum.datetime(2024, 5, 6)


def operator(**kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)


def of_run(logical_date=MIDNIGHT, **more):
    """Make the template context of a run, with the keys that Airflow gives to each kind."""
    if logical_date is None:
        return {"run_id": "manual", "params": {}, "macros": MacrosAccessor(), **more}
    return {
        "ds": logical_date.strftime("%Y-%m-%d"),
        "ds_nodash": logical_date.strftime("%Y%m%d"),
        "logical_date": logical_date,
        "data_interval_start": logical_date,
        "data_interval_end": logical_date.add(days=1),
        "run_id": "scheduled",
        "params": {},
        "macros": MacrosAccessor(),
        "partition_key": None,
        **more,
    }


def rendered(task, context=None):
    """Render as the task runner does: a copy of the task, or what it is mapped to."""
    context = of_run() if context is None else context
    task = task.prepare_for_execution()
    context["task"] = task
    task.render_template_fields(context)
    return context["task"]


def expanded(task, index, context=None):
    """Render one instance of a mapped task."""

    class AtIndex:
        map_index = index

        def is_mapped(self):
            return True

    context = of_run() if context is None else context
    run = {"dag": task.dag, "dag_run": SimpleNamespace(conf={}), "ti": AtIndex()}
    return rendered(task, {**context, **run})


def dated(task):
    """Give the field and the dated characters of each traced text."""
    traces = task.lineage_try.rendered.texts
    assert traces is not None
    return {t.field: [t.value[s.start : s.end] for s in t.spans if s.dates] for t in traces}


# --- plain tasks ----------------------------------------------------------------------------------


def test_all_fields_that_can_name_data_are_traced():
    task = rendered(
        operator(
            application_args=["--orders", "s3://lake/orders/dt={{ ds }}"],
            conf={"spark.shop.day": "{{ ds_nodash }}"},
            env_vars={"DAY": "{{ logical_date | ds }}"},
            reads=["/lake/rates/dt={{ ds }}"],
            writes=["/lake/revenue/dt={{ ds }}", Asset("s3://lake/audit")],
            name="{{ ds }}",
            inlets=[Asset("s3://lake/orders")],
        )
    )
    assert dated(task) == {
        "application_args[0]": [],
        "application_args[1]": [DAY],
        "conf[spark.shop.day]": ["20240506"],
        "env_vars[DAY]": [DAY],
        "reads[0]": [DAY],
        "writes[0]": [DAY],
    }
    assert task.application_args == ["--orders", f"s3://lake/orders/dt={DAY}"]


@pytest.mark.parametrize(
    ("template", "value"),
    [
        pytest.param("{{ macros.ds_add(ds, -6) }}", "2024-04-30", id="macro"),
        pytest.param("{{ macros.ds_format(ds, '%Y-%m-%d', '%Y/%m/%d') }}", "2024/05/06", id="form"),
        pytest.param(
            "{{ data_interval_start.in_timezone('Europe/Berlin').strftime('%Y-%m-%dT%H') }}",
            "2024-05-06T02",
            id="another timezone",
        ),
        pytest.param("{{ data_interval_end | ts_nodash }}", "20240507T000000", id="filter"),
        pytest.param(
            "{{ (logical_date - macros.timedelta(days=1)) | ds }}", "2024-05-05", id="arithmetic"
        ),
        pytest.param(
            "{{ macros.datetime.strptime(ds, '%Y-%m-%d').year }}", "2024", id="parsed again"
        ),
        pytest.param("{{ logical_date.start_of('month') | ds }}", "2024-05-01", id="month"),
    ],
)
def test_airflows_own_macros_and_filters_are_followed(template, value):
    assert dated(rendered(operator(application_args=[template]))) == {
        "application_args[0]": [value]
    }


@pytest.mark.parametrize(
    ("hour", "expected"),
    [
        pytest.param(pendulum.datetime(2024, 3, 31, 0), "2024-03-31T01+0100", id="before the gap"),
        pytest.param(pendulum.datetime(2024, 3, 31, 1), "2024-03-31T03+0200", id="after the gap"),
        pytest.param(pendulum.datetime(2024, 10, 27, 0), "2024-10-27T02+0200", id="first 2 h"),
        pytest.param(pendulum.datetime(2024, 10, 27, 1), "2024-10-27T02+0100", id="second 2 h"),
    ],
)
def test_hours_around_a_change_of_the_clocks_are_the_rendered_ones(hour, expected):
    template = "{{ logical_date.in_timezone('Europe/Berlin').strftime('%Y-%m-%dT%H%z') }}"
    task = rendered(operator(application_args=[template]), of_run(hour))
    assert dated(task) == {"application_args[0]": [expected]}


def test_default_args_are_traced():
    with DAG(
        "d", schedule=None, default_args={"conf": {"day": "{{ ds }}"}, "reads": ["/{{ ds }}"]}
    ):
        task = operator()
    assert dated(rendered(task)) == {"conf[day]": [DAY], "reads[0]": [DAY]}


def test_macros_and_filters_of_the_dag_are_followed():
    with DAG(
        "d",
        schedule=None,
        user_defined_macros={"bucket": "lake", "month": lambda ds: ds[:7]},
        user_defined_filters={"year": lambda ds: ds[:4]},
    ):
        task = operator(application_args=["s3://{{ bucket }}/{{ month(ds) }}/{{ ds | year }}"])
    assert dated(rendered(task)) == {"application_args[0]": ["2024-05", "2024"]}


def test_a_field_that_was_set_after_the_constructor_is_traced():
    task = operator()
    task.conf = {"day": "{{ ds }}"}
    assert dated(rendered(task)) == {"conf[day]": [DAY]}


def test_what_an_upstream_task_gives_is_no_template():
    class Upstream:
        """Stands for an XComArg: rendering resolves it."""

        def resolve(self, _context):
            return ["{{ ds }}", 1]

    task = rendered(operator(application_args=["{{ ds }}", "x"], reads=[Upstream()]))
    assert task.reads == [["{{ ds }}", 1]]
    assert dated(task) == {
        "application_args[0]": [DAY],
        "application_args[1]": [],
        "reads[0][0]": [],
    }


def test_a_real_xcom_arg_is_no_template():
    class Producer(BaseOperator):
        def execute(self, _context):
            return None

    class TaskInstance:
        task = None

        def xcom_pull(self, **_):
            return "/lake/from/upstream"

    with DAG("d", schedule=None):
        task = operator(reads=[Producer(task_id="up").output, "/lake/dt={{ ds }}"])
    context = of_run(ti=TaskInstance(), expanded_ti_count=None)
    task = rendered(task, context)
    assert dated(task) == {"reads[0]": [], "reads[1]": [DAY]}
    [text, *_] = task.lineage_try.rendered.texts
    assert text.value == text.template == "/lake/from/upstream"


@pytest.mark.parametrize(
    ("native", "value"),
    [pytest.param(True, 20240506, id="native"), pytest.param(False, "20240506", id="text")],
)
def test_native_rendering_is_traced(native, value):
    with DAG("d", schedule=None, render_template_as_native_obj=native):
        task = operator(
            conf={"day": "{{ ds_nodash }}", "no": "text"},
            application_args="{{ ['--day', ds] }}" if native else ["--day", "{{ ds }}"],
        )
    task = rendered(task)
    assert task.conf["day"] == value
    assert dated(task) == {
        "application_args[0]": ["--day"] if native else [],
        "application_args[1]": [DAY],
        "conf[day]": ["20240506"],
        "conf[no]": [],
    }


@dataclass(frozen=True)
class Declared:
    """A declaration that gives a new value per run, and keeps what it was made of."""

    uri: str
    partitions: dict[str, str] = field(default_factory=dict)
    template: Declared | None = None

    def resolve(self, context: Any) -> Declared:
        def text(template: str) -> str:
            return jinja2.Environment(autoescape=False).from_string(template).render(context)

        made = {key: text(value) for key, value in self.partitions.items()}
        return replace(self, uri=text(self.uri), partitions=made, template=self)


def test_declarations_that_render_themselves_are_traced_once_per_run():
    task = operator(reads=[Declared("/lake/{{ run_id }}", {"dt": "{{ ds }}"})])
    first = rendered(task)
    second = rendered(task, of_run(pendulum.datetime(1970, 1, 1)))
    assert dated(first) == {"reads[0].uri": [], "reads[0].partitions[dt]": [DAY]}
    assert dated(second) == {"reads[0].uri": [], "reads[0].partitions[dt]": ["1970-01-01"]}
    assert [t.template for t in first.lineage_try.rendered.texts] == [
        "/lake/{{ run_id }}",
        "{{ ds }}",
    ]


def test_a_template_file_is_traced_by_its_content(tmp_path):
    class FileOperator(SparkLineageSubmitOperator):
        template_ext = (".json",)

    (tmp_path / "job.json").write_text('{"day": "{{ ds }}"}')
    with DAG("d", schedule=None, template_searchpath=[str(tmp_path)]):
        task = FileOperator(task_id="t", application="a", conf={"job": "job.json"})
    task = rendered(task)
    assert dated(task) == {"conf[job]": [DAY]}
    assert task.lineage_try.rendered.texts[0].template == '{"day": "{{ ds }}"}'


# --- mapped tasks ---------------------------------------------------------------------------------


def test_literals_that_a_task_is_expanded_over_are_traced():
    with DAG("d", schedule=None):
        mapped = SparkLineageSubmitOperator.partial(
            task_id="t", application="a", conf={"day": "{{ ds }}"}
        ).expand(application_args=[["/{{ ds }}"], ["/x", "{{ ds_nodash }}"]])
    assert dated(expanded(mapped, 0)) == {"application_args[0]": [DAY], "conf[day]": [DAY]}
    assert dated(expanded(mapped, 1)) == {
        "application_args[0]": [],
        "application_args[1]": ["20240506"],
        "conf[day]": [DAY],
    }


def test_keyword_arguments_that_a_task_is_expanded_over_are_traced():
    with DAG("d", schedule=None, default_args={"env_vars": {"DAY": "{{ ds }}"}}):
        mapped = SparkLineageSubmitOperator.partial(task_id="t", application="a").expand_kwargs(
            [{"reads": [f"/{{{{ macros.ds_add(ds, {n}) }}}}"]} for n in (0, 1)]
        )
    assert dated(expanded(mapped, 1)) == {"env_vars[DAY]": [DAY], "reads[0]": ["2024-05-07"]}


def test_values_of_an_upstream_task_that_a_task_is_expanded_over_are_not_rendered(monkeypatch):
    with DAG("d", schedule=None):
        mapped = SparkLineageSubmitOperator.partial(task_id="t", application="a").expand(
            application_args=[["{{ ds }}"]]
        )
    # As for an XCom: Airflow marks what it resolved as already rendered.
    values = ["{{ ds }}"]
    monkeypatch.setattr(
        type(mapped),
        "_expand_mapped_kwargs",
        lambda *_: ({"application_args": values}, {id(values), id(values[0])}),
    )
    task = expanded(mapped, 0)
    assert task.application_args == ["{{ ds }}"]
    assert dated(task) == {"application_args[0]": []}
    assert task.lineage_try.rendered.texts[0].variables == ()


# --- kinds of runs --------------------------------------------------------------------------------


def test_a_partition_run_has_its_key():
    context = of_run(None, partition_key=DAY, partition_date=pendulum.datetime(2024, 5, 6))
    task = operator(
        application_args=["{{ partition_key or ds }}", "{{ partition_date | ds_nodash }}"]
    )
    assert dated(rendered(task, context)) == {
        "application_args[0]": [DAY],
        "application_args[1]": ["20240506"],
    }


def test_a_run_without_a_date_fails_in_rendering_and_nothing_is_traced():
    with DAG("d", schedule=None):
        task = operator(application_args=["{{ ds }}"]).prepare_for_execution()
    with pytest.raises(jinja2.UndefinedError, match="'ds' is undefined"):
        task.render_template_fields(of_run(None))
    assert task.lineage_try.rendered.texts is None


def test_a_rendering_that_fails_forgets_an_earlier_one():
    with DAG("d", schedule=None):
        task = rendered(operator(application_args=["{{ ds }}"]))
    assert dated(task) == {"application_args[0]": [DAY]}
    task.application_args = ["{{ nope }}"]
    with pytest.raises(jinja2.UndefinedError):
        task.render_template_fields(of_run())
    assert task.lineage_try.rendered.texts is None


def test_each_rendering_begins_a_try_of_its_own():
    """Airflow renders and runs shallow copies of the DAG's task, one for each run."""
    with DAG("d", schedule=None):
        task = operator(application_args=["{{ ds }}"])
    first = rendered(task)
    second = rendered(task, of_run(pendulum.datetime(1970, 1, 1)))
    values = [[text.value for text in copy.lineage_try.rendered.texts] for copy in (first, second)]
    assert values == [[DAY], ["1970-01-01"]]
    earlier = first.lineage_try
    assert rendered(first).lineage_try is not earlier
    assert task.lineage_try.rendered.texts is None


def test_before_rendering_nothing_is_traced():
    assert operator(application_args=["{{ ds }}"]).lineage_try.rendered.texts is None


# --- what it must not do --------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["argument", "configuration"])
def test_switched_off_nothing_is_traced(monkeypatch, how):
    if how == "configuration":
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DISABLED", "True")
    monkeypatch.setattr(prepare, "traces", lambda *_: 1 / 0)
    task = rendered(operator(application_args=["{{ ds }}"], lineage=how != "argument"))
    assert (task.application_args, task.lineage_try.rendered.texts) == ([DAY], None)


def test_a_defect_in_tracing_costs_the_spans_and_not_the_task(monkeypatch):
    monkeypatch.setattr(prepare.Tracer, "trace_all", lambda *_: 1 / 0)
    task = rendered(operator(application_args=["{{ ds }}"]))
    assert (task.application_args, task.lineage_try.rendered.texts) == ([DAY], ())


def test_side_effects_of_templates_happen_once(mocker):
    pull = mocker.stub("xcom_pull")
    pull.return_value = "lake"
    template = "s3://{{ ti.xcom_pull('bucket') }}/dt={{ ds }}"
    of_one = of_run(ti=SimpleNamespace(xcom_pull=pull))
    task = rendered(operator(application_args=[template]), of_one)
    pull.assert_called_once_with("bucket")
    assert dated(task) == {"application_args[0]": [DAY]}


def test_nested_objects_with_templates_of_their_own_are_rendered_as_ever():
    class Nested:
        template_fields = ("path",)

        def __init__(self):
            self.path = "/{{ ds }}"

    nested = Nested()
    task = rendered(operator(reads=[nested], writes=["/{{ ds }}"]))
    assert nested.path == f"/{DAY}"
    assert dated(task) == {"writes[0]": [DAY]}


@pytest.fixture(scope="module")
def loaded():
    """List our modules that are loaded with a DAG, and those until a job is submitted."""
    # In one process: importing Airflow takes seconds.
    code = (
        "import sys\n"
        "def report():\n"
        "    ours = (m for m in sys.modules if m.startswith('airflow_provider_sparklineage.'))\n"
        "    print('LOADED', *(m.partition('.')[2] for m in ours), *{'sqlglot'} & {*sys.modules})\n"
        "from airflow_provider_sparklineage.operators import spark_submit\n"
        "spark_submit.SparkLineageSubmitOperator(task_id='t', application='a')\n"
        "report()\n"
        "from airflow_provider_sparklineage.operators.attempt import collect\n"
        "from airflow_provider_sparklineage.operators.attempt import prepare, submit\n"
        "report()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("LOADED")]
    with_dag, with_submission = ({*modules} for _, *modules in lines)
    return with_dag, with_submission


def test_loading_a_dag_does_not_load_what_traces(loaded):
    with_dag, _ = loaded
    assert "operators.spark_submit" in with_dag
    assert {module for module in with_dag if module.startswith("templat")} == set()


def test_what_a_submission_waits_for_does_not_load_what_merges(loaded):
    _, with_submission = loaded
    merging = {"lineage.merge", "lineage.bundle", "event.archive", "event.column_lineage"}
    merging |= {"lineage.columns.edges", "lineage.application.accumulation"}
    reading = {"spark.capture.events", "spark.capture.observations"}
    declaring = {"model.predicates"}
    too_large = {"event.steps.fitting"}
    asking = {"spark.submit.commands", "event.backends.checks"}
    unneeded = merging | reading | declaring | too_large | asking
    assert all(find_spec(f"airflow_provider_sparklineage.{module}") for module in unneeded)
    assert "operators.attempt.submit" in with_submission
    assert with_submission & {"sqlglot", *unneeded} == set()
