"""A Kubernetes without nodes: etcd, its API server and its controllers, on the loopback.

They are Kubernetes' own programs (see :mod:`.programs`), and end with the block. ::

    with control_plane.running(folder) as plane:
        plane.apply(manifests)
        plane.kube_config("airflow", "airflow")    # for a worker with the token of an account

The API takes TLS alone. Who asks is known by the certificate or the token, and may do what RBAC
says; the tests themselves may do everything.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import requests
import yaml

from tests.cluster.api_server import ApiServer, check
from tests.kubernetes import certificates, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

_HOST = "127.0.0.1"
_START_S = 120
_STOP_S = 20
# Those that a cluster has for what pods and drivers get. There is no node to look after.
_CONTROLLERS = (
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "garbage-collector-controller",
    "namespace-controller",
)
_AUDIT = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
_ACCOUNT = "system:serviceaccount:"
_CLUSTER_WIDE = ("Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition")


class ControlPlane(ApiServer):
    """One that runs.

    :param folder: its files
    :param port: of the API on the loopback
    """

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(f"https://{_HOST}:{port}")
        self.folder = folder
        self.port = port
        self.ca = folder / "ca.crt"
        self._session.verify = str(self.ca)
        self._session.cert = (str(folder / "admin.crt"), str(folder / "admin.key"))

    def is_serving(self) -> bool:
        """Whether the API answers, with all that it brings by itself."""
        try:
            return self._session.get(f"{self.url}/readyz", timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    def is_controlled(self) -> bool:
        """Whether controllers make what a new namespace has."""
        maps = self.objects("configmaps", "default")
        return any(found["metadata"]["name"] == "kube-root-ca.crt" for found in maps)

    def apply(self, manifests: Iterable[dict[str, Any]]) -> None:
        """Create or change objects as ``kubectl apply --server-side`` does."""
        for manifest in manifests:
            answer = self._session.patch(
                f"{self.url}{_path(manifest)}",
                params={"fieldManager": "tests", "force": "true"},
                data=yaml.safe_dump(manifest),
                headers={"Content-Type": "application/apply-patch+yaml"},
                timeout=30,
            )
            assert answer.ok, answer.text

    def delete(self, kind: str, namespace: str, name: str) -> None:
        """Do what ``kubectl delete`` does, and wait for nothing."""
        path = f"/api/v1/namespaces/{namespace}/{kind}/{name}"
        check(self._session.delete(f"{self.url}{path}", timeout=30))

    def served(self, group: str) -> set[str]:
        """Give the resources of a group that the API knows by now."""
        answer = self._session.get(f"{self.url}/apis/{group}", timeout=30)
        return {found["name"] for found in answer.json()["resources"]} if answer.ok else set()

    def token(self, namespace: str, account: str) -> str:
        """Ask for a token of an account, as ``kubectl create token`` does."""
        return self.account_token(namespace, account, {"expirationSeconds": 3600})

    def kube_config(self, namespace: str, account: str) -> dict[str, Any]:
        """Give a ``kubeconfig`` with a token of an account."""
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": account}}],
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": account, "user": {"token": self.token(namespace, account)}}],
        }

    def requests(self) -> list[Request]:
        """Give what service accounts have asked of the API so far, by the API's own log."""
        lines = (self.folder / "audit.log").read_text().splitlines()
        return [Request(json.loads(line)) for line in lines if _ACCOUNT in line]


class Request:
    """One request of a service account.

    :param event: as the API's log has it
    """

    def __init__(self, event: dict[str, Any]) -> None:
        self.account = event["user"]["username"].removeprefix(_ACCOUNT)
        """``namespace:name``."""
        self.code: int = event["responseStatus"]["code"]
        of: dict[str, str] = event.get("objectRef") or {}
        self.name = of.get("name", "")
        self._resource = "/".join(filter(None, (of.get("resource"), of.get("subresource"))))
        self._verb: str = event["verb"]

    def __repr__(self) -> str:
        return f"{self.account} {self._verb} {self._resource} {self.name}: {self.code}"

    @property
    def rights(self) -> set[tuple[str, str]]:
        """The rights that it takes, as pairs of resource and verb."""
        verbs = {self._verb}
        if self._verb == "patch" and self.code == requests.codes.created:
            verbs.add("create")  # of an object that is applied and was not there
        return {(self._resource, verb) for verb in verbs}


