"""Clusters as Airflow's Spark hook asks them, and what its operator keeps of what it submitted."""

from __future__ import annotations

import json
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

from tests.loopback import Handler, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION = "application_1700000000000_0001"
POD = "revenue-0a1b2c-driver"


_FINAL = {"ACCEPTED": "UNDEFINED", "RUNNING": "UNDEFINED", "FINISHED": "SUCCEEDED"}


class _Applications(Handler):
    """YARN's REST API for one application."""

    def get(self) -> None:
        self.server.asked.append(self.path)
        states = self.server.states
        state = states.pop(0) if len(states) > 1 else states[0]
        final = _FINAL.get(state, state)
        self.answer(200, json.dumps({"app": {"state": state, "finalStatus": final}}))

    def do_PUT(self) -> None:  # noqa: N802  (the base class calls it)
        self.server.killed.append((self.path, json.loads(self.body())["state"]))
        self.server.states[:] = ["KILLED"]
        self.answer(202)


@contextmanager
def resource_manager(*states: str) -> Iterator[SimpleNamespace]:
    """Serve YARN's REST API; the application has one state after the other, and keeps the last."""
    with serving(_Applications, states=list(states), asked=[], killed=[]) as server:
        yield server


class Kubernetes:
    """Airflow's client of Kubernetes; the driver's pod has one phase after the other."""

    class ApiException(Exception):  # noqa: N818  (the client's own name)
        """What the client raises."""

        status = 404

    def __init__(self, *phases: str) -> None:
        self.phases = list(phases)
        self.asked: list[str] = []
        self.deleted: list[str] = []

    def get_kube_client(self) -> Kubernetes:
        return self

    def read_namespaced_pod(self, name: str, namespace: str) -> SimpleNamespace:
        self.asked.append(f"{namespace}/{name}")
        if self.deleted:
            raise self.ApiException
        phase = self.phases.pop(0) if len(self.phases) > 1 else self.phases[0]
        return SimpleNamespace(status=SimpleNamespace(phase=phase, container_statuses=None))

    def delete_namespaced_pod(self, name: str, namespace: str, **_: object) -> None:
        self.deleted.append(f"{namespace}/{name}")


class TaskState(dict[str, object]):
    """What a task keeps between its tries."""

    def set(self, key: str, value: object) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)
