"""The process that runs the daemons of a mini cluster: ``python -m tests.cluster.daemons``."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import requests

from tests.cluster import kerberos, shared_service

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MADE = ("conf", "name", "blocks", "tmp", "local", "logs", *kerberos.MADE)
"""Folders that a cluster makes."""
GROUP = "lineage"
USERS_IN_GROUP = ("airflow", "etl")
"""Those who submit: Airflow's worker and a job, which are not the same user everywhere."""
_HOST = "127.0.0.1"
_STOP_S = 5  # for an application whose end it has not heard of the NodeManager waits for seven
_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_HDFS = {
    "namenode": _NAMENODE,
    "datanode": "org.apache.hadoop.hdfs.server.datanode.DataNode",
}
_YARN = {
    "resourcemanager": "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "nodemanager": "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
}
_ADDRESSES = {
    "namenode": "dfs.namenode.rpc-address",
    "webhdfs": "dfs.namenode.http-address",
    "resource_manager": "yarn.resourcemanager.webapp.address",
    "submissions": "yarn.resourcemanager.address",
    "scheduler": "yarn.resourcemanager.scheduler.address",
    "tracker": "yarn.resourcemanager.resource-tracker.address",
    "admin": "yarn.resourcemanager.admin.address",
}
"""What others have to know; all other ports are any."""


def command(folder: Path, jars: Sequence[str], java: str) -> list[str]:
    """Give how a class of Hadoop is run with the configuration of a cluster."""
    return [
        *(java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *("--add-opens", "java.base/java.lang=ALL-UNNAMED", "-Djava.net.preferIPv4Stack=true"),
        *("-cp", os.pathsep.join([str(folder / "conf"), *jars])),
    ]


def configuration(folder: Path, addresses: Mapping[str, str]) -> dict[str, str]:
    """Give the properties of the daemons, and of those who use them."""
    any_port = f"{_HOST}:0"
    return {
        **{_ADDRESSES[name]: address for name, address in addresses.items()},
        "fs.defaultFS": f"hdfs://{addresses['namenode']}",
        "hadoop.tmp.dir": str(folder / "tmp"),
        "dfs.namenode.name.dir": str(folder / "name"),
        "dfs.datanode.data.dir": str(folder / "blocks"),
        "dfs.datanode.hostname": _HOST,
        "dfs.datanode.address": any_port,
        "dfs.datanode.http.address": any_port,
        "dfs.datanode.ipc.address": any_port,
        "dfs.replication": "1",
        # Groups of users that this machine does not have.
        "hadoop.user.group.static.mapping.overrides": ";".join(
            f"{user}={user},{GROUP}" for user in USERS_IN_GROUP
        ),
        "dfs.namenode.safemode.extension": "0",
        "yarn.resourcemanager.hostname": _HOST,
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "100",
        "yarn.resourcemanager.connect.retry-interval.ms": "200",
        "yarn.nodemanager.hostname": _HOST,
        "yarn.nodemanager.address": any_port,
        "yarn.nodemanager.localizer.address": any_port,
        "yarn.nodemanager.webapp.address": any_port,
        "yarn.nodemanager.collector-service.address": any_port,
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        # Four applications at the same time, whatever this machine has.
        "yarn.nodemanager.resource.memory-mb": "8192",
        "yarn.nodemanager.resource.cpu-vcores": "16",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        # Drivers and executors listen on loopback as well.
        "yarn.nodemanager.admin-env": f"SPARK_LOCAL_IP={_HOST},SPARK_LOCAL_HOSTNAME=localhost",
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
        "yarn.scheduler.capacity.root.queues": "default",
        "yarn.scheduler.capacity.root.default.capacity": "100",
    }


def _write_configuration(folder: Path, *, secure: bool) -> dict[str, str]:
    held = [socket.create_server((_HOST, 0)) for _ in _ADDRESSES]
    addresses = {
        name: f"{_HOST}:{server.getsockname()[1]}"
        for name, server in zip(_ADDRESSES, held, strict=True)
    }
    for server in held:
        server.close()
    values = configuration(folder, addresses)
    if secure:
        values |= kerberos.properties(folder, addresses)
        for name, value in kerberos.environment(folder).items():
            values["yarn.nodemanager.admin-env"] += f",{name}={value}"
    properties = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in values.items()
    )
    conf = folder / "conf"
    # The pages of HDFS are not in its jar; its API is, and does not start without a place for them.
    for pages in ("hdfs", "datanode"):
        (conf / "webapps" / pages).mkdir(parents=True)
    for name in ("core-site", "hdfs-site", "yarn-site", "capacity-scheduler", "ssl-server"):
        (conf / f"{name}.xml").write_text(f"<configuration>\n{properties}</configuration>\n")
    (conf / "log4j.properties").write_text(
        "log4j.rootLogger=INFO,out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=%d %p %c{1} %m%n\n"
    )
    return addresses


