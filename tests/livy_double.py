"""An Apache Livy that runs no batch: it keeps what is posted, and lets a driver deliver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.conftest import golden
from tests.loopback import Handler, serving
from tests.remote_driver import deliver

if TYPE_CHECKING:
    from pathlib import Path


class LivyHandler(Handler):
    """Answers the requests of Airflow's hook as Livy 0.7 does."""

    def post(self):
        batch = json.loads(self.body())
        if self.server.refuses:
            self._answer(400, {"msg": "no"})
            return
        self.server.batches.append(batch)
        number = len(self.server.batches) - 1
        if self.server.does is not None:
            self.server.does(batch)
        self._answer(201, {"id": number, "state": "starting", "appId": None})

    def get(self):
        of = self.path.split("?")[0].removeprefix("/batches/").split("/")
        state = self.server.states.pop(0) if len(self.server.states) > 1 else self.server.states[0]
        if of[-1] == "log":
            self._answer(200, {"id": 0, "from": 0, "total": 1, "log": ["a line of the driver"]})
            return
        self._answer(200, {"id": int(of[0]), "state": state, "appId": "application_1_1"})

    def do_DELETE(self):  # noqa: N802  (of http.server)
        self.server.deleted.append(self.path)
        self._answer(200, {"msg": "deleted"})

    def _answer(self, status, document):
        self.answer(status, json.dumps(document), Content_Type="application/json")


def livy(**attributes):
    """Serve a Livy: ``batches`` has what was posted, ``states`` what is answered, in order."""
    known = {"batches": [], "deleted": [], "states": ["success"], "does": None, "refuses": False}
    return serving(LivyHandler, **{**known, **attributes})


class Driver:
    """What a batch's driver does: it writes recorded events, and delivers them.

    :param events: the name of the recorded application
    """

    def __init__(self, folder: Path, events: str = "staging_chain") -> None:
        self._folder = folder
        self._events = golden(events)
        self._observed = self._events.parent / "observed" / self._events.name

    def __call__(self, batch):
        conf = batch.get("conf") or {}
        if "spark.sparklineage.deliver" not in conf:
            return
        first = json.loads(self._events.read_text().splitlines()[0])
        recorded_as, run_id = first["run"]["runId"], conf["spark.openlineage.applicationRunId"]
        self._folder.mkdir(parents=True, exist_ok=True)
        text = self._events.read_text().replace(recorded_as, run_id)
        (self._folder / "events.ndjson").write_text(text)
        (self._folder / "observations.ndjson").write_bytes(self._observed.read_bytes())
        here = str(self._folder / "observations.ndjson")
        deliver({**conf, "spark.sparklineage.observations": here})