def _path(manifest: dict[str, Any]) -> str:
    """Give the path of an object in the API."""
    group, kind, meta = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    path = f"/apis/{group}" if "/" in group else f"/api/{group}"
    if kind not in _CLUSTER_WIDE:
        path += f"/namespaces/{meta['namespace']}"
    return f"{path}/{kind.lower()}s/{meta['name']}"


@contextmanager
def running(folder: Path) -> Iterator[ControlPlane]:
    """Start the programs, and end them with the block.

    :param folder: to make, for all their files
    :raise programs.ProgramsError: if they cannot be had
    """
    found = programs.folder()
    folder.mkdir()
    ports = _free_ports(3)
    certificates.write(folder, _HOST)
    (folder / "audit.yaml").write_text(yaml.safe_dump(_AUDIT))
    plane = ControlPlane(folder, ports[2])
    (folder / "controllers.kubeconfig").write_text(yaml.safe_dump(_of_controllers(plane)))
    with ExitStack() as started:
        processes: list[subprocess.Popen[bytes]] = []

        def start(program: str, *arguments: str) -> None:
            process = _process(found / program, arguments, folder)
            processes.append(started.enter_context(process))

        start("etcd", *_etcd(folder, *ports[:2]))
        start("kube-apiserver", *_api_server(plane, ports[0]))
        _wait(plane.is_serving, processes)
        # It would end without the rights that the API server brings.
        start("kube-controller-manager", *_controllers(folder))
        _wait(plane.is_controlled, processes)
        yield plane


def _wait(happened: Callable[[], bool], processes: list[subprocess.Popen[bytes]]) -> None:
    ends = time.monotonic() + _START_S
    while not happened():
        ended = [process.args for process in processes if process.poll() is not None]
        assert not ended, f"this has ended: {ended}"
        assert time.monotonic() < ends, "Kubernetes has not started"
        time.sleep(0.2)


@contextmanager
def _process(
    program: Path, arguments: tuple[str, ...], folder: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the end of the block; its output is in a log in the folder."""
    with (folder / f"{program.name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(program), *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _etcd(folder: Path, port: int, of_peers: int) -> list[str]:
    client, peers = f"http://{_HOST}:{port}", f"http://{_HOST}:{of_peers}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=default={peers}",
        "--unsafe-no-fsync",  # nothing is kept
    ]


def _api_server(plane: ControlPlane, etcd_port: int) -> list[str]:
    folder = plane.folder
    return [
        f"--etcd-servers=http://{_HOST}:{etcd_port}",
        f"--bind-address={_HOST}",
        f"--secure-port={plane.port}",
        "--endpoint-reconciler-type=none",  # a loopback address is no endpoint for pods elsewhere
        f"--tls-cert-file={folder / 'server.crt'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=RBAC",
        "--anonymous-auth=false",
        f"--audit-policy-file={folder / 'audit.yaml'}",
        f"--audit-log-path={folder / 'audit.log'}",
    ]


def _controllers(folder: Path) -> list[str]:
    kube_config = folder / "controllers.kubeconfig"
    return [
        f"--kubeconfig={kube_config}",
        "--secure-port=0",
        "--leader-elect=false",
        "--use-service-account-credentials",  # each controller has the rights of its own
        f"--controllers={','.join(_CONTROLLERS)}",
        f"--root-ca-file={folder / 'ca.crt'}",
    ]


def _of_controllers(plane: ControlPlane) -> dict[str, Any]:
    folder = plane.folder
    certificate = {
        "client-certificate": str(folder / "controllers.crt"),
        "client-key": str(folder / "controllers.key"),
    }
    cluster = {"server": plane.url, "certificate-authority": str(plane.ca)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "controllers"}}],
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "controllers", "user": certificate}],
    }


def _free_ports(count: int) -> list[int]:
    held = [socket.create_server((_HOST, 0)) for _ in range(count)]
    ports: list[int] = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports
