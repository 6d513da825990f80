"""A node of Kubernetes for one test: it runs the pods of an :class:`~.api_server.ApiServer`.

A pod becomes a process of this machine: its command as the entry point of Spark's image makes it of
the pod's arguments, its environment, and its volumes as files in a folder of its own. What would
be isolated in a container is not: network, user and the rest of the file system are this machine's
(:mod:`tests.kubernetes.contained_pod` has pods with a user and a file system of their own). Images
are all the Spark of this environment.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.api_server import ApiServer

    Maps = dict[str, dict[str, str]]
    """What config maps have, by their names."""

POD_IP = "127.0.0.1"
_POLL_S = 0.2
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for a JVM that lives for seconds
_GRACE_S = 5  # from SIGTERM to SIGKILL, of a pod that was deleted
_BY_SIGNAL = 128  # exit codes of containers that a signal has ended begin here
_SIGKILLED = _BY_SIGNAL + signal.SIGKILL
# A container's /tmp is its own. What else is below it here are folders of tests.
_OWN = "/tmp/sparklineage-"

_EXECUTOR = """--driver-url SPARK_DRIVER_URL --executor-id SPARK_EXECUTOR_ID
    --cores SPARK_EXECUTOR_CORES --app-id SPARK_APPLICATION_ID --hostname SPARK_EXECUTOR_POD_IP
    --resourceProfileId SPARK_RESOURCE_PROFILE_ID --podName SPARK_EXECUTOR_POD_NAME"""


class Pod:
    """A pod as it was found in the API, and the process that it is here.

    :param folder: for its volumes, its working directory and its log
    :param spark_home: of its image
    :param hosts: file with the names of the cluster's services
    """

    def __init__(self, found: dict[str, Any], folder: Path, spark_home: Path, hosts: Path) -> None:
        self.found = found
        self.folder = folder
        self._spark_home = spark_home
        self._hosts = hosts
        self.root = folder / "root"
        """Has what is the container's alone, by its path there."""
        self.name: str = found["metadata"]["name"]
        [self.container] = found["spec"]["containers"]
        self.env: dict[str, str] = {}
        self.command: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def role(self) -> str:
        """Whether it is a ``driver`` or an ``executor``."""
        role: str = self.found["metadata"]["labels"]["spark-role"]
        return role

    @property
    def log(self) -> str:
        """What it has printed."""
        return (self.folder / "log").read_text(errors="replace")

    @property
    def exit_code(self) -> int | None:
        """As a container has it; None while it runs."""
        code = self._process.poll() if self._process else None
        return code if code is None or code >= 0 else _BY_SIGNAL - code

    def start(self, maps: Maps, token: Callable[[dict[str, Any]], str]) -> None:
        """Mount what it has, and run what the image's entry point would.

        :param maps: the config maps that there are
        :param token: requests the token of a projected volume
        """
        (self.folder / "work-dir").mkdir(parents=True)
        volumes = {v["name"]: v for v in self.found["spec"]["volumes"]}
        for mount in self.container["volumeMounts"]:
            target = self._here(mount["mountPath"])
            target.mkdir(parents=True, exist_ok=True)
            for path, text in self._files(volumes[mount["name"]], maps, token).items():
                (target / path).write_text(text)
        # As the image has it.
        self.env = {key: os.environ[key] for key in ("JAVA_HOME", "LANG") if key in os.environ}
        self.env |= {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SPARK_HOME": str(self._spark_home),
            **self._own_env(),
        }
        for variable in self.container.get("env", ()):
            self.env[variable["name"]] = self._value(variable)
        role, *arguments = self.container["args"]
        self.command = self._driver(arguments) if role == "driver" else self._executor()
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                self._contained(self.command),
                env=self.env,
                cwd=self.folder / "work-dir",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group of its own, to end all that it has started
            )

    def is_mountable(self, maps: Maps) -> bool:
        """Whether all is there that it mounts; Spark makes it after the pod."""
        volumes = self.found["spec"]["volumes"]
        sources = [s for v in volumes for s in v.get("projected", {}).get("sources", (v,))]
        return all(s["configMap"]["name"] in maps for s in sources if "configMap" in s)

    def end(self, grace_s: float = _GRACE_S) -> None:
        """End it as a kubelet does what was deleted: the first process is asked to end."""
        assert self._process is not None
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def status(self) -> dict[str, Any]:
        """Give its status, as a kubelet would report it."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        code = self.exit_code
        if code is None:
            phase, state = "Running", {"running": {"startedAt": now}}
        else:
            phase = "Failed" if code else "Succeeded"
            # Nobody but the kernel kills without asking, and it only for memory.
            reason = {0: "Completed", _SIGKILLED: "OOMKilled"}.get(code, "Error")
            state = {"terminated": {"exitCode": code, "reason": reason, "finishedAt": now}}
        container = {"name": self.container["name"], "image": self.container["image"]}
        container |= {"ready": code is None, "started": True, "restartCount": 0, "imageID": ""}
        statuses = [{**container, "state": state}]
        return {"phase": phase, "podIP": POD_IP, "startTime": now, "containerStatuses": statuses}

    def _files(
        self, source: dict[str, Any], maps: Maps, token: Callable[[dict[str, Any]], str]
    ) -> dict[str, str]:
        """Give the texts of a volume by their paths there."""
        if of_map := source.get("configMap"):
            data = maps[of_map["name"]]
            paths = {item["key"]: item["path"] for item in of_map.get("items", ())}
            paths = paths or {key: key for key in data}
            return {path: self._with_mounts(data[key]) for key, path in paths.items()}
        if of_account := source.get("serviceAccountToken"):
            return {of_account["path"]: token(self._token_request(of_account))}
        if of_pod := source.get("downwardAPI"):
            return {item["path"]: self._field(item["fieldRef"]) for item in of_pod["items"]}
        if projected := source.get("projected"):
            found = (self._files(each, maps, token) for each in projected["sources"])
            return {path: text for files in found for path, text in files.items()}
        if "emptyDir" in source:
            return {}
        msg = f"{self.name} mounts what this kubelet does not know: {source}"
        raise ValueError(msg)

    def _token_request(self, source: dict[str, Any]) -> dict[str, Any]:
        """Give what a kubelet requests: a token that is void without the pod."""
        meta = self.found["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": self.name, "uid": meta["uid"]}
        return {"expirationSeconds": source["expirationSeconds"], "boundObjectRef": bound}

    def _own_env(self) -> dict[str, str]:
        # A hosts file is a kubelet's; this one is read by Java alone.
        options = f"-Djdk.net.hosts.file={self._hosts} {QUICK}"
        return {"HOME": str(self.folder), "JAVA_TOOL_OPTIONS": options}

    def _contained(self, command: list[str]) -> list[str]:
        """Give how a command of the container is run on this machine."""
        return command

    def _here(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _with_mounts(self, text: str) -> str:
        """Give a text with the paths that are the container's own where they are here."""
        paths = [mount["mountPath"] for mount in self.container["volumeMounts"]]
        for path in (*paths, _OWN):
            text = text.replace(path, str(self._here(path)))
        return text

    def _value(self, variable: dict[str, Any]) -> str:
        if "valueFrom" in variable:
            return self._field(variable["valueFrom"]["fieldRef"])
        return self._with_mounts(variable.get("value", ""))

    def _field(self, reference: dict[str, Any]) -> str:
        namespace = self.found["metadata"]["namespace"]
        values = {"status.podIP": POD_IP, "metadata.name": self.name}
        return {**values, "metadata.namespace": namespace}[reference["fieldPath"]]

    def _driver(self, arguments: list[str]) -> list[str]:
        address = self.env["SPARK_DRIVER_BIND_ADDRESS"]
        return [
            f"{self._spark_home}/bin/spark-submit",
            *("--conf", f"spark.driver.bindAddress={address}"),
            *("--deploy-mode", "client"),
            *map(self._with_mounts, arguments),
        ]

    def _executor(self) -> list[str]:
        options = {k: v for k, v in self.env.items() if k.startswith("SPARK_JAVA_OPT_")}
        ordered = sorted(options, key=lambda name: int(name.rpartition("_")[2]))
        java = f"{self.env['JAVA_HOME']}/bin/java" if "JAVA_HOME" in self.env else "java"
        folders = [self.env.get("SPARK_CONF_DIR"), self.env.get("HADOOP_CONF_DIR")]
        classes = [*filter(None, folders), f"{self._spark_home}/jars/*"]
        memory = self.env["SPARK_EXECUTOR_MEMORY"]
        return [
            *(java, *(options[name] for name in ordered), f"-Xms{memory}", f"-Xmx{memory}"),
            *("-cp", os.pathsep.join(classes)),
            "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
            *(self.env.get(word, word) for word in _EXECUTOR.split()),
        ]


