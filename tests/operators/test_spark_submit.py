"""The operator around a spark-submit of our own: what goes in and out, and what breaks no task."""

from __future__ import annotations

import json
import logging
import os
import re
import time
import zipfile
from datetime import UTC, datetime

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException, AirflowTaskTimeout
from airflow.providers.openlineage.extractors.manager import ExtractorManager
from airflow.sdk import DAG, Asset

from airflow_provider_sparklineage.lineage import bundle as task_module
from airflow_provider_sparklineage.operators.spark_submit import (
    SparkLineageMixin,
    SparkLineageSubmitOperator,
)
from airflow_provider_sparklineage.spark.capture import bundle

pytestmark = pytest.mark.airflow

OL = "spark.openlineage."


def operator(**kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)


def names(datasets):
    return sorted(d.name for d in datasets)


def codes(lineage):
    return [d["code"] for d in lineage.run_facets["sparkLineage_capture"].degradations]


def warnings(caplog):
    return [
        r for r in caplog.records if r.levelno >= logging.WARNING and "lineage" in r.getMessage()
    ]


# --- what goes in ---------------------------------------------------------------------------------


def test_the_job_gets_listener_identity_and_capture_bundle(spark_submit, execute, context):
    execute(operator(application_args=["--date", "2024-05-06"]))
    given = spark_submit.given
    assert given.argv[-3:] == ["job.py", "--date", "2024-05-06"]
    assert given.argv[given.argv.index("--jars") + 1] == str(spark_submit.jar)
    conf = given.conf
    assert conf["spark.extraListeners"] == "io.openlineage.spark.agent.OpenLineageSparkListener"
    assert conf[f"{OL}transport.type"] == "file"
    assert conf[f"{OL}namespace"] == "tests"
    assert conf[f"{OL}appName"] == "shop.revenue"
    assert conf[f"{OL}parentJobName"] == "shop.revenue"
    assert conf[f"{OL}rootParentJobName"] == "shop"
    assert conf[f"{OL}parentRunId"] != conf[f"{OL}rootParentRunId"]
    assert "--add-opens=java.base/java.security=ALL-UNNAMED" in given.env["SPARK_SUBMIT_OPTS"]


def test_two_tries_have_two_application_runs(spark_submit, execute, context):
    execute(operator())
    first = spark_submit.given.conf[f"{OL}applicationRunId"]
    context["ti"].try_number = 2
    execute(operator())
    assert spark_submit.given.conf[f"{OL}applicationRunId"] != first


def test_what_stands_in_spark_defaults_is_extended(spark_submit, execute):
    (spark_submit.home / "conf" / "spark-defaults.conf").write_text(
        "spark.extraListeners  shop.Audit\nspark.jars=/shop/audit.jar\n"
        "spark.openlineage.namespace shop\n"
    )
    execute(operator())
    given = spark_submit.given
    assert given.conf["spark.extraListeners"].startswith("shop.Audit,")
    assert given.argv[given.argv.index("--jars") + 1] == f"/shop/audit.jar,{spark_submit.jar}"
    assert f"{OL}namespace" not in given.conf


def test_a_properties_file_replaces_spark_defaults(spark_submit, execute, tmp_path):
    (spark_submit.home / "conf" / "spark-defaults.conf").write_text(
        "spark.extraListeners a.Defaults\n"
    )
    properties = tmp_path / "job.properties"
    properties.write_text("spark.extraListeners = b.File\n")
    execute(operator(properties_file=str(properties)))
    assert spark_submit.given.conf["spark.extraListeners"].startswith("b.File,")


def test_a_secret_of_the_users_transport_stays_out_of_the_arguments(
    spark_submit, execute, tmp_path
):
    defaults = spark_submit.home / "conf" / "spark-defaults.conf"
    defaults.write_text(
        f"{OL}transport.type http\n{OL}transport.auth.apiKey s3cr3t\nspark.app.name shop\n"
    )
    execute(operator())
    given = spark_submit.given
    assert "s3cr3t" not in json.dumps(given.argv)
    [(mode, text)] = given.files.values()
    assert mode == "0o600"
    assert f"{OL}transport.transports.user.auth.apiKey=s3cr3t" in text.replace("\\", "")
    assert "spark.app.name=shop" in text  # the flag switches spark-defaults.conf off
    assert not any(
        b"s3cr3t" in f.read_bytes() for f in (tmp_path / "captures").rglob("*") if f.is_file()
    )


