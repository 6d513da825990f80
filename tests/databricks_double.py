"""A Databricks that runs nothing: it keeps the runs that are submitted."""

from __future__ import annotations

import json

from tests.loopback import Handler, serving


class DatabricksHandler(Handler):
    """Answers the requests of Airflow's hook as version 2.2 of the jobs API does."""

    def post(self):
        self.server.runs.append(json.loads(self.body()))
        self._answer({"run_id": len(self.server.runs)})

    def get(self):
        states = self.server.states
        life_cycle, result = states.pop(0) if len(states) > 1 else states[0]
        state = {"life_cycle_state": life_cycle, "state_message": ""}
        state |= {"result_state": result} if result else {}
        self._answer({"job_id": 1, "run_page_url": "http://run", "state": state, "tasks": []})

    def _answer(self, document):
        self.answer(200, json.dumps(document), Content_Type="application/json")


def databricks():
    """Serve: ``runs`` has what was submitted, ``states`` pairs of states, in order."""
    return serving(DatabricksHandler, runs=[], states=[("TERMINATED", "SUCCESS")])
