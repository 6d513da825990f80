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

import getpass
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import requests
from fsspec.implementations.webhdfs import WebHDFS

from airflow_provider_sparklineage.spark.submit import commands
from tests import maven
from tests.cluster import daemons, kerberos, shared_service
from tests.cluster.shared_service import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

HADOOP = "3.4.1"
JARS = (
    f"org.apache.hadoop:hadoop-common:{HADOOP}",
    f"org.apache.hadoop:hadoop-hdfs:{HADOOP}",
    f"org.apache.hadoop:hadoop-yarn-server-resourcemanager:{HADOOP}",
    f"org.apache.hadoop:hadoop-yarn-server-nodemanager:{HADOOP}",
    # The ResourceManager's pages need it, which its own file does not say.
    f"org.apache.hadoop:hadoop-yarn-server-timelineservice:{HADOOP}",
    "org.slf4j:slf4j-reload4j:1.7.36",
)
"""Hadoop's daemons as they are installed. In the jar for mini clusters, which has all of them, the
ResourceManager's API writes broken JSON; and a JVM with two daemons serves the pages of only one.
"""
KDC_JARS = (f"org.apache.hadoop:hadoop-minikdc:{HADOOP}", JARS[-1])

_COMMAND_S = 120


class MiniCluster:
    """One that runs, until everybody who uses it has stopped."""

    def __init__(self, folder: Path, running: shared_service.Use) -> None:
        self.folder = folder
        self.stop = running.stop
        self.conf = folder / "conf"
        """For ``HADOOP_CONF_DIR``."""
        addresses = running.facts
        self.namenode: str = addresses["namenode"]
        """``127.0.0.1:<port>`` of ``hdfs://``."""
        self.webhdfs: str = addresses["webhdfs"]
        """``127.0.0.1:<port>`` of WebHDFS."""
        self.resource_manager = f"http://{addresses['resource_manager']}"
        """URL of the ResourceManager's REST API and pages."""

    def connection(self, user: str) -> dict[str, Any]:
        """Give an Airflow connection by which a user finds WebHDFS."""
        host, _, port = self.webhdfs.partition(":")
        return {"conn_type": "webhdfs", "host": host, "port": int(port), "login": user}

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
        self._run("org.apache.hadoop.fs.FsShell", "-put", *files, target, **self.variables(owner))

    def dfsadmin(self, *arguments: str) -> None:
        """Run ``hdfs dfsadmin`` as the superuser."""
        self._run("org.apache.hadoop.hdfs.tools.DFSAdmin", *arguments)

    def variables(self, user: str) -> dict[str, str]:
        """Give the environment in which Hadoop's clients are a user."""
        return {"HADOOP_USER_NAME": user}

    def _run(self, *of_hadoop: str, **variables: str) -> None:
        command = daemons.command(self.folder, [*map(str, maven.jars(*JARS))], str(java()))
        done = subprocess.run(
            [*command, *of_hadoop],
            env=shared_service.environment() | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_COMMAND_S,
            check=False,
        )
        if done.returncode:
            raise ServiceError(done.stdout)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        url = f"{self.resource_manager}/ws/v1/cluster/{path}"
        answer = self._asking().request(method, url, json=body, timeout=30)
        answer.raise_for_status()
        return answer.json()

    def _asking(self) -> requests.Session:
        return requests.Session()


class SecureCluster(MiniCluster):
    """One that believes nobody without a ticket; tickets are files in its folder."""

    def __init__(self, folder: Path, running: shared_service.Use) -> None:
        super().__init__(folder, running)
        self.keytab = kerberos.keytab(folder)

    def connection(self, user: str) -> dict[str, Any]:  # noqa: ARG002  (the ticket says who)
        """Give an Airflow connection that finds WebHDFS, and asks by the process's ticket."""
        port = int(self.webhdfs.partition(":")[2])
        trusted = str(kerberos.certificate(self.folder))
        extra = {"kerberos": True, "use_ssl": True, "verify": trusted}
        return {"conn_type": "webhdfs", "host": kerberos.HOST, "port": port, "extra": extra}

    def files(self, user: str | None = None) -> WebHDFS:
        """Open its files with a user's key, or the superuser's."""
        principal = f"{user}@{kerberos.REALM}" if user else kerberos.SUPERUSER_PRINCIPAL
        port = int(self.webhdfs.partition(":")[2])
        files = WebHDFS(kerberos.HOST, port, use_https=True, skip_instance_cache=True)
        files.session = kerberos.asking(self.folder, principal)
        return files

    def _asking(self) -> requests.Session:
        return kerberos.asking(self.folder, kerberos.SUPERUSER_PRINCIPAL)

    def variables(self, user: str) -> dict[str, str]:
        """Give the environment in which Hadoop's clients are a user: it has the user's ticket."""
        return {"KRB5CCNAME": str(kerberos.ticket(self.folder, user))}


def start(folder: Path, *, yarn: bool = True, secure: bool = False) -> MiniCluster:
    """Start a cluster in a folder of its own, or use the one that runs there.

    :param yarn: whether there is more than HDFS
    :param secure: whether Kerberos and TLS are demanded; such a one is a :class:`SecureCluster`
    :raise ServiceError: if it does not start
    :raise maven.JarsError: if Hadoop cannot be fetched
    """
    jars, kdc_jars = (
        os.pathsep.join(map(str, maven.jars(*wanted))) if wanted else ""
        for wanted in (JARS, KDC_JARS if secure else ())
    )
    folder = folder.resolve()

    def prepare() -> None:
        for name in daemons.MADE:  # by an earlier one
            shutil.rmtree(folder / name, ignore_errors=True)

    services = ["yarn"] if yarn else []
    arguments = [str(java()), jars, kdc_jars, *services]
    running = shared_service.use(folder, daemons.__name__, *arguments, prepare=prepare)
    return SecureCluster(folder, running) if secure else MiniCluster(folder, running)


@contextmanager
def running(folder: Path, *, yarn: bool = True, secure: bool = False) -> Iterator[MiniCluster]:
    """Use a cluster, as :func:`start` gives it, for a while."""
    cluster = start(folder, yarn=yarn, secure=secure)
    try:
        yield cluster
    finally:
        cluster.stop()


def java() -> Path:
    """Find the Java that runs all services.

    :raise ServiceError: if there is none
    """
    found = commands.find_java(os.environ)
    if found is None:
        message = "There is no Java: install one, or set JAVA_HOME."
        raise ServiceError(message)
    return found