@pytest.mark.parametrize("how", ["argument", "configuration"])
def test_switched_off_it_is_the_stock_operator(spark_submit, execute, monkeypatch, captures, how):
    if how == "configuration":
        monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__DISABLED", "True")
    execute(SparkSubmitOperator(task_id="revenue", application="job.py", conf={"a": "b"}))
    stock = spark_submit.given
    task = operator(conf={"a": "b"}, lineage=how != "argument")
    execute(task)
    assert spark_submit.given.argv == stock.argv
    assert spark_submit.given.env == stock.env
    assert captures() == []
    assert ExtractorManager().get_extractor_class(task) is None


def test_a_shops_own_operator_gets_lineage_by_the_mixin(spark_submit, execute):
    class ShopSubmitOperator(SparkSubmitOperator):
        template_fields = (*SparkSubmitOperator.template_fields, "shop")

        def __init__(self, *, shop="", **kwargs):
            super().__init__(**kwargs)
            self.shop = shop

    class ShopLineageOperator(SparkLineageMixin, ShopSubmitOperator):
        pass

    spark_submit.does("staging_chain")
    task = ShopLineageOperator(
        task_id="revenue", application="job.py", shop="berlin", reads=["/lake/extra"]
    )
    assert set(task.template_fields) == {*ShopSubmitOperator.template_fields, "reads", "writes"}
    execute(task)
    lineage = task.get_openlineage_facets_on_complete(None)
    assert names(lineage.inputs) == [
        "/lake/customers",
        "/lake/extra",
        "/lake/orders",
        "/lake/rates",
    ]


def test_a_subclass_may_set_arguments_when_it_executes(spark_submit, execute, context):
    class Unobserved(SparkLineageSubmitOperator):
        def execute(self, context):
            self.observe = False
            return super().execute(context)

    context["task"] = task = Unobserved(task_id="revenue", application="job.py")
    task.render_template_fields(context)
    execute(task)
    assert "spark.extraListeners" in spark_submit.given.conf
    assert "--py-files" not in spark_submit.given.argv


def test_a_subclass_may_switch_lineage_off_when_it_executes(spark_submit, execute, context):
    class WithoutLineage(SparkLineageSubmitOperator):
        def execute(self, context):
            self.lineage = False
            return super().execute(context)

    context["task"] = task = WithoutLineage(task_id="revenue", application="job.py")
    task.render_template_fields(context)
    execute(task)
    assert "spark.extraListeners" not in spark_submit.given.conf
    assert task.get_openlineage_facets_on_complete is None


def test_a_subclass_may_make_template_fields_of_arguments(spark_submit, execute, context, tmp_path):
    class Templated(SparkLineageSubmitOperator):
        template_fields = (*SparkLineageSubmitOperator.template_fields, "listener_extensions")

    with zipfile.ZipFile(tmp_path / "revenue.jar", "w") as jar:
        jar.writestr("shop/Facets.class", b"")
    context["task"] = task = Templated(
        task_id="revenue",
        application="job.py",
        listener_extensions=[f"{tmp_path}/{{{{ ti.task_id }}}}.jar"],
    )
    task.render_template_fields(context)
    execute(task)
    jars = spark_submit.given.argv[spark_submit.given.argv.index("--jars") + 1]
    assert f"{tmp_path}/revenue.jar" in jars


def test_arguments_of_the_mixin_take_default_args(spark_submit, execute):
    with DAG("d", schedule=None, default_args={"lineage": False, "conf": {"a": "b"}}):
        task = operator()
    assert (task.lineage, task.conf) == (False, {"a": "b"})


# --- what comes out -------------------------------------------------------------------------------


def test_start_carries_what_is_declared(spark_submit):
    task = operator(
        inlets=[Asset("s3://lake/orders")],
        outlets=[Asset("file:///lake/revenue")],
        reads=["s3a://lake/rates/month=2024-05"],
        writes=["{{ not_rendered }}/x"],
    )
    lineage = task.get_openlineage_facets_on_start()
    assert [(d.namespace, d.name) for d in lineage.inputs] == [
        ("s3://lake", "orders"),
        ("s3://lake", "rates"),
    ]
    assert names(lineage.outputs) == ["/lake/revenue"]


