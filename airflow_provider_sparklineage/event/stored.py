"""Reads merged events: from XCom, from the archive or from a file.

XCom, archive and files contain the event itself, without an envelope. The capture facet's
``_schemaURL`` has the version of its format: another minor version is shown, a newer major version
is refused.

An event in a file can come from any program. :func:`readable` gives it only if all parts that
commands read have the right shape; the other parts may have any shape, and a part that is absent
or null counts as unknown. This module does not need the libraries of a terminal, because the tab
reads events as well.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import DocumentError
from airflow_provider_sparklineage.model.last_run import KEPT, LastRun, LastRunDataset
from airflow_provider_sparklineage.model.producer import SCHEMA_BASE
from airflow_provider_sparklineage.spark.capture.lines import is_too_deep

if TYPE_CHECKING:
    from collections.abc import Mapping


# --- whether it is a merged event -----------------------------------------------------------------


MAJOR = 1
"""The newest major version of the capture facet that this package reads."""

_VERSION = re.compile(re.escape(f"{SCHEMA_BASE}:capture:") + r"(\d{1,9})-")


def validate(value: object) -> dict[str, Any]:
    """Give a stored value as a merged event, after checks of its shape and version.

    :raise DocumentError: if it is not a merged event, or its version is too new; the error is a
        full sentence
    """
    event = value if isinstance(value, dict) else {}
    capture = _at(event, "run", "facets", model.CAPTURE_KEY)
    is_event = isinstance(_at(event, "job", "name"), str) and isinstance(capture, dict)
    if not is_event:
        problem = "The stored value is no lineage of a Spark job."
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
    version = _VERSION.match(str(capture.get("_schemaURL")))
    if version and int(version[1]) > MAJOR:
        problem = (
            "This lineage was written by a newer airflow-provider-sparklineage (format "
            f"{version[1]}; this one reads up to {MAJOR})."
        )
        fix = "Update the package where it is to be shown."
        raise DocumentError(problem, fix)
    return event


def stored(text: bytes) -> dict[str, Any]:
    """Give the merged event that was stored as text.

    :raise DocumentError: if it cannot be read as one; the error says why
    """
    try:
        value = json.loads(text)  # not by msgspec, which refuses half of a surrogate pair
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


# --- an event of a file ---------------------------------------------------------------------------


class Stored(NamedTuple):
    """A merged event, as JSON (``document``) and decoded (``event``)."""

    document: dict[str, Any]
    event: model.Event


class _Named(msgspec.Struct):
    """Requires an event to have a job with a namespace and a name; its other parts are optional."""

    job: model.Name


_SHOWN = ("job", "eventType", "eventTime", "inputs", "outputs")
_SHOWN_FACETS = (model.CAPTURE_KEY, model.CHECK_KEY)


def _shown(document: dict[str, Any]) -> model.Event:
    """Decode the parts of an event that commands read; the other parts may have any shape.

    :param document: the event as :func:`validate` gives it
    :raise ValueError: if a part that commands read has a wrong shape; the error gives its path
    """
    run = document["run"]
    facets = {key: facet for key, facet in run["facets"].items() if key in _SHOWN_FACETS}
    shown = {key: value for key, value in document.items() if key in _SHOWN}
    text = msgspec.json.encode({"run": {**run, "facets": facets}, **shown})
    msgspec.convert(document, _Named)
    event: model.Event = model.decoder(model.Event).decode(text)
    return event


def readable(event: object) -> Stored:
    """Check an event that any program may have stored, and decode the parts that commands read.

    :param event: the event as decoded JSON
    :raise DocumentError: if a part has a wrong shape, it is not a merged event, or its version is
        too new; the error names the problem
    """
    try:
        text = msgspec.json.encode(event)
        if is_too_deep(text, event):
            msg = "The stored lineage is damaged: it is nested too deeply."
            raise DocumentError(msg)
        document = validate(event)
        shown = _shown(document)
        for side, datasets in (("input", shown.inputs), ("output", shown.outputs)):
            for number, dataset in enumerate(datasets or ()):
                _require_facets(dataset, side, f"$.{side}s[{number}]")
    except (ValueError, RecursionError) as error:
        msg = f"The stored lineage is damaged: {error}."
        raise DocumentError(msg) from error
    return Stored(document, shown)


def _require_facets(dataset: model.Dataset, side: str, path: str) -> None:
    """Check the schema, the column lineage and the conditions in ``subset`` of a dataset.

    :param side: ``input`` or ``output``
    :param path: the dataset's place in the event, e.g. ``$.inputs[0]``, for the error
    :raise ValueError: if a part has a wrong shape; the error gives its path
    """
    facets = dataset.facets or model.DatasetFacets()
    for key, text, of in (
        ("schema", facets.schema, model.Schema),
        (model.COLUMNS_KEY, facets.column_lineage, model.ColumnLineage),
    ):
        try:
            model.decoder(of).decode(text or b"null")
        except msgspec.ValidationError as error:
            problem, _, at = str(error).partition(" - at `$")
            msg = f"{problem} - at `{path}.facets.{key}{at or '`'}"
            raise ValueError(msg) from error
    subset = dataset.of_side.subset or model.Subset()
    for condition in filter(None, (subset.input, subset.output)):
        _require_sides(condition, f"{path}.{side}Facets.{model.SUBSET_KEY}.{side}Condition")


def _require_sides(condition: model.Condition, path: str) -> None:
    left, right = condition.left, condition.right
    by_type = {
        "binary": (left, condition.operator, right),
        "compare": (left, condition.comparison, right),
    }
    if None in by_type.get(condition.type or "", ()):
        msg = f"A condition of the type {condition.type} is incomplete - at `{path}`"
        raise ValueError(msg)
    for side, below in (("left", left), ("right", right)):
        if below is not None:
            _require_sides(below, f"{path}.{side}")


# --- whether another place may have more ----------------------------------------------------------


def _codes(document: Mapping[str, Any]) -> set[Any]:
    capture = _at(document, "run", "facets", model.CAPTURE_KEY) or {}
    return {str(entry.get("code")) for entry in capture.get("degradations") or ()}


def misses_detail(document: Mapping[str, Any]) -> bool:
    """Whether the event lost detail to be small enough; the archive may still have the detail."""
    return DegradationCode.DETAIL_DROPPED in _codes(document)


_OF_COLLECTING = frozenset(code for code in DegradationCode if code.is_of_collecting)


def is_preliminary(document: Mapping[str, Any]) -> bool:
    """Whether the archive may have a fuller event of the try.

    It may have one if this event lost detail, or was made before all lineage was collected.
    """
    return misses_detail(document) or not _OF_COLLECTING.isdisjoint(_codes(document))


_OF_OTHERS = frozenset({DegradationCode.LAST_KNOWN, DegradationCode.NOT_SUBMITTED})


def has_datasets_of_others(document: Mapping[str, Any]) -> bool:
    """Whether the event has datasets that the last successful run read or wrote, not this try."""
    return not _OF_OTHERS.isdisjoint(_codes(document))


# --- the datasets of an earlier run ---------------------------------------------------------------


class _Datasets(msgspec.Struct):
    run: model.Run = msgspec.field(default_factory=model.Run)
    inputs: list[LastRunDataset] | None = None
    outputs: list[LastRunDataset] | None = None


def last_run(document: Mapping[str, Any]) -> LastRun:
    """Read the run and its datasets from a stored merged event.

    Each dataset has only the facets that identify it (:data:`.last_run.KEPT`).

    :param document: the event as :func:`validate` gives it
    """
    datasets = model.read_as(document, _Datasets)
    return LastRun(
        datasets.run.runId or "",
        tuple(map(_distinguished, datasets.inputs or ())),
        tuple(map(_distinguished, datasets.outputs or ())),
    )


def _distinguished(dataset: LastRunDataset) -> LastRunDataset:
    # Copies, because a decoded facet would keep the text of the whole event in memory.
    facets = {key: dataset.facets[key].copy() for key in KEPT if key in dataset.facets}
    return LastRunDataset(dataset.namespace, dataset.name, facets)
