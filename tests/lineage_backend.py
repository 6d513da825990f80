"""A lineage backend that keeps the events that it is sent, and Airflow sending to it."""

from __future__ import annotations

import json
from contextlib import contextmanager

from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

from tests.loopback import Handler, serving


class _Backend(Handler):
    def post(self):
        self.server.events.append(json.loads(self.body()))
        self.answer(self.server.status)


@contextmanager
def receiving():
    """Serve one that has ``events``, and answers with ``status``."""
    with serving(_Backend, events=[], status=201) as server:
        yield server


def send_by(monkeypatch, **transport):
    """Have Airflow's OpenLineage provider send by a transport."""
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
    monkeypatch.setattr(get_openlineage_listener().adapter, "_client", None)