def test_complete_carries_the_merged_lineage(spark_submit, execute, captures):
    spark_submit.does("staging_chain")
    task = operator(
        outlets=[Asset("file:///lake/revenue"), Asset("file:///lake/audit")], observe=False
    )
    execute(task)
    lineage = task.get_openlineage_facets_on_complete(None)
    assert names(lineage.inputs) == ["/lake/customers", "/lake/orders", "/lake/rates"]
    assert names(lineage.outputs) == [
        "/lake/audit",
        "/lake/revenue",
        "/lake/staging/enriched_orders",
    ]
    revenue = next(d for d in lineage.outputs if d.name == "/lake/revenue")
    fields = revenue.facets["columnLineage"].fields["revenue"]["inputFields"]
    assert [(f["name"], f["field"]) for f in fields] == [
        ("/lake/orders", "amount"),
        ("/lake/rates", "rate"),
    ]
    assert codes(lineage) == ["internal_read_assumed"]
    assert captures() == []  # nothing is wrong, so nothing is kept


def test_the_log_has_how_long_the_task_waited_for_its_lineage(
    spark_submit, execute, context, caplog, monkeypatch
):
    def slowly(*args, **kwargs):
        time.sleep(0.1)
        return original(*args, **kwargs)

    original = bundle.create
    monkeypatch.setattr(bundle, "create", slowly)
    spark_submit.does("staging_chain", sleep=1)
    context["task"] = task = operator(application_args=["{{ ti.task_id }}"])
    caplog.set_level(logging.INFO)
    begun = time.monotonic()
    task.render_template_fields(context)
    execute(task)
    in_all = time.monotonic() - begun
    [line] = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Lineage took")]
    before, after = (float(seconds) for seconds in re.findall(r"([\d.]+) s", line))
    assert before >= 0.1
    assert before + after <= in_all - 1  # the job's own second is not in it
    assert after > 0


def test_the_log_leads_to_the_tab_and_names_what_was_read_and_written(
    spark_submit, execute, context, caplog
):
    spark_submit.does("staging_chain")
    page = "http://airflow:8080/dags/shop/runs/manual/tasks/revenue"
    context["ti"].log_url = f"{page}?try_number=1"
    context["task"] = task = operator()
    caplog.set_level(logging.INFO)
    execute(task)
    messages = [record.getMessage() for record in caplog.records]
    at = messages.index(f"Lineage: {page}/plugin/spark-lineage?try_number=1")
    assert messages[at + 1 : at + 4] == [
        "  read: customers (partitions not known), orders, rates",
        "  wrote: revenue, enriched_orders (partitions not known)",
        "  mismatched: nothing was compared",
    ]


def test_a_callback_that_renders_the_fields_again_leaves_the_lineage(
    spark_submit, execute, context
):
    spark_submit.does("staging_chain")
    context["task"] = task = operator(application_args=["{{ ti.task_id }}"])
    task.render_template_fields(context)
    execute(task)
    before = names(task.get_openlineage_facets_on_complete(None).outputs)
    task.render_template_fields(context)
    assert before
    assert names(task.get_openlineage_facets_on_complete(None).outputs) == before
    context["ti"].try_number = 2
    task.render_template_fields(context)
    assert codes(task.get_openlineage_facets_on_failure(None)) == ["not_submitted"]


def test_of_several_jobs_in_one_try_the_event_has_the_last_and_says_so(spark_submit, execute):
    class Shop(SparkLineageSubmitOperator):
        def execute(self, context):
            super().execute(context)
            spark_submit.does("failing_action")
            return super().execute(context)

    spark_submit.does("staging_chain")
    task = Shop(task_id="revenue", application="job.py")
    execute(task)
    lineage = task.get_openlineage_facets_on_complete(None)
    assert names(lineage.outputs) == ["/lake/good_orders"]
    assert "foreign_events" in codes(lineage)


def test_a_failed_job_reports_what_it_had_done(spark_submit, execute, captures):
    spark_submit.does("failing_action", exit=1)
    task = operator()
    with pytest.raises(AirflowException):
        execute(task)
    lineage = task.get_openlineage_facets_on_failure(None)
    outputs = {d.name: d.facets for d in lineage.outputs}
    assert outputs.keys() == {"/lake/good_orders", "/lake/checked_orders"}
    assert "columnLineage" in outputs["/lake/good_orders"]
    assert outputs["/lake/checked_orders"].keys() == {"dataSource"}
    assert "action_failed" in codes(lineage)
    [manifest] = captures()
    assert json.loads(manifest.read_text())["outcome"] == "FAIL"


