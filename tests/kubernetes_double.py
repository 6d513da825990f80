"""A Kubernetes that runs no pod: it keeps SparkApplications, and lets their drivers deliver.

It answers Airflow's operator as an API server and a Spark operator would, each on the spot: a
SparkApplication that is created has a driver's pod.
"""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

from tests.loopback import Handler, serving

CONTAINER = "spark-kubernetes-driver"


class KubernetesHandler(Handler):
    """Answers for SparkApplications, and for the pods of their drivers."""

    def post(self):
        application = json.loads(self.body())
        if self.server.refuses:
            self._answer(403, {"kind": "Status", "message": "no", "code": 403})
            return
        self.server.applications.append(application)
        name = f"{application['metadata']['name']}-driver"
        labels = application["spec"]["driver"].get("labels") or {}
        self.server.pods[name] = {
            "metadata": {
                "name": name,
                "namespace": application["metadata"]["namespace"],
                "labels": {**labels, "spark-role": "driver"},
                "creationTimestamp": "2024-05-06T00:00:00Z",
            },
            "spec": {"containers": [{"name": CONTAINER, "image": "spark"}]},
        }
        if self.server.does is not None:
            self.server.does(application)
        self._answer(201, application)

    def get(self):
        url = urlsplit(self.path)
        *_, kind, name, part = ["", "", *url.path.split("/")]
        if kind.endswith("applications"):
            self._answer(200, {"status": {"applicationState": {"state": "RUNNING"}}})
        elif part == "log":
            self.answer(200, "2024-05-06T00:00:00.000000000Z a line of the driver\n")
        elif part == "events":
            self._answer(200, {"items": [], "metadata": {}})
        elif part == "pods":
            selector = parse_qs(url.query).get("labelSelector", [""])[0]
            pods = [pod for pod in self.server.pods.values() if _is_selected(pod, selector)]
            self._answer(200, {"items": [self._pod(pod) for pod in pods], "metadata": {}})
        elif part in self.server.pods and name == "pods":
            self._answer(200, self._pod(self.server.pods[part]))
        else:
            self._answer(404, {"kind": "Status", "message": "not found", "code": 404})

    def do_PATCH(self):  # noqa: N802  (of http.server)
        pod = self.server.pods[self.path.rsplit("/", 1)[-1]]
        pod["metadata"]["labels"] |= json.loads(self.body())["metadata"]["labels"]
        self._answer(200, self._pod(pod))

    def do_DELETE(self):  # noqa: N802  (of http.server)
        name = self.path.rsplit("/", 1)[-1]
        self.server.deleted.append(name)
        self.server.pods.pop(f"{name}-driver", None)
        self._answer(200, {"kind": "Status", "status": "Success"})

    def _pod(self, pod):
        phases = self.server.now() if self.server.now else self.server.phases
        phase = phases.pop(0) if len(phases) > 1 else phases[0]
        state = {"running": {}}
        if phase in ("Succeeded", "Failed"):
            state = {"terminated": {"exitCode": int(phase == "Failed"), "reason": phase}}
        container = {"name": CONTAINER, "image": "spark", "imageID": "", "ready": True}
        statuses = [{**container, "restartCount": 0, "state": state}]
        return {**pod, "status": {"phase": phase, "containerStatuses": statuses}}

    def _answer(self, status, document):
        self.answer(status, json.dumps(document), Content_Type="application/json")


def _is_selected(pod, selector):
    """Whether a pod has the labels of a selector, of the forms `a=b`, `a!=b` and `!a`."""
    labels = pod["metadata"]["labels"]
    for part in filter(None, selector.split(",")):
        key, _, value = part.partition("=")
        if part.startswith("!"):
            fits = part[1:] not in labels
        elif key.endswith("!"):
            fits = labels.get(key[:-1]) != value
        else:
            fits = labels.get(key) == value
        if not fits:
            return False
    return True


def connection(server):
    """Give Airflow's connection to the server, as JSON."""
    kube_config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "clusters": [{"name": "here", "cluster": {"server": server.url}}],
        "users": [{"name": "me", "user": {}}],
    }
    return json.dumps(
        {"conn_type": "kubernetes", "extra": {"kube_config": json.dumps(kube_config)}}
    )


def kubernetes(**attributes):
    """Serve: ``applications`` has what was created, ``phases`` those of the pods, in order.

    :param attributes: ``does`` is called with each SparkApplication; ``now`` gives the phases of
        this moment
    """
    known = {"applications": [], "pods": {}, "deleted": [], "phases": ["Succeeded"], "now": None}
    known |= {"does": None, "refuses": False}
    return serving(KubernetesHandler, **{**known, **attributes})
