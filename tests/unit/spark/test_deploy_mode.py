"""Where a driver will run, and by which name it finds a jar there."""

from __future__ import annotations

import os
import re

import pytest

from airflow_provider_sparklineage.model.exceptions import (
    CaptureError,
    ListenerError,
    RemoteDriverError,
)
from airflow_provider_sparklineage.spark.submit.deploy_mode import (
    UPLOAD_PATH,
    DriverHost,
    container_folder,
    driver_host,
    reachable,
    reads_location,
    refuse_connect,
    require_reachable,
    waits_for_end,
)
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS
from airflow_provider_sparklineage.spark.submit.submission import Submission

CLUSTER = {"spark.submit.deployMode": "cluster"}


@pytest.mark.parametrize(
    ("submission", "master", "deploy_mode", "env", "expected"),
    [
        pytest.param({}, "local[2]", None, {}, DriverHost.WORKER, id="local"),
        pytest.param(
            {}, "yarn", None, {}, DriverHost.WORKER, id="YARN's client mode is the default"
        ),
        pytest.param(
            {}, "k8s://https://h", "client", {}, DriverHost.WORKER, id="Kubernetes, client"
        ),
        pytest.param({}, "yarn", "cluster", {}, DriverHost.YARN, id="flag"),
        pytest.param({"conf": CLUSTER}, "k8s://h", None, {}, DriverHost.KUBERNETES, id="conf"),
        pytest.param(
            {"file_properties": CLUSTER},
            "spark://h:7077",
            None,
            {},
            DriverHost.STANDALONE,
            id="file",
        ),
        pytest.param(
            {"conf": CLUSTER}, "yarn", "client", {}, DriverHost.WORKER, id="the flag beats conf"
        ),
        pytest.param(
            {}, "yarn", None, {"DEPLOY_MODE": "cluster"}, DriverHost.YARN, id="environment"
        ),
        pytest.param({}, "yarn-cluster", None, {}, DriverHost.YARN, id="an old master"),
    ],
)
def test_the_driver_runs_where_spark_submit_would_have_it(
    submission, master, deploy_mode, env, expected
):
    assert driver_host(Submission(**submission), master, deploy_mode, env) is expected


REMOTE = [host for host in DriverHost if host.is_remote]


@pytest.mark.parametrize("host", REMOTE)
def test_from_a_remote_driver_nothing_comes_back_but_by_a_mount_or_what_it_delivers(host):
    require_reachable(host, shared=True)
    require_reachable(host, shared=False, delivers=True)
    with pytest.raises(RemoteDriverError, match=rf"runs in {host} .* capture_location to a URL"):
        require_reachable(host, shared=False)


def test_a_driver_on_yarn_writes_into_the_folder_that_yarn_deletes():
    assert container_folder(DriverHost.YARN, "0b1c") == "sparklineage-0b1c"
    for host in (DriverHost.KUBERNETES, DriverHost.SERVICE):
        folders = {container_folder(host, "0b1c") for _ in range(3)}
        assert all(re.fullmatch("/tmp/sparklineage-0b1c-[0-9a-f]{32}", one) for one in folders)
        assert len(folders) == 3


def test_on_this_worker_nothing_is_in_the_way():
    require_reachable(DriverHost.WORKER, shared=False)


YARN_WAITS = "spark.yarn.submit.waitAppCompletion"
KUBERNETES_WAITS = "spark.kubernetes.submission.waitAppCompletion"
STANDALONE_WAITS = "spark.standalone.submit.waitAppCompletion"


@pytest.mark.parametrize(
    ("host", "submission", "waits"),
    [
        pytest.param(DriverHost.YARN, {}, True, id="YARN's default"),
        pytest.param(DriverHost.YARN, {"conf": {YARN_WAITS: " False "}}, False, id="YARN, conf"),
        pytest.param(
            DriverHost.YARN, {"file_properties": {YARN_WAITS: "false"}}, False, id="YARN, file"
        ),
        pytest.param(
            DriverHost.YARN, {"conf": {YARN_WAITS: False}}, False, id="YARN, no text but a boolean"
        ),
        pytest.param(
            DriverHost.YARN, {"conf": {KUBERNETES_WAITS: "false"}}, True, id="YARN, another's"
        ),
        pytest.param(DriverHost.KUBERNETES, {}, True, id="Kubernetes' default"),
        pytest.param(
            DriverHost.KUBERNETES, {"conf": {KUBERNETES_WAITS: "false"}}, False, id="Kubernetes"
        ),
        pytest.param(DriverHost.STANDALONE, {}, False, id="the default of Spark's own cluster"),
        pytest.param(
            DriverHost.STANDALONE, {"conf": {STANDALONE_WAITS: "true"}}, True, id="Spark's own"
        ),
        pytest.param(DriverHost.WORKER, {"conf": {YARN_WAITS: "false"}}, True, id="client mode"),
    ],
)
def test_whether_spark_submit_waits_for_the_end_is_known(host, submission, waits):
    submission = Submission(**submission)
    assert waits_for_end(submission, host, is_polled=False) is waits
    assert waits_for_end(submission, host, is_polled=True)