def test_before_anything_ran_failure_carries_the_declarations(spark_submit):
    task = operator(reads=["/lake/orders"])
    assert names(task.get_openlineage_facets_on_failure(None).inputs) == ["/lake/orders"]


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param({}, "no_events", id="no event file"),
        pytest.param({"events": "staging_chain", "bytes": 0}, "no_events", id="empty file"),
        pytest.param({"events": "staging_chain", "bytes": 30_000}, "torn_event", id="torn line"),
        pytest.param({"events": "killed_driver"}, "application_unfinished", id="killed driver"),
    ],
)
def test_missing_events_are_reported_and_the_task_succeeds(
    spark_submit, execute, caplog, script, code
):
    spark_submit.does(**script)
    task = operator(reads=["/lake/declared"])
    execute(task)
    lineage = task.get_openlineage_facets_on_complete(None)
    assert code in codes(lineage)
    assert "/lake/declared" in names(lineage.inputs)
    assert len(warnings(caplog)) == 1


def test_garbage_and_events_of_another_application_are_reported(
    spark_submit, execute, tmp_path, caplog
):
    from tests.conftest import golden

    own, other = golden("staging_chain"), golden("python_udf")
    mixed = tmp_path / "mixed.ndjson"
    mixed.write_text(own.read_text() + "garbage\n" + other.read_text())
    spark_submit.does()
    run_id = json.loads(own.read_text().splitlines()[0])["run"]["runId"]
    spark_submit.script.write_text(json.dumps({"events": str(mixed), "recorded_as": run_id}))
    task = operator()
    execute(task)
    lineage = task.get_openlineage_facets_on_complete(None)
    assert {"malformed_events", "foreign_events"} <= set(codes(lineage))
    assert names(lineage.inputs) == ["/lake/customers", "/lake/orders", "/lake/rates"]
    assert len(warnings(caplog)) == 1


def test_a_capture_directory_that_cannot_be_made_costs_the_lineage(
    spark_submit, execute, monkeypatch, tmp_path, caplog
):
    (tmp_path / "file").touch()
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(tmp_path / "file" / "x"))
    task = operator()
    execute(task)
    assert codes(task.get_openlineage_facets_on_complete(None)) == ["capture_unavailable"]
    assert len(warnings(caplog)) == 1