class Kubelet:
    """Runs the pods of a namespace; a thread until it is stopped.

    :param folder: to make, for all that pods have as files
    :param spark_home: of all images
    """

    pod_class = Pod

    def __init__(self, api: ApiServer, namespace: str, folder: Path, spark_home: Path) -> None:
        self.pods: dict[str, Pod] = {}
        self.problem: BaseException | None = None
        self._api = api
        self._namespace = namespace
        self._folder = folder
        self._spark_home = spark_home
        self._running: set[str] = set()
        folder.mkdir()
        self._hosts = folder / "hosts"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet")

    @property
    def driver(self) -> Pod:
        """The one driver."""
        [pod] = [pod for pod in self.pods.values() if pod.role == "driver"]
        return pod

    @property
    def executors(self) -> list[Pod]:
        return [pod for pod in self.pods.values() if pod.role == "executor"]

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread and all pods."""
        self._stopping.set()
        self._thread.join()
        for pod in self.pods.values():
            pod.end()

    def _run(self) -> None:
        try:
            while not self._stopping.wait(_POLL_S):
                self._look()
        except BaseException as error:
            self.problem = error  # the test raises it; until then nobody is to wait for a pod
            for found in self._found().values():
                self._api.set_status(found, {"phase": "Failed"})

    def _look(self) -> None:
        """Start the pods that are new, and report those that have ended."""
        there = self._found()
        for name, found in there.items():
            if name in self.pods:
                if "deletionTimestamp" in found["metadata"]:
                    self._let_go(found)
            elif found["status"]["phase"] not in ("Succeeded", "Failed"):  # for another node
                self._start(found)
        for name in sorted(self._running):
            pod = self.pods[name]
            if name not in there:
                pod.end()
            elif pod.exit_code is not None:
                self._api.set_status(there[name], pod.status())
            else:
                continue
            self._running.remove(name)

    def _let_go(self, found: dict[str, Any]) -> None:
        """End a pod that was deleted; the API keeps it until its node reports the end."""
        name = found["metadata"]["name"]
        self.pods[name].end(found["metadata"]["deletionGracePeriodSeconds"])
        if name in self._running:
            self._api.set_status(found, self.pods[name].status())
            self._running.remove(name)
        self._api.remove(found)

    def _found(self) -> dict[str, dict[str, Any]]:
        pods = self._api.objects("pods", self._namespace)
        return {found["metadata"]["name"]: found for found in pods}

    def _start(self, found: dict[str, Any]) -> None:
        listed = self._api.objects("configmaps", self._namespace)
        maps = {one["metadata"]["name"]: one.get("data", {}) for one in listed}
        pod = self.pod_class(
            found, self._folder / found["metadata"]["name"], self._spark_home, self._hosts
        )
        if not pod.is_mountable(maps):
            return
        self._take(found)
        self._write_hosts()
        account = found["spec"].get("serviceAccountName", "default")
        pod.start(maps, partial(self._api.account_token, self._namespace, account))
        self.pods[pod.name] = pod
        self._running.add(pod.name)
        self._api.set_status(found, pod.status())

    def _take(self, found: dict[str, Any]) -> None:
        """Do what is to be done for a pod before it runs on this node."""

    def _write_hosts(self) -> None:
        """Give the cluster's services their names, as its DNS does."""
        services = self._api.objects("services", self._namespace)
        names = [f"{service['metadata']['name']}.{self._namespace}.svc" for service in services]
        names += ["localhost", socket.gethostname()]
        self._hosts.write_text("".join(f"{POD_IP} {name}\n" for name in names))
