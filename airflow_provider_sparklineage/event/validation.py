"""The merged RunEvent as it is kept: what a stored document must be to be shown.

XCom, archive and files hold the event itself, in no envelope. Which version wrote it is in the
capture facet's ``_schemaURL``: another minor version is shown, a newer major one is refused.
"""

from __future__ import annotations

import json
import re
from typing import Any

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY
from airflow_provider_sparklineage.event.producer import SCHEMA_BASE
from airflow_provider_sparklineage.model.exceptions import DocumentError

MAJOR = 1
"""The newest version of the capture facet that is understood."""

_VERSION = re.compile(re.escape(f"{SCHEMA_BASE}:capture:") + r"(\d{1,9})-")


def validate(value: object) -> dict[str, Any]:
    """Give a stored value back as the merged event that it is.

    :raise DocumentError: if it is none, or of a version that is too new; a sentence for people
    """
    event = value if isinstance(value, dict) else {}
    capture = _at(event, "run", "facets", CAPTURE_KEY)
    is_event = isinstance(_at(event, "job", "name"), str) and isinstance(capture, dict)
    if not is_event:
        problem = "What is stored is no lineage of a Spark job."
        fix = "Run the task again to replace it."
        raise DocumentError(problem, fix)
    for side in ("inputs", "outputs"):
        datasets = event.get(side) or []
        if not isinstance(datasets, list) or not all(map(_is_dataset, datasets)):
            msg = f"The stored lineage is damaged: its {side} are no list of datasets."
            raise DocumentError(msg)
    missing = capture.get("degradations") or []
    if not isinstance(missing, list) or not all(isinstance(entry, dict) for entry in missing):
        msg = "The stored lineage is damaged: its degradations are no list of entries."
        raise DocumentError(msg)
    found = _VERSION.match(str(capture.get("_schemaURL")))
    if found and int(found[1]) > MAJOR:
        problem = (
            "This lineage was written by a newer airflow-provider-sparklineage (format "
            f"{found[1]}; this one reads up to {MAJOR})."
        )
        fix = "Update the package where it is to be shown."
        raise DocumentError(problem, fix)
    return event


def stored(text: bytes) -> dict[str, Any]:
    """Give the merged event that was stored as a text.

    :raise DocumentError: if it is none that can be read; says why
    """
    try:
        value = json.loads(text)  # not by msgspec, which takes no halves of surrogate pairs
    except (ValueError, RecursionError) as error:
        msg = f"The stored lineage is damaged and cannot be read ({error})."
        raise DocumentError(msg) from error
    return validate(value)


def _is_dataset(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("namespace", "name")
    )


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