def test_a_driver_in_the_cluster_gets_nothing_injected(spark_submit, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://host:7077")
    task = operator(conf={"spark.submit.deployMode": "cluster"})
    execute(task)
    assert not any(key.startswith(OL) for key in spark_submit.given.conf)
    assert codes(task.get_openlineage_facets_on_complete(None)) == ["driver_elsewhere"]


def test_strict_fails_before_submitting(spark_submit, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", "/nowhere/openlineage-spark.jar")
    with pytest.raises(Exception, match="does not exist"):
        execute(operator(strict=True))
    assert not spark_submit.ran


def test_a_wrong_setting_costs_the_lineage_and_names_the_option(
    spark_submit, execute, monkeypatch, caplog
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "sometimes")
    task = operator()
    execute(task)
    assert spark_submit.ran
    [warning] = warnings(caplog)
    assert "keep_captures is 'sometimes'" in warning.getMessage()
    assert codes(task.get_openlineage_facets_on_complete(None)) == ["injection_failed"]


@pytest.mark.parametrize("mode", ["client", None])
def test_the_flag_of_the_deploy_mode_beats_conf(spark_submit, execute, mode):
    execute(operator(conf={"spark.submit.deployMode": "cluster"}, deploy_mode=mode))
    injected = any(key.startswith(OL) for key in spark_submit.given.conf)
    assert injected is (mode == "client")


def test_the_operator_is_as_before_when_it_has_run(spark_submit, execute):
    defaults = spark_submit.home / "conf" / "spark-defaults.conf"
    defaults.write_text(f"{OL}transport.type http\n{OL}transport.url http://marquez:5000\n")
    task = operator(conf={"a": "b"})
    execute(task)
    assert (task.conf, task.jars, task.env_vars) == ({"a": "b"}, None, None)
    assert task.properties_file is None
    execute(task)  # and again, with a properties file of its own


def test_what_a_declaration_cannot_name_is_left_out(spark_submit, execute):
    spark_submit.does("staging_chain")
    task = operator(reads=["http://[::1/x", "orders", "/lake/extra"])
    execute(task)
    assert "/lake/extra" in names(task.get_openlineage_facets_on_complete(None).inputs)


def test_a_defect_in_merging_costs_the_lineage(spark_submit, execute, monkeypatch, captures):
    monkeypatch.setattr(task_module, "merged_lineage", lambda *_: 1 / 0)
    task = operator(reads=["/lake/declared"])
    execute(task)
    lineage = task.get_openlineage_facets_on_complete(None)
    assert codes(lineage) == ["merge_failed"]
    assert names(lineage.inputs) == ["/lake/declared"]
    assert len(captures()) == 1


def test_the_task_timeout_firing_while_collecting_is_a_degradation(
    spark_submit, execute, monkeypatch
):
    def interrupted(*_):
        raise AirflowTaskTimeout

    monkeypatch.setattr(task_module, "merged_lineage", interrupted)
    task = operator()
    execute(task)
    assert codes(task.get_openlineage_facets_on_complete(None)) == ["collection_cut"]


def test_collecting_does_not_hide_the_jobs_own_failure(spark_submit, execute, monkeypatch):
    monkeypatch.setattr(task_module, "merged_lineage", lambda *_: 1 / 0)
    spark_submit.does(exit=3)
    with pytest.raises(AirflowException, match="Error code is: 3"):
        execute(operator())


def test_collecting_ends_when_its_time_is_up(spark_submit, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "0")
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    assert "collection_cut" in codes(task.get_openlineage_facets_on_complete(None))


def test_old_bundles_are_swept_and_running_ones_are_not(
    spark_submit, execute, monkeypatch, captures, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_RETENTION", "1")
    running = bundle.create(tmp_path / "captures", bundle.Manifest(application_run_id="r"))
    ended = bundle.create(
        tmp_path / "captures",
        bundle.Manifest(application_run_id="r", ended=datetime(2024, 5, 6, tzinfo=UTC)),
    )
    ended.release()
    execute(operator())
    left = {m.parent for m in captures()}
    assert ended.path not in left
    assert running.path in left


def test_the_bundle_is_private(spark_submit, execute, monkeypatch, captures):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    execute(operator())
    [manifest] = captures()
    assert oct(manifest.parent.stat().st_mode & 0o777) == "0o700"
    assert os.fspath(manifest.parent.name).startswith("shop.revenue-try1-")


def test_strict_leaves_no_bundle_behind(spark_submit, execute, monkeypatch, captures):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__LISTENER_JAR", "/nowhere/openlineage-spark.jar")
    with pytest.raises(Exception, match="does not exist"):
        execute(operator(strict=True))
    assert captures() == []


def test_the_real_task_timeout_firing_while_collecting_leaves_the_task_green(
    spark_submit, execute, monkeypatch
):
    from airflow.providers.common.compat.sdk import timeout

    def endless(*_):
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(task_module, "merged_lineage", endless)
    task = operator()
    with timeout(seconds=3, error_message="execution_timeout"):
        execute(task)
    assert codes(task.get_openlineage_facets_on_complete(None)) == ["collection_cut"]


def test_the_task_timeout_firing_while_spark_runs_fails_the_task(
    spark_submit, execute, monkeypatch
):
    from airflow.providers.common.compat.sdk import timeout

    spark_submit.does("staging_chain", sleep=30)
    task = operator()
    with pytest.raises(AirflowTaskTimeout), timeout(seconds=2, error_message="too slow"):
        execute(task)
    lineage = task.get_openlineage_facets_on_failure(None)
    task.on_kill()  # as Airflow does after the timeout
    task._hook._submit_sp.wait(timeout=10)
    assert names(lineage.inputs) == ["/lake/customers", "/lake/orders", "/lake/rates"]


def test_partial_and_expand_take_the_arguments_of_the_mixin():
    with DAG("mapped", schedule=None):
        mapped = SparkLineageSubmitOperator.partial(
            task_id="revenue", application="job.py", strict=True
        ).expand(reads=[["/lake/a"], ["/lake/b"]])
    assert mapped.partial_kwargs["strict"] is True
    assert "reads" in mapped.template_fields
