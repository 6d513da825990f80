"""spark-submit in cluster mode, with the rights and the pods that are documented."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.pods import truth
from tests.cluster.submitting import until
from tests.kubernetes.manifests import ACCOUNTS, NAMESPACE, documented, granted, without

_JOB_S = 600
"""A job takes half a minute, or twenty times as long if the machine is busy."""
_OF_PODS = ("pods", "configmaps", "services")


def test_a_job_in_a_restricted_namespace_has_the_whole_event(submit, lake, node, reported, asked):
    ran = submit("staging_chain", lake)
    assert ran.error is None
    assert ran.degradations == {}
    assert reported() == truth("staging_chain")
    driver, [executor] = node.driver, node.executors  # it was one that wrote
    assert "Saved output of task" in executor.log
    assert [*(driver.root / "tmp").glob("sparklineage-*")] == []  # what was captured was there
    # It was the driver's own account that made the executor.
    made = [r for r in asked(ACCOUNTS["driver"]) if ("pods", "create") in r.rights]
    assert [r.name for r in made] == [executor.name]
    for name in ("airflow", "driver"):
        used = asked(ACCOUNTS[name])
        assert [r for r in used if r.code == 403] == []
        # A task that is killed deletes its driver, a driver the executors that it has lost.
        assert granted(name) - {right for r in used for right in r.rights} == {("pods", "delete")}


def test_all_that_a_job_left_goes_with_its_driver(submit, lake, node, plane):
    def left():
        found = [o for kind in _OF_PODS for o in plane.objects(kind, NAMESPACE)]
        return {o["metadata"]["name"] for o in found} - {"kube-root-ca.crt"}

    assert submit("writes_nothing", lake).error is None
    driver = node.driver.name
    assert left() > {driver}
    plane.delete("pods", NAMESPACE, driver)
    until(lambda: not left())


def test_pods_that_are_not_restricted_are_refused(submit, lake, tmp_path, node):
    bare = tmp_path / "bare.yaml"
    bare.write_text('{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{}]}}')
    conf = {"spark.kubernetes.driver.podTemplateFile": str(bare)}
    ran = submit("staging_chain", lake, conf=conf)
    assert "violates PodSecurity" in str(ran.error)
    assert [*ran.degradations] == ["no_events"]
    assert node.pods == {}


@pytest.mark.parametrize(
    ("account", "resource", "verb"),
    [("airflow", "configmaps", "create"), ("driver", "pods", "get")],
)
def test_one_right_less_ends_the_job(submit, lake, plane, account, resource, verb):
    plane.apply(without(account, resource, verb))
    try:
        ran = submit("staging_chain", lake)
    finally:
        plane.apply(documented(account))
    assert ran.error is not None
    assert {*ran.degradations} & {"no_events", "driver_elsewhere"}


@pytest.mark.parametrize("by", ["kubectl", "Airflow"])
def test_a_driver_that_is_deleted_reports_what_it_had_delivered(
    by, submit, lake, node, plane, delivered, reported, asked
):
    operator = submit.operator("waits_between", lake)
    with ThreadPoolExecutor(1) as thread:
        running = thread.submit(submit.execute, operator)
        until(lambda: running.done() or delivered("/before"), _JOB_S)
        driver = node.driver.name
        if by == "Airflow":
            operator.on_kill()
        else:
            plane.delete("pods", NAMESPACE, driver)
        ran = running.result(_JOB_S)
    assert ran.error is not None
    assert {"reads orders dt=2024-05-06", "writes before"} <= {*reported()}
    deleted = [r.name for r in asked(ACCOUNTS["airflow"]) if ("pods", "delete") in r.rights]
    assert deleted == ([driver] if by == "Airflow" else [])
    until(lambda: plane.objects("pods", NAMESPACE) == [])


def test_airflow_asks_for_the_end_with_its_own_token(submit, lake, reported):
    ran = submit("staging_chain", lake, track_driver_via_k8s_api=True, durable=True)
    assert ran.error is None
    assert ran.degradations == {}
    assert reported() == truth("staging_chain")
