"""Proposals to files that ``datahub ingest`` reads: in a folder, one for each event.

DataHub's file source reads a JSON array, or each ``*.json`` of a folder; lines of JSON it does not.
An array cannot be added to by several processes, one of which may be killed; a file that is renamed
once it is whole can. Names begin with the time of the event, so they are sorted by it. The same
event has the same name: sent twice it is there once.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING
from uuid import uuid4

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.model.exceptions import DeliveryError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import IO

    from airflow_provider_sparklineage.datahub.proposals import Proposal
    from airflow_provider_sparklineage.event.document import Event

_OTHERS = re.compile(r"[^A-Za-z0-9]+")


def write(folder: Path, event: Event, proposals: Iterable[Proposal]) -> Path:
    """Write what an event is for DataHub; the folder is made if it is missing.

    :param event: that is converted; the file is named by its time, its type and its run
    :return: path of the file
    :raise DeliveryError: if it cannot be written
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{uuid4().hex}.part"
        try:
            with part.open("x", encoding="ascii") as file:
                digest = _written(file, proposals)
            return part.replace(folder / f"{_name(event)}-{digest}.json")
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        problem = f"DataHub's folder {folder} takes no file ({error.strerror})."
        raise DeliveryError(problem) from None


def _written(file: IO[str], proposals: Iterable[Proposal]) -> str:
    """Write an array; give a short checksum of it."""
    checksum = hashlib.sha256()
    before = "[\n"
    for proposal in proposals:
        text = json.dumps(proposal.document())
        checksum.update(text.encode())
        file.write(before + text)
        before = ",\n"
    file.write("[]\n" if before == "[\n" else "\n]\n")
    return checksum.hexdigest()[:8]


def _name(event: Event) -> str:
    """Give the event's time, type and run as a file's name has them.

    Of a dataset or a job alone it has a time only.
    """
    run_id = lenient.at(event, "run", "runId")
    parts = filter(None, (event.get("eventTime"), event.get("eventType"), run_id))
    return "-".join(_OTHERS.sub("", str(part))[:40] for part in parts)
