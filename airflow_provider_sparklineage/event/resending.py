"""Events that are sent from the archive: what is sent of each, in which order, and what with them.

A backend such as Marquez takes the event that comes last for the latest, whatever its time is: the
columns of a dataset and the datasets of a job become those of an old run. So whoever sends an event
again sends after it the latest one of its job, and of each dataset that it wrote.

What is sent of a try is START and its end, with run id and times as they were. Without a START the
run would have no beginning, if the backend was away then as well; one that comes twice changes
nothing, because the end follows. Both have what Airflow's OpenLineage provider adds that a backend
needs to find the run's place and shows first: parent, nominal time, Airflow's own facet of the try,
type and text of the job. Its other facets (owners, tags) are not kept.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event.document import DOCUMENTATION_KEY, name_of
from airflow_provider_sparklineage.event.leaving import sent_of
from airflow_provider_sparklineage.event.neutral import neutral, redacted
from airflow_provider_sparklineage.model.last_run import KEPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow_provider_sparklineage.event.archive import Kept
    from airflow_provider_sparklineage.event.document import Event, Facets
    from airflow_provider_sparklineage.model.representation import Leaving

STARTED, RUN_FACETS, JOB_FACETS = "started", "runFacets", "jobFacets"
"""Keys of what Airflow adds: the time of START, and facets of every event."""
OWN_TEXT = "documentation"
"""Key of the job facet of the user's own text, which one of Airflow's may begin with another."""


class Candidate(NamedTuple):
    """An event of the archive that can be sent.

    :param name: in the archive
    :param time: of the event
    :param state: how the try ended
    :param keys: its job, and the datasets that it wrote if the job succeeded
    """

    name: str
    time: datetime
    state: str
    job: str
    run_id: str
    keys: frozenset[tuple[str, ...]]


def candidate(name: str, event: Event) -> Candidate:
    """Describe a kept event.

    :raise ValueError: if it is none that can be sent: without a run, or a time
    """
    run_id, job = event["run"].get("runId"), event["job"]
    if not isinstance(run_id, str) or not isinstance(job.get("namespace"), str):
        msg = "it is of no run"
        raise ValueError(msg)  # noqa: TRY004  (what is kept is wrong, not what calls)
    time = datetime.fromisoformat(str(event.get("eventTime")))
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    state = str(event.get("eventType"))
    keys: set[tuple[str, ...]] = {("job", job["namespace"], job["name"])}
    if state == "COMPLETE":
        keys |= {("dataset", *name_of(dataset)) for dataset in event.get("outputs") or ()}
    return Candidate(name, time, state, job["name"], run_id, frozenset(keys))


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort events as they happened; of the same time, by their names."""
    return sorted(candidates, key=lambda one: (one.time, one.name))


def followers(chosen: Iterable[Candidate], known: Iterable[Candidate]) -> list[Candidate]:
    """Find the later events that have to be sent with some, so that they stay the latest.

    All of them are sent in their order: one that follows may be older than one that is chosen.

    :param chosen: what is sent
    :param known: all that there is since the first of them
    :return: none of those that are chosen
    """
    latest = {key: one for one in in_order(known) for key in one.keys}
    sent = {one.name for one in chosen}
    found: dict[str, Candidate] = {}
    to_look_at = list(chosen)
    while to_look_at:
        one = to_look_at.pop()
        for key in one.keys:
            last = latest.get(key, one)
            # One that follows writes datasets as well, and of each of them the latest follows.
            if last.name not in sent and last.name not in found:
                found[last.name] = last
                to_look_at.append(last)
    return in_order(found.values())


def events(
    kept: Kept,
    how: Leaving,
    redact: Callable[[Facets], Facets],
    last: Event | None = None,
    *,
    with_start: bool,
    with_neutral: bool = False,
) -> list[bytes]:
    """Give what is sent of a try, each event as a line of JSON.

    A line is an event, or a list of that and of the one that it carries for a transport which
    converts events; :mod:`.relay.emitter` sends either.

    :param kept: with what Airflow adds
    :param last: of the task's last successful run before it
    :param redact: hides secrets in facets that are not of this package, as Airflow does
    :param with_start: whether its START is sent as well
    :param with_neutral: whether there is a transport that converts events
    """
    sending = kept.sending or {}
    run_facets, job_facets = sending.get(RUN_FACETS) or {}, sending.get(JOB_FACETS) or {}
    end = redacted(sent_of(kept.event, how, last), redact)
    last_of_try = _with(end, run_facets, job_facets)
    found: list[Event | list[Event]] = [last_of_try]
    if with_neutral:
        found = [[last_of_try, neutral(kept.event, redact, sending.get(OWN_TEXT))]]
    if with_start and sending.get(STARTED):
        start = {
            **end,
            "eventType": "START",
            "eventTime": sending[STARTED],
            "run": {**end["run"], "facets": {}},
            "job": {**end["job"], "facets": {}},
            "inputs": [_as_known(d, "inputFacets") for d in end["inputs"]],
            "outputs": [_as_known(d, "outputFacets") for d in end["outputs"]],
        }
        if with_neutral:  # a START carries nothing
            job_facets = _with_own_text(job_facets, sending.get(OWN_TEXT))
        found.insert(0, _with(start, run_facets, job_facets))
    # Not by msgspec, which refuses halves of surrogate pairs; what is kept may have some.
    return [json.dumps(event).encode() + b"\n" for event in found]


def _with(event: Event, run_facets: Facets, job_facets: Facets) -> Event:
    run, job = event["run"], event["job"]
    return {
        **event,
        "run": {**run, "facets": {**run["facets"], **run_facets}},
        "job": {**job, "facets": {**job["facets"], **job_facets}},
    }


def _with_own_text(job_facets: Facets, own: Facets | None) -> Facets:
    others = {key: facet for key, facet in job_facets.items() if key != DOCUMENTATION_KEY}
    return others if own is None else {**others, DOCUMENTATION_KEY: own}


def _as_known(dataset: Mapping[str, Any], own: str) -> dict[str, Any]:
    """Give a dataset as START has it: what identifies it, and nothing of the run."""
    facets = {key: facet for key, facet in dataset["facets"].items() if key in KEPT}
    return {**dataset, "facets": facets, own: {}}
