"""Full events compared: what differs from run to run is replaced, nothing else.

Expected documents are in ``tests/golden/airflow``. ``SPARKLINEAGE_RECORD=1`` writes them anew from
the run at hand; look at the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from tests.conftest import GOLDEN

FOLDER = GOLDEN / "airflow"

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[\d.]*(Z|\+00:00)")
_MINUTE = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2} UTC")
_OURS_PRODUCER = re.compile(r"urn:airflow-provider-sparklineage:\d[\w.]*")
_AIRFLOW_PRODUCER = "https://github.com/apache/airflow/"
# How often the listener repeats itself and how files are packed varies from run to run, and
# which Spark it is that of the environment.
_COUNTED = {"events", "bytes", "size", "fileCount", "applicationId", "sparkVersion"}


def normalised(event: dict[str, Any], lake: str) -> dict[str, Any]:
    """Replace run ids, times, producers, the lake's path, and what is in Airflow's own facets."""
    text = json.dumps(event).replace(lake, "/lake")
    for pattern, word in (
        (_UUID, "<uuid>"),
        (_TIME, "<time>"),
        (_MINUTE, "<minute>"),
        (_OURS_PRODUCER, "<ours>"),
    ):
        text = pattern.sub(word, text)
    document: dict[str, Any] = _without_counts(json.loads(text))
    for part in (document["run"], document["job"]):
        part["facets"] = {
            name: "<of Airflow>" if _is_of_airflow(facet) else facet
            for name, facet in part["facets"].items()
        }
    document["producer"] = "<producer>"
    return document


def _is_of_airflow(facet: Any) -> bool:
    return isinstance(facet, dict) and str(facet.get("_producer")).startswith(_AIRFLOW_PRODUCER)


def _without_counts(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: "<counted>" if k in _COUNTED else _without_counts(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_counts(v) for v in value]
    return value


def assert_document(event: dict[str, Any], name: str, lake: str) -> None:
    """Compare a full event with the expected document of that name."""
    file = FOLDER / f"{name}.json"
    found = normalised(event, lake)
    if os.environ.get("SPARKLINEAGE_RECORD"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
    assert found == json.loads(file.read_text())