def test_yarn_takes_the_jar_along(tmp_path):
    assert reachable(DriverHost.YARN, "/opt/a.jar", tmp_path / "jars") == "/opt/a.jar"


@pytest.mark.parametrize("host", [DriverHost.KUBERNETES, DriverHost.STANDALONE])
def test_for_a_remote_driver_the_jar_is_on_the_shared_mount(tmp_path, host):
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"jar")
    share = tmp_path / "shared" / "jars"
    for _ in range(2):
        assert reachable(host, str(jar), share) == f"local://{share / 'a.jar'}"
    assert [(p.name, p.read_bytes()) for p in share.iterdir()] == [("a.jar", b"jar")]
    assert (share / "a.jar").stat().st_mode & 0o044 == 0o044  # the driver may be another user


def test_a_jar_that_was_built_again_is_copied_again(tmp_path):
    jar, share = tmp_path / "a.jar", tmp_path / "shared" / "jars"
    for content, built in ((b"one", 1_000), (b"two", 2_000)):  # of one size
        jar.write_bytes(content)
        os.utime(jar, (built, built))
        reachable(DriverHost.KUBERNETES, str(jar), share)
        assert (share / "a.jar").read_bytes() == content
    copied = (share / "a.jar").stat().st_ino
    reachable(DriverHost.KUBERNETES, str(jar), share)
    assert (share / "a.jar").stat().st_ino == copied


def test_a_copy_that_was_damaged_is_made_again(tmp_path):
    jar, share = tmp_path / "a.jar", tmp_path / "shared" / "jars"
    jar.write_bytes(b"whole")
    for _ in range(2):
        reachable(DriverHost.KUBERNETES, str(jar), share)
        assert (share / "a.jar").read_bytes() == b"whole"
        before = (share / "a.jar").stat()
        (share / "a.jar").write_bytes(b"whol\0")
        os.utime(share / "a.jar", ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_jar_that_is_on_the_mount_is_not_copied(tmp_path):
    jar = tmp_path / "shared" / "a.jar"
    jar.parent.mkdir()
    jar.touch()
    share = tmp_path / "shared" / "jars"
    assert reachable(DriverHost.KUBERNETES, str(jar), share) == f"local://{jar}"
    assert list(jar.parent.iterdir()) == [jar]


def test_a_url_stays_as_it_is(tmp_path):
    assert reachable(DriverHost.KUBERNETES, "s3a://jars/a.jar", tmp_path) == "s3a://jars/a.jar"


def test_a_mount_that_cannot_be_written_is_reported(tmp_path):
    (tmp_path / "a.jar").touch()
    (tmp_path / "file").touch()
    share = tmp_path / "file" / "jars"
    with pytest.raises(CaptureError, match="cannot be put on the shared mount"):
        reachable(DriverHost.KUBERNETES, str(tmp_path / "a.jar"), share)


@pytest.mark.parametrize(
    ("conf", "master", "env"),
    [
        pytest.param({"spark.remote": "sc://host"}, "local", {}, id="remote"),
        pytest.param({"spark.api.mode": "connect"}, "local", {}, id="api mode"),
        pytest.param({}, "sc://host", {}, id="master"),
        pytest.param({}, "local", {"SPARK_REMOTE": "sc://host"}, id="remote in the environment"),
        pytest.param({}, "local", {"SPARK_API_MODE": "Connect"}, id="mode in the environment"),
    ],
)
def test_spark_connect_is_refused(conf, master, env):
    with pytest.raises(ListenerError, match=r"Set spark\.api\.mode=classic") as caught:
        refuse_connect(Submission(conf=conf), master, env)
    assert "start the server with the OpenLineage listener" in str(caught.value)
    assert f"spark.extraListeners={LISTENER_CLASS}" in str(caught.value)


def test_classic_spark_is_not_refused():
    conf = {"spark.api.mode": "classic"}
    refuse_connect(Submission(conf=conf), "spark://h:7077", {"SPARK_API_MODE": "connect"})


UPLOADS = {UPLOAD_PATH: "s3a://lake/uploads"}


@pytest.mark.parametrize(
    ("host", "conf", "in_spark", "expected"),
    [
        (DriverHost.WORKER, {}, "hdfs://nn/lineage", False),
        (DriverHost.YARN, {}, "hdfs://nn/lineage", True),
        (DriverHost.YARN, {}, "s3a://lake/lineage", False),
        (DriverHost.KUBERNETES, {}, "s3a://lake/lineage", True),
        (DriverHost.KUBERNETES, UPLOADS, "s3a://lake/lineage", True),
        (DriverHost.KUBERNETES, UPLOADS, "hdfs://nn/lineage", False),
        (DriverHost.STANDALONE, {}, "hdfs://nn/lineage", False),
        (DriverHost.ELSEWHERE, {}, "s3a://lake/lineage", True),
        (DriverHost.SERVICE, {}, "hdfs://nn/lineage", True),
    ],
)
def test_spark_reads_the_tools_folder_where_it_must_or_certainly_can(
    host, conf, in_spark, expected
):
    assert reads_location(host, Submission(conf=conf), in_spark) is expected
