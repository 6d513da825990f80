"""A Hadoop of this machine's own: HDFS and YARN on loopback, as long as somebody uses it.

Four daemons of Hadoop itself (no doubles of them): NameNode with WebHDFS, DataNode,
ResourceManager with its REST API, NodeManager. They need a JRE, and nothing else that is
installed. ::

    with mini_cluster.running(folder) as cluster:
        os.environ["HADOOP_CONF_DIR"] = str(cluster.conf)
        requests.get(f"{cluster.resource_manager}/ws/v1/cluster/apps")

Several processes may use one at the same time; it ends with the last of them, however that ends.
Whoever runs it is Hadoop's superuser; be somebody else by ``HADOOP_USER_NAME``.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from fsspec.implementations.webhdfs import WebHDFS

from airflow_provider_sparklineage.spark.submit import commands
from tests import maven
from tests.cluster import daemons

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_HADOOP = "3.4.1"
JARS = (
    f"org.apache.hadoop:hadoop-common:{_HADOOP}",
    f"org.apache.hadoop:hadoop-hdfs:{_HADOOP}",
    f"org.apache.hadoop:hadoop-yarn-server-resourcemanager:{_HADOOP}",
    f"org.apache.hadoop:hadoop-yarn-server-nodemanager:{_HADOOP}",
    # The ResourceManager's pages need it, which its own file does not say.
    f"org.apache.hadoop:hadoop-yarn-server-timelineservice:{_HADOOP}",
    "org.slf4j:slf4j-reload4j:1.7.36",
)
"""Hadoop's daemons as they are installed. In the jar for mini clusters, which has all of them, the
ResourceManager's API writes broken JSON; and a JVM with two daemons serves the pages of only one.
"""

START_S = 120  # eight, on two quiet cores
STOP_S = 60


class ClusterError(Exception):
    """Raised when no cluster can be started; says why."""


class MiniCluster:
    """One that runs, until everybody who uses it has stopped."""

    def __init__(
        self, folder: Path, users: TextIO, starter: subprocess.Popen[bytes] | None
    ) -> None:
        self.folder = folder
        self.conf = folder / "conf"
        """For ``HADOOP_CONF_DIR``."""
        addresses = json.loads((folder / daemons.READY).read_text())
        self.namenode: str = addresses["namenode"]
        """``127.0.0.1:<port>`` of ``hdfs://``."""
        self.webhdfs: str = addresses["webhdfs"]
        """``127.0.0.1:<port>`` of WebHDFS."""
        self.resource_manager = f"http://{addresses['resource_manager']}"
        """URL of the ResourceManager's REST API and pages."""
        self._users = users
        self._process = starter

    @property
    def hdfs(self) -> str:
        return f"hdfs://{self.namenode}"

    def spark_conf(self, spark_home: Path | str) -> dict[str, str]:
        """Give what makes an application on YARN small and quick, as Spark properties."""
        quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        return {
            # Else each submission uploads 400 MB.
            "spark.yarn.jars": f"local:{spark_home}/jars/*",
            "spark.pyspark.python": sys.executable,
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.yarn.am.memory": "512m",
            "spark.driver.extraJavaOptions": quick,
            "spark.executor.extraJavaOptions": quick,
            "spark.executor.instances": "1",
            "spark.yarn.maxAppAttempts": "1",
            "spark.yarn.report.interval": "200ms",
            "spark.yarn.scheduler.heartbeat.interval-ms": "200",
            "spark.yarn.scheduler.initial-allocation.interval": "50ms",
            "spark.locality.wait": "0",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
        }

    def applications(self) -> list[dict[str, Any]]:
        """Give what the ResourceManager says of all applications."""
        apps = self._ask("GET", "apps")["apps"]
        return apps["app"] if apps else []

    def application(self, application_id: str) -> dict[str, Any]:
        """Give what the ResourceManager says of one."""
        app: dict[str, Any] = self._ask("GET", f"apps/{application_id}")["app"]
        return app

    def kill(self, application_id: str) -> None:
        """Do what ``yarn application -kill`` does."""
        self._ask("PUT", f"apps/{application_id}/state", {"state": "KILLED"})

    def files(self, user: str | None = None) -> WebHDFS:
        """Open its files, as the superuser if nobody else is named."""
        host, _, port = self.webhdfs.partition(":")
        return WebHDFS(host, int(port), user=user or getpass.getuser())

    def make_folder(self, path: str, owner: str, permission: str = "755") -> None:
        """Make a folder of HDFS that belongs to a user, and to the group of those who submit."""
        files = self.files()
        files.makedirs(path, exist_ok=True)
        files.chown(path, owner=owner, group=daemons.GROUP)
        files.chmod(path, permission)

    def log(self, application_id: str) -> str:
        """Give what the application's containers have printed; the first one's is the driver's."""
        files = sorted((self.folder / "logs" / application_id).glob("container_*/std*"))
        return "\n".join(f"== {f}\n{f.read_text(errors='replace')}" for f in files)

    def put(self, sources: Iterable[Path], target: str, owner: str) -> None:
        """Copy files and folders into a new folder of HDFS: hundreds of files in seconds."""
        self.make_folder(target, owner)
        files = [str(source) for source in sources]
        self._run("org.apache.hadoop.fs.FsShell", "-put", *files, target, HADOOP_USER_NAME=owner)

    def dfsadmin(self, *arguments: str) -> None:
        """Run ``hdfs dfsadmin`` as the superuser."""
        self._run("org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments)

    def _run(self, *of_hadoop: str, **variables: str) -> None:
        command = daemons.command(self.folder, [*map(str, maven.jars(*JARS))], str(_java()))
        done = subprocess.run(
            [*command, *of_hadoop],
            env=daemons.environment() | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=START_S,
            check=False,
        )
        if done.returncode:
            raise ClusterError(done.stdout)

    def stop(self) -> None:
        """Use it no longer, and wait for its end if nobody else does."""
        self._users.close()
        if self._process is not None and not self._is_used():
            self._process.wait(STOP_S)

    def _is_used(self) -> bool:
        with (self.folder / daemons.USERS).open() as users:
            try:
                fcntl.flock(users, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:  # by the process that ends it
                return False
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(
            f"{self.resource_manager}/ws/v1/cluster/{path}",
            json.dumps(body).encode() if body is not None else None,
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)


def start(folder: Path, *, yarn: bool = True) -> MiniCluster:
    """Start a cluster in a folder of its own, or use the one that runs there.

    :param yarn: whether there is more than HDFS
    :raise ClusterError: if it does not start
    :raise maven.JarsError: if Hadoop cannot be fetched
    """
    jars = maven.jars(*JARS)
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    users = (folder / daemons.USERS).open("a")
    fcntl.flock(users, fcntl.LOCK_SH)  # one that is being ended has it alone
    with (folder / "starting").open("a") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        runs = (folder / daemons.READY).exists()
        process = None if runs else _started(folder, jars, yarn=yarn)
    return MiniCluster(folder, users, process)


@contextmanager
def running(folder: Path, *, yarn: bool = True) -> Iterator[MiniCluster]:
    """Use a cluster, as :func:`start` gives it, for a while."""
    cluster = start(folder, yarn=yarn)
    try:
        yield cluster
    finally:
        cluster.stop()


def _started(folder: Path, jars: list[Path], *, yarn: bool) -> subprocess.Popen[bytes]:
    for name in daemons.MADE:  # by an earlier one
        shutil.rmtree(folder / name, ignore_errors=True)
    command = [sys.executable, "-m", "tests.cluster.daemons", str(folder), str(_java())]
    command += [os.pathsep.join(map(str, jars)), *(["yarn"] if yarn else [])]
    log = folder / "daemons.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[2],
            env=daemons.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # an interrupt of the terminal is its users', who end it
        )
    ends = time.monotonic() + START_S
    while not (folder / daemons.READY).exists():
        if process.poll() is not None or time.monotonic() > ends:
            process.terminate()
            process.wait(STOP_S)
            message = f"No cluster has started in {folder}: {log.read_text(errors='replace')}"
            raise ClusterError(message)
        time.sleep(0.1)
    return process


def _java() -> Path:
    found = commands.find_java(os.environ)
    if found is None:
        message = "There is no Java: install one, or set JAVA_HOME."
        raise ClusterError(message)
    return found