class _Daemons:
    def __init__(self, folder: Path, hadoop: Sequence[str]) -> None:
        self._folder = folder
        self._hadoop = hadoop
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start_hadoop(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        return self.start(name, [*self._hadoop, *arguments])

    def start(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=shared_service.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._running[name] = process
        return process

    def check(self) -> None:
        for name, process in self._running.items():
            if process.poll():
                log = (self._folder / f"{name}.log").read_text(errors="replace")
                message = f"{name} has ended with {process.returncode}:\n{log[-2000:]}"
                raise RuntimeError(message)

    def stop(self) -> None:
        # NodeManager first: it ends the containers that run.
        for process in reversed(self._running.values()):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(daemons: _Daemons, *, yarn: bool) -> None:
    if yarn:
        daemons.start_hadoop("resourcemanager", _YARN["resourcemanager"])
    daemons.start_hadoop("format", _NAMENODE, "-format", "-nonInteractive").wait()
    for name, class_name in (_HDFS | _YARN if yarn else _HDFS).items():
        if name != "resourcemanager":
            daemons.start_hadoop(name, class_name)


def _wait(daemons: _Daemons, asking: requests.Session, signs: Mapping[str, str]) -> None:
    """Wait until all URLs answer with their signs."""
    while not all(sign in _answer(asking, url) for url, sign in signs.items()):
        daemons.check()
        time.sleep(0.1)


def _answer(asking: requests.Session, url: str) -> str:
    try:
        return asking.get(url, timeout=5).text
    except requests.RequestException:
        return ""


def main(folder: Path, java: str, jars: str, kdc_jars: str, *services: str) -> None:
    """Run a cluster in a folder until nobody uses it.

    :param kdc_jars: empty if the cluster is not secure
    """
    secure, yarn = bool(kdc_jars), "yarn" in services
    addresses = _write_configuration(folder, secure=secure)
    daemons = _Daemons(folder, command(folder, jars.split(os.pathsep), java))
    state = "Hadoop:service=NameNode,name=FSNamesystemState"
    webhdfs = f"https://{addresses['webhdfs']}" if secure else f"http://{addresses['webhdfs']}"
    signs = {f"{webhdfs}/jmx?qry={state}": '"NumLiveDataNodes" : 1'}
    if yarn:
        signs[f"http://{addresses['resource_manager']}/ws/v1/cluster/nodes"] = '"RUNNING"'

    def start() -> dict[str, str]:
        asking = requests.Session()
        if secure:
            kerberos.make_certificate(folder, Path(java).with_name("keytool"))
            daemons.start("kdc", kerberos.kdc(folder, java, kdc_jars, USERS_IN_GROUP))
            kerberos.wait_for_kdc(folder, daemons.check)
            os.environ.update(kerberos.environment(folder))
            asking = kerberos.asking(folder, kerberos.SUPERUSER_PRINCIPAL)
        _start(daemons, yarn=yarn)
        _wait(daemons, asking, signs)
        return addresses

    shared_service.serve(folder, start, daemons.stop)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
