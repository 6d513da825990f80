"""A real Apache Livy on loopback, which starts its drivers on a mini cluster.

As :mod:`.mini_cluster`, it is shared by several processes and ends with the last of them. Its
drivers are not this process's user, and read neither its files nor its environment: what they get
is in the batch that is posted.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import maven
from tests.cluster import daemons, mini_cluster, shared_service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.mini_cluster import MiniCluster

_LIVY = "org.apache.livy:livy-server:0.7.1-incubating"
_NOT_NEEDED = (
    "org.apache.hadoop:*",  # 2.7; the cluster's own is there
    "org.scala-lang:scala-compiler",
)
_ALONE = (
    "org.scala-lang:scala-library:2.11.12",
    # What it needs is there, with the ResourceManager.
    f"org.apache.hadoop:hadoop-yarn-client:{mini_cluster.HADOOP}",
)

LOG = "livy.log"
_SERVES = re.compile(r"Starting server on (http://\S+?)\.?$", re.MULTILINE)
_STOP_S = 10


class Livy:
    """A server that runs, until everybody who uses it has stopped."""

    def __init__(self, folder: Path, running: shared_service.Use) -> None:
        self.url = running.facts["url"]
        self.stop = running.stop
        self._log = folder / LOG

    @property
    def connection(self) -> str:
        """The connection to it, as JSON."""
        scheme, _, address = self.url.partition("://")
        host, _, port = address.partition(":")
        return json.dumps({"conn_type": "livy", "schema": scheme, "host": host, "port": int(port)})

    def batches(self) -> list[dict[str, Any]]:
        """Give what it says of all batches."""
        found: list[dict[str, Any]] = self._ask("GET", "batches?size=1000")["sessions"]
        return found

    def delete(self, batch: int) -> None:
        """End a batch, as anybody may who reaches the server."""
        self._ask("DELETE", f"batches/{batch}")

    def output(self, batch: int) -> str:
        """Give the output of the spark-submit of a batch."""
        lines: list[str] = self._ask("GET", f"batches/{batch}/log?size=-1")["log"]
        return "\n".join(lines)

    @property
    def log(self) -> str:
        """What the server has logged."""
        return self._log.read_text(errors="replace")

    def _ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(f"{self.url}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            return json.load(response)


@contextmanager
def running(cluster: MiniCluster, user: str, spark_home: Path, local: Path) -> Iterator[Livy]:
    """Use a Livy of a cluster for a while; it is started if none runs there.

    :param user: who its batches are, for the cluster
    :param spark_home: the Spark that it runs
    :param local: folder of this machine whose files may be submitted
    :raise shared_service.ServiceError: if it does not start
    :raise maven.JarsError: if it cannot be fetched
    """
    jars = [*maven.jars(_LIVY, without=_NOT_NEEDED), *map(maven.jar, _ALONE)]
    # Hadoop's come last: Livy has older versions of what both need, and wants those.
    jars += maven.jars(*mini_cluster.JARS)
    folder = cluster.folder / "livy"
    java = str(mini_cluster.java())
    use = shared_service.use(
        folder,
        __name__,
        *(str(cluster.conf), java, os.pathsep.join(map(str, jars)), user, str(spark_home)),
        prepare=lambda: _write_configuration(folder, cluster, spark_home, local),
    )
    try:
        yield Livy(folder, use)
    finally:
        use.stop()


def _write_configuration(folder: Path, cluster: MiniCluster, spark_home: Path, local: Path) -> None:
    properties = {
        "livy.server.host": "127.0.0.1",
        "livy.server.port": "0",  # any
        "livy.spark.master": "yarn",
        "livy.spark.deploy-mode": "cluster",
        "livy.file.local-dir-whitelist": f"{local}/",
        "livy.impersonation.enabled": "false",
        "livy.repl.enable-hive-context": "false",
        "livy.server.yarn.poll-interval": "500ms",
    }
    conf = folder / "conf"
    for made in (conf, folder / "logs"):
        made.mkdir(exist_ok=True)
    (conf / "livy.conf").write_text(_lines(properties, " = "))
    (conf / "spark-defaults.conf").write_text(_lines(cluster.spark_conf(spark_home), " "))
    log4j = (cluster.conf / "log4j.properties").read_text()
    (conf / "log4j.properties").write_text(log4j)


def _lines(properties: dict[str, str], between: str) -> str:
    return "".join(f"{key}{between}{value}\n" for key, value in properties.items())


class _Server:
    """The JVM of the server.

    :param command: starts Java with the server's classes
    """

    def __init__(self, folder: Path, command: list[str], environment: dict[str, str]) -> None:
        self._log = folder / LOG
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, "org.apache.livy.server.LivyServer"],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def started(self) -> dict[str, str]:
        """Wait until it serves, and give where."""
        while not (found := _SERVES.search(log := self._log.read_text(errors="replace"))):
            if self._process.poll() is not None:
                message = f"Livy has ended with {self._process.returncode}:\n{log[-3000:]}"
                raise RuntimeError(message)
            time.sleep(0.1)
        return {"url": found[1]}

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(folder: Path, hadoop_conf: str, java: str, jars: str, user: str, spark: str) -> None:
    """Run a server in a folder until nobody uses it."""
    conf = str(folder / "conf")
    environment = shared_service.environment() | {
        "LIVY_HOME": str(folder),
        "LIVY_CONF_DIR": conf,
        "SPARK_HOME": spark,
        "SPARK_CONF_DIR": conf,
        "HADOOP_CONF_DIR": hadoop_conf,
        "HADOOP_USER_NAME": user,
    }
    classpath = [hadoop_conf, *jars.split(os.pathsep)]
    server = _Server(folder, daemons.command(folder, classpath, java), environment)
    shared_service.serve(folder, server.started, server.stop)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
