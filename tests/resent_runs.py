"""An old run that is sent after a new one, for the model of Marquez and for a real one."""

from __future__ import annotations

import json
from typing import Any

from airflow_provider_sparklineage.event import sending
from airflow_provider_sparklineage.event.archive import ArchivedEvent
from airflow_provider_sparklineage.settings.resolution import resolve

TABLE = "/lake/revenue"


class Runs:
    """Runs of one job, each with a column and a partition of its own.

    :param marquez: the model or a server
    :param event: merged, that writes the table
    """

    def __init__(self, marquez: Any, event: dict[str, Any]) -> None:
        self.marquez = marquez
        self._event = event

    def kept(self, day: int) -> ArchivedEvent:
        """Give what is kept of the run of a day."""
        event = json.loads(json.dumps(self._event))
        run_id = f"00000000-0000-7000-8000-{day:012}"
        event |= {"eventTime": f"2024-05-{day:02}T02:00:00+00:00", "eventType": "COMPLETE"}
        event["run"]["runId"] = run_id
        event["job"] |= {"namespace": "tests", "name": "shop.revenue"}
        [table] = [d for d in event["outputs"] if d["name"] == TABLE]
        table["facets"]["schema"]["fields"].append({"name": f"of_{day}", "type": "string"})
        table["facets"]["sparkLineage_partitions"] |= {"summary": f"dt=2024-05-{day:02}"}
        added = {"started": f"2024-05-{day:02}T01:00:00+00:00", "runFacets": {}, "jobFacets": {}}
        return ArchivedEvent(event, added)

    def send(self, kept: ArchivedEvent, *, with_start: bool = True) -> None:
        """Send what is sent of a run."""
        how = resolve().adaptation
        for line in sending.lines_of(kept, how, dict, with_start=with_start):
            self.marquez.receive(json.loads(line))

    def shown(self) -> list[Any]:
        """Give what the pages of the job and of the table show."""
        job, page = self.marquez.job("tests", "shop.revenue"), self.marquez.dataset("file", TABLE)
        return [
            (job.inputs, job.outputs),
            (page.columns, page.partitions),
            self.marquez.texts("file", TABLE),
        ]


def an_old_run_that_is_sent_late_does_not_become_the_latest(runs: Runs) -> None:
    """Send day 8, then day 7 and what follows it; day 8 stays."""
    new, old = runs.kept(8), runs.kept(7)
    runs.send(new)
    before = runs.shown()
    assert "of_8" in before[1][0]
    runs.send(old)
    assert runs.shown() != before
    chosen, latest = (sending.candidate(k.event["eventTime"], k.event) for k in (old, new))
    followers = sending.followers([chosen], [chosen, latest])
    assert followers == [latest]
    runs.send(new, with_start=False)
    assert runs.shown() == before
    assert runs.marquez.dataset("file", TABLE).versions == 2


def a_run_that_is_sent_twice_is_one_run(runs: Runs) -> None:
    """Send a run twice; nothing changes by the second time."""
    runs.send(runs.kept(8))
    before = runs.shown()
    runs.send(runs.kept(8))
    assert runs.shown() == before
    assert runs.marquez.job("tests", "shop.revenue").state == "COMPLETED"
    assert runs.marquez.dataset("file", TABLE).versions == 1


CASES = (
    an_old_run_that_is_sent_late_does_not_become_the_latest,
    a_run_that_is_sent_twice_is_one_run,
)
