"""Kubeflow's Spark operator, which calls spark-submit for each SparkApplication."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import yaml

from tests.cluster.submitting import until
from tests.kubernetes import programs
from tests.kubernetes.manifests import NAMESPACE, SPARK_OPERATOR, spark_operator_rights

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.kubernetes.control_plane import ControlPlane

_GROUP = "sparkoperator.k8s.io"
_WATCHED = {
    f"{_GROUP}/v1beta2": {"sparkapplications", "scheduledsparkapplications"},
    f"{_GROUP}/v1alpha1": {"sparkconnects"},
}
_STOP_S = 20


@contextmanager
def running(plane: ControlPlane, folder: Path, spark_home: Path) -> Iterator[None]:
    """Run the operator with an account of its own, for the jobs of the namespace.

    :param folder: to make, for all its files
    :param spark_home: of the spark-submit that it calls
    """
    built = programs.folder()
    folder.mkdir()
    for definition in (built / programs.DEFINITIONS).iterdir():
        plane.apply(yaml.safe_load_all(definition.read_text()))
    plane.apply(spark_operator_rights())
    kube_config = folder / "kubeconfig"
    kube_config.write_text(yaml.safe_dump(plane.kube_config(*SPARK_OPERATOR)))
    # Definitions are served a moment after they are there.
    until(lambda: all(plane.served(group) >= kinds for group, kinds in _WATCHED.items()))
    log_file = folder / "log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [
                str(built / "spark-operator"),
                *("controller", "start", f"--namespaces={NAMESPACE}"),
                "--enable-ui-service=false",
                "--health-probe-bind-address=0",
            ],
            cwd=folder,
            env={
                **os.environ,
                "SPARK_HOME": str(spark_home),
                "KUBECONFIG": str(kube_config),
                # As in a pod; spark-submit gets the token and the authority by the file.
                "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                "KUBERNETES_SERVICE_PORT": str(plane.port),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a spark-submit ends with it
        )
    try:
        until(lambda: process.poll() is not None or "Starting workers" in log_file.read_text())
        assert process.poll() is None, log_file.read_text()
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
