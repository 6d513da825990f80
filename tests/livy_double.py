"""An Apache Livy that runs no batch: it keeps what is posted, and lets a driver deliver."""

from __future__ import annotations

import json

from tests.loopback import Handler, serving


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
        states = self.server.now() if self.server.now else self.server.states
        state = states.pop(0) if len(states) > 1 else states[0]
        if of[-1] == "log":
            self._answer(200, {"id": 0, "from": 0, "total": 1, "log": ["a line of the driver"]})
            return
        self._answer(200, {"id": int(of[0]), "state": state, "appId": "application_1_1"})

    def do_DELETE(self):  # noqa: N802  (of http.server)
        self.server.deleted.append(self.path)
        self._answer(200, {"msg": "deleted"})

    def _answer(self, status, document):
        self.answer(status, json.dumps(document), Content_Type="application/json")


def livy(handler=LivyHandler, **attributes):
    """Serve a Livy: ``batches`` has what was posted, ``states`` what is answered, in order.

    :param handler: answers the requests
    :param attributes: ``does`` is called with each batch; ``now`` gives the states of this moment
    """
    known = {"batches": [], "deleted": [], "states": ["success"], "now": None}
    known |= {"does": None, "refuses": False}
    return serving(handler, **{**known, **attributes})
