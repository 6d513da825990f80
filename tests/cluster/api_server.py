"""The API of a Kubernetes cluster without the cluster: fabric8's mock server, in CRUD mode.

It keeps what is created, and passes changes to those who watch; nothing runs what is in it (see
:mod:`.kubelet`). It is a JVM on the loopback, with PySpark's own jars of the same client, and ends
with this process.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import requests
from py4j.java_gateway import JavaGateway

from airflow_provider_sparklineage.spark.submit import commands
from tests import maven

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What an API server does and the mock server does not: it makes what is applied and is not there,
# as Spark makes all but its pods, and says of a new pod that it is pending.
# Compiled by Janino, which Spark has for its own code: a JRE has no compiler.
_DISPATCHER = """
import io.fabric8.kubernetes.client.server.mock.KubernetesCrudDispatcher;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fabric8.mockwebserver.dsl.HttpMethod;
import io.fabric8.mockwebserver.http.Buffer;
import io.fabric8.mockwebserver.http.MockResponse;
import io.fabric8.mockwebserver.http.RecordedRequest;

public class ApiDispatcher extends KubernetesCrudDispatcher {
  public MockResponse handlePatch(RecordedRequest request) {
    String path = request.getPath();
    int query = path.indexOf("?fieldManager=");
    if (query < 0 || handleGet(path.substring(0, query)).code() == 200) {
      return super.handlePatch(request);
    }
    String parent = path.substring(0, path.lastIndexOf('/'));
    return handleCreate(create(request, parent, request.getBody()));
  }

  public MockResponse handleCreate(RecordedRequest request) {
    if (!request.getPath().endsWith("/pods")) {
      return super.handleCreate(request);
    }
    try {
      ObjectMapper mapper = new ObjectMapper();
      ObjectNode pod = (ObjectNode) mapper.readTree(request.getUtf8Body());
      pod.putObject("status").put("phase", "Pending");
      Buffer body = new Buffer(mapper.writeValueAsBytes(pod));
      return super.handleCreate(create(request, request.getPath(), body));
    } catch (java.io.IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private RecordedRequest create(RecordedRequest request, String path, Buffer body) {
    return new RecordedRequest("HTTP/1.1", HttpMethod.POST, path, request.getHeaders(), body);
  }
}
"""


class ApiServer:
    """What is asked and changed in the cluster as a kubelet or ``kubectl`` would.

    :param url: where its API is
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = requests.Session()
        self._session.trust_env = False

    def objects(self, kind: str, namespace: str) -> list[dict[str, Any]]:
        """List what there is of a kind, such as ``pods``."""
        answer = self._session.get(f"{self.url}/api/v1/namespaces/{namespace}/{kind}", timeout=30)
        answer.raise_for_status()
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    def set_status(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        """Set the status of a pod, unless it was deleted."""
        answer = self._session.patch(
            f"{self._path(pod)}/status",
            json={"status": status},
            headers={"Content-Type": "application/merge-patch+json"},
            timeout=30,
        )
        check(answer)

    def bind(self, pod: dict[str, Any], node: str) -> None:
        """Say on which node a pod is, as a scheduler does, unless the pod was deleted."""
        binding = {
            "metadata": {"name": pod["metadata"]["name"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        check(self._session.post(f"{self._path(pod)}/binding", json=binding, timeout=30))

    def remove(self, pod: dict[str, Any]) -> None:
        """Let a pod go that was deleted and whose processes have ended."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        check(self._session.delete(self._path(pod), json=options, timeout=30))

    def account_token(self, namespace: str, account: str, spec: dict[str, Any]) -> str:
        """Request a token of a service account."""
        answer = self._session.post(
            f"{self.url}/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
            json={"spec": spec},
            timeout=30,
        )
        answer.raise_for_status()
        token: str = answer.json()["status"]["token"]
        return token

    def _path(self, pod: dict[str, Any]) -> str:
        meta = pod["metadata"]
        return f"{self.url}/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"


def check(answer: requests.Response) -> None:
    """Raise what an answer says, but that the object is not there any more."""
    if answer.status_code not in (requests.codes.not_found, requests.codes.conflict):
        answer.raise_for_status()


@contextmanager
def serving(spark_home: Path, log: Path) -> Iterator[ApiServer]:
    """Start the server, and end it.

    :param spark_home: of the Spark that will be its client
    :param log: file for what the server prints
    :raise maven.JarsError: if the server cannot be had
    """
    sparks = spark_home / "jars"
    [py4j] = sparks.glob("py4j-*.jar")
    [client] = sparks.glob("kubernetes-client-api-*.jar")
    version = client.stem.rpartition("-")[2]
    # PySpark's first: it has most of what the server needs.
    jars = [f"{sparks}/*", *maven.jars(f"io.fabric8:kubernetes-server-mock:{version}")]
    with log.open("w") as output:
        gateway = JavaGateway.launch_gateway(
            java_path=str(commands.find_java(os.environ)),
            jarpath=str(py4j),
            classpath=os.pathsep.join(map(str, jars)),
            javaopts=["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            die_on_exit=True,
            enable_auth=True,
            redirect_stdout=output,
            redirect_stderr=output,
        )
    try:
        jvm = gateway.jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_DISPATCHER)
        dispatcher = compiler.getClassLoader().loadClass("ApiDispatcher")
        web = jvm.io.fabric8.mockwebserver
        server = jvm.io.fabric8.kubernetes.client.server.mock.KubernetesMockServer(
            web.Context(),
            web.MockWebServer(),
            jvm.java.util.HashMap(),
            dispatcher.getDeclaredConstructor(gateway.new_array(jvm.Class, 0)).newInstance(
                gateway.new_array(jvm.Object, 0)
            ),
            False,
        )
        server.init(jvm.java.net.InetAddress.getByName("127.0.0.1"), 0)
        yield ApiServer(f"http://127.0.0.1:{server.getPort()}")
    finally:
        gateway.shutdown()
