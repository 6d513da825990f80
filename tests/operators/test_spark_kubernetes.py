"""SparkApplications without Kubernetes: what is created, what comes back, and deferred tasks."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
import yaml
from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator
from airflow.providers.common.compat.sdk import AirflowException, TaskDeferred
from airflow.sdk import DAG
from kubernetes.client.models import V1EnvVar

from airflow_provider_sparklineage.operators import adapters
from airflow_provider_sparklineage.operators.adoption import adopting
from airflow_provider_sparklineage.operators.spark_kubernetes import SparkLineageKubernetesOperator
from tests import kubernetes_double
from tests.operators import outcomes
from tests.operators.outcomes import READ, degradations, facets, names
from tests.operators.test_rendering import DAY, dated, rendered
from tests.remote_driver import RecordedDriver
from tests.spark_submit_double import task_context

pytestmark = pytest.mark.airflow

SECRET = "pl4nted-s3cr3t"
PREFIX = "spark.openlineage.transport."
WITH_KEY = {
    f"{PREFIX}type": "http",
    f"{PREFIX}url": "http://marquez:5000",
    f"{PREFIX}auth.type": "api_key",
    f"{PREFIX}auth.apiKey": SECRET,
}


def application(**spec):
    """Give a SparkApplication as users write it."""
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "shop"},
        "spec": {
            "type": "Python",
            "mode": "cluster",
            "image": "spark:4.0.1",
            "mainApplicationFile": "local:///opt/job.py",
            "sparkVersion": "4.0.1",
            "driver": {"cores": 1, "serviceAccount": "spark"},
            "executor": {"instances": 1},
            **spec,
        },
    }


@pytest.fixture
def kubernetes(lake, monkeypatch, tmp_path):
    """Serve a Kubernetes whose drivers deliver what a recorded application does."""
    driver = RecordedDriver(tmp_path / "container")

    def does(created):
        driver(created["spec"].get("sparkConf") or {})

    with kubernetes_double.kubernetes(does=does) as server:
        connection = kubernetes_double.connection(server)
        monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", connection)
        yield server


def context_of(try_number=1):
    """Give what the operator asks for as well: a DAG, and its run."""
    context = task_context()
    context["ti"].try_number = try_number
    return {**context, "task_instance": context["ti"], "run_id": "manual", "dag": None}


@pytest.fixture
def context():
    return context_of()


def operator(cls=SparkLineageKubernetesOperator, **more):
    if "application_file" not in more:
        more = {"template_spec": application(), **more}
    return cls(**{"task_id": "revenue", "startup_check_interval_seconds": 1, **more})


def created(kubernetes):
    [one] = kubernetes.applications
    return one["spec"]


# --- a SparkApplication that is waited for --------------------------------------------------------


def test_what_the_application_did_is_the_lineage_of_the_task(kubernetes, execute):
    conf, deps = {"spark.shop": 1}, {"jars": ["local:///own.jar"], "repositories": ["https://m"]}
    task = operator(template_spec=application(sparkConf=conf, deps=deps))
    before = copy.deepcopy(task.template_spec)
    execute(task)
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    spec = created(kubernetes)
    assert spec["sparkConf"]["spark.shop"] == 1  # and no text
    own, listener = spec["deps"]["jars"]
    assert own == "local:///own.jar"
    assert listener.endswith("/openlineage-spark_2.13-1.53.0.jar")
    [observer] = spec["deps"]["pyFiles"]
    assert observer.endswith("/sparklineage_observer.zip")
    assert spec["deps"]["repositories"] == ["https://m"]
    assert "spark.driver.extraJavaOptions" not in spec["sparkConf"]
    assert task.template_spec == before
    assert kubernetes.deleted


def test_airflow_gives_no_parent_and_this_does(kubernetes, execute):
    execute(operator())
    conf = created(kubernetes)["sparkConf"]
    assert conf["spark.openlineage.parentJobName"] == "shop.revenue"
    assert conf["spark.openlineage.parentRunId"]


@pytest.mark.parametrize("form", ["text", "path"])
@pytest.mark.parametrize("is_nested", [False, True])
def test_an_application_file_is_read_and_has_the_listener(
    kubernetes, execute, tmp_path, form, is_nested
):
    body = application()
    more = {"volumes": [], "volume_mounts": [], "env_from": [], "node_selector": {"disk": "ssd"}}
    empty = ("config_map_mounts", "from_env_config_map", "from_env_secret", "image_pull_secrets")
    more |= dict.fromkeys((*empty, "env_vars", "affinity", "tolerations"))
    text = yaml.safe_dump({"spark": body, "kubernetes": more} if is_nested else body)
    if form == "path":
        (tmp_path / "shop.txt").write_text(text)
        text = str(tmp_path / "shop.txt")
    task = operator(application_file=text)
    execute(task)
    assert names(facets(task).inputs) == READ
    assert task.application_file == text
    assert task.template_spec is None
    assert created(kubernetes)["driver"].get("nodeSelector") == (
        {"disk": "ssd"} if is_nested else None
    )


def test_parts_of_the_users_own_conf_stay(kubernetes, execute):
    own = {"spark.extraListeners": "shop.Listener", "spark.openlineage.x": "y"}
    execute(operator(template_spec=application(sparkConf={**own, "spark.jars": "local:///a.jar"})))
    spec = created(kubernetes)
    assert spec["sparkConf"]["spark.extraListeners"].split(",")[0] == "shop.Listener"
    assert spec["sparkConf"]["spark.openlineage.x"] == "y"
    assert spec["deps"]["jars"][0] == "local:///a.jar"


def test_an_argument_of_the_task_replaces_the_application(kubernetes, execute):
    task = operator(code_path="local:///opt/shop.jar")
    execute(task)
    assert created(kubernetes)["mainApplicationFile"] == "local:///opt/shop.jar"
    assert "capture_endpoint" in degradations(task)["driver_elsewhere"]


def test_a_driver_that_fails_has_an_event_with_what_it_did(kubernetes, execute):
    kubernetes.phases = ["Failed"]
    task = operator()
    with pytest.raises(AirflowException, match="returned a failure"):
        execute(task)
    assert names(facets(task, "failure").inputs) == READ


def test_an_application_that_is_not_taken_is_not_waited_for(kubernetes, execute, lake):
    kubernetes.refuses = True
    task = operator()
    with pytest.raises(Exception, match="403"):
        execute(task)
    assert facets(task, "failure").inputs == []
    assert not [*lake.glob("*-try*")]


@pytest.mark.parametrize("version", [None, "latest"])
def test_the_version_of_spark_has_to_be_known(kubernetes, execute, version):
    task = operator(template_spec=application(sparkVersion=version))
    execute(task)
    assert "sparkConf" not in created(kubernetes)
    message = degradations(task)["listener_unavailable"]
    assert "Set [sparklineage] spark_version" in message
    assert "the Spark operator of Kubernetes" in message


@pytest.mark.parametrize(
    ("more", "scala"),
    [
        ({"sparkVersion": "3.5.6"}, "2.12"),
        ({"sparkVersion": "3.5.6-scala2.13"}, "2.13"),
        ({"sparkVersion": "3.5.6", "image": "apache/spark:3.5.6-scala2.13-java17"}, "2.13"),
        ({"sparkVersion": "3.5.6-scala2.12", "image": "spark:scala2.13"}, "2.12"),
        ({"sparkVersion": "3.5.6", "driver": {"image": "spark:3.5_scala-2.13"}}, "2.13"),
        ({"sparkVersion": "4.0.1", "image": None}, "2.13"),
    ],
)
def test_the_scala_is_that_of_the_version_or_of_the_image(context, more, scala):
    _, target = adapters.adapter("spark_kubernetes").read(
        operator(template_spec=application(**more)), context
    )
    assert target.spark[1] == scala


def test_the_account_decides_what_the_driver_may_read(context):
    def account(**more):
        return adapters.adapter("spark_kubernetes").read(operator(**more), context)[1].account

    theirs = application(driver={"serviceAccount": "other"})
    others = (account(namespace="other"), account(kubernetes_conn_id=None))
    assert len({account(), *others, account(template_spec=theirs)}) == 4


def test_without_a_place_that_both_reach_the_application_is_created_as_it_is(
    kubernetes, execute, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(tmp_path / "captures"))
    task = operator()
    execute(task)
    assert "sparkConf" not in created(kubernetes)
    assert "the Spark operator of Kubernetes" in degradations(task)["driver_elsewhere"]


@pytest.mark.parametrize("by", ["the application", "Airflow"])
def test_no_secret_is_in_the_application_and_the_lineage_is_whole(
    kubernetes, execute, monkeypatch, by
):
    provider = "inject_transport_information_into_spark_properties"
    monkeypatch.setattr(adapters, provider, lambda *_: WITH_KEY)
    if by == "Airflow":
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__SPARK_INJECT_TRANSPORT_INFO", "True")
        task = operator()
    else:
        task = operator(template_spec=application(sparkConf=WITH_KEY))
    execute(task)
    assert SECRET not in json.dumps(kubernetes.applications)
    assert "the Spark operator of Kubernetes" in degradations(task)["transport_left_out"]
    assert names(facets(task).inputs) == READ


def test_airflows_transport_without_a_key_is_given_where_it_is_asked_for(
    kubernetes, execute, monkeypatch
):
    public = {key: value for key, value in WITH_KEY.items() if "auth" not in key}
    provider = "inject_transport_information_into_spark_properties"
    monkeypatch.setattr(adapters, provider, lambda *_: public)
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__SPARK_INJECT_TRANSPORT_INFO", "True")
    execute(operator())
    conf = created(kubernetes)["sparkConf"]
    assert conf[f"{PREFIX}transports.user.url"] == "http://marquez:5000"


KEY = {"name": "OPENLINEAGE__TRANSPORT__AUTH__API_KEY"}
SECRET_KEY = {**KEY, "valueFrom": {"secretKeyRef": {"name": "marquez", "key": "key"}}}
BY_SECRETS = {
    "env": {"env": [{"name": "STAGE", "value": "x"}, SECRET_KEY]},
    "envSecretKeyRefs": {"envSecretKeyRefs": {KEY["name"]: {"name": "marquez", "key": "key"}}},
    "envVars": {"envVars": {"OPENLINEAGE__TRANSPORT__TYPE": "console"}},
}


@pytest.mark.parametrize("form", BY_SECRETS)
def test_a_transport_from_a_secret_stays_alone(kubernetes, execute, form):
    task = operator(template_spec=application(driver=BY_SECRETS[form]))
    execute(task)
    spec = created(kubernetes)
    assert "sparkConf" not in spec
    for key, value in BY_SECRETS[form].items():
        if key != "env":
            assert spec["driver"][key] == value
        else:
            assert spec["driver"][key][:2] == value
    message = degradations(task)["listener_unavailable"]
    assert "OPENLINEAGE__TRANSPORT" in message
    assert "collect_only" in message


NESTED = {
    "a mapping": {KEY["name"]: "x"},
    "mappings": [{**KEY, "value": "x"}],
    "objects": [V1EnvVar(**KEY, value="x"), V1EnvVar(name="STAGE", value="x")],
    "none": None,
}


@pytest.mark.parametrize("form", NESTED)
def test_variables_of_the_nested_form_count_too(context, form):
    body = {"spark": application(), "kubernetes": {"env_vars": NESTED[form]}}
    [submission], _ = adapters.adapter("spark_kubernetes").read(
        operator(template_spec=body), context
    )
    assert [*submission.env_vars] == ([] if form == "none" else [KEY["name"]])


def test_a_transport_from_a_secret_may_be_given_up(kubernetes, execute, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__EXISTING_TRANSPORT", "collect_only")
    task = operator(template_spec=application(driver=BY_SECRETS["env"]))
    execute(task)
    assert names(facets(task).inputs) == READ


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (application(sparkConf="spark.a=b"), "mappings"),
        ({**application(), "kind": "ScheduledSparkApplication"}, "SparkApplication"),
        ({**application(), "apiVersion": "spark.apache.org/v1"}, "SparkApplication"),
        (application(deps={"jars": "local:///own.jar"}), "lists"),
        (application(mode="in-cluster-client"), "mode: cluster"),
    ],
)
def test_another_shape_is_left_to_airflow(kubernetes, execute, broken, reason):
    task = operator(template_spec=copy.deepcopy(broken))
    execute(task)
    spec = created(kubernetes)
    for name in ("sparkConf", "deps"):
        assert spec.get(name) == broken["spec"].get(name)
    assert reason in degradations(task)["injection_failed"]
    assert task.lineage_properties == {}


@pytest.mark.parametrize("broken", ["text: [", "text", ""])
def test_a_file_of_another_shape_is_left_to_airflow(kubernetes, execute, broken):
    task = operator(application_file=broken)
    assert task.lineage_properties == {}
    with pytest.raises(Exception, match=r"resource definition|dictionary|should be passed"):
        execute(task)
    assert kubernetes.applications == []


def test_templates_in_the_application_are_traced(tmp_path):
    body = application(arguments=["{{ ds }}"], sparkConf={"spark.day": "{{ ds_nodash }}"})
    task = rendered(operator(template_spec=body))
    assert {name: days for name, days in dated(task).items() if days} == {
        "template_spec[spec][arguments][0]": [DAY],
        "template_spec[spec][sparkConf][spark.day]": ["20240506"],
    }
    file = yaml.safe_dump(body)
    traced = dated(rendered(operator(application_file=file)))
    assert sorted(traced["application_file"]) == sorted([DAY, "20240506"])


def test_an_adopted_application_has_the_same_lineage(kubernetes, execute):
    with DAG("d", schedule=None):
        task = operator(SparkKubernetesOperator)
    adopting.adopt(task)
    assert isinstance(task, SparkLineageKubernetesOperator)
    execute(task)
    assert names(facets(task).inputs) == READ


# --- a driver of an earlier try -------------------------------------------------------------------


@pytest.fixture
def lost(kubernetes, execute, lake):
    """Let the worker of a first try be lost while the driver runs, and deliver afterwards."""
    execute(operator())  # drivers are known to reach the location
    kubernetes.applications.clear()
    kubernetes.does, does = None, kubernetes.does
    kubernetes.phases = ["Running"]
    with pytest.raises(TaskDeferred):  # the quickest way to leave without collecting
        execute(operator(deferrable=True))
    [first] = kubernetes.applications
    does(first)


def test_a_driver_of_an_earlier_try_is_what_the_retry_reports(lost, kubernetes, execute):
    kubernetes.phases = ["Running", "Succeeded"]
    task = operator()
    execute(task, context_of(2))
    assert len(kubernetes.applications) == 1
    assert "by try 1" in degradations(task)["submission_resumed"]
    assert names(facets(task).inputs) == READ


def test_a_driver_of_an_earlier_try_is_what_a_deferred_retry_reports(lost, kubernetes, execute):
    kubernetes.phases = ["Running"]
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(deferrable=True), context_of(2))
    kubernetes.phases = ["Succeeded"]
    task = succeeds(kubernetes, caught.value, context=context_of(2))
    assert "by try 1" in degradations(task)["submission_resumed"]
    assert names(facets(task).inputs) == READ


def test_without_reattaching_a_retry_runs_the_application_again(lost, kubernetes, execute):
    kubernetes.phases = ["Succeeded"]
    kubernetes.pods.clear()
    task = operator(reattach_on_restart=False)
    execute(task, context_of(2))
    assert len(kubernetes.applications) == 2
    assert "submission_resumed" not in degradations(task)


# --- a task that is deferred ----------------------------------------------------------------------


def resumed(task, method, kwargs, context=None):
    return outcomes.resumed(task, method, kwargs, context or context_of())


def event(kubernetes, status="success"):
    [pod] = kubernetes.pods
    return {"status": status, "name": pod, "namespace": "default", "message": f"it is {status}"}


def succeeds(kubernetes, deferred, context=None):
    """Resume a task whose driver has succeeded, by a new operator; give that."""
    task = operator(deferrable=True)
    resumed(task, deferred.method_name, {"event": event(kubernetes)}, context)
    return task


@pytest.fixture
def deferred(kubernetes, execute):
    """Defer a task; give what Airflow is given."""
    kubernetes.phases = ["Running"]
    with pytest.raises(TaskDeferred) as caught:
        execute(operator(deferrable=True))
    kubernetes.phases = ["Succeeded"]
    return caught.value


def test_the_process_that_resumes_has_the_whole_lineage(deferred, kubernetes, lake):
    assert [*lake.glob("*-try*")]
    task = succeeds(kubernetes, deferred)
    assert names(facets(task).inputs) == READ
    assert degradations(task) == {}
    assert not [*lake.glob("*-try*")]


def test_a_trigger_that_reports_a_failed_driver_is_an_end(deferred, kubernetes):
    kubernetes.phases = ["Failed"]
    task = operator(deferrable=True)
    with pytest.raises(AirflowException, match="returned a failure"):
        resumed(task, deferred.method_name, {"event": event(kubernetes, "failed")})
    assert names(facets(task, "failure").inputs) == READ


def test_a_trigger_that_fails_is_an_end(deferred):
    task = operator(deferrable=True)
    with pytest.raises(AirflowException):
        resumed(task, "__fail__", {"error": "Trigger failure"})
    assert names(facets(task, "failure").inputs) == READ


def test_a_task_that_is_deferred_again_keeps_its_lineage(deferred, kubernetes):
    kubernetes.phases = ["Running"]
    task = operator(deferrable=True)
    with pytest.raises(TaskDeferred) as caught:
        resumed(task, deferred.method_name, {"event": event(kubernetes, "error")})
    kubernetes.phases = ["Succeeded"]
    assert names(facets(succeeds(kubernetes, caught.value)).inputs) == READ


def test_switched_off_the_task_is_stock(kubernetes, execute):
    task = operator(lineage=False)
    execute(task)
    assert task.get_openlineage_facets_on_complete is None
    assert "sparkConf" not in created(kubernetes)


def test_without_airflows_provider_the_import_says_what_to_install():
    module = "airflow.providers.cncf.kubernetes.operators.spark_kubernetes"
    code = (
        f"import sys; sys.modules['{module}'] = None\n"
        "import airflow_provider_sparklineage.operators.spark_kubernetes"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'airflow-provider-sparklineage[kubernetes]'" in done.stderr


class MadeAnew(SparkLineageKubernetesOperator):
    """An operator of the user's that sets jars whenever it is asked for the body."""

    def manage_template_specs(self):
        body = super().manage_template_specs()
        body["spark"]["spec"]["deps"] = {"jars": ["s3a://own.jar"]}
        return body


def test_a_body_that_the_tasks_own_code_makes_is_not_half_changed(kubernetes, execute):
    task = operator(MadeAnew)
    before = task.template_spec
    execute(task)
    assert task.template_spec == before
    [created] = kubernetes.applications
    assert "spark.extraListeners" not in (created["spec"].get("sparkConf") or {})
    assert "own code" in degradations(task)["injection_failed"]
